# cython: cdivision=True
# Sampling, search and watermark rules as their papers have them.
from libc.math cimport exp, fma, log, sqrt, trunc

from kvformulas.kernels.rules cimport minimum, power, power_of_rounded, quotient_error


cdef inline double eta_cutoff(double epsilon, double entropy) noexcept nogil:
    if epsilon <= 0.0:
        return 0.0
    return minimum(epsilon, sqrt(epsilon) * exp(-entropy))


cdef inline double epsilon_sampling_accept(double token_prob, double epsilon) noexcept nogil:
    return 1.0 if token_prob >= epsilon else 0.0


cdef inline double length_normalized_score(double log_prob_sum, double length, double alpha) noexcept nogil:
    if length <= 0.0:
        return log_prob_sum
    return log_prob_sum / power(length, alpha)


cdef inline double contrastive_plausible_accept(
    double expert_prob, double max_expert_prob, double alpha
) noexcept nogil:
    return 1.0 if expert_prob >= alpha * max_expert_prob else 0.0


cdef inline double watermark_green_list_size(double vocab_size, double gamma) noexcept nogil:
    return trunc(gamma * vocab_size)


cdef inline double watermark_z_score(double green_count, double token_count, double gamma) noexcept nogil:
    cdef double variance = token_count * gamma * (1.0 - gamma)
    if variance <= 0.0:
        return 0.0
    # Fused, the excess is rounded once: a count near the expected one leaves no error behind.
    return fma(-gamma, token_count, green_count) / sqrt(variance)


cdef inline double top_n_sigma_accept(double logit, double max_logit, double sigma, double n) noexcept nogil:
    return 1.0 if logit >= fma(-n, sigma, max_logit) else 0.0


cdef inline double dynamic_temperature(
    double entropy, double max_entropy, double min_temperature, double max_temperature, double exponent
) noexcept nogil:
    cdef double ratio = entropy / max_entropy
    cdef double share
    if entropy <= 0.0 or max_entropy <= 0.0:
        return min_temperature
    share = power_of_rounded(ratio, quotient_error(entropy, max_entropy, ratio), exponent)
    return min_temperature + (max_temperature - min_temperature) * share


cdef inline double gumbel_max_score(double logit, double uniform) noexcept nogil:
    return logit - log(-log(uniform))


cdef inline double mirostat_mu_update(
    double mu, double learning_rate, double surprise, double target_surprise
) noexcept nogil:
    return fma(-learning_rate, surprise - target_surprise, mu)
