# cython: cdivision=True
# A paged KV cache: what blocks cost to copy, share, fragment and branch, which to evict, and longer contexts.
from kvformulas.kernels.kv_cache cimport kv_eviction_score_lru
from kvformulas.kernels.rules cimport power_of_rounded, quotient_error


cdef inline double page_table_lookup(double virtual_block_id, double page_table_entry) noexcept nogil:
    return page_table_entry


cdef inline double cache_compaction_gain(
    double fragmented_blocks, double block_size_tokens, double dtype_bytes,
    double n_layers, double n_heads, double head_dim
) noexcept nogil:
    return 0.5 * fragmented_blocks * (2.0 * block_size_tokens * dtype_bytes * n_layers * n_heads * head_dim)


cdef inline double block_copy_cost(
    double block_size_tokens, double n_layers, double n_heads, double head_dim,
    double dtype_bytes, double bandwidth_gbs
) noexcept nogil:
    if bandwidth_gbs <= 0.0:
        return 0.0
    # 1 GB/s is 10**6 bytes a millisecond: one factor, so one rounding less than 10**9 and 10**3.
    return 2.0 * block_size_tokens * n_layers * n_heads * head_dim * dtype_bytes / (bandwidth_gbs * 1e6)


cdef inline double prefix_sharing_savings(
    double shared_prefix_tokens, double n_sequences, double n_layers,
    double n_heads, double head_dim, double dtype_bytes
) noexcept nogil:
    if n_sequences <= 1.0:
        return 0.0
    return (n_sequences - 1.0) * (2.0 * shared_prefix_tokens * n_layers * n_heads * head_dim * dtype_bytes)


cdef inline double speculative_branch_memory(
    double n_branches, double speculation_depth, double n_layers,
    double n_heads, double head_dim, double dtype_bytes
) noexcept nogil:
    return 2.0 * n_branches * speculation_depth * n_layers * n_heads * head_dim * dtype_bytes


cdef inline double cache_eviction_lru_score(double last_access_step, double current_step) noexcept nogil:
    return kv_eviction_score_lru(last_access_step, current_step)


cdef inline double cache_eviction_beladys_score(double next_access_step, double current_step) noexcept nogil:
    if next_access_step < current_step:
        return 1e9
    return next_access_step - current_step


cdef inline double cache_hit_latency_saving(double prompt_tokens, double prefill_throughput_tps) noexcept nogil:
    if prefill_throughput_tps <= 0.0:
        return 0.0
    return prompt_tokens / prefill_throughput_tps


cdef inline double dynamic_ntk_rope_scale(double seq_len, double base_context, double alpha) noexcept nogil:
    cdef double ratio
    if base_context <= 0.0 or seq_len <= base_context:
        return 1.0
    ratio = seq_len / base_context
    return power_of_rounded(ratio, quotient_error(seq_len, base_context, ratio), alpha)


cdef inline double context_extension_factor(double original_max_len, double target_max_len) noexcept nogil:
    if original_max_len <= 0.0:
        return 1.0
    return target_max_len / original_max_len
