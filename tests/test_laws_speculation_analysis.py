# Laws of speculation_analysis: the solvers invert the forward formulas, the best depth beats all others, and the rest.
import itertools
import math
from fractions import Fraction

from hypothesis import assume
from hypothesis import strategies as st

import kvformulas as kv
from oracle import comparison
from test_laws import ascending, close, count, finite, law, positive, power_of_two, probability, same, size

depth = st.integers(1, 64)
rate = st.floats(2.0**-40, 1)
cost = st.floats(2.0**-20, 1, exclude_max=True)
# As wide as no partial result is subnormal.
wide = st.floats(1e-140, 1e140)
ULP = 2.0**-52


@law(first=st.tuples(count, size), second=st.tuples(count, size))
def test_pooled_counters_lie_between_the_parts(first, second):
    pooled = kv.mean_acceptance_length(first[0] + second[0], first[1] + second[1])
    low, high = sorted(kv.mean_acceptance_length(*part) for part in (first, second))
    assert low <= pooled <= high


@law(accepted=ascending(st.floats(0, 1e60)), steps=ascending(positive))
def test_mean_length_is_monotone_in_accepted_and_antitone_in_steps(accepted, steps):
    mean = kv.mean_acceptance_length
    assert 1 <= mean(accepted[0], steps[1]) <= mean(accepted[0], steps[0]) <= mean(accepted[1], steps[0])


@law(alpha=probability, depth=st.integers(0, 64))
def test_accepted_tokens_recur(alpha, depth):
    shorter, longer = (kv.expected_accepted_tokens(alpha, n) for n in (depth, depth + 1))
    assert close(longer, alpha * (1 + shorter), 8)


@law(alpha=probability, depth=st.integers(0, 64))
def test_accepted_tokens_are_all_but_the_targets_own(alpha, depth):
    accepted = kv.expected_accepted_tokens(alpha, depth)
    assert abs(1 + accepted - kv.speculative_expected_tokens(alpha, depth)) <= 8 * ULP * (1 + accepted)
    assert 0 <= accepted <= depth * (1 + 4 * ULP)


# --- The solvers ------------------------------------------------------------------------------------------------------


@law(alpha=rate, depth=depth)
def test_the_rate_inverts_the_accepted_tokens(alpha, depth):
    # An error of n ULP in the mean is one of at most n ULP in the rate.
    found = kv.acceptance_rate_from_counts(kv.expected_accepted_tokens(alpha, depth), 1, depth)
    assert abs(found - alpha) <= 8 * ULP * alpha


@law(accepted=size, steps=size, depth=depth)
def test_the_accepted_tokens_invert_the_rate(accepted, steps, depth):
    mean = accepted / steps
    found = kv.expected_accepted_tokens(kv.acceptance_rate_from_counts(accepted, steps, depth), depth)
    # The rounding of the rate is magnified by up to (depth + 1) / 2.
    assert abs(found - min(mean, depth)) <= (8 + 4 * (depth + 1) / 2) * ULP * mean


@law(accepted=ascending(count), steps=size, depth=ascending(depth), factor=power_of_two)
def test_the_rate_is_monotone_and_has_no_unit(accepted, steps, depth, factor):
    solve = kv.acceptance_rate_from_counts
    found = solve(accepted[0], steps, depth[0])
    assert solve(accepted[0] * factor, steps * factor, depth[0]) == found
    assert found <= solve(accepted[1], steps, depth[0]) * (1 + 8 * ULP)
    assert solve(accepted[0], steps, depth[1]) <= found * (1 + 8 * ULP)


@law(accepted=wide, steps=wide, depth=wide)
def test_the_rate_is_found_for_any_doubles(accepted, steps, depth):
    found = kv.acceptance_rate_from_counts(accepted, steps, depth)
    assert 0 <= found <= 1
    assert comparison.error("acceptance_rate_from_counts", (accepted, steps, depth), found) <= 4


@law(accepted=st.floats(), steps=st.floats(), depth=st.floats())
def test_the_rate_is_a_rate_or_nan(accepted, steps, depth):
    found = kv.acceptance_rate_from_counts(accepted, steps, depth)
    assert 0 <= found <= 1 or any(map(math.isnan, (accepted, steps, depth, accepted / steps if steps else 0)))


@law(depth=depth, cost=cost)
def test_at_break_even_the_speedup_is_1(depth, cost):
    speedup = kv.speculative_walltime_speedup(kv.break_even_acceptance(depth, cost), depth, cost)
    assert abs(speedup - 1) <= (8 + 4 * (depth + 1) / 2) * ULP


@law(alpha=rate, depth=depth)
def test_break_even_inverts_the_cost(alpha, depth):
    # The cost that a rate pays for is what it yields in tokens, shared out over the draft.
    affordable = kv.expected_accepted_tokens(alpha, depth) / depth
    assume(affordable < 1)
    assert abs(kv.break_even_acceptance(depth, affordable) - alpha) <= 9 * ULP * alpha


@law(depth=ascending(depth), cost=ascending(cost))
def test_break_even_is_monotone_and_at_least_the_cost(depth, cost):
    lowest = kv.break_even_acceptance(depth[0], cost[0])
    assert lowest >= cost[0] * (1 - 8 * ULP)
    assert lowest <= kv.break_even_acceptance(depth[0], cost[1]) * (1 + 8 * ULP)
    assert lowest <= kv.break_even_acceptance(depth[1], cost[0]) * (1 + 8 * ULP)


@law(depth=st.floats(1e-140, 1e140), cost=st.floats(1e-140, 1))
def test_break_even_is_found_for_any_doubles(depth, cost):
    found = kv.break_even_acceptance(depth, cost)
    assert same(found, kv.acceptance_rate_from_counts(depth * cost, 1, depth))
    assert comparison.error("break_even_acceptance", (depth, cost), found) <= 4


def speedups(alpha, cost, most):
    """Return the speedup at each depth up to `most`, in exact fractions."""
    alpha, cost, tokens = Fraction(alpha), Fraction(cost), Fraction(1)
    for n in range(most + 1):
        yield tokens / (1 + n * cost)
        tokens += alpha ** (n + 1)


@law(
    alpha=st.integers(0, 64).map(lambda n: n / 64),
    cost=st.integers(-4, 64).map(lambda n: n / 64),
    most=st.integers(0, 24),
)
def test_the_best_depth_is_the_first_of_the_best(alpha, cost, most):
    assume(1 + most * cost > 0)
    exact = list(speedups(alpha, cost, most))
    best = kv.best_speculation_depth(alpha, cost, most)
    # A cost below 0 is paid out for every token, which the guards take for a yes.
    assert cost < 0 or best == exact.index(max(exact))


@law(alpha=probability, cost=probability, most=st.integers(0, 100))
def test_the_best_depth_beats_its_neighbours(alpha, cost, most):
    best = kv.best_speculation_depth(alpha, cost, most)
    assert best == int(best)
    assert 0 <= best <= most
    speedup = kv.speculative_walltime_speedup(alpha, best, cost)
    for other in {max(0, best - 1), min(most, best + 1)}:
        assert speedup >= kv.speculative_walltime_speedup(alpha, other, cost) * (1 - 16 * ULP)


@law(alpha=ascending(probability), cost=ascending(probability), most=ascending(st.integers(0, 1000)))
def test_the_best_depth_is_monotone_and_limited(alpha, cost, most):
    best = kv.best_speculation_depth
    least = best(alpha[0], cost[1], most[1])
    assert least <= best(alpha[1], cost[1], most[1])
    assert least <= best(alpha[0], cost[0], most[1])
    assert best(alpha[0], cost[1], most[0]) == min(least, most[0])


@law(alpha=st.floats(), cost=st.floats(), most=st.floats())
def test_the_best_depth_is_whole_or_nan(alpha, cost, most):
    best = kv.best_speculation_depth(alpha, cost, most)
    assert math.isnan(best) or ((best >= 0 and best == math.floor(min(best, 2.0**1023))) or best == math.inf)
    assert math.isnan(best) <= any(map(math.isnan, (alpha, cost, most)))


@law(alpha=st.floats(0.5, 1, exclude_max=True), cost=st.floats(1e-300, 1))
def test_the_best_depth_is_found_without_a_limit(alpha, cost):
    best = kv.best_speculation_depth(alpha, cost, math.inf)
    assert best < 2.0**63
    assert comparison.error("best_speculation_depth", (alpha, cost, math.inf), best) == 0


# --- The rest ---------------------------------------------------------------------------------------------------------


@law(alpha=probability, depth=st.integers(0, 64), cost=st.floats(0, 4))
def test_walltime_speedup_is_the_latencies_speedup(alpha, depth, cost):
    speedup = kv.speculative_walltime_speedup(alpha, depth, cost)
    expected = kv.speculative_expected_tokens(alpha, depth)
    assert close(speedup, kv.draft_model_speedup(expected, 1, cost, depth), 3)
    assert kv.speculative_walltime_speedup(alpha, depth, 0) == expected


@law(alpha=probability, depth=st.integers(0, 64), cost=st.floats(0, 4))
def test_no_speedup_without_a_rate_above_the_cost(alpha, depth, cost):
    speedup = kv.speculative_walltime_speedup(alpha, depth, cost)
    if alpha <= cost:
        assert speedup <= 1 + 8 * ULP
    assert speedup * cost <= max(1, cost) * (1 + 8 * ULP)


@law(alpha=probability, depth=st.integers(0, 64), operations=st.floats(0, 4))
def test_operations_over_all_tokens_are_those_of_a_step(alpha, depth, operations):
    factor = kv.speculative_operations_factor(alpha, depth, operations)
    total = factor * kv.speculative_expected_tokens(alpha, depth)
    assert close(total, depth * operations + depth + 1, 8)
    assert factor >= 1 - 8 * ULP


@law(alpha=ascending(probability), depth=st.integers(0, 64), operations=ascending(st.floats(0, 4)))
def test_operations_are_antitone_in_the_rate_and_monotone_in_the_draft(alpha, depth, operations):
    factor = kv.speculative_operations_factor
    least = factor(alpha[1], depth, operations[0])
    assert least <= factor(alpha[0], depth, operations[0]) * (1 + 8 * ULP)
    assert least <= factor(alpha[1], depth, operations[1])


@law(target=finite, draft=finite)
def test_two_residuals_make_the_difference(target, draft):
    assume(math.isfinite(target - draft))
    more, less = kv.residual_weight(target, draft), kv.residual_weight(draft, target)
    assert more - less == target - draft
    assert 0 in {more, less}


@law(weights=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=8))
def test_residuals_sum_to_the_chance_of_rejection(weights):
    total = sum(target for target, _ in weights) * sum(draft for _, draft in weights)
    assume(total > 0)
    scale = Fraction(1, 2 ** total.bit_length())
    pairs = [(float(t * scale), float(d * scale)) for t, d in weights]
    rejected = sum(q * (1 - kv.speculative_accept_prob(p, q)) for p, q in pairs)
    assert math.isclose(sum(kv.residual_weight(q, p) for p, q in pairs), rejected, rel_tol=1e-12, abs_tol=1e-15)


@law(epsilon=probability, delta=probability, entropy=ascending(st.floats(0, 100)))
def test_the_typical_threshold_is_antitone_in_entropy_and_at_most_epsilon(epsilon, delta, entropy):
    low, high = (kv.medusa_typical_threshold(epsilon, delta, x) for x in reversed(entropy))
    assert low <= high <= epsilon
    assert kv.medusa_typical_threshold(epsilon, delta, 0) == min(epsilon, delta)


@law(
    epsilon=probability, delta=probability, entropy=st.floats(0, 100), factor=st.integers(-30, 0).map(lambda n: 2.0**n)
)
def test_the_typical_threshold_scales_with_both_thresholds(epsilon, delta, entropy, factor):
    assume(min(epsilon, delta) > 1e-200)
    threshold = kv.medusa_typical_threshold(epsilon, delta, entropy)
    assert kv.medusa_typical_threshold(epsilon * factor, delta * factor, entropy) == threshold * factor


def test_the_solvers_converge_at_the_ends_of_the_doubles():
    ends = [5e-324, 2.0**-1022, 1e-300, 2.0**-53, 0.5, 1 - 2.0**-53, 1.0, 2.0, 2.0**53, 1e300, 1.7976931348623157e308]
    for accepted, steps, depth in itertools.product(ends, repeat=3):
        assert 0 <= kv.acceptance_rate_from_counts(accepted, steps, depth) <= 1
    for depth, cost in itertools.product(ends, repeat=2):
        assert 0 <= kv.break_even_acceptance(depth, cost) <= 1
