# Arguments for each formula, shared by the tests and by tools/accuracy.py: realistic, whole, log-uniform and
# adversarial ones in equal parts, the same at every run. All lie where no intermediate result overflows or is
# subnormal, which is where an error budget holds; what happens beyond is the business of the tests of hostile doubles.
import json
import zlib
from pathlib import Path

import numpy as np

_CONTRACT = json.loads(Path(__file__).with_name("contract.json").read_text())
ARGUMENTS = {name: arguments for formulas in _CONTRACT.values() for name, arguments in formulas.items()}

# What an argument is like. Everything not listed is a size or a count: at least 0, and mostly whole.
_KINDS = {
    "probability": """sorted_prob cumulative_so_far p max_prob min_p token_prob cumulative_prob eos_prob eos_threshold
        acceptance_rate target_prob draft_prob medusa_prob output_validity safety_margin eta
        watermark ratio
        cost_ratio operation_ratio epsilon delta
        expert_prob max_expert_prob gamma uniform learning_rate
        inv_freq""",
    "logit": "k_th_logit logit max_logit current_logit value bias_strength presence_penalty",
    "log_probability": """current_score next_log_prob log_prob_sum token_log_prob beam_log_prob expert_log_prob
        amateur_log_prob""",
    "flag": "token_appeared was_generated is_present is_valid_next grammar_valid",
    "exponent": "alpha exponent",
    "code": "zero_point",
    "positive": """attention_sum recency_weight scale bandwidth_gbs prefill_throughput_tps temperature penalty
        frequency_penalty target_latency_ms draft_latency_ms expected_tokens seq_priority decode_latency_ms
        longest_wait_ms avg_wait_ms avg_seq_remaining actual_compute theoretical_max_compute entropy tau base
        arrival_rate latency_s queue_s transfer_s end_to_end_s ttft_s
        sigma n min_temperature max_temperature max_entropy mu surprise target_surprise
        factor low_freq_factor high_freq_factor rotations""",
}
_KIND = {argument: kind for kind, arguments in _KINDS.items() for argument in arguments.split()}
_SIGNED = {"logit", "log_probability", "exponent", "code"}
_SMALL_SIZES = {
    "unit": (16, 32, 64, 100, 256, 512),
    "clip_tokens": (1024, 4096, 8192),
    "threshold": (512, 1000, 2048),
    "n_kv_heads": (1, 2, 4, 8, 16, 32, 128),
    "k_head_dim": (64, 96, 128, 192, 256),
    "v_head_dim": (64, 96, 128, 256),
    "kv_lora_rank": (128, 256, 512),
    "qk_rope_head_dim": (32, 64),
    "state_size": (16, 64, 128, 256),
    "columns": (2, 3, 4),
    "window": (128, 512, 1024, 4096, 8192),
    "chunk": (1000, 1024, 8192),
    "bits": (2, 3, 4, 5, 6, 8, 16),
    "group_size": (16, 32, 64, 100, 128),
    "scale_bytes": (0.5, 1, 2, 4),
    "tensor_parallel": (1, 2, 3, 4, 8, 16, 32, 64),
    "n_heads": (1, 2, 4, 8, 16, 32, 64, 96, 128),
    "head_dim": (64, 80, 96, 112, 128, 192, 256, 576),
    "n_layers": (1, 12, 24, 28, 32, 36, 40, 48, 61, 80, 126),
    "dtype_bytes": (0.5, 1, 2, 4, 8),
    "block_size": (1, 8, 16, 32, 64, 128, 256),
    "block_size_tokens": (1, 8, 16, 32, 64, 128, 256),
    "speculation_depth": range(17),
    "pair_index": range(64),
    "max_position": (512, 2048, 4096, 8192, 32768, 131072),
    "original_max_position": (512, 2048, 4096, 8192, 32768, 131072),
    "depth": range(17),
    "max_depth": range(33),
    "beam_width": range(1, 33),
    "chunk_size": (256, 512, 1000, 1024, 2048, 4096, 8192),
}
# Arguments with a guard at 0 or 1: a few points on it and below.
_GUARDED = {
    "factor",
    "max_position",
    "original_max_position",
    "rotations",
    "epsilon",
    "max_entropy",
    "steps",
    "depth",
    "cost_ratio",
    "max_depth",
    "threshold",
    "unit",
    "uncached_tokens",
    "output_tokens",
    "window",
    "chunk",
    "group_size",
    "tensor_parallel",
    "blocks_per_request",
    "max_tokens",
    "scale",
    "block_size",
    "bandwidth_gbs",
    "n_sequences",
    "prefill_throughput_tps",
    "base_context",
    "original_max_len",
    "temperature",
    "token_appeared",
    "penalty",
    "base",
    "draft_prob",
    "medusa_prob",
    "grammar_valid",
    "max_repair_attempts",
    "avg_seq_remaining",
    "chunk_size",
    "decode_latency_ms",
    "avg_wait_ms",
    "theoretical_max_compute",
    "total_running",
    "seq_priority",
}
# What a decision compares, or a formula subtracts: the place of one side, and the other side, to be made nearly equal.
_NEAR = {
    "dynamic_ntk_rope_base": lambda a: (2, a[3]),
    # Just at the bound below which a frequency is divided.
    "llama3_rope_frequency": lambda a: (4, np.where(a[2] < a[3], 2 * np.pi * a[2] / a[0], a[4])),
    "yarn_correction_dim": lambda a: (0, a[3] / (2 * np.pi)),
    "yarn_ramp": lambda a: (0, a[1]),
    "contrastive_plausible_accept": lambda a: (0, a[1] * a[2]),
    "epsilon_sampling_accept": lambda a: (0, a[1]),
    "eta_cutoff": lambda a: (0, np.exp(-2 * a[1])),
    "gumbel_max_score": lambda a: (1, np.exp(-np.exp(np.clip(a[0], -300, 3)))),
    "mirostat_mu_update": lambda a: (0, a[1] * (a[2] - a[3])),
    "top_n_sigma_accept": lambda a: (0, a[1] - a[2] * a[3]),
    "watermark_green_list_size": lambda a: (0, np.rint(a[0]) / a[1]),
    "watermark_z_score": lambda a: (0, a[1] * a[2]),
    "best_speculation_depth": lambda a: (0, a[1]),
    "medusa_typical_threshold": lambda a: (0, a[1] * np.exp(-a[2])),
    "residual_weight": lambda a: (0, a[1]),
    "aligned_chunk_tokens": lambda a: (1, a[2] * np.rint(np.minimum(a[1] / a[2], 2.0**40))),
    "decode_growth_reserve": lambda a: (0, a[1]),
    "new_blocks_needed": lambda a: (0, np.abs(a[4] * np.rint(np.minimum(a[0] / a[4], 2.0**40)) - a[1] - a[2])),
    "orca_admission_accept": lambda a: (0, a[2] - a[1]),
    "prefill_step_tokens": lambda a: (0, a[1]),
    "time_per_output_token": lambda a: (0, a[1]),
    "uncached_prefill_chunks": lambda a: (0, a[1] + a[2] * np.rint(np.minimum(a[0] / a[2], 2.0**40))),
    "usable_prefix_hit_tokens": lambda a: (0, a[2] * np.rint(np.minimum(a[1] / a[2], 2.0**40)) + 1),
    "watermark_admission_accept": lambda a: (0, a[1] - a[2] - np.trunc(a[3] * a[4])),
    "watermark_reserved_blocks": lambda a: (0, np.rint(a[0]) / a[1]),
    "block_waste_tokens": lambda a: (0, a[1] * np.rint(np.minimum(a[0] / a[1], 2.0**40))),
    "chunked_attention_tokens": lambda a: (0, a[1] * np.rint(np.minimum(a[0] / a[1], 2.0**40)) + 1),
    "kv_heads_per_rank": lambda a: (0, a[1] * np.rint(np.minimum(a[0] / a[1], 2.0**40))),
    "quantized_head_bytes": lambda a: (0, a[2] * np.rint(np.minimum(a[0] / a[2], 2.0**40))),
    "sliding_window_blocks": lambda a: (0, a[3] * np.rint(np.minimum(a[0] / a[3], 2.0**40))),
    "sliding_window_tokens": lambda a: (0, a[1]),
    "admission_control_accept": lambda a: (0, a[1] * (1 - a[2])),
    "batching_efficiency": lambda a: (0, a[1]),
    "beam_score_update": lambda a: (0, -a[1]),
    "cache_eviction_beladys_score": lambda a: (0, a[1]),
    "cache_eviction_lru_score": lambda a: (0, a[1]),
    "contrastive_decode_score": lambda a: (0, a[1] * a[2]),
    "dynamic_ntk_rope_scale": lambda a: (0, a[1]),
    "eos_stop_score": lambda a: (0, a[1]),
    "eta_sampling_accept": lambda a: (0, a[2] * np.exp(-a[1] / 2)),
    "frequency_penalty_logit": lambda a: (0, a[1] * a[2]),
    "greedy_token_id": lambda a: (0, a[1]),
    "iteration_level_batch_size": lambda a: (0, a[1] * np.rint(np.minimum(a[0] / a[1], 2.0**40))),
    "kv_cache_utilization": lambda a: (0, a[1]),
    "kv_eviction_score_lru": lambda a: (0, a[1]),
    # The value that lies half-way between two codes.
    "kv_quantization_error": lambda a: (0, (np.rint(np.clip(a[0] / a[1], -200, 200)) + 0.5 - a[2]) * a[1]),
    "medusa_head_acceptance": lambda a: (1, a[0]),
    "min_p_accept": lambda a: (0, a[1] * a[2]),
    "paged_attention_block_count": lambda a: (0, a[1] * np.rint(np.minimum(a[0] / a[1], 2.0**40)) + 1),
    "chunked_prefill_chunks": lambda a: (0, a[1] * np.rint(np.minimum(a[0] / a[1], 2.0**40)) + 1),
    "radix_cache_shared_prefix_len": lambda a: (0, a[1]),
    "speculative_accept_prob": lambda a: (0, a[1]),
    "structured_repair_score": lambda a: (1, a[2]),
    "token_frequency_penalty": lambda a: (0, a[1] * a[2]),
    "top_k_accept": lambda a: (0, a[1]),
    "top_p_cumulative": lambda a: (1, a[2]),
    "top_p_cumulative_accept": lambda a: (0, a[2]),
    "typical_p_score": lambda a: (0, -a[1]),
    "typical_sampling_accept": lambda a: (2, np.abs(a[0] + a[1])),
    "watermark_green_list_bias": lambda a: (0, np.rint(a[0]) - a[1]),
}
# For each power: its base, as a function of the arguments, and the place of its exponent.
_POWERS = {
    "dynamic_temperature": (lambda a: a[0] / a[1], 4),
    "length_normalized_score": (lambda a: a[1], 2),
    "constrained_beam_score": (lambda a: a[2], 3),
    "dynamic_ntk_rope_scale": (lambda a: a[0] / a[1], 2),
    "length_penalty": (lambda a: (5 + a[1]) / 6, 2),
    "pow_approx": (lambda a: a[0], 1),
}
_LARGEST_POWER = 400  # as an exponent of 2


def _mantissas(rng, n, hard):
    """Return mantissas from 1 to 2; hard ones lie close to 1 or 2, where a rounding costs the most or the least."""
    free = 1 + rng.random(n)
    if not hard:
        return free
    few, many = rng.integers(0, 16, n) * 2.0**-52, np.exp2(-rng.uniform(20, 52, n))
    return np.choose(rng.integers(0, 4, n), [free, 1 + few, 1 + many, 2 - few - 2.0**-52])


def _aligned(rng, n, arguments):
    """Make every mantissa a hair above 1 but one just below 2: a rounding then costs a product nearly a whole ULP."""
    just_below_two = rng.integers(0, len(arguments), n)
    for i, argument in enumerate(arguments):
        mantissas = np.where(
            just_below_two == i, 2 - np.exp2(-rng.uniform(4, 30, n)), 1 + np.exp2(-rng.uniform(20, 30, n))
        )
        arguments[i] = np.where(rng.random(n) < 0.95, np.copysign(mantissas, argument), argument)


def _wide(rng, n, kind, bits, hard=False):
    """Return log-uniform doubles of up to `bits` bits either side of 1, of either sign where the kind has one."""
    if kind == "probability":
        small = np.ldexp(_mantissas(rng, n, hard), -rng.integers(1, bits + 1, n).astype(np.int32))
        return np.where(rng.random(n) < 0.25, 1 - small, small)
    if kind == "flag":
        return rng.choice([0.0, 0.25, np.nextafter(0.5, 0), 0.5, np.nextafter(0.5, 1), 1.0, 3.0], n)
    values = np.ldexp(_mantissas(rng, n, hard), rng.integers(-bits, bits + 1, n).astype(np.int32))
    return values * rng.choice([-1.0, 1.0], n) if kind in _SIGNED else values


def _realistic(rng, n, argument, kind):
    match kind:
        case "probability":
            return np.where(rng.random(n) < 0.5, rng.random(n), np.rint(rng.random(n) * 100) / 100)
        case "logit":
            return rng.normal(0, 8, n)
        case "log_probability":
            return -rng.exponential(8, n)
        case "flag":
            return rng.integers(0, 2, n).astype(float)
        case "exponent":
            return np.where(rng.random(n) < 0.5, rng.random(n) * 2, np.rint(rng.random(n) * 20) / 10)
        case "code":
            return rng.integers(-128, 128, n).astype(float)
        case "positive":
            return np.where(rng.random(n) < 0.5, rng.lognormal(0, 3, n), np.ceil(rng.random(n) * 1000) / 10)
    if argument in _SMALL_SIZES:
        return rng.choice(np.array(_SMALL_SIZES[argument], float), n)
    return np.rint(np.exp2(rng.random(n) * 21))


def _whole(rng, n, kind, bits):
    if kind == "flag":
        return rng.integers(0, 2, n).astype(float)
    if kind == "probability":
        return rng.integers(0, 3, n).astype(float)
    values = np.floor(np.exp2(rng.random(n) * rng.choice([bits, 20, 53], n)))
    return values * rng.choice([-1.0, 1.0], n) if kind in _SIGNED else values


def _adversarial(rng, n, name, kinds):
    arguments = [_wide(rng, n, kind, 8, hard=True) for kind in kinds]
    aligned = [argument.copy() for argument in arguments]
    _aligned(rng, n, aligned)
    pick = rng.random(n) < 0.5
    arguments = [np.where(pick, *pair) for pair in zip(aligned, arguments, strict=True)]
    if name in _NEAR:
        place, target = _NEAR[name](arguments)
        near = target * (1 + rng.integers(-3, 4, n) * 2.0**-52)
        arguments[place] = np.where(rng.random(n) < 0.75, near, arguments[place])
    for i, argument in enumerate(ARGUMENTS[name]):
        if argument in _GUARDED:
            guard = rng.choice([0.0, -1.0, 0.5, 1.0, 2.0**-100, -(2.0**-100)], n)
            arguments[i] = np.where(rng.random(n) < 0.04, guard, arguments[i])
    return arguments


def _keep_in_range(rng, n, name, arguments):
    """Choose the exponents that keep powers in range, among them whole, half and very large ones on a base near 1."""
    if name in _POWERS:
        base, place = _POWERS[name]
        with np.errstate(all="ignore"):
            bits = np.abs(np.log2(np.abs(base(arguments))))
        limit = np.minimum(_LARGEST_POWER / np.maximum(bits, 2.0**-60), 2.0**40)
        free = limit * rng.uniform(-1, 1, n)
        exponents = np.choose(rng.integers(0, 3, n), [free, np.rint(free), np.rint(2 * np.cbrt(free)) / 2])
        arguments[place] = np.where(np.abs(arguments[place]) <= limit, arguments[place], exponents)
        arguments[place] = np.where(rng.random(n) < 0.25, exponents, arguments[place])
    if name == "eta_sampling_accept":
        arguments[1] = np.minimum(arguments[1], _LARGEST_POWER)
    if name == "rope_inverse_frequency":
        # Pairs of the head, and beyond it where that leaves the power in range.
        most = np.minimum(0.5, 0.5 * _LARGEST_POWER / np.abs(np.log2(np.maximum(arguments[0], 2.0**-900)) + 2.0**-60))
        arguments[1] = np.where(rng.random(n) < 0.5, np.rint(most * rng.random(n) * arguments[2]), arguments[1])
        arguments[1] = np.minimum(arguments[1], most * np.abs(arguments[2]))
    if name in {"ntk_rope_base", "dynamic_ntk_rope_base"}:
        # The error grows with d / (d - 2), and the budget is for heads of 64 or more.
        small = (arguments[-1] > 2) & (arguments[-1] < 64)
        arguments[-1] = np.where(small, 64, arguments[-1])
    if name == "llama3_rope_frequency":
        # Mostly near or between the two bounds.
        turns = arguments[2] + (arguments[3] - arguments[2]) * rng.uniform(-0.5, 1.5, n)
        between = (rng.random(n) < 0.7) & (turns > 0) & (arguments[0] > 0) & (arguments[2] < arguments[3])
        arguments[4] = np.where(between, 2 * np.pi * turns / np.where(between, arguments[0], 1), arguments[4])
    if name == "eta_cutoff":
        arguments[1] = np.minimum(arguments[1], _LARGEST_POWER)
    if name == "dynamic_temperature":
        arguments[4] = np.copysign(np.maximum(np.abs(arguments[4]), 2.0**-20), arguments[4])
    if name == "gumbel_max_score":
        arguments[1] = np.where((arguments[1] > 0) & (arguments[1] < 1), arguments[1], 0.5)
    if name == "medusa_typical_threshold":
        arguments[2] = np.minimum(arguments[2], _LARGEST_POWER)
    if name == "expected_accepted_tokens":
        arguments[1] = np.maximum(arguments[1], 0)
    if name == "best_speculation_depth":
        arguments[2] = np.minimum(arguments[2], 2.0**53)
    if name in {"acceptance_rate_from_counts", "break_even_acceptance"}:  # the budget is for a depth of 1 or more
        at = 2 if name == "acceptance_rate_from_counts" else 0
        depth = arguments[at]
        arguments[at] = np.where((depth > 0) & (depth < 1), depth + 1, depth)
    if name == "acceptance_rate_from_counts":
        # Mostly fewer tokens than were drafted, so that there is an equation to solve.
        accepted = arguments[1] * arguments[2] * rng.choice([rng.random(n), 1 - np.exp2(-rng.uniform(0, 50, n))])
        arguments[0] = np.where(rng.random(n) < 0.8, accepted, arguments[0])
    if name == "chunked_attention_tokens":  # its budget is for chunks of a token or more
        arguments[1] = np.where((arguments[1] > 0) & (arguments[1] < 1), arguments[1] + 1, arguments[1])
    return arguments


def columns(name, n, seed=0):
    """Return one array of n doubles for each argument of the formula."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    names = ARGUMENTS[name]
    kinds = [_KIND.get(argument, "size") for argument in names]
    share = [n // 4, n // 4, n // 4, n - 3 * (n // 4)]
    bits = 900 // max(2, len(names) + 1)
    groups = [
        [_realistic(rng, share[0], *pair) for pair in zip(names, kinds, strict=True)],
        [_whole(rng, share[1], kind, 53 // len(names)) for kind in kinds],
        [_wide(rng, share[2], kind, bits) for kind in kinds],
        _adversarial(rng, share[3], name, kinds),
    ]
    return [
        np.concatenate(column)
        for column in zip(
            *(_keep_in_range(rng, size, name, group) for size, group in zip(share, groups, strict=True)), strict=True
        )
    ]


def points(name, n, seed=0):
    """Return n tuples of arguments of the formula."""
    return list(zip(*(column.tolist() for column in columns(name, n, seed)), strict=True))
