# A whole array at once: the ufuncs against what a NumPy user would write or reach for instead.
from __future__ import annotations

import sys
from timeit import Timer
from typing import Any, NamedTuple

import formulas
from loops import power_of_ten
from method import CLOCK, Row, Spread, Target, take_turns, there

TITLE = "Arrays"
NOTE = (
    "1.00 is the NumPy expression of the bare arithmetic. NumPy guarded: the same with the formula's guard, in "
    "`np.where`. Each makes a new array; each runs on one thread. numba and numexpr keep the guards."
)
REFERENCE = "NumPy"
OURS = "kvformulas.ufuncs"
COLUMNS = [OURS, REFERENCE, "NumPy guarded", "numba vectorize", "numexpr"]
SIZES = (10**2, 10**4, 10**6)


class Case(NamedTuple):
    """A formula with its arguments (a pair is the range of an array, a number is passed as it is) and its rivals."""

    operations: int
    arguments: dict[str, tuple[float, float] | float]
    bare: str
    guarded: str
    numexpr: str


CASES = {
    "kv_cache_total_memory": Case(1, {"b": (1e6, 1e7), "n": 28.0}, "b * n", "b * n", "b * n"),
    "temperature_scale": Case(
        1,
        {"x": (-20, 20), "t": 0.7},
        "x / t",
        "np.where(t <= 0, x * 1e9, x / t)",
        "where(t <= 0, x * 1e9, x / t)",
    ),
    "preemption_score": Case(
        3,
        {"p": (1, 4), "g": (0, 1024), "k": (1, 32768)},
        "k / (p * (g + 1))",
        "np.where(p * (g + 1) <= 0, k, k / (p * (g + 1)))",
        "where(p * (g + 1) <= 0, k, k / (p * (g + 1)))",
    ),
    "paged_attention_block_count": Case(
        4,
        {"s": (1, 32768), "b": 16.0},
        "np.trunc((s + b - 1) / b)",
        "np.where(b <= 0, s, np.trunc((s + b - 1) / b))",
        "where(b <= 0, s, floor((s + b - 1) / b))",
    ),
    "kv_cache_memory_per_layer": Case(
        5,
        {"n": (1, 64), "s": (1, 32768), "h": 8.0, "d": 128.0, "y": 2.0},
        "2 * n * s * h * d * y",
        "2 * n * s * h * d * y",
        "2 * n * s * h * d * y",
    ),
    "eta_sampling_accept": Case(
        4,
        {"p": (0, 0.1), "e": (0, 8), "eta": 0.1},
        "(p >= eta * np.exp(-0.5 * e)).astype(float)",
        "(p >= eta * np.exp(-0.5 * e)).astype(float)",
        "where(p >= eta * exp(-0.5 * e), 1.0, 0.0)",
    ),
    "dynamic_ntk_rope_scale": Case(
        2,
        {"s": (1, 32768), "b": 8192.0, "a": 0.8},
        "(s / b) ** a",
        "np.where((b <= 0) | (s <= b), 1.0, (s / b) ** a)",
        "where((b <= 0) | (s <= b), 1.0, (s / b) ** a)",
    ),
}


def measure(built: str, rounds: int) -> list[Row]:
    sys.path.insert(0, built)
    import numpy as np

    random = np.random.default_rng(0)
    rows = []
    for name, case in CASES.items():
        compiled = compiled_by_numba(name, len(case.arguments)) if there("numba") else None
        for size in SIZES:
            values = {
                key: random.uniform(*value, size) if isinstance(value, tuple) else value
                for key, value in case.arguments.items()
            }
            rivals: dict[str, tuple[str, dict[str, Any]]] = {
                REFERENCE: (case.bare, {"np": np}),
                "NumPy guarded": (case.guarded, {"np": np}),
            }
            by_position = f"f({', '.join(values)})"
            if there("kvformulas.ufuncs"):
                import kvformulas.ufuncs

                rivals[OURS] = (by_position, {"f": getattr(kvformulas.ufuncs, name)})
            if compiled:
                rivals["numba vectorize"] = (by_position, {"f": compiled})
            if there("numexpr"):
                import numexpr

                numexpr.set_num_threads(1)
                names = {"evaluate": numexpr.evaluate, "expression": case.numexpr, "values": values}
                rivals["numexpr"] = ("evaluate(expression, values)", names)
            guarded = eval(case.guarded, {"np": np} | values)
            for label, (statement, names) in rivals.items():
                if label != REFERENCE:
                    answer = eval(statement, names | values)
                    assert np.allclose(answer, guarded, rtol=1e-12), f"{name}: {label} disagrees"
            timers = {
                label: Timer(statement, timer=CLOCK, globals=names | values)
                for label, (statement, names) in rivals.items()
            }
            labels = {
                "formula": f"`{name}`",
                "operations": str(case.operations),
                "elements": power_of_ten(size),
            }
            rows.append(take_turns(labels, timers, rounds))
    return rows


def compiled_by_numba(name: str, arity: int):
    import numba

    return numba.vectorize([f"float64({', '.join(['float64'] * arity)})"], cache=True)(getattr(formulas, name))


def targets(rows: list[Row]) -> list[Target]:
    found = []
    for least, bound, text in (
        (1, 1.0, "never slower than the NumPy expression from 10^4 elements"),
        (3, 0.5, "at least twice as fast for three operations or more"),
    ):
        wanted = [r for r in rows if r.labels["elements"] != "10^2" and int(r.labels["operations"]) >= least]
        if not all(OURS in row.seconds for row in wanted):
            found.append(Target(f"the ufunc: {text}", "not built", None))
            continue
        spreads = {
            f"{row.labels['formula']}, {row.labels['elements']}": Spread.of(row.ratios(OURS, REFERENCE))
            for row in wanted
        }
        worst = max(spreads, key=lambda case: spreads[case].median)
        reached = sum(spread.median <= bound for spread in spreads.values())
        measured = f"{reached} of {len(spreads)}; worst: {worst}: {spreads[worst]}"
        found.append(Target(f"the ufunc: {text}", measured, reached == len(spreads)))
    return found
