# A numba loop that calls two formulas at their C addresses.
import ctypes
import sys

import numba
import numpy as np
from numba.extending import get_cython_function_address

import kvformulas


def formula(name, arity):
    """Return what numba compiles a direct call of: a C function of `arity` doubles at a known address."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arity)
    return prototype(get_cython_function_address("kvformulas.capi", name))


preemption_score = formula("preemption_score", 3)
paged_attention_block_count = formula("paged_attention_block_count", 2)


@numba.njit(nogil=True)
def victim(priority, generated, cached, block_size):
    """Return the sequence to preempt first, and the blocks that all of them hold."""
    best, highest, blocks = -1, -np.inf, 0.0
    for i in range(priority.size):
        score = preemption_score(priority[i], generated[i], cached[i])
        if score > highest:
            best, highest = i, score
        blocks += paged_attention_block_count(cached[i], block_size)
    return best, blocks


random = np.random.default_rng(2)
n = 20_000
priority = random.choice([1.0, 2.0, 4.0], n)
generated = np.floor(random.uniform(0, 1024, n))
cached = np.floor(random.uniform(1, 32768, n))

chosen, blocks = victim(priority, generated, cached, 16.0)
print(f"{n:,} sequences hold {blocks:,.0f} blocks of 16 tokens")
print(f"sequence {chosen} goes first: {cached[chosen]:.0f} cached tokens, {generated[chosen]:.0f} generated")

scores = [kvformulas.preemption_score(*each) for each in zip(priority, generated, cached, strict=True)]
if chosen != scores.index(max(scores)):
    sys.exit(f"from Python, {scores.index(max(scores))} goes first")
if blocks != sum(-(-int(tokens) // 16) for tokens in cached):
    sys.exit("the number of blocks is not the exact one")
print("the same from Python")
