# What each formula is worth, computed from its definition with mpmath and independent of the kernels. Any double in,
# an mpf out, always an answer; comparison.py says how far a kernel's double is from it.
from functools import cache

from oracle import (
    attention_layouts,
    continuous_batching,
    engine_admission,
    generation_loop,
    kv_cache,
    llm_sampling,
    paged_kv_cache,
    rope_scaling,
    sampling_rules,
    speculation_analysis,
    speculative_decoding,
)
from oracle.context import reals
from ulp import nearest_double

TOPICS = (
    kv_cache,
    paged_kv_cache,
    llm_sampling,
    generation_loop,
    speculative_decoding,
    continuous_batching,
    attention_layouts,
    engine_admission,
    speculation_analysis,
    sampling_rules,
    rope_scaling,
)
# A power or an exponential: rounded by the context, to many more digits than a double has.
IRRATIONAL = frozenset(
    {
        "acceptance_rate_from_counts",
        "best_speculation_depth",
        "break_even_acceptance",
        "constrained_beam_score",
        "dynamic_ntk_rope_base",
        "dynamic_ntk_rope_scale",
        "dynamic_temperature",
        "eta_cutoff",
        "eta_sampling_accept",
        "expected_accepted_tokens",
        "gumbel_max_score",
        "length_normalized_score",
        "length_penalty",
        "llama3_rope_frequency",
        "longrope_attention_factor",
        "medusa_typical_threshold",
        "ntk_rope_base",
        "pow_approx",
        "rope_inverse_frequency",
        "speculative_expected_tokens",
        "speculative_operations_factor",
        "speculative_walltime_speedup",
        "watermark_z_score",
        "yarn_attention_factor",
        "yarn_correction_dim",
    }
)
# The others are rational. Every sum and product of doubles that they form fits in 32 * 256 bits, so that only the last
# division is rounded, far below any distance at which a quotient of such numbers can lie from a tie or a whole number.
_RATIONAL_BITS = 32
_GUARD_BITS = 64


@cache
def formula(name):
    """Return the definition: a function of a context and of the formula's arguments."""
    return next(getattr(topic, name) for topic in TOPICS if hasattr(topic, name))


def value(name, args, prec=256):
    """Return the formula's value at these doubles, to `prec` bits or more."""
    mp = reals(prec if name in IRRATIONAL else _RATIONAL_BITS * prec)
    return mp.mpf(formula(name)(mp, *map(mp.mpf, args)))


def double(name, args, prec=256):
    """Return the double nearest to the formula's value."""
    exact = value(name, args, prec)
    if name in IRRATIONAL:
        # The last bits are unsure. Dropping them turns what is a hair beside a tie into the tie that it stands for.
        exact = reals(prec - _GUARD_BITS).mpf(exact)
        exact = +exact
    return nearest_double(exact)
