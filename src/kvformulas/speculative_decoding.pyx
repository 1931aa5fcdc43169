# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""Draft-then-verify decoding, grammar-constrained decoding, structured repair, contrast, healing and watermarks."""
from kvformulas._real cimport real
from kvformulas.kernels cimport speculative_decoding as c

__all__ = [
    "speculative_accept_prob",
    "speculative_expected_tokens",
    "draft_model_speedup",
    "medusa_head_acceptance",
    "json_grammar_logit_mask",
    "constrained_beam_score",
    "structured_repair_score",
    "contrastive_decode_score",
    "token_healing_overlap",
    "watermark_green_list_bias",
]


def speculative_accept_prob(target_prob: float, draft_prob: float) -> float:
    r"""
    Return the probability with which a draft token is kept.

    .. math::

        \min\left(1, \frac{\mathrm{target\_prob}}{\mathrm{draft\_prob}}\right)

    The draft model proposes a token, the target model verifies it. Keeping it with this probability, and drawing
    from the positive part of target minus draft otherwise, samples exactly from the target model [1]_ [2]_.

    Parameters
    ----------
    target_prob : float
        Probability that the target model gives the token [probability].
    draft_prob : float
        Probability that the draft model gave the token when it proposed it [probability].

    Returns
    -------
    float
        Chance of keeping the token, at most 1 [probability].

    See Also
    --------
    medusa_head_acceptance : The same rule for one Medusa head.
    speculative_expected_tokens : What the mean of this probability yields in tokens.

    Notes
    -----
    **Domain:** both probabilities in 0 to 1. The ratio is clamped at 1; below 0 it is not.

    **Guard:** ``draft_prob <= 0`` gives 1.0.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 0.5 ULP (one rounding; the clamp is exact). A token that the target likes at least as much as the draft
    does gives exactly 1.

    The random draw that is compared with this probability is the caller's.

    References
    ----------
    .. [1] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, section 2.3.
    .. [2] C. Chen et al., "Accelerating Large Language Model Decoding with Speculative Sampling", 2023,
       arXiv:2302.01318, algorithm 2.

    Examples
    --------
    A token that the draft overrates is kept six times out of ten, one that it underrates always:

    >>> from kvformulas.speculative_decoding import speculative_accept_prob
    >>> speculative_accept_prob(0.3, 0.5)
    0.6
    >>> speculative_accept_prob(0.5, 0.3)
    1.0

    The guard accepts what the draft could not have proposed:

    >>> speculative_accept_prob(0.5, 0)
    1.0
    """
    return c.speculative_accept_prob(real(target_prob, "target_prob"), real(draft_prob, "draft_prob"))


def speculative_expected_tokens(acceptance_rate: float, speculation_depth: float) -> float:
    r"""
    Return the tokens that one speculative step yields on average.

    .. math::

        \frac{1 - \mathrm{acceptance\_rate}^{\mathrm{speculation\_depth} + 1}}{1 - \mathrm{acceptance\_rate}}

    This is the expected length of a run of accepted draft tokens, plus the one token that the target model always
    adds itself, when every draft token is accepted independently at the same rate [1]_.

    Parameters
    ----------
    acceptance_rate : float
        Share of draft tokens that the target model accepts, the alpha of the literature [ratio].
    speculation_depth : float
        Draft tokens proposed in each step, the gamma of the literature [tokens].

    Returns
    -------
    float
        Mean yield of a step, from 1 to ``speculation_depth + 1`` [tokens].

    See Also
    --------
    speculative_accept_prob : The chance of acceptance of one token.
    draft_model_speedup : What this yield gains in time.

    Notes
    -----
    **Domain:** ``acceptance_rate`` in 0 to 1, ``speculation_depth`` at least 0.

    **Guard:** ``acceptance_rate >= 1`` gives ``speculation_depth + 1``, the limit; ``acceptance_rate <= 0`` gives 1.0.

    **Special values:** NaN in any argument gives NaN, unless ``acceptance_rate <= 0``; an infinite depth gives
    ``1 / (1 - acceptance_rate)``.

    **Error:** 4 ULP (four roundings, and 1 ULP each for the library's logarithm and expm1). A whole depth and a rate
    of at least 0.5 save two of the roundings. At a rate of 1, whole depths below 2**53 are exact.

    The formula as printed loses its digits as the rate nears 1, where both differences cancel. Evaluated as
    ``-expm1((speculation_depth + 1) * log(acceptance_rate)) / (1 - acceptance_rate)`` it keeps them. The reference
    system's result at a rate of 1 - 2**-28 is off by 7e-9; this is departure 1 from it.

    References
    ----------
    .. [1] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, equation 1.

    Examples
    --------
    Four draft tokens a step, of which 80 percent are accepted:

    >>> from kvformulas.speculative_decoding import speculative_expected_tokens
    >>> speculative_expected_tokens(0.8, 4)
    3.3616

    Close to 1 the result agrees with the geometric series, summed in exact fractions:

    >>> from fractions import Fraction
    >>> alpha = 1 - 2**-28
    >>> exact = sum(Fraction(alpha) ** k for k in range(5))
    >>> abs(speculative_expected_tokens(alpha, 4) - exact) < 4e-15
    True
    """
    return c.speculative_expected_tokens(
        real(acceptance_rate, "acceptance_rate"), real(speculation_depth, "speculation_depth")
    )


def draft_model_speedup(
    expected_tokens: float, target_latency_ms: float, draft_latency_ms: float, speculation_depth: float
) -> float:
    r"""
    Return how many times faster speculation is than decoding token by token.

    .. math::

        \frac{\mathrm{expected\_tokens} \cdot \mathrm{target\_latency\_ms}}
        {\mathrm{target\_latency\_ms} + \mathrm{draft\_latency\_ms} \cdot \mathrm{speculation\_depth}}

    A step costs one pass of the target model and one pass of the draft model for each draft token. Dividing both
    parts by the target's latency gives the walltime improvement of [1]_.

    Parameters
    ----------
    expected_tokens : float
        Tokens that a step yields on average, from ``speculative_expected_tokens`` [tokens].
    target_latency_ms : float
        Time of one pass of the target model, taken as the same for verifying and for plain decoding [ms].
    draft_latency_ms : float
        Time of one pass of the draft model [ms].
    speculation_depth : float
        Draft tokens proposed in each step [tokens].

    Returns
    -------
    float
        Speed relative to plain decoding; below 1, speculation is a loss [ratio].

    See Also
    --------
    speculative_expected_tokens : The yield of a step.
    kvformulas.paged_kv_cache.speculative_branch_memory : The KV cache that the draft tokens cost.

    Notes
    -----
    **Domain:** every argument at least 0, the step's time above 0.

    **Guard:** ``target_latency_ms + draft_latency_ms * speculation_depth <= 0`` gives 1.0: no speedup.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; an infinite target latency gives NaN,
    an infinite draft latency gives 0.0.

    **Error:** 2 ULP (four roundings). With whole latencies and a whole depth the step's time is exact below 2**53.

    Sampling, scheduling and the memory for the draft model are not in the figure.

    References
    ----------
    .. [1] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, theorem 3.8.

    Examples
    --------
    An acceptance rate of 0.8 at depth 4 yields 3.3616 tokens a step. With 50 ms for a target pass and 8 ms for a draft
    pass that is about 2.05 times as fast:

    >>> from kvformulas.speculative_decoding import draft_model_speedup, speculative_expected_tokens
    >>> draft_model_speedup(3.3616, 50, 8, 4)
    2.0497560975609757
    >>> round(draft_model_speedup(speculative_expected_tokens(0.8, 4), 50, 8, 4), 2)
    2.05

    A draft model that takes half the target's time and is seldom right costs more than it gains:

    >>> draft_model_speedup(1.5, 50, 25, 4)
    0.5
    """
    return c.draft_model_speedup(
        real(expected_tokens, "expected_tokens"), real(target_latency_ms, "target_latency_ms"),
        real(draft_latency_ms, "draft_latency_ms"), real(speculation_depth, "speculation_depth"),
    )


def medusa_head_acceptance(medusa_prob: float, target_prob: float, head_id: float) -> float:
    r"""
    Return the probability with which a Medusa head's token is kept.

    .. math::

        \min\left(1, \frac{\mathrm{target\_prob}}{\mathrm{medusa\_prob}}\right)

    A Medusa model drafts with extra heads of its own, one for each position ahead, instead of a second model [1]_.
    The heads' tokens can be verified by the rule of speculative sampling [2]_.

    Parameters
    ----------
    medusa_prob : float
        Probability that the head gave the token when it proposed it [probability].
    target_prob : float
        Probability that the model's own head gives the token [probability].
    head_id : float
        Which head proposed. It only names the head and is ignored [head id].

    Returns
    -------
    float
        Chance of keeping the token, at most 1 [probability].

    See Also
    --------
    speculative_accept_prob : The same rule for a draft model.

    Notes
    -----
    **Domain:** both probabilities in 0 to 1; any ``head_id``. The ratio is clamped at 1; below 0 it is not.

    **Guard:** ``medusa_prob <= 0`` gives 1.0.

    **Special values:** NaN in a probability gives NaN, unless the guard applies; a NaN ``head_id`` is ignored; infinity
    over infinity is NaN.

    **Error:** 0.5 ULP (one rounding; the clamp is exact).

    The proposal comes first here, the target second: the other way round than in ``speculative_accept_prob``, which
    otherwise gives the same bits. The Medusa paper also offers typical acceptance, a threshold on the target
    probability that gives up the target's exact distribution; that is another rule.

    References
    ----------
    .. [1] T. Cai et al., "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads",
       ICML 2024.
    .. [2] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, section 2.3.

    Examples
    --------
    >>> from kvformulas.speculative_decoding import medusa_head_acceptance
    >>> medusa_head_acceptance(0.5, 0.3, 0)
    0.6

    Which head it was makes no difference:

    >>> medusa_head_acceptance(0.5, 0.3, 3)
    0.6
    """
    return c.medusa_head_acceptance(
        real(medusa_prob, "medusa_prob"), real(target_prob, "target_prob"), real(head_id, "head_id")
    )


def json_grammar_logit_mask(token_id: float, is_valid_next: float) -> float:
    r"""
    Return what to add to a token's logit so that only grammatical tokens are drawn.

    .. math::

        \begin{cases}
        0 & \text{if } \mathrm{is\_valid\_next} > 0.5 \\
        -10^{9} & \text{if } \mathrm{is\_valid\_next} \le 0.5
        \end{cases}

    Guided generation masks the tokens that no valid continuation, of a JSON document for example, can begin
    with [1]_. This is one token's entry of that mask.

    Parameters
    ----------
    token_id : float
        Which token the entry is for. It only names the token and is ignored [token id].
    is_valid_next : float
        1 if the grammar allows the token next, 0 if not [flag].

    Returns
    -------
    float
        Term to add to the logit [logits].

    See Also
    --------
    constrained_beam_score : The same constraint on a whole beam.

    Notes
    -----
    **Domain:** ``is_valid_next`` 0 or 1; any ``token_id``.

    **Guard:** none.

    **Special values:** a NaN ``is_valid_next`` gives NaN; a NaN ``token_id`` is ignored.

    **Error:** none (both values are exact).

    The term is finite on purpose: a row of tokens that are all masked still has a softmax, where one of minus
    infinities would give NaN. Parsing the grammar is the caller's.

    References
    ----------
    .. [1] B. T. Willard and R. Louf, "Efficient Guided Generation for Large Language Models", 2023,
       arXiv:2307.09702, algorithm 2.

    Examples
    --------
    >>> from kvformulas.speculative_decoding import json_grammar_logit_mask
    >>> json_grammar_logit_mask(123, 1)
    0.0
    >>> json_grammar_logit_mask(123, 0)
    -1000000000.0

    One half is not yet valid:

    >>> json_grammar_logit_mask(123, 0.5)
    -1000000000.0
    """
    return c.json_grammar_logit_mask(real(token_id, "token_id"), real(is_valid_next, "is_valid_next"))


def constrained_beam_score(beam_log_prob: float, grammar_valid: float, length: float, alpha: float) -> float:
    r"""
    Return a beam's length-normalised score, or a prohibitive one if the grammar rejects it.

    .. math::

        \frac{\mathrm{beam\_log\_prob}}{\mathrm{length}^{\mathrm{alpha}}}

    Constrained beam search drops beams that no longer parse [1]_ and ranks the rest. The power of the length keeps
    long beams, whose log-probability is a longer sum of negative terms, from losing to short ones [2]_.

    Parameters
    ----------
    beam_log_prob : float
        Sum of the log-probabilities of the beam's tokens [nats].
    grammar_valid : float
        1 if the beam is a valid prefix of the grammar, 0 if not [flag].
    length : float
        Tokens in the beam [tokens].
    alpha : float
        Strength of the normalisation: 0 for none, 1 for the mean log-probability of a token [exponent].

    Returns
    -------
    float
        Score of the beam, larger is better [nats].

    See Also
    --------
    json_grammar_logit_mask : The same constraint on one token.
    kvformulas.llm_sampling.length_penalty : The GNMT normalisation, whose base is (5 + length) / 6.

    Notes
    -----
    **Domain:** ``beam_log_prob`` at most 0, ``grammar_valid`` 0 or 1, ``length`` above 0, any ``alpha``.

    **Guard:** ``grammar_valid < 0.5`` gives -1e9; otherwise ``length <= 0`` gives ``beam_log_prob``.

    **Special values:** NaN in any argument gives NaN, unless a guard applies; ``alpha`` 0 and ``length`` 1 do not hide
    a NaN.

    **Error:** 1.5 ULP (1 ULP for the library's power, and one rounding). With ``alpha`` 0 or ``length`` 1 the score is
    exactly ``beam_log_prob``.

    The -1e9 is not normalised, so every rejected beam scores the same.

    References
    ----------
    .. [1] T. Scholak, N. Schucher and D. Bahdanau, "PICARD: Parsing Incrementally for Constrained Auto-Regressive
       Decoding from Language Models", EMNLP 2021.
    .. [2] Hugging Face transformers, ``BeamHypotheses.add``: the sum of log-probabilities over the generated length to
       the power ``length_penalty``.

    Examples
    --------
    >>> from kvformulas.speculative_decoding import constrained_beam_score
    >>> constrained_beam_score(-12, 1, 8, 1)
    -1.5
    >>> constrained_beam_score(-12, 1, 8, 0)
    -12.0

    However likely, a beam that does not parse is out:

    >>> constrained_beam_score(-0.1, 0, 8, 1)
    -1000000000.0
    """
    return c.constrained_beam_score(
        real(beam_log_prob, "beam_log_prob"), real(grammar_valid, "grammar_valid"), real(length, "length"),
        real(alpha, "alpha"),
    )


def structured_repair_score(output_validity: float, repair_attempts: float, max_repair_attempts: float) -> float:
    r"""
    Return the validity of a structured output, discounted by the repairs that it took.

    .. math::

        \mathrm{output\_validity} \cdot
        \left(1 - \frac{\mathrm{repair\_attempts}}{\mathrm{max\_repair\_attempts}}\right)

    Malformed output is sent back to the model, with what was wrong, a limited number of times [1]_. The score ranks
    the results: of two equally valid outputs, the one that needed fewer repairs wins.

    Parameters
    ----------
    output_validity : float
        How valid the output is, 1 for fully [ratio].
    repair_attempts : float
        Repairs used up [count].
    max_repair_attempts : float
        Repairs allowed [count].

    Returns
    -------
    float
        Discounted validity [ratio].

    See Also
    --------
    json_grammar_logit_mask : How to prevent malformed output instead.

    Notes
    -----
    **Domain:** ``output_validity`` in 0 to 1, ``repair_attempts`` at least 0, ``max_repair_attempts`` above 0. The
    score is not clamped: beyond the limit it is negative.

    **Guard:** ``max_repair_attempts <= 0`` gives ``output_validity``.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; an infinite limit discounts nothing;
    infinitely many repairs of a finite limit give minus infinity.

    **Error:** 1.5 ULP (three roundings: it is evaluated as ``validity * (max - attempts) / max``). With whole counts
    and a validity of 1 the only rounding is the quotient's, 0.5 ULP.

    The linear discount is a rule of thumb of this formula; the cited library counts attempts without scoring them.

    References
    ----------
    .. [1] Instructor, ``max_retries``: validation errors are returned to the model until the attempts run out.

    Examples
    --------
    >>> from kvformulas.speculative_decoding import structured_repair_score
    >>> structured_repair_score(1, 1, 4)
    0.75

    At the limit nothing is left, and beyond it the score is negative:

    >>> structured_repair_score(1, 4, 4)
    0.0
    >>> structured_repair_score(1, 5, 4)
    -0.25
    """
    return c.structured_repair_score(
        real(output_validity, "output_validity"), real(repair_attempts, "repair_attempts"),
        real(max_repair_attempts, "max_repair_attempts"),
    )


def contrastive_decode_score(expert_log_prob: float, amateur_log_prob: float, alpha: float) -> float:
    r"""
    Return a token's score by how much the expert model prefers it to the amateur.

    .. math::

        \mathrm{expert\_log\_prob} - \mathrm{alpha} \cdot \mathrm{amateur\_log\_prob}

    Contrastive decoding looks for text that a large model finds likely and a small one does not, since dull and
    repetitive text is likely under both [1]_.

    Parameters
    ----------
    expert_log_prob : float
        Log-probability of the token under the large model [nats].
    amateur_log_prob : float
        Log-probability of the token under the small model [nats].
    alpha : float
        Weight of the contrast: 0 ignores the amateur, 1 is the published objective [ratio].

    Returns
    -------
    float
        Score of the token, larger is better [nats].

    See Also
    --------
    speculative_accept_prob : Two models compared to save time instead of to improve the text.

    Notes
    -----
    **Domain:** any log-probabilities, ``alpha`` at least 0.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; two log-probabilities of minus infinity give NaN, and so does
    minus infinity for the amateur with ``alpha`` 0.

    **Error:** 1 ULP of the largest term (two roundings; the terms can cancel). With ``alpha`` 1 it is 0.5 ULP of the
    result. Whole arguments are exact below 2**53.

    A token that both models find absurd can score high. The paper therefore admits only tokens whose expert probability
    is at least a fraction of the best one's, which it calls alpha: not the ``alpha`` here. That filter is
    ``kvformulas.generation_loop.min_p_accept``.

    References
    ----------
    .. [1] X. L. Li et al., "Contrastive Decoding: Open-ended Text Generation as Optimization", ACL 2023, section 3.

    Examples
    --------
    The token that the amateur thinks less of gains, although the expert rates both alike:

    >>> from kvformulas.speculative_decoding import contrastive_decode_score
    >>> contrastive_decode_score(-1.5, -1, 0.5)
    -1.0
    >>> contrastive_decode_score(-1.5, -4, 0.5)
    0.5

    Without weight the amateur is not heard:

    >>> contrastive_decode_score(-1.5, -4, 0)
    -1.5
    """
    return c.contrastive_decode_score(
        real(expert_log_prob, "expert_log_prob"), real(amateur_log_prob, "amateur_log_prob"), real(alpha, "alpha")
    )


def token_healing_overlap(prefix_last_token: float, new_first_token: float, overlap_chars: float) -> float:
    r"""
    Return the characters that the regenerated first token has to repeat.

    .. math::

        \mathrm{overlap\_chars}

    A prompt can end in the middle of what the tokenizer would make one token. Token healing drops the prompt's last
    token and lets the model choose again among tokens that begin with the dropped text [1]_.

    Parameters
    ----------
    prefix_last_token : float
        Last token of the prompt, the one that is dropped. Ignored [token id].
    new_first_token : float
        Token that replaces it. Ignored [token id].
    overlap_chars : float
        Characters that both have in common, counted by the caller [characters].

    Returns
    -------
    float
        The overlap, unchanged [characters].

    See Also
    --------
    json_grammar_logit_mask : A mask that can enforce the repeated text.
    kvformulas.paged_kv_cache.page_table_lookup : Another step with a name and no arithmetic.
    kvformulas.llm_sampling.top_k_threshold : Another step with a name and no arithmetic.

    Notes
    -----
    **Domain:** any double.

    **Guard:** none.

    **Special values:** a NaN ``overlap_chars`` is returned as it is; NaN in the other two is ignored.

    **Error:** none (the argument is returned).

    The formula names a step of the decoding loop. Only the caller has the tokens' text, so it makes the comparison.

    References
    ----------
    .. [1] S. Lundberg and M. T. Ribeiro, "The Art of Prompt Design: Prompt Boundaries and Token Healing", 2023, on the
       ``guidance`` library.

    Examples
    --------
    The prompt ends in ``:``, the model prefers ``://``; one character is repeated:

    >>> from kvformulas.speculative_decoding import token_healing_overlap
    >>> token_healing_overlap(27, 1358, 1)
    1.0

    The token ids play no part:

    >>> token_healing_overlap(0, 0, 1)
    1.0
    """
    return c.token_healing_overlap(
        real(prefix_last_token, "prefix_last_token"), real(new_first_token, "new_first_token"),
        real(overlap_chars, "overlap_chars"),
    )


def watermark_green_list_bias(token_id: float, green_list_hash: float, bias_strength: float) -> float:
    r"""
    Return what to add to a token's logit to watermark the text.

    .. math::

        n = \operatorname{trunc}(\mathrm{token\_id} + \mathrm{green\_list\_hash}) ;
        \begin{cases}
        \mathrm{bias\_strength} & \text{if } n \text{ is even} \\
        0 & \text{if } n \text{ is odd}
        \end{cases}

    A watermark prefers the tokens of a green list, which the preceding text determines; a detector counts them [1]_.
    Here a token is green if its id and the hash have an even sum, a simplification of the published rule.

    Parameters
    ----------
    token_id : float
        Token whose logit is biased [token id].
    green_list_hash : float
        Number derived from the preceding token or tokens and a key [hash].
    bias_strength : float
        Bias of a green token, the delta of the literature [logits].

    Returns
    -------
    float
        Term to add to the logit, 0 for a token that is not green [logits].

    See Also
    --------
    json_grammar_logit_mask : Another term for the same logit.

    Notes
    -----
    **Domain:** whole ``token_id`` and ``green_list_hash`` with a sum below 2**53; fractions of the sum are dropped.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN, a NaN ``bias_strength`` also for a token that is not green. An
    infinite sum has no parity and gives 0.0.

    **Error:** none (the result is an argument or 0). The parity is exact for whole arguments with a sum up to 2**53;
    beyond, every double is even.

    Parity is no cryptographic hash. Only its lowest bit counts, so there are two green lists in all, each half of the
    vocabulary, and whoever sees a few words of the text can guess which applies. Use it to model the cost of a
    watermark, not to prove an origin.

    References
    ----------
    .. [1] J. Kirchenbauer et al., "A Watermark for Large Language Models", ICML 2023, algorithm 2.

    Examples
    --------
    >>> from kvformulas.speculative_decoding import watermark_green_list_bias
    >>> watermark_green_list_bias(10, 4, 2)
    2.0
    >>> watermark_green_list_bias(11, 4, 2)
    0.0

    The next hash swaps the lists:

    >>> watermark_green_list_bias(11, 5, 2)
    2.0
    """
    return c.watermark_green_list_bias(
        real(token_id, "token_id"), real(green_list_hash, "green_list_hash"), real(bias_strength, "bias_strength")
    )
