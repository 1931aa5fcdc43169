# cython: cdivision=True
# Draft-then-verify decoding, grammar-constrained decoding, structured repair, contrast, healing and watermarks.
from libc.math cimport INFINITY, NAN, expm1, fabs, isinf, isnan, log, trunc

from kvformulas.kernels.rules cimport at_most_one, power


cdef inline double speculative_accept_prob(double target_prob, double draft_prob) noexcept nogil:
    if draft_prob <= 0.0:
        return 1.0
    return at_most_one(target_prob / draft_prob)


cdef inline double speculative_expected_tokens(double acceptance_rate, double speculation_depth) noexcept nogil:
    if acceptance_rate >= 1.0:
        return speculation_depth + 1.0
    if acceptance_rate <= 0.0:
        return 1.0
    # 1 - alpha**(gamma + 1) loses every digit as alpha nears 1; expm1 keeps them.
    return -expm1((speculation_depth + 1.0) * log(acceptance_rate)) / (1.0 - acceptance_rate)


cdef inline double draft_model_speedup(
    double expected_tokens, double target_latency_ms, double draft_latency_ms, double speculation_depth
) noexcept nogil:
    cdef double total_ms = target_latency_ms + draft_latency_ms * speculation_depth
    if total_ms <= 0.0:
        return 1.0
    return expected_tokens * target_latency_ms / total_ms


cdef inline double medusa_head_acceptance(double medusa_prob, double target_prob, double head_id) noexcept nogil:
    return speculative_accept_prob(target_prob, medusa_prob)


cdef inline double json_grammar_logit_mask(double token_id, double is_valid_next) noexcept nogil:
    if isnan(is_valid_next):
        return NAN
    return 0.0 if is_valid_next > 0.5 else -1e9


cdef inline double constrained_beam_score(
    double beam_log_prob, double grammar_valid, double length, double alpha
) noexcept nogil:
    if grammar_valid < 0.5:
        return -1e9
    if length <= 0.0:
        return beam_log_prob
    if isnan(grammar_valid):
        return NAN
    return beam_log_prob / power(length, alpha)


cdef inline double structured_repair_score(
    double output_validity, double repair_attempts, double max_repair_attempts
) noexcept nogil:
    cdef double left = max_repair_attempts - repair_attempts
    if max_repair_attempts <= 0.0:
        return output_validity
    if isinf(left):
        return output_validity * (1.0 - repair_attempts / max_repair_attempts)
    # The quotient last: whole numbers stay exact.
    if 1e-300 < fabs(output_validity * left) < INFINITY:
        return output_validity * left / max_repair_attempts
    return output_validity * (left / max_repair_attempts)


cdef inline double contrastive_decode_score(
    double expert_log_prob, double amateur_log_prob, double alpha
) noexcept nogil:
    return expert_log_prob - alpha * amateur_log_prob


cdef inline double token_healing_overlap(
    double prefix_last_token, double new_first_token, double overlap_chars
) noexcept nogil:
    return overlap_chars


cdef inline double watermark_green_list_bias(
    double token_id, double green_list_hash, double bias_strength
) noexcept nogil:
    cdef double code = trunc(token_id + green_list_hash)
    if isnan(token_id):
        return NAN
    if isnan(green_list_hash):
        return NAN
    if isnan(bias_strength):
        return NAN
    return bias_strength if code - 2.0 * trunc(0.5 * code) == 0.0 else 0.0
