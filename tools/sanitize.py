"""What a compiler can find: undefined behaviour, wild memory, leaks, and results that depend on how they were compiled.

Everything is built from the tree into a temporary folder. Each check ends in one line, `ok` or `FAILED`.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree, ignore_patterns, which

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from conftest import CONTRACT
from exercise import arguments_of, run_loop
from kernels import FLAGS, ROOT, SRC, compile_module, cython, load

EXERCISE = Path(__file__).with_name("exercise.py")
UNDEFINED = (
    "-fsanitize=undefined,float-cast-overflow",
    "-fno-sanitize=float-divide-by-zero",  # IEEE 754 defines it, and the kernels rely on it
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
)
ADDRESS = ("-fsanitize=address", "-fno-omit-frame-pointer", "-g")
MODULES = (*CONTRACT, "_replay", "capi")  # all that exercise.py runs
FORMULAS = {name: arguments for names in CONTRACT.values() for name, arguments in names.items()}

# The first is what the others are compared with.
BUILDS = {
    "gcc -O0": ("gcc", ["-O0"]),
    "gcc -O2": ("gcc", ["-O2"]),
    "gcc -O3": ("gcc", ["-O3"]),
    "gcc -O3 -march=x86-64-v3": ("gcc", ["-O3", "-march=x86-64-v3"]),
    "clang -O3": ("clang", ["-O3"]),
}
V3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}


class Fault(Exception):
    """A check found something; the text says what."""


def loops_text() -> str:
    """Return a Cython module that runs each kernel over arrays, inlined, so that the optimiser does all that it can."""
    lines = ["# cython: cdivision=True"]
    for topic, names in CONTRACT.items():
        lines += [f"from kvformulas.kernels.{topic} cimport {name} as c_{name}" for name in names]
    for name, arguments in FORMULAS.items():
        passed = ", ".join(f"points[{j} * count + i]" for j in range(len(arguments)))
        lines += [
            f"def {name}(size_t points_at, size_t results_at, Py_ssize_t count):",
            "    cdef const double *points = <const double *>points_at",
            "    cdef double *results = <double *>results_at",
            "    cdef Py_ssize_t i",
            "    for i in range(count):",
            f"        results[i] = c_{name}({passed})",
        ]
    return "\n".join([*lines, ""])


def child(folder: Path, *arguments: str, **environment: str) -> str:
    """Run exercise.py in a process of its own on the package in the folder, and return its last line."""
    command = [sys.executable, EXERCISE, *arguments]
    paths = os.pathsep.join(map(str, (folder, ROOT / "tests")))
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        # A sanitizer says first what is wrong; Python's own traceback is short.
        raise Fault((done.stdout + done.stderr)[:4000] or f"exit status {done.returncode}")
    return done.stdout.strip().splitlines()[-1]


def runtime_library(name: str) -> str:
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


class Builds:
    """The C files of the tree, translated once, and packages compiled of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        loops = folder / "loops.pyx"
        loops.write_text(loops_text())
        sources = [loops, *(SRC / "kvformulas" / f"{name}.pyx" for name in MODULES)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.c_files = dict(
                zip(
                    [source.stem for source in sources],
                    pool.map(lambda source: cython(source, folder / f"{source.stem}.c"), sources),
                    strict=True,
                )
            )

    def package(self, name: str, flags: list[str]) -> Path:
        """Build kvformulas with the flags and return the folder to import it from."""
        home = self.folder / name
        copytree(SRC / "kvformulas", home / "kvformulas", ignore=ignore_patterns("*.so", "*.c", "__pycache__"))
        flags = [*flags, f"-I{np.get_include()}"]
        modules = [c_file for stem, c_file in self.c_files.items() if stem != "loops"]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda c_file: compile_module(c_file, home / "kvformulas", flags), modules))
        return home

    def loops(self, name: str, flags: list[str], compiler: str = "gcc") -> Path:
        return compile_module(self.c_files["loops"], self.folder / name.replace(" ", "_"), [*flags, *FLAGS], compiler)


def ubsan(builds: Builds, every: int) -> str:
    library = builds.loops("ubsan", ["-O0", *UNDEFINED])
    return child(library.parent, "kernels", str(library), str(every), UBSAN_OPTIONS="print_stacktrace=1")


def asan(builds: Builds, every: int) -> str:
    home = builds.package("asan", ["-O0", *ADDRESS, *UNDEFINED, *FLAGS])
    environment = {
        "LD_PRELOAD": runtime_library("libasan.so"),
        "PYTHONMALLOC": "malloc",  # each object in a block of its own, which ASan can watch
        "ASAN_OPTIONS": "detect_leaks=0",  # CPython leaks on exit by design; the memory check looks for ours
    }
    return "; ".join(child(home, what, str(every), **environment) for what in ("wrappers", "replay"))


def memory(builds: Builds, calls: int) -> str:
    return child(builds.package("plain", ["-O1", *FLAGS]), "memory", str(calls))


def has_v3() -> bool:
    return set(Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split()) >= V3


def bits(builds: Builds, every: int) -> str:
    if not which("clang"):
        raise Fault("clang is not installed (Debian: apt-get install clang)")
    chosen = {name: build for name, build in BUILDS.items() if "v3" not in name or has_v3()}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        libraries = pool.map(lambda item: builds.loops(item[0], item[1][1], item[1][0]), chosen.items())
        modules = dict(zip(chosen, map(load, libraries), strict=True))
    total = 0
    for name, names in FORMULAS.items():
        arguments = arguments_of(name, len(names), every)
        total += arguments.shape[1]
        results = {build: run_loop(module, name, arguments) for build, module in modules.items()}
        first, *others = results
        for other in others:
            if fault := difference(arguments, results[first], results[other]):
                raise Fault(f"{name}, {first} against {other}: {fault}")
    without = "" if has_v3() else " (this CPU cannot run x86-64-v3: left out)"
    return f"{total} points through the kernels, the same bits from {', '.join(chosen)}{without}"


def difference(arguments: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> str | None:
    """Say where the bits differ; a NaN is a NaN, as its sign and payload are not promised."""
    same = (ours.view(np.uint64) == theirs.view(np.uint64)) | (np.isnan(ours) & np.isnan(theirs))
    if same.all():
        return None
    i = np.flatnonzero(~same)[0]
    values = ", ".join(value.hex() for value in arguments[:, i].tolist())
    return f"({values}) is {ours[i].item().hex()} and {theirs[i].item().hex()}; {(~same).sum()} of {len(same)} differ"


@contextmanager
def translated() -> Iterator[Builds]:
    with tempfile.TemporaryDirectory() as folder:
        yield Builds(Path(folder))


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer calls and points: what CI runs.")
def main(quick: bool) -> None:
    calls, every = (20_000, 7) if quick else (1_000_000, 1)
    with translated() as builds, ThreadPoolExecutor(os.cpu_count()) as pool:
        checks: dict[str, Callable[[], str]] = {
            "ubsan": lambda: ubsan(builds, every),
            "asan": lambda: asan(builds, every),
            "memory": lambda: memory(builds, calls),
            "bits": lambda: bits(builds, every),
        }
        failed = False
        for name, check in [(name, pool.submit(check)) for name, check in checks.items()]:
            try:
                click.echo(f"ok      {name}: {check.result()}")
            except (Fault, RuntimeError) as fault:
                failed = True
                click.echo(f"FAILED  {name}: {fault}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
