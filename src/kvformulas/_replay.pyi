# The engine under kvformulas.replay; private, as its module's name says.
from array import array
from typing import Final, final

__all__ = ["POLICIES", "Reader", "replay"]

POLICIES: Final[tuple[str, ...]]

@final
class Reader:
    @property
    def timestamp(self) -> float: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def ceiling_block_hits(self) -> int: ...
    @property
    def ceiling_token_hits(self) -> int: ...
    @property
    def overfull(self) -> int: ...
    def add_plain(self, line: bytes) -> bool: ...
    def add(self, timestamp: float, input_length: int, hash_ids: list[int]) -> None: ...
    def finish(self) -> tuple[array[int], array[int], array[int], array[int], int]: ...

def replay(
    blocks: array[int],
    next_uses: array[int],
    ends: array[int],
    lengths: array[int],
    n_blocks: int,
    policy: int,
    capacity: int,
    stop: bytearray,
) -> tuple[int, int, int]: ...
