# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""What production engines decide: watermarks, new blocks, usable hits, reserves, prefill steps and latencies."""
from kvformulas._real cimport real
from kvformulas.kernels cimport engine_admission as c

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


def watermark_reserved_blocks(total_blocks: float, watermark: float) -> float:
    r"""
    Return the blocks that a watermark keeps free when a request is admitted.

    .. math::

        \operatorname{trunc}(\mathrm{total\_blocks} \cdot \mathrm{watermark})

    vLLM admits a waiting or preempted request only if a share of the whole cache stays free, so that the requests that
    already run can grow before any must be preempted [1]_.

    Parameters
    ----------
    total_blocks : float
        Blocks of the cache, free or not [blocks].
    watermark : float
        Share of them that stays free [ratio].

    Returns
    -------
    float
        Whole blocks kept free [blocks].

    See Also
    --------
    watermark_admission_accept : The decision that these blocks enter.

    Notes
    -----
    **Domain:** whole ``total_blocks`` at least 0, ``watermark`` in 0 to 1. The fraction is dropped toward zero.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN.

    **Error:** 0.5 ULP (one rounding, of the product, before the truncation). A product within half an ULP below a whole
    number counts as that number. It is the product and the truncation of vLLM's own code, so the counts are the same.

    The reserve is fixed when the engine starts. A running request may use it; only admissions stop short of it.

    References
    ----------
    .. [1] vLLM, pull request 44594, ``KVCacheManager.watermark_blocks``; first in pull request 11.

    Examples
    --------
    2% of 16 GiB of Qwen2.5-7B's cache in blocks of 16, the setting of the pull request:

    >>> from kvformulas.engine_admission import watermark_reserved_blocks
    >>> watermark_reserved_blocks(18724, 0.02)
    374.0

    A small cache reserves less than a block, which is none:

    >>> watermark_reserved_blocks(40, 0.02)
    0.0
    """
    return c.watermark_reserved_blocks(real(total_blocks, "total_blocks"), real(watermark, "watermark"))


def watermark_admission_accept(
    needed_blocks: float, free_blocks: float, reserved_blocks: float, total_blocks: float, watermark: float
) -> float:
    r"""
    Return whether a request's blocks fit above the watermark.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{needed\_blocks}
        + \operatorname{trunc}(\mathrm{total\_blocks} \cdot \mathrm{watermark})
        \le \mathrm{free\_blocks} - \mathrm{reserved\_blocks} \\
        0 & \text{otherwise}
        \end{cases}

    The test that vLLM makes before it gives a waiting or preempted request its blocks [1]_. Blocks may be reserved for
    sequences in flight, whose cache is still on its way.

    Parameters
    ----------
    needed_blocks : float
        Blocks that the request would take now [blocks].
    free_blocks : float
        Blocks that are free, those of an unused cached prefix included [blocks].
    reserved_blocks : float
        Free blocks that are promised to sequences in flight [blocks].
    total_blocks : float
        Blocks of the cache, free or not [blocks].
    watermark : float
        Share of the whole cache that stays free [ratio].

    Returns
    -------
    float
        1.0 to accept, 0.0 to reject [gate].

    See Also
    --------
    watermark_reserved_blocks : The watermark in blocks.
    new_blocks_needed : The blocks that the request would take.
    kvformulas.continuous_batching.admission_control_accept : A margin that is a share of what is free.

    Notes
    -----
    **Domain:** whole blocks, at least 0, ``watermark`` in 0 to 1.

    **Guard:** none.

    **Special values:** NaN in any argument rejects.

    **Error:** none in the comparison of whole blocks; the product with the watermark has 0.5 ULP (one rounding).

    The watermark is a share of the total: it stays the same as the cache fills, where the margin of
    ``admission_control_accept`` shrinks with what is free. vLLM waives it, a ``watermark`` of 0, for a request that
    runs already, and while none is scheduled, so that the first is never held up by it.

    References
    ----------
    .. [1] vLLM, ``KVCacheManager.allocate_slots``, and pull request 44594.

    Examples
    --------
    Of 18,724 blocks 374 stay free, so 626 of 1,000 can be had, and not one more:

    >>> from kvformulas.engine_admission import watermark_admission_accept
    >>> watermark_admission_accept(626, 1000, 0, 18724, 0.02)
    1.0
    >>> watermark_admission_accept(627, 1000, 0, 18724, 0.02)
    0.0

    A margin of 2% of what is free would leave 980:

    >>> from kvformulas.continuous_batching import admission_control_accept
    >>> admission_control_accept(980, 1000, 0.02)
    1.0
    """
    return c.watermark_admission_accept(
        real(needed_blocks, "needed_blocks"), real(free_blocks, "free_blocks"),
        real(reserved_blocks, "reserved_blocks"), real(total_blocks, "total_blocks"), real(watermark, "watermark"),
    )


def new_blocks_needed(
    computed_tokens: float, new_tokens: float, lookahead_tokens: float, max_model_len: float,
    block_size: float, held_blocks: float, cached_blocks: float,
) -> float:
    r"""
    Return the blocks that a request must be given before its next step.

    .. math::

        \max\left(0, \operatorname{ceil}\left(\frac{
        \min(\mathrm{computed\_tokens} + \mathrm{new\_tokens} + \mathrm{lookahead\_tokens}, \mathrm{max\_model\_len})
        }{\mathrm{block\_size}}\right) - \mathrm{held\_blocks} - \mathrm{cached\_blocks}\right)

    A step stores its tokens, and drafts ahead of them, behind what is computed. The request holds blocks already, and
    a prefix hit brings more; what is missing comes from the pool [1]_.

    Parameters
    ----------
    computed_tokens : float
        Tokens in the cache, those of a new prefix hit included [tokens].
    new_tokens : float
        Tokens that the step computes [tokens].
    lookahead_tokens : float
        Slots for drafts behind them [tokens].
    max_model_len : float
        Most tokens that a sequence may have [tokens].
    block_size : float
        Tokens that one block holds [tokens].
    held_blocks : float
        Blocks that the request holds [blocks].
    cached_blocks : float
        Blocks that a prefix hit brings now, held by none before [blocks].

    Returns
    -------
    float
        Blocks to take from the pool [blocks].

    See Also
    --------
    usable_prefix_hit_tokens : The tokens of a prefix hit.
    watermark_admission_accept : Whether the pool has these blocks to spare.
    kvformulas.kv_cache.paged_attention_block_count : All blocks of a sequence.

    Notes
    -----
    **Domain:** whole arguments, ``block_size`` at least 1, the others at least 0.

    **Guard:** ``block_size <= 0`` takes the tokens for blocks, as if each had one.

    **Special values:** NaN in any argument gives NaN. An infinite ``max_model_len`` is none; infinity less infinity is
    NaN.

    **Error:** 2.5 ULP of the largest term (five roundings). The terms are the blocks of all tokens, ``held_blocks`` and
    ``cached_blocks``. Whole arguments up to 2**53 are exact. With fractions a quotient within its rounding above a
    whole number counts as that number.

    This is one group of layers with full attention; a model with several kinds of layers needs the sum over its groups.
    In vLLM a block of the hit that nobody uses any more counts among the free ones, and taking it uses one up: there
    add the unused blocks of the hit before asking whether the pool has enough.

    References
    ----------
    .. [1] vLLM, ``KVCacheManager.allocate_slots`` and ``SingleTypeKVCacheManager.get_num_blocks_to_allocate``.

    Examples
    --------
    A prompt of 100 tokens, 64 of them in 4 cached blocks, takes 3 blocks more:

    >>> from kvformulas.engine_admission import new_blocks_needed
    >>> new_blocks_needed(64, 36, 0, 8192, 16, 0, 4)
    3.0

    Decoding opens a block when the last is full, or when drafts reach beyond it:

    >>> new_blocks_needed(100, 1, 0, 8192, 16, 7, 0), new_blocks_needed(112, 1, 0, 8192, 16, 7, 0)
    (0.0, 1.0)
    >>> new_blocks_needed(108, 1, 5, 8192, 16, 7, 0)
    1.0

    Drafts beyond the longest sequence need no slots:

    >>> new_blocks_needed(8190, 1, 5, 8192, 16, 512, 0)
    0.0
    """
    return c.new_blocks_needed(
        real(computed_tokens, "computed_tokens"), real(new_tokens, "new_tokens"),
        real(lookahead_tokens, "lookahead_tokens"), real(max_model_len, "max_model_len"),
        real(block_size, "block_size"), real(held_blocks, "held_blocks"), real(cached_blocks, "cached_blocks"),
    )


def usable_prefix_hit_tokens(prompt_len: float, cached_tokens: float, block_size: float) -> float:
    r"""
    Return the tokens of a cached prefix that spare their prefill.

    .. math::

        \operatorname{trunc}\left(\frac{
        \min(\mathrm{cached\_tokens}, \mathrm{prompt\_len} - 1)}{\mathrm{block\_size}}\right) \cdot \mathrm{block\_size}

    Whole blocks are reused, and never the whole prompt: its last token must be computed, since the logits of the first
    output come from it [1]_. A prompt that is cached to the end of a block therefore computes that block again.

    Parameters
    ----------
    prompt_len : float
        Tokens of the prompt, and of the output so far if the request was preempted [tokens].
    cached_tokens : float
        Tokens of its longest cached prefix [tokens].
    block_size : float
        Tokens of the blocks by which a prefix is matched [tokens].

    Returns
    -------
    float
        Tokens that need no prefill [tokens].

    See Also
    --------
    uncached_prefill_chunks : The chunks that the rest takes.
    kvformulas.kv_cache.radix_cache_shared_prefix_len : The prefix that a cache by tokens shares.
    kvformulas.kv_cache.prefix_cache_hit_bytes : The memory of the hit.

    Notes
    -----
    **Domain:** whole ``prompt_len`` at least 1, whole ``cached_tokens`` at least 0, whole ``block_size`` at least 1.

    **Guard:** ``block_size <= 0`` gives ``min(cached_tokens, prompt_len - 1)``: a prefix is matched by tokens.

    **Special values:** NaN in any argument gives NaN; an infinite ``block_size`` gives NaN; infinity over a finite size
    is infinity.

    **Error:** 1.5 ULP (three roundings). Whole arguments up to 2**53 are exact. With fractions a quotient within its
    rounding below a whole number counts as that number.

    Hybrid models match by large blocks, of hundreds of tokens, so that short prefixes never hit. With EAGLE drafts vLLM
    gives up one block more.

    References
    ----------
    .. [1] vLLM, ``KVCacheManager.get_computed_blocks``: the longest hit is one token short of the request.
    .. [2] vLLM, issue 17999.

    Examples
    --------
    A prompt of 64 tokens that is cached whole reuses 48 [2]_, one token more would reuse them all:

    >>> from kvformulas.engine_admission import usable_prefix_hit_tokens
    >>> usable_prefix_hit_tokens(64, 64, 16), usable_prefix_hit_tokens(65, 64, 16)
    (48.0, 64.0)

    Blocks of 448 tokens, as a hybrid model has them, and no blocks:

    >>> usable_prefix_hit_tokens(32768, 32768, 448)
    32704.0
    >>> usable_prefix_hit_tokens(32768, 32768, 0)
    32767.0
    """
    return c.usable_prefix_hit_tokens(
        real(prompt_len, "prompt_len"), real(cached_tokens, "cached_tokens"), real(block_size, "block_size")
    )


def decode_growth_reserve(
    max_new_tokens: float, generated_tokens: float, clip_tokens: float, ratio: float
) -> float:
    r"""
    Return the slots to keep for what a running request may still generate.

    .. math::

        \min(\mathrm{max\_new\_tokens} - \mathrm{generated\_tokens}, \mathrm{clip\_tokens}) \cdot \mathrm{ratio}

    Most requests end long before their limit. SGLang therefore keeps a share of the rest, and a huge limit counts no
    more than the clip [1]_; the sum over the running requests is not given to new ones.

    Parameters
    ----------
    max_new_tokens : float
        Tokens that the request may generate in all [tokens].
    generated_tokens : float
        Tokens that it has generated [tokens].
    clip_tokens : float
        Most tokens of the rest that count: 4,096 in SGLang [tokens].
    ratio : float
        Share of them that is kept, adapted while the engine runs [ratio].

    Returns
    -------
    float
        Slots kept for the request [tokens].

    See Also
    --------
    orca_admission_accept : The other extreme, that keeps all slots from the start.
    watermark_admission_accept : A reserve for all requests at once.

    Notes
    -----
    **Domain:** ``max_new_tokens`` at least ``generated_tokens``, both and ``clip_tokens`` at least 0, ``ratio`` in
    0 to 1. The value is not rounded to whole slots.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; an infinite ``max_new_tokens`` leaves the clip; 0 times infinity
    is NaN.

    **Error:** 1 ULP (two roundings). Whole arguments whose value is below 2**53 are exact.

    SGLang lowers the ratio step by step while decoding finds room, and raises it when a request had to be retracted.
    The clip concerns this estimate alone: a request may generate up to its limit.

    References
    ----------
    .. [1] SGLang, ``PrefillAdder`` and ``CLIP_MAX_NEW_TOKENS`` in ``schedule_policy.py``.

    Examples
    --------
    1,000 tokens to go, of which 70% are kept for:

    >>> from kvformulas.engine_admission import decode_growth_reserve
    >>> decode_growth_reserve(1024, 24, 4096, 0.7)
    700.0

    A limit of 100,000 counts as the clip:

    >>> decode_growth_reserve(100000, 24, 4096, 0.5)
    2048.0
    """
    return c.decode_growth_reserve(
        real(max_new_tokens, "max_new_tokens"), real(generated_tokens, "generated_tokens"),
        real(clip_tokens, "clip_tokens"), real(ratio, "ratio"),
    )


def orca_admission_accept(reserved_slots: float, request_max_tokens: float, total_slots: float) -> float:
    r"""
    Return whether all slots that a request may ever need can be reserved for it.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{reserved\_slots} + \mathrm{request\_max\_tokens} \le \mathrm{total\_slots} \\
        0 & \text{otherwise}
        \end{cases}

    Orca reserves a slot for every token up to a request's limit when the request first runs, and gives the slots back
    when it ends. Nothing need ever be preempted [1]_.

    Parameters
    ----------
    reserved_slots : float
        Slots that the running requests have reserved [tokens].
    request_max_tokens : float
        Most tokens that the request can come to, its prompt included [tokens].
    total_slots : float
        Slots of the cache [tokens].

    Returns
    -------
    float
        1.0 to accept, 0.0 to reject [gate].

    See Also
    --------
    decode_growth_reserve : A reserve for a part of what may come.
    watermark_admission_accept : Admission by what a request takes now.

    Notes
    -----
    **Domain:** every argument at least 0.

    **Guard:** none.

    **Special values:** NaN in any argument rejects.

    **Error:** none in the comparison; the sum has 0.5 ULP (one rounding). With whole arguments whose sum is up to 2**53
    it is exact.

    Few requests use their limit, so most of what is reserved stays empty, and far fewer requests run than the cache
    could hold: paging was made to end that.

    References
    ----------
    .. [1] G.-I. Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI 2022,
       algorithm 1.

    Examples
    --------
    A request of at most 2,048 tokens fills a cache of 16,384 slots, 14,336 of which are reserved:

    >>> from kvformulas.engine_admission import orca_admission_accept
    >>> orca_admission_accept(14336, 2048, 16384)
    1.0

    One slot less, and it waits:

    >>> orca_admission_accept(14337, 2048, 16384)
    0.0
    """
    return c.orca_admission_accept(
        real(reserved_slots, "reserved_slots"), real(request_max_tokens, "request_max_tokens"),
        real(total_slots, "total_slots"),
    )


def prefill_step_tokens(remaining_tokens: float, budget_left: float, threshold: float) -> float:
    r"""
    Return the tokens of a request that one step computes.

    .. math::

        \min(\mathrm{remaining\_tokens}, \mathrm{budget\_left}, \mathrm{threshold})

    A step has a budget of tokens, that its requests use up in turn. A threshold caps what one long prefill takes of it,
    so that short ones get a share [1]_.

    Parameters
    ----------
    remaining_tokens : float
        Tokens that the request has still to compute [tokens].
    budget_left : float
        Tokens that the step can still take [tokens].
    threshold : float
        Most tokens that a step computes of one request [tokens].

    Returns
    -------
    float
        Tokens to compute now [tokens].

    See Also
    --------
    aligned_chunk_tokens : A chunk that ends at the boundary of a block.
    kvformulas.continuous_batching.chunked_prefill_chunks : The steps that a prompt takes at a steady size.

    Notes
    -----
    **Domain:** every argument at least 0.

    **Guard:** ``threshold <= 0`` gives ``min(remaining_tokens, budget_left)``: no threshold.

    **Special values:** NaN in any argument gives NaN; an infinite threshold is none.

    **Error:** none (one of the arguments is returned).

    vLLM caps the step also by the model's longest sequence; that is the caller's to put into ``remaining_tokens``.

    References
    ----------
    .. [1] vLLM, ``Scheduler.schedule`` and ``long_prefill_token_threshold``.

    Examples
    --------
    The budget cuts a prompt of 10,000 tokens, a threshold cuts it sooner:

    >>> from kvformulas.engine_admission import prefill_step_tokens
    >>> prefill_step_tokens(10000, 8192, 0), prefill_step_tokens(10000, 8192, 2048)
    (8192.0, 2048.0)

    A decoding request computes its one token:

    >>> prefill_step_tokens(1, 8192, 2048)
    1.0
    """
    return c.prefill_step_tokens(
        real(remaining_tokens, "remaining_tokens"), real(budget_left, "budget_left"), real(threshold, "threshold")
    )


def aligned_chunk_tokens(remaining_tokens: float, cap_tokens: float, unit: float) -> float:
    r"""
    Return the tokens of a prefill chunk that ends at a whole unit, or ends the prefill.

    .. math::

        \begin{cases}
        \mathrm{remaining\_tokens} & \text{if } \mathrm{remaining\_tokens} \le \mathrm{cap\_tokens} \\
        \operatorname{trunc}\left(\frac{\mathrm{cap\_tokens}}{\mathrm{unit}}\right) \cdot \mathrm{unit}
        & \text{otherwise}
        \end{cases}

    A chunk that is not the last should fill its blocks, so that the next begins with a fresh one. TensorRT-LLM cuts to
    a chunk unit [1]_, SGLang to a page [2]_. The last chunk is as long as it is.

    Parameters
    ----------
    remaining_tokens : float
        Tokens of the prompt that are still to compute [tokens].
    cap_tokens : float
        Tokens that the step can still take [tokens].
    unit : float
        Tokens of the unit: a block, a page, or a kernel's tile [tokens].

    Returns
    -------
    float
        Tokens of the chunk, 0 where the cap is below a unit [tokens].

    See Also
    --------
    prefill_step_tokens : A step without alignment.
    uncached_prefill_chunks : The chunks of a whole prompt.

    Notes
    -----
    **Domain:** every argument at least 0, whole ``unit`` at least 1.

    **Guard:** ``unit <= 0`` gives ``min(remaining_tokens, cap_tokens)``: no alignment.

    **Special values:** NaN in any argument gives NaN, ``unit`` too where it has no part in the value. Where the cap
    cuts, an infinite ``unit`` gives NaN.

    **Error:** 1 ULP (two roundings). Whole arguments up to 2**53 are exact. With fractions a quotient within half an
    ULP below a whole number counts as that number.

    A value of 0 means that the request waits for a step with more room, which both engines let it.

    References
    ----------
    .. [1] TensorRT-LLM, ``MicroBatchScheduler::setCtxRequestsChunkSize``.
    .. [2] SGLang, ``PrefillAdder.add_one_req`` in ``schedule_policy.py``.

    Examples
    --------
    Room for 1,000 tokens is room for 15 units of 64; the last 900 need no unit:

    >>> from kvformulas.engine_admission import aligned_chunk_tokens
    >>> aligned_chunk_tokens(5000, 1000, 64), aligned_chunk_tokens(900, 1000, 64)
    (960.0, 900.0)

    Less room than a unit is none, and without a unit all of it counts:

    >>> aligned_chunk_tokens(5000, 63, 64), aligned_chunk_tokens(5000, 1000, 0)
    (0.0, 1000.0)
    """
    return c.aligned_chunk_tokens(
        real(remaining_tokens, "remaining_tokens"), real(cap_tokens, "cap_tokens"), real(unit, "unit")
    )


def uncached_prefill_chunks(prompt_len: float, cached_tokens: float, chunk_size: float) -> float:
    r"""
    Return the chunks that a prompt's prefill takes behind its cached prefix.

    .. math::

        \operatorname{ceil}\left(\frac{\mathrm{prompt\_len} - \mathrm{cached\_tokens}}{\mathrm{chunk\_size}}\right)

    A prefix hit is not computed again, so that it takes no chunk. Counting the whole prompt overstates the steps to the
    first token, and the more, the better the cache works [1]_.

    Parameters
    ----------
    prompt_len : float
        Tokens of the prompt [tokens].
    cached_tokens : float
        Tokens of it that are reused [tokens].
    chunk_size : float
        Most tokens of the prompt that one step takes [tokens].

    Returns
    -------
    float
        Steps that the prefill needs [chunks].

    See Also
    --------
    usable_prefix_hit_tokens : The tokens that are reused.
    time_to_first_token : The time that the steps take.
    kvformulas.continuous_batching.chunked_prefill_chunks : The same count without a cache.

    Notes
    -----
    **Domain:** whole arguments, ``cached_tokens`` from 0 to ``prompt_len``, ``chunk_size`` at least 1.

    **Guard:** ``chunk_size <= 0`` gives 1.0: all at once.

    **Special values:** NaN in any argument gives NaN, unless the guard applies. An infinite prompt gives infinity, an
    infinite chunk 0.0.

    **Error:** 1 ULP (two roundings). Whole arguments up to 2**53 are exact. With fractions a quotient within its
    rounding above a whole number counts as that number.

    More cached tokens than the prompt has give a negative count: it is not clamped.

    References
    ----------
    .. [1] A. Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve", OSDI 2024,
       section 4, and vLLM, ``Scheduler.schedule``, which starts behind the hit.

    Examples
    --------
    A prompt of 5,000 tokens takes 3 chunks of 2,048, and 1 if 3,072 of them are cached:

    >>> from kvformulas.engine_admission import uncached_prefill_chunks
    >>> uncached_prefill_chunks(5000, 0, 2048), uncached_prefill_chunks(5000, 3072, 2048)
    (3.0, 1.0)

    Nothing is left to compute, or nothing is split:

    >>> uncached_prefill_chunks(5000, 5000, 2048), uncached_prefill_chunks(5000, 3072, 0)
    (0.0, 1.0)
    """
    return c.uncached_prefill_chunks(
        real(prompt_len, "prompt_len"), real(cached_tokens, "cached_tokens"), real(chunk_size, "chunk_size")
    )


def response_ratio(waited_tokens: float, uncached_tokens: float) -> float:
    r"""
    Return how long a request has waited for the work that it brings.

    .. math::

        1 + \frac{\mathrm{waited\_tokens}}{\mathrm{uncached\_tokens}}

    Highest response ratio next serves short jobs first and lets no job starve: every job's ratio grows as it waits,
    a short one's faster [1]_. SGLang takes the tokens that a request has to prefill for its length [2]_.

    Parameters
    ----------
    waited_tokens : float
        Wait, counted in the tokens that the engine has prefilled meanwhile [tokens].
    uncached_tokens : float
        Tokens that the request has to prefill [tokens].

    Returns
    -------
    float
        Score, larger to serve sooner [score].

    See Also
    --------
    usable_prefix_hit_tokens : What a prefix hit takes off the work.
    kvformulas.continuous_batching.head_of_line_blocking_score : How uneven the waits are.
    kvformulas.continuous_batching.preemption_score : The opposite decision, whom to stop.

    Notes
    -----
    **Domain:** ``waited_tokens`` at least 0, ``uncached_tokens`` above 0, both in one unit, which may be seconds too.

    **Guard:** ``uncached_tokens <= 0`` gives ``1 + waited_tokens``, as if one token were left.

    **Special values:** NaN in any argument gives NaN, unless the guard applies to another; infinity over infinity is
    NaN.

    **Error:** 1 ULP of the largest term (two roundings). For arguments at least 0 the largest term is the value. A
    whole quotient of whole arguments gives an exact value.

    References
    ----------
    .. [1] P. Brinch Hansen, "An Analysis of Response Ratio Scheduling", IFIP Congress 1971.
    .. [2] SGLang, pull request 32911, the schedule policy ``hrrn``.

    Examples
    --------
    After the same wait the shorter request goes first:

    >>> from kvformulas.engine_admission import response_ratio
    >>> response_ratio(4096, 1024), response_ratio(4096, 8192)
    (5.0, 1.5)

    A request that is cached whole goes before all but the shortest:

    >>> response_ratio(4096, 0)
    4097.0
    """
    return c.response_ratio(real(waited_tokens, "waited_tokens"), real(uncached_tokens, "uncached_tokens"))


def time_to_first_token(
    queue_s: float, transfer_s: float, uncached_tokens: float, prefill_throughput_tps: float
) -> float:
    r"""
    Return the time from a request's arrival to its first token.

    .. math::

        \mathrm{queue\_s} + \mathrm{transfer\_s}
        + \frac{\mathrm{uncached\_tokens}}{\mathrm{prefill\_throughput\_tps}}

    A scheduler over several instances compares them by this sum: an instance that holds the prefix saves prefill, one
    that is idle saves the queue, and fetching the prefix costs a transfer [1]_.

    Parameters
    ----------
    queue_s : float
        Wait until the request is scheduled [s].
    transfer_s : float
        Time to fetch cached blocks from elsewhere [s].
    uncached_tokens : float
        Tokens that are still to prefill [tokens].
    prefill_throughput_tps : float
        Prompt tokens that the instance processes in a second [tokens/s].

    Returns
    -------
    float
        Time to first token (TTFT) [s].

    See Also
    --------
    time_per_output_token : The pace of the tokens that follow.
    usable_prefix_hit_tokens : The tokens that need no prefill.
    kvformulas.continuous_batching.streaming_first_token_latency : The prefill's term alone.

    Notes
    -----
    **Domain:** the first three at least 0, ``prefill_throughput_tps`` above 0.

    **Guard:** ``prefill_throughput_tps <= 0`` gives ``queue_s + transfer_s``, without a term for prefill.

    **Special values:** NaN in any argument gives NaN, unless the guard applies to ``uncached_tokens``; infinity over
    infinity is NaN.

    **Error:** 1.5 ULP of the largest term (three roundings). For arguments at least 0 the largest term is the value.

    The prefill's pace falls with the prompt's length, since attention does. The tokens' own count is the better part
    of the estimate.

    References
    ----------
    .. [1] R. Qin et al., "Mooncake: Trading More Storage for Less Computation - A KVCache-centric Architecture for
       Serving LLM Chatbot", FAST 2025, algorithm 1.

    Examples
    --------
    5,000 tokens at 8,000 a second behind a quarter of a second of queue:

    >>> from kvformulas.engine_admission import time_to_first_token
    >>> time_to_first_token(0.25, 0, 5000, 8000)
    0.875

    Fetching 4,000 of them in an eighth of a second pays:

    >>> time_to_first_token(0.25, 0.125, 1000, 8000)
    0.5

    An unknown pace leaves what is known:

    >>> time_to_first_token(0.25, 0.125, 1000, 0)
    0.375
    """
    return c.time_to_first_token(
        real(queue_s, "queue_s"), real(transfer_s, "transfer_s"), real(uncached_tokens, "uncached_tokens"),
        real(prefill_throughput_tps, "prefill_throughput_tps"),
    )


def time_per_output_token(end_to_end_s: float, ttft_s: float, output_tokens: float) -> float:
    r"""
    Return the mean time between a request's output tokens.

    .. math::

        \frac{\mathrm{end\_to\_end\_s} - \mathrm{ttft\_s}}{\mathrm{output\_tokens} - 1}

    The first token's time is reported by itself, so that what remains is shared by the tokens behind it [1]_.

    Parameters
    ----------
    end_to_end_s : float
        Time from the request's arrival to its last token [s].
    ttft_s : float
        Time from its arrival to its first token [s].
    output_tokens : float
        Tokens of the output, the first included [tokens].

    Returns
    -------
    float
        Time per output token (TPOT) [s].

    See Also
    --------
    time_to_first_token : The time that is taken off.
    kvformulas.continuous_batching.decode_throughput_tokens : The rate of a batch at this pace.

    Notes
    -----
    **Domain:** ``end_to_end_s`` at least ``ttft_s``, ``output_tokens`` at least 1.

    **Guard:** ``output_tokens <= 1`` gives 0.0: there is no token behind the first.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity less infinity is NaN.

    **Error:** 1.5 ULP (three roundings). A whole value of whole arguments up to 2**53 is exact.

    It is a mean for one request. A stall shows in the times between single tokens, which differ from it when tokens
    come several at once, as with speculation.

    References
    ----------
    .. [1] vLLM, ``vllm bench serve``, the metric TPOT; Y. Zhong et al., "DistServe: Disaggregating Prefill and Decoding
       for Goodput-optimized Large Language Model Serving", OSDI 2024, section 2.

    Examples
    --------
    100 tokens behind the first in 2.5 seconds:

    >>> from kvformulas.engine_admission import time_per_output_token
    >>> time_per_output_token(3, 0.5, 101)
    0.025

    A single token has no pace:

    >>> time_per_output_token(0.5, 0.5, 1)
    0.0
    """
    return c.time_per_output_token(
        real(end_to_end_s, "end_to_end_s"), real(ttft_s, "ttft_s"), real(output_tokens, "output_tokens")
    )


def concurrency(arrival_rate: float, latency_s: float) -> float:
    r"""
    Return the mean number of requests in a system.

    .. math::

        \mathrm{arrival\_rate} \cdot \mathrm{latency\_s}

    Little's law: however requests arrive and are served, what is in the system on average is the rate at which they
    come times the time that they stay [1]_.

    Parameters
    ----------
    arrival_rate : float
        Requests that arrive in a second, on average [requests/s].
    latency_s : float
        Time that a request stays, on average [s].

    Returns
    -------
    float
        Requests in the system, on average [requests].

    See Also
    --------
    time_to_first_token : The first part of a request's stay.
    kvformulas.attention_layouts.max_concurrency : The requests that the cache has room for.

    Notes
    -----
    **Domain:** both arguments at least 0, in one unit of time, which need not be the second.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN.

    **Error:** 0.5 ULP (one rounding). Whole arguments whose product is below 2**53 are exact.

    It holds for any part of the system with its own rate and stay: the time in the queue gives the mean queue, the time
    in decoding the mean batch. It needs a steady state: what arrives must also leave.

    References
    ----------
    .. [1] J. D. C. Little, "A Proof for the Queuing Formula: L = lambda W", Operations Research 9(3), 1961.

    Examples
    --------
    8 requests a second that stay for 12 and a half keep 100 in the system:

    >>> from kvformulas.engine_admission import concurrency
    >>> concurrency(8, 12.5)
    100.0

    Half the time, half the batch:

    >>> concurrency(8, 6.25)
    50.0
    """
    return c.concurrency(real(arrival_rate, "arrival_rate"), real(latency_s, "latency_s"))
