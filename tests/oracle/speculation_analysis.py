# From a speculative decoder's counters to decisions: the definitions.
from oracle.context import least, power, unknown


def mean_acceptance_length(mp, accepted_tokens, steps):
    if steps <= 0:
        return mp.one
    return 1 + accepted_tokens / steps


def expected_accepted_tokens(mp, acceptance_rate, depth):
    if acceptance_rate >= 1:
        return depth
    if acceptance_rate <= 0:
        return mp.zero
    # Doubles leave 1 - alpha at 2**-53 or more; where alpha**gamma is next to 1, its distance from 1 is worth the bits.
    return acceptance_rate * -mp.expm1(depth * mp.log(acceptance_rate)) / (1 - acceptance_rate)


def acceptance_rate_from_counts(mp, accepted_tokens, steps, depth):
    if steps <= 0:
        return mp.zero
    return _rate(mp, accepted_tokens / steps, depth)


def _rate(mp, mean, depth):
    """Return the rate at which `depth` draft tokens yield `mean` accepted ones."""
    if mean <= 0:
        return mp.zero
    if mean >= depth:
        return mp.one
    if unknown(mean, depth):
        return mp.nan
    if mp.isinf(depth):
        return mean / (1 + mean)
    # With t = -ln alpha the sum is (1 - e**(-depth t)) / (e**t - 1). Its logarithm is convex or concave in t and falls
    # by between 1 and (1 + depth) / 2 for each unit of t, so Newton's method never turns back from where that puts the
    # root.
    t = mp.log(depth / mean) / max(mp.one, (1 + depth) / 2)
    step = t
    while abs(step) > mp.ldexp(t, -mp.prec // 3):
        rest = -mp.expm1(-depth * t)
        pace = -1 / mp.expm1(-t) - depth * (1 - rest) / rest
        step = mp.log(rest / mp.expm1(t) / mean) / pace
        t += step
    return mp.exp(-t)


def speculative_walltime_speedup(mp, acceptance_rate, depth, cost_ratio):
    cost = depth * cost_ratio + 1
    if cost <= 0:
        return mp.one
    return _yield(mp, acceptance_rate, depth) / cost


def _yield(mp, acceptance_rate, depth):
    if acceptance_rate >= 1:
        return depth + 1
    if acceptance_rate <= 0:
        return mp.one
    return (1 - power(mp, acceptance_rate, depth + 1)) / (1 - acceptance_rate)


def speculative_operations_factor(mp, acceptance_rate, depth, operation_ratio):
    if depth <= -1:
        return mp.one
    return (depth * operation_ratio + depth + 1) / _yield(mp, acceptance_rate, depth)


def break_even_acceptance(mp, depth, cost_ratio):
    if cost_ratio >= 1:
        return mp.one
    if depth <= 0 or cost_ratio <= 0:
        return mp.zero
    return _rate(mp, depth * cost_ratio, depth)


def best_speculation_depth(mp, acceptance_rate, cost_ratio, max_depth):
    if max_depth < 1 or acceptance_rate <= 0 or cost_ratio >= 1 or acceptance_rate <= cost_ratio:
        return mp.zero
    if unknown(acceptance_rate, cost_ratio, max_depth):
        return mp.nan
    if acceptance_rate >= 1 or cost_ratio <= 0:
        return mp.floor(max_depth)
    low, high = mp.zero, mp.one
    while _pays(mp, acceptance_rate, cost_ratio, high):
        low, high = high, 2 * high
    while high - low > 1:
        depth = mp.floor((low + high) / 2)
        if _pays(mp, acceptance_rate, cost_ratio, depth):
            low = depth
        else:
            high = depth
    return min(high, mp.floor(max_depth))


def _pays(mp, acceptance_rate, cost_ratio, depth):
    """Does one draft token more raise the speedup? What it yields, over what it costs, against the yield so far."""
    more = power(mp, acceptance_rate, depth + 1) * (depth * cost_ratio + 1)
    return more > cost_ratio * _yield(mp, acceptance_rate, depth)


def residual_weight(mp, target_prob, draft_prob):
    return -least(mp, draft_prob - target_prob, mp.zero)


def medusa_typical_threshold(mp, epsilon, delta, entropy):
    return least(mp, epsilon, delta * mp.exp(-entropy))


EXAMPLES = [
    (mean_acceptance_length, (220, 100), 3.2),
    (mean_acceptance_length, (220, 0), 1),
    (expected_accepted_tokens, (0.5, 2), 0.75),
    (expected_accepted_tokens, (0.5, 3), 0.875),
    (expected_accepted_tokens, (1, 4), 4),
    (expected_accepted_tokens, (0, 4), 0),
    (acceptance_rate_from_counts, (3, 4, 2), 0.5),
    (acceptance_rate_from_counts, (7, 8, 3), 0.5),
    (acceptance_rate_from_counts, (3, 4, 1), 0.75),
    (acceptance_rate_from_counts, (20, 4, 5), 1),
    (acceptance_rate_from_counts, (0, 4, 5), 0),
    (acceptance_rate_from_counts, (3, 0, 5), 0),
    (speculative_walltime_speedup, (1, 1, 0.5), 1.3333333333333333),
    (speculative_walltime_speedup, (0.5, 1, 0.25), 1.2),
    (speculative_walltime_speedup, (0.5, 4, -0.25), 1),
    (speculative_operations_factor, (0.5, 2, 0.25), 2),
    (speculative_operations_factor, (0.5, -1, 0.25), 1),
    (break_even_acceptance, (2, 0.375), 0.5),
    (break_even_acceptance, (2, 1), 1),
    (break_even_acceptance, (2, 0), 0),
    (best_speculation_depth, (0.5, 0.25, 8), 1),
    (best_speculation_depth, (0.875, 0.0625, 8), 8),
    (best_speculation_depth, (0.25, 0.5, 8), 0),
    (best_speculation_depth, (1, 0.5, 8.5), 8),
    (residual_weight, (0.625, 0.25), 0.375),
    (residual_weight, (0.25, 0.75), 0),
    (medusa_typical_threshold, (0.25, 0.5, 0), 0.25),
    (medusa_typical_threshold, (0.25, 0.125, 0), 0.125),
]
