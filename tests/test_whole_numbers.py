# Whole numbers are exact: every formula with a whole-number meaning against Python's int arithmetic, with no tolerance,
# from everyday sizes to the last ones whose result fits in 2**53.
import math
from fractions import Fraction
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvformulas
from conftest import FORMULAS

LARGEST = 2**53
SMALL = st.integers(0, 1000)
WHOLE = st.one_of(SMALL, st.integers(0, LARGEST))
POSITIVE = st.one_of(st.integers(1, 1000), st.integers(1, LARGEST))
SIGNED = st.one_of(st.integers(-1000, 1000), st.integers(-(LARGEST // 4), LARGEST // 4))
HALF = st.one_of(SMALL, st.integers(0, LARGEST // 4))  # sums of three fit
FLAG = st.integers(0, 1)


@st.composite
def factors(draw, count, bits=52):
    """Draw whole numbers whose product is below 2**bits: the bits are shared out at random."""
    cuts = sorted(draw(st.lists(st.integers(0, bits), min_size=count - 1, max_size=count - 1)))
    shares = [end - start for start, end in zip([0, *cuts], [*cuts, bits], strict=True)]
    return tuple(draw(st.integers(0, 2**share - 1)) if share else 1 for share in shares)


@st.composite
def multiples(draw, signed=False):
    """Draw (q * d, d) with q * d below 2**53: a division that comes out whole."""
    quotient, divisor = draw(factors(2, 53))
    return (-quotient if signed and draw(st.booleans()) else quotient) * max(divisor, 1), max(divisor, 1)


def ceiling(tokens, size):
    return -(-tokens // size)


def quotient(numerator, denominator):
    assert numerator % denominator == 0
    return numerator // denominator


def quantization(value, scale, zero_point):
    code = min(max(round(Fraction(value, scale)) + zero_point, -128), 127)
    return abs(value - (code - zero_point) * scale)


def swap(pairs):
    return pairs.map(lambda pair: (pair[1], pair[0]))


def sampling(logit, penalty, flag):
    if not flag:
        return logit
    return quotient(logit, penalty) if logit > 0 else logit * penalty


SIGNED_PRODUCT = st.tuples(factors(2, 51), st.sampled_from([1, -1])).map(lambda x: (x[0][0], x[0][1] * x[1]))
PENALISED = st.one_of(
    st.tuples(multiples(), FLAG).map(lambda x: (*x[0], x[1])),
    st.tuples(factors(2), FLAG).map(lambda x: (-x[0][0], max(x[0][1], 1), x[1])),
)
POWER = st.tuples(st.integers(1, 40), st.integers(0, 9))

# Each formula: the arguments to draw, and its meaning in int arithmetic.
CASES = {
    "kv_cache_memory_per_layer": (factors(5), lambda *a: 2 * prod(a)),
    "kv_cache_total_memory": (factors(2, 53), lambda *a: prod(a)),
    "kv_cache_utilization": (multiples(signed=True), lambda used, size: min(1, quotient(used, size))),
    "kv_eviction_score_lru": (st.tuples(WHOLE, WHOLE), lambda last, now: now - last),
    "kv_eviction_score_h2o": (factors(2, 53), lambda *a: prod(a)),
    "radix_cache_shared_prefix_len": (st.tuples(WHOLE, WHOLE, WHOLE), lambda *a: min(a)),
    "prefix_cache_hit_bytes": (factors(5), lambda *a: 2 * prod(a)),
    "kv_quantization_error": (
        st.tuples(st.integers(-(2**50), 2**50), st.integers(1, 2**42), st.integers(-128, 127)),
        quantization,
    ),
    "paged_attention_block_count": (st.tuples(WHOLE, POSITIVE), ceiling),
    "incremental_decode_kv_append": (st.tuples(st.integers(0, LARGEST - 1)), lambda length: length + 1),
    "page_table_lookup": (st.tuples(WHOLE, WHOLE), lambda _, entry: entry),
    "cache_compaction_gain": (factors(6), lambda *a: prod(a)),
    "block_copy_cost": (
        st.tuples(st.integers(1, 100), factors(4, 24)).map(lambda x: (500_000 * x[0], *x[1], x[0])),
        lambda *a: quotient(2 * prod(a[:-1]), 10**6 * a[-1]),
    ),
    "prefix_sharing_savings": (
        factors(6).map(lambda x: (x[0], x[1] + 1, *x[2:])),
        lambda prefix, n, *sizes: (n - 1) * 2 * prefix * prod(sizes),
    ),
    "speculative_branch_memory": (factors(6), lambda *a: 2 * prod(a)),
    "cache_eviction_lru_score": (st.tuples(WHOLE, WHOLE), lambda last, now: now - last),
    "cache_eviction_beladys_score": (
        st.tuples(WHOLE, WHOLE),
        lambda next_, now: next_ - now if next_ >= now else 10**9,
    ),
    "cache_hit_latency_saving": (multiples(), quotient),
    "dynamic_ntk_rope_scale": (
        POWER.flatmap(lambda p: st.tuples(st.just(p), st.integers(1, 2**40))).map(
            lambda x: (x[0][0] * x[1], x[1], x[0][1])
        ),
        lambda length, base, alpha: (length // base) ** alpha,
    ),
    "context_extension_factor": (swap(multiples()), lambda original, target: quotient(target, original)),
    "temperature_scale": (multiples(signed=True), quotient),
    "top_k_threshold": (st.tuples(SIGNED), lambda logit: logit),
    "top_p_cumulative": (st.tuples(WHOLE, WHOLE, WHOLE), lambda _, so_far, p: so_far < p),
    "min_p_threshold": (factors(2, 53), lambda *a: prod(a)),
    "repetition_penalty_scale": (PENALISED, sampling),
    "token_frequency_penalty": (
        st.tuples(SIGNED, SIGNED_PRODUCT, SIGNED).map(lambda x: (x[0], *x[1], x[2])),
        lambda logit, count, frequency, presence: logit - count * frequency - (presence if count > 0 else 0),
    ),
    "beam_score_update": (st.tuples(SIGNED, SIGNED), lambda *a: sum(a)),
    "length_penalty": (
        POWER.flatmap(lambda p: st.tuples(st.just(p), st.integers(-1000, 1000))).map(
            lambda x: (x[1] * x[0][0] ** min(x[0][1], 7), 6 * x[0][0] - 5, min(x[0][1], 7))
        ),
        lambda score, length, alpha: quotient(score, ((5 + length) // 6) ** alpha),
    ),
    "pow_approx": (POWER, lambda base, exponent: base**exponent),
    "typical_p_score": (st.tuples(SIGNED, SIGNED), lambda *a: abs(sum(a))),
    "greedy_token_id": (st.tuples(SIGNED, SIGNED, WHOLE), lambda best, logit, token: token if logit >= best else -1),
    "temperature_logit_scale": (multiples(signed=True), quotient),
    "top_k_accept": (st.tuples(WHOLE, WHOLE), lambda rank, k: rank <= k),
    "top_p_cumulative_accept": (st.tuples(WHOLE, WHOLE, WHOLE), lambda total, _, p: total < p),
    "min_p_accept": (
        st.tuples(factors(2, 53), st.integers(-1, 1)).map(lambda x: (prod(x[0]) + x[1], *x[0])),
        lambda prob, largest, min_p: prob >= largest * min_p,
    ),
    "repetition_penalty_logit": (PENALISED, sampling),
    "frequency_penalty_logit": (
        st.tuples(SIGNED, SIGNED_PRODUCT).map(lambda x: (x[0], *x[1])),
        lambda logit, penalty, count: logit - penalty * count,
    ),
    "presence_penalty_logit": (st.tuples(SIGNED, SIGNED, FLAG), lambda logit, penalty, flag: logit - penalty * flag),
    "typical_sampling_accept": (
        st.tuples(SIGNED, SIGNED, WHOLE),
        lambda prob, entropy, tau: abs(prob + entropy) <= tau,
    ),
    "eos_stop_score": (st.tuples(WHOLE, WHOLE), lambda prob, threshold: prob >= threshold),
    "speculative_accept_prob": (multiples(), lambda target, draft: min(1, quotient(target, draft))),
    "speculative_expected_tokens": (
        st.tuples(st.integers(0, 3), st.integers(0, LARGEST - 1)),
        lambda rate, depth: depth + 1 if rate else 1,
    ),
    # The step takes `total` ms, of which the drafts take all but `target`, and the tokens are a multiple of it.
    "draft_model_speedup": (
        st.tuples(st.integers(1, 2**16), factors(2, 16), st.integers(0, 2**16)).map(
            lambda x: (x[2] * (x[0] + prod(x[1])), x[0], *x[1])
        ),
        lambda tokens, target, draft, depth: quotient(tokens * target, target + draft * depth),
    ),
    "medusa_head_acceptance": (
        st.tuples(multiples(), WHOLE).map(lambda x: (x[0][1], x[0][0], x[1])),
        lambda medusa, target, _: min(1, quotient(target, medusa)),
    ),
    "json_grammar_logit_mask": (st.tuples(WHOLE, FLAG), lambda _, valid: 0 if valid else -(10**9)),
    "constrained_beam_score": (
        st.tuples(POWER, st.integers(-1000, 1000)).map(
            lambda x: (x[1] * x[0][0] ** min(x[0][1], 7), 1, x[0][0], min(x[0][1], 7))
        ),
        lambda score, _, length, alpha: quotient(score, length**alpha),
    ),
    "structured_repair_score": (
        st.tuples(factors(2, 26), st.integers(-(2**26), 2**26)).map(
            lambda x: (x[0][0] * max(x[0][1], 1), max(x[0][1], 1) - x[1], max(x[0][1], 1))
        ),
        lambda validity, attempts, most: quotient(validity * (most - attempts), most),
    ),
    "contrastive_decode_score": (
        st.tuples(SIGNED, SIGNED_PRODUCT).map(lambda x: (x[0], *x[1])),
        lambda expert, amateur, alpha: expert - alpha * amateur,
    ),
    "token_healing_overlap": (st.tuples(WHOLE, WHOLE, SMALL), lambda _before, _after, overlap: overlap),
    "watermark_green_list_bias": (
        st.tuples(SIGNED, SIGNED, SIGNED),
        lambda token, secret, bias: bias if (token + secret) % 2 == 0 else 0,
    ),
    "admission_control_accept": (
        st.tuples(WHOLE, st.integers(-1, 1), FLAG).map(lambda x: (max(0, min(x[0] + x[1], LARGEST)), x[0], x[2])),
        lambda request, free, margin: request <= free * (1 - margin),
    ),
    "iteration_level_batch_size": (st.tuples(WHOLE, POSITIVE), lambda free, each: free // each),
    "preemption_score": (
        st.tuples(factors(3), st.booleans()).map(
            lambda x: (max(x[0][0], 1), x[0][1], x[0][2] * max(x[0][0], 1) * (x[0][1] + 1))
        ),
        lambda priority, generated, cached: quotient(cached, priority * (generated + 1)),
    ),
    "chunked_prefill_chunks": (st.tuples(WHOLE, POSITIVE), ceiling),
    "decode_throughput_tokens": (
        factors(2, 43).map(lambda x: (x[0] * max(x[1], 1), max(x[1], 1))),
        lambda batch, latency: quotient(batch * 1000, latency),
    ),
    "streaming_first_token_latency": (multiples(), quotient),
    "head_of_line_blocking_score": (multiples(), quotient),
    "batching_efficiency": (multiples(signed=True), lambda actual, most: min(1, quotient(actual, most))),
    "sequence_completion_fraction": (multiples(signed=True), quotient),
    "beam_memory_per_request": (factors(6), lambda *a: 2 * prod(a)),
    "attention_kv_bytes_per_token": (
        factors(4).flatmap(lambda x: st.integers(0, x[2]).map(lambda value: (*x[:2], x[2] - value, value, x[3]))),
        lambda layers, heads, key, value, width: layers * heads * (key + value) * width,
    ),
    "mla_kv_bytes_per_token": (
        factors(3).flatmap(lambda x: st.integers(0, x[1]).map(lambda rope: (x[0], x[1] - rope, rope, x[2]))),
        lambda layers, rank, rope, width: layers * (rank + rope) * width,
    ),
    "sliding_window_tokens": (st.tuples(WHOLE, WHOLE), lambda seq, window: min(seq, window) if window else seq),
    "chunked_attention_tokens": (
        st.tuples(WHOLE, WHOLE),
        lambda seq, chunk: (seq - 1) % chunk + 1 if seq and chunk else seq,
    ),
    "recurrent_state_bytes": (factors(5), lambda *a: prod(a)),
    "conv_state_bytes": (factors(4), lambda *a: prod(a)),
    # Bits that fill whole bytes.
    "quantized_head_bytes": (
        st.tuples(factors(2, 40), st.integers(0, 2**20), st.integers(0, 500)).map(
            lambda x: (8 * x[0][0], x[0][1], *x[1:])
        ),
        lambda dim, bits, group, scale: dim * bits // 8 + (ceiling(dim, group) if group else 1) * scale,
    ),
    "kv_heads_per_rank": (
        st.tuples(WHOLE, WHOLE),
        lambda heads, ranks: max(1, ceiling(heads, ranks)) if ranks else heads,
    ),
    "sliding_window_blocks": (
        st.tuples(WHOLE, POSITIVE, WHOLE, POSITIVE),
        lambda seq, window, batched, block: ceiling(min(window - 1 + batched, seq), block) + 1,
    ),
    "block_waste_tokens": (st.tuples(WHOLE, POSITIVE), lambda seq, block: -seq % block),
    "max_concurrency": (multiples(), quotient),
    "watermark_reserved_blocks": (st.tuples(WHOLE, FLAG), lambda total, watermark: total * watermark),
    "watermark_admission_accept": (
        st.tuples(HALF, HALF, HALF, FLAG, st.integers(-1, 1)).map(
            lambda x: (x[0], x[0] + x[1] + x[2] * x[3] + x[4], x[1], x[2], x[3])
        ),
        lambda needed, free, reserved, total, watermark: needed + total * watermark <= free - reserved,
    ),
    "new_blocks_needed": (
        st.tuples(HALF, HALF, HALF, WHOLE, POSITIVE, HALF, HALF),
        lambda computed, new, lookahead, longest, block, held, cached: max(
            0, ceiling(min(computed + new + lookahead, longest), block) - held - cached
        ),
    ),
    "usable_prefix_hit_tokens": (
        st.tuples(POSITIVE, WHOLE, POSITIVE),
        lambda prompt, cached, block: min(cached, prompt - 1) // block * block,
    ),
    "decode_growth_reserve": (
        st.tuples(factors(2, 51), HALF, WHOLE).map(lambda x: (x[0][0] + x[1], x[1], x[2], x[0][1])),
        lambda largest, generated, clip, ratio: min(largest - generated, clip) * ratio,
    ),
    "orca_admission_accept": (
        st.tuples(HALF, HALF, st.integers(-1, 1)).map(lambda x: (x[0], x[1], x[0] + x[1] + x[2])),
        lambda reserved, largest, slots: reserved + largest <= slots,
    ),
    "prefill_step_tokens": (
        st.tuples(WHOLE, WHOLE, WHOLE),
        lambda remaining, budget, threshold: min(remaining, budget, threshold or budget),
    ),
    "aligned_chunk_tokens": (
        st.tuples(WHOLE, WHOLE, POSITIVE),
        lambda remaining, cap, unit: remaining if remaining <= cap else cap // unit * unit,
    ),
    "uncached_prefill_chunks": (
        st.tuples(WHOLE, WHOLE, POSITIVE),
        lambda prompt, cached, chunk: ceiling(prompt - cached, chunk),
    ),
    "response_ratio": (multiples(), lambda waited, uncached: 1 + quotient(waited, uncached)),
    "time_to_first_token": (
        st.tuples(HALF, HALF, multiples()).map(lambda x: (x[0], x[1], *x[2])),
        lambda queue, transfer, uncached, tps: queue + transfer + quotient(uncached, tps),
    ),
    "time_per_output_token": (
        st.tuples(factors(2, 51), HALF).map(lambda x: (x[0][0] * max(x[0][1], 1) + x[1], x[1], max(x[0][1], 1) + 1)),
        lambda total, first, tokens: quotient(total - first, tokens - 1),
    ),
    "concurrency": (factors(2, 53), lambda *a: prod(a)),
    "mean_acceptance_length": (multiples(), lambda accepted, steps: 1 + quotient(accepted, steps)),
    "expected_accepted_tokens": (st.tuples(st.integers(-1, 3), WHOLE), lambda rate, depth: depth if rate > 0 else 0),
    # None of the draft, or all of it and more.
    "acceptance_rate_from_counts": (
        st.tuples(st.integers(0, 3), factors(2, 50)).map(lambda x: (x[0] * prod(x[1]), x[1][0], x[1][1])),
        lambda accepted, *_: int(accepted > 0),
    ),
    "speculative_walltime_speedup": (
        st.tuples(FLAG, st.integers(0, LARGEST - 1), FLAG).map(lambda x: (x[0], x[1], x[0] * x[2])),
        lambda rate, depth, cost: depth + 1 if rate > cost else 1,
    ),
    "speculative_operations_factor": (
        st.tuples(FLAG, SMALL, st.integers(0, 10**9)).map(lambda x: (x[0], x[1], x[2] * (x[1] + 1))),
        lambda rate, depth, operations: quotient(depth * operations + depth + 1, depth + 1 if rate else 1),
    ),
    "break_even_acceptance": (st.tuples(SIGNED, SIGNED), lambda _, cost: int(cost >= 1)),
    "best_speculation_depth": (
        st.tuples(st.integers(-1, 3), st.integers(-2, 3), WHOLE),
        lambda rate, cost, most: most if rate >= 1 and cost <= 0 else 0,
    ),
    "residual_weight": (st.tuples(SIGNED, SIGNED), lambda target, draft: max(0, target - draft)),
    "medusa_typical_threshold": (
        st.tuples(SIGNED, SIGNED, st.just(0)),
        lambda epsilon, delta, _: min(epsilon, delta),
    ),
    "eta_cutoff": (st.integers(0, 2**26).map(lambda root: (root**2, 0)), lambda epsilon, _: math.isqrt(epsilon)),
    "epsilon_sampling_accept": (st.tuples(WHOLE, WHOLE), lambda prob, epsilon: prob >= epsilon),
    "length_normalized_score": (
        st.tuples(POWER, st.integers(-1000, 1000)).map(
            lambda x: (x[1] * x[0][0] ** min(x[0][1], 7), x[0][0], min(x[0][1], 7))
        ),
        lambda score, length, alpha: quotient(score, length**alpha),
    ),
    "contrastive_plausible_accept": (
        st.tuples(factors(2, 53), st.integers(-1, 1)).map(lambda x: (prod(x[0]) + x[1], *x[0])),
        lambda prob, largest, alpha: prob >= alpha * largest,
    ),
    "watermark_green_list_size": (SIGNED_PRODUCT, lambda *a: prod(a)),
    "watermark_z_score": (st.tuples(WHOLE, WHOLE, FLAG), lambda *_: 0),
    "top_n_sigma_accept": (
        st.tuples(SIGNED, factors(2, 50), st.integers(-1, 1)).map(lambda x: (x[0] - prod(x[1]) + x[2], x[0], *x[1])),
        lambda logit, most, sigma, n: logit >= most - n * sigma,
    ),
    "dynamic_temperature": (
        st.tuples(POWER, st.integers(1, 2**40), st.integers(-1000, 1000), st.integers(-1000, 1000)).map(
            lambda x: (x[0][0] * x[1], x[1], x[2], x[3], min(x[0][1], 7))
        ),
        lambda entropy, most, low, high, exponent: low + (high - low) * (entropy // most) ** exponent,
    ),
    "mirostat_mu_update": (
        st.tuples(SIGNED, SIGNED_PRODUCT, SIGNED).map(lambda x: (x[0], x[1][0], x[1][1] + x[2], x[2])),
        lambda mu, rate, surprise, target: mu - rate * (surprise - target),
    ),
    # Pair -n of two dimensions turns by base ** n.
    "rope_inverse_frequency": (POWER.map(lambda x: (x[0], -x[1], 2)), lambda base, pair, _: base**-pair),
    # The power is a cube for three dimensions, a square for four.
    "ntk_rope_base": (
        st.tuples(SMALL, SMALL, st.integers(3, 4)).map(lambda x: (x[0], max(x[1], 1), x[2])),
        lambda base, alpha, dim: base * alpha ** (3 if dim == 3 else 2),
    ),
    "dynamic_ntk_rope_base": (
        st.tuples(SMALL, SMALL, SMALL, st.integers(1, 2**40)).map(
            lambda x: (x[0], x[1], (1 + x[2]) * x[3], x[3], 4),
        ),
        lambda base, factor, length, most, _: base * (1 + factor * (length // most - 1)) ** 2,
    ),
    "llama3_rope_frequency": (
        st.tuples(multiples(), FLAG).map(lambda x: (*x[0], 1, 4, 100 * x[1])),
        lambda frequency, factor, _low, _high, most: (
            frequency if most * frequency > 25 else quotient(frequency, factor)
        ),
    ),
    "yarn_ramp": (
        st.tuples(SIGNED, SIGNED, FLAG).map(lambda x: (x[0], x[1], x[1] + x[2])),
        lambda pair, low, _: pair > low,
    ),
}
# No whole number comes of e to a power, or of a logarithm.
WITHOUT = {
    "eta_sampling_accept",
    "gumbel_max_score",
    "longrope_attention_factor",
    "yarn_attention_factor",
    "yarn_correction_dim",
}


@pytest.mark.parametrize("formula", CASES)
def test_whole_numbers_are_exact(formula):
    arguments, meaning = CASES[formula]
    wrapper = getattr(kvformulas, formula)

    @given(arguments)
    def check(args):
        expected = meaning(*args)
        if abs(expected) > LARGEST:
            assert abs(wrapper(*args) - expected) <= expected // LARGEST
        else:
            assert wrapper(*args) == expected

    check()


def test_no_formula_with_a_whole_number_meaning_is_left_out():
    assert set(CASES) | WITHOUT == {name for _, name in FORMULAS}
