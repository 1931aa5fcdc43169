# Any real number: what has __float__ or __index__.
from typing import SupportsFloat, SupportsIndex, TypeAlias

_Real: TypeAlias = SupportsFloat | SupportsIndex

__all__ = ["kv_cache_memory_per_layer", "kv_cache_utilization"]

def kv_cache_memory_per_layer(
    batch_size: _Real, seq_len: _Real, n_heads: _Real, head_dim: _Real, dtype_bytes: _Real
) -> float: ...
def kv_cache_utilization(cached_tokens: _Real, max_tokens: _Real) -> float: ...
