# The ruler itself: what one ULP is, at powers of two, in the subnormals, across zero, at infinity and for NaN.
import math
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath.ctx_mp import MPContext

import ulp

LARGEST = sys.float_info.max
SMALLEST = 5e-324
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE)
def test_a_double_is_no_distance_from_itself_and_at_most_one_from_its_neighbours(x):
    assert ulp.error(x, x) == 0
    for neighbour in (math.nextafter(x, math.inf), math.nextafter(x, -math.inf)):
        assert 0.5 <= ulp.error(neighbour, x) <= 1


@given(FINITE)
def test_one_ulp_is_a_gap_or_up_to_two(x):
    assert 1 <= ulp.unit(x) / Fraction(ulp.gap(x)) < 2


@given(FINITE)
def test_a_correctly_rounded_value_errs_by_half_at_most(x):
    exact = Fraction(x) / 3
    assert ulp.error(ulp.nearest_double(exact), exact) <= 0.5


@given(FINITE, FINITE)
def test_signs_do_not_matter(got, exact):
    assert ulp.error(got, exact) == ulp.error(-got, -exact)


def test_either_side_of_a_power_of_two():
    below = math.nextafter(1.0, 0.0)
    assert ulp.error(below, 1) == 0.5  # a gap below 1 is half the gap above it
    assert ulp.error(math.nextafter(1.0, 2.0), 1) == 1
    assert ulp.error(1.0, Fraction(below)) == pytest.approx(0.5)  # a gap below 1 is half an ULP of what lies there
    assert ulp.error(1.0, 1 - Fraction(1, 2**55)) == pytest.approx(0.125)
    assert ulp.error(1.0, 1 + Fraction(1, 2**53)) == pytest.approx(0.5)
    assert ulp.gap(1) == ulp.gap(1 - Fraction(1, 2**55)) == 2.0**-52  # both round to 1
    assert ulp.gap(Fraction(below)) == 2.0**-53


def test_four_roundings_cost_two_ulp_but_nearly_four_gaps():
    # Each factor's product with the one before lies just above a power of two and is rounded by nearly half a gap.
    one = Fraction(1)
    for _ in range(4):
        one *= 1 + Fraction(1, 2**53)
    assert ulp.error(1.0, one) < 2
    top = Fraction(2) - Fraction(1, 2**40)
    assert (top * one - top) / Fraction(ulp.gap(top)) > 3.9


def test_subnormals():
    assert ulp.error(3 * SMALLEST, Fraction(SMALLEST)) == 2
    assert ulp.error(0.0, Fraction(SMALLEST) / 2) == 0.5
    assert ulp.error(SMALLEST, Fraction(SMALLEST) / 4) == 0.75
    assert ulp.error(0.0, Fraction(SMALLEST) / 2**100) == pytest.approx(2.0**-100)
    assert ulp.nearest_double(Fraction(SMALLEST) / 2) == 0  # a tie, to even
    assert ulp.nearest_double(Fraction(SMALLEST) * 3 / 2) == 2 * SMALLEST
    # Rounded once, straight to a subnormal, not by way of 53 bits: that would make a tie of it, and the even neighbour.
    assert ulp.nearest_double(Fraction(SMALLEST) * (Fraction(5, 2) + Fraction(1, 2**60))) == 3 * SMALLEST


def test_zero():
    assert ulp.error(0.0, 0) == ulp.error(-0.0, 0) == 0
    assert ulp.error(SMALLEST, 0) == ulp.error(-SMALLEST, 0) == 1
    assert ulp.error(1.0, 0) == math.inf  # 2**1074 ULP, which no double can say


def test_overflow():
    after = Fraction(2) ** 1024
    assert ulp.error(math.inf, after) == 0
    assert ulp.error(math.inf, after * 10**9) == 0
    assert ulp.error(math.inf, Fraction(LARGEST)) == pytest.approx(0.5)
    assert ulp.error(LARGEST, after) == 0.5
    assert ulp.error(-math.inf, after) == 2**53
    assert ulp.nearest_double(Fraction(LARGEST) + Fraction(2) ** 970) == math.inf  # a tie, to even
    assert ulp.nearest_double(Fraction(LARGEST) + Fraction(2) ** 969) == LARGEST
    assert ulp.nearest_double(-after) == -math.inf


@pytest.mark.parametrize("infinity", [math.inf, -math.inf])
def test_an_infinite_value(infinity):
    assert ulp.error(infinity, infinity) == 0
    for got in (-infinity, LARGEST, 0.0, math.nan):
        assert ulp.error(got, infinity) == math.inf


def test_nan():
    assert ulp.error(math.nan, math.nan) == 0
    assert ulp.error(math.nan, 0) == ulp.error(0.0, math.nan) == ulp.error(math.inf, math.nan) == math.inf


def test_the_largest_term_as_the_unit():
    exact = Fraction(1, 2**40)
    assert ulp.error(0.0, exact, largest_term=1) == 2.0**12
    assert ulp.error(0.0, exact, largest_term=-1) == 2.0**12
    assert ulp.error(0.0, exact, largest_term=Fraction(1, 2**40)) == ulp.error(0.0, exact) == 2.0**52


@given(FINITE, st.integers(-60, 60))
def test_mpf_and_fraction_measure_alike(x, shift):
    mp = MPContext()
    mp.prec = 300
    exact = Fraction(x) * (1 + Fraction(2) ** (shift - 120))
    number = mp.mpf(x) * (1 + mp.mpf(2) ** (shift - 120))
    assert ulp.exactly(number) == exact
    assert ulp.error(x, number) == ulp.error(x, exact)
    assert ulp.nearest_double(number) == ulp.nearest_double(exact)


def test_mpf_beyond_all_doubles():
    mp = MPContext()
    assert ulp.error(math.inf, mp.mpf(2) ** 10**30) == 0
    assert ulp.error(-math.inf, -(mp.mpf(2) ** 10**30)) == 0
    assert ulp.error(0.0, mp.mpf(2) ** -(10**30)) < 1e-30
    assert ulp.error(LARGEST, mp.inf) == math.inf
    assert ulp.error(math.nan, mp.nan) == 0


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("**Error:** none (one of the arguments).", (0, False)),
        ("**Error:** 0.5 ULP (one rounding).", (0.5, False)),
        ("**Error:** 2 ULP. More.", (2, False)),
        ("**Error:** 1.5 ULP of the largest\n    term (three).", (1.5, True)),
    ],
)
def test_budgets_are_read_from_docstrings(paragraph, expected):
    assert ulp.budget(f"Notes\n-----\n{paragraph}\n") == expected


@pytest.mark.parametrize("paragraph", ["", "**Error:** small", "Error: 2 ULP", "**Error:** 2"])
def test_a_docstring_without_a_budget_is_an_error(paragraph):
    with pytest.raises(ValueError, match="has no"):
        ulp.budget(paragraph)
