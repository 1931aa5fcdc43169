# Sampling as decisions: does this token pass, and does generation stop? By another route: inequalities rearranged.
from reference import llm_sampling


def temperature_logit_scale(logit, temperature):
    return logit * (1 / temperature) if temperature > 0 else 1_000_000_000 * logit


def top_k_accept(rank, k):
    return int(k >= rank)


def top_p_cumulative_accept(cumulative_prob, _, p):
    return int(p > cumulative_prob)


def min_p_accept(token_prob, max_prob, min_p):
    return int(token_prob - max_prob * min_p >= 0)


def repetition_penalty_logit(logit, penalty, was_generated):
    return llm_sampling.repetition_penalty_scale(logit, penalty, was_generated if was_generated >= 0.5 else 0)


def frequency_penalty_logit(logit, penalty, token_count):
    return -(penalty * token_count - logit)


def presence_penalty_logit(logit, penalty, is_present):
    return logit if is_present < 0.5 else logit - penalty


def typical_sampling_accept(token_log_prob, entropy, tau):
    return int(-tau <= token_log_prob + entropy and token_log_prob + entropy <= tau)


def eta_sampling_accept(token_prob, entropy, eta):
    return int(token_prob * (entropy / 2).exp() >= eta)


def eos_stop_score(eos_prob, eos_threshold):
    return int(eos_threshold <= eos_prob)
