# The second route to each formula's value, independent of the oracle: rational formulas as fractions, exactly; those
# with a power or an exponential as balls that provably hold the value. Finite arguments only; no NaN, no infinity.
from fractions import Fraction
from functools import cache

from flint import arb, ctx

from reference import (
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
# Holds the product of six doubles and rounds only quotients, powers and sums of very unlike terms.
BITS = 320


@cache
def formula(name):
    """Return the formula as a function of Fractions or of balls."""
    return next(getattr(topic, name) for topic in TOPICS if hasattr(topic, name))


def value(name, args):
    """Return the exact value of a rational formula at these finite doubles."""
    return Fraction(formula(name)(*map(Fraction, args)))


def enclosure(name, args, bits=BITS):
    """Return a ball that holds the formula's value at these finite doubles."""
    before, ctx.prec = ctx.prec, bits
    try:
        return arb(formula(name)(*map(arb, args)))
    finally:
        ctx.prec = before
