# A second replay, to check the engine by: slow and plain, written from the semantics that the documentation states,
# with dictionaries and a scan over the leaves; nothing in it is shared with the package.
import bisect
from collections.abc import Sequence
from dataclasses import dataclass

BLOCK_TOKENS = 512
NEVER_AGAIN = 1e9


@dataclass(frozen=True)
class Request:
    input_length: int
    hash_ids: Sequence[int]


@dataclass
class Counts:
    block_hits: int = 0
    token_hits: int = 0
    evictions: int = 0


class Cache:
    """A prefix cache of so many blocks under one policy, replaying requests that are known in advance."""

    def __init__(self, requests: Sequence[Request], policy: str, capacity: int) -> None:
        self.requests, self.policy, self.capacity = requests, policy, capacity
        self.now = -1
        self.counts = Counts()
        self.parent: dict[int, int | None] = {}  # of each cached block: the one before it when it was inserted
        self.children: dict[int, set[int]] = {}
        self.leaves: set[int] = set()
        self.inserted: dict[int, int] = {}
        self.last_access: dict[int, int] = {}
        self.accesses: dict[int, int] = {}
        self.uses: dict[int, list[int]] = {}
        for index, request in enumerate(requests):
            for block in request.hash_ids:
                self.uses.setdefault(block, []).append(index)

    def distance(self, block: int) -> float:
        """How many requests it is to the next one that uses the block."""
        uses = self.uses[block]
        later = bisect.bisect_right(uses, self.now)
        return uses[later] - self.now if later < len(uses) else NEVER_AGAIN

    def rank(self, block: int) -> tuple[float, ...]:
        """The victim is whose rank is greatest."""
        if self.policy == "fifo":
            return (self.now - self.inserted[block], block)
        if self.policy == "lru":
            return (self.now - self.last_access[block], block)
        if self.policy == "lfu":
            return (-self.accesses[block], self.now - self.last_access[block], block)
        return (self.distance(block), block)

    def make_room(self, newcomer: int, hash_ids: Sequence[int]) -> bool:
        """Evict one block for the newcomer if the policy finds one; return whether it did."""
        victim = max(self.leaves.difference(hash_ids), key=self.rank, default=None)
        if victim is None or (self.policy == "belady" and self.distance(newcomer) >= self.distance(victim)):
            return False
        parent = self.parent.pop(victim)
        self.leaves.remove(victim)
        if parent is not None:
            self.children[parent].remove(victim)
            if not self.children[parent]:
                self.leaves.add(parent)
        self.counts.evictions += 1
        return True

    def step(self) -> Counts:
        """Replay the next request; return the counts so far."""
        self.now += 1
        request = self.requests[self.now]
        hits = 0
        while hits < len(request.hash_ids) and request.hash_ids[hits] in self.parent:
            hits += 1
        self.counts.block_hits += hits
        self.counts.token_hits += min(hits * BLOCK_TOKENS, request.input_length)

        before = None
        for block in request.hash_ids:
            self.accesses[block] = self.accesses.get(block, 0) + 1
            self.last_access[block] = self.now
            if block not in self.parent:
                if len(self.parent) == self.capacity and not self.make_room(block, request.hash_ids):
                    break
                self.parent[block], self.children[block] = before, set()
                self.inserted[block] = self.now
                self.leaves.add(block)
                if before is not None:
                    self.children[before].add(block)
                    self.leaves.discard(before)
            before = block
        return self.counts


def replay(requests: Sequence[Request], policy: str, capacity: int) -> Counts:
    cache = Cache(requests, policy, capacity)
    for _ in requests:
        cache.step()
    return cache.counts
