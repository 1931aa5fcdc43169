"""How a paged engine lays a model's caches out in blocks: vLLM's rules, on the formulas.

Followed is `vllm/v1/core/kv_cache_utils.py`. Layers that need the same token slots form one group, whose block holds a
page of each. Where they differ, all pages are made equally large (blocks of smaller pages hold more tokens; a recurrent
state takes a whole page, and attention's block grows until one holds a state), and layers are dealt into groups of
equally many, so that a block of any group has one size. Where pages do not divide each other, groups are packed: the
largest group's block is every group's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kvformulas.attention_layouts import sliding_window_blocks, sliding_window_tokens
from kvformulas.kv_cache import kv_cache_total_memory, paged_attention_block_count

ALIGNMENT = 16  # tokens; attention kernels take blocks of a multiple
COMPRESSED_BLOCK = 256  # tokens; what an engine needs for entries of 128 tokens (vLLM's block for DeepSeek-V4)


@dataclass(frozen=True, slots=True)
class Spec:
    """The cache of one layer: what slots it needs, and how large one is."""

    slots: str  # "full", "sliding", "chunked" or "state"
    page: float  # bytes of a block of `block` tokens, or of a state
    block: int = 0
    window: int = 0


@dataclass(frozen=True, slots=True)
class Pool:
    """Layers that are given blocks together."""

    spec: Spec
    layers: tuple[int, ...]
    pages: tuple[float, ...]

    def blocks(self, context: int, max_batched_tokens: int) -> float:
        """Return how many blocks a request takes at the context, by vLLM's max_memory_usage_bytes."""
        spec = self.spec
        if spec.slots == "state":
            return 1.0
        if spec.slots == "sliding":
            return sliding_window_blocks(context, spec.window, max_batched_tokens, spec.block)
        if spec.slots == "chunked":
            tokens = sliding_window_tokens(context, spec.window + max_batched_tokens)
            return paged_attention_block_count(tokens, spec.block)
        return paged_attention_block_count(context, spec.block)


@dataclass(frozen=True, slots=True)
class Layout:
    """The pools of a model, and why they are laid out so."""

    pools: tuple[Pool, ...]
    equal_pages: bool
    notes: tuple[str, ...] = ()

    def stage(self, layers: range) -> "Layout":
        """Return what of it a pipeline stage with these layers holds."""
        pools = []
        for pool in self.pools:
            kept = [(layer, page) for layer, page in zip(pool.layers, pool.pages, strict=True) if layer in layers]
            if kept:
                pools.append(replace(pool, layers=tuple(i for i, _ in kept), pages=tuple(page for _, page in kept)))
        return replace(self, pools=tuple(pools))

    @property
    def block_bytes(self) -> float:
        """The bytes of one block over all layers: that of the largest pool."""
        return max((sum(pool.pages) for pool in self.pools), default=0.0)

    @property
    def block_tokens(self) -> int:
        """The tokens of the smallest attention block."""
        return min((pool.spec.block for pool in self.pools if pool.spec.slots != "state"), default=0)

    def blocks_per_request(self, context: int, max_batched_tokens: int) -> float:
        """Return the blocks of all pools that a request takes."""
        return sum(pool.blocks(context, max_batched_tokens) for pool in self.pools)

    def request_bytes(self, context: int, max_batched_tokens: int) -> float:
        """Return the bytes of those blocks."""
        return kv_cache_total_memory(self.block_bytes, self.blocks_per_request(context, max_batched_tokens))


def lay_out(caches: Sequence[tuple[int, Spec]], *, block_size: int, smallest_ratio: int = 0) -> Layout:
    """Deal the layers' caches into pools. A spec's page is given for one token, or for a state."""
    if not caches:
        return Layout((), True)
    block, notes = block_size, []
    if smallest_ratio and block < COMPRESSED_BLOCK:
        block = COMPRESSED_BLOCK
        notes.append(f"Blocks of {block} tokens: compressed entries need them.")
    states = [spec.page for _, spec in caches if spec.slots == "state"]
    tokens = [spec.page for _, spec in caches if spec.slots != "state"]
    if states and tokens:
        aligned = kv_cache_total_memory(max(tokens), ALIGNMENT)
        needed = int(paged_attention_block_count(max(states), aligned)) * ALIGNMENT
        if needed > block:
            block = needed
            notes.append(f"Blocks of {block} tokens, so that a page of attention holds a recurrent state.")
    sized = [(layer, _in_blocks(spec, block, smallest_ratio)) for layer, spec in caches]
    if len({(spec.slots, spec.window) for _, spec in sized}) == 1:
        pages = tuple(spec.page for _, spec in sized)
        return Layout((Pool(sized[0][1], tuple(layer for layer, _ in sized), pages),), True, tuple(notes))
    page = max(spec.page for _, spec in sized)
    if not smallest_ratio and all(spec.slots == "state" or page % spec.page == 0 for _, spec in sized):
        return Layout(tuple(_equal(sized, page)), True, tuple(notes))
    notes.append("The layers' pages do not divide each other: groups are packed into blocks of the largest group.")
    return Layout(tuple(_packed(sized)), False, tuple(notes))


def _in_blocks(spec: Spec, block: int, smallest_ratio: int) -> Spec:
    if spec.slots == "state":
        return spec
    if smallest_ratio and spec.slots == "sliding":
        block //= smallest_ratio  # as many tokens as a compressed block has entries, so that pages match
    return replace(spec, page=kv_cache_total_memory(spec.page, block), block=block)


def _equal(sized: Sequence[tuple[int, Spec]], page: float) -> Iterable[Pool]:
    """Make all pages equally large and deal layers into pools of equally many (vLLM's uniform page size)."""
    kinds: dict[Spec, list[int]] = {}
    for layer, spec in sized:
        larger = spec if spec.slots == "state" else replace(spec, block=spec.block * int(page // spec.page))
        kinds.setdefault(replace(larger, page=page), []).append(layer)
    fewest, most = min(map(len, kinds.values())), max(map(len, kinds.values()))
    size = most if most < fewest * 1.5 else fewest
    for spec, layers in kinds.items():
        yield from _dealt(spec, layers, [page] * len(layers), int(paged_attention_block_count(len(layers), size)))


def _packed(sized: Sequence[tuple[int, Spec]]) -> Iterable[Pool]:
    """Deal layers of each kind into pools of about the bytes of the smallest kind."""
    kinds: dict[tuple[str, int], list[tuple[int, Spec]]] = {}
    for layer, spec in sized:
        kinds.setdefault((spec.slots, spec.window), []).append((layer, spec))
    least = min(sum(spec.page for _, spec in members) for members in kinds.values())
    for members in kinds.values():
        pages = [spec.page for _, spec in members]
        n_pools = int(paged_attention_block_count(sum(pages), least))
        yield from _dealt(members[0][1], [layer for layer, _ in members], pages, min(n_pools, len(members)))


def _dealt(spec: Spec, layers: Sequence[int], pages: Sequence[float], n_pools: int) -> Iterable[Pool]:
    for i in range(n_pools):
        yield Pool(spec, tuple(layers[i::n_pools]), tuple(pages[i::n_pools]))
