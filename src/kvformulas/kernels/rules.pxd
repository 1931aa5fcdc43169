# cython: cdivision=True
# What several formulas share: the rules for NaN, for powers of a rounded base and for counts of whole blocks.
from libc.math cimport INFINITY, NAN, ceil, exp, fabs, floor, fma, isnan, pow, trunc


cdef inline double minimum(double x, double y) noexcept nogil:
    # C's fmin would swallow a NaN.
    return x if isnan(x) else (x if x < y else y)


cdef inline double maximum(double x, double y) noexcept nogil:
    return x if isnan(x) else (x if x > y else y)


cdef inline double at_most_one(double ratio) noexcept nogil:
    # Asked this way round, a NaN stays a NaN.
    return 1.0 if ratio > 1.0 else ratio


cdef inline double power(double base, double exponent) noexcept nogil:
    # C's pow(1, NaN) and pow(NaN, 0) are 1.
    return NAN if isnan(base) or isnan(exponent) else pow(base, exponent)


cdef inline double power_of_rounded(double base, double error, double exponent) noexcept nogil:
    # (base * (1 + error)) ** exponent: a power multiplies the rounding of its base by the exponent, this takes it out.
    cdef double value = power(base, exponent)
    if not (0.0 < fabs(error) < 1.0 and 0.0 < value < INFINITY):
        return value
    return value * exp(exponent * error)


cdef inline double quotient_error(double numerator, double denominator, double quotient) noexcept nogil:
    return fma(-quotient, denominator, numerator) / numerator


cdef inline double blocks_covering(double tokens, double size) noexcept nogil:
    # trunc((tokens + size - 1) / size). From 2**53 on that sum is rounded and can be a block off, so it is avoided.
    cdef double padded = tokens + size
    if padded < 9007199254740992.0:
        return trunc((padded - 1.0) / size)
    if tokens > 9007199254740992.0 or not padded < INFINITY:
        return ceil(tokens / size) + (size - size)
    return floor((tokens - 1.0) / size) + 1.0
