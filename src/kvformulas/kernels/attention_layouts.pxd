# cython: cdivision=True
# What a token costs by attention layout: full, latent, windowed, chunked, recurrent, quantised, and split over ranks.
from libc.math cimport ceil, fmod

from kvformulas.kernels.rules cimport maximum, minimum


cdef inline double attention_kv_bytes_per_token(
    double n_layers, double n_kv_heads, double k_head_dim, double v_head_dim, double dtype_bytes
) noexcept nogil:
    return n_layers * n_kv_heads * (k_head_dim + v_head_dim) * dtype_bytes


cdef inline double mla_kv_bytes_per_token(
    double n_layers, double kv_lora_rank, double qk_rope_head_dim, double dtype_bytes
) noexcept nogil:
    return n_layers * (kv_lora_rank + qk_rope_head_dim) * dtype_bytes


cdef inline double sliding_window_tokens(double seq_len, double window) noexcept nogil:
    if window <= 0.0:
        return seq_len
    return minimum(seq_len, window)


cdef inline double chunked_attention_tokens(double seq_len, double chunk) noexcept nogil:
    cdef double tokens
    if seq_len <= 0.0:
        return 0.0
    if chunk <= 0.0:
        return seq_len
    if chunk < 1.0:
        return fmod(seq_len - 1.0, chunk) + 1.0
    # The remainder of seq_len is exact; from 2**53 on seq_len - 1 is rounded, and its remainder any number.
    tokens = fmod(seq_len, chunk)
    return tokens + chunk if tokens < 1.0 <= seq_len else tokens


cdef inline double recurrent_state_bytes(
    double n_layers, double n_heads, double head_dim, double state_size, double dtype_bytes
) noexcept nogil:
    return n_layers * n_heads * head_dim * state_size * dtype_bytes


cdef inline double conv_state_bytes(
    double n_layers, double channels, double columns, double dtype_bytes
) noexcept nogil:
    return n_layers * channels * columns * dtype_bytes


cdef inline double quantized_head_bytes(
    double head_dim, double bits, double group_size, double scale_bytes
) noexcept nogil:
    cdef double groups = 1.0 if group_size <= 0.0 else ceil(head_dim / group_size)
    return head_dim * bits * 0.125 + groups * scale_bytes


cdef inline double kv_heads_per_rank(double n_kv_heads, double tensor_parallel) noexcept nogil:
    if tensor_parallel <= 0.0:
        return n_kv_heads
    return maximum(ceil(n_kv_heads / tensor_parallel), 1.0)


cdef inline double sliding_window_blocks(
    double seq_len, double window, double max_batched_tokens, double block_size
) noexcept nogil:
    cdef double tokens = minimum(window - 1.0 + max_batched_tokens, seq_len)
    if block_size <= 0.0:
        return tokens
    return ceil(tokens / block_size) + 1.0


cdef inline double block_waste_tokens(double seq_len, double block_size) noexcept nogil:
    cdef double last
    if block_size <= 0.0:
        return 0.0
    # What the last block holds is exact; near 2**53 the tokens of all blocks are rounded.
    last = fmod(seq_len, block_size)
    return (block_size if last > 0.0 else 0.0) - last + (block_size - block_size)


cdef inline double max_concurrency(double total_blocks, double blocks_per_request) noexcept nogil:
    if blocks_per_request <= 0.0:
        return 0.0
    return total_blocks / blocks_per_request
