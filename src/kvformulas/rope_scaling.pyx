# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""Rotary position embeddings beyond their trained length: NTK, dynamic NTK, Llama 3, YaRN and LongRoPE scaling."""
from kvformulas._real cimport real
from kvformulas.kernels cimport rope_scaling as c

__all__ = [
    "rope_inverse_frequency",
    "ntk_rope_base",
    "dynamic_ntk_rope_base",
    "llama3_rope_frequency",
    "yarn_attention_factor",
    "yarn_correction_dim",
    "yarn_ramp",
    "longrope_attention_factor",
]


def rope_inverse_frequency(base: float, pair_index: float, head_dim: float) -> float:
    r"""
    Return the angle by which one pair of a head's dimensions turns for each position.

    .. math::

        \mathrm{base}^{-2 \cdot \mathrm{pair\_index} / \mathrm{head\_dim}}

    Rotary embeddings turn each pair of dimensions of a query and a key by its own angle times the position, so that
    their product depends on the distance alone [1]_. Engines call this angle the inverse frequency.

    Parameters
    ----------
    base : float
        Base of the geometric row of angles, ``rope_theta`` in model configurations, 10000 in the paper [ratio].
    pair_index : float
        Which pair of dimensions, from 0 to ``head_dim / 2 - 1`` [index].
    head_dim : float
        Dimensions that are rotated, all or a part of the head's [dimensions].

    Returns
    -------
    float
        Angle for each position, from 1 down to nearly 1 / ``base`` [radians/token].

    See Also
    --------
    ntk_rope_base : A base for longer contexts.
    llama3_rope_frequency : Llama 3's change of this angle.

    Notes
    -----
    **Domain:** ``base`` and ``head_dim`` above 0, ``pair_index`` at least 0.

    **Guard:** ``base <= 0`` or ``head_dim <= 0`` gives 1.0, the angle of pair 0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 2.5 ULP (1 ULP each for the library's power and the correction's exponential, and one rounding). Pair 0
    is exactly 1.

    The wavelength is 2 pi over this angle, in tokens. A power multiplies the rounding of its exponent by the logarithm
    of its base; it is computed and taken out.

    References
    ----------
    .. [1] J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021, arXiv:2104.09864,
       section 3.2.2.

    Examples
    --------
    >>> from kvformulas.rope_scaling import rope_inverse_frequency
    >>> rope_inverse_frequency(10000, 0, 128)
    1.0
    >>> rope_inverse_frequency(10000, 32, 128)
    0.01

    The slowest pair of Llama 3 turns once in some three million tokens:

    >>> import math
    >>> round(2 * math.pi / rope_inverse_frequency(500000, 63, 128))
    2559196
    """
    return c.rope_inverse_frequency(real(base, "base"), real(pair_index, "pair_index"), real(head_dim, "head_dim"))


def ntk_rope_base(base: float, alpha: float, head_dim: float) -> float:
    r"""
    Return the base of NTK-aware scaling.

    .. math::

        \mathrm{base} \cdot \mathrm{alpha}^{\mathrm{head\_dim} / (\mathrm{head\_dim} - 2)}

    With this base the slowest pair of dimensions turns ``alpha`` times as slowly and the fastest as before: long
    distances are interpolated and short ones stay sharp, without any training [1]_.

    Parameters
    ----------
    base : float
        Base that the model was trained with [ratio].
    alpha : float
        Factor by which the context grows [ratio].
    head_dim : float
        Dimensions that are rotated [dimensions].

    Returns
    -------
    float
        Scaled base [ratio].

    See Also
    --------
    dynamic_ntk_rope_base : A factor that grows with the sequence.
    rope_inverse_frequency : The angles that the base gives.

    Notes
    -----
    **Domain:** ``alpha`` at least 1, ``head_dim`` above 2.

    **Guard:** ``alpha <= 0`` or ``head_dim <= 2`` gives ``base``.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; an infinite ``head_dim`` gives
    ``base * alpha``.

    **Error:** 2.5 ULP (1 ULP for the library's power, and three roundings of which one, of the exponent, counts by
    ``ln(alpha) / (head_dim - 2)``), for a ``head_dim`` of 64 or more and an ``alpha`` up to 1e13.

    It is computed as ``base * alpha * alpha ** (2 / (head_dim - 2))``.

    References
    ----------
    .. [1] bloc97, "NTK-Aware Scaled RoPE allows LLaMA models to have extended (8k+) context size", r/LocalLLaMA, 2023;
       as in B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", ICLR 2024, definition
       1.

    Examples
    --------
    >>> from kvformulas.rope_scaling import ntk_rope_base
    >>> round(ntk_rope_base(10000, 8, 128))
    82685

    The slowest pair then turns an eighth as fast:

    >>> from kvformulas.rope_scaling import rope_inverse_frequency
    >>> slow = rope_inverse_frequency(ntk_rope_base(10000, 8, 128), 63, 128)
    >>> round(rope_inverse_frequency(10000, 63, 128) / slow, 12)
    8.0
    """
    return c.ntk_rope_base(real(base, "base"), real(alpha, "alpha"), real(head_dim, "head_dim"))


def dynamic_ntk_rope_base(
    base: float, factor: float, seq_len: float, max_position: float, head_dim: float
) -> float:
    r"""
    Return the base of dynamic NTK scaling for a sequence of that length.

    .. math::

        \mathrm{base} \cdot \left(\frac{\mathrm{factor} \cdot \max(\mathrm{seq\_len}, \mathrm{max\_position})}
        {\mathrm{max\_position}} - (\mathrm{factor} - 1)\right)^{\mathrm{head\_dim} / (\mathrm{head\_dim} - 2)}

    The scaling starts where the trained length ends, and grows with the sequence, so that short prompts are computed as
    trained [1]_ [2]_.

    Parameters
    ----------
    base : float
        Base that the model was trained with [ratio].
    factor : float
        Strength of the scaling beyond the trained length [ratio].
    seq_len : float
        Length of the sequence [tokens].
    max_position : float
        Length that the model was trained with [tokens].
    head_dim : float
        Dimensions that are rotated [dimensions].

    Returns
    -------
    float
        Scaled base, ``base`` up to the trained length [ratio].

    See Also
    --------
    ntk_rope_base : The same with a given growth.
    kvformulas.paged_kv_cache.dynamic_ntk_rope_scale : A plain power of the ratio of the lengths.

    Notes
    -----
    **Domain:** ``factor`` and ``max_position`` above 0, ``head_dim`` above 2.

    **Guard:** ``max_position <= 0`` or ``seq_len <= max_position`` gives ``base``; so does a growth (the bracket) of 0
    or less and ``head_dim <= 2``.

    **Special values:** NaN in any argument gives NaN, unless a guard applies; infinity over infinity is NaN.

    **Error:** 4 ULP (1 ULP for the library's power, two roundings as in ``ntk_rope_base``, and three of the growth,
    which count by ``head_dim / (head_dim - 2)``), for a ``head_dim`` of 64 or more. Whole lengths save one of them.

    The growth is computed as ``(max_position + factor * (seq_len - max_position)) / max_position``, in which nothing
    cancels.

    vLLM long put ``factor * max_position`` in the place of the sequence's length, which makes the base constant; the
    value for that length is the same.

    References
    ----------
    .. [1] emozilla, "Dynamically Scaled RoPE further increases performance of long context LLaMA with zero
       fine-tuning", r/LocalLLaMA, 2023; Hugging Face Transformers, ``modeling_rope_utils``, type "dynamic".
    .. [2] vllm-project/vllm#41236.

    Examples
    --------
    Twice the trained length at a factor of 2 is a growth of 3:

    >>> from kvformulas.rope_scaling import dynamic_ntk_rope_base, ntk_rope_base
    >>> round(dynamic_ntk_rope_base(10000, 2, 4096, 2048, 128), 1)
    30527.7
    >>> dynamic_ntk_rope_base(10000, 2, 4096, 2048, 128) == ntk_rope_base(10000, 3, 128)
    True

    Up to the trained length nothing changes:

    >>> dynamic_ntk_rope_base(10000, 2, 1000, 2048, 128)
    10000.0
    """
    return c.dynamic_ntk_rope_base(
        real(base, "base"), real(factor, "factor"), real(seq_len, "seq_len"), real(max_position, "max_position"),
        real(head_dim, "head_dim"),
    )


def llama3_rope_frequency(
    inv_freq: float, factor: float, low_freq_factor: float, high_freq_factor: float, original_max_position: float
) -> float:
    r"""
    Return the angle of one pair of dimensions after Llama 3's scaling.

    .. math::

        r = \frac{\mathrm{original\_max\_position} \cdot \mathrm{inv\_freq}}{2 \cdot \pi} \\
        \begin{cases}
        \frac{\mathrm{inv\_freq}}{\mathrm{factor}} & \text{if } r < \mathrm{low\_freq\_factor} \\
        \mathrm{inv\_freq} & \text{if } r \ge \mathrm{high\_freq\_factor} \\
        \frac{\mathrm{inv\_freq}}{\mathrm{factor}} \cdot
        \frac{\mathrm{high\_freq\_factor} - r}{\mathrm{high\_freq\_factor} - \mathrm{low\_freq\_factor}}
        + \mathrm{inv\_freq} \cdot
        \frac{r - \mathrm{low\_freq\_factor}}{\mathrm{high\_freq\_factor} - \mathrm{low\_freq\_factor}}
        & \text{otherwise}
        \end{cases}

    A pair that has turned round often within the trained length knows all its angles and is left alone; one that hasn't
    turned round once is slowed down; in between, the two are mixed [1]_ [2]_.

    Parameters
    ----------
    inv_freq : float
        Angle for each position, from ``rope_inverse_frequency`` [radians/token].
    factor : float
        Factor by which the context grows, 8 in Llama 3.1 and 32 in Llama 3.2 [ratio].
    low_freq_factor : float
        Turns within the trained length below which a pair is slowed down, 1 in Llama 3.1 [turns].
    high_freq_factor : float
        Turns within the trained length above which a pair is left alone, 4 in Llama 3.1 [turns].
    original_max_position : float
        Length before the extension, 8192 in Llama 3.1 [tokens].

    Returns
    -------
    float
        Scaled angle for each position [radians/token].

    See Also
    --------
    rope_inverse_frequency : The angle that is scaled.
    yarn_ramp : YaRN's mixture, by the pair's place instead of its turns.

    Notes
    -----
    **Domain:** ``inv_freq`` and ``original_max_position`` above 0, ``factor`` at least 1, ``low_freq_factor`` below
    ``high_freq_factor``.

    **Guard:** ``factor <= 0`` gives ``inv_freq``. With ``high_freq_factor <= low_freq_factor`` there is no mixture, and
    what is not slowed down is left alone.

    **Special values:** NaN in any argument gives NaN, unless ``factor <= 0``; infinities follow IEEE 754.

    **Error:** 4 ULP of the largest term (eight roundings, that of 2 pi included); between the bounds the terms are the
    result and the greater of ``inv_freq`` and ``inv_freq / factor`` times ``r / (high_freq_factor - low_freq_factor)``,
    outside of them the result alone.

    Engines compare wavelengths, 2 pi over the angle, with the trained length over either factor; turns are the same
    comparison with one division less.

    References
    ----------
    .. [1] Meta, Llama 3.1 model code, ``apply_scaling``, 2024.
    .. [2] Hugging Face Transformers, ``modeling_rope_utils``, type "llama3".

    Examples
    --------
    A fast pair, a slow pair and one of about two turns in 8192 tokens:

    >>> from kvformulas.rope_scaling import llama3_rope_frequency
    >>> llama3_rope_frequency(1.0, 8, 1, 4, 8192)
    1.0
    >>> llama3_rope_frequency(0.0001, 8, 1, 4, 8192)
    1.25e-05
    >>> round(llama3_rope_frequency(0.0015, 8, 1, 4, 8192), 7)
    0.0006056
    """
    return c.llama3_rope_frequency(
        real(inv_freq, "inv_freq"), real(factor, "factor"), real(low_freq_factor, "low_freq_factor"),
        real(high_freq_factor, "high_freq_factor"), real(original_max_position, "original_max_position"),
    )


def yarn_attention_factor(scale: float) -> float:
    r"""
    Return the factor by which YaRN multiplies queries and keys.

    .. math::

        0.1 \cdot \ln(\mathrm{scale}) + 1

    A longer context spreads attention over more tokens. Scaling both sides of the product by this factor sharpens it
    again, and costs nothing when it is put into the rotation's sines and cosines [1]_ [2]_.

    Parameters
    ----------
    scale : float
        Factor by which the context grows [ratio].

    Returns
    -------
    float
        Factor for queries and for keys; their product is scaled by its square [ratio].

    See Also
    --------
    longrope_attention_factor : LongRoPE's factor.
    yarn_correction_dim : Which dimensions YaRN interpolates.

    Notes
    -----
    **Domain:** ``scale`` above 0.

    **Guard:** ``scale <= 1`` gives 1.0.

    **Special values:** NaN gives NaN; infinity gives infinity.

    **Error:** 2.25 ULP (1 ULP for the library's logarithm, two roundings, and that of 0.1).

    The paper's temperature t is 1 over the square of this factor. DeepSeek's configurations multiply the 0.1 by
    ``mscale`` and divide by the factor of ``mscale_all_dim``: two values of this formula at ``scale ** mscale``, one
    over the other.

    References
    ----------
    .. [1] B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", ICLR 2024, equation 22.
    .. [2] Hugging Face Transformers, ``modeling_rope_utils``, type "yarn".

    Examples
    --------
    >>> from kvformulas.rope_scaling import yarn_attention_factor
    >>> round(yarn_attention_factor(16), 4)
    1.2773
    >>> yarn_attention_factor(1)
    1.0
    """
    return c.yarn_attention_factor(real(scale, "scale"))


def yarn_correction_dim(rotations: float, head_dim: float, base: float, max_position: float) -> float:
    r"""
    Return the pair of dimensions that turns so many times within the trained length.

    .. math::

        \frac{\mathrm{head\_dim} \cdot \ln\left(\mathrm{max\_position} / (2 \cdot \pi \cdot \mathrm{rotations})\right)}
        {2 \cdot \ln(\mathrm{base})}

    YaRN leaves pairs alone that turn more than 32 times and interpolates those that turn less than once; this is where
    in the row of pairs those bounds lie [1]_ [2]_.

    Parameters
    ----------
    rotations : float
        Turns within ``max_position`` tokens, 32 (``beta_fast``) or 1 (``beta_slow``) [turns].
    head_dim : float
        Dimensions that are rotated [dimensions].
    base : float
        Base of the angles [ratio].
    max_position : float
        Length that the model was trained with [tokens].

    Returns
    -------
    float
        Index of the pair, with a fraction [index].

    See Also
    --------
    yarn_ramp : The mixture between two such bounds.
    rope_inverse_frequency : The inverse: the angle at an index.

    Notes
    -----
    **Domain:** ``rotations``, ``head_dim`` and ``max_position`` above 0, ``base`` above 1.

    **Guard:** ``rotations <= 0``, ``base <= 1`` or ``max_position <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless a guard applies; infinity over infinity is NaN.

    **Error:** 4 ULP of the largest term (1 ULP for each of the library's logarithms, and four roundings); the terms are
    the result and the result for a logarithm of 1, because that logarithm is of a rounded number.

    Engines round the bound of 32 turns down and that of 1 turn up, and clamp the two to 0 and ``head_dim - 1``; that is
    the caller's.

    References
    ----------
    .. [1] B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", ICLR 2024, section 3.2.
    .. [2] Hugging Face Transformers, ``modeling_rope_utils``, type "yarn".

    Examples
    --------
    The bounds of a model of 2048 tokens, heads of 128 and a base of 10000:

    >>> from kvformulas.rope_scaling import rope_inverse_frequency, yarn_correction_dim
    >>> round(yarn_correction_dim(32, 128, 10000, 2048), 3)
    16.128
    >>> round(yarn_correction_dim(1, 128, 10000, 2048), 3)
    40.21

    There a pair turns once in 2048 tokens:

    >>> import math
    >>> round(2048 * rope_inverse_frequency(10000, yarn_correction_dim(1, 128, 10000, 2048), 128) / (2 * math.pi), 12)
    1.0
    """
    return c.yarn_correction_dim(
        real(rotations, "rotations"), real(head_dim, "head_dim"), real(base, "base"), real(max_position, "max_position")
    )


def yarn_ramp(pair_index: float, low: float, high: float) -> float:
    r"""
    Return how far YaRN interpolates a pair of dimensions.

    .. math::

        \min\left(1, \max\left(0, \frac{\mathrm{pair\_index} - \mathrm{low}}{\mathrm{high} - \mathrm{low}}\right)\right)

    Up to ``low`` a pair keeps its angle, from ``high`` on its angle is divided by the scale, and in between the two are
    mixed in this proportion [1]_ [2]_.

    Parameters
    ----------
    pair_index : float
        Which pair of dimensions [index].
    low : float
        Last pair that keeps its angle, from ``yarn_correction_dim`` at 32 turns [index].
    high : float
        First pair that is interpolated in full, from ``yarn_correction_dim`` at 1 turn [index].

    Returns
    -------
    float
        Share of the interpolated angle, from 0 to 1 [ratio].

    See Also
    --------
    yarn_correction_dim : The bounds.
    llama3_rope_frequency : Llama 3's mixture, by turns.

    Notes
    -----
    **Domain:** every double; ``low`` is meant to be below ``high``.

    **Guard:** ``high <= low`` gives a step: 1.0 for a ``pair_index`` above ``low``, else 0.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies to a ``pair_index`` that is a number;
    infinity minus infinity and infinity over infinity are NaN.

    **Error:** 1.5 ULP (three roundings; the clamp is exact).

    The new angle is ``ramp * angle / scale + (1 - ramp) * angle``. Where the bounds meet, transformers moves ``high``
    up by 0.001, which is the same step for whole indices and bounds.

    References
    ----------
    .. [1] B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", ICLR 2024, section 3.2.
    .. [2] Hugging Face Transformers, ``modeling_rope_utils``, type "yarn".

    Examples
    --------
    >>> from kvformulas.rope_scaling import yarn_ramp
    >>> [yarn_ramp(pair, 16, 41) for pair in (10, 21, 63)]
    [0.0, 0.2, 1.0]

    Bounds that meet leave a step:

    >>> [yarn_ramp(pair, 20, 20) for pair in (20, 21)]
    [0.0, 1.0]
    """
    return c.yarn_ramp(real(pair_index, "pair_index"), real(low, "low"), real(high, "high"))


def longrope_attention_factor(scale: float, original_max_position: float) -> float:
    r"""
    Return the factor by which LongRoPE multiplies queries and keys.

    .. math::

        \sqrt{1 + \frac{\ln(\mathrm{scale})}{\ln(\mathrm{original\_max\_position})}}

    Attention over n tokens has an entropy of up to ln n; the square of this factor is the ratio of those logarithms for
    the new and the old length [1]_ [2]_.

    Parameters
    ----------
    scale : float
        Factor by which the context grows [ratio].
    original_max_position : float
        Length that the model was trained with [tokens].

    Returns
    -------
    float
        Factor for queries and for keys; their product is scaled by its square [ratio].

    See Also
    --------
    yarn_attention_factor : YaRN's factor, which doesn't know the trained length.

    Notes
    -----
    **Domain:** ``scale`` above 0, ``original_max_position`` above 1.

    **Guard:** ``scale <= 1`` or ``original_max_position <= 1`` gives 1.0.

    **Special values:** NaN in any argument gives NaN, unless a guard applies; infinity over infinity is NaN.

    **Error:** 2 ULP (1 ULP for each of the library's logarithms and two roundings, halved by the root, and the root's
    own).

    References
    ----------
    .. [1] Y. Ding et al., "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens", ICML 2024; Microsoft, Phi-3
       model code.
    .. [2] Hugging Face Transformers, ``modeling_rope_utils``, type "longrope".

    Examples
    --------
    Phi-3 goes from 4096 to 131072 tokens, a scale of 32:

    >>> from kvformulas.rope_scaling import longrope_attention_factor
    >>> round(longrope_attention_factor(32, 4096), 4)
    1.1902
    >>> longrope_attention_factor(1, 4096)
    1.0
    """
    return c.longrope_attention_factor(
        real(scale, "scale"), real(original_max_position, "original_max_position")
    )
