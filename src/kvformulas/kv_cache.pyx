# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""Memory, use and eviction of a contiguous KV cache, shared prefixes, and the error of an INT8 code."""
from kvformulas._real cimport real
from kvformulas.kernels cimport kv_cache as c

__all__ = [
    "kv_cache_memory_per_layer",
    "kv_cache_total_memory",
    "kv_cache_utilization",
    "kv_eviction_score_lru",
    "kv_eviction_score_h2o",
    "radix_cache_shared_prefix_len",
    "prefix_cache_hit_bytes",
    "kv_quantization_error",
    "paged_attention_block_count",
    "incremental_decode_kv_append",
]


def kv_cache_memory_per_layer(
    batch_size: float, seq_len: float, n_heads: float, head_dim: float, dtype_bytes: float
) -> float:
    r"""
    Return the bytes of keys and values that one layer caches.

    .. math::

        2 \cdot \mathrm{batch\_size} \cdot \mathrm{seq\_len} \cdot \mathrm{n\_heads}
        \cdot \mathrm{head\_dim} \cdot \mathrm{dtype\_bytes}

    The 2 is one key and one value vector for each token and head [1]_.

    Parameters
    ----------
    batch_size : float
        Sequences in the batch [sequences].
    seq_len : float
        Cached tokens of each sequence [tokens].
    n_heads : float
        Key-value heads, which grouped-query attention has fewer of than query heads [heads].
    head_dim : float
        Elements in one head's key or value vector [elements].
    dtype_bytes : float
        Size of one element: 2 for FP16 and BF16, 1 for FP8 [bytes].

    Returns
    -------
    float
        Memory of one layer's cache [bytes].

    See Also
    --------
    kv_cache_total_memory : The same over all layers.
    prefix_cache_hit_bytes : The same product for a shared prefix.
    kvformulas.paged_kv_cache.cache_compaction_gain : The same product for half-empty blocks.
    kvformulas.paged_kv_cache.block_copy_cost : The same product for one block, as a transfer time.
    kvformulas.paged_kv_cache.prefix_sharing_savings : The same product for the copies of a prefix that sharing avoids.
    kvformulas.paged_kv_cache.speculative_branch_memory : The same product for the branches of a draft.
    kvformulas.continuous_batching.beam_memory_per_request : The same product for the beams of a request.

    Notes
    -----
    **Domain:** every argument at least 0; fractions are taken as they are (a 4-bit element has 0.5 bytes).

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 2 ULP (four roundings; the factor 2 is exact), while no partial product overflows or underflows.
    Whole arguments whose product is below 2**53 are exact.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 3.

    Examples
    --------
    Qwen3-0.6B (8 KV heads of 128 elements) at 2,048 tokens in FP16 takes 8 MiB a layer:

    >>> from kvformulas.kv_cache import kv_cache_memory_per_layer
    >>> kv_cache_memory_per_layer(1, 2048, 8, 128, 2)
    8388608.0

    A 4-bit cache takes a quarter of that:

    >>> kv_cache_memory_per_layer(1, 2048, 8, 128, 0.5)
    2097152.0
    """
    return c.kv_cache_memory_per_layer(
        real(batch_size, "batch_size"), real(seq_len, "seq_len"), real(n_heads, "n_heads"),
        real(head_dim, "head_dim"), real(dtype_bytes, "dtype_bytes"),
    )


def kv_cache_total_memory(per_layer_bytes: float, n_layers: float) -> float:
    r"""
    Return the bytes of keys and values that all layers cache.

    .. math::

        \mathrm{per\_layer\_bytes} \cdot \mathrm{n\_layers}

    Every layer of the model keeps keys and values of its own, so the cache of a token is that of one layer times the
    number of layers [1]_.

    Parameters
    ----------
    per_layer_bytes : float
        Memory of one layer's cache [bytes].
    n_layers : float
        Layers that keep a KV cache [layers].

    Returns
    -------
    float
        Memory of the whole cache [bytes].

    See Also
    --------
    kv_cache_memory_per_layer : The memory of one layer.
    prefix_cache_hit_bytes : The product over all layers in one call.

    Notes
    -----
    **Domain:** every argument at least 0. Layers whose caches differ in size, such as those of a sliding window,
    are to be summed by the caller.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 0.5 ULP (one rounding). Whole arguments whose product is below 2**53 are exact.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 3.

    Examples
    --------
    The 28 layers of Qwen3-0.6B at 2,048 tokens in FP16 take 224 MiB:

    >>> from kvformulas.kv_cache import kv_cache_memory_per_layer, kv_cache_total_memory
    >>> kv_cache_total_memory(8388608, 28)
    234881024.0

    One token of OPT-13B (40 layers of 40 heads) takes 800 KiB, the figure in [1]_:

    >>> kv_cache_total_memory(kv_cache_memory_per_layer(1, 1, 40, 128, 2), 40)
    819200.0
    """
    return c.kv_cache_total_memory(real(per_layer_bytes, "per_layer_bytes"), real(n_layers, "n_layers"))


def kv_cache_utilization(cached_tokens: float, max_tokens: float) -> float:
    r"""
    Return the share of the cache's token capacity that is in use, at most 1.

    .. math::

        \min\left(1, \frac{\mathrm{cached\_tokens}}{\mathrm{max\_tokens}}\right)

    An engine reports this share as its KV cache usage [1]_.

    Parameters
    ----------
    cached_tokens : float
        Tokens in the cache [tokens].
    max_tokens : float
        Tokens that the cache can hold [tokens].

    Returns
    -------
    float
        Share in use [ratio].

    See Also
    --------
    kvformulas.continuous_batching.batching_efficiency : The same clamped ratio, of compute.

    Notes
    -----
    **Domain:** ``cached_tokens`` at least 0, ``max_tokens`` above 0. Above 1 the share is clamped; below 0 it is not.

    **Guard:** ``max_tokens <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 0.5 ULP (one rounding). A quotient that is a whole number is exact.

    References
    ----------
    .. [1] vLLM, metric ``vllm:kv_cache_usage_perc``.

    Examples
    --------
    >>> from kvformulas.kv_cache import kv_cache_utilization
    >>> kv_cache_utilization(1536, 2048)
    0.75

    More tokens than the cache can hold are a full cache, and a cache without capacity is an unused one:

    >>> kv_cache_utilization(4096, 2048)
    1.0
    >>> kv_cache_utilization(4096, 0)
    0.0

    NaN is not hidden by the clamp:

    >>> kv_cache_utilization(float("nan"), 2)
    nan
    """
    return c.kv_cache_utilization(real(cached_tokens, "cached_tokens"), real(max_tokens, "max_tokens"))


def kv_eviction_score_lru(last_access_time: float, current_time: float) -> float:
    r"""
    Return the time since an entry was last used: the larger, the sooner to evict.

    .. math::

        \mathrm{current\_time} - \mathrm{last\_access\_time}

    Evicting the entry with the largest score is the least-recently-used rule, by which SGLang evicts the leaves of its
    radix tree [1]_.

    Parameters
    ----------
    last_access_time : float
        When the entry was last used [any time unit].
    current_time : float
        The present, on the same clock [any time unit].

    Returns
    -------
    float
        Age of the entry, in the unit of the arguments [any time unit].

    See Also
    --------
    kvformulas.paged_kv_cache.cache_eviction_lru_score : The same score in scheduler steps.
    kv_eviction_score_h2o : A score by attention, of the opposite sense.
    kvformulas.paged_kv_cache.cache_eviction_beladys_score : The distance to the next use, which LRU guesses.

    Notes
    -----
    **Domain:** any two points on one clock. A last access in the future gives a negative score.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; the difference of equal infinities is NaN.

    **Error:** 0.5 ULP (one rounding). Whole arguments whose difference is below 2**53 are exact.

    A score is of one candidate under one policy. The four eviction scores are never compared with each other: choosing
    a victim among the candidates of one policy is the caller's work. Large clocks in seconds have coarse fractions (a
    Unix time has steps of 0.24 microseconds); a clock that starts with the process has finer ones.

    References
    ----------
    .. [1] L. Zheng et al., "SGLang: Efficient Execution of Structured Language Model Programs", NeurIPS 2024,
       section 3.

    Examples
    --------
    >>> from kvformulas.kv_cache import kv_eviction_score_lru
    >>> kv_eviction_score_lru(12.5, 20)
    7.5

    The entry that was idle longest is the victim:

    >>> last_access = {"a": 5, "b": 2, "c": 9}
    >>> max(last_access, key=lambda entry: kv_eviction_score_lru(last_access[entry], 10))
    'b'
    """
    return c.kv_eviction_score_lru(real(last_access_time, "last_access_time"), real(current_time, "current_time"))


def kv_eviction_score_h2o(attention_sum: float, recency_weight: float) -> float:
    r"""
    Return a token's attention mass weighted by recency: the larger, the longer to keep.

    .. math::

        \mathrm{attention\_sum} \cdot \mathrm{recency\_weight}

    A few tokens, the heavy hitters, receive most of the attention, and a cache that keeps them can drop the others
    at little loss [1]_.

    Parameters
    ----------
    attention_sum : float
        Attention probability that the token has received so far, over all steps [probability].
    recency_weight : float
        Weight of the token's age, chosen by the caller: 1 for recent tokens, less for old ones [ratio].

    Returns
    -------
    float
        Weighted attention mass [probability].

    See Also
    --------
    kv_eviction_score_lru : A score by age, of the opposite sense.
    kvformulas.paged_kv_cache.cache_eviction_lru_score : A score by age in steps, of the opposite sense.
    kvformulas.paged_kv_cache.cache_eviction_beladys_score : A score by the next use, of the opposite sense.

    Notes
    -----
    **Domain:** ``attention_sum`` at least 0 (a sum of probabilities may exceed 1), ``recency_weight`` from 0 to 1.
    Neither is clamped.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 0.5 ULP (one rounding). Whole arguments whose product is below 2**53 are exact.

    The paper keeps the heavy hitters and a window of recent tokens side by side; the product puts both in one number.
    A score is of one candidate under one policy. The four eviction scores are never compared with each other, and this
    is the only one whose smallest value is the victim.

    References
    ----------
    .. [1] Z. Zhang et al., "H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models",
       NeurIPS 2023, section 4.

    Examples
    --------
    An old heavy hitter outlives a recent token that few others attend to:

    >>> from kvformulas.kv_cache import kv_eviction_score_h2o
    >>> kv_eviction_score_h2o(6, 0.25)
    1.5
    >>> kv_eviction_score_h2o(0.5, 1)
    0.5
    """
    return c.kv_eviction_score_h2o(real(attention_sum, "attention_sum"), real(recency_weight, "recency_weight"))


def radix_cache_shared_prefix_len(prefix_a_len: float, prefix_b_len: float, match_len: float) -> float:
    r"""
    Return the length of the prefix that two sequences share, at most that of the shorter one.

    .. math::

        \min\left(\mathrm{match\_len}, \mathrm{prefix\_a\_len}, \mathrm{prefix\_b\_len}\right)

    A radix tree shares the cache of a common prefix between requests [1]_. A shared prefix can't be longer than either
    sequence, so a match that claims more is cut.

    Parameters
    ----------
    prefix_a_len : float
        Length of one sequence [tokens].
    prefix_b_len : float
        Length of the other sequence [tokens].
    match_len : float
        Length of the match that a look-up reports [tokens].

    Returns
    -------
    float
        Length of the shared prefix [tokens].

    See Also
    --------
    prefix_cache_hit_bytes : The memory of a shared prefix.

    Notes
    -----
    **Domain:** every argument at least 0. A negative length is returned as it is.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; zeros of opposite sign count as equal.

    **Error:** none (the value is one of the arguments).

    References
    ----------
    .. [1] L. Zheng et al., "SGLang: Efficient Execution of Structured Language Model Programs", NeurIPS 2024,
       section 3.

    Examples
    --------
    A match of 12 tokens is too long for a sequence of 10:

    >>> from kvformulas.kv_cache import radix_cache_shared_prefix_len
    >>> radix_cache_shared_prefix_len(10, 15, 12)
    10.0
    >>> radix_cache_shared_prefix_len(10, 15, 7)
    7.0
    """
    return c.radix_cache_shared_prefix_len(
        real(prefix_a_len, "prefix_a_len"), real(prefix_b_len, "prefix_b_len"), real(match_len, "match_len")
    )


def prefix_cache_hit_bytes(
    shared_prefix_len: float, n_heads: float, head_dim: float, n_layers: float, dtype_bytes: float
) -> float:
    r"""
    Return the bytes of keys and values that a prefix hit reuses over all layers.

    .. math::

        2 \cdot \mathrm{shared\_prefix\_len} \cdot \mathrm{n\_heads} \cdot \mathrm{head\_dim}
        \cdot \mathrm{n\_layers} \cdot \mathrm{dtype\_bytes}

    This memory is neither computed nor stored again for a request whose prefix is cached [1]_.

    Parameters
    ----------
    shared_prefix_len : float
        Length of the cached prefix [tokens].
    n_heads : float
        Key-value heads of a layer [heads].
    head_dim : float
        Elements in one head's key or value vector [elements].
    n_layers : float
        Layers that keep a KV cache [layers].
    dtype_bytes : float
        Size of one element: 2 for FP16 and BF16, 1 for FP8 [bytes].

    Returns
    -------
    float
        Memory of the reused cache [bytes].

    See Also
    --------
    radix_cache_shared_prefix_len : The length of the prefix.
    kv_cache_memory_per_layer : The same product for one layer and a batch.
    kv_cache_total_memory : That product over all layers.
    kvformulas.paged_kv_cache.prefix_sharing_savings : The same product for several sequences that share the prefix.
    kvformulas.paged_kv_cache.cache_hit_latency_saving : The time that the hit saves.

    Notes
    -----
    **Domain:** every argument at least 0; fractions are taken as they are.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 2 ULP (four roundings; the factor 2 is exact), while no partial product overflows or underflows.
    Whole arguments whose product is below 2**53 are exact.

    The value is that of ``kv_cache_memory_per_layer`` for one sequence passed to ``kv_cache_total_memory``,
    in one call and with the layers inside the product.

    References
    ----------
    .. [1] L. Zheng et al., "SGLang: Efficient Execution of Structured Language Model Programs", NeurIPS 2024,
       section 3.

    Examples
    --------
    A hit on 2,048 tokens of Qwen3-0.6B in FP16 reuses 224 MiB:

    >>> from kvformulas.kv_cache import prefix_cache_hit_bytes
    >>> prefix_cache_hit_bytes(2048, 8, 128, 28, 2)
    234881024.0

    One more token adds 112 KiB:

    >>> prefix_cache_hit_bytes(1, 8, 128, 28, 2)
    114688.0
    """
    return c.prefix_cache_hit_bytes(
        real(shared_prefix_len, "shared_prefix_len"), real(n_heads, "n_heads"), real(head_dim, "head_dim"),
        real(n_layers, "n_layers"), real(dtype_bytes, "dtype_bytes"),
    )


def kv_quantization_error(value: float, scale: float, zero_point: float) -> float:
    r"""
    Return the absolute error of storing a value as a signed 8-bit code.

    .. math::

        \left| \mathrm{value} - (q - \mathrm{zero\_point}) \cdot \mathrm{scale} \right|
        \text{ with } q = \max\left(-128, \min\left(127,
        \left\lfloor \frac{\mathrm{value}}{\mathrm{scale}} + \mathrm{zero\_point} \right\rceil\right)\right)

    The code stands for (q - zero_point) times scale, the affine scheme of [1]_. A value in the code's range errs by at
    most half a scale.

    Parameters
    ----------
    value : float
        Element of a key or value vector, in the unit of ``scale`` [any unit].
    scale : float
        Distance between the values of two neighbouring codes [any unit].
    zero_point : float
        Code of the value 0 [codes].

    Returns
    -------
    float
        Distance between the value and what its code stands for [any unit].

    See Also
    --------
    kv_cache_memory_per_layer : The memory that a smaller element saves.

    Notes
    -----
    **Domain:** ``scale`` above 0, ``zero_point`` whole and from -128 to 127. A fraction is taken as it is.

    **Guard:** ``scale <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies. An infinite ``value`` or ``zero_point``
    gives infinity; an infinite ``scale`` gives NaN where 0 is multiplied by it, else infinity.

    **Error:** 3.5 ULP of the largest term (five roundings, of which the two before the code is rounded count twice:
    next to a tie they can choose the other neighbour). The terms are ``value``, ``q * scale`` and
    ``zero_point * scale``. Whole arguments are exact while ``value`` and ``zero_point * scale`` are below 2**50.

    The code is clamped, never wrapped: a value out of range pays its whole distance from the range. Rounding is half to
    even, for negative values too. The reference system truncates after adding 0.5, so that -1.375 at scale 1 errs by
    1.375 there.

    References
    ----------
    .. [1] B. Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
       Inference", CVPR 2018, section 2.1, equation 1.

    Examples
    --------
    A negative value is rounded to the nearest code, -1:

    >>> from kvformulas.kv_cache import kv_quantization_error
    >>> kv_quantization_error(-1.375, 1, 0)
    0.375

    A value out of range has code 127, and a scale that is no scale has no error:

    >>> kv_quantization_error(300, 1, 0)
    173.0
    >>> kv_quantization_error(300, 0, 0)
    0.0
    """
    return c.kv_quantization_error(real(value, "value"), real(scale, "scale"), real(zero_point, "zero_point"))


def paged_attention_block_count(seq_len: float, block_size: float) -> float:
    r"""
    Return the number of blocks that hold a sequence, the last one perhaps in part.

    .. math::

        \operatorname{trunc}\left(
        \frac{\mathrm{seq\_len} + \mathrm{block\_size} - 1}{\mathrm{block\_size}}\right)

    A paged cache is allocated in blocks of a fixed number of tokens [1]_.

    Parameters
    ----------
    seq_len : float
        Tokens of the sequence [tokens].
    block_size : float
        Tokens that one block holds: vLLM's default is 16 [tokens].

    Returns
    -------
    float
        Blocks to allocate [blocks].

    See Also
    --------
    kvformulas.continuous_batching.chunked_prefill_chunks : The same count, of prefill chunks.
    kvformulas.paged_kv_cache.cache_compaction_gain : The memory that half-empty blocks waste.

    Notes
    -----
    **Domain:** whole ``seq_len`` at least 0, whole ``block_size`` at least 1. A fraction of a token below 1 does not
    open a block.

    **Guard:** ``block_size <= 0`` gives ``seq_len``, as if each token had a block.

    **Special values:** NaN in any argument gives NaN, unless the guard applies. An infinite ``seq_len`` gives infinity,
    an infinite ``block_size`` NaN.

    **Error:** none (every whole argument up to 2**53 gives the exact ceiling). Beyond 2**53, and for a fraction, the
    quotient is rounded: the count can be one block off where the exact quotient is next to a whole number.

    The fraction is dropped in floating point, so a count is never cut to the range of an integer: 1e19 tokens in blocks
    of 1 are 1e19 blocks, where the reference system returns a wrapped integer.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 4.1.

    Examples
    --------
    >>> from kvformulas.kv_cache import paged_attention_block_count
    >>> paged_attention_block_count(2048, 16)
    128.0
    >>> paged_attention_block_count(2049, 16)
    129.0
    >>> paged_attention_block_count(1, 16)
    1.0
    >>> paged_attention_block_count(0, 16)
    0.0

    Without a block size there is no paging, and a count has no upper limit:

    >>> paged_attention_block_count(2048, 0)
    2048.0
    >>> paged_attention_block_count(1e19, 1)
    1e+19
    """
    return c.paged_attention_block_count(real(seq_len, "seq_len"), real(block_size, "block_size"))


def incremental_decode_kv_append(current_len: float) -> float:
    r"""
    Return the length of a sequence's cache after one decode step.

    .. math::

        \mathrm{current\_len} + 1

    A decode step computes the key and value of one token and adds them to the cache [1]_.

    Parameters
    ----------
    current_len : float
        Cached tokens before the step [tokens].

    Returns
    -------
    float
        Cached tokens after the step [tokens].

    See Also
    --------
    kv_cache_utilization : The share of the capacity that a length takes.
    paged_attention_block_count : The blocks that a length takes.

    Notes
    -----
    **Domain:** ``current_len`` at least 0.

    **Guard:** none.

    **Special values:** NaN gives NaN; an infinity stays itself.

    **Error:** 0.5 ULP (one rounding). A whole argument below 2**53 is exact; 2**53 is the last length reached by
    steps of one.

    It names the step and appends nothing: the keys and values are the caller's.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 2.2.

    Examples
    --------
    The step after 2,048 tokens opens a new block of 16:

    >>> from kvformulas.kv_cache import incremental_decode_kv_append, paged_attention_block_count
    >>> incremental_decode_kv_append(2048)
    2049.0
    >>> paged_attention_block_count(incremental_decode_kv_append(2048), 16)
    129.0
    """
    return c.incremental_decode_kv_append(real(current_len, "current_len"))
