# Sampling as scores and thresholds: temperature, top-k, top-p, min-p, penalties, typicality, beams: the definitions.
# ruff: noqa: ARG001  a definition takes the context and the contract's arguments, whether it reads them or not
from oracle.context import power, quotient, unknown


def temperature_scale(mp, logit, temperature):
    if temperature <= 0:
        return logit * 10**9
    return logit / temperature


def top_k_threshold(mp, k_th_logit):
    return k_th_logit


def top_p_cumulative(mp, sorted_prob, cumulative_so_far, p):
    return mp.one if cumulative_so_far < p else mp.zero


def min_p_threshold(mp, max_prob, min_p):
    return max_prob * min_p


def repetition_penalty_scale(mp, logit, penalty, token_appeared):
    if token_appeared <= 0 or penalty <= 0:
        return logit
    if unknown(token_appeared):
        return mp.nan
    return logit / penalty if logit > 0 else logit * penalty


def token_frequency_penalty(mp, logit, token_count, frequency_penalty, presence_penalty):
    if unknown(presence_penalty):
        return mp.nan
    presence = presence_penalty if token_count > 0 else mp.zero
    return logit - token_count * frequency_penalty - presence


def beam_score_update(mp, current_score, next_log_prob):
    return current_score + next_log_prob


def length_penalty(mp, log_prob_sum, length, alpha):
    base = (5 + length) / 6
    if base <= 0:
        return log_prob_sum
    return quotient(mp, log_prob_sum, power(mp, base, alpha))


def pow_approx(mp, base, exponent):
    if base <= 0:
        return mp.one
    return power(mp, base, exponent)


def typical_p_score(mp, token_log_prob, entropy):
    return abs(token_log_prob + entropy)


def greedy_token_id(mp, max_logit, current_logit, current_id):
    if unknown(max_logit, current_logit, current_id):
        return mp.nan
    return current_id if current_logit >= max_logit else mp.mpf(-1)


EXAMPLES = [
    (temperature_scale, (3, 2), 1.5),
    (temperature_scale, (3, 0), 3e9),
    (top_k_threshold, (-1.25,), -1.25),
    (top_p_cumulative, (0.1, 0.5, 0.9), 1),
    (top_p_cumulative, (0.1, 0.9, 0.9), 0),
    (min_p_threshold, (0.5, 0.125), 0.0625),
    (repetition_penalty_scale, (3, 1.5, 1), 2),
    (repetition_penalty_scale, (-3, 1.5, 1), -4.5),
    (repetition_penalty_scale, (3, 1.5, 0), 3),
    (repetition_penalty_scale, (3, 0, 1), 3),
    (token_frequency_penalty, (5, 3, 0.5, 0.25), 3.25),
    (token_frequency_penalty, (5, 0, 0.5, 0.25), 5),
    (beam_score_update, (-1.5, -0.25), -1.75),
    (length_penalty, (-6, 7, 1), -3),
    (length_penalty, (-6, 7, 2), -1.5),
    (length_penalty, (-6, -5, 2), -6),
    (pow_approx, (7, 1), 7),
    (pow_approx, (9, 0.5), 3),
    (pow_approx, (2, -1), 0.5),
    (pow_approx, (0, 3), 1),
    (typical_p_score, (-2, 1.5), 0.5),
    (greedy_token_id, (3, 3, 42), 42),
    (greedy_token_id, (3, 2, 42), -1),
]
