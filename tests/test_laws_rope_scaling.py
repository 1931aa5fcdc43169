# Laws of rope_scaling: geometric rows, what a scaling leaves alone and what it slows by exactly its factor, inverses.
import math

from hypothesis import assume
from hypothesis import strategies as st

import kvformulas as kv
from test_laws import ascending, close, law, power_of_two, same

base = st.floats(1.5, 1e8)
head_dim = st.integers(2, 64).map(lambda n: 4 * n)
scale = st.floats(1, 1e6)
length = st.integers(2, 2**24)
turns = st.floats(1e-3, 1e4)


@law(base=base, dim=head_dim, pairs=st.tuples(st.integers(0, 64), st.integers(0, 64)))
def test_angles_are_a_geometric_row(base, dim, pairs):
    both = kv.rope_inverse_frequency(base, sum(pairs), dim)
    assert close(math.prod(kv.rope_inverse_frequency(base, pair, dim) for pair in pairs), both, 8)


@law(base=base, dim=head_dim, pair=ascending(st.floats(0, 256)))
def test_angles_fall_from_1_to_the_bases_inverse(base, dim, pair):
    fast, slow = (kv.rope_inverse_frequency(base, x, dim) for x in pair)
    assert slow <= fast * (1 + 2.0**-50)
    assert kv.rope_inverse_frequency(base, 0, dim) == 1
    assert close(kv.rope_inverse_frequency(base, dim / 2, dim), 1 / base, 3)


@law(base=base, alpha=scale, dim=head_dim)
def test_ntk_slows_the_last_pair_by_alpha(base, alpha, dim):
    last = dim / 2 - 1
    scaled = kv.rope_inverse_frequency(kv.ntk_rope_base(base, alpha, dim), last, dim)
    assert math.isclose(scaled * alpha, kv.rope_inverse_frequency(base, last, dim), rel_tol=1e-13)


@law(base=base, alpha=ascending(scale), dim=head_dim, factor=power_of_two)
def test_ntk_is_monotone_in_alpha_and_linear_in_the_base(base, alpha, dim, factor):
    low, high = (kv.ntk_rope_base(base, x, dim) for x in alpha)
    assert low <= high or close(low, high, 4)
    assert kv.ntk_rope_base(base * factor, alpha[0], dim) == low * factor
    assert kv.ntk_rope_base(base, 1, dim) == base


@law(base=base, factor=st.floats(1e-3, 1e3), seq=length, trained=length, dim=head_dim)
def test_dynamic_ntk_is_ntk_by_its_growth(base, factor, seq, trained, dim):
    scaled = kv.dynamic_ntk_rope_base(base, factor, seq, trained, dim)
    growth = 1 + factor * max(0, seq - trained) / trained
    assert math.isclose(scaled, kv.ntk_rope_base(base, growth, dim), rel_tol=1e-14 * dim / (dim - 2))
    assert kv.dynamic_ntk_rope_base(base, factor, min(seq, trained), trained, dim) == base


@law(base=base, factor=st.floats(1e-3, 1e3), seq=ascending(length), trained=length, dim=head_dim, double=power_of_two)
def test_dynamic_ntk_is_monotone_in_length_and_has_no_unit_of_it(base, factor, seq, trained, dim, double):
    short, long = (kv.dynamic_ntk_rope_base(base, factor, x, trained, dim) for x in seq)
    assert base <= short
    assert short <= long or close(short, long, 8)
    assert kv.dynamic_ntk_rope_base(base, factor, seq[0] * double, trained * double, dim) == short


@law(freq=st.floats(1e-9, 1), factor=st.floats(1, 64), low=turns, high=turns, trained=length)
def test_llama3_lies_between_the_angle_and_its_share(freq, factor, low, high, trained):
    scaled = kv.llama3_rope_frequency(freq, factor, low, high, trained)
    assert freq / factor * (1 - 1e-14) <= scaled <= freq * (1 + 1e-14)


@law(freq=ascending(st.floats(1e-9, 1)), factor=st.floats(1, 64), trained=length, double=power_of_two)
def test_llama3_is_monotone_and_has_no_unit_of_length(freq, factor, trained, double):
    slow, fast = (kv.llama3_rope_frequency(x, factor, 1, 4, trained) for x in freq)
    assert slow <= fast * (1 + 1e-14)
    assert kv.llama3_rope_frequency(freq[0] * double, factor, 1, 4, trained / double) == slow * double
    assert kv.llama3_rope_frequency(freq[0], 1, 1, 4, trained) == freq[0] or close(slow, slow, 0)


@law(scales=st.tuples(scale, scale))
def test_yarn_factors_add_up(scales):
    both = kv.yarn_attention_factor(math.prod(scales)) - 1
    assert math.isclose(both, sum(kv.yarn_attention_factor(x) - 1 for x in scales), rel_tol=1e-12, abs_tol=1e-14)


@law(scale=ascending(st.floats(-1, 1e6)))
def test_yarn_factor_is_monotone_from_1(scale):
    assert 1 <= kv.yarn_attention_factor(scale[0]) <= kv.yarn_attention_factor(scale[1])


@law(turns=turns, base=base, dim=head_dim, trained=length)
def test_the_correction_dimension_turns_so_often(turns, base, dim, trained):
    pair = kv.yarn_correction_dim(turns, dim, base, trained)
    assert math.isclose(trained * kv.rope_inverse_frequency(base, pair, dim) / (2 * math.pi), turns, rel_tol=1e-12)


@law(turns=ascending(turns), base=base, dim=head_dim, trained=length)
def test_the_correction_dimension_is_antitone_in_turns_and_linear_in_dimensions(turns, base, dim, trained):
    late, early = (kv.yarn_correction_dim(x, dim, base, trained) for x in turns)
    assert early <= late
    assert kv.yarn_correction_dim(turns[0], 2 * dim, base, trained) == 2 * late


@law(low=st.integers(-100, 100), width=st.integers(0, 10).map(lambda n: 2**n), place=st.integers(-2000, 2000))
def test_the_ramp_is_symmetric_and_knows_no_shift(low, width, place):
    ramp = kv.yarn_ramp(low + place, low, low + width)
    assert kv.yarn_ramp(low + width - place, low, low + width) == 1 - ramp
    assert kv.yarn_ramp(place, 0, width) == ramp


@law(pair=ascending(st.floats(-1e6, 1e6)), low=st.floats(-1e6, 1e6), high=st.floats(-1e6, 1e6))
def test_the_ramp_rises_from_0_to_1(pair, low, high):
    assert 0 <= kv.yarn_ramp(pair[0], low, high) <= kv.yarn_ramp(pair[1], low, high) <= 1
    assert kv.yarn_ramp(low, low, high) == 0
    assert kv.yarn_ramp(max(low, high), low, high) == (high > low)


@law(scales=st.tuples(scale, scale), trained=length)
def test_longrope_squares_add_up(scales, trained):
    gains = [kv.longrope_attention_factor(x, trained) ** 2 - 1 for x in (*scales, math.prod(scales))]
    assert math.isclose(gains[0] + gains[1], gains[2], rel_tol=1e-12, abs_tol=1e-13)


@law(scale=ascending(scale), trained=ascending(length))
def test_longrope_is_monotone_in_scale_and_antitone_in_length(scale, trained):
    factor = kv.longrope_attention_factor
    assert 1 <= factor(scale[0], trained[1]) <= factor(scale[0], trained[0]) <= factor(scale[1], trained[0])


@law(trained=length)
def test_longrope_at_the_square_of_the_length_is_the_root_of_2(trained):
    assume(trained > 1)
    assert close(kv.longrope_attention_factor(trained, trained), math.sqrt(2), 2)
    assert same(kv.longrope_attention_factor(1, trained), 1.0)
