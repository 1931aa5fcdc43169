# cython: language_level=3, binding=True, annotation_typing=False, freethreading_compatible=True, autotestdict=False
"""From a speculative decoder's counters to decisions: acceptance rate, speedup, break-even and the best depth."""
from kvformulas._real cimport real
from kvformulas.kernels cimport speculation_analysis as c

__all__ = [
    "mean_acceptance_length",
    "expected_accepted_tokens",
    "acceptance_rate_from_counts",
    "speculative_walltime_speedup",
    "speculative_operations_factor",
    "break_even_acceptance",
    "best_speculation_depth",
    "residual_weight",
    "medusa_typical_threshold",
]


def mean_acceptance_length(accepted_tokens: float, steps: float) -> float:
    r"""
    Return the tokens that a speculative step has yielded on average.

    .. math::

        1 + \frac{\mathrm{accepted\_tokens}}{\mathrm{steps}}

    Each step adds the draft tokens that were accepted and one token of the target model's own [1]_.

    Parameters
    ----------
    accepted_tokens : float
        Draft tokens accepted over all steps [tokens].
    steps : float
        Speculative steps, one pass of the target model each [count].

    Returns
    -------
    float
        Mean yield of a step, at least 1 [tokens].

    See Also
    --------
    acceptance_rate_from_counts : The acceptance rate behind the same counters.
    kvformulas.speculative_decoding.speculative_expected_tokens : The yield that an acceptance rate predicts.

    Notes
    -----
    **Domain:** ``accepted_tokens`` at least 0, ``steps`` above 0.

    **Guard:** ``steps <= 0`` gives 1.0: a step without a draft.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; infinity over infinity is NaN.

    **Error:** 1 ULP of the largest term (two roundings); for counts of at least 0 that is the result. Whole counts
    whose ratio is whole are exact.

    Pool the counters of several workers or intervals before dividing. A mean of their means weighs an idle one like a
    busy one: 40 tokens in 10 steps and 180 in 90 make 3.2 a step, where the mean of 5 and 3 would be 4.

    References
    ----------
    .. [1] vLLM, speculative decoding metrics, "Mean acceptance length"; on pooling, vllm-project/vllm#42508.

    Examples
    --------
    >>> from kvformulas.speculation_analysis import mean_acceptance_length
    >>> mean_acceptance_length(40 + 180, 10 + 90)
    3.2

    Before the first step there is nothing to report:

    >>> mean_acceptance_length(0, 0)
    1.0
    """
    return c.mean_acceptance_length(real(accepted_tokens, "accepted_tokens"), real(steps, "steps"))


def expected_accepted_tokens(acceptance_rate: float, depth: float) -> float:
    r"""
    Return the draft tokens that one speculative step has accepted on average.

    .. math::

        \mathrm{acceptance\_rate} \cdot
        \frac{1 - \mathrm{acceptance\_rate}^{\mathrm{depth}}}{1 - \mathrm{acceptance\_rate}}

    The i-th draft token counts only if it and all those before it are accepted, which happens with the i-th power of
    the rate when each is accepted independently of the others; this is the sum of the powers 1 to ``depth`` [1]_.

    Parameters
    ----------
    acceptance_rate : float
        Share of draft tokens that the target model accepts when it comes to them, the alpha of the literature [ratio].
    depth : float
        Draft tokens proposed in each step, the gamma of the literature [tokens].

    Returns
    -------
    float
        Mean number of accepted draft tokens, from 0 to ``depth`` [tokens].

    See Also
    --------
    acceptance_rate_from_counts : The inverse, from counters to the rate.
    kvformulas.speculative_decoding.speculative_expected_tokens : The same and the target model's own token.

    Notes
    -----
    **Domain:** ``acceptance_rate`` in 0 to 1, ``depth`` at least 0.

    **Guard:** ``acceptance_rate >= 1`` gives ``depth``, the limit; ``acceptance_rate <= 0`` gives 0.0.

    **Special values:** NaN in any argument gives NaN, unless ``acceptance_rate <= 0``; an infinite depth gives
    ``acceptance_rate / (1 - acceptance_rate)``.

    **Error:** 4 ULP (four roundings, and 1 ULP each for the library's logarithm and expm1). At a rate of 1 it is exact.

    Engines report accepted over drafted tokens, which is this value over ``depth`` and less than the rate: once a token
    is rejected, those after it are not even looked at.

    References
    ----------
    .. [1] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, equation 1 less the target model's token.

    Examples
    --------
    At a rate of 0.8, five draft tokens yield about 2.7, which a counter shows as 54 percent:

    >>> from kvformulas.speculation_analysis import expected_accepted_tokens
    >>> round(expected_accepted_tokens(0.8, 5), 4)
    2.6893
    >>> expected_accepted_tokens(1, 5)
    5.0

    Without a draft none is accepted:

    >>> expected_accepted_tokens(0.8, 0)
    0.0
    """
    return c.expected_accepted_tokens(real(acceptance_rate, "acceptance_rate"), real(depth, "depth"))


def acceptance_rate_from_counts(accepted_tokens: float, steps: float, depth: float) -> float:
    r"""
    Return the acceptance rate that explains a decoder's counters.

    .. math::

        \alpha \text{ with } \alpha \cdot \frac{1 - \alpha^{\mathrm{depth}}}{1 - \alpha} =
        \frac{\mathrm{accepted\_tokens}}{\mathrm{steps}}

    The rate is the chance that a draft token is accepted when all before it were. It is what the formulas of [1]_ take,
    and no counter shows it: accepted over drafted tokens counts also those that were never looked at.

    Parameters
    ----------
    accepted_tokens : float
        Draft tokens accepted over all steps [tokens].
    steps : float
        Speculative steps; drafted tokens over ``depth`` if each had a full draft [count].
    depth : float
        Draft tokens proposed in each step [tokens].

    Returns
    -------
    float
        Acceptance rate, from 0 to 1 [ratio].

    See Also
    --------
    expected_accepted_tokens : The equation's left side.
    break_even_acceptance : The rate to compare it with.
    best_speculation_depth : The depth to choose at this rate.

    Notes
    -----
    **Domain:** ``accepted_tokens`` from 0 to ``steps * depth``, ``steps`` and ``depth`` above 0.

    **Guard:** ``steps <= 0`` and a mean ``accepted_tokens / steps <= 0`` give 0.0; otherwise a mean of ``depth`` or
    more gives 1.0.

    **Special values:** NaN in any argument gives NaN, unless a guard applies; an infinite depth gives the mean over 1
    more than the mean.

    **Error:** 4 ULP for a ``depth`` of 1 or more (the sum is computed as in ``expected_accepted_tokens``, and the
    rate's relative error is at most the mean's). At a depth of 1 the rate is the mean, rounded once.

    The equation is solved by bisection, in about 55 halvings for a mean that is not small, and in at most 1128 for any
    doubles. Close to 1 many means share a rate, so the mean that comes back from it may differ by ``(depth + 1) / 2``
    times the rate's rounding.

    References
    ----------
    .. [1] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, definition 3.1 and equation 1; the counters are those of ggml-org/llama.cpp#3649.

    Examples
    --------
    A log says 208 of 260 drafted tokens were accepted, five a step. That is not a rate of 0.8:

    >>> from kvformulas.speculation_analysis import acceptance_rate_from_counts, expected_accepted_tokens
    >>> round(acceptance_rate_from_counts(208, 260 / 5, 5), 3)
    0.927

    It leads back to the counters' four tokens a step:

    >>> round(expected_accepted_tokens(acceptance_rate_from_counts(208, 52, 5), 5), 12)
    4.0

    With one draft token a step there is nothing to tell apart:

    >>> acceptance_rate_from_counts(3, 4, 1)
    0.75
    """
    return c.acceptance_rate_from_counts(
        real(accepted_tokens, "accepted_tokens"), real(steps, "steps"), real(depth, "depth")
    )


def speculative_walltime_speedup(acceptance_rate: float, depth: float, cost_ratio: float) -> float:
    r"""
    Return how many times faster speculation is than decoding token by token.

    .. math::

        \frac{1 - \mathrm{acceptance\_rate}^{\mathrm{depth} + 1}}
        {(1 - \mathrm{acceptance\_rate}) \cdot (\mathrm{depth} \cdot \mathrm{cost\_ratio} + 1)}

    A step yields the expected tokens and costs one pass of the target model and ``depth`` passes of the draft model;
    plain decoding yields one token for one pass [1]_.

    Parameters
    ----------
    acceptance_rate : float
        Share of draft tokens that the target model accepts when it comes to them [ratio].
    depth : float
        Draft tokens proposed in each step [tokens].
    cost_ratio : float
        Time of a draft pass over the time of a target pass, the c of the literature [ratio].

    Returns
    -------
    float
        Speed relative to plain decoding; below 1, speculation is a loss [ratio].

    See Also
    --------
    break_even_acceptance : The rate at which it is 1.
    best_speculation_depth : The depth at which it is greatest.
    kvformulas.speculative_decoding.draft_model_speedup : The same from latencies and expected tokens.

    Notes
    -----
    **Domain:** ``acceptance_rate`` in 0 to 1, ``depth`` and ``cost_ratio`` at least 0.

    **Guard:** ``depth * cost_ratio + 1 <= 0`` gives 1.0: no speedup. At ``acceptance_rate >= 1`` the yield is
    ``depth + 1``, at ``acceptance_rate <= 0`` it is 1.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; a depth of infinity gives 0 at a
    positive cost, unless the rate is 1, and NaN at a cost of 0.

    **Error:** 4 ULP (at a whole depth four roundings, and 1 ULP each for the library's logarithm and expm1).

    The theorem assumes that verifying ``depth + 1`` tokens takes as long as decoding one, which holds while the target
    model is bound by memory bandwidth, at small batches. It needs a cost below the rate to promise any gain.

    References
    ----------
    .. [1] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, theorem 3.8.

    Examples
    --------
    A draft model at a ninth of the cost that is right 44 percent of the time gains 14 percent:

    >>> from kvformulas.speculation_analysis import speculative_walltime_speedup
    >>> round(speculative_walltime_speedup(0.44, 5, 0.11), 3)
    1.144

    Even a draft that is always right gains at most 1 / cost:

    >>> [round(speculative_walltime_speedup(1, depth, 0.5), 3) for depth in (1, 2, 4)]
    [1.333, 1.5, 1.667]
    """
    return c.speculative_walltime_speedup(
        real(acceptance_rate, "acceptance_rate"), real(depth, "depth"), real(cost_ratio, "cost_ratio")
    )


def speculative_operations_factor(acceptance_rate: float, depth: float, operation_ratio: float) -> float:
    r"""
    Return how many times the arithmetic of plain decoding speculation costs.

    .. math::

        \frac{(1 - \mathrm{acceptance\_rate}) \cdot
        (\mathrm{depth} \cdot \mathrm{operation\_ratio} + \mathrm{depth} + 1)}
        {1 - \mathrm{acceptance\_rate}^{\mathrm{depth} + 1}}

    A step drafts ``depth`` tokens and verifies ``depth + 1``, and what is rejected was computed in vain [1]_.
    Speculation buys latency with arithmetic: this is the price, in operations for each token.

    Parameters
    ----------
    acceptance_rate : float
        Share of draft tokens that the target model accepts when it comes to them [ratio].
    depth : float
        Draft tokens proposed in each step [tokens].
    operation_ratio : float
        Operations of a draft pass over those of a target pass, both for one token, the c-hat of the literature [ratio].

    Returns
    -------
    float
        Operations for each token relative to plain decoding, at least 1 [ratio].

    See Also
    --------
    speculative_walltime_speedup : What the operations buy.
    kvformulas.speculative_decoding.speculative_expected_tokens : The yield by which the operations are divided.

    Notes
    -----
    **Domain:** ``acceptance_rate`` in 0 to 1, ``depth`` and ``operation_ratio`` at least 0.

    **Guard:** ``depth <= -1`` gives 1.0. At ``acceptance_rate >= 1`` the yield is ``depth + 1``, at
    ``acceptance_rate <= 0`` it is 1.

    **Special values:** NaN in any argument gives NaN, unless the guard applies; a depth of infinity gives infinity,
    unless the rate is 1, which gives NaN.

    **Error:** 4 ULP (at a whole depth four roundings, and 1 ULP each for the library's logarithm and expm1).

    Where the batch is so large that arithmetic, not bandwidth, bounds a pass, this factor is a slowdown.

    References
    ----------
    .. [1] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, theorem 3.11.

    Examples
    --------
    At a rate of 0.8 and depth 5, a draft model of a tenth of the size makes each token 1.76 times as costly:

    >>> from kvformulas.speculation_analysis import speculative_operations_factor
    >>> round(speculative_operations_factor(0.8, 5, 0.1), 2)
    1.76

    A draft that is always right and costs nothing wastes nothing:

    >>> speculative_operations_factor(1, 5, 0)
    1.0
    """
    return c.speculative_operations_factor(
        real(acceptance_rate, "acceptance_rate"), real(depth, "depth"), real(operation_ratio, "operation_ratio")
    )


def break_even_acceptance(depth: float, cost_ratio: float) -> float:
    r"""
    Return the acceptance rate at which speculation neither gains nor loses.

    .. math::

        \alpha \text{ with }
        \frac{1 - \alpha^{\mathrm{depth} + 1}}{(1 - \alpha) \cdot (\mathrm{depth} \cdot \mathrm{cost\_ratio} + 1)} = 1

    The speedup of [1]_ is 1 where the accepted tokens of a step just pay for its draft passes.

    Parameters
    ----------
    depth : float
        Draft tokens proposed in each step [tokens].
    cost_ratio : float
        Time of a draft pass over the time of a target pass [ratio].

    Returns
    -------
    float
        Acceptance rate to exceed, from 0 to 1 [ratio].

    See Also
    --------
    speculative_walltime_speedup : The speedup that is 1 at this rate.
    acceptance_rate_from_counts : The rate of a running decoder, to compare.

    Notes
    -----
    **Domain:** ``depth`` above 0, ``cost_ratio`` in 0 to 1.

    **Guard:** ``cost_ratio >= 1`` gives 1.0: no rate pays. Otherwise ``depth <= 0`` or ``cost_ratio <= 0`` gives 0.0:
    every rate does.

    **Special values:** NaN in any argument gives NaN, unless a guard applies; an infinite depth gives 1.0.

    **Error:** 4 ULP for a ``depth`` of 1 or more (as ``acceptance_rate_from_counts``, whose mean is ``depth *
    cost_ratio`` here). At a depth of 1 the rate is ``cost_ratio``, exactly.

    It is ``acceptance_rate_from_counts(depth * cost_ratio, 1, depth)``: bisection, in about 55 halvings for a
    cost that is not small and in at most 1128 ever.

    References
    ----------
    .. [1] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, theorem 3.8.

    Examples
    --------
    Two draft tokens at 0.375 of a pass each must yield 0.75 tokens, a half and a quarter:

    >>> from kvformulas.speculation_analysis import break_even_acceptance, speculative_walltime_speedup
    >>> break_even_acceptance(2, 0.375)
    0.5

    The deeper the draft, the more often it must be right:

    >>> [round(break_even_acceptance(depth, 0.25), 3) for depth in (1, 2, 4, 8)]
    [0.25, 0.366, 0.519, 0.677]
    >>> round(speculative_walltime_speedup(break_even_acceptance(8, 0.25), 8, 0.25), 12)
    1.0
    """
    return c.break_even_acceptance(real(depth, "depth"), real(cost_ratio, "cost_ratio"))


def best_speculation_depth(acceptance_rate: float, cost_ratio: float, max_depth: float) -> float:
    r"""
    Return the draft length with the greatest speedup.

    .. math::

        \gamma \le \mathrm{max\_depth} \text{ with the greatest }
        \frac{1 - \mathrm{acceptance\_rate}^{\gamma + 1}}
        {(1 - \mathrm{acceptance\_rate}) \cdot (\gamma \cdot \mathrm{cost\_ratio} + 1)}

    Each further draft token costs the same and is accepted less often than the one before it, so the speedup of [1]_
    rises to one depth and falls from there.

    Parameters
    ----------
    acceptance_rate : float
        Share of draft tokens that the target model accepts when it comes to them [ratio].
    cost_ratio : float
        Time of a draft pass over the time of a target pass [ratio].
    max_depth : float
        Longest draft that the engine allows [tokens].

    Returns
    -------
    float
        Whole number of draft tokens, 0 where speculation doesn't pay [tokens].

    See Also
    --------
    speculative_walltime_speedup : The speedup at that depth.
    acceptance_rate_from_counts : The rate, from a decoder's counters.

    Notes
    -----
    **Domain:** ``acceptance_rate`` and ``cost_ratio`` in 0 to 1, ``max_depth`` in 0 to 2**53.

    **Guard:** ``max_depth < 1``, ``acceptance_rate <= 0``, ``cost_ratio >= 1`` or ``acceptance_rate <= cost_ratio``
    gives 0.0. Otherwise ``acceptance_rate >= 1`` or ``cost_ratio <= 0`` gives ``max_depth`` without its fraction: there
    every token pays.

    **Special values:** NaN in any argument gives NaN, unless the first guard applies; an infinite ``max_depth`` is no
    bound.

    **Error:** none (a whole number). Where two neighbouring depths differ in speedup by less than 8 ULP of it, either
    may be the answer; of equal ones the smaller is.

    One more token pays while ``alpha ** (depth + 1) * (depth * cost_ratio + 1)`` exceeds ``cost_ratio`` times the
    expected tokens, and never again once it doesn't: the depth at which it stops is found by bisection, in as many
    halvings as ``max_depth`` has bits and in at most 63 for any doubles. With the rate that close to 1 that such depths
    matter, half an ULP of the rate moves the best depth by more than the arithmetic does.

    References
    ----------
    .. [1] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, theorem 3.8 and section 3.5.

    Examples
    --------
    The better the draft, the longer it should be:

    >>> from kvformulas.speculation_analysis import best_speculation_depth
    >>> [best_speculation_depth(rate, 0.05, 16) for rate in (0.5, 0.7, 0.9)]
    [3.0, 6.0, 13.0]

    A draft model that costs more than it is right is best left out:

    >>> best_speculation_depth(0.4, 0.5, 16)
    0.0
    """
    return c.best_speculation_depth(
        real(acceptance_rate, "acceptance_rate"), real(cost_ratio, "cost_ratio"), real(max_depth, "max_depth")
    )


def residual_weight(target_prob: float, draft_prob: float) -> float:
    r"""
    Return the weight of a token in the distribution that replaces a rejected one.

    .. math::

        \max(0, \mathrm{target\_prob} - \mathrm{draft\_prob})

    When a draft token is rejected, the next one is drawn from what the target model has beyond the draft model's, token
    by token and normalised. Together with the acceptance rule that samples exactly from the target [1]_ [2]_.

    Parameters
    ----------
    target_prob : float
        Probability that the target model gives the token [probability].
    draft_prob : float
        Probability that the draft model gives the token [probability].

    Returns
    -------
    float
        Weight before normalisation [probability].

    See Also
    --------
    kvformulas.speculative_decoding.speculative_accept_prob : The rule by which the draft's token is kept.

    Notes
    -----
    **Domain:** both probabilities in 0 to 1.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; infinity minus infinity is NaN.

    **Error:** 0.5 ULP (one rounding; where the two are within a factor of 2 of each other, exact).

    The weights of all tokens sum to the chance of a rejection. If they are all 0, the distributions are the same and no
    token was rejected.

    References
    ----------
    .. [1] Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding",
       ICML 2023, algorithm 1.
    .. [2] C. Chen et al., "Accelerating Large Language Model Decoding with Speculative Sampling", 2023,
       arXiv:2302.01318, equation 2.

    Examples
    --------
    A token that the target likes better than the draft does, and one that it likes less:

    >>> from kvformulas.speculation_analysis import residual_weight
    >>> residual_weight(0.75, 0.25)
    0.5
    >>> residual_weight(0.25, 0.75)
    0.0

    Over two tokens the weights normalise to the first alone:

    >>> weights = [residual_weight(p, q) for p, q in [(0.6, 0.2), (0.4, 0.8)]]
    >>> [weight / sum(weights) for weight in weights]
    [1.0, 0.0]
    """
    return c.residual_weight(real(target_prob, "target_prob"), real(draft_prob, "draft_prob"))


def medusa_typical_threshold(epsilon: float, delta: float, entropy: float) -> float:
    r"""
    Return the probability above which typical acceptance takes a token.

    .. math::

        \min(\mathrm{epsilon}, \mathrm{delta} \cdot e^{-\mathrm{entropy}})

    Medusa's alternative to the rule of speculative sampling keeps a draft token if the target model finds it likely
    enough: above a fixed threshold, or above a lower one where the target is undecided [1]_.

    Parameters
    ----------
    epsilon : float
        Hard threshold [probability].
    delta : float
        Threshold at an entropy of 0, in the paper the root of ``epsilon`` [probability].
    entropy : float
        Entropy of the target model's distribution [nats].

    Returns
    -------
    float
        Threshold for the target model's probability of the token [probability].

    See Also
    --------
    kvformulas.sampling_rules.eta_cutoff : The sampling rule that it is taken from, with the root as ``delta``.
    kvformulas.speculative_decoding.medusa_head_acceptance : The rule that keeps the target's distribution.

    Notes
    -----
    **Domain:** ``epsilon`` and ``delta`` in 0 to 1, ``entropy`` at least 0.

    **Guard:** none.

    **Special values:** NaN in any argument gives NaN; an infinite entropy gives a threshold of 0.

    **Error:** 1.5 ULP (1 ULP for the library's exponential, and one rounding; the minimum is exact).

    The output no longer follows the target's distribution; at temperature 0 it does not matter. The first token of a
    step is always taken, so that each step yields one at least.

    References
    ----------
    .. [1] T. Cai et al., "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads",
       ICML 2024, typical acceptance.

    Examples
    --------
    With the thresholds of Medusa's code, an undecided model takes what a decided one would not:

    >>> from kvformulas.speculation_analysis import medusa_typical_threshold
    >>> medusa_typical_threshold(0.09, 0.3, 0)
    0.09
    >>> round(medusa_typical_threshold(0.09, 0.3, 3), 4)
    0.0149
    """
    return c.medusa_typical_threshold(real(epsilon, "epsilon"), real(delta, "delta"), real(entropy, "entropy"))
