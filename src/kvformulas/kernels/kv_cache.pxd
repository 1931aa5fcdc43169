# cython: cdivision=True
# Memory, use and eviction of a contiguous KV cache, shared prefixes, and the error of an INT8 code.
from libc.math cimport fabs, rint

from kvformulas.kernels.rules cimport at_most_one, blocks_covering, minimum


cdef inline double kv_cache_memory_per_layer(
    double batch_size, double seq_len, double n_heads, double head_dim, double dtype_bytes
) noexcept nogil:
    return 2.0 * batch_size * seq_len * n_heads * head_dim * dtype_bytes


cdef inline double kv_cache_total_memory(double per_layer_bytes, double n_layers) noexcept nogil:
    return per_layer_bytes * n_layers


cdef inline double kv_cache_utilization(double cached_tokens, double max_tokens) noexcept nogil:
    if max_tokens <= 0.0:
        return 0.0
    return at_most_one(cached_tokens / max_tokens)


cdef inline double kv_eviction_score_lru(double last_access_time, double current_time) noexcept nogil:
    return current_time - last_access_time


cdef inline double kv_eviction_score_h2o(double attention_sum, double recency_weight) noexcept nogil:
    return attention_sum * recency_weight


cdef inline double radix_cache_shared_prefix_len(
    double prefix_a_len, double prefix_b_len, double match_len
) noexcept nogil:
    return minimum(match_len, minimum(prefix_a_len, prefix_b_len))


cdef inline double prefix_cache_hit_bytes(
    double shared_prefix_len, double n_heads, double head_dim, double n_layers, double dtype_bytes
) noexcept nogil:
    return 2.0 * shared_prefix_len * n_heads * head_dim * n_layers * dtype_bytes


cdef inline double kv_quantization_error(double value, double scale, double zero_point) noexcept nogil:
    cdef double code
    if scale <= 0.0:
        return 0.0
    code = rint(value / scale + zero_point)
    if code < -128.0:
        code = -128.0
    if code > 127.0:
        code = 127.0
    return fabs(value - (code - zero_point) * scale)


cdef inline double paged_attention_block_count(double seq_len, double block_size) noexcept nogil:
    if block_size <= 0.0:
        return seq_len
    return blocks_covering(seq_len, block_size)


cdef inline double incremental_decode_kv_append(double current_len) noexcept nogil:
    return current_len + 1.0
