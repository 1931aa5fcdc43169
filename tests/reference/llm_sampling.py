# Sampling as scores and thresholds: temperature, top-k, top-p, min-p, penalties, typicality, beams, by another route.


def temperature_scale(logit, temperature):
    return logit * (1 / temperature) if temperature > 0 else 1_000_000_000 * logit


def top_k_threshold(k_th_logit):
    return k_th_logit


def top_p_cumulative(_, cumulative_so_far, p):
    return int(p > cumulative_so_far)


def min_p_threshold(max_prob, min_p):
    return min_p * max_prob


def repetition_penalty_scale(logit, penalty, token_appeared):
    if token_appeared > 0 and penalty > 0:
        return logit * (1 / penalty if logit > 0 else penalty)
    return logit


def token_frequency_penalty(logit, token_count, frequency_penalty, presence_penalty):
    if token_count > 0:
        return logit - (presence_penalty + frequency_penalty * token_count)
    return logit - frequency_penalty * token_count


def beam_score_update(*scores):
    return sum(scores)


def length_penalty(log_prob_sum, length, alpha):
    return log_prob_sum * (6 / (length + 5)) ** alpha if length > -5 else log_prob_sum


def pow_approx(base, exponent):
    return base**exponent if base > 0 else 1


def typical_p_score(token_log_prob, entropy):
    gap = token_log_prob + entropy
    return gap if gap > 0 else -gap


def greedy_token_id(max_logit, current_logit, current_id):
    return -1 if max_logit > current_logit else current_id
