# One call from Python at a time, by number and kind of arguments.
from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import formulas
from method import UNROLLED, Row, Spread, Target, call, take_turns, there

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "One call from Python"
NOTE = (
    "1.00 is a hand-written METH_FASTCALL C function of the same formula, called by position. `math`: sqrt, copysign "
    "and, from three arguments, hypot. NumPy: `np.sqrt` and `np.multiply` on Python numbers."
)
REFERENCE = "C by position"
OURS = "kvformulas"
COLUMNS = [OURS, REFERENCE, "math", "Python", "numba njit", "NumPy ufunc", "kvformulas.ufuncs"]

# A formula for each number of arguments, with usual whole values.
CASES: dict[str, tuple[int, ...]] = {
    "incremental_decode_kv_append": (2048,),
    "kv_cache_utilization": (1536, 2048),
    "preemption_score": (1, 200, 1000),
    "draft_model_speedup": (4, 50, 8, 5),
    "kv_cache_memory_per_layer": (1, 2048, 8, 128, 2),
    "beam_memory_per_request": (4, 2048, 28, 8, 128, 2),
    "new_blocks_needed": (2048, 512, 4, 32768, 16, 128, 8),
}


def measure(built: str, rounds: int) -> list[Row]:
    sys.path.insert(0, built)
    import baseline
    import numpy as np

    import kvformulas

    rows = []
    for name, whole in CASES.items():
        names = formula_arguments(name)
        by_hand = getattr(baseline, name)
        equal = {1: (math.sqrt, np.sqrt), 2: (math.copysign, np.multiply)}.get(len(whole), (math.hypot, None))
        rivals: dict[str, Callable[..., Any] | None] = {
            OURS: getattr(kvformulas, name),
            REFERENCE: by_hand,
            "math": equal[0],
            "Python": getattr(formulas, name),
            "NumPy ufunc": equal[1],
        }
        if there("numba"):
            import numba

            rivals["numba njit"] = numba.njit(cache=True, error_model="numpy")(getattr(formulas, name))
        if there("kvformulas.ufuncs"):
            import kvformulas.ufuncs

            rivals["kvformulas.ufuncs"] = getattr(kvformulas.ufuncs, name)
        for kind in ("floats", "ints", "floats by keyword"):
            args = whole if kind == "ints" else tuple(map(float, whole))
            keywords = names if kind == "floats by keyword" else ()
            takes_keywords = (OURS, "Python", "numba njit")
            timers = {
                label: call(rival, args, keywords if label in takes_keywords else ())
                for label, rival in rivals.items()
                if rival is not None and (not keywords or label in (*takes_keywords, REFERENCE))
            }
            labels = {"arguments": str(len(whole)), "passed": kind, "formula": f"`{name}`"}
            rows.append(take_turns(labels, timers, rounds, UNROLLED))
    return rows


def formula_arguments(name: str) -> tuple[str, ...]:
    code = getattr(formulas, name).__code__
    return code.co_varnames[: code.co_argcount]


def targets(rows: list[Row]) -> list[Target]:
    found = []
    for kind in ("floats", "ints"):
        for rival, bound, text in (
            (REFERENCE, 1.6, "at most 1.6 times METH_FASTCALL C"),
            ("Python", 1.0, "faster than pure Python"),
        ):
            spreads = {
                row.labels["arguments"]: Spread.of(row.ratios(OURS, rival))
                for row in rows
                if row.labels["passed"] == kind
            }
            measured = ", ".join(f"{arguments}: {spread.median:.2f}" for arguments, spread in spreads.items())
            met = all(spread.median <= bound for spread in spreads.values())
            found.append(Target(f"a call by position, {kind}, {text}", f"by arguments: {measured}", met))
    return found
