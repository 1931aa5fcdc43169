# cython: cdivision=True
# Sampling as scores and thresholds: temperature, top-k, top-p, min-p, penalties, typicality, beam search, greedy.
from libc.math cimport NAN, fabs, fma, isnan

from kvformulas.kernels.rules cimport power, power_of_rounded


cdef inline double temperature_scale(double logit, double temperature) noexcept nogil:
    if temperature <= 0.0:
        return logit * 1e9
    return logit / temperature


cdef inline double top_k_threshold(double k_th_logit) noexcept nogil:
    return k_th_logit


cdef inline double top_p_cumulative(double sorted_prob, double cumulative_so_far, double p) noexcept nogil:
    return 1.0 if cumulative_so_far < p else 0.0


cdef inline double min_p_threshold(double max_prob, double min_p) noexcept nogil:
    return max_prob * min_p


cdef inline double repetition_penalty_scale(double logit, double penalty, double token_appeared) noexcept nogil:
    if token_appeared <= 0.0:
        return logit
    if penalty <= 0.0:
        return logit
    if isnan(token_appeared):
        return NAN
    return logit / penalty if logit > 0.0 else logit * penalty


cdef inline double token_frequency_penalty(
    double logit, double token_count, double frequency_penalty, double presence_penalty
) noexcept nogil:
    if isnan(presence_penalty):
        return NAN
    return logit - token_count * frequency_penalty - (presence_penalty if token_count > 0.0 else 0.0)


cdef inline double beam_score_update(double current_score, double next_log_prob) noexcept nogil:
    return current_score + next_log_prob


cdef inline double length_penalty(double log_prob_sum, double length, double alpha) noexcept nogil:
    cdef double padded = 5.0 + length
    cdef double base = padded / 6.0
    cdef double added, lost
    if base <= 0.0:
        return log_prob_sum
    # What the sum 5 + length lost in rounding (Knuth's two-sum), for the power to take out.
    added = padded - 5.0
    lost = (5.0 - (padded - added)) + (length - added)
    return log_prob_sum / power_of_rounded(base, (fma(-6.0, base, padded) + lost) / padded, alpha)


cdef inline double pow_approx(double base, double exponent) noexcept nogil:
    if base <= 0.0:
        return 1.0
    return power(base, exponent)


cdef inline double typical_p_score(double token_log_prob, double entropy) noexcept nogil:
    return fabs(token_log_prob + entropy)


cdef inline double greedy_token_id(double max_logit, double current_logit, double current_id) noexcept nogil:
    if isnan(max_logit):
        return NAN
    if isnan(current_logit):
        return NAN
    if isnan(current_id):
        return NAN
    return current_id if current_logit >= max_logit else -1.0
