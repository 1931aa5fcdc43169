# 100,000 running sequences: score and size each in a compiled loop, then preempt until 64 GiB are free.
import sys

import numpy as np
from candidates import bytes_of, scores_of

import kvformulas

random = np.random.default_rng(1)
n = 100_000
priority = random.choice([1.0, 2.0, 4.0], n)
generated = np.floor(random.uniform(0, 1024, n))
cached = np.floor(random.uniform(1, 32768, n))

scores, memory = np.empty(n), np.empty(n)
scores_of(priority, generated, cached, scores)
bytes_of(cached, memory, layers=28, heads=8, head_dim=128, dtype_bytes=2)  # Qwen3-0.6B in FP16

order = np.argsort(-scores)
freed = memory[order].cumsum()
victims = order[: np.searchsorted(freed, 64 * 2**30) + 1]

print(f"{n:,} sequences hold {memory.sum() / 2**40:.1f} TiB of keys and values")
print(f"preempting {len(victims)} of them frees {memory[victims].sum() / 2**30:.1f} GiB")
first = victims[0]
print(
    f"first to go: {cached[first]:.0f} cached tokens, {generated[first]:.0f} generated, priority {priority[first]:.0f}"
)

for i in range(n):
    if scores[i] != kvformulas.preemption_score(priority[i], generated[i], cached[i]):
        sys.exit(f"sequence {i}: score {scores[i]}")
    if memory[i] != 2 * int(cached[i]) * 28 * 8 * 128 * 2:
        sys.exit(f"sequence {i}: {memory[i]} bytes")
print("every score has the bits of the Python function, every size is exact")
