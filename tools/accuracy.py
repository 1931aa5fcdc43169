"""Measure the error of every formula and write the table that the documentation publishes.

    python tools/accuracy.py --points 1000000 --output docs/data/accuracy.json

How it can be both fast and honest: every point is compared with the second reference (tests/reference), computed by
flint's ball arithmetic in 320 bits. A ball provably holds the exact value, so the distance from the kernel's double to
the far end of the ball bounds the error from above, and the balls are some 2**-250 of the value wide, so the bound is
the error to all digits that are printed. No point is screened out. The worst points of each formula are then measured
again with the oracle (tests/oracle), and that figure is the published one; a test compares the two figures.

A gate, a count and a parity are right or wrong: the error of a right one is 0, of a wrong one infinite. Where the
kernel's answer is not the exact one, the oracle's rule for jumps (tests/oracle/comparison.py) decides.

The exit status is 1 if any formula exceeds the budget in its docstring.
"""

import argparse
import heapq
import inspect
import json
import math
import multiprocessing
import os
import platform
import sys
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from flint import arb, ctx

import kvformulas
import points
import reference
import ulp
from oracle import comparison

_CHUNK = 50_000
_REMEASURED = 32
_SMALLEST_NORMAL = 2.0**-1022


def bound(name, args, got):
    """Return an upper bound of the error, in ULP, that is tight to many digits; `ctx.prec` must be reference.BITS."""
    balls = [arb(x) for x in args]
    exact = arb(reference.formula(name)(*balls))
    if exact == got:
        return 0.0
    near = float(exact)
    if name in comparison.DECISIONS or not _SMALLEST_NORMAL < abs(near) < math.inf > abs(got):
        return comparison.error(name, args, got)
    largest = comparison.LARGEST_TERM.get(name)
    unit = 2.0**-52 * abs(near if largest is None else float(largest(*balls)))
    error = float((exact - got).abs_upper()) / unit
    # A ball over a jump, or too wide for a remainder, tells nothing: the oracle decides.
    sure = comparison.SURE if name in comparison.STEPS else comparison.LARGEST_BUDGET
    return error if error <= sure else comparison.error(name, args, got)


def in_gaps(name, args, error):
    """Return an error counted in gaps between the doubles at the value (or the largest term) instead of in ULP."""
    exact = comparison.value(name, args)
    largest = comparison.largest_term(name, args)
    scale = exact if largest is None else largest
    if not error or not math.isfinite(error):
        return error
    return float(error * ulp.unit(scale) / Fraction(ulp.gap(scale)))


def measure(task):
    """Return one formula's row of the table."""
    name, count, budget = task
    ctx.prec = reference.BITS
    kernel = getattr(kvformulas, name)
    worst, total = [], 0.0
    for seed, start in enumerate(range(0, count, _CHUNK)):
        rows = points.points(name, min(_CHUNK, count - start), seed)
        errors = [bound(name, args, kernel(*args)) for args in rows]
        total += math.fsum(errors)
        worst = heapq.nlargest(_REMEASURED, [*worst, *zip(errors, rows, strict=True)])
    exact = [(comparison.error(name, args, kernel(*args)), args) for _, args in worst]
    maximum, args = max(exact)
    return {
        "formula": name,
        "budget": budget.ulps,
        "unit": "ULP of the largest term" if budget.of_largest_term else "ULP",
        "maximum": maximum,
        "maximum_in_gaps": max(in_gaps(name, row, error) for error, row in exact),
        "mean": total / count,
        "worst_arguments": [x.hex() for x in args] if maximum else [],
        "worst_result": kernel(*args).hex() if maximum else "",
        "points": count,
        "within_budget": maximum <= budget.ulps,
    }


def table(rows):
    """Return the rows as Markdown."""
    lines = ["| formula | budget | maximum | in gaps | mean | worst arguments |", "|---|--:|--:|--:|--:|---|"]
    for row in rows:
        mark = "" if row["within_budget"] else " **exceeded**"
        term = " of the largest term" if row["unit"] != "ULP" else ""
        worst = ", ".join(row["worst_arguments"])
        lines.append(
            f"| `{row['formula']}` | {row['budget']:g}{term} | {row['maximum']:.4f}{mark} "
            f"| {row['maximum_in_gaps']:.4f} | {row['mean']:.4f} "
            f"| {worst} |"
        )
    return "\n".join(lines)


def main():
    """Measure, print and write; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=1_000_000, help="points a formula")
    parser.add_argument("--output", type=Path, help="the JSON file to write")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("formulas", nargs="*", default=list(points.ARGUMENTS), help="formulas (all by default)")
    options = parser.parse_args()
    tasks = [(name, options.points, ulp.budget(inspect.getdoc(getattr(kvformulas, name)))) for name in options.formulas]
    with multiprocessing.Pool(options.jobs) as pool:
        rows = list(pool.imap(measure, tasks))
    text = f"Error in ULP (2**-52 of the value), sampled over {options.points:,} points a formula."
    print(f"{text}\n\n{table(rows)}")
    if options.output:
        result = {
            "text": text,
            "machine": {
                "processor": platform.machine(),
                "system": platform.system(),
                "libc": " ".join(platform.libc_ver()),
                "compiler": platform.python_compiler(),
                "python": platform.python_version(),
            },
            "versions": {package: version(package) for package in ("kvformulas", "mpmath", "python-flint", "numpy")},
            "formulas": rows,
        }
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    exceeded = [row["formula"] for row in rows if not row["within_budget"]]
    if exceeded:
        print(f"\nbudget exceeded: {', '.join(exceeded)}", file=sys.stderr)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
