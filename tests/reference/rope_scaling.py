# Rotary position embeddings beyond their trained length, by another route.
from flint import arb, ctx

_TO_CANCEL = 128


def rope_inverse_frequency(base, pair_index, head_dim):
    if base > 0 and head_dim > 0:
        return 1 / (base.log() * pair_index / (head_dim / 2)).exp()
    return 1


def ntk_rope_base(base, alpha, head_dim):
    return alpha ** (head_dim / (head_dim - 2)) * base if alpha > 0 and head_dim > 2 else base


def dynamic_ntk_rope_base(base, factor, seq_len, max_position, head_dim):
    if max_position <= 0 or seq_len <= max_position:
        return base
    return ntk_rope_base(base, factor * seq_len / max_position - (factor - 1), head_dim)


def llama3_rope_frequency(inv_freq, factor, low_freq_factor, high_freq_factor, original_max_position):
    if factor <= 0:
        return inv_freq
    with ctx.extraprec(_TO_CANCEL):
        # By wavelengths, as the engines have it, both sides multiplied out: a factor may be 0.
        turns = original_max_position * inv_freq
        full_turn = 2 * arb.pi()
        if turns < full_turn * low_freq_factor:
            return inv_freq / factor
        if turns >= full_turn * high_freq_factor:
            return inv_freq
        span = full_turn * (high_freq_factor - low_freq_factor)
        above, below = turns - full_turn * low_freq_factor, full_turn * high_freq_factor - turns
        return inv_freq * (above + below / factor) / span


def yarn_attention_factor(scale):
    return 1 + scale.log() / 10 if scale > 1 else 1


def yarn_correction_dim(rotations, head_dim, base, max_position):
    if rotations <= 0 or base <= 1 or max_position <= 0:
        return 0
    with ctx.extraprec(_TO_CANCEL):
        return head_dim / 2 * (max_position.log() - rotations.log() - (2 * arb.pi()).log()) / base.log()


def yarn_ramp(pair_index, low, high):
    if pair_index <= low:
        return 0
    return 1 if pair_index >= high else (low - pair_index) / (low - high)


def longrope_attention_factor(scale, original_max_position):
    if scale <= 1 or original_max_position <= 1:
        return 1
    both = (original_max_position * scale).log() if original_max_position > 0 else 0
    return (both / original_max_position.log()).sqrt()
