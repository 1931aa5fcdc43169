# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""Sampling as decisions: does this token pass, and does generation stop?

The gates return 1.0 to accept and 0.0 to reject, where ``kvformulas.llm_sampling`` mostly returns the score or the
threshold. A sampled pipeline has its steps in this order: repetition penalty, frequency and presence penalty,
temperature, top-k, min-p, top-p.
"""
from kvformulas._real cimport real
from kvformulas.kernels cimport generation_loop as c

__all__ = [
    "temperature_logit_scale",
    "top_k_accept",
    "top_p_cumulative_accept",
    "min_p_accept",
    "repetition_penalty_logit",
    "frequency_penalty_logit",
    "presence_penalty_logit",
    "typical_sampling_accept",
    "eta_sampling_accept",
    "eos_stop_score",
]


def temperature_logit_scale(logit: float, temperature: float) -> float:
    r"""
    Return a logit divided by the sampling temperature.

    .. math::

        \frac{\mathrm{logit}}{\mathrm{temperature}}

    Below 1 the temperature sharpens the distribution that softmax makes of the logits, above 1 it flattens it [1]_.
    Engines take a temperature of 0 as greedy decoding [2]_, which the guard imitates.

    Parameters
    ----------
    logit : float
        Logit of one token, after the penalties [logit].
    temperature : float
        Sampling temperature, where 1 changes nothing [ratio].

    Returns
    -------
    float
        Scaled logit [logit].

    See Also
    --------
    kvformulas.llm_sampling.temperature_scale : The same formula, bit for bit.
    kvformulas.llm_sampling.greedy_token_id : The choice that a temperature of 0 stands for.

    Notes
    -----
    **Domain:** any logit, ``temperature`` above 0.

    **Guard:** ``temperature <= 0`` gives ``logit * 1e9``, so that softmax leaves the largest logit alone.

    **Special values:** NaN in ``logit`` gives NaN, and so does NaN in ``temperature``. A masked logit of minus infinity
    stays so. An infinite temperature makes every finite logit 0. A tiny temperature, and in the guard a logit beyond
    1.79e299, overflows to infinity.

    **Error:** 0.5 ULP (one rounding, in the guard too). A temperature that is a power of two,
    such as 1, is exact short of underflow.

    One formula under two names, because it belongs to the scores and to the loop; this kernel calls the other one.

    References
    ----------
    .. [1] A. Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR 2020, section 3.3.
    .. [2] vLLM, ``SamplingParams.temperature``: zero means greedy sampling.

    Examples
    --------
    >>> from kvformulas.generation_loop import temperature_logit_scale
    >>> temperature_logit_scale(-1.5, 2.0)
    -0.75

    A temperature of 0 scales by a billion:

    >>> temperature_logit_scale(-1.5, 0.0)
    -1500000000.0
    """
    return c.temperature_logit_scale(real(logit, "logit"), real(temperature, "temperature"))


def top_k_accept(rank: float, k: float) -> float:
    r"""
    Return whether a token is among the k likeliest.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{rank} \le \mathrm{k} \\
        0 & \text{otherwise}
        \end{cases}

    Top-k sampling draws from the k likeliest tokens and drops the tail [1]_.

    Parameters
    ----------
    rank : float
        Place of the token by falling probability, the likeliest has 1 [rank].
    k : float
        Tokens to keep [count].

    Returns
    -------
    float
        1.0 to accept, 0.0 to reject [gate].

    See Also
    --------
    kvformulas.llm_sampling.top_k_threshold : The cut-off as a logit.
    top_p_cumulative_accept : Truncation by cumulative mass.

    Notes
    -----
    **Domain:** every double; meaningful for ranks from 1 and ``k`` from 0.

    **Guard:** none.

    **Special values:** NaN in any argument rejects; an infinite ``k`` accepts every rank. A ``k`` of 0 or below rejects
    every rank, where engines often take it as "all".

    **Error:** none; the arguments are compared as they are.

    With distinct ranks exactly k tokens pass, ties included, where a threshold on logits keeps all that tie.

    References
    ----------
    .. [1] A. Fan, M. Lewis and Y. Dauphin, "Hierarchical Neural Story Generation", ACL 2018.

    Examples
    --------
    >>> from kvformulas.generation_loop import top_k_accept
    >>> [top_k_accept(rank, 2) for rank in (1, 2, 3)]
    [1.0, 1.0, 0.0]

    Without a rank there is no acceptance:

    >>> top_k_accept(float("nan"), 2)
    0.0
    """
    return c.top_k_accept(real(rank, "rank"), real(k, "k"))


def top_p_cumulative_accept(cumulative_prob: float, token_prob: float, p: float) -> float:
    r"""
    Return whether a token is in the nucleus, by the mass of the tokens ranked before it.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{cumulative\_prob} < \mathrm{p} \\
        0 & \text{otherwise}
        \end{cases}

    Top-p sampling draws from the nucleus, the smallest set of the likeliest tokens whose mass reaches p [1]_: a token
    belongs to it as long as those before it fall short of p.

    Parameters
    ----------
    cumulative_prob : float
        Mass of the tokens ranked before this one, 0 for the first [probability].
    token_prob : float
        Ignored, NaN too. Probability of this token [probability].
    p : float
        Mass that the nucleus must reach [probability].

    Returns
    -------
    float
        1.0 to accept, 0.0 to reject [gate].

    See Also
    --------
    kvformulas.llm_sampling.top_p_cumulative : The same comparison, with its arguments in another order.
    top_k_accept : Truncation by rank.
    min_p_accept : Truncation relative to the likeliest token.

    Notes
    -----
    **Domain:** every double; meaningful for probabilities from 0 to 1.

    **Guard:** none.

    **Special values:** NaN in ``cumulative_prob`` or ``p`` rejects. The first token passes whenever p is above 0.

    **Error:** none; the arguments are compared as they are.

    What is compared is the first argument, ``cumulative_prob``, as the name, the nucleus rule and the running reference
    system have it; that system's description says the second (departure 5). ``top_p_cumulative`` compares its second
    argument, which means the same sum. Leave the token's own probability out of it, or the token that crosses p is
    lost.

    References
    ----------
    .. [1] A. Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR 2020, section 3.1.

    Examples
    --------
    The token that carries the sum from 0.5 past 0.7 is the last to pass:

    >>> from kvformulas.generation_loop import top_p_cumulative_accept
    >>> top_p_cumulative_accept(0.5, 0.25, 0.7)
    1.0
    >>> top_p_cumulative_accept(0.75, 0.125, 0.7)
    0.0
    """
    return c.top_p_cumulative_accept(
        real(cumulative_prob, "cumulative_prob"), real(token_prob, "token_prob"), real(p, "p")
    )


def min_p_accept(token_prob: float, max_prob: float, min_p: float) -> float:
    r"""
    Return whether a token is likely enough beside the likeliest one.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{token\_prob} \ge \mathrm{max\_prob} \cdot \mathrm{min\_p} \\
        0 & \text{otherwise}
        \end{cases}

    Min-p sampling keeps the tokens that have a given share of the top probability, so it is strict where the model is
    sure and lenient where it is not [1]_.

    Parameters
    ----------
    token_prob : float
        Probability of the token [probability].
    max_prob : float
        Probability of the likeliest token [probability].
    min_p : float
        Share of it that a token must have, often 0.05 to 0.1 [ratio].

    Returns
    -------
    float
        1.0 to accept, 0.0 to reject [gate].

    See Also
    --------
    kvformulas.llm_sampling.min_p_threshold : The threshold itself.
    eta_sampling_accept : A threshold that moves with the entropy.

    Notes
    -----
    **Domain:** every double; meaningful for arguments from 0 to 1.

    **Guard:** none.

    **Special values:** NaN in any argument rejects, and so does a threshold of 0 times infinity. A ``min_p`` of 0
    accepts every token, one of 1 the likeliest alone.

    **Error:** none in the comparison; the threshold has 0.5 ULP. It is exact for a ``min_p`` of 0, and for a power of
    two short of underflow.

    ``min_p_threshold`` returns the threshold and leaves the comparison to the caller; this is that comparison.

    References
    ----------
    .. [1] M. N. Nguyen et al., "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs", ICLR 2025.

    Examples
    --------
    A token of probability 0.03 fails beside one of 0.5, and passes beside one of 0.2:

    >>> from kvformulas.generation_loop import min_p_accept
    >>> min_p_accept(0.03, 0.5, 0.1)
    0.0
    >>> min_p_accept(0.03, 0.2, 0.1)
    1.0
    """
    return c.min_p_accept(real(token_prob, "token_prob"), real(max_prob, "max_prob"), real(min_p, "min_p"))


def repetition_penalty_logit(logit: float, penalty: float, was_generated: float) -> float:
    r"""
    Return the logit of a token after the repetition penalty.

    .. math::

        \begin{cases}
        \frac{\mathrm{logit}}{\mathrm{penalty}} & \text{if } \mathrm{logit} > 0 \\
        \mathrm{logit} \cdot \mathrm{penalty} & \text{otherwise}
        \end{cases}

    The penalty discounts tokens that were generated already. The paper divides every such logit [1]_; engines multiply
    the negative ones, so that a penalty above 1 always lowers the logit [2]_.

    Parameters
    ----------
    logit : float
        Logit of one token [logit].
    penalty : float
        Strength: 1 changes nothing, above 1 discourages, below 1 encourages [ratio].
    was_generated : float
        Whether the token was generated: 0.5 and above is yes [flag].

    Returns
    -------
    float
        Penalised logit [logit].

    See Also
    --------
    kvformulas.llm_sampling.repetition_penalty_scale : The same, with a flag that counts from anything above 0.
    frequency_penalty_logit : A penalty that is subtracted for each occurrence.
    presence_penalty_logit : A penalty that is subtracted once.

    Notes
    -----
    **Domain:** any logit, ``penalty`` above 0.

    **Guard:** ``was_generated < 0.5`` or ``penalty <= 0`` gives ``logit``.

    **Special values:** NaN in any argument gives NaN, unless a guard applies, which gives ``logit`` whatever it is.
    A logit of minus infinity stays so. An infinite penalty makes finite positive logits 0, negative ones minus infinity
    and a logit of 0 NaN.

    **Error:** 0.5 ULP (one rounding). A penalty of 1 and the guards are exact, and another
    power of two short of underflow.

    The two modules agree wherever the flag is 0, below 0, or at least 0.5; for a flag between 0 and 0.5 this one keeps
    the logit and ``repetition_penalty_scale`` penalises it.

    References
    ----------
    .. [1] N. S. Keskar et al., "CTRL: A Conditional Transformer Language Model for Controllable Generation",
       arXiv:1909.05858, 2019, section 4.1.
    .. [2] Hugging Face transformers, ``RepetitionPenaltyLogitsProcessor``.

    Examples
    --------
    >>> from kvformulas.generation_loop import repetition_penalty_logit
    >>> repetition_penalty_logit(6.0, 1.5, True)
    4.0
    >>> repetition_penalty_logit(-6.0, 1.5, True)
    -9.0

    A token that is new keeps its logit, and so does one with a penalty that makes no sense:

    >>> repetition_penalty_logit(6.0, 1.5, False)
    6.0
    >>> repetition_penalty_logit(6.0, 0.0, True)
    6.0
    """
    return c.repetition_penalty_logit(
        real(logit, "logit"), real(penalty, "penalty"), real(was_generated, "was_generated")
    )


def frequency_penalty_logit(logit: float, penalty: float, token_count: float) -> float:
    r"""
    Return the logit of a token after the frequency penalty.

    .. math::

        \mathrm{logit} - \mathrm{penalty} \cdot \mathrm{token\_count}

    The penalty is charged for each occurrence of the token, which keeps a model from repeating itself verbatim [1]_.

    Parameters
    ----------
    logit : float
        Logit of one token [logit].
    penalty : float
        Penalty of each occurrence, in the API from -2 to 2 [logit].
    token_count : float
        Occurrences of the token so far [count].

    Returns
    -------
    float
        Penalised logit [logit].

    See Also
    --------
    presence_penalty_logit : The penalty that is charged once.
    kvformulas.llm_sampling.token_frequency_penalty : Both penalties in one call.

    Notes
    -----
    **Domain:** every double; ``token_count`` is meant to be a whole number from 0.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity and infinity less infinity are NaN. A negative
    penalty raises the logit.

    **Error:** 1 ULP of the largest term (two roundings, where the result is a term too), while the product doesn't
    overflow. Whole arguments whose terms stay below 2**53 are exact.

    Followed by ``presence_penalty_logit`` it gives the bits of ``token_frequency_penalty``; the two can be called one
    without the other here. The penalty comes before the count here, and after it there.

    References
    ----------
    .. [1] OpenAI API reference, "Parameter details: frequency and presence penalties".

    Examples
    --------
    >>> from kvformulas.generation_loop import frequency_penalty_logit
    >>> frequency_penalty_logit(5.0, 0.5, 3)
    3.5
    >>> frequency_penalty_logit(5.0, 0.5, 0)
    5.0
    """
    return c.frequency_penalty_logit(real(logit, "logit"), real(penalty, "penalty"), real(token_count, "token_count"))


def presence_penalty_logit(logit: float, penalty: float, is_present: float) -> float:
    r"""
    Return the logit of a token after the presence penalty.

    .. math::

        \begin{cases}
        \mathrm{logit} - \mathrm{penalty} & \text{if } \mathrm{is\_present} \ge 0.5 \\
        \mathrm{logit} & \text{otherwise}
        \end{cases}

    The penalty is charged once for a token that has occurred, however often, which moves a model to new topics [1]_.

    Parameters
    ----------
    logit : float
        Logit of one token [logit].
    penalty : float
        Penalty of having occurred, in the API from -2 to 2 [logit].
    is_present : float
        Whether the token has occurred, or how often: 0.5 and above is yes [flag].

    Returns
    -------
    float
        Penalised logit [logit].

    See Also
    --------
    frequency_penalty_logit : The penalty that is charged for each occurrence.
    kvformulas.llm_sampling.token_frequency_penalty : Both penalties in one call.

    Notes
    -----
    **Domain:** every double; a negative penalty raises the logit.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN, in ``penalty`` also where the token isn't present; infinity less
    infinity is NaN.

    **Error:** 0.5 ULP (one rounding). A token that isn't present keeps its logit exactly.

    After ``frequency_penalty_logit`` it gives the bits of ``token_frequency_penalty``, whose presence is a count above
    0; with whole counts the count can serve as the flag.

    References
    ----------
    .. [1] OpenAI API reference, "Parameter details: frequency and presence penalties".

    Examples
    --------
    >>> from kvformulas.generation_loop import presence_penalty_logit
    >>> presence_penalty_logit(5.0, 0.25, True)
    4.75
    >>> presence_penalty_logit(5.0, 0.25, False)
    5.0

    A count of 3 is charged like a count of 1:

    >>> presence_penalty_logit(5.0, 0.25, 3)
    4.75
    """
    return c.presence_penalty_logit(real(logit, "logit"), real(penalty, "penalty"), real(is_present, "is_present"))


def typical_sampling_accept(token_log_prob: float, entropy: float, tau: float) -> float:
    r"""
    Return whether a token's information content is near enough to the entropy.

    .. math::

        \begin{cases}
        1 & \text{if } \left|-\mathrm{token\_log\_prob} - \mathrm{entropy}\right| \le \mathrm{tau} \\
        0 & \text{otherwise}
        \end{cases}

    Locally typical sampling prefers tokens whose information content is near the expected one, the entropy [1]_.

    Parameters
    ----------
    token_log_prob : float
        Log-probability of the token [nats].
    entropy : float
        Entropy of the distribution that the token is drawn from [nats].
    tau : float
        Largest distance from the entropy that is accepted [nats].

    Returns
    -------
    float
        1.0 to accept, 0.0 to reject [gate].

    See Also
    --------
    kvformulas.llm_sampling.typical_p_score : The distance itself.
    eta_sampling_accept : Another gate that reads the entropy.

    Notes
    -----
    **Domain:** every double; log-probabilities are at most 0 and entropies at least 0. Another base of logarithm will
    do if all three share it.

    **Guard:** none.

    **Special values:** NaN in any argument rejects, and so does minus infinity plus infinity. A token of probability 0
    passes only an infinite ``tau``; a negative ``tau`` rejects all.

    **Error:** none in the comparison; the distance that is compared has 0.5 ULP. A sum that cancels is exact.

    The distance is that of ``typical_p_score``, there written with the opposite signs. ``tau`` is a distance; the
    paper's tau is a mass, up to which it keeps the tokens in order of this distance.

    References
    ----------
    .. [1] C. Meister, T. Pimentel, G. Wiher and R. Cotterell, "Locally Typical Sampling", TACL 11, 2023.

    Examples
    --------
    With an entropy of 2 nats a token can be too likely as well as too unlikely:

    >>> from kvformulas.generation_loop import typical_sampling_accept
    >>> [typical_sampling_accept(log_prob, 2.0, 0.5) for log_prob in (-0.25, -1.75, -2.5, -4.0)]
    [0.0, 1.0, 1.0, 0.0]
    """
    return c.typical_sampling_accept(
        real(token_log_prob, "token_log_prob"), real(entropy, "entropy"), real(tau, "tau")
    )


def eta_sampling_accept(token_prob: float, entropy: float, eta: float) -> float:
    r"""
    Return whether a token is likely enough for the entropy.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{token\_prob} \ge \mathrm{eta} \cdot e^{-\frac{\mathrm{entropy}}{2}} \\
        0 & \text{otherwise}
        \end{cases}

    A threshold that falls as the entropy rises lets more tokens pass where many are plausible, the idea of
    eta-sampling [1]_.

    Parameters
    ----------
    token_prob : float
        Probability of the token [probability].
    entropy : float
        Entropy of the distribution that the token is drawn from [nats].
    eta : float
        Threshold at an entropy of 0 [probability].

    Returns
    -------
    float
        1.0 to accept, 0.0 to reject [gate].

    See Also
    --------
    min_p_accept : A threshold that moves with the likeliest token.
    typical_sampling_accept : Another gate that reads the entropy.

    Notes
    -----
    **Domain:** every double; meaningful for probabilities from 0 to 1 and entropies at least 0.

    **Guard:** none.

    **Special values:** NaN in any argument rejects, and so does a threshold of 0 times infinity. The
    threshold is 0 and accepts every token where ``eta`` is 0, or where ``eta`` is finite and the entropy infinite.

    **Error:** none in the comparison; the threshold has 1.5 ULP (libm's exp 1, the product 0.5; the half is exact).
    At an entropy of 0 it is ``eta`` exactly.

    Not the rule of the paper, whose cut-off is min(eps, sqrt(eps) e^-H). There a token above eps always passes, and
    the entropy H counts in full; here there is no such cap and the entropy counts by half. Parameters tuned for one
    don't carry over to the other. ``kvformulas.llm_sampling`` has no counterpart of this gate.

    References
    ----------
    .. [1] J. Hewitt, C. D. Manning and P. Liang, "Truncation Sampling as Language Model Desmoothing",
       Findings of EMNLP 2022.

    Examples
    --------
    A token of probability 0.01 fails where the model is sure and passes at an entropy of 2 nats:

    >>> from kvformulas.generation_loop import eta_sampling_accept
    >>> eta_sampling_accept(0.01, 0.0, 0.02)
    0.0
    >>> eta_sampling_accept(0.01, 2.0, 0.02)
    1.0
    """
    return c.eta_sampling_accept(real(token_prob, "token_prob"), real(entropy, "entropy"), real(eta, "eta"))


def eos_stop_score(eos_prob: float, eos_threshold: float) -> float:
    r"""
    Return whether generation stops, by the probability of the end-of-sequence token.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{eos\_prob} \ge \mathrm{eos\_threshold} \\
        0 & \text{otherwise}
        \end{cases}

    A model ends a sequence with a token of its own [1]_. This stops as soon as that token is likely enough.

    Parameters
    ----------
    eos_prob : float
        Probability of the end-of-sequence token [probability].
    eos_threshold : float
        Probability from which on generation stops [probability].

    Returns
    -------
    float
        1.0 to accept, 0.0 to reject [gate].

    See Also
    --------
    top_k_accept : A gate on a token to sample.
    kvformulas.llm_sampling.greedy_token_id : The token that stops greedy decoding if it is the end of sequence.

    Notes
    -----
    **Domain:** every double; meaningful for probabilities from 0 to 1.

    **Guard:** none.

    **Special values:** NaN in any argument rejects, so generation goes on. A threshold of 0 stops at once, one above 1
    never.

    **Error:** none; the arguments are compared as they are.

    To accept is to stop. Engines usually stop when the end-of-sequence token has been drawn, whatever its probability
    was; a threshold is deterministic and can stop earlier or later. ``kvformulas.llm_sampling`` has no stopping rule.

    References
    ----------
    .. [1] I. Sutskever, O. Vinyals and Q. V. Le, "Sequence to Sequence Learning with Neural Networks", NIPS 2014,
       section 2.

    Examples
    --------
    >>> from kvformulas.generation_loop import eos_stop_score
    >>> eos_stop_score(0.75, 0.5)
    1.0
    >>> eos_stop_score(0.25, 0.5)
    0.0
    """
    return c.eos_stop_score(real(eos_prob, "eos_prob"), real(eos_threshold, "eos_threshold"))
