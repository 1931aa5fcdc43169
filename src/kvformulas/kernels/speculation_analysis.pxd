# cython: cdivision=True
# From a speculative decoder's counters to decisions: acceptance rate, speedup, break-even and the best depth.
from libc.math cimport NAN, exp, expm1, fma, isnan, log, pow, trunc

from kvformulas.kernels.rules cimport maximum, minimum
from kvformulas.kernels.speculative_decoding cimport speculative_expected_tokens


cdef inline double mean_acceptance_length(double accepted_tokens, double steps) noexcept nogil:
    if steps <= 0.0:
        return 1.0
    return 1.0 + accepted_tokens / steps


cdef inline double expected_accepted_tokens(double acceptance_rate, double depth) noexcept nogil:
    if acceptance_rate >= 1.0:
        return depth
    if acceptance_rate <= 0.0:
        return 0.0
    # 1 - alpha**gamma loses every digit as alpha nears 1; expm1 keeps them.
    return acceptance_rate * (-expm1(depth * log(acceptance_rate)) / (1.0 - acceptance_rate))


cdef inline double acceptance_rate_from_counts(
    double accepted_tokens, double steps, double depth
) noexcept nogil:
    cdef double mean = accepted_tokens / steps
    cdef double low = 0.0
    cdef double high = 1.0
    cdef double middle
    cdef int _halving
    if steps <= 0.0 or mean <= 0.0:
        return 0.0
    if mean >= depth:
        return 1.0
    if depth == 1.0:
        return mean
    if isnan(mean) or isnan(depth):
        return NAN
    # 1074 halvings reach the smallest double, and 54 more any double's last bit.
    for _halving in range(1128):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if expected_accepted_tokens(middle, depth) < mean:
            low = middle
        else:
            high = middle
    return high


cdef inline double speculative_walltime_speedup(
    double acceptance_rate, double depth, double cost_ratio
) noexcept nogil:
    cdef double cost = fma(depth, cost_ratio, 1.0)
    if cost <= 0.0:
        return 1.0
    return speculative_expected_tokens(acceptance_rate, depth) / cost


cdef inline double speculative_operations_factor(
    double acceptance_rate, double depth, double operation_ratio
) noexcept nogil:
    if depth <= -1.0:
        return 1.0
    return fma(depth, operation_ratio, depth + 1.0) / speculative_expected_tokens(acceptance_rate, depth)


cdef inline double break_even_acceptance(double depth, double cost_ratio) noexcept nogil:
    if cost_ratio >= 1.0:
        return 1.0
    if depth <= 0.0 or cost_ratio <= 0.0:
        return 0.0
    # The step costs depth * cost_ratio more than a plain one, and must yield so many tokens more.
    return acceptance_rate_from_counts(depth * cost_ratio, 1.0, depth)


cdef inline double best_speculation_depth(
    double acceptance_rate, double cost_ratio, double max_depth
) noexcept nogil:
    cdef double low = 0.0
    cdef double high = trunc(max_depth)
    cdef double depth
    cdef int _halving
    if high < 1.0 or acceptance_rate <= 0.0 or cost_ratio >= 1.0 or acceptance_rate <= cost_ratio:
        return 0.0
    if isnan(acceptance_rate) or isnan(cost_ratio):
        return NAN
    if acceptance_rate >= 1.0 or cost_ratio <= 0.0:
        return high
    # One draft token more pays up to some depth and never after it. That depth is below 2**63 for any two doubles.
    high = minimum(high, 9223372036854775808.0)
    for _halving in range(63):
        depth = trunc(0.5 * (low + high))
        if depth == low:
            break
        if (
            pow(acceptance_rate, depth + 1.0) * (depth * cost_ratio + 1.0)
            > cost_ratio * speculative_expected_tokens(acceptance_rate, depth)
        ):
            low = depth
        else:
            high = depth
    return high


cdef inline double residual_weight(double target_prob, double draft_prob) noexcept nogil:
    return maximum(target_prob - draft_prob, 0.0)


cdef inline double medusa_typical_threshold(double epsilon, double delta, double entropy) noexcept nogil:
    return minimum(epsilon, delta * exp(-entropy))
