# Any real number: what has __float__ or __index__.
from typing import SupportsFloat, SupportsIndex, TypeAlias

_Real: TypeAlias = SupportsFloat | SupportsIndex

__all__ = [
    "page_table_lookup",
    "cache_compaction_gain",
    "block_copy_cost",
    "prefix_sharing_savings",
    "speculative_branch_memory",
    "cache_eviction_lru_score",
    "cache_eviction_beladys_score",
    "cache_hit_latency_saving",
    "dynamic_ntk_rope_scale",
    "context_extension_factor",
]

def page_table_lookup(virtual_block_id: _Real, page_table_entry: _Real) -> float: ...
def cache_compaction_gain(
    fragmented_blocks: _Real,
    block_size_tokens: _Real,
    dtype_bytes: _Real,
    n_layers: _Real,
    n_heads: _Real,
    head_dim: _Real,
) -> float: ...
def block_copy_cost(
    block_size_tokens: _Real,
    n_layers: _Real,
    n_heads: _Real,
    head_dim: _Real,
    dtype_bytes: _Real,
    bandwidth_gbs: _Real,
) -> float: ...
def prefix_sharing_savings(
    shared_prefix_tokens: _Real,
    n_sequences: _Real,
    n_layers: _Real,
    n_heads: _Real,
    head_dim: _Real,
    dtype_bytes: _Real,
) -> float: ...
def speculative_branch_memory(
    n_branches: _Real,
    speculation_depth: _Real,
    n_layers: _Real,
    n_heads: _Real,
    head_dim: _Real,
    dtype_bytes: _Real,
) -> float: ...
def cache_eviction_lru_score(last_access_step: _Real, current_step: _Real) -> float: ...
def cache_eviction_beladys_score(next_access_step: _Real, current_step: _Real) -> float: ...
def cache_hit_latency_saving(prompt_tokens: _Real, prefill_throughput_tps: _Real) -> float: ...
def dynamic_ntk_rope_scale(seq_len: _Real, base_context: _Real, alpha: _Real) -> float: ...
def context_extension_factor(original_max_len: _Real, target_max_len: _Real) -> float: ...
