# Every formula exists in every face, with the contract's names, arguments and order; nothing exists in one face only.
import ast
import importlib
import importlib.resources
import inspect
import re
from pathlib import Path

import pytest

import kvformulas
from conftest import CONTRACT, FORMULAS
from kvformulas import catalog

PACKAGE = importlib.resources.files("kvformulas")
NAMES = [name for _, name in FORMULAS]


def kernels(topic):
    source = (PACKAGE / "kernels" / f"{topic}.pxd").read_text()
    found = re.findall(r"^cdef inline double (\w+)\(([^)]*)\) noexcept nogil:", source, re.MULTILINE)
    return {name: [part.split()[1] for part in arguments.split(",")] for name, arguments in found}


def test_the_formulas_have_different_names():
    assert len(NAMES) == len(set(NAMES)) == 61 + 24 + 27


def test_kernels(topic):
    assert kernels(topic) == CONTRACT[topic]
    assert (PACKAGE / "kernels" / f"{topic}.pxd").read_text().count("\ncdef ") == len(CONTRACT[topic])


def test_wrappers(topic):
    module = importlib.import_module(f"kvformulas.{topic}")
    assert module.__all__ == list(CONTRACT[topic])
    for name, arguments in CONTRACT[topic].items():
        signature = inspect.signature(getattr(module, name))
        assert list(signature.parameters) == arguments
        assert {parameter.annotation for parameter in signature.parameters.values()} == {"float"}
        assert signature.return_annotation == "float"


def test_stubs(topic):
    tree = ast.parse((PACKAGE / f"{topic}.pyi").read_text())
    stubs = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {name: [a.arg for a in node.args.args] for name, node in stubs.items()} == CONTRACT[topic]


def test_lazy_package():
    assert {topic: list(names) for topic, names in kvformulas._FORMULAS.items()} == {
        topic: list(names) for topic, names in CONTRACT.items()
    }
    for topic, name in FORMULAS:
        assert getattr(kvformulas, name) is getattr(importlib.import_module(f"kvformulas.{topic}"), name)
    assert set(NAMES) <= set(dir(kvformulas))
    assert set(NAMES) <= set(kvformulas.__all__)


def test_lazy_package_in_cython():
    imports = re.findall(r"from kvformulas\.kernels\.(\w+) cimport \(([^)]*)\)", (PACKAGE / "__init__.pxd").read_text())
    assert {topic: re.findall(r"\w+", names) for topic, names in imports} == {
        topic: list(names) for topic, names in CONTRACT.items()
    }


def test_addresses():
    from kvformulas import capi

    assert list(capi.__pyx_capi__) == NAMES


def test_ufuncs():
    from kvformulas import ufuncs

    assert ufuncs.__all__ == NAMES
    assert all(getattr(ufuncs, name).nin == len(CONTRACT[topic][name]) for topic, name in FORMULAS)


def test_catalog():
    assert {
        module: {f.name: [a.name for a in f.arguments] for f in catalog.formulas(module)}
        for module in catalog.modules()
    } == CONTRACT


@pytest.mark.parametrize("package", ["oracle", "reference"])
def test_oracle_and_reference(package, topic):
    source = (Path(__file__).parent / package / f"{topic}.py").read_text()
    functions = {
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert set(CONTRACT[topic]) <= functions
