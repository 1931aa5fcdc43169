# Any real number: what has __float__ or __index__.
from typing import SupportsFloat, SupportsIndex, TypeAlias

_Real: TypeAlias = SupportsFloat | SupportsIndex

__all__ = [
    "rope_inverse_frequency",
    "ntk_rope_base",
    "dynamic_ntk_rope_base",
    "llama3_rope_frequency",
    "yarn_attention_factor",
    "yarn_correction_dim",
    "yarn_ramp",
    "longrope_attention_factor",
]

def rope_inverse_frequency(base: _Real, pair_index: _Real, head_dim: _Real) -> float: ...
def ntk_rope_base(base: _Real, alpha: _Real, head_dim: _Real) -> float: ...
def dynamic_ntk_rope_base(
    base: _Real, factor: _Real, seq_len: _Real, max_position: _Real, head_dim: _Real
) -> float: ...
def llama3_rope_frequency(
    inv_freq: _Real, factor: _Real, low_freq_factor: _Real, high_freq_factor: _Real, original_max_position: _Real
) -> float: ...
def yarn_attention_factor(scale: _Real) -> float: ...
def yarn_correction_dim(rotations: _Real, head_dim: _Real, base: _Real, max_position: _Real) -> float: ...
def yarn_ramp(pair_index: _Real, low: _Real, high: _Real) -> float: ...
def longrope_attention_factor(scale: _Real, original_max_position: _Real) -> float: ...
