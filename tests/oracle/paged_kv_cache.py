# A paged KV cache: what blocks cost to copy, share, fragment and branch, which to evict, and longer contexts: the
# definitions.
# ruff: noqa: ARG001  a definition takes the context and the contract's arguments, whether it reads them or not
from oracle.context import power


def page_table_lookup(mp, virtual_block_id, page_table_entry):
    return page_table_entry


def cache_compaction_gain(mp, fragmented_blocks, block_size_tokens, dtype_bytes, n_layers, n_heads, head_dim):
    block_bytes = 2 * block_size_tokens * dtype_bytes * n_layers * n_heads * head_dim
    return fragmented_blocks * block_bytes / 2


def block_copy_cost(mp, block_size_tokens, n_layers, n_heads, head_dim, dtype_bytes, bandwidth_gbs):
    if bandwidth_gbs <= 0:
        return mp.zero
    block_bytes = 2 * block_size_tokens * n_layers * n_heads * head_dim * dtype_bytes
    seconds = block_bytes / (bandwidth_gbs * 10**9)
    return seconds * 10**3


def prefix_sharing_savings(mp, shared_prefix_tokens, n_sequences, n_layers, n_heads, head_dim, dtype_bytes):
    if n_sequences <= 1:
        return mp.zero
    prefix_bytes = 2 * shared_prefix_tokens * n_layers * n_heads * head_dim * dtype_bytes
    return (n_sequences - 1) * prefix_bytes


def speculative_branch_memory(mp, n_branches, speculation_depth, n_layers, n_heads, head_dim, dtype_bytes):
    return 2 * n_branches * speculation_depth * n_layers * n_heads * head_dim * dtype_bytes


def cache_eviction_lru_score(mp, last_access_step, current_step):
    return current_step - last_access_step


def cache_eviction_beladys_score(mp, next_access_step, current_step):
    if next_access_step < current_step:
        return mp.mpf(10**9)
    return next_access_step - current_step


def cache_hit_latency_saving(mp, prompt_tokens, prefill_throughput_tps):
    if prefill_throughput_tps <= 0:
        return mp.zero
    return prompt_tokens / prefill_throughput_tps


def dynamic_ntk_rope_scale(mp, seq_len, base_context, alpha):
    if base_context <= 0 or seq_len <= base_context:
        return mp.one
    return power(mp, seq_len / base_context, alpha)


def context_extension_factor(mp, original_max_len, target_max_len):
    if original_max_len <= 0:
        return mp.one
    return target_max_len / original_max_len


EXAMPLES = [
    (page_table_lookup, (3, 17), 17),
    (cache_compaction_gain, (10, 16, 2, 28, 8, 128), 9175040),
    (block_copy_cost, (16, 28, 8, 128, 2, 100), 0.01835008),
    (block_copy_cost, (16, 28, 8, 128, 2, 0), 0),
    (prefix_sharing_savings, (2048, 4, 28, 8, 128, 2), 704643072),
    (prefix_sharing_savings, (2048, 1, 28, 8, 128, 2), 0),
    (speculative_branch_memory, (4, 5, 28, 8, 128, 2), 2293760),
    (cache_eviction_lru_score, (3, 10), 7),
    (cache_eviction_beladys_score, (10, 3), 7),
    (cache_eviction_beladys_score, (3, 10), 1e9),
    (cache_hit_latency_saving, (512, 1024), 0.5),
    (cache_hit_latency_saving, (512, 0), 0),
    (dynamic_ntk_rope_scale, (8192, 2048, 1.5), 8),
    (dynamic_ntk_rope_scale, (2048, 2048, 1.5), 1),
    (dynamic_ntk_rope_scale, (2048, 0, 1.5), 1),
    (context_extension_factor, (4096, 32768), 8),
    (context_extension_factor, (0, 32768), 1),
]
