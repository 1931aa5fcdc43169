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
from kernels import FLAGS, ROOT, SRC, compile_module, cython, formulas, load, read_kernels

EXERCISE = Path(__file__).with_name("exercise.py")
UNDEFINED = (
    "-fsanitize=undefined,float-cast-overflow",
    "-fno-sanitize=float-divide-by-zero",  # IEEE 754 defines it, and the kernels rely on it
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
)
ADDRESS = ("-fsanitize=address", "-fno-omit-frame-pointer", "-g")

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
    kernels = formulas(read_kernels())
    lines = ["# cython: cdivision=True"]
    lines += [f"from kvformulas.kernels.{kernel.topic} cimport {name} as c_{name}" for name, kernel in kernels.items()]
    for name, kernel in kernels.items():
        lines += [
            f"def {name}(const double[:, ::1] points, double[::1] results):",
            "    cdef Py_ssize_t i",
            "    with nogil:",
            "        for i in range(results.shape[0]):",
            f"            results[i] = c_{name}({', '.join(f'points[{j}, i]' for j in range(len(kernel.arguments)))})",
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
        raise Fault((done.stdout + done.stderr)[-4000:] or f"exit status {done.returncode}")
    return done.stdout.strip().splitlines()[-1]


def runtime_library(name: str) -> str:
    return subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()


class Builds:
    """The C files of the tree, translated once, and packages compiled of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        loops = folder / "loops.pyx"
        loops.write_text(loops_text())
        sources = [loops, *sorted((SRC / "kvformulas").glob("*.pyx"))]
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


def ubsan(builds: Builds) -> str:
    library = builds.loops("ubsan", ["-O1", *UNDEFINED])
    return child(library.parent, "kernels", str(library), UBSAN_OPTIONS="print_stacktrace=1")


def asan(builds: Builds) -> str:
    home = builds.package("asan", ["-O1", *ADDRESS, *UNDEFINED, *FLAGS])
    return child(
        home,
        "wrappers",
        LD_PRELOAD=runtime_library("libasan.so"),
        PYTHONMALLOC="malloc",  # each object in a block of its own, which ASan can watch
        ASAN_OPTIONS="detect_leaks=0",  # CPython leaks on exit by design; the memory check looks for ours
    )


def memory(builds: Builds, calls: int) -> str:
    return child(builds.package("plain", ["-O1", *FLAGS]), "memory", str(calls))


def has_v3() -> bool:
    return set(Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split()) >= V3


def bits(builds: Builds, count: int) -> str:
    sys.path.insert(0, str(ROOT / "tests"))
    from exercise import arguments_of

    if not which("clang"):
        raise Fault("clang is not installed (Debian: apt-get install clang)")
    chosen = {name: build for name, build in BUILDS.items() if "v3" not in name or has_v3()}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        libraries = pool.map(lambda item: builds.loops(item[0], item[1][1], item[1][0]), chosen.items())
        modules = dict(zip(chosen, map(load, libraries), strict=True))
    total = 0
    for name, kernel in formulas(read_kernels()).items():
        arguments = np.ascontiguousarray(arguments_of(name, len(kernel.arguments), count))
        total += arguments.shape[1]
        reference = None
        for build, module in modules.items():
            results = np.empty(arguments.shape[1])
            getattr(module, name)(arguments, results)
            results[np.isnan(results)] = np.nan  # a NaN's sign and payload are not promised
            pattern = results.view(np.uint64)
            if reference is None:
                reference = pattern
            elif (different := np.flatnonzero(pattern != reference)).size:
                first = different[0]
                values = [float(value).hex() for value in arguments[:, first]]
                raise Fault(
                    f"{name}({', '.join(values)}) is {float(results[first]).hex()} by {build}, "
                    f"{float(reference.view(np.float64)[first]).hex()} by {next(iter(modules))}; "
                    f"{different.size} of {arguments.shape[1]} points differ"
                )
    without = "" if has_v3() else " (this CPU cannot run x86-64-v3: left out)"
    return f"{total} points of {len(formulas(read_kernels()))} formulas, the same bits from {', '.join(chosen)}{without}"


@contextmanager
def translated() -> Iterator[Builds]:
    with tempfile.TemporaryDirectory() as folder:
        yield Builds(Path(folder))


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer calls and points: what CI runs.")
def main(quick: bool) -> None:
    calls, count = (20_000, 2_000) if quick else (1_000_000, 20_000)
    failed = False
    with translated() as builds:
        checks: dict[str, Callable[[], str]] = {
            "ubsan": lambda: ubsan(builds),
            "asan": lambda: asan(builds),
            "memory": lambda: memory(builds, calls),
            "bits": lambda: bits(builds, count),
        }
        for name, check in checks.items():
            try:
                click.echo(f"ok      {name}: {check()}")
            except (Fault, RuntimeError) as fault:
                failed = True
                click.echo(f"FAILED  {name}: {fault}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
