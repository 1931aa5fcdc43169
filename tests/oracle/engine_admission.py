# What production engines decide: watermarks, new blocks, usable hits, reserves, steps, latencies: the definitions.
# ruff: noqa: ARG001  a definition takes the context and the contract's arguments, whether it reads them or not
from oracle.context import least, truncated, unknown


def watermark_reserved_blocks(mp, total_blocks, watermark):
    return truncated(mp, total_blocks * watermark)


def watermark_admission_accept(mp, needed_blocks, free_blocks, reserved_blocks, total_blocks, watermark):
    wanted = needed_blocks + truncated(mp, total_blocks * watermark)
    return mp.one if wanted <= free_blocks - reserved_blocks else mp.zero


def new_blocks_needed(
    mp, computed_tokens, new_tokens, lookahead_tokens, max_model_len, block_size, held_blocks, cached_blocks
):
    tokens = least(mp, computed_tokens + new_tokens + lookahead_tokens, max_model_len)
    blocks = tokens if block_size <= 0 else mp.ceil(tokens / block_size)
    missing = blocks - held_blocks - cached_blocks
    return missing if unknown(missing) or missing > 0 else mp.zero


def usable_prefix_hit_tokens(mp, prompt_len, cached_tokens, block_size):
    tokens = least(mp, cached_tokens, prompt_len - 1)
    if block_size <= 0:
        return tokens
    return truncated(mp, tokens / block_size) * block_size


def decode_growth_reserve(mp, max_new_tokens, generated_tokens, clip_tokens, ratio):
    return least(mp, max_new_tokens - generated_tokens, clip_tokens) * ratio


def orca_admission_accept(mp, reserved_slots, request_max_tokens, total_slots):
    return mp.one if reserved_slots + request_max_tokens <= total_slots else mp.zero


def prefill_step_tokens(mp, remaining_tokens, budget_left, threshold):
    if threshold <= 0:
        return least(mp, remaining_tokens, budget_left)
    return least(mp, remaining_tokens, budget_left, threshold)


def aligned_chunk_tokens(mp, remaining_tokens, cap_tokens, unit):
    if unit <= 0:
        return least(mp, remaining_tokens, cap_tokens)
    if unknown(remaining_tokens, unit):
        return mp.nan
    if remaining_tokens <= cap_tokens:
        return remaining_tokens
    return truncated(mp, cap_tokens / unit) * unit


def uncached_prefill_chunks(mp, prompt_len, cached_tokens, chunk_size):
    if chunk_size <= 0:
        return mp.one
    return mp.ceil((prompt_len - cached_tokens) / chunk_size)


def response_ratio(mp, waited_tokens, uncached_tokens):
    if uncached_tokens <= 0:
        return 1 + waited_tokens
    return 1 + waited_tokens / uncached_tokens


def time_to_first_token(mp, queue_s, transfer_s, uncached_tokens, prefill_throughput_tps):
    prefill = mp.zero if prefill_throughput_tps <= 0 else uncached_tokens / prefill_throughput_tps
    return queue_s + transfer_s + prefill


def time_per_output_token(mp, end_to_end_s, ttft_s, output_tokens):
    if output_tokens <= 1:
        return mp.zero
    return (end_to_end_s - ttft_s) / (output_tokens - 1)


def concurrency(mp, arrival_rate, latency_s):
    return arrival_rate * latency_s


EXAMPLES = [
    (watermark_reserved_blocks, (18724, 0.02), 374),
    (watermark_admission_accept, (626, 1000, 0, 18724, 0.02), 1),
    (watermark_admission_accept, (627, 1000, 0, 18724, 0.02), 0),
    (watermark_admission_accept, (616, 1000, 11, 18724, 0.02), 0),
    (new_blocks_needed, (64, 36, 0, 8192, 16, 0, 4), 3),
    (new_blocks_needed, (112, 1, 0, 8192, 16, 7, 0), 1),
    (new_blocks_needed, (8190, 1, 5, 8192, 16, 512, 0), 0),
    (new_blocks_needed, (5, 1, 2, 100, 0, 3, 1), 4),
    (usable_prefix_hit_tokens, (64, 64, 16), 48),
    (usable_prefix_hit_tokens, (32768, 32768, 448), 32704),
    (usable_prefix_hit_tokens, (64, 20, 0), 20),
    (decode_growth_reserve, (100000, 24, 4096, 0.5), 2048),
    (decode_growth_reserve, (100, 24, 4096, 0.5), 38),
    (orca_admission_accept, (14336, 2048, 16384), 1),
    (orca_admission_accept, (14337, 2048, 16384), 0),
    (prefill_step_tokens, (10000, 8192, 2048), 2048),
    (prefill_step_tokens, (10000, 8192, 0), 8192),
    (aligned_chunk_tokens, (5000, 1000, 64), 960),
    (aligned_chunk_tokens, (900, 1000, 64), 900),
    (aligned_chunk_tokens, (5000, 1000, 0), 1000),
    (uncached_prefill_chunks, (5000, 0, 2048), 3),
    (uncached_prefill_chunks, (5000, 3072, 2048), 1),
    (uncached_prefill_chunks, (5000, 0, 0), 1),
    (response_ratio, (4096, 1024), 5),
    (response_ratio, (7, 0), 8),
    (time_to_first_token, (0.25, 0.125, 1000, 8000), 0.5),
    (time_to_first_token, (0.25, 0.125, 1000, 0), 0.375),
    (time_per_output_token, (3, 0.5, 11), 0.25),
    (time_per_output_token, (3, 0.5, 1), 0),
    (concurrency, (8, 12.5), 100),
]
