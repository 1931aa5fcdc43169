# Memory, use and eviction of a contiguous KV cache, shared prefixes, and the error of an INT8 code: the definitions.
# ruff: noqa: ARG001  a definition takes the context and the contract's arguments, whether it reads them or not
from oracle.context import least, truncated, unknown


def kv_cache_memory_per_layer(mp, batch_size, seq_len, n_heads, head_dim, dtype_bytes):
    return 2 * batch_size * seq_len * n_heads * head_dim * dtype_bytes


def kv_cache_total_memory(mp, per_layer_bytes, n_layers):
    return per_layer_bytes * n_layers


def kv_cache_utilization(mp, cached_tokens, max_tokens):
    if max_tokens <= 0:
        return mp.zero
    return least(mp, mp.one, cached_tokens / max_tokens)


def kv_eviction_score_lru(mp, last_access_time, current_time):
    return current_time - last_access_time


def kv_eviction_score_h2o(mp, attention_sum, recency_weight):
    return attention_sum * recency_weight


def radix_cache_shared_prefix_len(mp, prefix_a_len, prefix_b_len, match_len):
    return least(mp, match_len, prefix_a_len, prefix_b_len)


def prefix_cache_hit_bytes(mp, shared_prefix_len, n_heads, head_dim, n_layers, dtype_bytes):
    return 2 * shared_prefix_len * n_heads * head_dim * n_layers * dtype_bytes


def kv_quantization_error(mp, value, scale, zero_point):
    if scale <= 0:
        return mp.zero
    code = value / scale + zero_point
    if unknown(code):
        return mp.nan
    code = min(max(mp.nint(code), mp.mpf(-128)), mp.mpf(127))
    return abs(value - (code - zero_point) * scale)


def paged_attention_block_count(mp, seq_len, block_size):
    if block_size <= 0:
        return seq_len
    return truncated(mp, (seq_len + block_size - 1) / block_size)


def incremental_decode_kv_append(mp, current_len):
    return current_len + 1


EXAMPLES = [
    (kv_cache_memory_per_layer, (1, 2048, 8, 128, 2), 8388608),
    (kv_cache_total_memory, (8388608, 28), 234881024),
    (kv_cache_utilization, (1, 2), 0.5),
    (kv_cache_utilization, (3, 2), 1),
    (kv_cache_utilization, (5, 0), 0),
    (kv_eviction_score_lru, (3, 10), 7),
    (kv_eviction_score_h2o, (0.5, 0.25), 0.125),
    (radix_cache_shared_prefix_len, (10, 15, 12), 10),
    (prefix_cache_hit_bytes, (2048, 8, 128, 28, 2), 234881024),
    (kv_quantization_error, (-1.375, 1, 0), 0.375),
    (kv_quantization_error, (200, 1, 0), 73),
    (kv_quantization_error, (-200, 1, 0), 72),
    (kv_quantization_error, (0.75, 0.5, 10), 0.25),
    (paged_attention_block_count, (2048, 16), 128),
    (paged_attention_block_count, (2049, 16), 129),
    (paged_attention_block_count, (1, 16), 1),
    (paged_attention_block_count, (0, 16), 0),
    (paged_attention_block_count, (7, 0), 7),
    (paged_attention_block_count, (1e19, 1), 1e19),
    (incremental_decode_kv_append, (41,), 42),
]
