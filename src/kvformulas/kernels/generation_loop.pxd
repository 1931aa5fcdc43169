# cython: cdivision=True
# Sampling as decisions: does this token pass, and does generation stop? Gates return 1.0 (accept) or 0.0 (reject).
from libc.math cimport NAN, exp, isnan

from kvformulas.kernels.llm_sampling cimport min_p_threshold, temperature_scale, typical_p_score


cdef inline double temperature_logit_scale(double logit, double temperature) noexcept nogil:
    return temperature_scale(logit, temperature)


cdef inline double top_k_accept(double rank, double k) noexcept nogil:
    return 1.0 if rank <= k else 0.0


cdef inline double top_p_cumulative_accept(double cumulative_prob, double token_prob, double p) noexcept nogil:
    return 1.0 if cumulative_prob < p else 0.0


cdef inline double min_p_accept(double token_prob, double max_prob, double min_p) noexcept nogil:
    return 1.0 if token_prob >= min_p_threshold(max_prob, min_p) else 0.0


cdef inline double repetition_penalty_logit(double logit, double penalty, double was_generated) noexcept nogil:
    if was_generated < 0.5:
        return logit
    if penalty <= 0.0:
        return logit
    if isnan(was_generated):
        return NAN
    return logit / penalty if logit > 0.0 else logit * penalty


cdef inline double frequency_penalty_logit(double logit, double penalty, double token_count) noexcept nogil:
    return logit - penalty * token_count


cdef inline double presence_penalty_logit(double logit, double penalty, double is_present) noexcept nogil:
    if isnan(penalty):
        return NAN
    if isnan(is_present):
        return NAN
    return logit - penalty if is_present >= 0.5 else logit


cdef inline double typical_sampling_accept(double token_log_prob, double entropy, double tau) noexcept nogil:
    return 1.0 if typical_p_score(token_log_prob, entropy) <= tau else 0.0


cdef inline double eta_sampling_accept(double token_prob, double entropy, double eta) noexcept nogil:
    return 1.0 if token_prob >= eta * exp(-0.5 * entropy) else 0.0


cdef inline double eos_stop_score(double eos_prob, double eos_threshold) noexcept nogil:
    return 1.0 if eos_prob >= eos_threshold else 0.0
