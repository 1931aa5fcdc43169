# Sampling, search and watermark rules as their papers have them: the definitions.
# ruff: noqa: ARG001  a definition takes the context and the contract's arguments, whether it reads them or not
from oracle.context import least, power, quotient, truncated


def eta_cutoff(mp, epsilon, entropy):
    if epsilon <= 0:
        return mp.zero
    return least(mp, epsilon, mp.sqrt(epsilon) * mp.exp(-entropy))


def epsilon_sampling_accept(mp, token_prob, epsilon):
    return mp.one if token_prob >= epsilon else mp.zero


def length_normalized_score(mp, log_prob_sum, length, alpha):
    if length <= 0:
        return log_prob_sum
    return quotient(mp, log_prob_sum, power(mp, length, alpha))


def contrastive_plausible_accept(mp, expert_prob, max_expert_prob, alpha):
    return mp.one if expert_prob >= alpha * max_expert_prob else mp.zero


def watermark_green_list_size(mp, vocab_size, gamma):
    return truncated(mp, gamma * vocab_size)


def watermark_z_score(mp, green_count, token_count, gamma):
    variance = token_count * gamma * (1 - gamma)
    if variance <= 0:
        return mp.zero
    return (green_count - gamma * token_count) / mp.sqrt(variance)


def top_n_sigma_accept(mp, logit, max_logit, sigma, n):
    return mp.one if logit >= max_logit - n * sigma else mp.zero


def dynamic_temperature(mp, entropy, max_entropy, min_temperature, max_temperature, exponent):
    if entropy <= 0 or max_entropy <= 0:
        return min_temperature
    ratio = entropy / max_entropy
    # An endless maximum leaves a ratio of 0, whose powers are IEEE 754's.
    share = power(mp, ratio, exponent) if ratio != 0 else power(mp, mp.inf, -exponent)
    return min_temperature + (max_temperature - min_temperature) * share


def gumbel_max_score(mp, logit, uniform):
    return logit - _log(mp, -_log(mp, uniform))


def _log(mp, x):
    """Return the logarithm, of a negative number NaN."""
    return mp.log(x) if x >= 0 else mp.nan


def mirostat_mu_update(mp, mu, learning_rate, surprise, target_surprise):
    return mu - learning_rate * (surprise - target_surprise)


EXAMPLES = [
    (eta_cutoff, (0.25, 0), 0.25),
    (eta_cutoff, (4, 0), 2),
    (eta_cutoff, (0, 1), 0),
    (epsilon_sampling_accept, (0.5, 0.5), 1),
    (epsilon_sampling_accept, (0.25, 0.5), 0),
    (length_normalized_score, (-6, 4, 0.5), -3),
    (length_normalized_score, (-6, 0, 0.5), -6),
    (contrastive_plausible_accept, (0.0625, 0.5, 0.125), 1),
    (contrastive_plausible_accept, (0.03125, 0.5, 0.125), 0),
    (watermark_green_list_size, (50257, 0.25), 12564),
    (watermark_z_score, (120, 200, 0.5), 2.8284271247461903),
    (watermark_z_score, (7, 16, 0.5), -0.5),
    (watermark_z_score, (7, 16, 1), 0),
    (top_n_sigma_accept, (3, 5, 2, 1), 1),
    (top_n_sigma_accept, (2.5, 5, 2, 1), 0),
    (dynamic_temperature, (1, 4, 0.5, 1.5, 0.5), 1),
    (dynamic_temperature, (0, 4, 0.5, 1.5, 0.5), 0.5),
    (dynamic_temperature, (1, 0, 0.5, 1.5, 0.5), 0.5),
    (gumbel_max_score, (2, 0.5), 2.3665129205816644),
    (gumbel_max_score, (-1, 0.75), 0.2458993237072382),
    (mirostat_mu_update, (10, 0.5, 4, 3), 9.5),
]
