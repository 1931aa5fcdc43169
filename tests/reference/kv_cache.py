# Memory, use and eviction of a contiguous KV cache, shared prefixes, and the error of an INT8 code, by another route.
from math import prod

from reference.exact import distance_to_whole, whole_part


def kv_cache_memory_per_layer(*sizes):
    return prod(sizes) + prod(sizes)


def kv_cache_total_memory(per_layer_bytes, n_layers):
    return n_layers * per_layer_bytes


def kv_cache_utilization(cached_tokens, max_tokens):
    if max_tokens > 0:
        return 1 if cached_tokens >= max_tokens else cached_tokens / max_tokens
    return 0


def kv_eviction_score_lru(last_access_time, current_time):
    return -(last_access_time - current_time)


def kv_eviction_score_h2o(attention_sum, recency_weight):
    return recency_weight * attention_sum


def radix_cache_shared_prefix_len(*lengths):
    return sorted(lengths)[0]


def prefix_cache_hit_bytes(*sizes):
    return prod(sizes) + prod(sizes)


def kv_quantization_error(value, scale, zero_point):
    # The codes stand for an even grid of values: the error is the distance to the grid.
    if not scale > 0:
        return 0
    lowest, highest = (-128 - zero_point) * scale, (127 - zero_point) * scale
    if value < lowest:
        return lowest - value
    if value > highest:
        return value - highest
    return distance_to_whole(value / scale + zero_point) * scale


def paged_attention_block_count(seq_len, block_size):
    return whole_part(1 + (seq_len - 1) / block_size) if block_size > 0 else seq_len


def incremental_decode_kv_append(current_len):
    return 1 + current_len
