# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""A paged KV cache: what blocks cost to copy, share, fragment and branch, which to evict, and longer contexts."""
from kvformulas._real cimport real
from kvformulas.kernels cimport paged_kv_cache as c

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


def page_table_lookup(virtual_block_id: float, page_table_entry: float) -> float:
    r"""
    Return the physical block that a page table gives for a virtual block.

    .. math::

        \mathrm{page\_table\_entry}

    A block table maps the consecutive blocks of a sequence to blocks anywhere in memory [1]_.

    Parameters
    ----------
    virtual_block_id : float
        Number of the block within its sequence, which is ignored [block number].
    page_table_entry : float
        Number of the physical block that the caller's table holds for it [block number].

    Returns
    -------
    float
        Number of the physical block [block number].

    See Also
    --------
    kvformulas.kv_cache.paged_attention_block_count : The number of entries that a sequence needs.
    kvformulas.llm_sampling.top_k_threshold : Another named pass-through.
    kvformulas.speculative_decoding.token_healing_overlap : Another named pass-through.

    Notes
    -----
    **Domain:** any value.

    **Guard:** none.

    **Special values:** NaN in ``page_table_entry`` gives NaN; ``virtual_block_id`` is ignored, NaN too.

    **Error:** none (the value is one of the arguments).

    It is a named pass-through: it gives the step a name, and the table with its look-up is the caller's.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 4.2.

    Examples
    --------
    >>> from kvformulas.paged_kv_cache import page_table_lookup
    >>> page_table = [7, 1, 3]
    >>> page_table_lookup(2, page_table[2])
    3.0

    The table was read before the call, so the first argument changes nothing:

    >>> page_table_lookup(float("nan"), page_table[2])
    3.0
    """
    return c.page_table_lookup(
        real(virtual_block_id, "virtual_block_id"), real(page_table_entry, "page_table_entry")
    )


def cache_compaction_gain(
    fragmented_blocks: float, block_size_tokens: float, dtype_bytes: float,
    n_layers: float, n_heads: float, head_dim: float
) -> float:
    r"""
    Return the bytes that compacting half-empty blocks sets free.

    .. math::

        \frac{1}{2} \cdot \mathrm{fragmented\_blocks} \cdot \left(2 \cdot \mathrm{block\_size\_tokens}
        \cdot \mathrm{dtype\_bytes} \cdot \mathrm{n\_layers} \cdot \mathrm{n\_heads} \cdot \mathrm{head\_dim}\right)

    A block that is not full wastes the rest of its memory, the internal fragmentation of [1]_. A fragmented block is
    taken as half empty, which is the mean if every fill is equally likely.

    Parameters
    ----------
    fragmented_blocks : float
        Blocks that are not full [blocks].
    block_size_tokens : float
        Tokens that one block holds [tokens].
    dtype_bytes : float
        Size of one element: 2 for FP16 and BF16, 1 for FP8 [bytes].
    n_layers : float
        Layers that keep a KV cache [layers].
    n_heads : float
        Key-value heads of a layer [heads].
    head_dim : float
        Elements in one head's key or value vector [elements].

    Returns
    -------
    float
        Memory set free [bytes].

    See Also
    --------
    block_copy_cost : The time that moving a block takes.
    kvformulas.kv_cache.paged_attention_block_count : The blocks of one sequence.
    kvformulas.kv_cache.kv_cache_memory_per_layer : The same product for one layer.

    Notes
    -----
    **Domain:** every argument at least 0; fractions are taken as they are.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 2.5 ULP (five roundings; the factors 2 and one half are exact), while no partial product overflows or
    underflows. Whole arguments whose result is below 2**53 are exact.

    The bracket is the memory of one block over all layers: ``kvformulas.kv_cache.kv_cache_memory_per_layer`` of one
    sequence as long as a block, times the layers.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 3.1.

    Examples
    --------
    Ten fragmented blocks of 16 tokens of Qwen3-0.6B in FP16 hold 8.75 MiB of free memory:

    >>> from kvformulas.paged_kv_cache import cache_compaction_gain
    >>> cache_compaction_gain(10, 16, 2, 28, 8, 128)
    9175040.0

    Two half-empty blocks set one whole block free:

    >>> cache_compaction_gain(2, 16, 2, 28, 8, 128)
    1835008.0
    """
    return c.cache_compaction_gain(
        real(fragmented_blocks, "fragmented_blocks"), real(block_size_tokens, "block_size_tokens"),
        real(dtype_bytes, "dtype_bytes"), real(n_layers, "n_layers"), real(n_heads, "n_heads"),
        real(head_dim, "head_dim"),
    )


def block_copy_cost(
    block_size_tokens: float, n_layers: float, n_heads: float, head_dim: float,
    dtype_bytes: float, bandwidth_gbs: float
) -> float:
    r"""
    Return the milliseconds that copying one block over all layers takes.

    .. math::

        \frac{2 \cdot \mathrm{block\_size\_tokens} \cdot \mathrm{n\_layers} \cdot \mathrm{n\_heads}
        \cdot \mathrm{head\_dim} \cdot \mathrm{dtype\_bytes}}{\mathrm{bandwidth\_gbs} \cdot 10^9} \cdot 10^3

    A shared block is copied before a sequence writes to it, and blocks move when they are swapped [1]_. The cost is
    that of the bytes alone: a start-up time is not part of it.

    Parameters
    ----------
    block_size_tokens : float
        Tokens that one block holds [tokens].
    n_layers : float
        Layers that keep a KV cache [layers].
    n_heads : float
        Key-value heads of a layer [heads].
    head_dim : float
        Elements in one head's key or value vector [elements].
    dtype_bytes : float
        Size of one element: 2 for FP16 and BF16, 1 for FP8 [bytes].
    bandwidth_gbs : float
        Bandwidth of the copy, in decimal units of 10**9 bytes a second [GB/s].

    Returns
    -------
    float
        Time of the copy [ms].

    See Also
    --------
    cache_compaction_gain : The memory that moving blocks sets free.
    kvformulas.kv_cache.kv_cache_memory_per_layer : The same product for one layer, as a size.

    Notes
    -----
    **Domain:** every argument at least 0, ``bandwidth_gbs`` above 0.

    **Guard:** ``bandwidth_gbs <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; 0 times infinity and infinity over
    infinity are NaN; an overflow is infinity.

    **Error:** 3 ULP (six roundings: 10**9 and 10**3 are one factor of 10**6, and the factor 2 is exact), while no
    partial product overflows or underflows. For whole arguments with products below 2**53 one rounding is left,
    0.5 ULP, and a whole result is exact.

    A copy inside one memory reads and writes every byte, so half of that memory's bandwidth is the one to pass.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, sections 4.4 and 4.5.

    Examples
    --------
    One block of 16 tokens of Qwen3-0.6B in FP16 (1.75 MiB) at 100 GB/s:

    >>> from kvformulas.paged_kv_cache import block_copy_cost
    >>> block_copy_cost(16, 28, 8, 128, 2, 100)
    0.01835008

    Without a bandwidth the cost is unknown, and 0 stands for it:

    >>> block_copy_cost(16, 28, 8, 128, 2, 0)
    0.0
    """
    return c.block_copy_cost(
        real(block_size_tokens, "block_size_tokens"), real(n_layers, "n_layers"), real(n_heads, "n_heads"),
        real(head_dim, "head_dim"), real(dtype_bytes, "dtype_bytes"), real(bandwidth_gbs, "bandwidth_gbs"),
    )


def prefix_sharing_savings(
    shared_prefix_tokens: float, n_sequences: float, n_layers: float,
    n_heads: float, head_dim: float, dtype_bytes: float
) -> float:
    r"""
    Return the bytes that sequences save by sharing one copy of their common prefix.

    .. math::

        (\mathrm{n\_sequences} - 1) \cdot \left(2 \cdot \mathrm{shared\_prefix\_tokens} \cdot \mathrm{n\_layers}
        \cdot \mathrm{n\_heads} \cdot \mathrm{head\_dim} \cdot \mathrm{dtype\_bytes}\right)

    Sequences with the same prefix can point at the same blocks [1]_: one of them pays for the prefix, the others do
    not.

    Parameters
    ----------
    shared_prefix_tokens : float
        Length of the common prefix [tokens].
    n_sequences : float
        Sequences that share it, the first one included [sequences].
    n_layers : float
        Layers that keep a KV cache [layers].
    n_heads : float
        Key-value heads of a layer [heads].
    head_dim : float
        Elements in one head's key or value vector [elements].
    dtype_bytes : float
        Size of one element: 2 for FP16 and BF16, 1 for FP8 [bytes].

    Returns
    -------
    float
        Memory saved [bytes].

    See Also
    --------
    kvformulas.kv_cache.prefix_cache_hit_bytes : The memory of one copy of the prefix.
    kvformulas.kv_cache.radix_cache_shared_prefix_len : The length of a common prefix.
    kvformulas.kv_cache.kv_cache_memory_per_layer : The same product for one layer.

    Notes
    -----
    **Domain:** every argument at least 0, ``n_sequences`` at least 1.

    **Guard:** ``n_sequences <= 1`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; 0 times infinity is NaN; an overflow is
    infinity.

    **Error:** 3 ULP (six roundings; the factor 2 is exact), while no partial product overflows or underflows. Whole
    arguments whose result is below 2**53 are exact.

    An engine that shares whole blocks only saves what the prefix gives when rounded down to a multiple of the block
    size.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 4.4.

    Examples
    --------
    Four sequences of Qwen3-0.6B in FP16 with 2,048 tokens in common save three copies of 224 MiB:

    >>> from kvformulas.paged_kv_cache import prefix_sharing_savings
    >>> prefix_sharing_savings(2048, 4, 28, 8, 128, 2)
    704643072.0

    One sequence shares with nobody:

    >>> prefix_sharing_savings(2048, 1, 28, 8, 128, 2)
    0.0
    """
    return c.prefix_sharing_savings(
        real(shared_prefix_tokens, "shared_prefix_tokens"), real(n_sequences, "n_sequences"),
        real(n_layers, "n_layers"), real(n_heads, "n_heads"), real(head_dim, "head_dim"),
        real(dtype_bytes, "dtype_bytes"),
    )


def speculative_branch_memory(
    n_branches: float, speculation_depth: float, n_layers: float,
    n_heads: float, head_dim: float, dtype_bytes: float
) -> float:
    r"""
    Return the bytes of keys and values that the branches of a speculative draft cache.

    .. math::

        2 \cdot \mathrm{n\_branches} \cdot \mathrm{speculation\_depth} \cdot \mathrm{n\_layers}
        \cdot \mathrm{n\_heads} \cdot \mathrm{head\_dim} \cdot \mathrm{dtype\_bytes}

    A draft with several candidates is a tree of tokens, and the cache of those tokens is needed until the target model
    has verified them [1]_.

    Parameters
    ----------
    n_branches : float
        Branches of the draft [sequences].
    speculation_depth : float
        Draft tokens of each branch [tokens].
    n_layers : float
        Layers that keep a KV cache [layers].
    n_heads : float
        Key-value heads of a layer [heads].
    head_dim : float
        Elements in one head's key or value vector [elements].
    dtype_bytes : float
        Size of one element: 2 for FP16 and BF16, 1 for FP8 [bytes].

    Returns
    -------
    float
        Memory of the draft's cache [bytes].

    See Also
    --------
    kvformulas.continuous_batching.beam_memory_per_request : The same product for beams.
    kvformulas.kv_cache.kv_cache_memory_per_layer : The same product for one layer.
    kvformulas.speculative_decoding.speculative_expected_tokens : The tokens that this memory buys.

    Notes
    -----
    **Domain:** every argument at least 0; fractions are taken as they are.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 2.5 ULP (five roundings; the factor 2 is exact), while no partial product overflows or underflows.
    Whole arguments whose product is below 2**53 are exact.

    Branches are counted as if they shared nothing: a tree whose branches have a common stem needs less. The layers and
    heads are those of the model whose cache is asked for, the target's or the draft's.

    References
    ----------
    .. [1] X. Miao et al., "SpecInfer: Accelerating Large Language Model Serving with Tree-based Speculative Inference
       and Verification", ASPLOS 2024, section 4.

    Examples
    --------
    Four branches of five tokens of Qwen3-0.6B in FP16 take 2.1875 MiB:

    >>> from kvformulas.paged_kv_cache import speculative_branch_memory
    >>> speculative_branch_memory(4, 5, 28, 8, 128, 2)
    2293760.0

    A draft without branches is a single sequence:

    >>> speculative_branch_memory(1, 5, 28, 8, 128, 2)
    573440.0
    """
    return c.speculative_branch_memory(
        real(n_branches, "n_branches"), real(speculation_depth, "speculation_depth"), real(n_layers, "n_layers"),
        real(n_heads, "n_heads"), real(head_dim, "head_dim"), real(dtype_bytes, "dtype_bytes"),
    )


def cache_eviction_lru_score(last_access_step: float, current_step: float) -> float:
    r"""
    Return the steps since a block was last used: the larger, the sooner to evict.

    .. math::

        \mathrm{current\_step} - \mathrm{last\_access\_step}

    Evicting the block with the largest score is the least-recently-used rule, by which vLLM reuses the cached blocks
    that no request holds [1]_.

    Parameters
    ----------
    last_access_step : float
        Step in which the block was last used [steps].
    current_step : float
        Present step [steps].

    Returns
    -------
    float
        Age of the block [steps].

    See Also
    --------
    kvformulas.kv_cache.kv_eviction_score_lru : The same score in any time unit.
    cache_eviction_beladys_score : The distance to the next use, which LRU guesses.
    kvformulas.kv_cache.kv_eviction_score_h2o : A score by attention, of the opposite sense.

    Notes
    -----
    **Domain:** any two steps. A last access in the future gives a negative score.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; the difference of equal infinities is NaN.

    **Error:** 0.5 ULP (one rounding). Whole arguments whose difference is below 2**53 are exact.

    The value is that of ``kvformulas.kv_cache.kv_eviction_score_lru``, bit for bit; only the unit has a name here.
    A score is of one candidate under one policy. The four eviction scores are never compared with each other: choosing
    a victim among the candidates of one policy is the caller's work.

    References
    ----------
    .. [1] vLLM, automatic prefix caching: the queue of free blocks, least recently used first.

    Examples
    --------
    >>> from kvformulas.paged_kv_cache import cache_eviction_lru_score
    >>> cache_eviction_lru_score(90, 100)
    10.0

    A block of the present step is the last to go:

    >>> cache_eviction_lru_score(100, 100)
    0.0
    """
    return c.cache_eviction_lru_score(
        real(last_access_step, "last_access_step"), real(current_step, "current_step")
    )


def cache_eviction_beladys_score(next_access_step: float, current_step: float) -> float:
    r"""
    Return the steps until a block is used next: the larger, the sooner to evict.

    .. math::

        \begin{cases}
        10^9 & \text{if } \mathrm{next\_access\_step} < \mathrm{current\_step} \\
        \mathrm{next\_access\_step} - \mathrm{current\_step} & \text{otherwise}
        \end{cases}

    Evicting the block whose next use is farthest away is the optimal rule [1]_. It needs the future, so it serves as
    the bound that a replayed trace compares a real policy with.

    Parameters
    ----------
    next_access_step : float
        Step in which the block is used next; any step before the present one says never [steps].
    current_step : float
        Present step [steps].

    Returns
    -------
    float
        Distance to the next use, 10**9 for never [steps].

    See Also
    --------
    cache_eviction_lru_score : The score that looks back instead.
    kvformulas.kv_cache.kv_eviction_score_lru : The score that looks back, in any time unit.
    kvformulas.kv_cache.kv_eviction_score_h2o : A score by attention, of the opposite sense.

    Notes
    -----
    **Domain:** any two steps less than 10**9 apart. A block that is used farther ahead outranks one that is never used.

    **Guard:** ``next_access_step < current_step`` gives 1e9, which stands for never.

    **Special values:** NaN in any argument gives NaN; a next use at infinity gives infinity; the difference of equal
    infinities is NaN.

    **Error:** 0.5 ULP (one rounding). Whole arguments whose difference is below 2**53 are exact.

    A score is of one candidate under one policy. The four eviction scores are never compared with each other: choosing
    a victim among the candidates of one policy is the caller's work.

    References
    ----------
    .. [1] L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2),
       1966.

    Examples
    --------
    >>> from kvformulas.paged_kv_cache import cache_eviction_beladys_score
    >>> cache_eviction_beladys_score(130, 100)
    30.0

    A block whose last use is past is the first to go:

    >>> cache_eviction_beladys_score(90, 100)
    1000000000.0
    """
    return c.cache_eviction_beladys_score(
        real(next_access_step, "next_access_step"), real(current_step, "current_step")
    )


def cache_hit_latency_saving(prompt_tokens: float, prefill_throughput_tps: float) -> float:
    r"""
    Return the seconds of prefill that a cache hit makes unnecessary.

    .. math::

        \frac{\mathrm{prompt\_tokens}}{\mathrm{prefill\_throughput\_tps}}

    Tokens whose keys and values are cached are not prefilled again, which shortens the time to the first token [1]_.

    Parameters
    ----------
    prompt_tokens : float
        Prompt tokens found in the cache [tokens].
    prefill_throughput_tps : float
        Throughput of prefill [tokens/s].

    Returns
    -------
    float
        Time saved [s].

    See Also
    --------
    kvformulas.continuous_batching.streaming_first_token_latency : The same quotient, as the time of a whole prefill.
    kvformulas.kv_cache.prefix_cache_hit_bytes : The memory that the hit reuses.

    Notes
    -----
    **Domain:** ``prompt_tokens`` at least 0, ``prefill_throughput_tps`` above 0.

    **Guard:** ``prefill_throughput_tps <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN; an
    overflow is infinity.

    **Error:** 0.5 ULP (one rounding). A quotient that is a whole number is exact.

    The throughput is taken as constant. Prefill costs more a token in longer prompts, so the throughput to pass is one
    measured at the prompt's length.

    References
    ----------
    .. [1] L. Zheng et al., "SGLang: Efficient Execution of Structured Language Model Programs", NeurIPS 2024,
       section 3.

    Examples
    --------
    >>> from kvformulas.paged_kv_cache import cache_hit_latency_saving
    >>> cache_hit_latency_saving(2048, 8192)
    0.25

    Without a throughput nothing is known to be saved:

    >>> cache_hit_latency_saving(2048, 0)
    0.0
    """
    return c.cache_hit_latency_saving(
        real(prompt_tokens, "prompt_tokens"), real(prefill_throughput_tps, "prefill_throughput_tps")
    )


def dynamic_ntk_rope_scale(seq_len: float, base_context: float, alpha: float) -> float:
    r"""
    Return the factor by which dynamic NTK scaling enlarges the base of rotary embeddings.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{base\_context} \le 0 \\
        1 & \text{if } \mathrm{seq\_len} \le \mathrm{base\_context} \\
        \left(\frac{\mathrm{seq\_len}}{\mathrm{base\_context}}\right)^{\mathrm{alpha}} & \text{otherwise}
        \end{cases}

    A model reads beyond its training context if the base of its rotary embeddings grows with the sequence [1]_. For a
    head of d dimensions the exponent of [1]_ is d / (d - 2).

    Parameters
    ----------
    seq_len : float
        Present length of the sequence [tokens].
    base_context : float
        Context length that the model was trained for [tokens].
    alpha : float
        Exponent of the length ratio [exponent].

    Returns
    -------
    float
        Factor of the rotary base [ratio].

    See Also
    --------
    context_extension_factor : The linear factor between two context lengths.

    Notes
    -----
    **Domain:** ``seq_len`` at least 0, ``base_context`` above 0; any ``alpha``, though below 0 the base shrinks.

    **Guard:** ``base_context <= 0`` gives 1.0; ``seq_len <= base_context`` gives 1.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies: a NaN length to the power 0 too, where
    C's ``pow`` gives 1. An overflow is infinity.

    **Error:** 2.5 ULP (libm's ``pow`` and ``exp``, up to 1 each, and one rounding). The rounding of the ratio, which
    the power would multiply by ``alpha``, is taken out. A whole ratio to a whole power below 2**53 is exact with
    glibc's ``pow``.

    It is a planning formula, not a RoPE table: no frequency is computed here, and engines differ in how they build
    theirs.

    References
    ----------
    .. [1] B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", arXiv:2309.00071v2,
       2023, section 3.3 (dynamic scaling) with the base change of section 3.1 (NTK-aware interpolation).

    Examples
    --------
    Four times the training context, with the exponent of a head of 128 dimensions:

    >>> from kvformulas.paged_kv_cache import dynamic_ntk_rope_scale
    >>> round(dynamic_ntk_rope_scale(16384, 4096, 128 / 126), 9)
    4.088994243

    Within the training context the base stays as it is:

    >>> dynamic_ntk_rope_scale(2048, 4096, 128 / 126)
    1.0
    """
    return c.dynamic_ntk_rope_scale(
        real(seq_len, "seq_len"), real(base_context, "base_context"), real(alpha, "alpha")
    )


def context_extension_factor(original_max_len: float, target_max_len: float) -> float:
    r"""
    Return the factor by which a context window grows.

    .. math::

        \frac{\mathrm{target\_max\_len}}{\mathrm{original\_max\_len}}

    Position interpolation divides every position by this factor, so that the longer window falls within the range of
    positions that the model was trained for [1]_.

    Parameters
    ----------
    original_max_len : float
        Context length that the model was trained for [tokens].
    target_max_len : float
        Context length that is wanted [tokens].

    Returns
    -------
    float
        Factor of the context length [ratio].

    See Also
    --------
    dynamic_ntk_rope_scale : The factor of the rotary base instead, by the present length.

    Notes
    -----
    **Domain:** ``original_max_len`` above 0, ``target_max_len`` at least 0. A shorter target gives a factor below 1.

    **Guard:** ``original_max_len <= 0`` gives 1.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN; an
    overflow is infinity.

    **Error:** 0.5 ULP (one rounding). A quotient that is a whole number is exact.

    It is a planning formula, not a RoPE table: no position or frequency is computed here.

    References
    ----------
    .. [1] S. Chen et al., "Extending Context Window of Large Language Models via Positional Interpolation",
       arXiv:2306.15595, 2023, section 2.3.

    Examples
    --------
    >>> from kvformulas.paged_kv_cache import context_extension_factor
    >>> context_extension_factor(4096, 32768)
    8.0

    Without an original length there is nothing to extend:

    >>> context_extension_factor(0, 32768)
    1.0
    """
    return c.context_extension_factor(
        real(original_max_len, "original_max_len"), real(target_max_len, "target_max_len")
    )
