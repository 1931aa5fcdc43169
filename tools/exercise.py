"""What sanitize.py runs in a process of its own: hostile doubles and odd traces through everything, very many calls."""

import ctypes
import gc
import inspect
import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import repeat
from pathlib import Path
from types import ModuleType

import numpy as np

import hostile
import points
from conftest import CONTRACT
from kernels import load

POINTS = 20_000  # sampled points for each formula, beside the hostile ones

# What a run may add to the memory that is in use: caches and free lists, not one object or byte a call.
SPARE_BLOCKS = 64
SPARE_BYTES = 4 << 20


def wrappers() -> Iterator[tuple[str, Callable[..., float]]]:
    import kvformulas

    home = os.environ["PYTHONPATH"].partition(os.pathsep)[0]
    assert Path(kvformulas.__file__).is_relative_to(home), "another kvformulas is in the way"
    for names in CONTRACT.values():
        for name in names:
            yield name, getattr(kvformulas, name)


def arguments_of(name: str, arity: int, every: int) -> np.ndarray:
    """Return the hostile cases and sampled points, or one in `every`: a row an argument, a column a point."""
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


def by_address(name: str, arity: int) -> Callable[..., float]:
    """Return the C function behind capi's capsule."""
    from kvformulas import capi

    signature = f"double ({', '.join(['double'] * arity)})"
    address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )(capi.__pyx_capi__[name], signature.encode())
    return ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arity)(address)


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
        values = (2.5, 0.75, 3, 4, 5, 6, 7)[: len(arguments)]
        assert by_address(name, len(arguments))(*values) == wrapper(*values)
    return f"{total} calls of the wrappers, and every kind of failing call"


def over_replay(every: str) -> str:
    import traces
    from kvformulas.replay import POLICIES, TraceError, read_trace, replay

    source = random.Random(0)
    replay(read_trace(traces.MOONCAKE), POLICIES, (0, 1, 10, 100, 1000, 10**6), threads=2)
    odd = 2000 // int(every)
    for _ in range(odd):
        rows = [traces.row(source.choices(range(10), k=source.randrange(6))) for _ in range(20)]
        replay(traces.read("\n".join(rows).encode()), POLICIES, range(12), threads=1)
    lines = traces.MOONCAKE.read_bytes().splitlines()
    refused = 0
    for _ in range(10 * odd):
        try:
            traces.read(traces.mutate(source, source.choice(lines)))
        except TraceError:
            refused += 1
    return f"{odd} odd traces replayed, {refused} of {10 * odd} damaged rows refused"


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Calls:
    """Calls of one wrapper: nine in ten with good arguments of every kind, one in ten with bad ones."""

    def __init__(self, wrapper: Callable[..., float], count: int) -> None:
        self.wrapper = wrapper
        names = list(inspect.signature(wrapper).parameters)
        self.good: list[tuple[object, ...]] = [
            tuple(1.5 + i for i in range(len(names))),
            tuple(10**6 + i for i in range(len(names))),
            tuple(Number(2.5 + i) for i in range(len(names))),
        ]
        self.named = dict(zip(names, self.good[0], strict=True))
        self.bad = list(failing_calls(names, self.good[0][0]))
        self.each_good = count * 9 // 10 // (len(self.good) + 1)
        self.each_bad = count // 10 // len(self.bad)

    def __call__(self) -> None:
        for arguments in self.good:
            for _ in repeat(None, self.each_good):
                self.wrapper(*arguments)
        for _ in repeat(None, self.each_good):
            self.wrapper(**self.named)
        for arguments, named in self.bad:
            for _ in repeat(None, self.each_bad):
                with suppress(TypeError, ValueError, OverflowError):
                    self.wrapper(*arguments, **named)

    def references(self) -> list[int]:
        """Return the reference counts of all that is passed, but None, which everybody refers to."""
        passed = [*self.good, *(arguments for arguments, _ in self.bad)]
        return [sys.getrefcount(value) for arguments in passed for value in arguments if value is not None]


def memory(count: str) -> str:
    """Call each wrapper so often, in two halves: the second may add nothing to what the first left."""
    for name, wrapper in wrappers():
        calls = Calls(wrapper, int(count) // 2)
        references = calls.references()
        calls()
        gc.collect()
        blocks, size = sys.getallocatedblocks(), resident()
        calls()
        gc.collect()
        blocks, size = sys.getallocatedblocks() - blocks, resident() - size
        if calls.references() != references:
            raise AssertionError(f"{name} changes the reference count of an argument")
        result, fresh = wrapper(*calls.good[0]), float("2.75")
        if sys.getrefcount(result) != sys.getrefcount(fresh):
            raise AssertionError(f"{name} returns a float with a reference to spare")
        if blocks > SPARE_BLOCKS or size > SPARE_BYTES:
            raise AssertionError(f"{name} leaves {blocks} blocks and {size} bytes after {count} calls")
    return f"{count} calls of each wrapper leave no reference and no memory"


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    print({"kernels": over_kernels, "wrappers": over_wrappers, "memory": memory, "replay": over_replay}[what](*rest))
