# A compiled loop over candidates: what the formula costs a caller at C level.
from __future__ import annotations

import math
import sys
from timeit import Timer

import formulas
from method import CLOCK, Row, Spread, Target, take_turns, there

TITLE = "A loop at C level"
NOTE = (
    "1.00 is the loop written in C by hand. Inlined: Cython with the kernel cimported from the installed package. "
    "Through an address: the same loop with the function pointer of `kvformulas.capi`. numba compiles for this very "
    "processor; C and Cython for any of its architecture."
)
REFERENCE = "plain C"
OURS = "inlined kernel"
COLUMNS = [OURS, REFERENCE, "through an address", "numba njit"]
SIZES = (10**4, 10**6)
LOOPS = {
    "argmax": "the highest `preemption_score`",
    "scores": "every `preemption_score`, kept",
    "blocks": "the sum of `paged_attention_block_count`",
}


def measure(built: str, rounds: int) -> list[Row]:
    sys.path.insert(0, built)
    import candidates
    import numpy as np

    import kvformulas.capi

    by_numba = numba_loops() if there("numba") else {}
    random = np.random.default_rng(0)
    rows = []
    for size in SIZES:
        queue = (
            random.choice([1.0, 2.0, 4.0], size),
            np.floor(random.uniform(0, 1024, size)),
            np.floor(random.uniform(1, 32768, size)),
        )
        cases = {
            "argmax": ("preemption_score", queue),
            "scores": ("preemption_score", (*queue, np.empty(size))),
            "blocks": ("paged_attention_block_count", (queue[2], 16.0)),
        }
        for name, (formula, arrays) in cases.items():
            args = (*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in arrays), size)
            rivals = {
                OURS: (getattr(candidates, f"{name}_inlined"), args),
                REFERENCE: (getattr(candidates, f"{name}_by_hand"), args),
                "through an address": (
                    getattr(candidates, f"{name}_through"),
                    (kvformulas.capi.__pyx_capi__[formula], *args),
                ),
            }
            if by_numba:
                rivals["numba njit"] = (by_numba[name], arrays)
            answers = {function(*passed) for function, passed in rivals.values()}
            assert len(answers) == 1, f"{name}: the competitors disagree: {answers}"
            timers = {
                label: Timer("function(*args)", timer=CLOCK, globals={"function": function, "args": passed})
                for label, (function, passed) in rivals.items()
            }
            labels = {"loop": LOOPS[name], "candidates": power_of_ten(size)}
            rows.append(take_turns(labels, timers, rounds))
    return rows


def numba_loops():
    import numba
    import numpy as np

    compiled = numba.njit(cache=True, error_model="numpy", nogil=True)
    score = compiled(formulas.preemption_score)
    block_count = compiled(formulas.paged_attention_block_count)

    def argmax(priority, generated, tokens):
        best, highest = 0, -np.inf
        for i in range(priority.size):
            value = score(priority[i], generated[i], tokens[i])
            if value > highest:
                best, highest = i, value
        return best

    def scores(priority, generated, tokens, out):
        for i in range(priority.size):
            out[i] = score(priority[i], generated[i], tokens[i])

    def blocks(lengths, block_size):
        total = 0.0
        for i in range(lengths.size):
            total += block_count(lengths[i], block_size)
        return total

    return {loop.__name__: compiled(loop) for loop in (argmax, scores, blocks)}


def power_of_ten(size: int) -> str:
    return f"10^{round(math.log10(size))}"


def targets(rows: list[Row]) -> list[Target]:
    found = []
    for row in rows:
        spread = Spread.of(row.ratios(OURS, REFERENCE))
        text = f"inlined equals plain C within noise: {row.labels['loop']}, {row.labels['candidates']}"
        found.append(Target(text, str(spread), spread.median <= 1.03 or spread.low <= 1.0))
    return found
