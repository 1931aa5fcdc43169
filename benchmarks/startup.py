# What a program pays before its first formula: the import, and the room on disk.
from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from importlib.metadata import files
from pathlib import Path
from timeit import Timer
from typing import TYPE_CHECKING

from method import Row, Spread, Target, take_turns

if TYPE_CHECKING:
    from importlib.metadata import PackagePath

TITLE = "Start-up and size"
NOTE = "1.00 is a whole interpreter that runs `import math`. Every cell is a fresh process, from start to exit."
REFERENCE = "import math"
OURS = "import kvformulas"
FIRST = "and the first formula"
COLUMNS = [OURS, FIRST, REFERENCE, "import numpy"]
STATEMENTS = {
    REFERENCE: "import math",
    OURS: "import kvformulas",
    FIRST: "import kvformulas; kvformulas.kv_cache_memory_per_layer(1, 2048, 8, 128, 2)",
    "import numpy": "import numpy",
}
FIRST_CALL = """
from time import process_time
import kvformulas
start = process_time()
kvformulas.kv_cache_memory_per_layer(1, 2048, 8, 128, 2)
print(process_time() - start)
"""


def measure(rounds: int) -> list[Row]:
    timers = {name: Timer(lambda statement=statement: run(statement)) for name, statement in STATEMENTS.items()}
    row = take_turns({"measured": "interpreter, start to exit"}, timers, rounds)
    row.seconds["first call, alone"] = [float(run(FIRST_CALL)) for _ in range(rounds)]
    return [row]


def run(statement: str) -> str:
    # -I: neither the current directory nor the environment may lend a module.
    command = [sys.executable, "-I", "-c", statement]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def installed_files() -> list[PackagePath]:
    return [file for file in files("kvformulas") or [] if file.locate().is_file()]


def installed_bytes() -> int:
    return sum(file.locate().stat().st_size for file in installed_files())


def wheel_bytes() -> int:
    """Return the size of the wheel's content, zipped as a wheel is."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in installed_files():
            if file.suffix != ".pyc" and ".." not in file.parts:
                archive.write(Path(file.locate()), str(file))
    return packed.tell()


def targets(rows: list[Row]) -> list[Target]:
    (row,) = rows
    seconds = row.seconds
    # What is left of the allowance of 1.5 times `import math` and 1 ms, round by round.
    over = Spread.of([ours - 1.5 * maths for ours, maths in zip(seconds[OURS], seconds[REFERENCE], strict=True)])
    ratio = Spread.of(row.ratios(OURS, REFERENCE))
    first = Spread.of(seconds["first call, alone"])
    return [
        Target("`import kvformulas`: at most 1.5 times `import math` plus 1 ms", f"{ratio} times", over.median <= 1e-3),
        Target("the first formula: at most 1 ms more", f"{1e3 * first.median:.2f} ms", first.median <= 1e-3),
    ]
