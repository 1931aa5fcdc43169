# Any real number: what has __float__ or __index__.
from typing import SupportsFloat, SupportsIndex, TypeAlias

_Real: TypeAlias = SupportsFloat | SupportsIndex

__all__ = [
    "watermark_reserved_blocks",
    "watermark_admission_accept",
    "new_blocks_needed",
    "usable_prefix_hit_tokens",
    "decode_growth_reserve",
    "orca_admission_accept",
    "prefill_step_tokens",
    "aligned_chunk_tokens",
    "uncached_prefill_chunks",
    "response_ratio",
    "time_to_first_token",
    "time_per_output_token",
    "concurrency",
]

def watermark_reserved_blocks(total_blocks: _Real, watermark: _Real) -> float: ...
def watermark_admission_accept(
    needed_blocks: _Real, free_blocks: _Real, reserved_blocks: _Real, total_blocks: _Real, watermark: _Real
) -> float: ...
def new_blocks_needed(
    computed_tokens: _Real,
    new_tokens: _Real,
    lookahead_tokens: _Real,
    max_model_len: _Real,
    block_size: _Real,
    held_blocks: _Real,
    cached_blocks: _Real,
) -> float: ...
def usable_prefix_hit_tokens(prompt_len: _Real, cached_tokens: _Real, block_size: _Real) -> float: ...
def decode_growth_reserve(
    max_new_tokens: _Real, generated_tokens: _Real, clip_tokens: _Real, ratio: _Real
) -> float: ...
def orca_admission_accept(reserved_slots: _Real, request_max_tokens: _Real, total_slots: _Real) -> float: ...
def prefill_step_tokens(remaining_tokens: _Real, budget_left: _Real, threshold: _Real) -> float: ...
def aligned_chunk_tokens(remaining_tokens: _Real, cap_tokens: _Real, unit: _Real) -> float: ...
def uncached_prefill_chunks(prompt_len: _Real, cached_tokens: _Real, chunk_size: _Real) -> float: ...
def response_ratio(waited_tokens: _Real, uncached_tokens: _Real) -> float: ...
def time_to_first_token(
    queue_s: _Real, transfer_s: _Real, uncached_tokens: _Real, prefill_throughput_tps: _Real
) -> float: ...
def time_per_output_token(end_to_end_s: _Real, ttft_s: _Real, output_tokens: _Real) -> float: ...
def concurrency(arrival_rate: _Real, latency_s: _Real) -> float: ...
