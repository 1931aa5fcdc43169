# What every test shares: the contract of names and arguments, and reproducible property tests.
import json
from pathlib import Path

import hypothesis

hypothesis.settings.register_profile("reproducible", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.load_profile("reproducible")

CONTRACT: dict[str, dict[str, list[str]]] = json.loads(Path(__file__).with_name("contract.json").read_text())
FORMULAS = [(topic, name) for topic, names in CONTRACT.items() for name in names]


def pytest_generate_tests(metafunc):
    """Run a test that asks for a `formula`, for its `topic` too, or for a `topic` alone, once for each."""
    if {"topic", "formula"} <= set(metafunc.fixturenames):
        metafunc.parametrize(("topic", "formula"), FORMULAS, ids=[name for _, name in FORMULAS])
    elif "formula" in metafunc.fixturenames:
        metafunc.parametrize("formula", [name for _, name in FORMULAS])
    elif "topic" in metafunc.fixturenames:
        metafunc.parametrize("topic", CONTRACT)
