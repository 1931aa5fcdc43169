# Laws of sampling_rules: orders, bounds, symmetries, and where two rules are one.
import math

from hypothesis import assume
from hypothesis import strategies as st

import kvformulas as kv
from test_laws import ascending, close, finite, law, positive, power_of_two, probability, same, size

entropy = st.floats(0, 100)
whole = st.integers(-(2**40), 2**40)
share = st.integers(1, 63).map(lambda n: n / 64)


@law(epsilon=probability, entropy=ascending(entropy))
def test_eta_cutoff_is_antitone_in_entropy_and_at_most_epsilon(epsilon, entropy):
    low, high = (kv.eta_cutoff(epsilon, x) for x in reversed(entropy))
    assert 0 <= low <= high <= epsilon


@law(epsilon=st.floats(1e-300, 4), entropy=entropy)
def test_eta_cutoff_is_a_typical_threshold(epsilon, entropy):
    cutoff = kv.eta_cutoff(epsilon, entropy)
    assert same(cutoff, kv.medusa_typical_threshold(epsilon, math.sqrt(epsilon), entropy))


@law(epsilon=ascending(probability), entropy=entropy)
def test_eta_cutoff_is_monotone_in_epsilon(epsilon, entropy):
    assert kv.eta_cutoff(epsilon[0], entropy) <= kv.eta_cutoff(epsilon[1], entropy)


@law(prob=finite, epsilon=finite)
def test_epsilon_is_a_total_order(prob, epsilon):
    gate = kv.epsilon_sampling_accept
    assert gate(prob, epsilon) + gate(epsilon, prob) == 1 + (prob == epsilon)
    assert gate(prob, epsilon) == kv.eos_stop_score(prob, epsilon)


@law(prob=ascending(probability), epsilon=probability, entropy=entropy)
def test_what_epsilon_keeps_eta_keeps(prob, epsilon, entropy):
    assert kv.epsilon_sampling_accept(prob[0], epsilon) <= kv.epsilon_sampling_accept(prob[1], epsilon)
    cutoff = kv.eta_cutoff(epsilon, entropy)
    assert kv.epsilon_sampling_accept(prob[0], epsilon) <= kv.epsilon_sampling_accept(prob[0], cutoff)


@law(score=finite, length=st.floats(-4, 1e60), alpha=st.floats(-4, 4))
def test_length_normalization_is_the_constrained_beam_without_a_grammar(score, length, alpha):
    assert same(kv.length_normalized_score(score, length, alpha), kv.constrained_beam_score(score, 1, length, alpha))


@law(score=finite, length=positive, alpha=finite)
def test_length_1_and_alpha_0_leave_the_sum(score, length, alpha):
    assert kv.length_normalized_score(score, 1, alpha) == kv.length_normalized_score(score, length, 0) == score


@law(prob=finite, largest=finite, alpha=finite)
def test_plausibility_is_min_p(prob, largest, alpha):
    assert kv.contrastive_plausible_accept(prob, largest, alpha) == kv.min_p_accept(prob, largest, alpha)


@law(prob=ascending(probability), largest=probability, alpha=ascending(probability))
def test_plausibility_is_monotone_in_the_token_and_antitone_in_alpha(prob, largest, alpha):
    gate = kv.contrastive_plausible_accept
    assert gate(prob[0], largest, alpha[1]) <= gate(prob[0], largest, alpha[0]) <= gate(prob[1], largest, alpha[0])


@law(vocab=st.integers(0, 2**40), gamma=share)
def test_green_and_red_make_the_vocabulary(vocab, gamma):
    green, red = (kv.watermark_green_list_size(vocab, part) for part in (gamma, 1 - gamma))
    assert green + red == vocab - (vocab * gamma != int(vocab * gamma))


@law(vocab=ascending(st.floats(0, 1e60)), gamma=ascending(probability))
def test_the_green_list_is_whole_and_monotone(vocab, gamma):
    green = kv.watermark_green_list_size
    least = green(vocab[0], gamma[0])
    assert least == math.trunc(least)
    assert least <= vocab[0]
    assert least <= green(vocab[1], gamma[0]) <= green(vocab[1], gamma[1])


@law(tokens=size, gamma=share, data=st.data())
def test_what_is_green_for_one_is_red_for_the_other(tokens, gamma, data):
    green = data.draw(st.integers(0, tokens))
    score = kv.watermark_z_score(green, tokens, gamma)
    assert close(kv.watermark_z_score(tokens - green, tokens, 1 - gamma), -score, 1)


@law(green=st.floats(0, 1e60), tokens=positive, gamma=st.floats(0.001, 0.999))
def test_four_times_the_text_is_twice_the_evidence(green, tokens, gamma):
    assert kv.watermark_z_score(4 * green, 4 * tokens, gamma) == 2 * kv.watermark_z_score(green, tokens, gamma)


@law(green=ascending(st.floats(0, 1e60)), tokens=positive, gamma=st.floats(0.001, 0.999))
def test_evidence_is_monotone_in_green_tokens(green, tokens, gamma):
    assert kv.watermark_z_score(green[0], tokens, gamma) <= kv.watermark_z_score(green[1], tokens, gamma)


@law(logit=ascending(finite), largest=finite, sigma=st.floats(0, 1e60), n=ascending(st.floats(0, 1e60)))
def test_top_n_sigma_is_monotone(logit, largest, sigma, n):
    gate = kv.top_n_sigma_accept
    assert gate(logit[0], largest, sigma, n[0]) <= gate(logit[1], largest, sigma, n[0])
    assert gate(logit[0], largest, sigma, n[0]) <= gate(logit[0], largest, sigma, n[1])
    assert gate(largest, largest, sigma, n[0]) == 1


@law(logit=whole, largest=whole, sigma=st.integers(0, 1000), n=st.integers(0, 1000), shift=whole, factor=power_of_two)
def test_top_n_sigma_knows_no_shift_and_no_temperature(logit, largest, sigma, n, shift, factor):
    accepted = kv.top_n_sigma_accept(logit, largest, sigma, n)
    assert kv.top_n_sigma_accept(logit + shift, largest + shift, sigma, n) == accepted
    assert kv.top_n_sigma_accept(logit * factor, largest * factor, sigma * factor, n) == accepted


@law(most=positive, low=probability, high=st.floats(1, 4), exponent=st.floats(0, 10))
def test_dynamic_temperature_runs_from_the_minimum_to_the_maximum(most, low, high, exponent):
    temperature = kv.dynamic_temperature
    assert temperature(0, most, low, high, exponent) == low
    assert close(temperature(most, most, low, high, exponent), high, 2)


@law(entropy=ascending(st.floats(0, 10)), low=probability, high=st.floats(1, 4), exponent=st.floats(0, 10))
def test_dynamic_temperature_is_monotone_in_entropy(entropy, low, high, exponent):
    cold, hot = (kv.dynamic_temperature(x, 10, low, high, exponent) for x in entropy)
    assert cold <= hot or close(cold, hot, 4)


@law(entropy=positive, most=positive, low=probability, high=st.floats(1, 4), factor=power_of_two)
def test_dynamic_temperature_has_no_unit_of_entropy(entropy, most, low, high, factor):
    temperature = kv.dynamic_temperature(entropy, most, low, high, 1)
    assert kv.dynamic_temperature(entropy * factor, most * factor, low, high, 1) == temperature


@law(logit=ascending(st.floats(-100, 100)), uniform=ascending(st.floats(1e-300, 1, exclude_max=True)))
def test_gumbel_is_monotone_in_the_logit_and_in_the_number(logit, uniform):
    score = kv.gumbel_max_score
    assert score(logit[0], uniform[0]) <= score(logit[1], uniform[0])
    low, high = (score(logit[0], x) for x in uniform)
    assert low <= high or abs(low - high) <= 8 * 2.0**-52 * max(1, abs(logit[0]), abs(high))


@law(logit=st.floats(-20, 20), uniform=st.floats(1e-3, 0.999))
def test_the_noise_exponentiates_to_the_uniform_number(logit, uniform):
    noise = kv.gumbel_max_score(logit, uniform) - logit
    assert math.isclose(math.exp(-math.exp(-noise)), uniform, rel_tol=1e-12)


@law(weights=st.lists(st.floats(-3, 3), min_size=2, max_size=5), data=st.data())
def test_the_largest_score_is_the_first_of_exponential_arrivals(weights, data):
    numbers = data.draw(st.lists(st.floats(0.01, 0.99), min_size=len(weights), max_size=len(weights)))
    scores = [kv.gumbel_max_score(*pair) for pair in zip(weights, numbers, strict=True)]
    arrivals = [-math.log(u) / math.exp(x) for x, u in zip(weights, numbers, strict=True)]
    first, second = sorted(arrivals)[:2]
    assume(second > first * (1 + 1e-12))
    assert scores.index(max(scores)) == arrivals.index(first)


@law(mu=finite, rate=finite, surprise=finite)
def test_mirostat_rests_on_the_target(mu, rate, surprise):
    assert kv.mirostat_mu_update(mu, rate, surprise, surprise) == mu


@law(mu=st.floats(-1e60, 1e60), rate=st.floats(0, 1), surprise=ascending(st.floats(0, 1e60)), target=st.floats(0, 1e60))
def test_mirostat_is_antitone_in_surprise_and_odd(mu, rate, surprise, target):
    update = kv.mirostat_mu_update
    assert update(mu, rate, surprise[1], target) <= update(mu, rate, surprise[0], target)
    assert update(-mu, rate, target, surprise[0]) == -update(mu, rate, surprise[0], target)
