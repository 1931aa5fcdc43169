"""Measure kvformulas side by side with what its users would pick instead: python benchmarks/run.py [--quick].

Everything is a ratio within one run on one machine. The competitors take turns in batches of a few milliseconds, in
a shuffled order; each turn gives one ratio to the reference; the table shows their median and, in parentheses, their
quartiles, pooled over several fresh processes. A target that is missed is reported, never an error.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tabulate import tabulate

import arrays
import calls
import loops
import method
import startup
import threads

SECTIONS = {section.__name__: section for section in (calls, loops, arrays, threads, startup)}
PACKAGES = ("kvformulas", "cython", "numpy", "numba", "numexpr", "pyperf")
METHOD = (
    "Every figure is a ratio within this run: competitors take turns in batches of at least "
    f"{1000 * method.BATCH_SECONDS:g} ms, in shuffled order, {{rounds}} turns in each of {{processes}} fresh "
    f"process(es), by the clock {method.CLOCK.__name__} (threads and start-up: perf_counter). Shown is the median of "
    "the turns' ratios, with their quartiles in parentheses. Below 1 is faster than the reference. Nothing here holds "
    "for another machine."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer turns in one process: minutes become seconds")
    parser.add_argument("--only", choices=SECTIONS, help="one section")
    parser.add_argument("--output", type=Path, default=Path("build/benchmarks"), metavar="DIR", help="%(default)s")
    options = parser.parse_args()
    processes, rounds = (1, 7) if options.quick else (3, 31)

    machine = describe_machine()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as built:
        method.build(Path(__file__).parent, Path(built))
        os.environ["NUMBA_CACHE_DIR"] = str(Path(built, "numba"))
        results = {}
        for name, section in SECTIONS.items():
            if options.only in (None, name):
                print(f"{section.TITLE} …", file=sys.stderr)
                results[section] = (
                    startup.measure(3 * rounds)
                    if section is startup
                    else method.in_fresh_processes(section.measure, processes, built, rounds)
                )
    machine["load average after"] = load_average()

    how = METHOD.format(rounds=rounds, processes=processes)
    targets = [target for section, rows in results.items() for target in section.targets(rows)]
    report = "\n\n".join(
        [
            "# Benchmarks",
            how,
            "## The machine",
            tabulate(machine.items(), ("", ""), "pipe", disable_numparse=True),
            "## Targets",
            targets_table(targets),
            *(f"## {section.TITLE}\n\n{section.NOTE}\n\n{table(section, rows)}" for section, rows in results.items()),
            f"Installed {startup.installed_bytes():,} bytes, as a wheel {startup.wheel_bytes():,}.\n",
        ]
    )
    data = {
        "method": how,
        "machine": machine,
        "targets": [vars(target) for target in targets],
        "sections": {section.__name__: as_data(section, rows) for section, rows in results.items()},
        "installed_bytes": startup.installed_bytes(),
        "wheel_bytes": startup.wheel_bytes(),
    }
    options.output.mkdir(parents=True, exist_ok=True)
    name = "benchmarks" if with_gil() else "benchmarks_free_threaded"
    (options.output / f"{name}.md").write_text(report, encoding="utf-8")
    (options.output / f"{name}.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    print(report)


def describe_machine() -> dict[str, str]:
    # pyperf knows where each system keeps these.
    with tempfile.TemporaryDirectory() as folder:
        collected = Path(folder, "metadata.json")
        command = [sys.executable, "-m", "pyperf", "collect_metadata", "-o", str(collected)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        metadata: dict[str, Any] = json.loads(collected.read_text(encoding="utf-8"))["metadata"]
    compiler = (sysconfig.get_config_var("CC") or "cl").split()[0]
    compiler_says = subprocess.run([compiler, "--version"], check=False, capture_output=True, text=True)
    return {
        "processor": metadata.get("cpu_model_name") or platform.processor(),
        "cores": str(metadata.get("cpu_count", os.cpu_count())),
        "system": metadata.get("platform", platform.platform()),
        "Python": f"{platform.python_version()}, {platform.python_compiler()}, GIL {'on' if with_gil() else 'off'}",
        "compiler": (compiler_says.stdout or compiler_says.stderr).partition("\n")[0],
        "flags": " ".join(method.FLAGS),
        **{package: installed_version(package) for package in PACKAGES},
        "load average before": load_average(),
    }


def with_gil() -> bool:
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def load_average() -> str:
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"


def targets_table(targets: list[method.Target]) -> str:
    verdict = {True: "met", False: "**missed**", None: "not measured"}
    lines = [(target.text, target.measured, verdict[target.met]) for target in targets]
    return tabulate(lines, ("target", "measured", ""), "pipe", disable_numparse=True)


def table(section: Any, rows: list[method.Row]) -> str:
    absent = {
        column: "not built" if needed.startswith("kvformulas") else "not installed"
        for column in section.COLUMNS
        for needed in ("kvformulas.ufuncs", "numba", "numexpr")
        if column.startswith(needed) and not method.there(needed)
    }

    def cell(row: method.Row, column: str) -> str:
        if column not in row.seconds:
            return absent.get(column, "-")
        return str(method.Spread.of(row.ratios(column, section.REFERENCE))) if column != section.REFERENCE else "1"

    lines = [[*row.labels.values(), *(cell(row, column) for column in section.COLUMNS)] for row in rows]
    return tabulate(lines, (*rows[0].labels, *section.COLUMNS), "pipe", disable_numparse=True)


def as_data(section: Any, rows: list[method.Row]) -> list[dict[str, Any]]:
    return [
        row.labels
        | {
            "reference": section.REFERENCE,
            "ratios": {
                name: vars(method.Spread.of(row.ratios(name, section.REFERENCE)))
                for name in row.seconds
                if name != section.REFERENCE
            },
        }
        for row in rows
    ]


if __name__ == "__main__":
    main()
