# Doubles at which arithmetic goes wrong, and for each formula the cases made of them: for whoever compares two faces.
import math
import random
import struct
import sys
from functools import cache

TINY, LARGEST = sys.float_info.min, sys.float_info.max
VALUES = (
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    5e-324,  # the least above 0
    -5e-324,
    math.nextafter(TINY, 0),  # the largest subnormal
    TINY,
    LARGEST,
    -LARGEST,
    2.0**53 - 1,
    2.0**53,
    2.0**53 + 2,  # 2**53 + 1 is the first whole number that is no double
    -(2.0**53),
    2.0**63,  # the first that is no 64-bit integer
    1e300,
    1e-300,
    0.1,
    0.5,
    math.nextafter(0.5, 0),
    1.0,
    1 + 2.0**-52,
    1 - 2.0**-53,
    2.0,
    3.0,
    -1.0,
    16.0,
    127.5,  # the tie at the top of the INT8 range
    -0.5,
    -5.0,  # 5 + length is 0
)
RANDOM_CASES = 1000


@cache
def _cover(arity: int) -> list[tuple[float, ...]]:
    # There are 31 values, a prime, so the polynomials of degree 2 over GF(31), each at x = 0, 1, 2 ..., hold every
    # three values at every three positions exactly once. For three arguments or fewer that is the full product.
    p = len(VALUES)
    degrees = min(arity, 3)
    return [
        tuple(VALUES[sum(code // p**k % p * x**k for k in range(degrees)) % p] for x in range(arity))
        for code in range(p**degrees)
    ]


def cases(name: str, arity: int) -> list[tuple[float, ...]]:
    """Return the formula's argument tuples, always the same: the cover, then doubles of random bits."""
    bits = random.Random(name)
    return _cover(arity) + [struct.unpack(f"<{arity}d", bits.randbytes(8 * arity)) for _ in range(RANDOM_CASES)]
