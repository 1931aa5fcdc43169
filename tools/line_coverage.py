"""Which lines the tests reach: of the Python files, and, in a build with line tracing, of the kernels and wrappers.

The traced build has no optimisation and lives in a temporary folder, from which the tests import it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = [
    "arguments", "catalog", "cli", "config_layouts", "import", "inventory", "plan", "replay",
    "runtime", "speculate", "vectors", "worked_examples",
]  # fmt: skip
WANTED = 98.0


def traced_build(folder: Path) -> Path:
    """Build the package in place in a copy of the sources, with line tracing, and return the copy's src."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "*.c", "*.egg-info"))
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    run = subprocess.run(
        command, cwd=folder, env=os.environ | {"KVFORMULAS_LINETRACE": "1"}, capture_output=True, text=True, check=False
    )
    if run.returncode:
        sys.exit(run.stdout + run.stderr)
    return folder / "src"


def main() -> int:
    """Run the tests under coverage and print the report; fail below the wanted share."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        source = traced_build(folder)
        # Cython names a kernel's file without its folder, and looks it up on the path.
        sys.path[:0] = [str(source)]
        sys.path.append(str(source / "kvformulas" / "kernels"))
        os.environ["PYTHONPATH"] = str(source)
        os.chdir(folder)
        config = folder / "coverage.ini"
        config.write_text(
            f"[run]\nplugins = Cython.Coverage\nsource = {source}\ndata_file = {folder / 'data'}\n"
            # The loops of the array twins are C++, which the trace does not reach.
            "[report]\nshow_missing = true\nomit = */ufuncs.*\n"
            "exclude_lines =\n    cdef inline\n    if __name__ == .__main__.:\n"
        )
        measured = coverage.Coverage(config_file=str(config))
        measured.start()
        status = pytest.main(
            ["-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", f"-c{ROOT / 'pyproject.toml'}"]
            + [str(ROOT / "tests" / f"test_{test}.py") for test in TESTS]
        )
        measured.stop()
        reached = measured.report()
    if status:
        return int(status)
    print(f"{reached:.1f}% of the lines reached, {WANTED}% wanted")
    return int(reached < WANTED)


if __name__ == "__main__":
    sys.exit(main())
