# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""Sampling, search and watermark rules as their papers have them: cut-offs, gates, temperatures, scores and updates."""
from kvformulas._real cimport real
from kvformulas.kernels cimport sampling_rules as c

__all__ = [
    "eta_cutoff",
    "epsilon_sampling_accept",
    "length_normalized_score",
    "contrastive_plausible_accept",
    "watermark_green_list_size",
    "watermark_z_score",
    "top_n_sigma_accept",
    "dynamic_temperature",
    "gumbel_max_score",
    "mirostat_mu_update",
]


def eta_cutoff(epsilon: float, entropy: float) -> float:
    r"""
    Return the probability below which eta sampling drops a token.

    .. math::

        \min\left(\mathrm{epsilon}, \sqrt{\mathrm{epsilon}} \cdot e^{-\mathrm{entropy}}\right)

    A token is cut only if it is unlikely both by itself and for a distribution of that entropy [1]_ [2]_.

    Parameters
    ----------
    epsilon : float
        Absolute cut-off, usually 3e-4 to 4e-3 [probability].
    entropy : float
        Entropy of the distribution [nats].

    Returns
    -------
    float
        Cut-off; tokens of at least this probability stay [probability].

    See Also
    --------
    epsilon_sampling_accept : The absolute cut-off alone.
    kvformulas.generation_loop.eta_sampling_accept : A gate with another threshold, eta times exp(-entropy / 2).

    Notes
    -----
    **Domain:** ``epsilon`` in 0 to 1, ``entropy`` at least 0.

    **Guard:** ``epsilon <= 0`` gives 0.0: nothing is cut.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; an infinite entropy gives 0.

    **Error:** 2 ULP (1 ULP for the library's exponential, and two roundings; the minimum is exact).

    Samplers keep at least the likeliest token, whatever the cut-off.

    References
    ----------
    .. [1] J. Hewitt, C. D. Manning and P. Liang, "Truncation Sampling as Language Model Desmoothing", Findings of
       EMNLP 2022.
    .. [2] Hugging Face Transformers, ``EtaLogitsWarper``.

    Examples
    --------
    At a low entropy the absolute cut-off holds, at a high one the relative one does:

    >>> from kvformulas.sampling_rules import eta_cutoff
    >>> eta_cutoff(0.0009, 0.5)
    0.0009
    >>> round(eta_cutoff(0.0009, 5), 6)
    0.000202

    Without a cut-off nothing is cut:

    >>> eta_cutoff(0, 5)
    0.0
    """
    return c.eta_cutoff(real(epsilon, "epsilon"), real(entropy, "entropy"))


def epsilon_sampling_accept(token_prob: float, epsilon: float) -> float:
    r"""
    Return 1 if epsilon sampling keeps the token, else 0.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{token\_prob} \ge \mathrm{epsilon} \\
        0 & \text{otherwise}
        \end{cases}

    The simplest truncation: what is less likely than a fixed probability is dropped [1]_ [2]_.

    Parameters
    ----------
    token_prob : float
        Probability of the token [probability].
    epsilon : float
        Cut-off, usually 3e-4 to 9e-4 [probability].

    Returns
    -------
    float
        1.0 to keep the token, 0.0 to drop it [flag].

    See Also
    --------
    eta_cutoff : A cut-off that falls with the entropy.
    kvformulas.generation_loop.min_p_accept : A cut-off that falls with the largest probability.

    Notes
    -----
    **Domain:** every double; both are meant to be probabilities.

    **Guard:** none.

    **Special values:** NaN in any argument gives 0.0.

    **Error:** none (a comparison).

    Samplers keep at least the likeliest token, whatever the cut-off.

    References
    ----------
    .. [1] J. Hewitt, C. D. Manning and P. Liang, "Truncation Sampling as Language Model Desmoothing", Findings of
       EMNLP 2022.
    .. [2] Hugging Face Transformers, ``EpsilonLogitsWarper``.

    Examples
    --------
    >>> from kvformulas.sampling_rules import epsilon_sampling_accept
    >>> epsilon_sampling_accept(0.001, 0.0009)
    1.0
    >>> epsilon_sampling_accept(0.0005, 0.0009)
    0.0

    The cut-off itself is kept:

    >>> epsilon_sampling_accept(0.0009, 0.0009)
    1.0
    """
    return c.epsilon_sampling_accept(real(token_prob, "token_prob"), real(epsilon, "epsilon"))


def length_normalized_score(log_prob_sum: float, length: float, alpha: float) -> float:
    r"""
    Return the score of a beam normalised by a power of its length.

    .. math::

        \frac{\mathrm{log\_prob\_sum}}{\mathrm{length}^{\mathrm{alpha}}}

    Beam search compares sums of log-probabilities, which fall with every token; dividing by a power of the length lets
    beams of different lengths compete [1]_.

    Parameters
    ----------
    log_prob_sum : float
        Sum of the log-probabilities of the beam's tokens [nats].
    length : float
        Generated tokens in the beam [tokens].
    alpha : float
        Strength: 0 leaves the sum, 1 averages, above 1 favours long beams [exponent].

    Returns
    -------
    float
        Normalised score, where the larger is the better beam [nats].

    See Also
    --------
    kvformulas.llm_sampling.length_penalty : The GNMT normalisation, whose base is (5 + length) / 6.
    kvformulas.speculative_decoding.constrained_beam_score : The same with a flag for a grammar.

    Notes
    -----
    **Domain:** ``length`` above 0, any ``alpha``.

    **Guard:** ``length <= 0`` gives ``log_prob_sum``.

    **Special values:** NaN in any argument gives NaN, unless the guard applies. A power that overflows gives 0, and
    over an infinite sum NaN; one that underflows to 0 gives an infinity, and over a sum of 0 NaN.

    **Error:** 1.5 ULP (1 ULP for the library's power, and one rounding). With ``alpha`` 0 or ``length`` 1 the score is
    exactly ``log_prob_sum``.

    References
    ----------
    .. [1] Hugging Face Transformers, beam search: the sum over the generated length to the power ``length_penalty``.

    Examples
    --------
    >>> from kvformulas.sampling_rules import length_normalized_score
    >>> length_normalized_score(-6.0, 4, 0.5)
    -3.0
    >>> length_normalized_score(-6.0, 4, 1)
    -1.5

    A beam of no tokens is not normalised:

    >>> length_normalized_score(-6.0, 0, 1)
    -6.0
    """
    return c.length_normalized_score(real(log_prob_sum, "log_prob_sum"), real(length, "length"), real(alpha, "alpha"))


def contrastive_plausible_accept(expert_prob: float, max_expert_prob: float, alpha: float) -> float:
    r"""
    Return 1 if the token is plausible enough for contrastive decoding, else 0.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{expert\_prob} \ge \mathrm{alpha} \cdot \mathrm{max\_expert\_prob} \\
        0 & \text{otherwise}
        \end{cases}

    A contrast of two models rewards also what both find absurd, if the amateur does so more. Only tokens within a
    factor of the expert's best are let into the contrast [1]_.

    Parameters
    ----------
    expert_prob : float
        Probability that the expert model gives the token [probability].
    max_expert_prob : float
        Largest probability that the expert model gives any token [probability].
    alpha : float
        Share of the largest probability that is needed, in the paper 0.1 [ratio].

    Returns
    -------
    float
        1.0 to let the token in, 0.0 to leave it out [flag].

    See Also
    --------
    kvformulas.speculative_decoding.contrastive_decode_score : The contrast itself.
    kvformulas.generation_loop.min_p_accept : The same comparison as a sampling rule.

    Notes
    -----
    **Domain:** every double; ``alpha`` is meant to be in 0 to 1.

    **Guard:** none.

    **Special values:** NaN in any argument, and 0 times infinity, gives 0.0.

    **Error:** none (0 or 1; the threshold is rounded once before it is compared).

    References
    ----------
    .. [1] X. L. Li et al., "Contrastive Decoding: Open-ended Text Generation as Optimization", ACL 2023,
       arXiv:2210.15097, equation 2.

    Examples
    --------
    >>> from kvformulas.sampling_rules import contrastive_plausible_accept
    >>> contrastive_plausible_accept(0.06, 0.5, 0.1)
    1.0
    >>> contrastive_plausible_accept(0.04, 0.5, 0.1)
    0.0
    """
    return c.contrastive_plausible_accept(
        real(expert_prob, "expert_prob"), real(max_expert_prob, "max_expert_prob"), real(alpha, "alpha")
    )


def watermark_green_list_size(vocab_size: float, gamma: float) -> float:
    r"""
    Return how many tokens of the vocabulary are on the green list.

    .. math::

        \operatorname{trunc}(\mathrm{gamma} \cdot \mathrm{vocab\_size})

    A watermark splits the vocabulary anew at each position, by a hash of the tokens before it, and favours the green
    part [1]_ [2]_.

    Parameters
    ----------
    vocab_size : float
        Tokens in the vocabulary [tokens].
    gamma : float
        Share that is green, usually 0.25 or 0.5 [ratio].

    Returns
    -------
    float
        Whole number of green tokens [tokens].

    See Also
    --------
    watermark_z_score : How the watermark is found again.
    kvformulas.speculative_decoding.watermark_green_list_bias : What a green token's logit gains.

    Notes
    -----
    **Domain:** ``vocab_size`` at least 0, ``gamma`` in 0 to 1.

    **Guard:** none.

    **Special values:** NaN in any argument, and 0 times infinity, gives NaN.

    **Error:** none (a whole number; the product is rounded once before its fraction is dropped).

    The rounding makes 7 of 10 tokens green at 0.7, though the double 0.7 is a hair less than seven tenths. Python's
    ``int(vocab_size * gamma)``, which the implementations use, has the same rounding.

    References
    ----------
    .. [1] J. Kirchenbauer et al., "A Watermark for Large Language Models", ICML 2023, algorithm 2.
    .. [2] Hugging Face Transformers, ``WatermarkLogitsProcessor``.

    Examples
    --------
    >>> from kvformulas.sampling_rules import watermark_green_list_size
    >>> watermark_green_list_size(50257, 0.25)
    12564.0
    >>> watermark_green_list_size(10, 0.7)
    7.0
    """
    return c.watermark_green_list_size(real(vocab_size, "vocab_size"), real(gamma, "gamma"))


def watermark_z_score(green_count: float, token_count: float, gamma: float) -> float:
    r"""
    Return how many standard deviations a text's green tokens are above chance.

    .. math::

        \frac{\mathrm{green\_count} - \mathrm{gamma} \cdot \mathrm{token\_count}}
        {\sqrt{\mathrm{token\_count} \cdot \mathrm{gamma} \cdot (1 - \mathrm{gamma})}}

    Without a watermark each token is green with probability ``gamma``; far more green ones than that are no accident
    [1]_ [2]_.

    Parameters
    ----------
    green_count : float
        Tokens of the text that were on their green list [tokens].
    token_count : float
        Tokens of the text that were looked at [tokens].
    gamma : float
        Share of the vocabulary that is green [ratio].

    Returns
    -------
    float
        The z statistic; the paper calls the text watermarked above 4 [standard deviations].

    See Also
    --------
    watermark_green_list_size : The green share in tokens.

    Notes
    -----
    **Domain:** ``green_count`` from 0 to ``token_count``, ``gamma`` between 0 and 1.

    **Guard:** ``token_count * gamma * (1 - gamma) <= 0`` gives 0.0: no evidence.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity minus infinity is NaN.

    **Error:** 2.25 ULP (the excess and the root rounded once each, the variance thrice and halved by the root, and the
    quotient). The excess is a fused product and difference, so that nothing is lost where it is small.

    References
    ----------
    .. [1] J. Kirchenbauer et al., "A Watermark for Large Language Models", ICML 2023, equation 3 (there for a ``gamma``
       of any size; equation 2 is the case of one half).
    .. [2] Hugging Face Transformers, ``WatermarkDetector``.

    Examples
    --------
    Of 200 tokens 120 are green. That is weak evidence if half of the vocabulary is, and overwhelming if a quarter is:

    >>> from kvformulas.sampling_rules import watermark_z_score
    >>> round(watermark_z_score(120, 200, 0.5), 3)
    2.828
    >>> round(watermark_z_score(120, 200, 0.25), 2)
    11.43

    As many as chance gives are no evidence:

    >>> watermark_z_score(100, 200, 0.5)
    0.0
    """
    return c.watermark_z_score(
        real(green_count, "green_count"), real(token_count, "token_count"), real(gamma, "gamma")
    )


def top_n_sigma_accept(logit: float, max_logit: float, sigma: float, n: float) -> float:
    r"""
    Return 1 if the token's logit is within n standard deviations of the largest, else 0.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{logit} \ge \mathrm{max\_logit} - \mathrm{n} \cdot \mathrm{sigma} \\
        0 & \text{otherwise}
        \end{cases}

    Most logits are noise about a mean, and the informative ones stand out above it. The cut is made in logits, so the
    set of tokens doesn't change with the temperature [1]_.

    Parameters
    ----------
    logit : float
        Logit of the token [logit].
    max_logit : float
        Largest logit [logit].
    sigma : float
        Standard deviation of all logits, over their number and not that less one [logit].
    n : float
        Width, usually 1 [standard deviations].

    Returns
    -------
    float
        1.0 to keep the token, 0.0 to drop it [flag].

    See Also
    --------
    kvformulas.generation_loop.min_p_accept : A cut relative to the largest probability, which the temperature moves.

    Notes
    -----
    **Domain:** every double; ``sigma`` and ``n`` are meant to be at least 0.

    **Guard:** none.

    **Special values:** NaN in any argument gives 0.0; infinity minus infinity and 0 times infinity in the threshold
    too.

    **Error:** none (0 or 1; the threshold, a fused product and difference, is rounded once before it is compared).

    An ``n`` of 0 keeps the largest logit alone, one below 0 keeps none. llama.cpp takes both to mean that the rule is
    off.

    References
    ----------
    .. [1] C. Tang et al., "Top-nσ: Not All Logits Are You Need", 2024, arXiv:2411.07641.

    Examples
    --------
    >>> from kvformulas.sampling_rules import top_n_sigma_accept
    >>> top_n_sigma_accept(17.5, 20.0, 2.5, 1)
    1.0
    >>> top_n_sigma_accept(17.0, 20.0, 2.5, 1)
    0.0
    """
    return c.top_n_sigma_accept(
        real(logit, "logit"), real(max_logit, "max_logit"), real(sigma, "sigma"), real(n, "n")
    )


def dynamic_temperature(
    entropy: float, max_entropy: float, min_temperature: float, max_temperature: float, exponent: float
) -> float:
    r"""
    Return the temperature for a distribution of that entropy.

    .. math::

        \mathrm{min\_temperature} + (\mathrm{max\_temperature} - \mathrm{min\_temperature}) \cdot
        \left(\frac{\mathrm{entropy}}{\mathrm{max\_entropy}}\right)^{\mathrm{exponent}}

    Where the model is sure, a low temperature keeps it on course; where many tokens would do, a high one lets it choose
    among them [1]_.

    Parameters
    ----------
    entropy : float
        Entropy of the distribution [nats].
    max_entropy : float
        Largest entropy possible, the logarithm of the number of candidates [nats].
    min_temperature : float
        Temperature at an entropy of 0 [ratio].
    max_temperature : float
        Temperature at the largest entropy [ratio].
    exponent : float
        Above 1 stays low for longer, below 1 rises early, usually 1 [exponent].

    Returns
    -------
    float
        Temperature [ratio].

    See Also
    --------
    kvformulas.llm_sampling.temperature_scale : The division by it.

    Notes
    -----
    **Domain:** ``entropy`` from 0 to ``max_entropy``, temperatures at least 0, ``exponent`` above 0.

    **Guard:** ``entropy <= 0`` or ``max_entropy <= 0`` gives ``min_temperature``. Entropies summed in floating point
    can be a hair below 0, where a power of them is no number.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; an ``exponent`` of 0 gives the maximum.

    **Error:** 4 ULP of the largest term (1 ULP each for the library's power and its correction, and four roundings),
    for an ``exponent`` of at most 1e15 in size; the terms are the minimum and what is added to it.

    The logarithm's base cancels if both entropies share it. llama.cpp's ``dynatemp_range`` is half of the distance
    between the two temperatures, about the ordinary one.

    References
    ----------
    .. [1] llama.cpp, the extended temperature sampler (``temp-ext``), ggml-org/llama.cpp#4972.

    Examples
    --------
    A quarter of the largest entropy, with an exponent of a half, is half the way:

    >>> from kvformulas.sampling_rules import dynamic_temperature
    >>> dynamic_temperature(1, 4, 0.5, 1.5, 0.5)
    1.0
    >>> dynamic_temperature(1, 4, 0.5, 1.5, 1)
    0.75

    A distribution of one token has nothing to vary:

    >>> dynamic_temperature(0, 0, 0.5, 1.5, 1)
    0.5
    """
    return c.dynamic_temperature(
        real(entropy, "entropy"), real(max_entropy, "max_entropy"), real(min_temperature, "min_temperature"),
        real(max_temperature, "max_temperature"), real(exponent, "exponent"),
    )


def gumbel_max_score(logit: float, uniform: float) -> float:
    r"""
    Return a token's logit with Gumbel noise made of a uniform random number.

    .. math::

        \mathrm{logit} - \ln(-\ln(\mathrm{uniform}))

    The token with the largest score is a draw from the softmax of the logits: sampling as an argmax, which needs
    neither normalisation nor a second pass, and gives the same draw wherever the same numbers are used [1]_.

    Parameters
    ----------
    logit : float
        Logit of the token, over the temperature if there is one [logit].
    uniform : float
        Random number between 0 and 1, one for each token [probability].

    Returns
    -------
    float
        Perturbed logit [logit].

    See Also
    --------
    kvformulas.llm_sampling.greedy_token_id : One step of the argmax.

    Notes
    -----
    **Domain:** ``uniform`` between 0 and 1.

    **Guard:** none.

    **Special values:** NaN in any argument, and a ``uniform`` below 0 or above 1, gives NaN; a ``uniform`` of 0 gives
    minus infinity, of 1 infinity, unless the logit is the opposite one. A masked token (minus infinity) stays masked.

    **Error:** 3 ULP of the largest term (1 ULP for each of the library's logarithms, and one rounding); 1 counts as a
    term, because the outer logarithm is of a rounded number.

    Uniform numbers of 24 bits can't be closer to 1 than 2**-24, so single precision cuts the noise off at 16.6; of 53
    bits, at 36.7. Draw from the open interval: a 0 or a 1 makes the choice by itself.

    References
    ----------
    .. [1] E. J. Gumbel, "Statistical Theory of Extreme Values and Some Practical Applications", 1954; as a way to
       sample, C. J. Maddison, D. Tarlow and T. Minka, "A* Sampling", NIPS 2014.

    Examples
    --------
    >>> from kvformulas.sampling_rules import gumbel_max_score
    >>> round(gumbel_max_score(2.0, 0.5), 4)
    2.3665

    Two tokens of equal logits and three pairs of random numbers; the larger number wins:

    >>> [gumbel_max_score(1.0, u) > gumbel_max_score(1.0, v) for u, v in [(0.7, 0.2), (0.1, 0.9), (0.5, 0.4)]]
    [True, False, True]
    """
    return c.gumbel_max_score(real(logit, "logit"), real(uniform, "uniform"))


def mirostat_mu_update(mu: float, learning_rate: float, surprise: float, target_surprise: float) -> float:
    r"""
    Return Mirostat's bound on the surprise of the next token.

    .. math::

        \mathrm{mu} - \mathrm{learning\_rate} \cdot (\mathrm{surprise} - \mathrm{target\_surprise})

    Mirostat steers the surprise of a text toward a target: tokens of more surprise than the bound are cut, and the
    bound is lowered after a surprising token and raised after an expected one [1]_.

    Parameters
    ----------
    mu : float
        Bound that the last token was drawn with; twice the target at first [bits].
    learning_rate : float
        Share of the deviation to correct, usually 0.1, the eta of the paper [ratio].
    surprise : float
        Surprise of the token that was drawn, minus the binary logarithm of its probability [bits].
    target_surprise : float
        Surprise aimed at, usually 3 to 5, the tau of the paper [bits].

    Returns
    -------
    float
        Bound for the next token [bits].

    See Also
    --------
    kvformulas.llm_sampling.typical_p_score : A rule that compares a token's surprise with the entropy.

    Notes
    -----
    **Domain:** every double.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; infinity minus infinity and 0 times infinity are NaN.

    **Error:** 1 ULP of the largest term (the deviation is rounded once, the fused product and difference once). Whole
    arguments whose terms stay below 2**53 are exact.

    Nats will do as well as bits, if all three surprises are in them.

    References
    ----------
    .. [1] S. Basu, G. S. Ramachandran, N. S. Keskar and L. R. Varshney, "Mirostat: A Neural Text Decoding Algorithm
       that Directly Controls Perplexity", ICLR 2021, algorithm 1.

    Examples
    --------
    A token of 7 bits where 5 were aimed at lowers the bound by 0.2, one of 3 bits raises it:

    >>> from kvformulas.sampling_rules import mirostat_mu_update
    >>> mirostat_mu_update(10, 0.1, 7, 5)
    9.8
    >>> mirostat_mu_update(10, 0.1, 3, 5)
    10.2
    """
    return c.mirostat_mu_update(
        real(mu, "mu"), real(learning_rate, "learning_rate"), real(surprise, "surprise"),
        real(target_surprise, "target_surprise"),
    )
