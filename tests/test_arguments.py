# From Python, an argument is any real number, by position or by keyword; anything else is named in the error.
import inspect
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import kvformulas
from conftest import CONTRACT

ORDINARY = [3.0, 0.75, 5.0, 2.0, 4.0, 7.0, 1.5]  # no formula gives NaN here


class HasFloat:
    def __float__(self):
        return 3.0


class HasIndex:
    def __index__(self):
        return 3


class Broken:
    def __float__(self):
        raise ZeroDivisionError("broken on purpose")


def test_every_argument_by_keyword_in_any_order(topic, formula):
    function = getattr(kvformulas, formula)
    names = CONTRACT[topic][formula]
    values = ORDINARY[: len(names)]
    expected = function(*values)
    assert type(expected) is float
    assert function(**dict(zip(names, values, strict=True))) == expected
    assert function(**dict(reversed(list(zip(names, values, strict=True))))) == expected
    assert function(values[0], **dict(list(zip(names, values, strict=True))[1:])) == expected


@pytest.mark.parametrize(
    "three",
    [3, 3.0, np.float64(3), np.float32(3), np.int64(3), np.uint8(3), Fraction(3), Decimal(3), HasFloat(), HasIndex()],
    ids=lambda value: type(value).__name__,
)
def test_any_real_number(topic, formula, three):
    function = getattr(kvformulas, formula)
    arity = len(CONTRACT[topic][formula])
    assert np.array_equal(function(*[three] * arity), function(*[3.0] * arity), equal_nan=True)


def test_a_bool_is_a_number_as_in_math():
    assert kvformulas.kv_cache_total_memory(True, 5) == math.prod([True, 5])


def test_an_int_is_rounded_to_the_nearest_double():
    for value in [2**53 + 1, 2**53 + 3, -(2**64 + 2**11 + 1), 10**300]:
        assert kvformulas.top_k_threshold(value) == float(value)


@pytest.mark.parametrize("wrong", ["3", None, 3j, b"3", [3], object], ids=lambda value: type(value).__name__)
def test_a_type_error_names_argument_type_and_value(topic, formula, wrong):
    names = CONTRACT[topic][formula]
    for position, name in enumerate(names):
        arguments = ORDINARY[: len(names)]
        arguments[position] = wrong
        with pytest.raises(TypeError) as caught:
            getattr(kvformulas, formula)(*arguments)
        assert str(caught.value) == f"{name} must be a real number, not {type(wrong).__name__}: {wrong!r}"


def test_a_long_value_is_shortened_in_the_error():
    with pytest.raises(TypeError) as caught:
        kvformulas.top_k_threshold("x" * 10_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", [10**400, -(10**400), 2**1024])
def test_an_int_too_large_for_a_double(value):
    with pytest.raises(OverflowError, match=r"^n_layers is too large for a double: an int of \d+ bits$"):
        kvformulas.kv_cache_total_memory(1, value)


def test_an_error_inside_an_argument_is_its_own():
    with pytest.raises(ZeroDivisionError, match="broken on purpose"):
        kvformulas.top_k_threshold(Broken())
    with pytest.raises(TypeError, match="array"):
        kvformulas.top_k_threshold(np.arange(3))


def test_wrong_counts_and_names_are_the_ordinary_type_error(topic, formula):
    function = getattr(kvformulas, formula)
    arity = len(CONTRACT[topic][formula])
    with pytest.raises(TypeError, match=f"{formula}\\(\\) takes exactly"):
        function(*[1.0] * (arity + 1))
    with pytest.raises(TypeError, match=f"{formula}\\(\\)"):
        function()
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        function(*[1.0] * arity, nothing=1.0)


def test_help_and_signature(topic, formula):
    function = getattr(kvformulas, formula)
    expected = ", ".join(f"{name}: 'float'" for name in CONTRACT[topic][formula])
    assert str(inspect.signature(function)) == f"({expected}) -> 'float'"
    assert function.__module__ == f"kvformulas.{topic}"
    assert function.__name__ == formula
