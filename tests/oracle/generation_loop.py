# Sampling as decisions: does this token pass, and does generation stop? The definitions; a gate is 1 or 0, and a
# comparison with NaN is false.
# ruff: noqa: ARG001  a definition takes the context and the contract's arguments, whether it reads them or not
from oracle.context import unknown


def _gate(mp, passes):
    return mp.one if passes else mp.zero


def temperature_logit_scale(mp, logit, temperature):
    if temperature <= 0:
        return logit * 10**9
    return logit / temperature


def top_k_accept(mp, rank, k):
    return _gate(mp, rank <= k)


def top_p_cumulative_accept(mp, cumulative_prob, token_prob, p):
    return _gate(mp, cumulative_prob < p)


def min_p_accept(mp, token_prob, max_prob, min_p):
    return _gate(mp, token_prob >= max_prob * min_p)


def repetition_penalty_logit(mp, logit, penalty, was_generated):
    if was_generated < 0.5 or penalty <= 0:
        return logit
    if unknown(was_generated):
        return mp.nan
    return logit / penalty if logit > 0 else logit * penalty


def frequency_penalty_logit(mp, logit, penalty, token_count):
    return logit - penalty * token_count


def presence_penalty_logit(mp, logit, penalty, is_present):
    if unknown(penalty, is_present):
        return mp.nan
    return logit - penalty if is_present >= 0.5 else logit


def typical_sampling_accept(mp, token_log_prob, entropy, tau):
    return _gate(mp, abs(-token_log_prob - entropy) <= tau)


def eta_sampling_accept(mp, token_prob, entropy, eta):
    return _gate(mp, token_prob >= eta * mp.exp(-entropy / 2))


def eos_stop_score(mp, eos_prob, eos_threshold):
    return _gate(mp, eos_prob >= eos_threshold)


EXAMPLES = [
    (temperature_logit_scale, (3, 2), 1.5),
    (temperature_logit_scale, (3, 0), 3e9),
    (top_k_accept, (40, 40), 1),
    (top_k_accept, (41, 40), 0),
    (top_p_cumulative_accept, (0.5, 0.95, 0.9), 1),
    (top_p_cumulative_accept, (0.95, 0.5, 0.9), 0),
    (min_p_accept, (0.0625, 0.5, 0.125), 1),
    (min_p_accept, (0.03125, 0.5, 0.125), 0),
    (repetition_penalty_logit, (3, 1.5, 1), 2),
    (repetition_penalty_logit, (-3, 1.5, 0.5), -4.5),
    (repetition_penalty_logit, (3, 1.5, 0.25), 3),
    (repetition_penalty_logit, (3, -1, 1), 3),
    (frequency_penalty_logit, (5, 0.5, 3), 3.5),
    (presence_penalty_logit, (5, 0.5, 1), 4.5),
    (presence_penalty_logit, (5, 0.5, 0), 5),
    (typical_sampling_accept, (-2, 1.5, 0.5), 1),
    (typical_sampling_accept, (-2, 1.5, 0.25), 0),
    (eta_sampling_accept, (0.25, 0, 0.25), 1),
    (eta_sampling_accept, (0.1, 2, 0.25), 1),
    (eta_sampling_accept, (0.09, 2, 0.25), 0),
    (eos_stop_score, (0.5, 0.5), 1),
    (eos_stop_score, (0.25, 0.5), 0),
]
