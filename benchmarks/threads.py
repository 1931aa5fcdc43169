# The same work in one thread and, twice, in two: how much more gets done.
from __future__ import annotations

import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from timeit import Timer
from typing import TYPE_CHECKING, Any

import formulas
from method import Row, Spread, Target, take_turns, there

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "Two threads against one"
NOTE = (
    "Each cell is the throughput of two threads over that of one: 2.00 is perfect. The hand-written rows are what the "
    "machine gives at this moment: on a busy machine they fall as well."
)
OURS = "throughput"
REFERENCE = "two threads"
COLUMNS = [OURS]
LOOP = "loop without the GIL, inlined kernel"


def same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def measure(built: str, rounds: int) -> list[Row]:
    sys.path.insert(0, built)
    import baseline
    import candidates
    import numpy as np

    import kvformulas

    random = np.random.default_rng(0)
    p, g, k = random.uniform(1, 4, 10**4), random.uniform(0, 1024, 10**4), random.uniform(1, 32768, 10**4)
    # As much as possible without the GIL: handing it over after every 10^4 candidates costs a tenth.
    long = [np.tile(column, 10) for column in (p, g, k)]
    queue = (*(column.ctypes.data for column in long), long[0].size)

    def scalars(function: Callable[[float, float, float], float], own: Callable[..., Any] = same) -> Callable[[], None]:
        def calls() -> None:
            # Numbers of the thread's own: constants are shared, and without a GIL their counts of references as well.
            call, numbers = own(function), [float(number) for number in (1, 200, 1000)]
            for _ in repeat(None, 200_000):
                call(*numbers)

        return calls

    def mapped() -> None:
        numbers = [[float(number)] * 200_000 for number in (1, 200, 1000)]
        deque(map(kvformulas.preemption_score, *numbers), maxlen=0)

    def many(function: Callable[[], object], times: int) -> Callable[[], None]:
        def calls() -> None:
            for _ in repeat(None, times):
                function()

        return calls

    works = {
        LOOP: many(lambda: candidates.argmax_inlined(*queue), 30),
        "loop without the GIL, plain C": many(lambda: candidates.argmax_by_hand(*queue), 30),
        "array of 10^4, NumPy expression": many(lambda: k / (p * (g + 1)), 400),
        "scalar calls, kvformulas": scalars(kvformulas.preemption_score),
        "scalar calls, kvformulas, each thread through its own `functools.partial`": scalars(
            kvformulas.preemption_score, partial
        ),
        "scalar calls, kvformulas, through `map`": mapped,
        "scalar calls, C by position": scalars(baseline.preemption_score),
        "scalar calls, Python": scalars(formulas.preemption_score),
    }
    if there("kvformulas.ufuncs"):
        import kvformulas.ufuncs

        works["array of 10^4, kvformulas.ufuncs"] = many(lambda: kvformulas.ufuncs.preemption_score(p, g, k), 400)

    rows = []
    with ThreadPoolExecutor(2) as pool:
        for name, work in works.items():

            def in_threads(threads: int, work: Callable[[], None] = work) -> None:
                for running in [pool.submit(work) for _ in range(threads)]:
                    running.result()

            timers = {OURS: Timer(lambda: in_threads(1)), REFERENCE: Timer(lambda: in_threads(2))}
            row = take_turns({"work": name}, timers, rounds)
            row.seconds[REFERENCE] = [seconds / 2 for seconds in row.seconds[REFERENCE]]
            rows.append(row)
    return rows


def targets(rows: list[Row]) -> list[Target]:
    spread = next(Spread.of(row.ratios(OURS, REFERENCE)) for row in rows if row.labels["work"] == LOOP)
    return [Target("a loop without the GIL on two cores: at least 1.9 times one", str(spread), spread.median >= 1.9)]
