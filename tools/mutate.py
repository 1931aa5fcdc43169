"""Mutation testing of the kernels, and of the oracle that judges them: change one thing, and see if a test notices.

Nothing on the registries mutates Cython. A kernel's body is Python to `ast`, so a mutant is a changed syntax tree,
printed as a `cdef` function under a name of its own; hundreds share an extension module. A mutant of a kernel is killed
by a published vector, by a hostile double or by a sampled point at which it errs by more than its formula's budget; a
mutant of the oracle must be killed by the vectors alone. The survivors must be those of equivalents.json, no more and
no fewer. Run it with the package installed: the budgets are read from the docstrings.
"""

import ast
import copy
import ctypes
import json
import math
import os
import random
import signal
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import click
import numpy as np

from kernels import FLAGS, ROOT, RULES, Kernel, calls_of, compile_module, cython, load, read_kernels
from mutants import KERNEL, ORACLE, Mutant, mutants

TESTS = ROOT / "tests"
sys.path.insert(0, str(TESTS))

import kvformulas
import oracle
import points
import test_hostile
import ulp
from oracle import comparison

EQUIVALENTS = Path(__file__).with_name("equivalents.json")
MODULE = 250  # mutants in one extension module
POINTS = 1000  # sampled points for each formula
LARGEST = 2.0**53  # the whole numbers up to here are exact
SECONDS = 3.0  # of CPU time, before a mutant of the oracle counts as caught in an endless loop

Arguments = tuple[float, ...]
Function = Callable[..., float]


class Vector(NamedTuple):
    arguments: Arguments
    result: float
    ulps: int
    rounded_operand: bool


def number(text: str) -> float:
    return float.fromhex(text) if "x" in text else float(text)


@cache
def vectors() -> dict[str, list[Vector]]:
    """Return the published vectors by formula; schema.json beside them says what the fields mean."""
    found: dict[str, list[Vector]] = {}
    for path in sorted((TESTS / "vectors").glob("*.json")):
        for entry in json.loads(path.read_text()) if path.stem != "schema" else []:
            vector = Vector(
                tuple(map(number, entry["args"])),
                number(entry["result"]),
                entry.get("ulp", 0),
                entry.get("rounded_operand", False),
            )
            found.setdefault(entry["formula"], []).append(vector)
    return found


def same(x: float, y: float) -> bool:
    """Are these the same double, a zero's sign included? Every NaN is one NaN."""
    return (x == y and math.copysign(1.0, x) == math.copysign(1.0, y)) or (math.isnan(x) and math.isnan(y))


# Compiling: each mutant and a copy of every function that reaches it.


def users(name: str, kernels: dict[str, Kernel]) -> list[str]:
    """Return the function and all that call it, directly or not."""
    reached = {name}
    while more := {other for other, kernel in kernels.items() if kernel.calls & reached} - reached:
        reached |= more
    return sorted(reached)


def renamed(tree: ast.FunctionDef, prefix: str, names: Iterable[str]) -> ast.FunctionDef:
    """Return a copy whose own name and calls of `names` carry the prefix."""
    tree = copy.deepcopy(tree)
    tree.name = prefix + tree.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            node.func.id = prefix + node.func.id
    return tree


def as_cython(kernel: Kernel, tree: ast.FunctionDef) -> str:
    """Print a tree as a C-level function of doubles."""
    arguments = ", ".join(f"double {name}" for name in kernel.arguments)
    lines = [f"cdef double {tree.name}({arguments}) noexcept nogil:"]
    lines += [f"    cdef {'int' if name in kernel.counters else 'double'} {name}" for name in kernel.locals]
    lines += [textwrap.indent(ast.unparse(statement), "    ") for statement in tree.body]
    return "\n".join(lines)


def module_text(numbered: Iterable[tuple[int, Mutant]], kernels: dict[str, Kernel]) -> str:
    """Return a Cython module of mutants; its `ADDRESSES` maps (mutant's number, formula) to a C function."""
    bodies, table = [], []
    libm = {"INFINITY", "NAN"}
    for number, mutant in numbered:
        copies = users(mutant.function, kernels)
        for name in copies:
            tree = mutant.tree if name == mutant.function else kernels[name].tree
            libm |= calls_of(tree) - set(kernels) - {"range"}
            bodies.append(as_cython(kernels[name], renamed(tree, f"m{number}_", copies)))
            if kernels[name].topic != RULES:
                table.append(f"    ({number}, '{name}'): <size_t><void*>m{number}_{name},")
    imports = [f"from kvformulas.kernels.{kernel.topic} cimport {name}" for name, kernel in kernels.items()]
    imports.append(f"from libc.math cimport {', '.join(sorted(libm))}")
    return "\n".join(["# cython: cdivision=True", *imports, *bodies, "ADDRESSES = {", *table, "}", ""])


def compiled(chosen: list[Mutant], kernels: dict[str, Kernel], folder: Path) -> list[dict[str, Function]]:
    """Build all mutants; return for each the formulas that it reaches, as functions."""
    numbered = list(enumerate(chosen))

    def build(start: int) -> dict[tuple[int, str], int]:
        source = folder / f"mutants_{start}.pyx"
        source.write_text(module_text(numbered[start : start + MODULE], kernels))
        library = compile_module(cython(source, source.with_suffix(".c")), folder, ["-O1", *FLAGS])
        return load(library).ADDRESSES

    functions: list[dict[str, Function]] = [{} for _ in chosen]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for addresses in pool.map(build, range(0, len(chosen), MODULE)):
            for (number, name), address in addresses.items():
                doubles = [ctypes.c_double] * len(kernels[name].arguments)
                functions[number][name] = ctypes.CFUNCTYPE(ctypes.c_double, *doubles)(address)
    return functions


# Judging the kernels.


class Judge:
    """All the evidence about one formula. Where a mutant answers as the shipped kernel does, the tests have spoken."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.shipped: Function = getattr(kvformulas, name)
        self.budget = ulp.budget(self.shipped.__doc__).ulps
        self.vectors = vectors().get(name, [])
        self.points = [(case, self.shipped(*case)) for case in points.points(name, POINTS)]
        if self.fails_vectors(self.shipped):
            raise click.ClickException(f"{name}, as installed, fails its own vectors: no mutant can be judged")

    @cached_property
    def hostile(self) -> test_hostile.Run:
        return test_hostile.Run(self.name)

    def killer(self, function: Function) -> str | None:
        """Return what kills a function, or None."""
        evidence = {
            "vectors": self.fails_vectors,
            "sampled points": self.fails_points,
            "hostile doubles": self.fails_hostile,
        }
        return next((kind for kind, fails in evidence.items() if fails(function)), None)

    def fails_vectors(self, function: Function) -> bool:
        for vector in self.vectors:
            got = function(*vector.arguments)
            if not same(got, vector.result) and not ulp.error(got, vector.result) <= vector.ulps > 0:
                return True
        return False

    def fails_points(self, function: Function) -> bool:
        for case, shipped in self.points:
            got = function(*case)
            if not same(got, shipped):
                # Whole numbers are exact, whatever the budget: where the kernel is, a mutant must be.
                whole = all(x.is_integer() and abs(x) <= LARGEST for x in (*case, shipped))
                if whole and got != shipped == oracle.value(self.name, case):
                    return True
                if comparison.error(self.name, case, got) > self.budget:
                    return True
        return False

    def fails_hostile(self, function: Function) -> bool:
        """Hold a function to the rules of test_hostile.py: safe values and NaN to the bit, others by their error."""
        run = self.hostile
        got = np.array(list(map(function, *run.columns.tolist())))
        changed = test_hostile.bits(got) != test_hostile.bits(run.got)
        if (changed & ~run.ordinary).any():
            return True
        near = test_hostile.near(got, run.written) | test_hostile.near(got, run.also)
        return any(
            comparison.error(self.name, run.args(i), float(got[i])) > run.allowed(i)
            and not test_hostile.follows_the_power(self.name, run.args(i), float(got[i]))
            for i in np.flatnonzero(changed & ~near)
        )


def kernel_killers(chosen: list[Mutant], kernels: dict[str, Kernel]) -> Iterator[str | None]:
    judges = {name: Judge(name) for name in points.ARGUMENTS}
    with tempfile.TemporaryDirectory() as folder:
        for functions in compiled(chosen, kernels, Path(folder)):
            killer = None
            for name, function in functions.items():
                killer = killer or judges[name].killer(function)
            yield killer


# Judging the oracle.


def oracle_files() -> dict[str, ast.Module]:
    """Return the oracle's definitions by module: what all topics share, then each topic."""
    names = ["context", *(topic.__name__.rpartition(".")[2] for topic in oracle.TOPICS)]
    return {name: ast.parse((TESTS / "oracle" / f"{name}.py").read_text()) for name in names}


def functions_of(module: ast.Module) -> list[ast.FunctionDef]:
    """Return a file's functions, but `reals`, which makes the context: a precision is no part of a definition."""
    return [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name != "reals"]


def with_mutant(files: dict[str, ast.Module], mutant: Mutant) -> dict[str, Callable[..., object]]:
    """Execute the oracle with one function changed; return the formulas that the change can reach."""
    home = next(name for name, module in files.items() if any(f.name == mutant.function for f in functions_of(module)))
    reached: dict[str, Callable[..., object]] = {}
    shared: dict[str, object] = {}
    for name, module in files.items():
        if home not in ("context", name):
            continue
        body = [
            mutant.tree if isinstance(node, ast.FunctionDef) and node.name == mutant.function else node
            for node in module.body
            # The worked examples name the functions, and are no part of them.
            if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXAMPLES")
        ]
        namespace: dict[str, object] = {}
        changed = ast.fix_missing_locations(ast.Module(body, []))
        exec(compile(changed, f"<mutant of oracle/{name}.py>", "exec"), namespace)
        if name == "context":
            shared = {function.name: namespace[function.name] for function in functions_of(module)}
        else:
            namespace.update({name: value for name, value in shared.items() if name in namespace})
            reached |= {f.name: namespace[f.name] for f in functions_of(module) if f.name in points.ARGUMENTS}
    return reached


@contextmanager
def time_limit() -> Iterator[None]:
    def expired(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, expired)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def oracle_killer(formulas: dict[str, Callable[..., object]]) -> str | None:
    """Return what kills these definitions: a vector that they get wrong, an exception, or an endless loop."""
    try:
        with patch.object(oracle, "formula", formulas.__getitem__), time_limit():
            for name in formulas:
                for vector in vectors().get(name, []):
                    agrees = same(oracle.double(name, vector.arguments), vector.result)
                    if agrees is vector.rounded_operand:
                        return "vectors"
    except TimeoutError:
        return "endless loop"
    except Exception:
        return "exception"
    return None


def oracle_killers(chosen: list[Mutant], files: dict[str, ast.Module]) -> Iterator[str | None]:
    for mutant in chosen:
        try:
            formulas = with_mutant(files, mutant)
        except Exception:
            yield "exception"
        else:
            yield oracle_killer(formulas)


# Reporting.


class Equivalent(NamedTuple):
    """A mutant that no test can tell from the original, and why."""

    function: str
    before: str
    after: str


def equivalents(part: str) -> dict[Equivalent, str]:
    """Read the list: groups of mutants that survive for the same reason."""
    groups = json.loads(EQUIVALENTS.read_text())[part]
    listed = [
        (Equivalent(mutant["function"], mutant["before"], mutant["after"]), group["reason"])
        for group in groups
        for mutant in group["mutants"]
    ]
    if repeated := [key for key, count in Counter(key for key, _ in listed).items() if count > 1]:
        raise click.ClickException(f"listed twice: {repeated[0]}")
    return dict(listed)


def sampled(found: list[Mutant], count: int | None, seed: int) -> list[Mutant]:
    """Return all mutants, or `count` of them and at least one of each function, in the order in which they came."""
    if count is None:
        return found
    generator = random.Random(seed)
    shuffled = generator.sample(found, len(found))
    first = list({mutant.function: mutant for mutant in shuffled}.values())
    rest = [mutant for mutant in shuffled if mutant not in first]
    chosen = {mutant.key for mutant in [*first, *rest[: max(0, count - len(first))]]}
    return [mutant for mutant in found if mutant.key in chosen]


def report(part: str, found: list[Mutant], chosen: list[Mutant], killers: Iterable[str | None]) -> dict[str, object]:
    """Print what survived, and return the result with its faults: what is neither killed nor listed, or wrongly so."""
    listed = equivalents(part)
    keys = {mutant.key for mutant in found}
    faults = [f"listed, but no such mutant: {' | '.join(key)}" for key in listed if key not in keys]
    killed: Counter[str] = Counter()
    survived: list[Mutant] = []
    for mutant, killer in zip(chosen, killers, strict=True):
        if killer is None:
            survived.append(mutant)
            if mutant.key not in listed:
                faults.append(f"survives: {mutant}")
        else:
            killed[killer] += 1
            if mutant.key in listed:
                faults.append(f"listed as equivalent, but killed by {killer}: {mutant}")
    unlisted = [mutant for mutant in survived if mutant.key not in listed]
    score = killed.total() / (killed.total() + len(unlisted))
    click.echo(
        f"{part}: {len(chosen)} of {len(found)} mutants, {killed.total()} killed, "
        f"{len(survived) - len(unlisted)} equivalent, {len(unlisted)} survive; score {score:.2%} of the non-equivalent"
    )
    for fault in faults:
        click.echo(f"  {fault}")
    return {
        "mutants": len(chosen),
        "of": len(found),
        "killed": killed.total(),
        "killed_by": dict(sorted(killed.items())),
        "survive": [str(mutant) for mutant in unlisted],
        "score": score,
        "functions": functions_table(chosen, survived),
        "equivalent": [
            {"function": m.function, "kind": m.kind, "before": m.before, "after": m.after, "reason": listed[m.key]}
            for m in survived
            if m.key in listed
        ],
        "faults": faults,
    }


def functions_table(chosen: list[Mutant], survived: list[Mutant]) -> dict[str, dict[str, int]]:
    total, left = (Counter(mutant.function for mutant in some) for some in (chosen, survived))
    return {name: {"mutants": total[name], "killed": total[name] - left[name]} for name in total}


@click.command(help=__doc__)
@click.option("--kernels", "parts", flag_value="kernels", help="Mutants of the kernels only.")
@click.option("--oracle", "parts", flag_value="oracle", help="Mutants of the oracle only.")
@click.option("--sample", type=click.IntRange(min=1), help="Mutants of each part; at least one of each function.")
@click.option("--seed", default=0, show_default=True, help="Which sample.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the result as JSON.")
def main(parts: str | None, sample: int | None, seed: int, output: Path | None) -> None:
    results = {}
    if parts != "oracle":
        kernels = read_kernels()
        found = [mutant for kernel in kernels.values() for mutant in mutants(kernel.tree, KERNEL)]
        chosen = sampled(found, sample, seed)
        results["kernels"] = report("kernels", found, chosen, kernel_killers(chosen, kernels))
    if parts != "kernels":
        files = oracle_files()
        functions = [function for module in files.values() for function in functions_of(module)]
        found = [mutant for function in functions for mutant in mutants(function, ORACLE)]
        chosen = sampled(found, sample, seed)
        results["oracle"] = report("oracle", found, chosen, oracle_killers(chosen, files))
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    if any(result["faults"] for result in results.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
