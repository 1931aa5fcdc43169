# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""Sampling as scores and thresholds: temperature, top-k, top-p, min-p, penalties, typicality, beam search, greedy.

The running pipeline that the formulas come from is built on five of them, in this order: repetition penalty, frequency
and presence penalty, temperature, then top-k by sorting, min-p, top-p. ``kvformulas.generation_loop`` has much of the
same arithmetic as decisions.
"""
from kvformulas._real cimport real
from kvformulas.kernels cimport llm_sampling as c

__all__ = [
    "temperature_scale",
    "top_k_threshold",
    "top_p_cumulative",
    "min_p_threshold",
    "repetition_penalty_scale",
    "token_frequency_penalty",
    "beam_score_update",
    "length_penalty",
    "pow_approx",
    "typical_p_score",
    "greedy_token_id",
]


def temperature_scale(logit: float, temperature: float) -> float:
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
    kvformulas.generation_loop.temperature_logit_scale : The same formula, bit for bit.
    greedy_token_id : The choice that a temperature of 0 stands for.

    Notes
    -----
    **Domain:** any logit, ``temperature`` above 0.

    **Guard:** ``temperature <= 0`` gives ``logit * 1e9``, so that softmax leaves the largest logit alone.

    **Special values:** NaN in ``logit`` gives NaN, and so does NaN in ``temperature``. A masked logit of minus infinity
    stays so. An infinite temperature makes every finite logit 0. A tiny temperature, and in the guard a logit beyond
    1.79e299, overflows to infinity.

    **Error:** 0.5 ULP (one rounding, in the guard too). A temperature that is a power of two,
    such as 1, is exact short of underflow.

    The guard scales and does not select: logits that are equal stay equal, and differences below about 1e-9 survive
    softmax. Where one token is wanted, scan with ``greedy_token_id``.

    The order of a sampled pipeline is repetition penalty, frequency and presence penalty, temperature, top-k, min-p,
    top-p.

    References
    ----------
    .. [1] A. Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR 2020, section 3.3.
    .. [2] vLLM, ``SamplingParams.temperature``: zero means greedy sampling.

    Examples
    --------
    >>> from kvformulas.llm_sampling import temperature_scale
    >>> temperature_scale(3.0, 0.5)
    6.0

    A temperature of 0 pulls two close logits a billion times further apart:

    >>> temperature_scale(3.0, 0.0) - temperature_scale(2.0, 0.0)
    1000000000.0
    """
    return c.temperature_scale(real(logit, "logit"), real(temperature, "temperature"))


def top_k_threshold(k_th_logit: float) -> float:
    r"""
    Return the cut-off of top-k sampling, which is the k-th largest logit itself.

    .. math::

        \mathrm{k\_th\_logit}

    Top-k sampling draws from the k likeliest tokens [1]_; an engine finds the k-th largest logit and masks every logit
    below it [2]_.

    Parameters
    ----------
    k_th_logit : float
        The k-th largest logit, which the caller has found by sorting or selection [logit].

    Returns
    -------
    float
        Smallest logit that is kept [logit].

    See Also
    --------
    kvformulas.generation_loop.top_k_accept : The decision, by rank.
    min_p_threshold : The cut-off of min-p sampling.

    Notes
    -----
    **Domain:** every double.

    **Guard:** none.

    **Special values:** the argument comes back unchanged: NaN, an infinity or a negative zero too.

    **Error:** none; the argument is the result.

    A named pass-through: it gives a step its name, and the work is the caller's (the running pipeline sorts and slices
    its candidates, and calls no top-k formula). A threshold keeps every token that ties with the k-th, so more than k
    can pass; ``top_k_accept`` counts ranks and keeps k.

    References
    ----------
    .. [1] A. Fan, M. Lewis and Y. Dauphin, "Hierarchical Neural Story Generation", ACL 2018.
    .. [2] Hugging Face transformers, ``TopKLogitsWarper``.

    Examples
    --------
    Two of five logits are wanted, and a tie lets a third pass:

    >>> from kvformulas.llm_sampling import top_k_threshold
    >>> logits = [1.5, 4.0, 2.5, 2.5, 0.5]
    >>> cut = top_k_threshold(sorted(logits, reverse=True)[2 - 1])
    >>> [x for x in logits if x >= cut]
    [4.0, 2.5, 2.5]
    """
    return c.top_k_threshold(real(k_th_logit, "k_th_logit"))


def top_p_cumulative(sorted_prob: float, cumulative_so_far: float, p: float) -> float:
    r"""
    Return whether a token is in the nucleus, by the mass of the tokens ranked before it.

    .. math::

        \begin{cases}
        1 & \text{if } \mathrm{cumulative\_so\_far} < \mathrm{p} \\
        0 & \text{otherwise}
        \end{cases}

    Top-p sampling draws from the nucleus, the smallest set of the likeliest tokens whose mass reaches p [1]_: walking
    down the sorted probabilities, a token belongs to it as long as those before it fall short of p.

    Parameters
    ----------
    sorted_prob : float
        Ignored, NaN too. Probability of this token, in falling order [probability].
    cumulative_so_far : float
        Mass of the tokens ranked before this one, 0 for the first [probability].
    p : float
        Mass that the nucleus must reach [probability].

    Returns
    -------
    float
        1.0 to accept, 0.0 to reject [gate].

    See Also
    --------
    kvformulas.generation_loop.top_p_cumulative_accept : The same comparison, with its arguments in another order.
    min_p_threshold : A cut-off that moves with the likeliest token instead.

    Notes
    -----
    **Domain:** every double; meaningful for probabilities from 0 to 1.

    **Guard:** none.

    **Special values:** NaN in ``cumulative_so_far`` or ``p`` rejects. The first token passes whenever p is above 0.

    **Error:** none; the arguments are compared as they are.

    The running sum is the caller's, and its rounding decides near the edge: 0.6 + 0.3 is below 0.9 in doubles. The
    token that carries the sum past p is accepted, because its own probability is not part of what is compared.
    ``top_p_cumulative_accept`` decides alike when it is given the same sum, as its first argument.

    References
    ----------
    .. [1] A. Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR 2020, section 3.1.

    Examples
    --------
    Of the probabilities 0.5, 0.25, 0.125 and 0.125 the first two reach 0.75:

    >>> from kvformulas.llm_sampling import top_p_cumulative
    >>> top_p_cumulative(0.25, 0.5, 0.75)
    1.0
    >>> top_p_cumulative(0.125, 0.75, 0.75)
    0.0
    """
    return c.top_p_cumulative(
        real(sorted_prob, "sorted_prob"), real(cumulative_so_far, "cumulative_so_far"), real(p, "p")
    )


def min_p_threshold(max_prob: float, min_p: float) -> float:
    r"""
    Return the smallest probability that min-p sampling keeps.

    .. math::

        \mathrm{max\_prob} \cdot \mathrm{min\_p}

    The cut-off is a share of the likeliest token's probability, so it is strict where the model is sure and lenient
    where it is not [1]_.

    Parameters
    ----------
    max_prob : float
        Probability of the likeliest token [probability].
    min_p : float
        Share of it that a token must have, often 0.05 to 0.1 [ratio].

    Returns
    -------
    float
        Smallest probability that is kept [probability].

    See Also
    --------
    kvformulas.generation_loop.min_p_accept : The decision by this threshold.
    top_p_cumulative : Truncation by cumulative mass.

    Notes
    -----
    **Domain:** every double; meaningful for arguments from 0 to 1.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; 0 times infinity is NaN. A ``min_p`` of 0 gives 0, which keeps
    every token.

    **Error:** 0.5 ULP (one rounding). A ``min_p`` of 0 is exact, and a power of two short of underflow.

    Here the value comes back and the caller compares; ``min_p_accept`` compares with this very product.

    References
    ----------
    .. [1] M. N. Nguyen et al., "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs", ICLR 2025.

    Examples
    --------
    A sure model against an unsure one:

    >>> from kvformulas.llm_sampling import min_p_threshold
    >>> min_p_threshold(0.5, 0.25)
    0.125
    >>> min_p_threshold(0.0625, 0.25)
    0.015625
    """
    return c.min_p_threshold(real(max_prob, "max_prob"), real(min_p, "min_p"))


def repetition_penalty_scale(logit: float, penalty: float, token_appeared: float) -> float:
    r"""
    Return the logit of a token after the repetition penalty.

    .. math::

        \begin{cases}
        \frac{\mathrm{logit}}{\mathrm{penalty}} & \text{if } \mathrm{logit} > 0 \\
        \mathrm{logit} \cdot \mathrm{penalty} & \text{otherwise}
        \end{cases}

    The penalty discounts tokens that have appeared already. The paper divides every such logit [1]_; engines multiply
    the negative ones, so that a penalty above 1 always lowers the logit [2]_.

    Parameters
    ----------
    logit : float
        Logit of one token [logit].
    penalty : float
        Strength: 1 changes nothing, above 1 discourages, below 1 encourages [ratio].
    token_appeared : float
        Whether the token has appeared, or how often: anything above 0 applies the penalty once [flag].

    Returns
    -------
    float
        Penalised logit [logit].

    See Also
    --------
    kvformulas.generation_loop.repetition_penalty_logit : The same, with a flag that counts from 0.5 on.
    token_frequency_penalty : Penalties that are subtracted.

    Notes
    -----
    **Domain:** any logit, ``penalty`` above 0.

    **Guard:** ``token_appeared <= 0`` or ``penalty <= 0`` gives ``logit``.

    **Special values:** NaN in any argument gives NaN, unless a guard applies, which gives ``logit`` whatever it is.
    A logit of minus infinity stays so. An infinite penalty makes finite positive logits 0, negative ones minus infinity
    and a logit of 0 NaN.

    **Error:** 0.5 ULP (one rounding). A penalty of 1 and the guards are exact, and another
    power of two short of underflow.

    The first step of the sampled pipeline. The two modules agree wherever the flag is 0, below 0, or at least 0.5; for
    a flag between 0 and 0.5 this one penalises and ``repetition_penalty_logit`` doesn't.

    References
    ----------
    .. [1] N. S. Keskar et al., "CTRL: A Conditional Transformer Language Model for Controllable Generation",
       arXiv:1909.05858, 2019, section 4.1.
    .. [2] Hugging Face transformers, ``RepetitionPenaltyLogitsProcessor``.

    Examples
    --------
    >>> from kvformulas.llm_sampling import repetition_penalty_scale
    >>> repetition_penalty_scale(3.0, 1.5, 1)
    2.0
    >>> repetition_penalty_scale(-3.0, 1.5, 1)
    -4.5

    A token that is new keeps its logit:

    >>> repetition_penalty_scale(3.0, 1.5, 0)
    3.0
    """
    return c.repetition_penalty_scale(
        real(logit, "logit"), real(penalty, "penalty"), real(token_appeared, "token_appeared")
    )


def token_frequency_penalty(
    logit: float, token_count: float, frequency_penalty: float, presence_penalty: float
) -> float:
    r"""
    Return the logit of a token after the frequency and the presence penalty.

    .. math::

        \begin{cases}
        \mathrm{logit} - \mathrm{token\_count} \cdot \mathrm{frequency\_penalty} - \mathrm{presence\_penalty}
        & \text{if } \mathrm{token\_count} > 0 \\
        \mathrm{logit} - \mathrm{token\_count} \cdot \mathrm{frequency\_penalty} & \text{otherwise}
        \end{cases}

    The frequency penalty grows with each occurrence of the token, the presence penalty is charged once [1]_.

    Parameters
    ----------
    logit : float
        Logit of one token [logit].
    token_count : float
        Occurrences of the token so far [count].
    frequency_penalty : float
        Penalty of each occurrence, in the API from -2 to 2 [logit].
    presence_penalty : float
        Penalty of having occurred at all, in the API from -2 to 2 [logit].

    Returns
    -------
    float
        Penalised logit [logit].

    See Also
    --------
    kvformulas.generation_loop.frequency_penalty_logit : The first penalty alone.
    kvformulas.generation_loop.presence_penalty_logit : The second penalty alone.
    repetition_penalty_scale : A penalty that divides.

    Notes
    -----
    **Domain:** every double; ``token_count`` is meant to be a whole number from 0.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN, in ``presence_penalty`` also where the count is 0; 0 times
    infinity and infinity less infinity are NaN. Negative penalties raise the logit.

    **Error:** 1.5 ULP of the largest term (three roundings, where the partial and final results are terms too), while
    no partial result overflows. Whole arguments whose terms stay below 2**53 are exact.

    The two penalties of ``kvformulas.generation_loop`` in one call: ``frequency_penalty_logit`` and then
    ``presence_penalty_logit`` give the same bits. In the sampled pipeline this step follows the repetition penalty and
    precedes the temperature.

    References
    ----------
    .. [1] OpenAI API reference, "Parameter details: frequency and presence penalties".

    Examples
    --------
    >>> from kvformulas.llm_sampling import token_frequency_penalty
    >>> token_frequency_penalty(5.0, 3, 0.5, 0.25)
    3.25

    A token that has not occurred is charged nothing:

    >>> token_frequency_penalty(5.0, 0, 0.5, 0.25)
    5.0
    """
    return c.token_frequency_penalty(
        real(logit, "logit"), real(token_count, "token_count"), real(frequency_penalty, "frequency_penalty"),
        real(presence_penalty, "presence_penalty"),
    )


def beam_score_update(current_score: float, next_log_prob: float) -> float:
    r"""
    Return the score of a beam that is extended by one token.

    .. math::

        \mathrm{current\_score} + \mathrm{next\_log\_prob}

    A beam's score is the log-probability of its tokens together, so each token adds its own [1]_.

    Parameters
    ----------
    current_score : float
        Sum of the log-probabilities so far [nats].
    next_log_prob : float
        Log-probability of the next token, given the beam [nats].

    Returns
    -------
    float
        Score of the extended beam [nats].

    See Also
    --------
    length_penalty : What makes beams of different lengths comparable.
    kvformulas.speculative_decoding.constrained_beam_score : A beam's score under a grammar.

    Notes
    -----
    **Domain:** every double; log-probabilities are at most 0. Another base of logarithm will do if all terms share it.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; a token of probability 0 (minus infinity) makes the beam minus
    infinity; infinities of opposite sign give NaN.

    **Error:** 0.5 ULP (one rounding). Terms that cancel leave no further error, and whole sums below 2**53 are exact.

    References
    ----------
    .. [1] I. Sutskever, O. Vinyals and Q. V. Le, "Sequence to Sequence Learning with Neural Networks", NIPS 2014,
       section 3.2.

    Examples
    --------
    >>> from kvformulas.llm_sampling import beam_score_update
    >>> beam_score_update(-1.5, -0.25)
    -1.75

    An impossible token ends the beam:

    >>> beam_score_update(-1.5, float("-inf"))
    -inf
    """
    return c.beam_score_update(real(current_score, "current_score"), real(next_log_prob, "next_log_prob"))


def length_penalty(log_prob_sum: float, length: float, alpha: float) -> float:
    r"""
    Return the score of a beam normalised by its length.

    .. math::

        \frac{\mathrm{log\_prob\_sum}}{\left(\frac{5 + \mathrm{length}}{6}\right)^{\mathrm{alpha}}}

    Each token lowers the sum, so without a penalty beam search would favour short outputs; this is the normalisation
    of Google's translation system, without its coverage term [1]_.

    Parameters
    ----------
    log_prob_sum : float
        Sum of the log-probabilities of the beam's tokens [nats].
    length : float
        Tokens in the beam [tokens].
    alpha : float
        Strength: 0 leaves the sum, 1 nearly averages, usually 0.2 to 1 [exponent].

    Returns
    -------
    float
        Normalised score, where the larger is the better beam [nats].

    See Also
    --------
    beam_score_update : The sum that is normalised.
    pow_approx : The power alone.
    kvformulas.speculative_decoding.constrained_beam_score : Normalisation by the plain power of the length.

    Notes
    -----
    **Domain:** ``length`` above -5, meant to be at least 1; any ``alpha``.

    **Guard:** ``length <= -5`` gives ``log_prob_sum``, as a penalty of 1 would.

    **Special values:** NaN in any argument gives NaN, unless the guard applies, which gives ``log_prob_sum`` whatever
    it is. A length of 1 gives the sum itself. A power that overflows gives 0, and over an infinite sum NaN; one that
    underflows to 0 gives an infinity, and over a sum of 0 NaN.

    **Error:** 3 ULP (the power and its correction 1 each, their product and the quotient 0.5 each), for an ``alpha`` of
    at most 1e15 in size and a power that is a normal number. An ``alpha`` of 0 and a length of 1 are exact.

    A power multiplies the rounding of its base by the exponent, and this base is rounded twice. Both roundings are
    computed and taken out, so that the error doesn't grow with ``alpha`` in that range.

    References
    ----------
    .. [1] Y. Wu et al., "Google's Neural Machine Translation System: Bridging the Gap between Human and Machine
       Translation", arXiv:1609.08144, 2016, equation 14.

    Examples
    --------
    A beam of 7 tokens has a base of 2:

    >>> from kvformulas.llm_sampling import length_penalty
    >>> length_penalty(-6.0, 7, 1.0)
    -3.0

    An ``alpha`` of 0 turns the penalty off, and a base that isn't positive is not raised to a power:

    >>> length_penalty(-6.0, 7, 0.0)
    -6.0
    >>> length_penalty(-6.0, -5, 1.0)
    -6.0
    """
    return c.length_penalty(real(log_prob_sum, "log_prob_sum"), real(length, "length"), real(alpha, "alpha"))


def pow_approx(base: float, exponent: float) -> float:
    r"""
    Return a positive base raised to a power.

    .. math::

        \mathrm{base}^{\mathrm{exponent}}

    The power of IEEE 754 [1]_ for positive bases, as length penalties and rotary scales need it.

    Parameters
    ----------
    base : float
        Number that is raised [ratio].
    exponent : float
        Power that it is raised to [exponent].

    Returns
    -------
    float
        The power [ratio].

    See Also
    --------
    length_penalty : A score over such a power.
    kvformulas.paged_kv_cache.dynamic_ntk_rope_scale : A power of a ratio of lengths.

    Notes
    -----
    **Domain:** ``base`` above 0, any ``exponent``.

    **Guard:** ``base <= 0`` gives 1.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; so 1 to the power NaN and NaN to the
    power 0 are NaN, which IEEE 754 has as 1. Otherwise infinities, overflow and underflow follow IEEE 754.

    **Error:** 1 ULP (libm's pow, and nothing else). An exponent of 0 or 1 and a base of 1 are exact.

    The name is historical: the value is the true power. The system that the formula comes from had one that was good
    to about 1e-10 only (7 to the power 1 was 6.99999999968582 there), which is departed from on purpose.

    References
    ----------
    .. [1] IEEE 754-2019, section 9.2, operation pow.

    Examples
    --------
    >>> from kvformulas.llm_sampling import pow_approx
    >>> pow_approx(2.0, 0.5)
    1.4142135623730951
    >>> pow_approx(7, 1)
    7.0

    A base that isn't positive gives 1:

    >>> pow_approx(-2.0, 3.0)
    1.0
    """
    return c.pow_approx(real(base, "base"), real(exponent, "exponent"))


def typical_p_score(token_log_prob: float, entropy: float) -> float:
    r"""
    Return how far a token's information content is from the entropy.

    .. math::

        \left|\mathrm{token\_log\_prob} + \mathrm{entropy}\right|

    Locally typical sampling prefers tokens whose information content, minus the log-probability, is near the expected
    one, which is the entropy [1]_. The smaller the score, the more typical the token.

    Parameters
    ----------
    token_log_prob : float
        Log-probability of the token [nats].
    entropy : float
        Entropy of the distribution that the token is drawn from [nats].

    Returns
    -------
    float
        Distance from the entropy [nats].

    See Also
    --------
    kvformulas.generation_loop.typical_sampling_accept : The decision by this score.

    Notes
    -----
    **Domain:** every double; log-probabilities are at most 0 and entropies at least 0. Another base of logarithm will
    do if both share it.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; a token of probability 0 has an infinite score; minus infinity
    plus infinity is NaN.

    **Error:** 0.5 ULP (one rounding). A sum that cancels is exact.

    ``typical_sampling_accept`` compares this very score, there written with the opposite signs. The paper sorts by the
    score and keeps the most typical tokens up to a given mass, so a token that is likelier than the entropy suggests
    can be dropped.

    References
    ----------
    .. [1] C. Meister, T. Pimentel, G. Wiher and R. Cotterell, "Locally Typical Sampling", TACL 11, 2023.

    Examples
    --------
    With an entropy of 2 nats, a token of 2.25 nats is more typical than one of 0.5:

    >>> from kvformulas.llm_sampling import typical_p_score
    >>> typical_p_score(-2.25, 2.0)
    0.25
    >>> typical_p_score(-0.5, 2.0)
    1.5
    """
    return c.typical_p_score(real(token_log_prob, "token_log_prob"), real(entropy, "entropy"))


def greedy_token_id(max_logit: float, current_logit: float, current_id: float) -> float:
    r"""
    Return the token's id if its logit reaches the maximum, or -1.

    .. math::

        \begin{cases}
        \mathrm{current\_id} & \text{if } \mathrm{current\_logit} \ge \mathrm{max\_logit} \\
        -1 & \text{otherwise}
        \end{cases}

    One step of the scan for the largest logit, which is the token of greedy decoding (temperature 0) [1]_.

    Parameters
    ----------
    max_logit : float
        Largest logit so far, minus infinity at first [logit].
    current_logit : float
        Logit of the token at hand [logit].
    current_id : float
        Id of the token at hand [token id].

    Returns
    -------
    float
        The id where the token takes the lead, -1 where it does not [token id].

    See Also
    --------
    temperature_scale : Sampling that a temperature of 0 makes greedy.

    Notes
    -----
    **Domain:** every double; ids are meant to be whole numbers from 0, so that -1 is none of them.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN, also in ``current_id`` where the token doesn't lead. Equal
    infinities count as reached.

    **Error:** none; an argument or -1 is the result.

    A tie goes to the token at hand, so a scan in order of ids ends at the last of several equal maxima, where
    ``numpy.argmax`` names the first.

    References
    ----------
    .. [1] vLLM, ``SamplingParams.temperature``: zero means greedy sampling.

    Examples
    --------
    >>> from kvformulas.llm_sampling import greedy_token_id
    >>> greedy_token_id(2.5, 3.0, 17)
    17.0
    >>> greedy_token_id(2.5, 1.0, 17)
    -1.0

    A scan, in which the later of two equal logits wins:

    >>> best, top = -1.0, float("-inf")
    >>> for token, logit in enumerate([0.5, 4.0, 1.0, 4.0]):
    ...     if greedy_token_id(top, logit, token) >= 0:
    ...         best, top = token, logit
    >>> best
    3
    """
    return c.greedy_token_id(
        real(max_logit, "max_logit"), real(current_logit, "current_logit"), real(current_id, "current_id")
    )
