# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""One iteration of a continuous-batching scheduler: admit, size, preempt, chunk, and the rates that it reports."""
from kvformulas._real cimport real
from kvformulas.kernels cimport continuous_batching as c

__all__ = [
    "admission_control_accept",
    "iteration_level_batch_size",
    "preemption_score",
    "chunked_prefill_chunks",
    "decode_throughput_tokens",
    "streaming_first_token_latency",
    "head_of_line_blocking_score",
    "batching_efficiency",
    "sequence_completion_fraction",
    "beam_memory_per_request",
]


def admission_control_accept(request_kv_tokens: float, available_kv_tokens: float, safety_margin: float) -> float:
    r"""
    Return whether a request fits into the KV cache with a margin to spare.

    .. math::

        t = \mathrm{available\_kv\_tokens} \cdot (1 - \mathrm{safety\_margin}) ;
        \begin{cases}
        1 & \text{if } \mathrm{request\_kv\_tokens} \le t \\
        0 & \text{otherwise}
        \end{cases}

    A scheduler admits a waiting request only if the cache can hold it [1]_. The margin is taken off first, so that
    the sequences already running have room to grow before anything must be preempted [2]_.

    Parameters
    ----------
    request_kv_tokens : float
        Tokens that the request will cache [tokens].
    available_kv_tokens : float
        Tokens that the cache can still take [tokens].
    safety_margin : float
        Share of the available tokens that is kept back [ratio].

    Returns
    -------
    float
        1.0 to accept, 0.0 to reject [gate].

    See Also
    --------
    iteration_level_batch_size : How many average sequences fit.
    preemption_score : Whom to evict when too much was admitted.

    Notes
    -----
    **Domain:** token counts at least 0, ``safety_margin`` in 0 to 1.

    **Guard:** none.

    **Special values:** NaN in any argument rejects, and so does an infinite ``available_kv_tokens`` with a margin of 1.

    **Error:** none in the comparison; the threshold has 1 ULP (two roundings). With a margin of 0 it is
    exact.

    The margin is a share of what is free now. In vLLM it is a share of all blocks, fixed at the start.

    References
    ----------
    .. [1] G.-I. Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI 2022,
       algorithm 1.
    .. [2] vLLM, block manager, ``watermark``: blocks that stay free when a request is admitted.

    Examples
    --------
    A margin of 0.1 leaves 180 of 200 tokens, and not one more:

    >>> from kvformulas.continuous_batching import admission_control_accept
    >>> admission_control_accept(180, 200, 0.1)
    1.0
    >>> admission_control_accept(181, 200, 0.1)
    0.0

    An unknown size is not admitted:

    >>> admission_control_accept(float("nan"), 200, 0.1)
    0.0
    """
    return c.admission_control_accept(
        real(request_kv_tokens, "request_kv_tokens"), real(available_kv_tokens, "available_kv_tokens"),
        real(safety_margin, "safety_margin"),
    )


def iteration_level_batch_size(available_kv_tokens: float, avg_seq_remaining: float) -> float:
    r"""
    Return the sequences that the free KV cache can carry to their end.

    .. math::

        \operatorname{trunc}\left(\frac{\mathrm{available\_kv\_tokens}}{\mathrm{avg\_seq\_remaining}}\right)

    A scheduler that works iteration by iteration chooses its batch anew for every token [1]_. This is the batch size
    at which sequences of average length can all finish without preemption.

    Parameters
    ----------
    available_kv_tokens : float
        Tokens that the cache can still take [tokens].
    avg_seq_remaining : float
        Tokens that a sequence will still cache on average [tokens].

    Returns
    -------
    float
        Whole sequences that fit [sequences].

    See Also
    --------
    admission_control_accept : The decision on one request.

    Notes
    -----
    **Domain:** ``available_kv_tokens`` at least 0, ``avg_seq_remaining`` above 0. The fraction is dropped toward zero.

    **Guard:** ``avg_seq_remaining <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 0.5 ULP (one rounding, of the quotient, before the truncation). Whole arguments up to 2**53 are exact.
    With fractions a quotient within half an ULP below a whole number counts as that number.

    References
    ----------
    .. [1] G.-I. Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI 2022,
       section 3, iteration-level scheduling.

    Examples
    --------
    Room for 33 sequences and a third is room for 33:

    >>> from kvformulas.continuous_batching import iteration_level_batch_size
    >>> iteration_level_batch_size(10000, 300)
    33.0

    Without an average nothing is planned:

    >>> iteration_level_batch_size(10000, 0)
    0.0
    """
    return c.iteration_level_batch_size(
        real(available_kv_tokens, "available_kv_tokens"), real(avg_seq_remaining, "avg_seq_remaining")
    )


def preemption_score(seq_priority: float, tokens_generated: float, kv_cache_tokens: float) -> float:
    r"""
    Return how good a candidate for preemption a sequence is.

    .. math::

        \frac{\mathrm{kv\_cache\_tokens}}{\mathrm{seq\_priority} \cdot (\mathrm{tokens\_generated} + 1)}

    When the cache runs out, a scheduler takes a running sequence's memory away and lets it start again later, the
    newest first [1]_. The sequence with the largest score frees the most memory for the least lost work.

    Parameters
    ----------
    seq_priority : float
        Importance of the sequence, larger is better protected [priority].
    tokens_generated : float
        Tokens that the sequence has generated [tokens].
    kv_cache_tokens : float
        Tokens that it holds in the cache [tokens].

    Returns
    -------
    float
        Score, larger to preempt sooner [score].

    See Also
    --------
    admission_control_accept : The margin that makes preemption rare.
    kvformulas.kv_cache.kv_eviction_score_h2o : A score for evicting single tokens.

    Notes
    -----
    **Domain:** ``seq_priority`` above 0, token counts at least 0.

    **Guard:** ``seq_priority * (tokens_generated + 1) <= 0`` gives ``kv_cache_tokens``.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 1.5 ULP (three roundings). With whole arguments only the quotient is rounded, 0.5 ULP.

    The score protects sunk cost: of two sequences of the same size and priority, the one that has just started goes
    first, since it is the cheapest to restart. Length alone does not decide. Priority is a second brake that acts
    independently: twice the priority halves the score. Note that vLLM's priorities count the other way, with the
    smallest number served first.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 4.5.

    Examples
    --------
    After 2 tokens a sequence scores 67 times as high as after 200:

    >>> from kvformulas.continuous_batching import preemption_score
    >>> preemption_score(1, 2, 1000) / preemption_score(1, 200, 1000)
    67.0

    Priority halves the score; without any, the guard leaves the size alone to decide:

    >>> preemption_score(1, 4, 1000), preemption_score(2, 4, 1000)
    (200.0, 100.0)
    >>> preemption_score(0, 4, 1000)
    1000.0
    """
    return c.preemption_score(
        real(seq_priority, "seq_priority"), real(tokens_generated, "tokens_generated"),
        real(kv_cache_tokens, "kv_cache_tokens"),
    )


def chunked_prefill_chunks(prompt_len: float, chunk_size: float) -> float:
    r"""
    Return the chunks into which a prompt is split for prefill.

    .. math::

        \operatorname{trunc}\left(\frac{\mathrm{prompt\_len} + \mathrm{chunk\_size} - 1}{\mathrm{chunk\_size}}\right)

    Chunked prefill spreads a long prompt over several iterations, so that running sequences keep decoding beside
    it [1]_. The last chunk may be short.

    Parameters
    ----------
    prompt_len : float
        Tokens in the prompt [tokens].
    chunk_size : float
        Most tokens of the prompt that one iteration takes [tokens].

    Returns
    -------
    float
        Iterations that the prefill needs [chunks].

    See Also
    --------
    streaming_first_token_latency : The time that the prefill takes.
    kvformulas.kv_cache.paged_attention_block_count : The same ceiling, of cache blocks.

    Notes
    -----
    **Domain:** whole ``prompt_len`` at least 0, whole ``chunk_size`` at least 1.

    **Guard:** ``chunk_size <= 0`` gives 1.0: the whole prompt at once.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; an infinite prompt gives infinity, an
    infinite chunk NaN.

    **Error:** 1.5 ULP (three roundings before the truncation). Whole arguments up to 2**53 are exact.

    The ceiling is taken by truncating the padded quotient. Where the padded sum would itself be rounded, from 2**53
    on, it is avoided. With fractions the formula is taken as it is written, which is not always the ceiling.

    References
    ----------
    .. [1] A. Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve", OSDI 2024,
       section 4.

    Examples
    --------
    Two full chunks and one of 904 tokens:

    >>> from kvformulas.continuous_batching import chunked_prefill_chunks
    >>> chunked_prefill_chunks(5000, 2048)
    3.0

    An exact fit needs no extra chunk, an empty prompt none at all:

    >>> chunked_prefill_chunks(4096, 2048), chunked_prefill_chunks(0, 2048)
    (2.0, 0.0)

    Without a chunk size the prompt is not split:

    >>> chunked_prefill_chunks(5000, 0)
    1.0
    """
    return c.chunked_prefill_chunks(real(prompt_len, "prompt_len"), real(chunk_size, "chunk_size"))


def decode_throughput_tokens(batch_size: float, decode_latency_ms: float) -> float:
    r"""
    Return the tokens that a decoding batch generates in a second.

    .. math::

        \frac{\mathrm{batch\_size} \cdot 1000}{\mathrm{decode\_latency\_ms}}

    Every iteration of decoding adds one token to every sequence of the batch, so a larger batch trades the latency
    of each sequence for the throughput of all [1]_.

    Parameters
    ----------
    batch_size : float
        Sequences decoded together [sequences].
    decode_latency_ms : float
        Time of one iteration, which is the time per output token (TPOT) of each sequence [ms].

    Returns
    -------
    float
        Throughput of the whole batch [tokens/s].

    See Also
    --------
    streaming_first_token_latency : The prefill's share of a request's time.
    kvformulas.speculative_decoding.draft_model_speedup : The factor by which speculation raises this.

    Notes
    -----
    **Domain:** ``batch_size`` at least 0, ``decode_latency_ms`` above 0.

    **Guard:** ``decode_latency_ms <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 1 ULP (two roundings). With a whole ``batch_size`` only the quotient is rounded, 0.5 ULP.

    References
    ----------
    .. [1] R. Pope et al., "Efficiently Scaling Transformer Inference", MLSys 2023, section 2.

    Examples
    --------
    32 sequences that each get a token every 25 ms:

    >>> from kvformulas.continuous_batching import decode_throughput_tokens
    >>> decode_throughput_tokens(32, 25)
    1280.0

    A latency of 0 is no measurement:

    >>> decode_throughput_tokens(32, 0)
    0.0
    """
    return c.decode_throughput_tokens(real(batch_size, "batch_size"), real(decode_latency_ms, "decode_latency_ms"))


def streaming_first_token_latency(prompt_len: float, prefill_throughput_tps: float) -> float:
    r"""
    Return the time that a prompt's prefill takes before the first token can stream.

    .. math::

        \frac{\mathrm{prompt\_len}}{\mathrm{prefill\_throughput\_tps}}

    The time to first token (TTFT) is what a user of a streaming service waits for an answer to begin [1]_. This is the
    part of it that the prompt's length decides.

    Parameters
    ----------
    prompt_len : float
        Tokens in the prompt that are not in the cache yet [tokens].
    prefill_throughput_tps : float
        Prompt tokens that the engine processes in a second [tokens/s].

    Returns
    -------
    float
        Time of the prefill [s].

    See Also
    --------
    chunked_prefill_chunks : The iterations that this time is spread over.
    decode_throughput_tokens : The rate of the tokens that follow.
    kvformulas.paged_kv_cache.cache_hit_latency_saving : The same time, saved by a cached prefix.

    Notes
    -----
    **Domain:** ``prompt_len`` at least 0, ``prefill_throughput_tps`` above 0.

    **Guard:** ``prefill_throughput_tps <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 0.5 ULP (one rounding).

    The result is in seconds, while the latencies that the formulas take are in milliseconds. Time in the queue and the
    network's share are not in it.

    References
    ----------
    .. [1] Y. Zhong et al., "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model
       Serving", OSDI 2024, section 1.

    Examples
    --------
    >>> from kvformulas.continuous_batching import streaming_first_token_latency
    >>> streaming_first_token_latency(5000, 8000)
    0.625

    An unknown throughput gives no estimate, which is not a short wait:

    >>> streaming_first_token_latency(5000, 0)
    0.0
    """
    return c.streaming_first_token_latency(
        real(prompt_len, "prompt_len"), real(prefill_throughput_tps, "prefill_throughput_tps")
    )


def head_of_line_blocking_score(longest_wait_ms: float, avg_wait_ms: float) -> float:
    r"""
    Return how much longer the longest wait is than the average one.

    .. math::

        \frac{\mathrm{longest\_wait\_ms}}{\mathrm{avg\_wait\_ms}}

    In a first-come-first-served queue a long job blocks every job behind it [1]_. The score rises as waits become
    uneven, and is 1 if all wait alike.

    Parameters
    ----------
    longest_wait_ms : float
        Wait of the request that has waited longest [ms].
    avg_wait_ms : float
        Mean wait of the requests in the queue [ms].

    Returns
    -------
    float
        Longest wait as a multiple of the mean [ratio].

    See Also
    --------
    chunked_prefill_chunks : A remedy, when long prompts block.
    preemption_score : A remedy, when long generations block.

    Notes
    -----
    **Domain:** ``longest_wait_ms`` at least ``avg_wait_ms``, which is above 0. Then the score is at least 1; it is not
    clamped.

    **Guard:** ``avg_wait_ms <= 0`` gives 1.0: no blocking.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 0.5 ULP (one rounding).

    References
    ----------
    .. [1] B. Wu et al., "Fast Distributed Inference Serving for Large Language Models", 2023, arXiv:2305.05920,
       section 1.

    Examples
    --------
    >>> from kvformulas.continuous_batching import head_of_line_blocking_score
    >>> head_of_line_blocking_score(900, 300)
    3.0

    An empty queue blocks nobody:

    >>> head_of_line_blocking_score(0, 0)
    1.0
    """
    return c.head_of_line_blocking_score(real(longest_wait_ms, "longest_wait_ms"), real(avg_wait_ms, "avg_wait_ms"))


def batching_efficiency(actual_compute: float, theoretical_max_compute: float) -> float:
    r"""
    Return the share of the hardware's compute that is used, at most 1.

    .. math::

        \min\left(1, \frac{\mathrm{actual\_compute}}{\mathrm{theoretical\_max\_compute}}\right)

    With the model's own operations above and the hardware's peak below, this is the model FLOPs utilization (MFU) [1]_.
    Batching raises it, since a batch shares each read of the weights.

    Parameters
    ----------
    actual_compute : float
        Compute that was done, in any unit that both arguments share [FLOP/s].
    theoretical_max_compute : float
        Compute that the hardware could have done [FLOP/s].

    Returns
    -------
    float
        Share in use [ratio].

    See Also
    --------
    decode_throughput_tokens : What the batch achieves in tokens.
    kvformulas.kv_cache.kv_cache_utilization : The same clamped ratio, of cache capacity.

    Notes
    -----
    **Domain:** ``actual_compute`` at least 0, ``theoretical_max_compute`` above 0. Above 1 the share is clamped; below
    0 it is not.

    **Guard:** ``theoretical_max_compute <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 0.5 ULP (one rounding; the clamp is exact).

    References
    ----------
    .. [1] A. Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", JMLR 24, 2023, section 4.1.

    Examples
    --------
    >>> from kvformulas.continuous_batching import batching_efficiency
    >>> batching_efficiency(234e12, 312e12)
    0.75

    A measurement above the peak counts as full use:

    >>> batching_efficiency(330e12, 312e12)
    1.0
    """
    return c.batching_efficiency(
        real(actual_compute, "actual_compute"), real(theoretical_max_compute, "theoretical_max_compute")
    )


def sequence_completion_fraction(completed: float, total_running: float) -> float:
    r"""
    Return the share of the running sequences that have completed.

    .. math::

        \frac{\mathrm{completed}}{\mathrm{total\_running}}

    With iteration-level scheduling a finished sequence leaves the batch at once and a waiting one takes its place [1]_.
    The share tells how fast the batch turns over.

    Parameters
    ----------
    completed : float
        Sequences that completed [sequences].
    total_running : float
        Sequences that were running [sequences].

    Returns
    -------
    float
        Share that completed [ratio].

    See Also
    --------
    iteration_level_batch_size : How many sequences can run.

    Notes
    -----
    **Domain:** ``completed`` at least 0, ``total_running`` above 0. The share is not clamped: counted over several
    iterations it can pass 1.

    **Guard:** ``total_running <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 0.5 ULP (one rounding).

    References
    ----------
    .. [1] G.-I. Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI 2022,
       section 3, iteration-level scheduling.

    Examples
    --------
    >>> from kvformulas.continuous_batching import sequence_completion_fraction
    >>> sequence_completion_fraction(12, 16)
    0.75

    More completions than places in the batch, and no batch at all:

    >>> sequence_completion_fraction(24, 16), sequence_completion_fraction(0, 0)
    (1.5, 0.0)
    """
    return c.sequence_completion_fraction(real(completed, "completed"), real(total_running, "total_running"))


def beam_memory_per_request(
    beam_width: float, max_seq_len: float, n_layers: float, n_heads: float, head_dim: float, dtype_bytes: float
) -> float:
    r"""
    Return the bytes of KV cache that a request with beam search needs at most.

    .. math::

        \mathrm{beam\_width} \cdot \left(2 \cdot \mathrm{max\_seq\_len} \cdot \mathrm{n\_layers}
        \cdot \mathrm{n\_heads} \cdot \mathrm{head\_dim} \cdot \mathrm{dtype\_bytes}\right)

    Every beam is a sequence with a cache of its own: one key and one value vector for each token, layer and head.
    A paged cache lets beams share the blocks they have in common, so this is the upper bound [1]_.

    Parameters
    ----------
    beam_width : float
        Beams that the request keeps [sequences].
    max_seq_len : float
        Tokens that a beam can reach, the prompt included [tokens].
    n_layers : float
        Layers of the model [layers].
    n_heads : float
        Key-value heads, which grouped-query attention has fewer of than query heads [heads].
    head_dim : float
        Elements in one head's key or value vector [elements].
    dtype_bytes : float
        Size of one element: 2 for FP16 and BF16, 1 for FP8 [bytes].

    Returns
    -------
    float
        Memory of all beams of the request [bytes].

    See Also
    --------
    admission_control_accept : The decision that needs the size of a request.
    kvformulas.kv_cache.kv_cache_memory_per_layer : The same product for one layer of a batch.
    kvformulas.paged_kv_cache.speculative_branch_memory : The same product for speculative branches.

    Notes
    -----
    **Domain:** every argument at least 0; fractions are taken as they are (a 4-bit element has 0.5 bytes).

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 2.5 ULP (five roundings; the factor 2 is exact). Whole arguments whose product is below 2**53 are exact.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 4.4.

    Examples
    --------
    Four beams of 2,048 tokens of Qwen3-0.6B (28 layers, 8 KV heads of 128 elements) in FP16 take 896 MiB:

    >>> from kvformulas.continuous_batching import beam_memory_per_request
    >>> beam_memory_per_request(4, 2048, 28, 8, 128, 2)
    939524096.0

    That is four caches of one sequence, layer by layer:

    >>> from kvformulas.kv_cache import kv_cache_memory_per_layer
    >>> 4 * 28 * kv_cache_memory_per_layer(1, 2048, 8, 128, 2)
    939524096.0
    """
    return c.beam_memory_per_request(
        real(beam_width, "beam_width"), real(max_seq_len, "max_seq_len"), real(n_layers, "n_layers"),
        real(n_heads, "n_heads"), real(head_dim, "head_dim"), real(dtype_bytes, "dtype_bytes"),
    )
