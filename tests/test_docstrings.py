# The documentation is part of the interface: its examples run, its sections are complete and its siblings exist.
import doctest
import importlib
import re

import pytest
from numpydoc.validate import validate

import kvformulas
from conftest import FORMULAS
from kvformulas import catalog

NAMES = {name for _, name in FORMULAS}


def test_examples_run(formula):
    test = doctest.DocTestParser().get_doctest(getattr(kvformulas, formula).__doc__, {}, formula, None, None)
    assert len(test.examples) >= 2
    result = doctest.DocTestRunner().run(test)
    assert result.failed == 0


def test_numpydoc_finds_nothing_amiss(topic, formula):
    assert validate(f"kvformulas.{topic}.{formula}")["errors"] == []


def test_every_fact_is_there(topic, formula):
    entry = catalog.formula(formula)
    assert entry.module == topic
    for fact in ("summary", "math", "domain", "guard", "special_values", "error", "unit", "example"):
        assert getattr(entry, fact).strip(), fact
    assert entry.source
    assert all(argument.unit and argument.description for argument in entry.arguments)


def test_siblings_exist(topic, formula):
    doc = getattr(kvformulas, formula).__doc__
    section = doc.partition("See Also\n")[2].partition("Notes\n")[0]
    siblings = re.findall(r"^    (?:kvformulas\.(\w+)\.)?(\w+) : ", section, re.MULTILINE)
    for module, name in siblings:
        assert hasattr(importlib.import_module(f"kvformulas.{module or topic}"), name)


@pytest.mark.parametrize("name", ["read_model", "plan"])
def test_the_planner_is_documented(name):
    assert validate(f"kvformulas.plan.{name}")["errors"] == []
    module = importlib.import_module("kvformulas.plan")
    test = doctest.DocTestFinder(recurse=False).find(getattr(module, name), name, module)[0]
    assert len(test.examples) >= 2
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", ["Model", "Plan", "GroupPlan", "Group", "State", "Conv"])
def test_what_the_planner_returns_is_documented(name):
    wanted = {code for code, _ in validate(f"kvformulas.plan.{name}")["errors"]}
    assert wanted <= {"ES01", "SA01", "EX01"}  # a record needs neither a story nor an example


@pytest.mark.parametrize("module", ["catalog", "runtime", "cli", "plan", "replay"])
def test_python_modules_are_documented(module):
    loaded = importlib.import_module(f"kvformulas.{module}")
    assert loaded.__doc__
    public = [value for name, value in vars(loaded).items() if not name.startswith("_") and callable(value)]
    assert all(value.__doc__ for value in public if value.__module__ == loaded.__name__)
