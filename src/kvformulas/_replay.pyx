# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The engine under `kvformulas.replay`: rows become compact arrays, and one policy replays them without the GIL.

Nothing here says what a bad row is or how results look; that is replay.py.
"""
import os

from cpython cimport array
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memset, strncmp
from kvformulas.kernels.paged_kv_cache cimport cache_eviction_beladys_score, cache_eviction_lru_score

__all__ = ["POLICIES", "Reader", "replay"]

POLICIES = ("fifo", "lru", "lfu", "belady")

ctypedef unsigned long long uint64

cdef enum:
    FIFO, LRU, LFU, BELADY

cdef enum:
    BLOCK_TOKENS = 512
    LIMIT = 1_000_000_000  # requests, and accesses: no distance to a next use reaches the score of "never again"
    FIRST_TABLE = 1024

cdef uint32_t NOTHING = 0xFFFFFFFF


# Reading: rows to arrays


cdef struct Hash:
    uint64 value
    uint32_t block


cdef int compare_hashes(const void *a, const void *b) noexcept nogil:
    cdef uint64 x = (<const Hash *> a).value, y = (<const Hash *> b).value
    return (x > y) - (x < y)


cdef inline const char *space(const char *p) noexcept nogil:
    while p[0] == c' ' or p[0] == c'\n' or p[0] == c'\r' or p[0] == c'\t':
        p += 1
    return p


cdef inline const char *whole(const char *p, uint64 *value) noexcept nogil:
    """Read a whole number of at most 18 digits; NULL for anything else."""
    cdef const char *start = p
    cdef uint64 total = 0
    while c'0' <= p[0] <= c'9':
        total = 10 * total + <uint64> (p[0] - c'0')
        p += 1
    value[0] = total
    if p == start or p - start > 18 or (start[0] == c'0' and p - start > 1):
        return NULL
    return p


cdef class Reader:
    """Rows of a trace, turned into arrays as they come."""

    cdef array.array blocks, ends, lengths
    cdef array.array ids, hashes, table  # of this row; of each block; open addressing: hash to block, NOTHING if free
    cdef uint64 seed
    cdef readonly double timestamp
    cdef readonly uint64 input_tokens, ceiling_block_hits, ceiling_token_hits, overfull

    def __cinit__(self):
        self.blocks, self.ends, self.lengths = array.array("I"), array.array("I"), array.array("I")
        self.hashes, self.ids = array.array("Q"), array.array("Q", bytes(8 * 64))
        self.table = array.array("I", b"\xff" * (4 * FIRST_TABLE))
        # A secret seed: no trace can be made to collide.
        self.seed = int.from_bytes(os.urandom(8), "little")

    def add_plain(self, bytes line not None):
        """Take a row in the usual form, without other fields, escapes or fractions; return whether it was one."""
        cdef const char *start = line  # ends with a NUL, which is part of no row
        cdef const char *p = space(start)
        cdef uint64 timestamp = 0, input_length = 0, ignored
        cdef Py_ssize_t n_ids = 0
        cdef int seen = 0, field
        if p[0] != c'{':
            return False
        while True:
            p = space(p + 1)
            if strncmp(p, b'"hash_ids"', 10) == 0:
                field, p = 1, p + 10
            elif strncmp(p, b'"timestamp"', 11) == 0:
                field, p = 2, p + 11
            elif strncmp(p, b'"input_length"', 14) == 0:
                field, p = 4, p + 14
            elif strncmp(p, b'"output_length"', 15) == 0:
                field, p = 8, p + 15
            else:
                return False
            if seen & field:
                return False
            seen |= field
            p = space(p)
            if p[0] != c':':
                return False
            p = space(p + 1)
            if field == 1:
                if p[0] != c'[':
                    return False
                p = space(p + 1)
                if p[0] != c']':
                    while True:
                        if n_ids == len(self.ids):
                            array.resize(self.ids, 2 * n_ids)
                        p = whole(p, &self.ids.data.as_ulonglongs[n_ids])
                        if p == NULL:
                            return False
                        n_ids += 1
                        p = space(p)
                        if p[0] != c',':
                            break
                        p = space(p + 1)
                    if p[0] != c']':
                        return False
                p += 1
            else:
                p = whole(p, &timestamp if field == 2 else &input_length if field == 4 else &ignored)
                if p == NULL:
                    return False
            p = space(p)
            if p[0] != c',':
                break
        if p[0] != c'}' or seen != 15 or input_length > NOTHING or timestamp < self.timestamp:
            return False
        if space(p + 1) - start != len(line):
            return False
        self._add(timestamp, input_length, n_ids)
        return True

    def add(self, double timestamp, uint32_t input_length, list hash_ids not None):
        """Take a row whose fields have been checked."""
        cdef Py_ssize_t i
        if len(hash_ids) > len(self.ids):
            array.resize(self.ids, len(hash_ids))
        for i in range(len(hash_ids)):
            self.ids.data.as_ulonglongs[i] = hash_ids[i]
        self._add(timestamp, input_length, len(hash_ids))

    cdef int _add(self, double timestamp, uint64 input_length, Py_ssize_t n_ids) except -1:
        cdef Py_ssize_t i, known, leading = n_ids, first = len(self.blocks)
        if first + n_ids >= LIMIT or len(self.ends) + 1 >= LIMIT:
            raise ValueError(f"a trace must have fewer than {LIMIT:,} requests and {LIMIT:,} block accesses")
        array.resize_smart(self.blocks, first + n_ids)
        for i in range(n_ids):
            known = len(self.hashes)
            self.blocks.data.as_uints[first + i] = self._block(self.ids.data.as_ulonglongs[i])
            if leading == n_ids and len(self.hashes) > known:
                leading = i
        array.resize_smart(self.ends, len(self.ends) + 1)
        self.ends.data.as_uints[len(self.ends) - 1] = <uint32_t> (first + n_ids)
        array.resize_smart(self.lengths, len(self.lengths) + 1)
        self.lengths.data.as_uints[len(self.lengths) - 1] = <uint32_t> input_length
        self.timestamp = timestamp
        self.input_tokens += input_length
        self.ceiling_block_hits += leading
        self.ceiling_token_hits += min(<uint64> leading * BLOCK_TOKENS, input_length)
        self.overfull += <uint64> n_ids * BLOCK_TOKENS >= input_length + BLOCK_TOKENS
        return 0

    cdef uint32_t _block(self, uint64 value) except? 0xFFFFFFFF:
        """Find the block of a hash, or give it the next one."""
        cdef uint32_t *table = self.table.data.as_uints
        cdef uint64 *hashes = self.hashes.data.as_ulonglongs
        cdef Py_ssize_t place = self._place(value), n = len(self.hashes)
        while table[place] != NOTHING:
            if hashes[table[place]] == value:
                return table[place]
            place = (place + 1) & (len(self.table) - 1)
        table[place] = <uint32_t> n
        array.resize_smart(self.hashes, n + 1)
        self.hashes.data.as_ulonglongs[n] = value
        if 2 * n >= len(self.table):
            self._grow()
        return <uint32_t> n

    cdef inline Py_ssize_t _place(self, uint64 value) noexcept:
        # The finaliser of MurmurHash3.
        value ^= self.seed
        value = (value ^ (value >> 33)) * 0xFF51AFD7ED558CCDU
        value = (value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53U
        return <Py_ssize_t> ((value ^ (value >> 33)) & <uint64> (len(self.table) - 1))

    cdef int _grow(self) except -1:
        cdef Py_ssize_t place
        cdef uint32_t block
        array.resize(self.table, 4 * len(self.table))
        memset(self.table.data.as_uints, 0xFF, 4 * len(self.table))
        for block in range(<uint32_t> len(self.hashes)):
            place = self._place(self.hashes.data.as_ulonglongs[block])
            while self.table.data.as_uints[place] != NOTHING:
                place = (place + 1) & (len(self.table) - 1)
            self.table.data.as_uints[place] = block
        return 0

    def finish(self):
        """Number the blocks by their hash ids and return what `replay` takes, and how many blocks there are."""
        cdef Py_ssize_t n = len(self.hashes), i
        cdef uint64 *hashes = self.hashes.data.as_ulonglongs
        cdef uint32_t *rank = self.table.data.as_uints
        cdef uint32_t *blocks = self.blocks.data.as_uints
        cdef Hash *order = NULL
        for i in range(1, n):
            if hashes[i] < hashes[i - 1]:
                break
        else:
            n = 0
        if n:
            order = <Hash *> malloc(n * sizeof(Hash))
            if order == NULL:
                raise MemoryError
            for i in range(n):
                order[i] = Hash(hashes[i], <uint32_t> i)
            qsort(order, n, sizeof(Hash), compare_hashes)
            for i in range(n):
                rank[order[i].block] = <uint32_t> i
            free(order)
            for i in range(len(self.blocks)):
                blocks[i] = rank[blocks[i]]
        for data in (self.blocks, self.ends, self.lengths):
            array.resize(data, len(data))
        return self.blocks, self._next_uses(), self.ends, self.lengths, len(self.hashes)

    cdef array.array _next_uses(self):
        """Return for each access the next request that uses its block, or NOTHING."""
        cdef array.array next_uses = array.clone(self.blocks, len(self.blocks), zero=False)
        cdef uint32_t *later = self.table.data.as_uints
        cdef uint32_t *blocks = self.blocks.data.as_uints
        cdef uint32_t start, end = <uint32_t> len(self.blocks), i
        cdef Py_ssize_t request
        memset(later, 0xFF, 4 * len(self.table))
        for request in range(len(self.ends) - 1, -1, -1):
            start = self.ends.data.as_uints[request - 1] if request else 0
            for i in range(start, end):
                next_uses.data.as_uints[i] = later[blocks[i]]
            for i in range(start, end):
                later[blocks[i]] = <uint32_t> request
            end = start
        return next_uses


# Replaying: one policy, one capacity


cdef struct Block:
    uint32_t held  # 0: not cached; otherwise 1 and a further 1 for each cached child
    uint32_t parent  # the block before it in the request that inserted it, or NOTHING
    uint32_t named  # 1 and the last request that named it
    uint32_t place  # 1 and its place among the leaves, or 0
    uint32_t step  # what the policy's score reads: the request of the last access, of the insertion or of the next use
    uint32_t uses  # accesses so far


cdef struct Leaf:
    uint32_t block, step, uses


cdef struct Cache:
    Block *blocks
    Leaf *leaves  # a heap: whom the policy evicts first is at 0
    uint32_t n_leaves
    int policy
    double now


cdef inline double score(int policy, uint32_t step, double now) noexcept nogil:
    if policy == BELADY:
        return cache_eviction_beladys_score(-1.0 if step == NOTHING else <double> step, now)
    return cache_eviction_lru_score(<double> step, now)


cdef inline bint goes_before(const Cache *cache, Leaf a, Leaf b) noexcept nogil:
    cdef double x, y
    if cache.policy == LFU and a.uses != b.uses:
        return a.uses < b.uses
    x, y = score(cache.policy, a.step, cache.now), score(cache.policy, b.step, cache.now)
    return x > y or (x == y and a.block > b.block)


cdef inline bint no_nearer(const Cache *cache, const Block *block, Leaf victim) noexcept nogil:
    return score(BELADY, block.step, cache.now) >= score(BELADY, victim.step, cache.now)


cdef inline void put(Cache *cache, uint32_t place, Leaf leaf) noexcept nogil:
    cache.leaves[place] = leaf
    cache.blocks[leaf.block].place = place + 1


cdef inline void sift_up(Cache *cache, uint32_t place, Leaf leaf) noexcept nogil:
    cdef uint32_t above
    while place > 0:
        above = (place - 1) // 2
        if not goes_before(cache, leaf, cache.leaves[above]):
            break
        put(cache, place, cache.leaves[above])
        place = above
    put(cache, place, leaf)


cdef inline void sift_down(Cache *cache, uint32_t place, Leaf leaf) noexcept nogil:
    cdef uint32_t below
    while True:
        below = 2 * place + 1
        if below >= cache.n_leaves:
            break
        if below + 1 < cache.n_leaves and goes_before(cache, cache.leaves[below + 1], cache.leaves[below]):
            below += 1
        if not goes_before(cache, cache.leaves[below], leaf):
            break
        put(cache, place, cache.leaves[below])
        place = below
    put(cache, place, leaf)


cdef inline Leaf as_leaf(const Cache *cache, uint32_t block) noexcept nogil:
    return Leaf(block, cache.blocks[block].step, cache.blocks[block].uses)


cdef inline void add_leaf(Cache *cache, uint32_t block) noexcept nogil:
    cache.n_leaves += 1
    sift_up(cache, cache.n_leaves - 1, as_leaf(cache, block))


cdef inline void remove_leaf(Cache *cache, uint32_t block) noexcept nogil:
    cdef uint32_t place = cache.blocks[block].place - 1
    cdef Leaf last
    cache.blocks[block].place = 0
    cache.n_leaves -= 1
    if place == cache.n_leaves:
        return
    last = cache.leaves[cache.n_leaves]
    if place > 0 and goes_before(cache, last, cache.leaves[(place - 1) // 2]):
        sift_up(cache, place, last)
    else:
        sift_down(cache, place, last)


cdef inline void evict(Cache *cache, uint32_t request) noexcept nogil:
    cdef Block *victim = &cache.blocks[cache.leaves[0].block]
    cdef uint32_t parent = victim.parent
    victim.held = 0
    if parent != NOTHING:
        cache.blocks[parent].held -= 1
        if cache.blocks[parent].held == 1 and cache.blocks[parent].named != request + 1:
            victim.place = 0
            sift_down(cache, 0, as_leaf(cache, parent))
            return
    remove_leaf(cache, cache.leaves[0].block)


cdef int check(
    array.array blocks, array.array next_uses, array.array ends, array.array lengths, uint32_t n_blocks
) except -1:
    """Refuse arrays that would lead outside of others."""
    cdef array.array values
    cdef Py_ssize_t i
    cdef uint32_t last = 0, largest = 0
    cdef bint good = len(next_uses) == len(blocks) and len(lengths) == len(ends)
    for values in (blocks, next_uses, ends, lengths):
        good &= values.ob_descr.typecode == c'I'
    if good:
        for i in range(len(ends)):
            good &= ends.data.as_uints[i] >= last
            last = ends.data.as_uints[i]
        for i in range(len(blocks)):
            largest = max(largest, blocks.data.as_uints[i])
    if not good or last != len(blocks) or (last > 0 and largest >= n_blocks):
        raise ValueError("the arrays of a trace must fit each other")
    return 0


def replay(
    array.array blocks not None,
    array.array next_uses not None,
    array.array ends not None,
    array.array lengths not None,
    uint32_t n_blocks,
    int policy,
    uint32_t capacity,
    bytearray stop not None,
):
    """Replay a trace and return the block hits, the token hits and the evictions; end early when `stop[0]` is set."""
    cdef Cache cache
    cdef Block *block
    cdef uint32_t request, start, end = 0, i, previous, cached = 0, n_requests = <uint32_t> len(ends)
    cdef Py_ssize_t hits
    cdef int64_t block_hits = 0, token_hits = 0, evictions = 0
    cdef const uint32_t *access = blocks.data.as_uints
    cdef const char *stopped = stop
    _held = [memoryview(values) for values in (blocks, next_uses, ends, lengths, stop)]  # nobody may resize them
    check(blocks, next_uses, ends, lengths, n_blocks)
    capacity = min(capacity, n_blocks)
    cache.policy, cache.n_leaves = policy, 0
    cache.blocks = <Block *> calloc(<size_t> n_blocks + 1, sizeof(Block))
    cache.leaves = <Leaf *> malloc((<size_t> capacity + 1) * sizeof(Leaf))
    if cache.blocks == NULL or cache.leaves == NULL:
        free(cache.blocks)
        free(cache.leaves)
        raise MemoryError
    with nogil:
        for request in range(n_requests):
            if stopped[0]:
                break
            cache.now = request
            start, end = end, ends.data.as_uints[request]

            hits = -1
            for i in range(start, end):
                block = &cache.blocks[access[i]]
                block.named = request + 1
                if policy == BELADY:
                    block.step = next_uses.data.as_uints[i]
                if block.place:
                    remove_leaf(&cache, access[i])
                if block.held == 0 and hits < 0:
                    hits = i - start
            if hits < 0:
                hits = end - start
            block_hits += hits
            token_hits += min(hits * BLOCK_TOKENS, <Py_ssize_t> lengths.data.as_uints[request])

            previous = NOTHING
            for i in range(start, end):
                block = &cache.blocks[access[i]]
                block.uses += 1
                if policy == LRU or policy == LFU:
                    block.step = request
                if block.held == 0:
                    if cached == capacity:
                        if cache.n_leaves == 0 or (policy == BELADY and no_nearer(&cache, block, cache.leaves[0])):
                            break
                        evict(&cache, request)
                        evictions += 1
                        cached -= 1
                    block.held = 1
                    cached += 1
                    block.parent = previous
                    if previous != NOTHING:
                        cache.blocks[previous].held += 1
                    if policy == FIFO:
                        block.step = request
                previous = access[i]

            for i in range(start, end):
                if cache.blocks[access[i]].held == 1 and cache.blocks[access[i]].place == 0:
                    add_leaf(&cache, access[i])
        free(cache.blocks)
        free(cache.leaves)
    return block_hits, token_hits, evictions
