# Where the oracle's numbers live: an mpmath context of its own at any precision, and the few rules that IEEE 754 and
# formulas.md add to real arithmetic. Doubles enter exactly; sums and products of doubles stay exact at the precision
# of the rational formulas.
from functools import cache
from math import inf

from mpmath.ctx_mp import MPContext


@cache
def reals(bits):
    """Return a context of that precision, which is shared by nothing but the oracle."""
    mp = MPContext()
    mp.prec = bits
    return mp


def unknown(*values):
    """Is any of the values NaN?"""
    return any(not value <= inf for value in values)


def least(mp, *values):
    """Return the smallest value; a NaN among them is not swallowed."""
    return mp.nan if unknown(*values) else min(values)


def truncated(mp, x):
    """Drop the fraction, toward zero."""
    return mp.floor(x) if x > 0 else mp.ceil(x)


def quotient(mp, x, y):
    """Return x / y, where y may be a zero that an infinite exponent gave: IEEE 754 has an answer for that."""
    if y != 0:
        return x / y
    return mp.nan if x == 0 or unknown(x) else mp.inf * mp.sign(x)


def power(mp, base, exponent):
    """Return base ** exponent for a base above 0, with IEEE 754's answers for infinities, and NaN for NaN."""
    if unknown(base, exponent):
        return mp.nan
    if base == 1 or exponent == 0:
        return mp.one
    if mp.isinf(exponent):
        return mp.inf if (base > 1) == (exponent > 0) else mp.zero
    if mp.isinf(base):
        return mp.inf if exponent > 0 else mp.zero
    # Exact roots first, so that a power that is a double, or half-way between two, comes out exactly.
    while exponent != mp.floor(exponent):
        root = mp.sqrt(base)
        if mp.fmul(root, root, exact=True) != base:
            break
        base, exponent = root, 2 * exponent
    return mp.power(base, exponent)
