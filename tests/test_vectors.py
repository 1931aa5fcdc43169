# The vectors: worked values in hex, checked against the kernels and against the oracle alike. vectors/schema.json says
# what each field means.
import json
import math
from collections import defaultdict
from pathlib import Path

import jsonschema
import pytest

import kvformulas
import oracle
from conftest import CONTRACT, FORMULAS
from oracle import comparison

FOLDER = Path(__file__).with_name("vectors")
SCHEMA = json.loads((FOLDER / "schema.json").read_text())
VECTORS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json")) if path.stem != "schema"}


def number(text):
    return float.fromhex(text) if "x" in text else float(text)


def arguments(vector):
    return [number(text) for text in vector["args"]]


def same(x, y):
    """Are these the same double, a zero's sign included? Every NaN is one NaN."""
    return (math.isnan(x) and math.isnan(y)) or (x == y and math.copysign(1, x) == math.copysign(1, y))


@pytest.fixture(params=[pytest.param(vector, id=vector["id"]) for vectors in VECTORS.values() for vector in vectors])
def vector(request):
    return request.param


def test_schema(topic):
    jsonschema.validate(VECTORS[topic], SCHEMA, cls=jsonschema.Draft202012Validator)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_ids_are_unique_and_name_their_formula():
    ids = [vector["id"] for vectors in VECTORS.values() for vector in vectors]
    assert len(ids) == len(set(ids))
    assert all(vector["id"].split("/")[0] == vector["formula"] for vectors in VECTORS.values() for vector in vectors)


def test_every_formula_has_vectors_that_vary_every_argument(topic):
    seen = defaultdict(list)
    for vector in VECTORS[topic]:
        seen[vector["formula"]].append(vector["args"])
    assert set(seen) == set(CONTRACT[topic])
    for name, names in CONTRACT[topic].items():
        assert len(seen[name]) >= 4, name
        assert {len(args) for args in seen[name]} == {len(names)}, name
        assert all(len(set(column)) >= 2 for column in zip(*seen[name], strict=True)), name


def test_no_topic_is_unknown():
    assert set(VECTORS) == {topic for topic, _ in FORMULAS}


def test_the_decimals_echo_the_hex(vector):
    assert vector["decimal"] == f"({', '.join(map(repr, arguments(vector)))}) -> {number(vector['result'])!r}"


def test_the_kernel_gives_the_result(vector):
    got, expected = getattr(kvformulas, vector["formula"])(*arguments(vector)), number(vector["result"])
    if math.isfinite(expected) and vector.get("ulp", 0):
        assert abs(got - expected) <= vector["ulp"] * math.ulp(expected)
    else:
        assert same(got, expected)


def test_the_oracle_gives_the_result(vector):
    name, args, expected = vector["formula"], arguments(vector), number(vector["result"])
    if "rounded_operand" in vector:
        assert oracle.double(name, args) != expected
        assert comparison.error(name, args, expected) == 0
    else:
        assert same(oracle.double(name, args), expected)
