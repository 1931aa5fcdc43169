# What production engines decide: watermarks, new blocks, usable hits, reserves, steps, latencies, by another route.
from reference.exact import ceiling, whole_part


def watermark_reserved_blocks(total_blocks, watermark):
    return whole_part(watermark * total_blocks)


def watermark_admission_accept(needed_blocks, free_blocks, reserved_blocks, total_blocks, watermark):
    spare = free_blocks - needed_blocks - reserved_blocks
    return int(whole_part(watermark * total_blocks) <= spare)


def new_blocks_needed(
    computed_tokens, new_tokens, lookahead_tokens, max_model_len, block_size, held_blocks, cached_blocks
):
    tokens = sorted([lookahead_tokens + new_tokens + computed_tokens, max_model_len])[0]
    blocks = ceiling(tokens / block_size) if block_size > 0 else tokens
    there = cached_blocks + held_blocks
    return blocks - there if blocks > there else 0


def usable_prefix_hit_tokens(prompt_len, cached_tokens, block_size):
    tokens = cached_tokens if cached_tokens + 1 < prompt_len else prompt_len - 1
    return block_size * whole_part(tokens / block_size) if block_size > 0 else tokens


def decode_growth_reserve(max_new_tokens, generated_tokens, clip_tokens, ratio):
    clipped = clip_tokens + generated_tokens < max_new_tokens
    return ratio * clip_tokens if clipped else ratio * max_new_tokens - ratio * generated_tokens


def orca_admission_accept(reserved_slots, request_max_tokens, total_slots):
    return int(request_max_tokens <= total_slots - reserved_slots)


def prefill_step_tokens(remaining_tokens, budget_left, threshold):
    limits = [remaining_tokens, budget_left, *([threshold] if threshold > 0 else [])]
    return sorted(limits)[0]


def aligned_chunk_tokens(remaining_tokens, cap_tokens, unit):
    if remaining_tokens <= cap_tokens:
        return remaining_tokens
    return unit * whole_part(cap_tokens / unit) if unit > 0 else cap_tokens


def uncached_prefill_chunks(prompt_len, cached_tokens, chunk_size):
    return ceiling((prompt_len - cached_tokens) / chunk_size) if chunk_size > 0 else 1


def response_ratio(waited_tokens, uncached_tokens):
    if uncached_tokens > 0:
        return (uncached_tokens + waited_tokens) / uncached_tokens
    return waited_tokens + 1


def time_to_first_token(queue_s, transfer_s, uncached_tokens, prefill_throughput_tps):
    if prefill_throughput_tps > 0:
        before = (transfer_s + queue_s) * prefill_throughput_tps
        return (before + uncached_tokens) / prefill_throughput_tps
    return transfer_s + queue_s


def time_per_output_token(end_to_end_s, ttft_s, output_tokens):
    return (ttft_s - end_to_end_s) / (1 - output_tokens) if output_tokens > 1 else 0


def concurrency(arrival_rate, latency_s):
    return latency_s * arrival_rate
