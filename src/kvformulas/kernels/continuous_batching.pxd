# cython: cdivision=True
# One iteration of a continuous-batching scheduler: admit, size, preempt, chunk, and the rates that it reports.
from libc.math cimport trunc

from kvformulas.kernels.paged_kv_cache cimport cache_hit_latency_saving
from kvformulas.kernels.rules cimport at_most_one, blocks_covering


cdef inline double admission_control_accept(
    double request_kv_tokens, double available_kv_tokens, double safety_margin
) noexcept nogil:
    return 1.0 if request_kv_tokens <= available_kv_tokens * (1.0 - safety_margin) else 0.0


cdef inline double iteration_level_batch_size(double available_kv_tokens, double avg_seq_remaining) noexcept nogil:
    if avg_seq_remaining <= 0.0:
        return 0.0
    return trunc(available_kv_tokens / avg_seq_remaining)


cdef inline double preemption_score(
    double seq_priority, double tokens_generated, double kv_cache_tokens
) noexcept nogil:
    cdef double restart_cost = seq_priority * (tokens_generated + 1.0)
    if restart_cost <= 0.0:
        return kv_cache_tokens
    return kv_cache_tokens / restart_cost


cdef inline double chunked_prefill_chunks(double prompt_len, double chunk_size) noexcept nogil:
    if chunk_size <= 0.0:
        return 1.0
    return blocks_covering(prompt_len, chunk_size)


cdef inline double decode_throughput_tokens(double batch_size, double decode_latency_ms) noexcept nogil:
    if decode_latency_ms <= 0.0:
        return 0.0
    return batch_size * 1000.0 / decode_latency_ms


cdef inline double streaming_first_token_latency(double prompt_len, double prefill_throughput_tps) noexcept nogil:
    return cache_hit_latency_saving(prompt_len, prefill_throughput_tps)


cdef inline double head_of_line_blocking_score(double longest_wait_ms, double avg_wait_ms) noexcept nogil:
    if avg_wait_ms <= 0.0:
        return 1.0
    return longest_wait_ms / avg_wait_ms


cdef inline double batching_efficiency(double actual_compute, double theoretical_max_compute) noexcept nogil:
    if theoretical_max_compute <= 0.0:
        return 0.0
    return at_most_one(actual_compute / theoretical_max_compute)


cdef inline double sequence_completion_fraction(double completed, double total_running) noexcept nogil:
    if total_running <= 0.0:
        return 0.0
    return completed / total_running


cdef inline double beam_memory_per_request(
    double beam_width, double max_seq_len, double n_layers, double n_heads, double head_dim, double dtype_bytes
) noexcept nogil:
    return beam_width * (2.0 * max_seq_len * n_layers * n_heads * head_dim * dtype_bytes)
