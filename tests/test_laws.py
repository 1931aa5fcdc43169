# Laws that hold whatever the arguments: scaling, monotonicity, symmetry, inverses, composition. At least two a formula,
# counted by the last test. Rounding is monotone and powers of two scale without rounding, so most hold to the bit; only
# where a libm power has a say is an ULP or two allowed.
import ast
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kvformulas as kv
from conftest import FORMULAS

finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(1e-60, 1e60)
moderate = st.one_of(st.just(0.0), positive, st.floats(-1e60, -1e-60))
probability = st.floats(0, 1)
log_probability = st.floats(-1e3, 0)
flag = st.sampled_from([0.0, 1.0])
count = st.integers(0, 10_000)
size = st.integers(1, 10_000)
small = st.integers(0, 300)
power_of_two = st.integers(-30, 30).map(lambda n: 2.0**n)


def law(**strategies):
    """Like `given`, with half as many examples of each: the laws are many."""
    return lambda test: settings(max_examples=50)(given(**strategies)(test))


def ascending(numbers):
    return st.tuples(numbers, numbers).map(sorted)


def several(arity, numbers):
    return st.lists(numbers, min_size=arity, max_size=arity)


def close(x, y, ulps):
    return abs(x - y) <= ulps * math.ulp(max(abs(x), abs(y)))


def same(x, y):
    """Are these the same double, a zero's sign included?"""
    return x == y and math.copysign(1, x) == math.copysign(1, y)


# --- Products: every argument is a factor -----------------------------------------------------------------------------

PRODUCTS = [
    (kv.kv_cache_memory_per_layer, 5),
    (kv.kv_cache_total_memory, 2),
    (kv.kv_eviction_score_h2o, 2),
    (kv.prefix_cache_hit_bytes, 5),
    (kv.cache_compaction_gain, 6),
    (kv.speculative_branch_memory, 6),
    (kv.min_p_threshold, 2),
    (kv.beam_memory_per_request, 6),
    (kv.recurrent_state_bytes, 5),
    (kv.conv_state_bytes, 4),
    (kv.concurrency, 2),
]
every_product = pytest.mark.parametrize(("product", "arity"), PRODUCTS, ids=[f.__name__ for f, _ in PRODUCTS])


@every_product
@law(data=st.data())
def test_product_is_additive_in_every_argument(product, arity, data):
    args = data.draw(several(arity, small))
    more = data.draw(size)
    for i in range(arity):
        grown, only_more = [*args], [*args]
        grown[i], only_more[i] = args[i] + more, more
        assert product(*grown) == product(*args) + product(*only_more)


@every_product
@law(data=st.data())
def test_product_scales_with_every_argument(product, arity, data):
    args = data.draw(several(arity, st.floats(1e-20, 1e20)))
    factor = data.draw(power_of_two)
    for i in range(arity):
        scaled = [*args]
        scaled[i] *= factor
        assert product(*scaled) == factor * product(*args)


@every_product
@law(data=st.data())
def test_product_is_monotone_in_every_argument(product, arity, data):
    args = data.draw(several(arity, st.floats(0, 1e300)))
    i = data.draw(st.integers(0, arity - 1))
    greater = [*args]
    greater[i] = data.draw(st.floats(args[i], 1e300))
    # Where an infinity meets a zero there is nothing to compare.
    assert not product(*greater) < product(*args)


# --- The cache product, restated six times ----------------------------------------------------------------------------


@law(args=several(5, count))
def test_prefix_hit_is_the_memory_of_all_layers(args):
    tokens, heads, dim, layers, width = args
    layer = kv.kv_cache_memory_per_layer(1, tokens, heads, dim, width)
    assume(layer * layers < 2**53)
    assert kv.prefix_cache_hit_bytes(tokens, heads, dim, layers, width) == kv.kv_cache_total_memory(layer, layers)


@law(args=several(6, small))
def test_compaction_frees_half_of_the_fragmented_blocks(args):
    blocks, block, width, layers, heads, dim = args
    layer = kv.kv_cache_memory_per_layer(blocks, block, heads, dim, width)
    assert 2 * kv.cache_compaction_gain(blocks, block, width, layers, heads, dim) == layer * layers


@law(args=several(5, small), bandwidth=size)
def test_copy_takes_the_blocks_bytes_over_the_bandwidth(args, bandwidth):
    block, layers, heads, dim, width = args
    total = kv.kv_cache_total_memory(kv.kv_cache_memory_per_layer(1, block, heads, dim, width), layers)
    cost = kv.block_copy_cost(block, layers, heads, dim, width, bandwidth)
    assert cost == float(Fraction(total) / (bandwidth * 10**6))


@law(args=several(6, small))
def test_sharing_saves_all_prefixes_but_one(args):
    prefix, n, layers, heads, dim, width = args
    layer = kv.kv_cache_memory_per_layer(max(0, n - 1), prefix, heads, dim, width)
    assert kv.prefix_sharing_savings(prefix, n, layers, heads, dim, width) == layer * layers


@law(args=several(6, small))
def test_branches_hold_their_tokens(args):
    branches, depth, layers, heads, dim, width = args
    layer = kv.kv_cache_memory_per_layer(branches, depth, heads, dim, width)
    assert kv.speculative_branch_memory(branches, depth, layers, heads, dim, width) == layer * layers


@law(args=several(6, small))
def test_beams_hold_their_sequences(args):
    beams, seq, layers, heads, dim, width = args
    layer = kv.kv_cache_memory_per_layer(beams, seq, heads, dim, width)
    assert kv.beam_memory_per_request(beams, seq, layers, heads, dim, width) == layer * layers


# --- kv_cache ---------------------------------------------------------------------------------------------------------


@law(cached=ascending(finite), most=positive)
def test_utilization_is_monotone_and_at_most_1(cached, most):
    low, high = (kv.kv_cache_utilization(x, most) for x in cached)
    assert low <= high <= 1


@law(cached=moderate, most=positive, factor=power_of_two)
def test_utilization_has_no_unit(cached, most, factor):
    assert kv.kv_cache_utilization(cached * factor, most * factor) == kv.kv_cache_utilization(cached, most)


@pytest.mark.parametrize("score", [kv.kv_eviction_score_lru, kv.cache_eviction_lru_score])
@law(last=finite, current=finite)
def test_lru_is_antisymmetric(score, last, current):
    assert score(last, current) == -score(current, last)


@pytest.mark.parametrize("score", [kv.kv_eviction_score_lru, kv.cache_eviction_lru_score])
@law(last=ascending(finite), current=finite)
def test_lru_evicts_the_older_sooner(score, last, current):
    older, newer = last
    assert score(older, current) >= score(newer, current)


@law(last=finite, current=finite)
def test_both_lru_scores_are_one(last, current):
    assert same(kv.kv_eviction_score_lru(last, current), kv.cache_eviction_lru_score(last, current))


@law(attention=finite, recency=finite)
def test_h2o_is_symmetric(attention, recency):
    assert same(kv.kv_eviction_score_h2o(attention, recency), kv.kv_eviction_score_h2o(recency, attention))


@law(a=finite, b=finite, match=finite)
def test_shared_prefix_is_the_least_in_any_order(a, b, match):
    orders = [(a, b, match), (b, match, a), (match, a, b), (b, a, match)]
    assert {kv.radix_cache_shared_prefix_len(*order) for order in orders} == {min(a, b, match)}


@law(a=ascending(finite), b=finite, match=finite)
def test_shared_prefix_is_monotone(a, b, match):
    low, high = (kv.radix_cache_shared_prefix_len(x, b, match) for x in a)
    assert low <= high


@law(code=st.integers(-128, 127), zero_point=st.integers(-128, 127), scale=power_of_two)
def test_quantization_of_a_code_is_exact(code, zero_point, scale):
    assert kv.kv_quantization_error((code - zero_point) * scale, scale, zero_point) == 0


@law(code=st.floats(-128, 127), zero_point=st.integers(-128, 127), scale=st.floats(1e-20, 1e20))
def test_quantization_in_range_errs_by_half_a_scale_at_most(code, zero_point, scale):
    value = (code - zero_point) * scale
    slack = 4 * math.ulp(256 * scale)
    assert kv.kv_quantization_error(value, scale, zero_point) <= scale / 2 + slack


@law(value=ascending(st.floats(128, 1e6)))
def test_quantization_out_of_range_errs_by_the_distance(value):
    near, far = value
    assert kv.kv_quantization_error(far, 1, 0) - kv.kv_quantization_error(near, 1, 0) == (far - 127) - (near - 127)


@law(value=moderate, scale=st.floats(1e-20, 1e20), zero_point=st.integers(-128, 127), factor=power_of_two)
def test_quantization_scales_with_value_and_scale(value, scale, zero_point, factor):
    error = kv.kv_quantization_error(value, scale, zero_point)
    assert kv.kv_quantization_error(value * factor, scale * factor, zero_point) == error * factor


whole = st.integers(0, 2**53)
whole_size = st.integers(1, 2**53)


@pytest.mark.parametrize("blocks", [kv.paged_attention_block_count, kv.chunked_prefill_chunks])
@law(tokens=whole, block=whole_size)
def test_blocks_cover_and_none_is_spare(blocks, tokens, block):
    n = int(blocks(tokens, block))
    assert (n - 1) * block < tokens <= n * block or n == tokens == 0


@pytest.mark.parametrize("blocks", [kv.paged_attention_block_count, kv.chunked_prefill_chunks])
@law(tokens=ascending(whole), block=ascending(whole_size))
def test_blocks_are_monotone(blocks, tokens, block):
    assert blocks(tokens[0], block[1]) <= blocks(tokens[1], block[1]) <= blocks(tokens[1], block[0])


@law(tokens=finite, block=positive)
def test_blocks_and_chunks_are_one_count(tokens, block):
    assert same(kv.paged_attention_block_count(tokens, block), kv.chunked_prefill_chunks(tokens, block))


@law(tokens=count, block=size)
def test_an_appended_token_takes_a_block_only_when_the_last_is_full(tokens, block):
    grown = kv.paged_attention_block_count(kv.incremental_decode_kv_append(tokens), block)
    assert grown - kv.paged_attention_block_count(tokens, block) == (tokens % block == 0)


@law(current=ascending(finite))
def test_append_is_monotone(current):
    assert kv.incremental_decode_kv_append(current[0]) <= kv.incremental_decode_kv_append(current[1])


# --- paged_kv_cache ---------------------------------------------------------------------------------------------------


@law(x=finite, ignored=finite)
def test_pass_throughs_return_their_argument(x, ignored):
    assert same(kv.page_table_lookup(ignored, x), x)
    assert same(kv.top_k_threshold(x), x)
    assert same(kv.token_healing_overlap(ignored, ignored, x), x)


@law(entries=st.lists(count, min_size=1), virtual=count)
def test_a_lookup_reads_the_callers_table(entries, virtual):
    block = virtual % len(entries)
    assert kv.page_table_lookup(block, entries[block]) == kv.page_table_lookup(virtual, entries[block])


@law(args=several(5, st.floats(1e-20, 1e20)), bandwidth=positive, factor=power_of_two)
def test_copy_takes_longer_for_more_bytes_and_a_slower_link(args, bandwidth, factor):
    cost = kv.block_copy_cost(*args, bandwidth)
    assert kv.block_copy_cost(args[0] * factor, *args[1:], bandwidth * factor) == cost
    assert kv.block_copy_cost(*args, bandwidth / 2) == 2 * cost


@law(args=several(5, small), n=size)
def test_each_further_sequence_saves_one_prefix(args, n):
    prefix, layers, heads, dim, width = args
    saved = kv.prefix_sharing_savings(prefix, n + 1, layers, heads, dim, width)
    saved -= kv.prefix_sharing_savings(prefix, n, layers, heads, dim, width)
    assert saved == kv.prefix_cache_hit_bytes(prefix, heads, dim, layers, width)


@law(following=finite, current=finite)
def test_belady_is_the_distance_ahead_or_never(following, current):
    score = kv.cache_eviction_beladys_score(following, current)
    assert score >= 0
    assert score == (1e9 if following < current else kv.cache_eviction_lru_score(current, following))


@law(following=ascending(count), current=count)
def test_belady_evicts_the_later_use_sooner(following, current):
    sooner, later = following
    assume(sooner >= current)
    assert kv.cache_eviction_beladys_score(sooner, current) <= kv.cache_eviction_beladys_score(later, current)


@pytest.mark.parametrize("seconds", [kv.cache_hit_latency_saving, kv.streaming_first_token_latency])
@law(prompt=ascending(finite), tps=ascending(positive))
def test_prefill_takes_longer_for_more_tokens_and_a_lower_rate(seconds, prompt, tps):
    assert seconds(prompt[0], tps[0]) <= seconds(prompt[1], tps[0])
    assert abs(seconds(prompt[0], tps[1])) <= abs(seconds(prompt[0], tps[0]))


@law(prompt=finite, tps=finite)
def test_a_hit_saves_what_prefill_would_take(prompt, tps):
    assert same(kv.cache_hit_latency_saving(prompt, tps), kv.streaming_first_token_latency(prompt, tps))


@law(seq=ascending(st.floats(1, 1e6)), base=st.floats(1, 1e6), alpha=st.floats(0, 8))
def test_ntk_scale_grows_from_1(seq, base, alpha):
    shorter, longer = (kv.dynamic_ntk_rope_scale(x, base, alpha) for x in seq)
    assert longer >= 1
    assert shorter <= longer or close(shorter, longer, 2)


@law(seq=st.floats(1, 1e6), base=st.floats(1, 1e6), alpha=st.floats(-8, 8), factor=power_of_two)
def test_ntk_scale_has_no_unit(seq, base, alpha, factor):
    scale = kv.dynamic_ntk_rope_scale(seq, base, alpha)
    assert kv.dynamic_ntk_rope_scale(seq * factor, base * factor, alpha) == scale


@law(seq=st.floats(1, 1e6), base=st.floats(1, 1e6))
def test_ntk_scale_with_alpha_1_is_the_linear_factor(seq, base):
    assume(seq > base)
    assert close(kv.dynamic_ntk_rope_scale(seq, base, 1), kv.context_extension_factor(base, seq), 2)


@law(original=positive, target=positive, factor=power_of_two)
def test_extension_has_no_unit(original, target, factor):
    ratio = kv.context_extension_factor(original, target)
    assert kv.context_extension_factor(original * factor, target * factor) == ratio
    assert kv.context_extension_factor(original, original) == 1


# --- llm_sampling -----------------------------------------------------------------------------------------------------


@law(logit=finite, temperature=finite)
def test_both_temperatures_are_one(logit, temperature):
    assert same(kv.temperature_scale(logit, temperature), kv.temperature_logit_scale(logit, temperature))


@pytest.mark.parametrize("scale", [kv.temperature_scale, kv.temperature_logit_scale])
@law(logit=ascending(finite), temperature=finite)
def test_temperature_keeps_the_order_and_1_changes_nothing(scale, logit, temperature):
    assert scale(logit[0], temperature) <= scale(logit[1], temperature)
    assert same(scale(logit[0], 1), logit[0])


@law(logit=finite, temperature=finite)
def test_temperature_is_odd(logit, temperature):
    assert same(kv.temperature_scale(-logit, temperature), -kv.temperature_scale(logit, temperature))


@law(logits=st.lists(finite, min_size=1, unique=True), data=st.data())
def test_k_logits_reach_the_top_k_threshold(logits, data):
    k = data.draw(st.integers(1, len(logits)))
    threshold = kv.top_k_threshold(sorted(logits, reverse=True)[k - 1])
    assert sum(logit >= threshold for logit in logits) == k


@law(ignored=finite, cumulative=finite, p=finite)
def test_both_top_p_gates_are_one(ignored, cumulative, p):
    assert kv.top_p_cumulative(ignored, cumulative, p) == kv.top_p_cumulative_accept(cumulative, ignored, p)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)], ids=["top_p_cumulative", "top_p_cumulative_accept"])
@law(ignored=probability, cumulative=ascending(probability), p=ascending(probability))
def test_top_p_admits_less_mass_and_more_with_a_larger_p(order, ignored, cumulative, p):
    gate = kv.top_p_cumulative if order[0] == 0 else kv.top_p_cumulative_accept
    looser = [(cumulative[1], p[0]), (cumulative[0], p[0]), (cumulative[0], p[1])]
    decisions = [gate(*((ignored, mass, limit)[i] for i in order)) for mass, limit in looser]
    assert decisions == sorted(decisions)


@law(max_prob=probability, min_p=probability)
def test_min_p_threshold_is_a_share_of_the_maximum(max_prob, min_p):
    assert kv.min_p_threshold(max_prob, min_p) <= max_prob
    assert kv.min_p_accept(max_prob, max_prob, min_p) == 1


@law(logit=finite, penalty=finite, appeared=flag)
def test_both_repetition_penalties_are_one(logit, penalty, appeared):
    scaled = kv.repetition_penalty_scale(logit, penalty, appeared)
    assert same(scaled, kv.repetition_penalty_logit(logit, penalty, appeared))


@pytest.mark.parametrize("penalize", [kv.repetition_penalty_scale, kv.repetition_penalty_logit])
@law(logit=ascending(finite), penalty=st.floats(1, 1e10))
def test_repetition_penalty_lowers_and_keeps_the_order(penalize, logit, penalty):
    low, high = (penalize(x, penalty, 1) for x in logit)
    assert low <= logit[0]
    assert high <= logit[1]
    assert low <= high


@pytest.mark.parametrize("penalize", [kv.repetition_penalty_scale, kv.repetition_penalty_logit])
@law(logit=moderate, penalty=power_of_two)
def test_repetition_penalty_is_undone_by_its_inverse(penalize, logit, penalty):
    assert penalize(penalize(logit, penalty, 1), 1 / penalty, 1) == logit


@law(logit=finite, occurrences=count, frequency=finite, presence=finite)
def test_frequency_penalty_is_frequency_then_presence(logit, occurrences, frequency, presence):
    # An infinity less an infinity, of terms that overflow, is NaN both ways.
    once = kv.frequency_penalty_logit(logit, frequency, occurrences)
    twice = kv.presence_penalty_logit(once, presence, float(occurrences > 0))
    both = kv.token_frequency_penalty(logit, occurrences, frequency, presence)
    assert same(both, twice) or (math.isnan(both) and math.isnan(twice))


@law(logit=finite, occurrences=ascending(count), frequency=st.floats(0, 1e6), presence=st.floats(0, 1e6))
def test_frequency_penalty_is_antitone_in_the_count(logit, occurrences, frequency, presence):
    few, many = (kv.token_frequency_penalty(logit, n, frequency, presence) for n in occurrences)
    assert many <= few <= logit


@law(score=finite, step=finite)
def test_beam_update_is_commutative_with_identity_0(score, step):
    assert same(kv.beam_score_update(score, step), kv.beam_score_update(step, score))
    assert kv.beam_score_update(score, 0) == score


@law(score=ascending(finite), step=log_probability)
def test_beam_update_never_raises_and_keeps_the_order(score, step):
    low, high = (kv.beam_score_update(x, step) for x in score)
    assert low <= high <= score[1]


@law(total=moderate, length=size, alpha=st.floats(-4, 4), factor=power_of_two)
def test_length_penalty_is_linear_in_the_sum(total, length, alpha, factor):
    score = kv.length_penalty(total, length, alpha)
    assert kv.length_penalty(factor * total, length, alpha) == factor * score
    assert kv.length_penalty(-total, length, alpha) == -score


@law(total=moderate, length=size, alpha=st.floats(-4, 4))
def test_length_penalty_starts_at_1(total, length, alpha):
    assert kv.length_penalty(total, 1, alpha) == total
    assert kv.length_penalty(total, length, 0) == total


@law(total=st.floats(-1e6, -1e-6), length=ascending(size), alpha=st.floats(0, 4))
def test_length_penalty_favours_the_longer(total, length, alpha):
    short, long = (kv.length_penalty(total, n, alpha) for n in length)
    assert short <= long or close(short, long, 3)


@law(total=moderate, sixths=size, alpha=st.floats(-4, 4))
def test_length_penalty_divides_by_a_power(total, sixths, alpha):
    # Where (5 + length)/6 is whole nothing is rounded before the power.
    assert kv.length_penalty(total, 6 * sixths - 5, alpha) == total / kv.pow_approx(sixths, alpha)


@law(base=st.floats(1e-3, 1e3), exponent=st.floats(-20, 20))
def test_power_to_0_and_1_and_its_inverse(base, exponent):
    assert kv.pow_approx(base, 0) == 1
    assert kv.pow_approx(base, 1) == base
    assert close(kv.pow_approx(base, exponent) * kv.pow_approx(base, -exponent), 1, 4)


@law(base=ascending(st.floats(1e-3, 1e3)), exponent=st.floats(0, 20))
def test_power_is_monotone_in_its_base(base, exponent):
    low, high = (kv.pow_approx(x, exponent) for x in base)
    assert low <= high or close(low, high, 1)


@law(base=st.integers(1, 30), exponent=st.integers(0, 10))
def test_power_of_whole_numbers_is_theirs(base, exponent):
    assert close(kv.pow_approx(base, exponent), base**exponent, 1)


@law(log_prob=finite, entropy=finite)
def test_typicality_is_even_and_symmetric(log_prob, entropy):
    score = kv.typical_p_score(log_prob, entropy)
    assert score >= 0
    assert score == kv.typical_p_score(-log_prob, -entropy) == kv.typical_p_score(entropy, log_prob)


@law(log_prob=finite, entropy=finite)
def test_typicality_is_0_only_where_surprise_is_the_entropy(log_prob, entropy):
    assert (kv.typical_p_score(log_prob, entropy) == 0) == (-log_prob == entropy)
    assert kv.typical_p_score(-entropy, entropy) == 0


@law(logits=st.lists(finite, min_size=1))
def test_a_greedy_scan_finds_the_last_maximum(logits):
    best, token = -math.inf, -1.0
    for i, logit in enumerate(logits):
        if kv.greedy_token_id(best, logit, i) >= 0:
            best, token = logit, kv.greedy_token_id(best, logit, i)
    assert token == max(i for i, logit in enumerate(logits) if logit == max(logits))


@law(a=finite, b=finite, token=count)
def test_of_two_logits_greedy_takes_one_or_both_on_a_tie(a, b, token):
    taken = [kv.greedy_token_id(a, b, token), kv.greedy_token_id(b, a, token)]
    assert taken.count(-1) == (a != b)
    assert taken.count(token) == 1 + (a == b)


# --- generation_loop --------------------------------------------------------------------------------------------------


@law(n=st.integers(0, 50), k=st.integers(0, 100))
def test_top_k_accepts_k_ranks(n, k):
    assert sum(kv.top_k_accept(rank, k) for rank in range(1, n + 1)) == min(n, k)


@law(rank=ascending(finite), k=ascending(finite))
def test_top_k_is_antitone_in_rank_and_monotone_in_k(rank, k):
    assert kv.top_k_accept(rank[1], k[0]) <= kv.top_k_accept(rank[0], k[0]) <= kv.top_k_accept(rank[0], k[1])


@law(prob=finite, max_prob=finite, min_p=finite)
def test_min_p_accepts_what_reaches_the_threshold(prob, max_prob, min_p):
    assert kv.min_p_accept(prob, max_prob, min_p) == (prob >= kv.min_p_threshold(max_prob, min_p))


@law(logit=finite, penalty=finite, occurrences=count)
def test_frequency_penalty_logit_is_symmetric_and_nothing_at_0(logit, penalty, occurrences):
    penalized = kv.frequency_penalty_logit(logit, penalty, occurrences)
    assert penalized == kv.frequency_penalty_logit(logit, occurrences, penalty)
    assert kv.frequency_penalty_logit(logit, penalty, 0) == kv.frequency_penalty_logit(logit, 0, occurrences) == logit


@law(logit=finite, penalty=finite)
def test_presence_penalty_is_a_frequency_of_1(logit, penalty):
    assert kv.presence_penalty_logit(logit, penalty, 1) == kv.frequency_penalty_logit(logit, penalty, 1)


@law(logit=finite, penalty=finite, present=st.floats(0.5, 1e300))
def test_presence_penalty_asks_only_whether(logit, penalty, present):
    assert same(kv.presence_penalty_logit(logit, penalty, present), kv.presence_penalty_logit(logit, penalty, 1))
    assert same(kv.presence_penalty_logit(logit, penalty, 0), logit)


@law(log_prob=finite, entropy=finite, tau=finite)
def test_typical_sampling_accepts_scores_up_to_tau(log_prob, entropy, tau):
    assert kv.typical_sampling_accept(log_prob, entropy, tau) == (kv.typical_p_score(log_prob, entropy) <= tau)


@law(log_prob=finite, entropy=finite, tau=ascending(finite))
def test_typical_sampling_is_monotone_in_tau(log_prob, entropy, tau):
    narrow, wide = (kv.typical_sampling_accept(log_prob, entropy, x) for x in tau)
    assert narrow <= wide


@law(prob=ascending(probability), entropy=st.floats(0, 20), eta=ascending(probability))
def test_eta_sampling_is_monotone(prob, entropy, eta):
    gate = kv.eta_sampling_accept
    assert gate(prob[0], entropy, eta[1]) <= gate(prob[0], entropy, eta[0]) <= gate(prob[1], entropy, eta[0])


@law(prob=probability, entropy=st.floats(0, 20), eta=probability)
def test_eta_sampling_without_entropy_compares_and_entropy_admits_more(prob, entropy, eta):
    assert kv.eta_sampling_accept(prob, 0, eta) == (prob >= eta)
    assert kv.eta_sampling_accept(prob, entropy, eta) >= kv.eta_sampling_accept(prob, 0, eta)


@law(prob=finite, threshold=finite)
def test_eos_is_a_total_order(prob, threshold):
    assert kv.eos_stop_score(prob, threshold) + kv.eos_stop_score(threshold, prob) == 1 + (prob == threshold)


@law(prob=ascending(finite), threshold=ascending(finite))
def test_eos_is_monotone(prob, threshold):
    gate = kv.eos_stop_score
    assert gate(prob[0], threshold[1]) <= gate(prob[0], threshold[0]) <= gate(prob[1], threshold[0])


# --- speculative_decoding ---------------------------------------------------------------------------------------------


@law(target=probability, draft=probability)
def test_acceptance_balances_target_and_draft(target, draft):
    # The tokens that pass from draft to target, and back, weigh min(p, q) each.
    assume(min(target, draft) > 1e-300)
    forth = draft * kv.speculative_accept_prob(target, draft)
    back = target * kv.speculative_accept_prob(draft, target)
    assert close(forth, min(target, draft), 1)
    assert close(forth, back, 1)


@law(target=ascending(probability), draft=ascending(probability))
def test_acceptance_is_monotone_in_target_and_antitone_in_draft(target, draft):
    accept = kv.speculative_accept_prob
    assert 0 <= accept(target[0], draft[0]) <= accept(target[1], draft[0]) <= 1
    assert draft[0] == 0 or accept(target[0], draft[1]) <= accept(target[0], draft[0])


@law(target=finite, medusa=finite, head=count)
def test_a_medusa_head_is_a_draft(target, medusa, head):
    accepted = kv.medusa_head_acceptance(medusa, target, head)
    assert same(accepted, kv.speculative_accept_prob(target, medusa))


@law(medusa=ascending(probability), target=probability, head=count)
def test_medusa_is_antitone_in_the_head(medusa, target, head):
    accept = kv.medusa_head_acceptance
    assert medusa[0] == 0 or accept(medusa[1], target, head) <= accept(medusa[0], target, head + 1)


@law(alpha=ascending(probability), depth=st.integers(0, 100))
def test_expected_tokens_are_monotone_between_1_and_all(alpha, depth):
    low, high = (kv.speculative_expected_tokens(x, depth) for x in alpha)
    assert low <= high or close(low, high, 4)
    assert low >= 1 - 1e-15
    assert high <= (depth + 1) * (1 + 1e-15)


@law(alpha=probability, depth=st.integers(0, 100))
def test_expected_tokens_recur(alpha, depth):
    shorter, longer = (kv.speculative_expected_tokens(alpha, n) for n in (depth, depth + 1))
    assert close(longer, 1 + alpha * shorter, 8)


@law(alpha=probability, depth=st.integers(0, 30))
def test_expected_tokens_are_a_sum_of_powers(alpha, depth):
    assert close(kv.speculative_expected_tokens(alpha, depth), math.fsum(alpha**i for i in range(depth + 1)), 8)


@law(tokens=positive, target=positive, draft=positive, depth=count, factor=power_of_two)
def test_speedup_has_no_unit_of_time(tokens, target, draft, depth, factor):
    speedup = kv.draft_model_speedup(tokens, target, draft, depth)
    assert kv.draft_model_speedup(tokens, target * factor, draft * factor, depth) == speedup


@law(tokens=ascending(positive), target=positive, draft=ascending(positive), depth=count)
def test_speedup_is_monotone_in_tokens_and_antitone_in_the_draft(tokens, target, draft, depth):
    speedup = kv.draft_model_speedup
    least = speedup(tokens[0], target, draft[1], depth)
    assert least <= speedup(tokens[0], target, draft[0], depth) <= speedup(tokens[1], target, draft[0], depth)


@law(tokens=size, target=st.integers(1, 1000), draft=positive, depth=count)
def test_speedup_of_a_free_draft_is_its_tokens(tokens, target, draft, depth):
    assert kv.draft_model_speedup(tokens, target, 0, depth) == tokens
    assert kv.draft_model_speedup(tokens, target, draft, 0) == tokens


@law(logits=st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), token=count)
def test_a_masked_token_never_beats_a_valid_one(logits, token):
    valid, invalid = logits[0] + kv.json_grammar_logit_mask(token, 1), logits[1] + kv.json_grammar_logit_mask(token, 0)
    assert invalid < valid == logits[0]


@law(token=finite, valid=ascending(finite))
def test_the_mask_is_monotone_whatever_the_token(token, valid):
    low, high = (kv.json_grammar_logit_mask(token, x) for x in valid)
    assert low <= high
    assert {low, high} <= {0.0, -1e9}
    assert high == kv.json_grammar_logit_mask(0, valid[1])


@law(score=finite, length=positive, alpha=st.floats(-4, 4))
def test_constrained_beam_divides_by_a_power(score, length, alpha):
    assert kv.constrained_beam_score(score, 1, length, alpha) == score / kv.pow_approx(length, alpha)


@law(score=finite, length=positive, alpha=finite)
def test_constrained_beam_of_length_1_or_alpha_0_is_the_score(score, length, alpha):
    assert kv.constrained_beam_score(score, 1, 1, alpha) == kv.constrained_beam_score(score, 1, length, 0) == score


@law(score=st.floats(-1e6, 0), length=size, alpha=st.floats(0, 2))
def test_constrained_beam_ranks_an_invalid_one_last(score, length, alpha):
    invalid, valid = (kv.constrained_beam_score(score, flag, length, alpha) for flag in (0, 1))
    assert invalid < valid


@law(validity=st.integers(0, 1000), most=size, data=st.data())
def test_repair_credit_used_and_left_make_the_whole(validity, most, data):
    attempts = data.draw(st.integers(0, most))
    score = kv.structured_repair_score
    assert score(validity * most, attempts, most) + score(validity * most, most - attempts, most) == validity * most
    assert score(validity, most, most) == 0


@law(validity=probability, attempts=ascending(st.floats(0, 1e6)), most=st.floats(1, 1e6))
def test_repair_is_antitone_in_attempts(validity, attempts, most):
    few, many = (kv.structured_repair_score(validity, n, most) for n in attempts)
    assert many <= few


@law(expert=moderate, amateur=moderate, alpha=st.floats(-4, 4))
def test_contrast_is_odd_and_alpha_0_is_the_expert(expert, amateur, alpha):
    score = kv.contrastive_decode_score(expert, amateur, alpha)
    assert kv.contrastive_decode_score(-expert, -amateur, alpha) == -score
    assert kv.contrastive_decode_score(expert, amateur, 0) == expert


@law(expert=ascending(finite), amateur=log_probability, alpha=ascending(st.floats(0, 4)))
def test_contrast_is_monotone_in_the_expert_and_in_the_contrast(expert, amateur, alpha):
    score = kv.contrastive_decode_score
    lowest = score(expert[0], amateur, alpha[0])
    assert lowest <= score(expert[1], amateur, alpha[0]) <= score(expert[1], amateur, alpha[1])


@law(last=count, first=count, overlap=ascending(count))
def test_healing_counts_the_callers_overlap(last, first, overlap):
    short, long = (kv.token_healing_overlap(last, first, chars) for chars in overlap)
    assert long - short == overlap[1] - overlap[0]
    assert short == kv.token_healing_overlap(first, last, overlap[0])


@law(token=st.integers(0, 2**40), green=st.integers(0, 2**40), bias=positive)
def test_of_two_neighbours_one_is_green(token, green, bias):
    first, second = (kv.watermark_green_list_bias(x, green, bias) for x in (token, token + 1))
    assert sorted([first, second]) == [0, bias]
    assert first == kv.watermark_green_list_bias(token + 2, green, bias)


@law(token=finite, green=finite, bias=finite)
def test_token_and_hash_are_interchangeable(token, green, bias):
    assert kv.watermark_green_list_bias(token, green, bias) == kv.watermark_green_list_bias(green, token, bias)


# --- continuous_batching ----------------------------------------------------------------------------------------------


@law(request_=ascending(finite), free=ascending(st.floats(0, 1e300)), margin=ascending(probability))
def test_admission_is_monotone(request_, free, margin):
    gate = kv.admission_control_accept
    strictest = gate(request_[1], free[0], margin[1])
    assert strictest <= gate(request_[0], free[0], margin[1]) <= gate(request_[0], free[1], margin[1])
    assert gate(request_[0], free[1], margin[1]) <= gate(request_[0], free[1], margin[0])


@law(request_=finite, free=finite)
def test_admission_without_a_margin_compares(request_, free):
    assert kv.admission_control_accept(request_, free, 0) == (request_ <= free)
    assert kv.admission_control_accept(request_, free, 1) == (request_ <= 0)


@law(free=st.integers(0, 2**53 - 1), each=whole_size)
def test_the_batch_fits_and_one_more_does_not(free, each):
    n = int(kv.iteration_level_batch_size(free, each))
    assert n * each <= free < (n + 1) * each


@law(free=finite, each=positive)
def test_the_batch_is_whole_and_within_one_of_the_quotient(free, each):
    n = kv.iteration_level_batch_size(free, each)
    assert n == math.trunc(n) if math.isfinite(n) else True
    assert abs(n) <= abs(free / each)
    assert kv.iteration_level_batch_size(-free, each) == -n


@law(priority=ascending(positive), generated=ascending(count), tokens=st.floats(0, 1e60))
def test_preemption_protects_priority_and_sunk_cost(priority, generated, tokens):
    score = kv.preemption_score
    safest = score(priority[1], generated[1], tokens)
    assert safest <= score(priority[0], generated[1], tokens) <= score(priority[0], generated[0], tokens)


@law(priority=positive, generated=count, tokens=moderate, factor=power_of_two)
def test_preemption_is_linear_in_tokens(priority, generated, tokens, factor):
    score = kv.preemption_score(priority, generated, tokens)
    assert kv.preemption_score(priority, generated, factor * tokens) == factor * score
    assert kv.preemption_score(1, 0, tokens) == tokens


@law(batch=moderate, latency=positive, factor=power_of_two)
def test_throughput_scales_with_batch_and_inverse_latency(batch, latency, factor):
    rate = kv.decode_throughput_tokens(batch, latency)
    assert kv.decode_throughput_tokens(batch * factor, latency) == factor * rate
    assert kv.decode_throughput_tokens(batch, latency / factor) == factor * rate


@law(batch=ascending(st.floats(0, 1e300)), latency=ascending(positive))
def test_throughput_is_monotone(batch, latency):
    rate = kv.decode_throughput_tokens
    assert rate(batch[0], latency[1]) <= rate(batch[1], latency[1]) <= rate(batch[1], latency[0])


@law(longest=moderate, average=positive, factor=power_of_two)
def test_ratios_have_no_unit(longest, average, factor):
    for ratio in (kv.head_of_line_blocking_score, kv.batching_efficiency, kv.sequence_completion_fraction):
        assert ratio(longest * factor, average * factor) == ratio(longest, average)


@law(numerator=finite, denominator=finite)
def test_clamped_ratios_are_one_and_the_fraction_below_1(numerator, denominator):
    share = kv.batching_efficiency(numerator, denominator)
    assert same(share, kv.kv_cache_utilization(numerator, denominator))
    assert share == min(1, kv.sequence_completion_fraction(numerator, denominator))


@law(longest=finite, average=positive)
def test_blocking_is_the_same_quotient_as_completion(longest, average):
    assert same(kv.head_of_line_blocking_score(longest, average), kv.sequence_completion_fraction(longest, average))
    assert (kv.head_of_line_blocking_score(longest, average) >= 1) >= (longest >= average)


# --- Every formula has its laws ---------------------------------------------------------------------------------------


def formulas_in(node):
    """Yield the formulas that a test names, those of the shared list of products too."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "kv":
            yield part.attr
        elif isinstance(part, ast.Name) and part.id == "every_product":
            yield from (formula.__name__ for formula, _ in PRODUCTS)


def test_every_formula_has_two_laws_or_more():
    laws = Counter()
    for path in Path(__file__).parent.glob("test_laws*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                laws.update(set(formulas_in(node)))
    assert {name: laws[name] for _, name in FORMULAS if laws[name] < 2} == {}
