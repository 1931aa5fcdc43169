# From a speculative decoder's counters to decisions, by another route.
from flint import arb, ctx

_FEW = 8
_STEPS = 1000


def mean_acceptance_length(accepted_tokens, steps):
    return (steps + accepted_tokens) / steps if steps > 0 else 1


def expected_accepted_tokens(acceptance_rate, depth):
    if acceptance_rate <= 0:
        return 0
    if acceptance_rate >= 1:
        return depth
    if depth in range(_FEW):
        # Each token is accepted after all those before it.
        expected = 0
        for _ in range(round(float(depth))):
            expected = acceptance_rate * (1 + expected)
        return expected
    return acceptance_rate * (depth * acceptance_rate.log()).expm1() / (acceptance_rate - 1)


def acceptance_rate_from_counts(accepted_tokens, steps, depth):
    if steps <= 0 or accepted_tokens <= 0:
        return 0
    return _rate(accepted_tokens / steps, depth)


def break_even_acceptance(depth, cost_ratio):
    if cost_ratio >= 1:
        return 1
    return _rate(cost_ratio * depth, depth) if depth > 0 and cost_ratio > 0 else 0


def _rate(mean, depth):
    """Return a ball about the rate: Newton's method on its log-odds, then the sum's sign at either end of the ball."""
    if mean >= depth:
        return 1
    # An endless draft has odds of just the mean, and the logarithm of the sum is concave in the log-odds.
    mean = arb(mean)
    log_odds = mean.log()
    for _ in range(_STEPS):
        odds = log_odds.mid().exp()
        logarithm = -(1 / odds).log1p()
        rest = -(depth * logarithm).expm1()
        step = (mean / (odds * rest)).log() / (1 - depth * (1 - rest) / (rest * (1 + odds)))
        log_odds = (log_odds + step).mid()
        if abs(step) < arb(2) ** (-ctx.prec // 2):
            break
    # The closer the rate is to 1, the less it depends on its odds.
    width = min((1 + log_odds.exp()) * arb(2) ** (30 - ctx.prec), arb(2) ** -40)
    if not _sum(log_odds - width, depth) < mean < _sum(log_odds + width, depth):
        raise ArithmeticError("the rate is not where Newton's method ended")
    return 1 / (1 + (-log_odds + arb(0, width)).exp())


def _sum(log_odds, depth):
    odds = log_odds.exp()
    return odds * -(-depth * (1 / odds).log1p()).expm1()


def _tokens(acceptance_rate, depth):
    if 0 < acceptance_rate < 1 and depth not in range(_FEW):
        return ((1 + depth) * acceptance_rate.log()).expm1() / (acceptance_rate - 1)
    return 1 + arb(expected_accepted_tokens(acceptance_rate, depth))


def speculative_walltime_speedup(acceptance_rate, depth, cost_ratio):
    cost = 1 + cost_ratio * depth
    return _tokens(acceptance_rate, depth) / cost if cost > 0 else 1


def speculative_operations_factor(acceptance_rate, depth, operation_ratio):
    return (1 + depth * (1 + operation_ratio)) / _tokens(acceptance_rate, depth) if depth > -1 else 1


def best_speculation_depth(acceptance_rate, cost_ratio, max_depth):
    if acceptance_rate <= 0 or cost_ratio >= 1 or max_depth < 1:
        return 0
    most = max_depth.floor()
    if acceptance_rate >= 1:
        return most
    if cost_ratio <= 0:
        return most if acceptance_rate > cost_ratio else 0

    def grows(depth):
        # One token more is worth more than its cost if it beats the speedup so far.
        return acceptance_rate ** (depth + 1) > cost_ratio * speculative_walltime_speedup(
            acceptance_rate, depth, cost_ratio
        )

    low, high = -1, 0
    while grows(arb(high)):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if grows(arb(middle)) else (low, middle)
    return high if high < most else most


def residual_weight(target_prob, draft_prob):
    return target_prob - draft_prob if target_prob > draft_prob else 0


def medusa_typical_threshold(epsilon, delta, entropy):
    threshold = delta / entropy.exp()
    return epsilon if epsilon < threshold else threshold
