# What every test shares: the contract of names and arguments, and reproducible property tests.
import json
from pathlib import Path

import hypothesis

hypothesis.settings.register_profile("reproducible", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.load_profile("reproducible")

CONTRACT: dict[str, dict[str, list[str]]] = json.loads(Path(__file__).with_name("contract.json").read_text())
FORMULAS = [(topic, name) for topic, names in CONTRACT.items() for name in names]


def _names(argnames):
    return [name.strip() for name in argnames.split(",")] if isinstance(argnames, str) else argnames


def pytest_generate_tests(metafunc):
    """Run a test that asks for a `formula`, for its `topic` too, or for a `topic` alone, once for each."""
    own = {name for mark in metafunc.definition.iter_markers("parametrize") for name in _names(mark.args[0])}
    wanted = {"topic", "formula"} & set(metafunc.fixturenames)
    if not wanted or own & wanted:
        return
    if wanted == {"topic"}:
        metafunc.parametrize("topic", CONTRACT)
    elif wanted == {"formula"}:
        metafunc.parametrize("formula", [name for _, name in FORMULAS])
    else:
        metafunc.parametrize(("topic", "formula"), FORMULAS, ids=[name for _, name in FORMULAS])
