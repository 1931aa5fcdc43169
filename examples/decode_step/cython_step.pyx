# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
# distutils: language = c++
# distutils: extra_compile_args = -O2 -ffp-contract=off
"""One step in Cython, on the kernels, without the GIL."""
from libc.math cimport exp
from libcpp cimport bool
from libcpp.algorithm cimport partial_sort
from libcpp.vector cimport vector

from kvformulas cimport (
    min_p_threshold,
    repetition_penalty_scale,
    temperature_scale,
    token_frequency_penalty,
    top_p_cumulative,
)

cdef struct Candidate:
    double logit
    int token


cdef bool comes_first(const Candidate &a, const Candidate &b) noexcept nogil:
    return a.logit > b.logit or (a.logit == b.logit and a.token < b.token)


def step(const double[::1] logits not None, const double[::1] counts not None, settings, double draw):
    """Return the token drawn, the tokens kept, likeliest first, and their probabilities in the top-k slice."""
    cdef double temperature, repetition, frequency, presence, min_p, top_p, threshold
    cdef double total = 0.0, mass = 0.0, cumulative = 0.0
    cdef Py_ssize_t k, i, kept = 0, drawn = 0
    cdef vector[Candidate] candidates
    cdef vector[double] probabilities
    temperature, repetition, frequency, presence, k, min_p, top_p = settings
    if logits.shape[0] != counts.shape[0] or not 1 <= k <= logits.shape[0]:
        raise ValueError("a count for each logit, and top_k at most that many, please")
    with nogil:
        candidates.resize(logits.shape[0])
        for i in range(logits.shape[0]):
            candidates[i].token = i
            candidates[i].logit = temperature_scale(
                token_frequency_penalty(
                    repetition_penalty_scale(logits[i], repetition, counts[i]), counts[i], frequency, presence
                ),
                temperature,
            )
        partial_sort(candidates.begin(), candidates.begin() + k, candidates.end(), &comes_first)

        probabilities.resize(k)
        for i in range(k):
            probabilities[i] = exp(candidates[i].logit - candidates[0].logit)
            total += probabilities[i]
        for i in range(k):
            probabilities[i] /= total

        threshold = min_p_threshold(probabilities[0], min_p)
        while kept < k and probabilities[kept] >= threshold:
            if top_p < 1.0 and top_p_cumulative(probabilities[kept], mass, top_p) == 0.0:
                break
            mass += probabilities[kept]
            kept += 1

        for drawn in range(kept):
            cumulative += probabilities[drawn]
            if cumulative > draw * mass:
                break
    return candidates[drawn].token, [candidates[i].token for i in range(kept)], [probabilities[i] for i in range(kept)]
