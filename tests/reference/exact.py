# The numbers of the second route: fractions.Fraction, which is exact, or flint's arb, a ball that provably holds the
# value. The formulas are written once for both; here is what the two have no common operation for.
from fractions import Fraction

from flint import arb


def whole_part(x):
    """Drop the fraction, toward zero; of a ball that holds a whole number inside, a ball over both answers."""
    if isinstance(x, arb):
        return x.floor() if x > 0 else x.ceil()
    x = Fraction(x)
    return abs(x.numerator) // x.denominator * (1 if x > 0 else -1)


def ceiling(x):
    """Return the least whole number that is not below x; of a ball over a whole number, a ball over both answers."""
    return x.ceil() if isinstance(x, arb) else -(-Fraction(x) // 1)


def distance_to_whole(x):
    """Return how far x is from the nearest whole number."""
    if isinstance(x, arb):
        x = abs(x - x.mid().floor())
        return x if x <= 0.5 else abs(1 - x)
    x = Fraction(x) % 1
    return min(x, 1 - x)


def is_even(code):
    """Is the whole number even? A ball over two numbers is not known to be."""
    if isinstance(code, arb):
        return (code / 2).is_integer()
    return code % 2 == 0
