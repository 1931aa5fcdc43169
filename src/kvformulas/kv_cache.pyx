# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""Memory, use and eviction of a contiguous KV cache, shared prefixes, and the error of an INT8 code."""
from kvformulas._real cimport real
from kvformulas.kernels cimport kv_cache as c

__all__ = [
    "kv_cache_memory_per_layer",
    "kv_cache_utilization",
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

    Notes
    -----
    **Domain:** every argument at least 0; fractions are taken as they are (a 4-bit element has 0.5 bytes).

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 2 ULP (four roundings; the factor 2 is exact). Whole arguments whose product is below 2**53 are exact.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 3.1.

    Examples
    --------
    Qwen3-0.6B (8 KV heads of 128 elements) at 2,048 tokens in FP16 takes 8 MiB a layer:

    >>> from kvformulas.kv_cache import kv_cache_memory_per_layer
    >>> kv_cache_memory_per_layer(1, 2048, 8, 128, 2)
    8388608.0
    """
    return c.kv_cache_memory_per_layer(
        real(batch_size, "batch_size"), real(seq_len, "seq_len"), real(n_heads, "n_heads"),
        real(head_dim, "head_dim"), real(dtype_bytes, "dtype_bytes"),
    )


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
    batching_efficiency : The same clamped ratio, of compute.

    Notes
    -----
    **Domain:** ``cached_tokens`` at least 0, ``max_tokens`` above 0. Above 1 the share is clamped; below 0 it is not.

    **Guard:** ``max_tokens <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 0.5 ULP (one rounding).

    References
    ----------
    .. [1] vLLM, metric ``vllm:kv_cache_usage_perc``.

    Examples
    --------
    >>> from kvformulas.kv_cache import kv_cache_utilization
    >>> kv_cache_utilization(1536, 2048)
    0.75
    >>> kv_cache_utilization(4096, 2048)
    1.0
    """
    return c.kv_cache_utilization(real(cached_tokens, "cached_tokens"), real(max_tokens, "max_tokens"))
