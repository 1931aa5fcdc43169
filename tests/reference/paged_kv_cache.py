# A paged KV cache: what blocks cost to copy, share, fragment and branch, which to evict, longer contexts, by another
# route.
from math import prod


def page_table_lookup(_, page_table_entry):
    return page_table_entry


def cache_compaction_gain(*sizes):
    return prod(sizes)


def block_copy_cost(*sizes_and_bandwidth):
    *sizes, bandwidth_gbs = sizes_and_bandwidth
    return prod(sizes) / bandwidth_gbs / 500_000 if bandwidth_gbs > 0 else 0


def prefix_sharing_savings(shared_prefix_tokens, n_sequences, *sizes):
    if not n_sequences > 1:
        return 0
    unshared = 2 * shared_prefix_tokens * n_sequences * prod(sizes)
    return unshared - 2 * shared_prefix_tokens * prod(sizes)


def speculative_branch_memory(*sizes):
    return prod(sizes) * 2


def cache_eviction_lru_score(last_access_step, current_step):
    return -last_access_step + current_step


def cache_eviction_beladys_score(next_access_step, current_step):
    wait = next_access_step - current_step
    return wait if wait >= 0 else 1_000_000_000


def cache_hit_latency_saving(prompt_tokens, prefill_throughput_tps):
    return prompt_tokens * (1 / prefill_throughput_tps) if prefill_throughput_tps > 0 else 0


def dynamic_ntk_rope_scale(seq_len, base_context, alpha):
    if base_context > 0 and seq_len > base_context:
        return seq_len**alpha / base_context**alpha
    return 1


def context_extension_factor(original_max_len, target_max_len):
    return target_max_len * (1 / original_max_len) if original_max_len > 0 else 1
