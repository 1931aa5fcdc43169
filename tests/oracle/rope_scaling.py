# Rotary position embeddings beyond their trained length: the definitions.
from oracle.context import least, power, unknown


def rope_inverse_frequency(mp, base, pair_index, head_dim):
    if base <= 0 or head_dim <= 0:
        return mp.one
    return power(mp, base, -2 * pair_index / head_dim)


def ntk_rope_base(mp, base, alpha, head_dim):
    if alpha <= 0 or head_dim <= 2:
        return base
    return base * power(mp, alpha, 1 + 2 / (head_dim - 2))


def dynamic_ntk_rope_base(mp, base, factor, seq_len, max_position, head_dim):
    if max_position <= 0 or seq_len <= max_position:
        return base
    return ntk_rope_base(mp, base, factor * (seq_len - max_position) / max_position + 1, head_dim)


def llama3_rope_frequency(mp, inv_freq, factor, low_freq_factor, high_freq_factor, original_max_position):
    if factor <= 0:
        return inv_freq
    rotations = original_max_position * inv_freq / (2 * mp.pi)
    if unknown(factor, low_freq_factor, high_freq_factor):
        return mp.nan
    if rotations < low_freq_factor:
        return inv_freq / factor
    if rotations >= high_freq_factor:
        return inv_freq
    kept = (rotations - low_freq_factor) / (high_freq_factor - low_freq_factor)
    return (1 - kept) * inv_freq / factor + kept * inv_freq


def yarn_attention_factor(mp, scale):
    if scale <= 1:
        return mp.one
    return mp.log(scale) / 10 + 1


def yarn_correction_dim(mp, rotations, head_dim, base, max_position):
    if rotations <= 0 or base <= 1 or max_position <= 0:
        return mp.zero
    return head_dim * mp.log(max_position / (2 * mp.pi * rotations)) / (2 * mp.log(base))


def yarn_ramp(mp, pair_index, low, high):
    if unknown(pair_index):
        return mp.nan
    if high <= low:
        return mp.one if pair_index > low else mp.zero
    return -least(mp, -least(mp, (pair_index - low) / (high - low), mp.one), mp.zero)


def longrope_attention_factor(mp, scale, original_max_position):
    if scale <= 1 or original_max_position <= 1:
        return mp.one
    return mp.sqrt(1 + mp.log(scale) / mp.log(original_max_position))


EXAMPLES = [
    (rope_inverse_frequency, (10000, 32, 128), 0.01),
    (rope_inverse_frequency, (10000, 0, 128), 1),
    (rope_inverse_frequency, (0, 3, 128), 1),
    (ntk_rope_base, (10000, 4, 6), 80000),
    (ntk_rope_base, (10000, 4, 2), 10000),
    (ntk_rope_base, (10000, 0, 128), 10000),
    (dynamic_ntk_rope_base, (10000, 1, 8192, 2048, 6), 80000),
    (dynamic_ntk_rope_base, (10000, 2, 2048, 2048, 128), 10000),
    (dynamic_ntk_rope_base, (10000, 2, 2048, 0, 128), 10000),
    (llama3_rope_frequency, (1, 8, 1, 4, 8192), 1),
    (llama3_rope_frequency, (2.0**-20, 8, 1, 4, 8192), 2.0**-23),
    (llama3_rope_frequency, (2.0**-9, 8, 1, 4, 8192), 0.001125110158389671),
    (llama3_rope_frequency, (2.0**-9, 0, 1, 4, 8192), 2.0**-9),
    (yarn_attention_factor, (4,), 1.138629436111989),
    (yarn_attention_factor, (1,), 1),
    (yarn_correction_dim, (1, 128, 10000, 2048), 40.21040134313085),
    (yarn_correction_dim, (0, 128, 10000, 2048), 0),
    (yarn_ramp, (22, 20, 28), 0.25),
    (yarn_ramp, (40, 20, 28), 1),
    (yarn_ramp, (4, 20, 28), 0),
    (yarn_ramp, (21, 20, 20), 1),
    (longrope_attention_factor, (16, 256), 1.224744871391589),
    (longrope_attention_factor, (1, 256), 1),
    (longrope_attention_factor, (16, 1), 1),
]
