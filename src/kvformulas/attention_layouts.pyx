# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""What a token costs by attention layout: full, latent, windowed, chunked, recurrent, quantised, split over ranks."""
from kvformulas._real cimport real
from kvformulas.kernels cimport attention_layouts as c

__all__ = [
    "attention_kv_bytes_per_token",
    "mla_kv_bytes_per_token",
    "sliding_window_tokens",
    "chunked_attention_tokens",
    "recurrent_state_bytes",
    "conv_state_bytes",
    "quantized_head_bytes",
    "kv_heads_per_rank",
    "sliding_window_blocks",
    "block_waste_tokens",
    "max_concurrency",
]


def attention_kv_bytes_per_token(
    n_layers: float, n_kv_heads: float, k_head_dim: float, v_head_dim: float, dtype_bytes: float
) -> float:
    r"""
    Return the memory that one token's keys and values take in all layers.

    .. math::

        \mathrm{n\_layers} \cdot \mathrm{n\_kv\_heads} \cdot (\mathrm{k\_head\_dim} + \mathrm{v\_head\_dim})
        \cdot \mathrm{dtype\_bytes}

    Every layer keeps one key and one value vector for each KV head, which with grouped-query attention are fewer than
    the query heads [1]_. Key and value may differ in size, so that both are asked for.

    Parameters
    ----------
    n_layers : float
        Layers that keep a full cache: in a hybrid model only its attention layers [layers].
    n_kv_heads : float
        Key-value heads of a layer, not query heads [heads].
    k_head_dim : float
        Elements of a key vector [elements].
    v_head_dim : float
        Elements of a value vector [elements].
    dtype_bytes : float
        Bytes of one element: 2 for FP16 and BF16, 1 for FP8 [bytes].

    Returns
    -------
    float
        Memory of one token [bytes/token].

    See Also
    --------
    mla_kv_bytes_per_token : The latent layout, that replaces keys and values.
    quantized_head_bytes : A vector with its scales, where elements alone do not tell its size.
    kvformulas.kv_cache.kv_cache_memory_per_layer : The same product for a layer and a batch, keys as large as values.

    Notes
    -----
    **Domain:** every argument at least 0; ``dtype_bytes`` may be a fraction, 0.5 for a 4-bit element.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 2 ULP (four roundings), while no partial product overflows or underflows. Whole arguments whose product
    is below 2**53 are exact.

    The head dimension is the model's own: hidden size over attention heads is not always it. For Qwen3 that quotient
    gives half of the right value, 57,344 bytes for 114,688 [2]_.

    References
    ----------
    .. [1] J. Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints",
       EMNLP 2023, section 2.2.
    .. [2] LMCache, issue 688, the KV cache calculator's values for Qwen3.

    Examples
    --------
    Qwen3-0.6B in FP16, 112 KiB, and a Llama of 32 layers, 128 KiB:

    >>> from kvformulas.attention_layouts import attention_kv_bytes_per_token
    >>> attention_kv_bytes_per_token(28, 8, 128, 128, 2)
    114688.0
    >>> attention_kv_bytes_per_token(32, 8, 128, 128, 2)
    131072.0

    Keys of 192 and values of 128 elements:

    >>> attention_kv_bytes_per_token(61, 128, 192, 128, 2)
    4997120.0
    """
    return c.attention_kv_bytes_per_token(
        real(n_layers, "n_layers"), real(n_kv_heads, "n_kv_heads"), real(k_head_dim, "k_head_dim"),
        real(v_head_dim, "v_head_dim"), real(dtype_bytes, "dtype_bytes"),
    )


def mla_kv_bytes_per_token(
    n_layers: float, kv_lora_rank: float, qk_rope_head_dim: float, dtype_bytes: float
) -> float:
    r"""
    Return the memory that one token takes in all layers of multi-head latent attention.

    .. math::

        \mathrm{n\_layers} \cdot (\mathrm{kv\_lora\_rank} + \mathrm{qk\_rope\_head\_dim}) \cdot \mathrm{dtype\_bytes}

    Latent attention keeps one compressed vector for a token, from which the keys and values of all heads are computed,
    and beside it one key that carries the rotary position and is shared by the heads [1]_.

    Parameters
    ----------
    n_layers : float
        Layers of the model [layers].
    kv_lora_rank : float
        Elements of the compressed vector [elements].
    qk_rope_head_dim : float
        Elements of the shared rotary key [elements].
    dtype_bytes : float
        Bytes of one element: 2 for FP16 and BF16, 1 for FP8 [bytes].

    Returns
    -------
    float
        Memory of one token [bytes/token].

    See Also
    --------
    attention_kv_bytes_per_token : The layout with keys and values for each head.
    kv_heads_per_rank : What tensor parallelism leaves to a rank, which divides heads and not a latent.

    Notes
    -----
    **Domain:** every argument at least 0.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 1.5 ULP (three roundings), while no partial product overflows or underflows. Whole arguments whose
    product is below 2**53 are exact.

    There is no factor 2: the latent holds keys and values at once. There is no number of heads either, so that tensor
    parallelism does not shrink the cache of a rank: each holds the whole latent. An engine that does not absorb the
    projections keeps full keys and values, and then ``attention_kv_bytes_per_token`` applies. Formats that mix types
    within a token, such as an FP8 latent with BF16 rotary part and scales, need the sum of their parts.

    References
    ----------
    .. [1] DeepSeek-AI, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model", 2024,
       section 2.1 and table 1.
    .. [2] gguf-parser-go, issue 8, the cache of DeepSeek-V3 at 65,536 tokens.

    Examples
    --------
    DeepSeek-V3 in BF16: 68.6 KiB, where full heads would take 4.8 MiB:

    >>> from kvformulas.attention_layouts import mla_kv_bytes_per_token
    >>> mla_kv_bytes_per_token(61, 512, 64, 2)
    70272.0

    65,536 tokens of it at 4 bits [2]_:

    >>> 65536 * mla_kv_bytes_per_token(61, 512, 64, 0.5)
    1151336448.0
    """
    return c.mla_kv_bytes_per_token(
        real(n_layers, "n_layers"), real(kv_lora_rank, "kv_lora_rank"), real(qk_rope_head_dim, "qk_rope_head_dim"),
        real(dtype_bytes, "dtype_bytes"),
    )


def sliding_window_tokens(seq_len: float, window: float) -> float:
    r"""
    Return the tokens that a sliding-window layer attends to.

    .. math::

        \min(\mathrm{seq\_len}, \mathrm{window})

    A layer with a sliding window looks back over a fixed number of tokens, its own among them, so that its cache stops
    growing when the window is full [1]_.

    Parameters
    ----------
    seq_len : float
        Tokens of the sequence [tokens].
    window : float
        Tokens that the window spans, the newest included [tokens].

    Returns
    -------
    float
        Tokens whose keys and values the layer needs [tokens].

    See Also
    --------
    sliding_window_blocks : The blocks that an engine reserves for the window.
    chunked_attention_tokens : The other local layout, that starts afresh at every chunk.

    Notes
    -----
    **Domain:** ``seq_len`` and ``window`` at least 0.

    **Guard:** ``window <= 0`` gives ``seq_len``: no window.

    **Special values:** NaN in any argument gives NaN; an infinite ``window`` gives ``seq_len``.

    **Error:** none (one of the arguments is returned).

    Between two steps ``transformers`` keeps one token less, since the next step brings its own key, and engines with
    paged caches keep more: whole blocks, and the tokens of a prefill chunk.

    References
    ----------
    .. [1] A. Q. Jiang et al., "Mistral 7B", 2023, section 2.

    Examples
    --------
    >>> from kvformulas.attention_layouts import sliding_window_tokens
    >>> sliding_window_tokens(1000, 4096), sliding_window_tokens(32768, 4096)
    (1000.0, 4096.0)

    A layer without a window needs every token:

    >>> sliding_window_tokens(32768, 0)
    32768.0
    """
    return c.sliding_window_tokens(real(seq_len, "seq_len"), real(window, "window"))


def chunked_attention_tokens(seq_len: float, chunk: float) -> float:
    r"""
    Return the tokens that the newest token of a chunked-attention layer attends to.

    .. math::

        \operatorname{mod}(\mathrm{seq\_len} - 1, \mathrm{chunk}) + 1

    Chunked attention cuts the sequence into chunks of a fixed length, and a token sees those of its own chunk up to
    itself [1]_. The count climbs to the chunk's length and starts again at 1.

    Parameters
    ----------
    seq_len : float
        Tokens of the sequence [tokens].
    chunk : float
        Tokens of a chunk [tokens].

    Returns
    -------
    float
        Tokens of the last chunk [tokens].

    See Also
    --------
    sliding_window_tokens : The local layout that slides.
    kvformulas.continuous_batching.chunked_prefill_chunks : Chunks of a prefill, which do not limit what a token sees.

    Notes
    -----
    **Domain:** whole ``seq_len`` at least 0, whole ``chunk`` at least 1. The remainder has the sign of
    ``seq_len - 1``, as that of C's ``fmod``.

    **Guard:** ``seq_len <= 0`` gives 0.0, then ``chunk <= 0`` gives ``seq_len``: no chunks.

    **Special values:** NaN in any argument gives NaN, unless the first guard applies. An infinite ``seq_len`` gives
    NaN, an infinite ``chunk`` gives ``seq_len``.

    **Error:** 0.5 ULP (one rounding, where a chunk is added; the remainder is exact at any size), for a ``chunk`` of at
    least 1. Whole arguments are exact. A ``chunk`` below 1 is taken as written: ``seq_len - 1`` is rounded, and where
    it has more than 53 bits its remainder is any number.

    A cache that only drops what is a chunk's length old keeps ``sliding_window_tokens(seq_len, chunk)``, as
    ``transformers`` does: the two layouts then differ in their masks alone.

    References
    ----------
    .. [1] vLLM, ``ChunkedLocalAttentionSpec``, and ``transformers``, ``attention_chunk_size`` of Llama 4.

    Examples
    --------
    The last token of a chunk of 8,192 sees all of it, the first of the next only itself:

    >>> from kvformulas.attention_layouts import chunked_attention_tokens
    >>> chunked_attention_tokens(8192, 8192), chunked_attention_tokens(8193, 8192)
    (8192.0, 1.0)

    Without chunks a token sees the sequence, and an empty sequence has none to see:

    >>> chunked_attention_tokens(8193, 0), chunked_attention_tokens(0, 8192)
    (8193.0, 0.0)
    """
    return c.chunked_attention_tokens(real(seq_len, "seq_len"), real(chunk, "chunk"))


def recurrent_state_bytes(
    n_layers: float, n_heads: float, head_dim: float, state_size: float, dtype_bytes: float
) -> float:
    r"""
    Return the memory of one sequence's recurrent state in all layers.

    .. math::

        \mathrm{n\_layers} \cdot \mathrm{n\_heads} \cdot \mathrm{head\_dim} \cdot \mathrm{state\_size}
        \cdot \mathrm{dtype\_bytes}

    A state-space or linear-attention layer folds every token into a matrix for each head: head by state size in
    Mamba-2 [1]_, value by key size in gated DeltaNet [2]_. The sequence's length is not in it.

    Parameters
    ----------
    n_layers : float
        Recurrent layers of the model [layers].
    n_heads : float
        Heads of a layer: value heads in gated DeltaNet [heads].
    head_dim : float
        Elements of a head: of a value in gated DeltaNet [elements].
    state_size : float
        State elements for each element of a head: of a key in gated DeltaNet [elements].
    dtype_bytes : float
        Bytes of one element, often 4 where the rest of the model has 2 [bytes].

    Returns
    -------
    float
        Memory of one sequence, however long [bytes].

    See Also
    --------
    conv_state_bytes : The short convolution's part, kept beside it.
    attention_kv_bytes_per_token : The layout that grows with every token.

    Notes
    -----
    **Domain:** every argument at least 0.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 2 ULP (four roundings), while no partial product overflows or underflows. Whole arguments whose product
    is below 2**53 are exact.

    Prefix caching needs a copy of the state at every point from which a later request may continue.

    References
    ----------
    .. [1] T. Dao and A. Gu, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured
       State Space Duality", ICML 2024, section 7.
    .. [2] S. Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule", ICLR 2025, section 3.1.

    Examples
    --------
    Mamba-2 with 2.7 billion parameters in FP16 keeps 80 MiB for a sequence:

    >>> from kvformulas.attention_layouts import recurrent_state_bytes
    >>> recurrent_state_bytes(64, 80, 64, 128, 2)
    83886080.0

    As much as 731 tokens of Qwen3-0.6B's cache:

    >>> from kvformulas.attention_layouts import attention_kv_bytes_per_token
    >>> recurrent_state_bytes(64, 80, 64, 128, 2) // attention_kv_bytes_per_token(28, 8, 128, 128, 2)
    731.0
    """
    return c.recurrent_state_bytes(
        real(n_layers, "n_layers"), real(n_heads, "n_heads"), real(head_dim, "head_dim"),
        real(state_size, "state_size"), real(dtype_bytes, "dtype_bytes"),
    )


def conv_state_bytes(n_layers: float, channels: float, columns: float, dtype_bytes: float) -> float:
    r"""
    Return the memory of one sequence's convolution inputs in all layers.

    .. math::

        \mathrm{n\_layers} \cdot \mathrm{channels} \cdot \mathrm{columns} \cdot \mathrm{dtype\_bytes}

    Before its recurrence a Mamba layer mixes each channel with its last few inputs, which are kept for the next
    token [1]_.

    Parameters
    ----------
    n_layers : float
        Layers with a convolution [layers].
    channels : float
        Channels that are convolved: in Mamba-2 the inner size and two states for each group [channels].
    columns : float
        Inputs that are kept for each channel [columns].
    dtype_bytes : float
        Bytes of one element: 2 for FP16 and BF16 [bytes].

    Returns
    -------
    float
        Memory of one sequence, however long [bytes].

    See Also
    --------
    recurrent_state_bytes : The state that the convolved inputs update.

    Notes
    -----
    **Domain:** every argument at least 0.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity.

    **Error:** 1.5 ULP (three roundings), while no partial product overflows or underflows. Whole arguments whose
    product is below 2**53 are exact.

    The columns depend on the engine: ``transformers`` keeps the kernel's width, vLLM one less, since the next token
    brings the newest input itself, and with speculation one more for each draft.

    References
    ----------
    .. [1] A. Gu and T. Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", COLM 2024, section 3.4.

    Examples
    --------
    Mamba-2 with 2.7 billion parameters: 5,120 inner channels, one group of 2 states of 128, a kernel of 4:

    >>> from kvformulas.attention_layouts import conv_state_bytes
    >>> conv_state_bytes(64, 5120 + 2 * 128, 4, 2)
    2752512.0

    The same where the engine leaves out the newest column:

    >>> conv_state_bytes(64, 5120 + 2 * 128, 4 - 1, 2)
    2064384.0
    """
    return c.conv_state_bytes(
        real(n_layers, "n_layers"), real(channels, "channels"), real(columns, "columns"),
        real(dtype_bytes, "dtype_bytes"),
    )


def quantized_head_bytes(head_dim: float, bits: float, group_size: float, scale_bytes: float) -> float:
    r"""
    Return the memory of one quantised key or value vector and its scales.

    .. math::

        \frac{\mathrm{head\_dim} \cdot \mathrm{bits}}{8}
        + \operatorname{ceil}\left(\frac{\mathrm{head\_dim}}{\mathrm{group\_size}}\right) \cdot \mathrm{scale\_bytes}

    A quantised vector is a row of small codes and a scale for each group of them. The smaller the group, the better it
    follows outliers, and the more the scales weigh [1]_.

    Parameters
    ----------
    head_dim : float
        Elements of the vector [elements].
    bits : float
        Bits of one code [bits].
    group_size : float
        Elements that share a scale [elements].
    scale_bytes : float
        Bytes of a group's scale, with its zero point if it has one [bytes].

    Returns
    -------
    float
        Memory of one vector of one head [bytes].

    See Also
    --------
    attention_kv_bytes_per_token : The unquantised layout.
    kvformulas.kv_cache.kv_quantization_error : The error that a scale costs.

    Notes
    -----
    **Domain:** whole ``head_dim`` at least 0, whole ``group_size`` at least 1, the others at least 0.

    **Guard:** ``group_size <= 0`` gives ``head_dim * bits / 8 + scale_bytes``: one scale for the vector.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN; an overflow is infinity. An infinite
    ``group_size`` leaves no scale.

    **Error:** 1.5 ULP of the largest term (four roundings, of which no term carries more than two). For arguments at
    least 0 the largest term is the value. Whole arguments whose value is below 2**50 are exact. With fractions a
    quotient within half an ULP of a whole number counts as that number.

    A token's memory is this, for keys and values, times layers and KV heads. One scale for the whole cache, as plain
    FP8 has, is no part of it: ``scale_bytes`` is then 0.

    References
    ----------
    .. [1] Z. Liu et al., "KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache", ICML 2024, section 3.
    .. [2] NVIDIA, "Pretraining Large Language Models with NVFP4", 2025, section 2: blocks of 16 with an FP8 scale.

    Examples
    --------
    INT8 with an FP32 scale for each head, 132 bytes for FP16's 256, and NVFP4, 72 bytes [2]_:

    >>> from kvformulas.attention_layouts import quantized_head_bytes
    >>> quantized_head_bytes(128, 8, 128, 4)
    132.0
    >>> quantized_head_bytes(128, 4, 16, 1)
    72.0

    A group that is not full has a scale too, and without groups there is one scale:

    >>> quantized_head_bytes(80, 4, 32, 2), quantized_head_bytes(80, 4, 0, 2)
    (46.0, 42.0)
    """
    return c.quantized_head_bytes(
        real(head_dim, "head_dim"), real(bits, "bits"), real(group_size, "group_size"), real(scale_bytes, "scale_bytes")
    )


def kv_heads_per_rank(n_kv_heads: float, tensor_parallel: float) -> float:
    r"""
    Return the KV heads that one rank of a tensor-parallel group holds.

    .. math::

        \max\left(1, \operatorname{ceil}\left(\frac{\mathrm{n\_kv\_heads}}{\mathrm{tensor\_parallel}}\right)\right)

    Tensor parallelism deals the heads of a layer out to the ranks [1]_. A head is not split: once there are more ranks
    than KV heads, ranks hold copies of one.

    Parameters
    ----------
    n_kv_heads : float
        Key-value heads of a layer [heads].
    tensor_parallel : float
        Ranks that share the layer [ranks].

    Returns
    -------
    float
        KV heads on the fullest rank [heads].

    See Also
    --------
    attention_kv_bytes_per_token : The bytes that a rank's heads take.
    mla_kv_bytes_per_token : The layout that is copied to every rank whole.

    Notes
    -----
    **Domain:** whole ``n_kv_heads`` and ``tensor_parallel``, both at least 1.

    **Guard:** ``tensor_parallel <= 0`` gives ``n_kv_heads``: one rank.

    **Special values:** NaN in any argument gives NaN, unless the guard applies to another; infinity over infinity is
    NaN.

    **Error:** 0.5 ULP (one rounding, of the quotient, before the ceiling). Whole arguments up to 2**53 are exact. With
    fractions a quotient within half an ULP above a whole number counts as that number.

    Engines ask for heads that the ranks divide, or ranks that the heads divide. There the ceiling changes nothing, and
    agrees with vLLM, which rounds down. Beyond as many ranks as heads the cache of the group grows with every rank.

    References
    ----------
    .. [1] M. Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism",
       2019, section 3.
    .. [2] vLLM, ``ModelConfig.get_num_kv_heads``: at least one head on each rank.

    Examples
    --------
    8 heads on 4 ranks, and on 32, where each holds a copy and not a quarter of one [2]_:

    >>> from kvformulas.attention_layouts import kv_heads_per_rank
    >>> kv_heads_per_rank(8, 4), kv_heads_per_rank(8, 32)
    (2.0, 1.0)

    The fullest of 3 ranks decides, and without ranks one holds all:

    >>> kv_heads_per_rank(8, 3), kv_heads_per_rank(8, 0)
    (3.0, 8.0)
    """
    return c.kv_heads_per_rank(real(n_kv_heads, "n_kv_heads"), real(tensor_parallel, "tensor_parallel"))


def sliding_window_blocks(
    seq_len: float, window: float, max_batched_tokens: float, block_size: float
) -> float:
    r"""
    Return the blocks that an engine reserves for a sliding-window layer of one request.

    .. math::

        \operatorname{ceil}\left(
        \frac{\min(\mathrm{window} - 1 + \mathrm{max\_batched\_tokens}, \mathrm{seq\_len})}{\mathrm{block\_size}}
        \right) + 1

    During chunked prefill the layer holds the last ``window - 1`` tokens and those that the step adds, never more than
    the sequence. One block more is needed because the window may begin in the middle of one [1]_.

    Parameters
    ----------
    seq_len : float
        Most tokens that the sequence may reach [tokens].
    window : float
        Tokens that the window spans, the newest included [tokens].
    max_batched_tokens : float
        Most tokens that one step computes [tokens].
    block_size : float
        Tokens that one block holds [tokens].

    Returns
    -------
    float
        Blocks of one group of such layers [blocks].

    See Also
    --------
    sliding_window_tokens : What the layer attends to, without an engine's reserve.
    kvformulas.kv_cache.paged_attention_block_count : The blocks of a layer without a window.
    max_concurrency : How often the cache has these blocks.

    Notes
    -----
    **Domain:** whole arguments, ``seq_len`` and ``max_batched_tokens`` at least 0, ``window`` and ``block_size`` at
    least 1.

    **Guard:** ``block_size <= 0`` gives the tokens, ``min(window - 1 + max_batched_tokens, seq_len)``, as if each had a
    block, in which no window can begin half-way.

    **Special values:** NaN in any argument gives NaN. An infinite window, step or sequence leaves the other side of the
    minimum; an infinite ``block_size`` gives 1.0, unless the tokens are infinite too.

    **Error:** 2 ULP of the largest term (four roundings); in the domain that is the value. Whole arguments up to 2**53
    are exact. With fractions a quotient within its rounding above a whole number counts as that number.

    It bounds the blocks of any moment, so an engine sizes its pool and admits requests by it. A step as long as the
    sequence makes the window worthless: the reserve is then that of full attention, and a block.

    References
    ----------
    .. [1] vLLM, ``SlidingWindowSpec.max_admission_blocks_per_request``.

    Examples
    --------
    A window of 1,024 and steps of 8,192 tokens: 577 blocks, where full attention takes 2,048:

    >>> from kvformulas.attention_layouts import sliding_window_blocks
    >>> sliding_window_blocks(32768, 1024, 8192, 16)
    577.0

    A short sequence needs its own blocks and one, and without a block size tokens are counted:

    >>> sliding_window_blocks(100, 1024, 8192, 16), sliding_window_blocks(100, 1024, 8192, 0)
    (8.0, 100.0)
    """
    return c.sliding_window_blocks(
        real(seq_len, "seq_len"), real(window, "window"), real(max_batched_tokens, "max_batched_tokens"),
        real(block_size, "block_size"),
    )


def block_waste_tokens(seq_len: float, block_size: float) -> float:
    r"""
    Return the slots of a sequence's last block that stay empty.

    .. math::

        \operatorname{ceil}\left(\frac{\mathrm{seq\_len}}{\mathrm{block\_size}}\right) \cdot \mathrm{block\_size}
        - \mathrm{seq\_len}

    Only the last block of a sequence can be partly filled, which bounds what paging wastes to less than a block for a
    sequence [1]_.

    Parameters
    ----------
    seq_len : float
        Tokens of the sequence [tokens].
    block_size : float
        Tokens that one block holds [tokens].

    Returns
    -------
    float
        Empty slots [tokens].

    See Also
    --------
    kvformulas.kv_cache.paged_attention_block_count : The blocks that hold the sequence.
    kvformulas.paged_kv_cache.cache_compaction_gain : The memory of blocks taken as half empty.

    Notes
    -----
    **Domain:** whole ``seq_len`` at least 0, whole ``block_size`` at least 1. Fractions are taken as they are.

    **Guard:** ``block_size <= 0`` gives 0.0: without blocks none is wasted.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; an infinity gives NaN.

    **Error:** 0.5 ULP (one rounding). Whole arguments are exact, however large: the value is taken from the remainder,
    which is never rounded.

    Averaged over many sequences of unrelated lengths the waste is nearly half a block each.

    References
    ----------
    .. [1] W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
       SOSP 2023, section 4.3.
    .. [2] TensorRT-LLM, issue 224, 10,718 tokens in blocks of 16.

    Examples
    --------
    10,718 tokens fill 669 blocks of 16 and all but 2 slots of another [2]_:

    >>> from kvformulas.attention_layouts import block_waste_tokens
    >>> block_waste_tokens(10718, 16)
    2.0

    A full block wastes nothing, a token that opens one wastes the rest:

    >>> block_waste_tokens(2048, 16), block_waste_tokens(2049, 16)
    (0.0, 15.0)
    """
    return c.block_waste_tokens(real(seq_len, "seq_len"), real(block_size, "block_size"))


def max_concurrency(total_blocks: float, blocks_per_request: float) -> float:
    r"""
    Return how many requests of one size the cache holds at once.

    .. math::

        \frac{\mathrm{total\_blocks}}{\mathrm{blocks\_per\_request}}

    Engines report this figure at start, for requests of the greatest length that they serve [1]_. Below 1 not even one
    such request fits.

    Parameters
    ----------
    total_blocks : float
        Blocks of the cache [blocks].
    blocks_per_request : float
        Blocks that one request takes at its longest, summed over the groups of layers [blocks].

    Returns
    -------
    float
        Requests at once, with a fraction [requests].

    See Also
    --------
    kvformulas.kv_cache.paged_attention_block_count : The blocks of a request with full attention.
    sliding_window_blocks : Those of a group with a sliding window.
    kvformulas.continuous_batching.iteration_level_batch_size : The same in whole sequences of average length.

    Notes
    -----
    **Domain:** ``total_blocks`` at least 0, ``blocks_per_request`` above 0. Both may be in tokens.

    **Guard:** ``blocks_per_request <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 0.5 ULP (one rounding).

    vLLM divided tokens in its first version, and now divides by whole blocks, which is a little less: 29,000 tokens
    take 1,813 blocks of 16, not 1,812.5.

    References
    ----------
    .. [1] vLLM, ``get_max_concurrency_for_kv_cache_config``, and pull request 12569, the line in the log.
    .. [2] vLLM, issue 10517, 1,478 blocks of 16 for requests of 29,000 tokens.

    Examples
    --------
    1,478 blocks of 16 for requests of 29,000 tokens, the log's 0.82 [2]_:

    >>> from kvformulas.attention_layouts import max_concurrency
    >>> round(max_concurrency(1478 * 16, 29000), 4)
    0.8154

    The same with whole blocks, and without a size:

    >>> from kvformulas.kv_cache import paged_attention_block_count
    >>> round(max_concurrency(1478, paged_attention_block_count(29000, 16)), 4)
    0.8152
    >>> max_concurrency(1478, 0)
    0.0
    """
    return c.max_concurrency(real(total_blocks, "total_blocks"), real(blocks_per_request, "blocks_per_request"))
