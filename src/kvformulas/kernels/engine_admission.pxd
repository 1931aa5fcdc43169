# cython: cdivision=True
# What production engines decide: watermarks, new blocks, usable prefix hits, reserves, prefill steps and latencies.
from libc.math cimport ceil, isnan, trunc

from kvformulas.kernels.continuous_batching cimport streaming_first_token_latency
from kvformulas.kernels.rules cimport maximum, minimum


cdef inline double watermark_reserved_blocks(double total_blocks, double watermark) noexcept nogil:
    return trunc(total_blocks * watermark)


cdef inline double watermark_admission_accept(
    double needed_blocks, double free_blocks, double reserved_blocks, double total_blocks, double watermark
) noexcept nogil:
    cdef double wanted = needed_blocks + watermark_reserved_blocks(total_blocks, watermark)
    return 1.0 if wanted <= free_blocks - reserved_blocks else 0.0


cdef inline double new_blocks_needed(
    double computed_tokens, double new_tokens, double lookahead_tokens, double max_model_len,
    double block_size, double held_blocks, double cached_blocks
) noexcept nogil:
    cdef double tokens = minimum(computed_tokens + new_tokens + lookahead_tokens, max_model_len)
    cdef double blocks = tokens if block_size <= 0.0 else ceil(tokens / block_size)
    return maximum(blocks - held_blocks - cached_blocks, 0.0)


cdef inline double usable_prefix_hit_tokens(
    double prompt_len, double cached_tokens, double block_size
) noexcept nogil:
    cdef double tokens = minimum(cached_tokens, prompt_len - 1.0)
    if block_size <= 0.0:
        return tokens
    return trunc(tokens / block_size) * block_size


cdef inline double decode_growth_reserve(
    double max_new_tokens, double generated_tokens, double clip_tokens, double ratio
) noexcept nogil:
    return minimum(max_new_tokens - generated_tokens, clip_tokens) * ratio


cdef inline double orca_admission_accept(
    double reserved_slots, double request_max_tokens, double total_slots
) noexcept nogil:
    return 1.0 if reserved_slots + request_max_tokens <= total_slots else 0.0


cdef inline double prefill_step_tokens(
    double remaining_tokens, double budget_left, double threshold
) noexcept nogil:
    cdef double tokens = minimum(remaining_tokens, budget_left)
    if threshold <= 0.0:
        return tokens
    return minimum(tokens, threshold)


cdef inline double aligned_chunk_tokens(double remaining_tokens, double cap_tokens, double unit) noexcept nogil:
    if unit <= 0.0:
        return minimum(remaining_tokens, cap_tokens)
    if isnan(remaining_tokens) or (remaining_tokens <= cap_tokens and not isnan(unit)):
        return remaining_tokens
    return trunc(cap_tokens / unit) * unit


cdef inline double uncached_prefill_chunks(
    double prompt_len, double cached_tokens, double chunk_size
) noexcept nogil:
    if chunk_size <= 0.0:
        return 1.0
    return ceil((prompt_len - cached_tokens) / chunk_size)


cdef inline double response_ratio(double waited_tokens, double uncached_tokens) noexcept nogil:
    if uncached_tokens <= 0.0:
        return 1.0 + waited_tokens
    return 1.0 + waited_tokens / uncached_tokens


cdef inline double time_to_first_token(
    double queue_s, double transfer_s, double uncached_tokens, double prefill_throughput_tps
) noexcept nogil:
    return queue_s + transfer_s + streaming_first_token_latency(uncached_tokens, prefill_throughput_tps)


cdef inline double time_per_output_token(
    double end_to_end_s, double ttft_s, double output_tokens
) noexcept nogil:
    if output_tokens <= 1.0:
        return 0.0
    return (end_to_end_s - ttft_s) / (output_tokens - 1.0)


cdef inline double concurrency(double arrival_rate, double latency_s) noexcept nogil:
    return arrival_rate * latency_s
