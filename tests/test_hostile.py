# Every formula at hostile doubles (hostile.py). What is expected is stated here anew, from the formulas as the
# documentation writes them and in arrays of IEEE doubles: the values, the guards, the arguments that are not read.
# Where such a plain evaluation is no judge, because it rounds, overflows or underflows on its way, the oracle is.
# ruff: noqa: ARG001, ARG005 (the tables name every argument of a formula, read or not; a formula comes with its topic)
import math

import numpy as np
import pytest

import hostile
import kvformulas
import oracle
from build_ext import build
from conftest import CONTRACT, FORMULAS
from oracle import comparison
from ulp import budget

ARITY = {name: len(CONTRACT[topic][name]) for topic, name in FORMULAS}
TOLERANCE = 4  # ULP between two evaluations of one formula in doubles; beyond it the oracle decides
SAMPLE = 300  # cases a formula that go to the oracle in any event


class Steps:
    """An array of doubles that remembers where a step of its computation overflowed or underflowed."""

    def __init__(self, values, rough=False):
        self.values, self.rough = np.asarray(values, dtype=float), np.broadcast_to(rough, np.shape(values))

    def _step(self, ufunc, *others):
        others = [other if isinstance(other, Steps) else Steps(other) for other in others]
        values = ufunc(self.values, *(other.values for other in others))
        finite = np.isfinite(self.values)
        rough = self.rough
        for other in others:
            finite, rough = finite & np.isfinite(other.values), rough | other.rough
        overflow = finite & ~np.isfinite(values)
        # Sums and differences are exact below the least normal double; products, quotients and powers are not.
        lossy = ufunc in {np.multiply, np.divide, np.power, np.exp}
        underflow = lossy & finite & (np.abs(values) < hostile.TINY) & (self.values != 0)
        if ufunc is np.multiply:
            underflow = underflow & (others[0].values != 0)
        return Steps(values, rough | overflow | underflow)

    def __add__(self, other):
        return self._step(np.add, other)

    def __sub__(self, other):
        return self._step(np.subtract, other)

    def __rsub__(self, other):
        return Steps(np.full_like(self.values, other)) - self

    def __mul__(self, other):
        return self._step(np.multiply, other)

    def __truediv__(self, other):
        return self._step(np.divide, other)

    def __pow__(self, other):
        return self._step(np.power, other)

    def __neg__(self):
        return Steps(-self.values, self.rough)

    def __abs__(self):
        return self._step(np.abs)

    __radd__, __rmul__ = __add__, __mul__

    # Comparisons are of the values.
    def __lt__(self, other):
        return self.values < Steps.of(other)

    def __le__(self, other):
        return self.values <= Steps.of(other)

    def __gt__(self, other):
        return self.values > Steps.of(other)

    def __ge__(self, other):
        return self.values >= Steps.of(other)

    @staticmethod
    def of(value):
        return value.values if isinstance(value, Steps) else value


def steps(value):
    return value if isinstance(value, Steps) else Steps(value)


def where(condition, yes, no):
    yes, no = steps(yes), steps(no)
    return Steps(np.where(condition, yes.values, no.values), np.where(condition, yes.rough, no.rough))


def least(*values):
    first, *others = map(steps, values)
    for other in others:
        first = where((first <= other) | np.isnan(first.values), first, other)
    return first


def trunc(x):
    return x._step(np.trunc)


def ceil(x):
    return x._step(np.ceil)


def most(x, least):
    return where((x > least) | np.isnan(x.values), x, least)


def nearest(x):
    return x._step(np.rint)


def clamp(x, low, high):
    return where(x < low, low, where(x > high, high, x))


def exp(x):
    return x._step(np.exp)


def sqrt(x):
    return x._step(np.sqrt)


def log(x):
    return x._step(np.log)


def expected_tokens(alpha, depth):
    return where(alpha >= 1, depth + 1, where(alpha <= 0, 1, (1 - alpha ** (depth + 1)) / (1 - alpha)))


def rate(mean, depth):
    """Solve for the rate by plain bisection, from 0 and 1 down to the smallest double."""
    mean, depth = np.broadcast_arrays(Steps.of(mean), Steps.of(depth))
    low, high = np.zeros(mean.shape), np.ones(mean.shape)
    for _ in range(1100):
        middle = (low + high) / 2
        short = middle * -np.expm1(depth * np.log(middle)) / (1 - middle) < mean
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return Steps(np.where(np.isnan(mean) | np.isnan(depth), np.nan, low))


def best_depth(alpha, cost, most):
    """Find the depth from which on one more token doesn't pay, by plain bisection among the whole doubles."""
    alpha, cost, most = alpha.values, cost.values, most.values
    low, high = np.zeros(alpha.shape), np.full(alpha.shape, 2.0**64)
    for _ in range(65):
        depth = np.trunc((low + high) / 2)
        gained = 1 - alpha ** (depth + 1)
        pays = (1 - gained) * (1 + depth * cost) * (1 - alpha) > cost * gained
        low, high = np.where(pays, depth, low), np.where(pays, high, depth)
    high = np.where((alpha >= 1) | (cost <= 0), np.inf, np.where(alpha > cost, high, 0))
    return Steps(np.minimum(high, np.trunc(most)))


def ntk(base, growth, dim):
    return where((growth <= 0) | (dim <= 2), base, base * (growth * growth ** (steps(2) / (dim - 2))))


def llama3(frequency, factor, low, high, most):
    turns = most * frequency / (2 * np.pi)
    kept = (turns - low) / (high - low)
    mixed = (1 - kept) * frequency / factor + kept * frequency
    value = where(turns < low, frequency / factor, where(turns >= high, frequency, mixed))
    return Steps(value.values, value.rough | turns.rough)


def magnified(alpha, exponent):
    """Return how much a power's exponent magnifies a rounding: without bound where its logarithm is subnormal."""
    if not 0 < alpha < 1 or exponent == 0:
        return 1
    product = exponent * math.log(alpha)
    return 1 + max(0.0, product) if abs(product) > 1e-300 else math.inf


def gate(left, holds, right):
    left, right = steps(left), steps(right)
    return Steps(holds(left.values, right.values), left.rough | right.rough)


def even(code):
    # A remainder of an infinity is NaN, so an infinity is not even.
    return np.fmod(code.values, 2) == 0


def quantization_error(value, scale, zero_point):
    q = clamp(nearest(value / scale + zero_point), -128, 127)
    return abs(value - (q - zero_point) * scale)


def temperature(logit, temperature):
    return logit / temperature


def repetition(logit, penalty, _):
    return where(logit > 0, logit / penalty, logit * penalty)


# The formulas as they are written, guards apart.
WRITTEN = {
    "kv_cache_memory_per_layer": lambda batch, seq, heads, dim, width: 2 * batch * seq * heads * dim * width,
    "kv_cache_total_memory": lambda per_layer, layers: per_layer * layers,
    "kv_cache_utilization": lambda cached, most: least(1, cached / most),
    "kv_eviction_score_lru": lambda last, current: current - last,
    "kv_eviction_score_h2o": lambda attention, recency: attention * recency,
    "radix_cache_shared_prefix_len": lambda a, b, match: least(match, a, b),
    "prefix_cache_hit_bytes": lambda prefix, heads, dim, layers, width: 2 * prefix * heads * dim * layers * width,
    "kv_quantization_error": quantization_error,
    "paged_attention_block_count": lambda seq, block: trunc((seq + block - 1) / block),
    "incremental_decode_kv_append": lambda current: current + 1,
    "page_table_lookup": lambda _, entry: entry,
    "cache_compaction_gain": lambda fragmented, block, width, layers, heads, dim: (
        0.5 * fragmented * (2 * block * width * layers * heads * dim)
    ),
    "block_copy_cost": lambda block, layers, heads, dim, width, bandwidth: (
        2 * block * layers * heads * dim * width / (bandwidth * 1e9) * 1e3
    ),
    "prefix_sharing_savings": lambda prefix, n, layers, heads, dim, width: (
        (n - 1) * (2 * prefix * layers * heads * dim * width)
    ),
    "speculative_branch_memory": lambda branches, depth, layers, heads, dim, width: (
        2 * branches * depth * layers * heads * dim * width
    ),
    "cache_eviction_lru_score": lambda last, current: current - last,
    "cache_eviction_beladys_score": lambda following, current: following - current,
    "cache_hit_latency_saving": lambda prompt, tps: prompt / tps,
    "dynamic_ntk_rope_scale": lambda seq, base, alpha: (seq / base) ** alpha,
    "context_extension_factor": lambda original, target: target / original,
    "temperature_scale": temperature,
    "top_k_threshold": lambda logit: logit,
    "top_p_cumulative": lambda _, cumulative, p: gate(cumulative, np.less, p),
    "min_p_threshold": lambda max_prob, min_p: max_prob * min_p,
    "repetition_penalty_scale": repetition,
    "token_frequency_penalty": lambda logit, count, frequency, presence: (
        logit - count * frequency - where(count > 0, presence, 0)
    ),
    "beam_score_update": lambda current, log_prob: current + log_prob,
    "length_penalty": lambda total, length, alpha: total / ((5 + length) / 6) ** alpha,
    "pow_approx": lambda base, exponent: base**exponent,
    "typical_p_score": lambda log_prob, entropy: abs(log_prob + entropy),
    "greedy_token_id": lambda most, current, identity: where(current >= most, identity, -1),
    "temperature_logit_scale": temperature,
    "top_k_accept": lambda rank, k: gate(rank, np.less_equal, k),
    "top_p_cumulative_accept": lambda cumulative, _, p: gate(cumulative, np.less, p),
    "min_p_accept": lambda prob, max_prob, min_p: gate(prob, np.greater_equal, max_prob * min_p),
    "repetition_penalty_logit": repetition,
    "frequency_penalty_logit": lambda logit, penalty, count: logit - penalty * count,
    "presence_penalty_logit": lambda logit, penalty, present: where(present >= 0.5, logit - penalty, logit),
    "typical_sampling_accept": lambda log_prob, entropy, tau: gate(abs(-log_prob - entropy), np.less_equal, tau),
    "eta_sampling_accept": lambda prob, entropy, eta: gate(prob, np.greater_equal, eta * exp(-entropy / 2)),
    "eos_stop_score": lambda prob, threshold: gate(prob, np.greater_equal, threshold),
    "speculative_accept_prob": lambda target, draft: least(1, target / draft),
    "speculative_expected_tokens": lambda alpha, depth: (1 - alpha ** (depth + 1)) / (1 - alpha),
    "draft_model_speedup": lambda expected, target, draft, depth: expected * target / (target + draft * depth),
    "medusa_head_acceptance": lambda medusa, target, _: least(1, target / medusa),
    "json_grammar_logit_mask": lambda _, valid: where(valid > 0.5, 0, -1e9),
    "constrained_beam_score": lambda score, _, length, alpha: score / length**alpha,
    "structured_repair_score": lambda validity, attempts, most: validity * (1 - attempts / most),
    "contrastive_decode_score": lambda expert, amateur, alpha: expert - alpha * amateur,
    "token_healing_overlap": lambda _, new, overlap: overlap,
    "watermark_green_list_bias": lambda token, green, bias: where(even(trunc(token + green)), bias, 0),
    "admission_control_accept": lambda request, free, margin: gate(request, np.less_equal, free * (1 - margin)),
    "iteration_level_batch_size": lambda free, each: trunc(free / each),
    "preemption_score": lambda priority, generated, tokens: tokens / (priority * (generated + 1)),
    "chunked_prefill_chunks": lambda prompt, chunk: trunc((prompt + chunk - 1) / chunk),
    "decode_throughput_tokens": lambda batch, latency: batch * 1000 / latency,
    "streaming_first_token_latency": lambda prompt, tps: prompt / tps,
    "head_of_line_blocking_score": lambda longest, average: longest / average,
    "batching_efficiency": lambda actual, most: least(1, actual / most),
    "sequence_completion_fraction": lambda completed, total: completed / total,
    "beam_memory_per_request": lambda beams, seq, layers, heads, dim, width: (
        beams * (2 * seq * layers * heads * dim * width)
    ),
    "attention_kv_bytes_per_token": lambda layers, heads, key, value, width: layers * heads * (key + value) * width,
    "mla_kv_bytes_per_token": lambda layers, rank, rope, width: layers * (rank + rope) * width,
    "sliding_window_tokens": least,
    "chunked_attention_tokens": lambda seq, chunk: (seq - 1)._step(np.fmod, chunk) + 1,
    "recurrent_state_bytes": lambda layers, heads, dim, state, width: layers * heads * dim * state * width,
    "conv_state_bytes": lambda layers, channels, columns, width: layers * channels * columns * width,
    "quantized_head_bytes": lambda dim, bits, group, scale: dim * bits / 8 + ceil(dim / group) * scale,
    "kv_heads_per_rank": lambda heads, ranks: most(ceil(heads / ranks), 1),
    "sliding_window_blocks": lambda seq, window, batched, block: ceil(least(window - 1 + batched, seq) / block) + 1,
    "block_waste_tokens": lambda seq, block: ceil(seq / block) * block - seq,
    "max_concurrency": lambda total, each: total / each,
    "watermark_reserved_blocks": lambda total, watermark: trunc(total * watermark),
    "watermark_admission_accept": lambda needed, free, reserved, total, watermark: gate(
        needed + trunc(total * watermark), np.less_equal, free - reserved
    ),
    "new_blocks_needed": lambda computed, new, lookahead, longest, block, held, cached: most(
        ceil(least(computed + new + lookahead, longest) / block) - held - cached, 0
    ),
    "usable_prefix_hit_tokens": lambda prompt, cached, block: trunc(least(cached, prompt - 1) / block) * block,
    "decode_growth_reserve": lambda largest, generated, clip, ratio: least(largest - generated, clip) * ratio,
    "orca_admission_accept": lambda reserved, largest, slots: gate(reserved + largest, np.less_equal, slots),
    "prefill_step_tokens": least,
    "aligned_chunk_tokens": lambda remaining, cap, unit: where(remaining <= cap, remaining, trunc(cap / unit) * unit),
    "uncached_prefill_chunks": lambda prompt, cached, chunk: ceil((prompt - cached) / chunk),
    "response_ratio": lambda waited, uncached: 1 + waited / uncached,
    "time_to_first_token": lambda queue, transfer, uncached, tps: queue + transfer + uncached / tps,
    "time_per_output_token": lambda total, first, tokens: (total - first) / (tokens - 1),
    "concurrency": lambda rate, latency: rate * latency,
    "mean_acceptance_length": lambda accepted, steps: 1 + accepted / steps,
    "expected_accepted_tokens": lambda alpha, depth: alpha * (1 - alpha**depth) / (1 - alpha),
    "acceptance_rate_from_counts": lambda accepted, steps, depth: rate(accepted / steps, depth),
    "speculative_walltime_speedup": lambda alpha, depth, cost: expected_tokens(alpha, depth) / (depth * cost + 1),
    "speculative_operations_factor": lambda alpha, depth, operations: (
        (depth * operations + depth + 1) / expected_tokens(alpha, depth)
    ),
    "break_even_acceptance": lambda depth, cost: rate(depth * cost, depth),
    "best_speculation_depth": best_depth,
    "residual_weight": lambda target, draft: -least(0, draft - target),
    "medusa_typical_threshold": lambda epsilon, delta, entropy: least(epsilon, delta * exp(-entropy)),
    "eta_cutoff": lambda epsilon, entropy: least(epsilon, sqrt(epsilon) * exp(-entropy)),
    "epsilon_sampling_accept": lambda prob, epsilon: gate(prob, np.greater_equal, epsilon),
    "length_normalized_score": lambda total, length, alpha: total / length**alpha,
    "contrastive_plausible_accept": lambda prob, largest, alpha: gate(prob, np.greater_equal, alpha * largest),
    "watermark_green_list_size": lambda vocab, gamma: trunc(gamma * vocab),
    "watermark_z_score": lambda green, tokens, gamma: (green - gamma * tokens) / sqrt(tokens * gamma * (1 - gamma)),
    "top_n_sigma_accept": lambda logit, most, sigma, n: gate(logit, np.greater_equal, most - n * sigma),
    "dynamic_temperature": lambda entropy, most, low, high, exponent: low + (high - low) * (entropy / most) ** exponent,
    "gumbel_max_score": lambda logit, uniform: logit - log(-log(uniform)),
    "mirostat_mu_update": lambda mu, learning, surprise, target: mu - learning * (surprise - target),
    "rope_inverse_frequency": lambda base, pair, dim: base ** (-2 * pair / dim),
    "ntk_rope_base": lambda base, alpha, dim: base * (alpha * alpha ** (steps(2) / (dim - 2))),
    "dynamic_ntk_rope_base": lambda base, factor, length, most, dim: ntk(
        base, (factor * (length - most) + most) / most, dim
    ),
    "llama3_rope_frequency": llama3,
    "yarn_attention_factor": lambda scale: 0.1 * log(scale) + 1,
    "yarn_correction_dim": lambda turns, dim, base, most: dim * log(most / (2 * np.pi * turns)) / (2 * log(base)),
    "yarn_ramp": lambda pair, low, high: clamp((pair - low) / (high - low), 0, 1),
    "longrope_attention_factor": lambda scale, most: sqrt(1 + log(scale) / log(most)),
}
# The same with a rounding less, as the kernels have it: another form may overflow where this one does not.
ALSO_WRITTEN = {
    "block_copy_cost": lambda block, layers, heads, dim, width, bandwidth: (
        2 * block * layers * heads * dim * width / (bandwidth * 1e6)
    ),
}
# The guards in the order in which they are asked: a condition, and the safe value.
GUARDS = {
    "kv_cache_utilization": [lambda cached, most: (most <= 0, 0)],
    "kv_quantization_error": [lambda value, scale, zero_point: (scale <= 0, 0)],
    "paged_attention_block_count": [lambda seq, block: (block <= 0, seq)],
    "block_copy_cost": [lambda block, layers, heads, dim, width, bandwidth: (bandwidth <= 0, 0)],
    "prefix_sharing_savings": [lambda prefix, n, *sizes: (n <= 1, 0)],
    "cache_eviction_beladys_score": [lambda following, current: (following < current, 1e9)],
    "cache_hit_latency_saving": [lambda prompt, tps: (tps <= 0, 0)],
    "dynamic_ntk_rope_scale": [lambda seq, base, alpha: ((base <= 0) | (seq <= base), 1)],
    "context_extension_factor": [lambda original, target: (original <= 0, 1)],
    "temperature_scale": [lambda logit, temperature: (temperature <= 0, logit * 1e9)],
    "repetition_penalty_scale": [lambda logit, penalty, appeared: ((appeared <= 0) | (penalty <= 0), logit)],
    "length_penalty": [lambda total, length, alpha: ((5 + length) / 6 <= 0, total)],
    "pow_approx": [lambda base, exponent: (base <= 0, 1)],
    "temperature_logit_scale": [lambda logit, temperature: (temperature <= 0, logit * 1e9)],
    "repetition_penalty_logit": [lambda logit, penalty, generated: ((generated < 0.5) | (penalty <= 0), logit)],
    "speculative_accept_prob": [lambda target, draft: (draft <= 0, 1)],
    "speculative_expected_tokens": [
        lambda alpha, depth: (alpha >= 1, depth + 1),
        lambda alpha, depth: (alpha <= 0, 1),
    ],
    "draft_model_speedup": [lambda expected, target, draft, depth: (target + draft * depth <= 0, 1)],
    "medusa_head_acceptance": [lambda medusa, target, head: (medusa <= 0, 1)],
    "constrained_beam_score": [
        lambda score, valid, length, alpha: (valid < 0.5, -1e9),
        lambda score, valid, length, alpha: (length <= 0, score),
    ],
    "structured_repair_score": [lambda validity, attempts, most: (most <= 0, validity)],
    "iteration_level_batch_size": [lambda free, each: (each <= 0, 0)],
    "preemption_score": [lambda priority, generated, tokens: (priority * (generated + 1) <= 0, tokens)],
    "chunked_prefill_chunks": [lambda prompt, chunk: (chunk <= 0, 1)],
    "decode_throughput_tokens": [lambda batch, latency: (latency <= 0, 0)],
    "streaming_first_token_latency": [lambda prompt, tps: (tps <= 0, 0)],
    "head_of_line_blocking_score": [lambda longest, average: (average <= 0, 1)],
    "batching_efficiency": [lambda actual, most: (most <= 0, 0)],
    "sequence_completion_fraction": [lambda completed, total: (total <= 0, 0)],
    "sliding_window_tokens": [lambda seq, window: (window <= 0, seq)],
    "chunked_attention_tokens": [lambda seq, chunk: (seq <= 0, 0), lambda seq, chunk: (chunk <= 0, seq)],
    "quantized_head_bytes": [lambda dim, bits, group, scale: (group <= 0, dim * bits / 8 + scale)],
    "kv_heads_per_rank": [lambda heads, ranks: (ranks <= 0, heads)],
    "sliding_window_blocks": [lambda seq, window, batched, block: (block <= 0, least(seq, window - 1 + batched))],
    "block_waste_tokens": [lambda seq, block: (block <= 0, 0)],
    "max_concurrency": [lambda total, each: (each <= 0, 0)],
    "new_blocks_needed": [
        lambda computed, new, lookahead, longest, block, held, cached: (
            block <= 0,
            most(least(longest, computed + new + lookahead) - held - cached, 0),
        )
    ],
    "usable_prefix_hit_tokens": [lambda prompt, cached, block: (block <= 0, least(prompt - 1, cached))],
    "prefill_step_tokens": [lambda remaining, budget, threshold: (threshold <= 0, least(budget, remaining))],
    "aligned_chunk_tokens": [lambda remaining, cap, unit: (unit <= 0, least(cap, remaining))],
    "uncached_prefill_chunks": [lambda prompt, cached, chunk: (chunk <= 0, 1)],
    "response_ratio": [lambda waited, uncached: (uncached <= 0, 1 + waited)],
    "time_to_first_token": [lambda queue, transfer, uncached, tps: (tps <= 0, queue + transfer + 0)],
    "time_per_output_token": [lambda total, first, tokens: (tokens <= 1, 0)],
    "mean_acceptance_length": [lambda accepted, steps: (steps <= 0, 1)],
    "expected_accepted_tokens": [lambda alpha, depth: (alpha >= 1, depth), lambda alpha, depth: (alpha <= 0, 0)],
    "acceptance_rate_from_counts": [
        lambda accepted, steps, depth: ((steps <= 0) | (accepted / steps <= 0), 0),
        lambda accepted, steps, depth: (accepted / steps >= depth, 1),
    ],
    "speculative_walltime_speedup": [lambda alpha, depth, cost: (depth * cost + 1 <= 0, 1)],
    "speculative_operations_factor": [lambda alpha, depth, operations: (depth <= -1, 1)],
    "break_even_acceptance": [
        lambda depth, cost: (cost >= 1, 1),
        lambda depth, cost: ((depth <= 0) | (cost <= 0), 0),
    ],
    "best_speculation_depth": [
        lambda alpha, cost, most: ((most < 1) | (alpha <= 0) | (cost >= 1) | (alpha <= cost), 0),
    ],
    "eta_cutoff": [lambda epsilon, entropy: (epsilon <= 0, 0)],
    "length_normalized_score": [lambda total, length, alpha: (length <= 0, total)],
    "watermark_z_score": [lambda green, tokens, gamma: (tokens * gamma * (1 - gamma) <= 0, 0)],
    "dynamic_temperature": [lambda entropy, most, low, high, exponent: ((entropy <= 0) | (most <= 0), low)],
    "rope_inverse_frequency": [lambda base, pair, dim: ((base <= 0) | (dim <= 0), 1)],
    "ntk_rope_base": [lambda base, alpha, dim: ((alpha <= 0) | (dim <= 2), base)],
    "dynamic_ntk_rope_base": [
        lambda base, factor, length, most, dim: (
            (most <= 0) | (length <= most) | ((factor * (length - most) + most) / most <= 0) | (dim <= 2),
            base,
        ),
    ],
    "llama3_rope_frequency": [lambda frequency, factor, low, high, most: (factor <= 0, frequency)],
    "yarn_attention_factor": [lambda scale: (scale <= 1, 1)],
    "yarn_correction_dim": [lambda turns, dim, base, most: ((turns <= 0) | (base <= 1) | (most <= 0), 0)],
    "yarn_ramp": [lambda pair, low, high: ((high <= low) & ~np.isnan(pair.values), where(pair > low, 1, 0))],
    "longrope_attention_factor": [lambda scale, most: ((scale <= 1) | (most <= 1), 1)],
}
# Far outside the domain a logarithm's rounding is magnified, by this condition number: at negative depths, and where an
# exponent nears 2**53 or passes it.
CONDITION = {
    # A chunk below a token: seq_len - 1 is rounded, and its remainder is any number below the chunk.
    "chunked_attention_tokens": lambda seq, chunk: math.inf if chunk < 1 else 1,
    "speculative_expected_tokens": lambda alpha, depth: 1 + max(0.0, -depth),
    "dynamic_ntk_rope_scale": lambda seq, base, alpha: 1 + abs(alpha) * 2.0**-52,
    "length_penalty": lambda total, length, alpha: 1 + abs(alpha) * 2.0**-52,
    "expected_accepted_tokens": magnified,
    "acceptance_rate_from_counts": lambda accepted, steps, depth: (
        1 if min(accepted / steps, depth) > 1e-290 else math.inf
    ),
    "speculative_walltime_speedup": lambda alpha, depth, cost: magnified(alpha, depth + 1),
    # A draft that saves operations leaves a difference above the fraction line.
    "speculative_operations_factor": lambda alpha, depth, operations: 1 if operations >= 0 else math.inf,
    "break_even_acceptance": lambda depth, cost: 1 if depth * cost > 1e-290 else math.inf,
    "watermark_z_score": lambda green, tokens, gamma: (
        1 if 1e-290 < abs(tokens * gamma * (1 - gamma)) < math.inf else math.inf
    ),
    "dynamic_temperature": lambda entropy, most, low, high, exponent: (
        1 + abs(exponent) * 2.0**-52 if entropy / most >= hostile.TINY else math.inf
    ),
    "ntk_rope_base": lambda base, alpha, dim: 64 / (dim - 2) + 1 + abs(math.log(alpha)),
    "dynamic_ntk_rope_base": lambda base, factor, length, most, dim: (
        64 / (dim - 2) + 710 if most > 1e-290 else math.inf
    ),
}
# The positions that a formula does not read.
IGNORED = {
    "page_table_lookup": {0},
    "top_p_cumulative": {0},
    "top_p_cumulative_accept": {1},
    "medusa_head_acceptance": {2},
    "json_grammar_logit_mask": {0},
    "token_healing_overlap": {0, 1},
}
GATES = {
    "epsilon_sampling_accept",
    "contrastive_plausible_accept",
    "top_n_sigma_accept",
    "top_p_cumulative",
    "top_k_accept",
    "top_p_cumulative_accept",
    "min_p_accept",
    "typical_sampling_accept",
    "eta_sampling_accept",
    "eos_stop_score",
    "admission_control_accept",
    "watermark_admission_accept",
    "orca_admission_accept",
}


def bits(values):
    """Return the doubles' bits, every NaN as one NaN."""
    values = np.array(values)
    values[np.isnan(values)] = np.nan
    return values.view(np.uint64)


class Run:
    """One formula's cases, what it returned, which guard applied and which cases have a NaN that counts."""

    def __init__(self, name):
        self.name = name
        self.formula = getattr(kvformulas, name)
        self.columns = np.array(hostile.cases(name, ARITY[name])).T
        self.got = self.call()
        with np.errstate(all="ignore"):
            self._expect()

    def call(self):
        return np.array(list(map(self.formula, *self.columns.tolist())))

    def _expect(self):
        arguments = [Steps(column) for column in self.columns]
        self.guarded = np.zeros(self.got.shape, dtype=bool)
        self.safe = np.zeros(self.got.shape)
        for guard in GUARDS.get(self.name, ()):
            condition, value = guard(*arguments)
            self.safe = np.where(condition & ~self.guarded, Steps.of(value), self.safe)
            self.guarded = self.guarded | condition
        read = [column for i, column in enumerate(self.columns) if i not in IGNORED.get(self.name, ())]
        self.unknown = np.isnan(read).any(axis=0) & ~self.guarded
        written = steps(WRITTEN[self.name](*arguments))
        self.written, self.rough = written.values, written.rough
        self.also = steps(ALSO_WRITTEN.get(self.name, WRITTEN[self.name])(*arguments)).values
        self.ordinary = ~self.guarded & ~self.unknown

    def args(self, i):
        return tuple(self.columns[:, i].tolist())

    def allowed(self, i):
        """Return how many ULP the case may err: what the formula's documentation says."""
        condition = CONDITION.get(self.name, lambda *_: 1)(*self.args(i))
        return budget(self.formula.__doc__).ulps * condition


@pytest.fixture(scope="module")
def run():
    runs = {}
    return lambda name: runs[name] if name in runs else runs.setdefault(name, Run(name))


def test_the_cover_holds_every_three_values_at_every_three_positions():
    columns = [bits(column).tolist() for column in np.array(hostile.cases("any", 6)).T]
    all_threes = len(hostile.VALUES) ** 3
    for positions in [(0, 1, 2), (0, 2, 5), (3, 4, 5)]:
        assert len(set(zip(*(columns[i][:all_threes] for i in positions), strict=True))) == all_threes


def test_a_guard_gives_its_safe_value(topic, formula, run):
    case = run(formula)
    assert np.array_equal(bits(case.got[case.guarded]), bits(case.safe[case.guarded]))
    assert case.guarded.any() == (formula in GUARDS)


def test_nan_gives_nan_and_a_gate_rejects_it(topic, formula, run):
    case = run(formula)
    got = case.got[case.unknown]
    assert len(got) > 0
    assert (got == 0).all() if formula in GATES else np.isnan(got).all()


def test_a_gate_is_0_or_1(topic, formula, run):
    if formula in GATES:
        assert set(bits(run(formula).got).tolist()) == set(bits([0.0, 1.0]).tolist())


def near(got, written):
    with np.errstate(all="ignore"):
        return (np.abs(got - written) <= TOLERANCE * np.spacing(np.abs(written))) | (bits(got) == bits(written))


def follows_the_power(name, args, got):
    """Is it 0/0 or inf/inf, because the penalty leaves the doubles' range where its rounded base does not tell?"""
    total = args[0]
    return (
        name == "length_penalty"
        and math.isnan(got)
        and (total == 0 or math.isinf(total))
        and oracle.double(name, (1.0, *args[1:])) in {0.0, math.inf}
    )


def test_the_value_is_the_formula_as_written_or_the_exact_one(topic, formula, run):
    case = run(formula)
    wrong = {}
    for i in np.flatnonzero(case.ordinary & ~near(case.got, case.written) & ~near(case.got, case.also)):
        args, got = case.args(i), float(case.got[i])
        error = comparison.error(formula, args, got)
        if error > case.allowed(i) and not follows_the_power(formula, args, got):
            wrong[i] = f"{args}: {got} for {case.written[i]}, {error} ULP off"
    assert not wrong, f"{len(wrong)} wrong, such as {list(wrong.values())[:5]}"


def test_the_oracle_confirms_a_sample(topic, formula, run):
    case = run(formula)
    smooth = np.flatnonzero(case.ordinary & ~case.rough & np.isfinite(case.columns).all(axis=0))
    assert len(smooth) > 0
    for i in smooth[:: max(1, len(smooth) // SAMPLE)]:
        error = comparison.error(formula, case.args(i), float(case.got[i]))
        assert error <= case.allowed(i), case.args(i)


def test_the_same_bits_twice(topic, formula, run):
    case = run(formula)
    assert np.array_equal(bits(case.got), bits(case.call()))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Return a module that cimports every kernel, each in a loop over an array of cases."""
    lines = ["from kvformulas cimport " + ", ".join(ARITY)]
    for name, arity in ARITY.items():
        arguments = ", ".join(f"case[{i}]" for i in range(arity))
        lines += [
            f"def every_{name}(size_t cases, size_t values, Py_ssize_t n):",
            "    cdef double *case = <double *> cases",
            "    cdef double *value = <double *> values",
            "    with nogil:",
            "        for i in range(n):",
            f"            value[i] = {name}({arguments})",
            f"            case += {arity}",
        ]
    return build("\n".join(lines), tmp_path_factory.mktemp("hostile"), "every_kernel")


def test_cimport_gives_the_same_bits_as_python(topic, formula, run, compiled):
    case = run(formula)
    rows, got = np.ascontiguousarray(case.columns.T), np.empty(len(case.got))
    getattr(compiled, f"every_{formula}")(rows.ctypes.data, got.ctypes.data, len(got))
    assert np.array_equal(bits(got), bits(case.got))


def test_every_formula_is_stated_here():
    assert set(WRITTEN) == {name for _, name in FORMULAS}
    assert {*GUARDS, *IGNORED, *GATES} <= set(WRITTEN)
    assert math.isnan(hostile.VALUES[0])
