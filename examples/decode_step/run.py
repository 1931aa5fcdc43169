# One decode step over 151,936 logits, three times: plain Python, NumPy on the ufuncs, Cython on the kernels.
import sys

import cython_step
import numpy as np
import numpy_step
import plain_step
from settings import Settings

VOCABULARY = 151_936  # Qwen3's
SEEDS = (0, 1, 2)
REQUESTS = {
    "Qwen3, thinking": Settings(temperature=0.6, top_k=20, top_p=0.95),
    "all filters": Settings(0.8, 1.1, 0.2, 0.1, top_k=50, min_p=0.01, top_p=0.9),
    "hot, wide": Settings(1.5, presence_penalty=1.5, top_k=2000, min_p=0.02),
    "greedy": Settings(temperature=0, repetition_penalty=1.2, top_p=0.95),
    "k = 1": Settings(0.8, 1.1, 0.2, 0.1, top_k=1, top_p=0.9),
    "p near 0": Settings(top_k=50, top_p=1e-9),
    "min-p = 1": Settings(min_p=1, top_p=0.5),
    "all off": Settings(),
}


def situation(seed):
    """Return synthetic logits of a plausible shape, how often each token occurred so far, and the number to draw by."""
    random = np.random.default_rng(seed)
    logits = random.gumbel(0.0, 1.1, VOCABULARY)
    chances = np.exp(logits - logits.max())
    history = random.choice(VOCABULARY, 512, p=chances / chances.sum())
    return logits, np.bincount(history, minlength=VOCABULARY).astype(float), random.random()


situations = [situation(seed) for seed in SEEDS]
print(f"{VOCABULARY:,} synthetic logits, 512 tokens of history, seeds {SEEDS}")
print(f"{'request':15}  {'tokens kept':24}  token drawn")
for name, settings in REQUESTS.items():
    drawn, sizes = [], []
    for logits, counts, draw in situations:
        token, kept, probabilities = plain_step.step(logits.tolist(), counts.tolist(), settings, draw)
        for program in (numpy_step, cython_step):
            other_token, other_kept, others = program.step(logits, counts, settings, draw)
            if other_token != token or list(other_kept) != kept:
                sys.exit(f"{name}: {program.__name__} keeps or draws other tokens")
            if not np.allclose(others, probabilities, rtol=1e-12, atol=0):
                sys.exit(f"{name}: {program.__name__} has other probabilities")
        drawn.append(token)
        sizes.append(len(kept))
    print(f"{name:15}  {', '.join(f'{size:,}' for size in sizes):24}  {', '.join(map(str, drawn))}")
print(f"plain Python, NumPy and Cython kept and drew the same tokens in all {len(REQUESTS) * len(SEEDS)} steps")
