# cython: language_level=3, freethreading_compatible=True, cdivision=True
# distutils: language = c++
# One replica of a serving engine with continuous batching, simulated from its first request to its last without the
# GIL. What is computed, is computed by kernels from the installed kvformulas; what is here is the book-keeping.
from libc.math cimport INFINITY
from libcpp.deque cimport deque
from libcpp.vector cimport vector

from kvformulas cimport (
    admission_control_accept,
    block_copy_cost,
    cache_eviction_lru_score,
    chunked_prefill_chunks,
    incremental_decode_kv_append,
    kv_cache_memory_per_layer,
    kv_cache_total_memory,
    kv_cache_utilization,
    paged_attention_block_count,
    preemption_score,
    streaming_first_token_latency,
)

ctypedef long long whole

cdef enum State:
    COMING, WAITING, PREFILLING, DECODING, SERVED, TOO_LONG, TOO_LARGE

cdef enum:
    NOTHING = -1  # no block, no name

cdef struct Request:
    double arrival_ms, scheduled_ms, first_token_ms
    whole input_length, output_length, generated
    whole target, computed  # tokens whose keys and values it needs before it decodes, and has
    size_t first_name  # of its prompt's blocks, in Engine.names
    State state

cdef struct Block:
    int holders
    int name  # of the prompt prefix that it holds the end of
    whole last_access


cdef class Engine:
    """A replica: `requests` are rows (arrival_ms, input_length, output_length, names of the prompt's blocks)."""

    cdef vector[Request] requests
    cdef vector[int] names
    cdef vector[vector[int]] held  # by each request
    cdef vector[Block] blocks
    cdef vector[int] free
    cdef vector[int] cached  # the block of each name
    cdef deque[int] waiting
    cdef vector[int] running  # in the order of admission
    cdef size_t coming

    cdef double layers, kv_heads, head_dim, dtype_bytes, context_limit, block_size, safety_margin
    cdef double prefill_tps, step_ms, bandwidth_gbs
    cdef whole token_budget, chunk_size

    cdef readonly whole capacity, in_use, idle, peak
    cdef readonly double clock_ms, busy_ms, utilization_ms
    cdef readonly whole iterations, preemptions, evictions, chunks, output_tokens
    cdef readonly whole looked_up, found  # blocks of prompts, in the prefix cache

    def __init__(
        self, requests, int names, double memory_bytes, *, double layers, double kv_heads, double head_dim,
        double dtype_bytes, double context_limit, double block_size, double safety_margin, whole token_budget,
        whole chunk_size, double prefill_tps, double step_ms, double bandwidth_gbs,
    ):
        cdef Request request
        cdef double block_bytes
        self.layers, self.kv_heads, self.head_dim, self.dtype_bytes = layers, kv_heads, head_dim, dtype_bytes
        self.context_limit, self.block_size, self.safety_margin = context_limit, block_size, safety_margin
        self.token_budget, self.chunk_size = token_budget, chunk_size
        self.prefill_tps, self.step_ms, self.bandwidth_gbs = prefill_tps, step_ms, bandwidth_gbs

        for arrival_ms, input_length, output_length, prompt in requests:
            request = Request(arrival_ms, -1.0, -1.0, input_length, output_length, 0, 0, 0, self.names.size(), COMING)
            self.requests.push_back(request)
            for name in prompt:
                self.names.push_back(name)
        self.held.resize(self.requests.size())
        self.cached.assign(names, NOTHING)

        block_bytes = kv_cache_total_memory(
            kv_cache_memory_per_layer(1.0, block_size, kv_heads, head_dim, dtype_bytes), layers
        )
        self.capacity = <whole> (memory_bytes / block_bytes)
        self.blocks.assign(self.capacity, Block(0, NOTHING, 0))
        for number in range(self.capacity - 1, -1, -1):
            self.free.push_back(number)

    def run(self):
        """Serve every request."""
        with nogil:
            self.serve()

    def results(self):
        """Return for each request why it was rejected or None, and when it came, was scheduled and had a token."""
        reasons = {SERVED: None, TOO_LONG: "too long", TOO_LARGE: "too large"}
        return [
            (reasons[request.state], request.arrival_ms, request.scheduled_ms, request.first_token_ms)
            for request in self.requests
        ]

    cdef int serve(self) except -1 nogil:
        cdef int r
        cdef whole left, prefill_tokens, context_tokens
        cdef double ms
        cdef bint preempted
        while True:
            self.arrive()
            if self.running.empty() and self.waiting.empty():
                if self.coming == self.requests.size():
                    return self.check_the_end()
                self.clock_ms = self.requests[self.coming].arrival_ms
                continue

            self.iterations += 1
            left = self.token_budget
            prefill_tokens = context_tokens = 0
            preempted = self.grow()
            for r in self.running:
                if self.requests[r].state == DECODING:
                    self.requests[r].computed = <whole> incremental_decode_kv_append(self.requests[r].computed)
                    context_tokens += self.requests[r].computed
                    left -= 1
            for r in self.running:
                if self.requests[r].state == PREFILLING:
                    prefill_tokens += self.prefill(r, left - prefill_tokens)
            while not preempted and prefill_tokens < left and not self.waiting.empty():
                r = self.waiting.front()
                if not self.admit(r):
                    break
                self.waiting.pop_front()
                self.running.push_back(r)
                prefill_tokens += self.prefill(r, left - prefill_tokens)
            self.check(left, prefill_tokens)

            ms = (
                self.step_ms
                + 1000.0 * streaming_first_token_latency(prefill_tokens, self.prefill_tps)
                + block_copy_cost(
                    context_tokens, self.layers, self.kv_heads, self.head_dim, self.dtype_bytes, self.bandwidth_gbs
                )
            )
            self.clock_ms += ms
            self.busy_ms += ms
            self.utilization_ms += ms * kv_cache_utilization(
                self.in_use * self.block_size, self.capacity * self.block_size
            )
            self.sample()

    cdef int arrive(self) except -1 nogil:
        """Let in what has come by now and could be served by an empty engine."""
        cdef Request *request
        cdef double length
        while self.coming < self.requests.size() and self.requests[self.coming].arrival_ms <= self.clock_ms:
            request = &self.requests[self.coming]
            length = request.input_length + request.output_length
            if length > self.context_limit:
                request.state = TOO_LONG
            elif not self.accepts(paged_attention_block_count(length, self.block_size), self.capacity):
                request.state = TOO_LARGE
            else:
                request.state = WAITING
                self.waiting.push_back(self.coming)
            self.coming += 1
        return 0

    cdef bint accepts(self, double blocks, double available) noexcept nogil:
        return admission_control_accept(blocks * self.block_size, available * self.block_size, self.safety_margin) > 0.5

    cdef bint grow(self) except -1 nogil:
        """Give each decoding request room for one more token; return whether another had to go for it."""
        cdef size_t i
        cdef int r, victim
        cdef bint preempted = False
        for i in range(self.running.size()):
            r = self.running[i]
            while self.requests[r].state == DECODING and paged_attention_block_count(
                incremental_decode_kv_append(self.requests[r].computed), self.block_size
            ) > self.held[r].size():
                if self.idle > 0 or not self.free.empty():
                    self.held[r].push_back(self.take())
                    continue
                victim = self.victim()
                self.release(victim)
                self.requests[victim].state = WAITING
                self.waiting.push_front(victim)
                self.preemptions += 1
                preempted = True
        if preempted:
            self.keep_running()
        return preempted

    cdef int victim(self) noexcept nogil:
        """Find who holds the most tokens for the least done; the last admitted of equals."""
        cdef int r, worst = NOTHING
        cdef double score, highest = -INFINITY
        for r in self.running:
            if self.requests[r].state == WAITING:
                continue
            # The trace has no priorities: everyone's is 1.
            score = preemption_score(1.0, self.requests[r].generated, self.requests[r].computed)
            if score >= highest:
                highest, worst = score, r
        return worst

    cdef int take(self) noexcept nogil:
        """Take a free block, or else the cached one that was used the longest ago; of equals the end of the prefix."""
        cdef int b, oldest = NOTHING
        cdef double score, highest = -INFINITY
        if not self.free.empty():
            oldest = self.free.back()
            self.free.pop_back()
        else:
            for b in range(self.capacity):
                if self.blocks[b].holders == 0:
                    score = cache_eviction_lru_score(self.blocks[b].last_access, self.iterations)
                    if score > highest or (score == highest and self.blocks[b].name > self.blocks[oldest].name):
                        highest, oldest = score, b
            self.cached[self.blocks[oldest].name] = NOTHING
            self.blocks[oldest].name = NOTHING
            self.idle -= 1
            self.evictions += 1
        self.blocks[oldest].holders = 1
        self.in_use += 1
        return oldest

    cdef bint admit(self, int r) except -1 nogil:
        """Give a request room for its whole prompt, the cached beginning shared, if there is enough."""
        cdef Request *request = &self.requests[r]
        cdef whole i, usable, needed, shared = 0, idle = 0
        cdef int b
        request.target = request.input_length + request.generated
        # One token at least has to be computed, for the next one to come from.
        usable = min(request.input_length, request.target - 1) // <whole> self.block_size
        while shared < usable:
            b = self.cached[self.names[request.first_name + shared]]
            if b == NOTHING:
                break
            idle += self.blocks[b].holders == 0
            shared += 1
        needed = <whole> paged_attention_block_count(request.target, self.block_size)
        if not self.accepts(needed - shared, self.free.size() + self.idle - idle):
            return False

        self.looked_up += usable
        self.found += shared
        for i in range(shared):
            b = self.cached[self.names[request.first_name + i]]
            self.blocks[b].holders += 1
            self.held[r].push_back(b)
        self.idle -= idle
        self.in_use += idle
        while <whole> self.held[r].size() < needed:
            self.held[r].push_back(self.take())
        request.computed = shared * <whole> self.block_size
        request.state = PREFILLING
        if request.scheduled_ms < 0.0:
            request.scheduled_ms = self.clock_ms
        return True

    cdef whole prefill(self, int r, whole left) noexcept nogil:
        """Compute a chunk of a prompt and name the blocks that it fills; return how many tokens that was."""
        cdef Request *request = &self.requests[r]
        cdef whole tokens, i, block_size = <whole> self.block_size
        cdef whole chunk = min(self.chunk_size, left)
        cdef int b
        if chunk <= 0:
            return 0
        tokens = request.target - request.computed
        if chunked_prefill_chunks(tokens, chunk) > 1.0:
            tokens = chunk
        self.chunks += 1
        for i in range(
            request.computed // block_size, min(request.computed + tokens, request.input_length) // block_size
        ):
            b = self.held[r][i]
            if self.cached[self.names[request.first_name + i]] == NOTHING:
                self.blocks[b].name = self.names[request.first_name + i]
                self.cached[self.blocks[b].name] = b
        request.computed += tokens
        return tokens

    cdef void sample(self) noexcept nogil:
        """A token for everyone whose keys and values are complete; who has all of them, goes."""
        cdef Request *request
        cdef int r
        for r in self.running:
            request = &self.requests[r]
            if request.computed < request.target:
                continue
            request.state = DECODING
            request.generated += 1
            self.output_tokens += 1
            if request.first_token_ms < 0.0:
                request.first_token_ms = self.clock_ms
            if request.generated == request.output_length:
                request.state = SERVED
                self.release(r)
        self.keep_running()

    cdef void release(self, int r) noexcept nogil:
        cdef int b
        for b in self.held[r]:
            self.blocks[b].holders -= 1
            self.blocks[b].last_access = self.iterations
            if self.blocks[b].holders == 0:
                self.in_use -= 1
                if self.blocks[b].name == NOTHING:
                    self.free.push_back(b)
                else:
                    self.idle += 1
        self.held[r].clear()

    cdef void keep_running(self) noexcept nogil:
        """Drop from the running who is preempted or served, and keep the order."""
        cdef size_t i, kept = 0
        for i in range(self.running.size()):
            if self.requests[self.running[i]].state in (PREFILLING, DECODING):
                self.running[kept] = self.running[i]
                kept += 1
        self.running.resize(kept)

    cdef int check(self, whole left, whole prefill_tokens) except -1 nogil:
        """Something was done, and each block is in use, idle in the cache or free."""
        self.peak = max(self.peak, self.in_use)
        if left == self.token_budget and prefill_tokens == 0:
            with gil:
                raise AssertionError(f"iteration {self.iterations} did nothing")
        if self.in_use > self.capacity or self.in_use + self.idle + <whole> self.free.size() != self.capacity:
            with gil:
                raise AssertionError(f"iteration {self.iterations} lost or made blocks")
        return 0

    cdef int check_the_end(self) except -1 nogil:
        """Nobody holds a block, and each name leads to the block that bears it."""
        cdef size_t b
        cdef whole named = 0
        for b in range(self.blocks.size()):
            if self.blocks[b].holders != 0:
                with gil:
                    raise AssertionError(f"block {b} was not given back")
            if self.blocks[b].name != NOTHING:
                named += self.cached[self.blocks[b].name] == <int> b
        if self.in_use != 0 or named != self.idle or named + <whole> self.free.size() != self.capacity:
            with gil:
                raise AssertionError("a block is neither free nor cached")
        return 0
