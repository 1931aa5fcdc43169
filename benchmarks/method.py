# How everything here is timed: competitors take turns in short batches, so that a busy moment hits all of them alike,
# and only the ratios within one turn are kept. Their median and quartiles are pooled over fresh processes.
from __future__ import annotations

import random
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing import get_context
from timeit import Timer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Work in one thread is timed by that thread's own processor time, which other programs on the machine don't lengthen;
# where that clock is coarse (Windows), by the wall's.
CLOCK = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter

BATCH_SECONDS = 0.002
UNROLLED = 20

# The package's own flags (setup.py), so that hand-written C and the caller's loops compete on equal terms.
FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]


@dataclass
class Row:
    """One line of a table: what was done, and the seconds of one unit of it, by competitor and round."""

    labels: dict[str, str]
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def ratios(self, name: str, reference: str) -> list[float]:
        return [own / other for own, other in zip(self.seconds[name], self.seconds[reference], strict=True)]


@dataclass
class Spread:
    """A median with its quartiles."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        if len(values) < 2:
            return cls(values[0], values[0], values[0])
        return cls(*statistics.quantiles(values, n=4, method="inclusive"))

    def __str__(self) -> str:
        return f"{_short(self.median)} ({_short(self.low)}-{_short(self.high)})"


@dataclass
class Target:
    """One thing to reach, what was measured, and whether that is enough (None: it cannot be measured yet)."""

    text: str
    measured: str
    met: bool | None


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def call(function: Callable[..., Any], args: tuple[Any, ...], keywords: tuple[str, ...] = ()) -> Timer:
    """Return a timer of `UNROLLED` calls, every name a local, as in a caller's hot loop."""
    names = [f"a{i}" for i in range(len(args))]
    passed = [f"{k}={n}" for k, n in zip(keywords, names, strict=True)] if keywords else names
    setup = "".join(f"{name} = args[{i}]\n" for i, name in enumerate(names)) + "f = function"
    statement = "\n".join([f"f({', '.join(passed)})"] * UNROLLED)
    return Timer(statement, setup, CLOCK, globals={"function": function, "args": args})


def take_turns(labels: dict[str, str], timers: dict[str, Timer], rounds: int, units: int = 1) -> Row:
    """Time the competitors in turns; `units` is how many units of work one run of a timer does."""
    row = Row(labels, {name: [] for name in timers})
    loops = {}
    for name, timer in timers.items():
        timer.timeit(1)
        loops[name] = 1
        while (taken := timer.timeit(loops[name])) < BATCH_SECONDS:
            loops[name] = max(2 * loops[name], int(loops[name] * 0.8 * BATCH_SECONDS / max(taken, 1e-9)))
    order = list(timers)
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            row.seconds[name].append(timers[name].timeit(loops[name]) / (loops[name] * units))
    return row


def in_fresh_processes(measure: Callable[..., list[Row]], processes: int, *args: Any) -> list[Row]:
    """Run `measure` in fresh processes, one after another, and pool their rounds: memory layout differs by process."""
    pooled: list[Row] = []
    for _ in range(processes):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            rows = pool.submit(measure, *args).result()
        if not pooled:
            pooled = rows
            continue
        for row, more in zip(pooled, rows, strict=True):
            for name, seconds in more.seconds.items():
                row.seconds[name] += seconds
    return pooled


def there(module: str) -> bool:
    return find_spec(module) is not None


def build(sources: Path, into: Path) -> None:
    """Compile the hand-written C and the Cython loops against the installed package."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    extensions = cythonize(
        [
            Extension(
                "candidates", [str(sources / "candidates.pyx")], include_dirs=[str(sources)], extra_compile_args=FLAGS
            ),
            Extension("baseline", [str(sources / "baseline.c")], extra_compile_args=FLAGS),
        ],
        build_dir=str(into / "c"),
        quiet=True,
    )
    command = build_ext(Distribution({"ext_modules": extensions}))
    command.build_lib, command.build_temp = str(into), str(into / "objects")
    command.ensure_finalized()
    command.run()
