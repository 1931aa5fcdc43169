# The one metric: how far a double is from an exact value, in units in the last place (ULP) of that value.
# And the budgets that it is held to, which are written in the docstrings and nowhere else.
#
# One ULP of x is 2**-52 * |x| here (Boost.Math's epsilon), and 2**-1074 for what is smaller than a normal double. It is
# the gap between doubles at a power of two and up to twice the gap above it, and it is the unit in which a rounding
# costs at most half, whatever it is followed by: n roundings cost at most n / 2, to first order. In gaps they can cost
# nearly n. The published table has both figures.
import math
import re
from fractions import Fraction
from typing import NamedTuple

# 2**1024 is the double after the largest: an infinity stands for it, so that an overflow has a distance too.
_AFTER_LARGEST = Fraction(2) ** 1024
_HUGE_BITS, _TINY_BITS = 1100, -1200  # beyond these exponents every value rounds to an infinity, to zero


class Budget(NamedTuple):
    """How many ULP a formula may err, and of what: of its value, or of the largest term of a sum that can cancel."""

    ulps: float
    of_largest_term: bool


def budget(docstring):
    """Read the `**Error:**` paragraph of a formula's docstring."""
    found = re.search(r"\*\*Error:\*\*\s+(?:none|(\d+(?:\.\d+)?)\s+ULP(\s+of\s+the\s+largest\s+term)?)\b", docstring)
    if found is None:
        raise ValueError("the docstring has no '**Error:** none', 'X ULP' or 'X ULP of the largest term'")
    return Budget(float(found[1] or 0), found[2] is not None)


def exactly(number):
    """Return a finite int, float, Fraction or mpf as a Fraction, capped where all rounds to an infinity or to zero."""
    if isinstance(number, (int, float, Fraction)):
        return Fraction(number)
    mantissa, exponent = number.man_exp
    mantissa = -abs(mantissa) if number < 0 else abs(mantissa)
    if mantissa == 0:
        return Fraction(0)
    top = mantissa.bit_length() + exponent
    if not _TINY_BITS < top < _HUGE_BITS:
        cap = Fraction(2) ** (_HUGE_BITS if top > 0 else _TINY_BITS)
        return cap if mantissa > 0 else -cap
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def is_nan(number):
    """Is the number of any type NaN, which alone is not at most infinity?"""
    return not number <= math.inf


def nearest_double(exact):
    """Round to the nearest double, ties to even, subnormals and overflow included."""
    if is_nan(exact) or exact in (math.inf, -math.inf):
        return float(exact)
    exact = exactly(exact)
    try:
        return exact.numerator / exact.denominator  # Python's division of ints is correctly rounded.
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def gap(exact):
    """Return the gap between the doubles at the value's rounding; beyond the largest, the last gap there is."""
    return min(math.ulp(nearest_double(exact)), math.ulp(math.ldexp(1.0, 1023)))


def unit(exact):
    """Return one ULP of a finite exact value, as a Fraction."""
    return max(abs(exactly(exact)) / 2**52, Fraction(1, 2**1074))


def error(got, exact, largest_term=None):
    """Return the distance from `got` to `exact` in ULP of the value, or of the largest term if given.

    Zeros of either sign are one number. NaN is 0 ULP from NaN and infinitely far from all else; an infinite exact value
    is 0 ULP from itself and infinitely far from all else.
    """
    if is_nan(got) or is_nan(exact):
        return 0.0 if is_nan(got) and is_nan(exact) else math.inf
    if exact in (math.inf, -math.inf):
        return 0.0 if got == exact else math.inf
    if math.isinf(got) and nearest_double(exact) == got:
        return 0.0
    reached = Fraction(got) if math.isfinite(got) else _AFTER_LARGEST * (1 if got > 0 else -1)
    try:
        return float(abs(reached - exactly(exact)) / unit(exact if largest_term is None else largest_term))
    except OverflowError:
        return math.inf
