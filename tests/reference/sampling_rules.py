# Sampling, search and watermark rules as their papers have them, by another route.
from flint import ctx

from reference.exact import whole_part

_TO_CANCEL = 64


def eta_cutoff(epsilon, entropy):
    if epsilon <= 0:
        return 0
    # sqrt(epsilon) * exp(-H) is the smaller one where exp(-H) is below sqrt(epsilon).
    root = epsilon.sqrt()
    return epsilon if 1 / entropy.exp() > root else root / entropy.exp()


def epsilon_sampling_accept(token_prob, epsilon):
    return 0 if token_prob < epsilon else 1


def length_normalized_score(log_prob_sum, length, alpha):
    return log_prob_sum * length**-alpha if length > 0 else log_prob_sum


def contrastive_plausible_accept(expert_prob, max_expert_prob, alpha):
    return 0 if max_expert_prob * alpha > expert_prob else 1


def watermark_green_list_size(vocab_size, gamma):
    return whole_part(vocab_size * gamma)


def watermark_z_score(green_count, token_count, gamma):
    # The variance of that many Bernoulli trials, and how many of its roots the excess is.
    variance = token_count * (gamma - gamma * gamma)
    return (green_count - token_count * gamma) * variance.rsqrt() if variance > 0 else 0


def top_n_sigma_accept(logit, max_logit, sigma, n):
    return 0 if sigma * n < max_logit - logit else 1


def dynamic_temperature(entropy, max_entropy, min_temperature, max_temperature, exponent):
    if entropy <= 0 or max_entropy <= 0:
        return min_temperature
    with ctx.extraprec(_TO_CANCEL):
        logarithm = -exponent * (max_entropy / entropy).log()
        if logarithm > 0:
            return min_temperature + logarithm.exp() * (max_temperature - min_temperature)
        # A share of the maximum and the rest of the minimum, of which nothing is lost where the share is next to 1.
        return max_temperature * logarithm.exp() - min_temperature * logarithm.expm1()


def gumbel_max_score(logit, uniform):
    with ctx.extraprec(_TO_CANCEL):
        return logit - (1 / uniform).log().log()


def mirostat_mu_update(mu, learning_rate, surprise, target_surprise):
    return mu + learning_rate * target_surprise - learning_rate * surprise
