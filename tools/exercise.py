"""What sanitize.py runs in a process of its own: every kernel and wrapper over hostile doubles, and a great many calls."""

import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import repeat
from pathlib import Path
from types import ModuleType

import hostile
import numpy as np
import points
from conftest import CONTRACT
from kernels import load

POINTS = 20_000  # sampled points for each formula, beside the hostile ones

# What a run may add to the memory that is in use: caches and free lists, not one object or byte a call.
SPARE_BLOCKS = 64
SPARE_BYTES = 4 << 20


def wrappers() -> Iterator[tuple[str, Callable[..., float]]]:
    import kvformulas

    for names in CONTRACT.values():
        for name in names:
            yield name, getattr(kvformulas, name)


def arguments_of(name: str, arity: int, every: int) -> np.ndarray:
    """Return the hostile cases and sampled points, or every so-manieth: a row an argument, a column a point."""
    cases = hostile.cases(name, arity)[::every]
    return np.hstack([np.array(cases).T, np.array(points.columns(name, POINTS // every))])


def run_loop(module: ModuleType, name: str, arguments: np.ndarray) -> np.ndarray:
    """Run one kernel of sanitize.py's loops over all the points."""
    arguments = np.ascontiguousarray(arguments)
    results = np.empty(arguments.shape[1])
    getattr(module, name)(arguments.ctypes.data, results.ctypes.data, len(results))
    return results


def over_kernels(library: str, every: str) -> str:
    module = load(Path(library))
    total = 0
    for topic in CONTRACT.values():
        for name, arguments in topic.items():
            total += len(run_loop(module, name, arguments_of(name, len(arguments), int(every))))
    return f"{total} points through the kernels, nothing undefined"


class Number:
    """A real number that is no float."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value


class Broken:
    def __float__(self) -> float:
        raise ValueError("no")


def failing_calls(arguments: list[str], good: object) -> Iterator[tuple[tuple[object, ...], dict[str, object]]]:
    """Yield calls that must raise: each kind of bad value in each place, a wrong count, a wrong or repeated name."""
    for i in range(len(arguments)):
        for bad in ("text", None, object(), 10**400, Broken(), 1j):
            yield (*repeat(good, i), bad, *repeat(good, len(arguments) - i - 1)), {}
    everything = tuple(repeat(good, len(arguments)))
    yield everything[1:], {}
    yield (*everything, good), {}
    yield everything, {"unknown": good}
    yield everything, {arguments[0]: good}


def raises(wrapper: Callable[..., float], arguments: tuple[object, ...], named: dict[str, object]) -> None:
    try:
        wrapper(*arguments, **named)
    except (TypeError, ValueError, OverflowError):
        return
    raise AssertionError(f"{wrapper.__name__} accepts {arguments} {named}")


def over_wrappers(every: str) -> str:
    total = 0
    for name, wrapper in wrappers():
        arguments = list(inspect.signature(wrapper).parameters)
        for values in arguments_of(name, len(arguments), int(every)).T:
            wrapper(*values.tolist())
            total += 1
        for values in ([3] * len(arguments), [Number(3.0)] * len(arguments), [Fraction(1, 3)] * len(arguments)):
            wrapper(**dict(zip(arguments, values, strict=True)))
        for positional, named in failing_calls(arguments, 2.5):
            raises(wrapper, positional, named)
    return f"{total} calls of the wrappers, and every kind of failing call"


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def growth(repeated: Callable[[], None]) -> tuple[int, int]:
    """Return the memory blocks and bytes that a second run of something adds to what a first one left."""
    repeated()
    gc.collect()
    blocks, size = sys.getallocatedblocks(), resident()
    repeated()
    gc.collect()
    return sys.getallocatedblocks() - blocks, resident() - size


def memory(count: str) -> str:
    """Call each wrapper so often: nine in ten with good arguments of every kind, one in ten with bad ones."""
    calls = int(count)
    for name, wrapper in wrappers():
        arguments = list(inspect.signature(wrapper).parameters)
        sets: list[tuple[object, ...]] = [
            tuple(1.5 + i for i in range(len(arguments))),
            tuple(10**6 + i for i in range(len(arguments))),
            tuple(Number(2.5 + i) for i in range(len(arguments))),
        ]
        named = dict(zip(arguments, sets[0], strict=True))
        bad = list(failing_calls(arguments, sets[0][0]))
        watched = [value for values in sets for value in values]
        watched += [value for positional, _ in bad for value in positional if value is not None]
        share = calls * 9 // 10 // 4 // 2
        failures = calls // 10 // len(bad) // 2

        def repeated() -> None:
            for values in sets:
                for _ in repeat(None, share):
                    wrapper(*values)
            for _ in repeat(None, share):
                wrapper(**named)
            for positional, keywords in bad:
                for _ in repeat(None, failures):
                    with suppress(TypeError, ValueError, OverflowError):
                        wrapper(*positional, **keywords)

        before = [sys.getrefcount(value) for value in watched]
        blocks, size = growth(repeated)
        if [sys.getrefcount(value) for value in watched] != before:
            raise AssertionError(f"{name} changes the reference count of an argument")
        result, fresh = wrapper(*sets[0]), float("2.75")
        if sys.getrefcount(result) != sys.getrefcount(fresh):
            raise AssertionError(f"{name} returns a float with a reference to spare")
        if blocks > SPARE_BLOCKS or size > SPARE_BYTES:
            raise AssertionError(f"{name} leaves {blocks} blocks and {size} bytes after {calls} calls")
    return f"{calls} calls of each wrapper leave no reference and no memory"


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    print({"kernels": over_kernels, "wrappers": over_wrappers, "memory": memory}[what](*rest))
