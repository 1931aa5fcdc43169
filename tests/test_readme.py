# The README's examples are run as they are written, and print what it says they print.
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from build_ext import build

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MOONCAKE = ROOT / "tests" / "data" / "mooncake_conversation_1000.jsonl"
pytestmark = pytest.mark.checkout


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_python_example(tmp_path):
    (source,), (printed,) = blocks("python"), blocks("text")
    run = subprocess.run([sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == printed


def test_cython_example(tmp_path):
    (source,) = blocks("cython")
    victim = build(source, tmp_path, "readme_example").victim
    assert victim(np.array([1.0, 1.0, 4.0]), np.array([200.0, 2.0, 2.0]), np.array([1000.0, 1000.0, 1000.0])) == 1


@pytest.mark.parametrize("block", blocks("console"))
def test_shell_examples(block, tmp_path):
    shutil.copytree(ROOT / "examples" / "kv_plan", tmp_path / "examples" / "kv_plan")
    shutil.copy(MOONCAKE, tmp_path / "trace.jsonl")
    for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        program, *arguments = shlex.split(command, comments=True)
        if program == "kvformulas":
            run = subprocess.run(
                [sys.executable, "-m", "kvformulas", *arguments],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=True,
            )
            assert run.stdout == printed or (not printed and run.stdout)
        elif program == "make":
            assert re.search(rf"^{arguments[0]}: ", (ROOT / "Makefile").read_text(), re.MULTILINE)
        else:
            assert (program, *arguments[:2]) in {("python", "-m", "pip"), ("python", "-m", "pytest")}


def test_make_demo_on_a_fresh_copy(tmp_path):
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command = ["make", "demo", f"PYTHON={sys._base_executable}"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    for figure in ("2,483,027,968", "5,172,625,408", "12,884,901,888", "8 MiB", "224 MiB", "128", "129", "67"):
        assert figure in run.stdout
