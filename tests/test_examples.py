# Every example is built and run as its README says, in a copy, against the installed package. A missing compiler or
# library fails. The loop that a user's own package gets from a cimported kernel is looked at as machine code, too.
import os
import platform
import re
import shlex
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = ["cython_loop", "decode_step", "scipy_quad", "cpp_addresses", "numba_address", "ctypes_call", "kv_plan"]
PACKED = {"x86_64": r"\sv?(\w+)pd\s", "aarch64": r"\sf(\w+)\s+v\d+\.2d"}
pytestmark = pytest.mark.checkout


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Follow every README: its folder's copy, and each command with the output promised and what came of it."""

    def follow(name):
        folder = tmp_path_factory.mktemp("examples") / name
        shutil.copytree(EXAMPLES / name, folder)
        environment = os.environ | {
            "CFLAGS": "-g0",  # a third of the compiler's time goes into debug information
            "CXXFLAGS": "-g0",
            "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INDEX": "1",
            "PIP_TARGET": str(folder / "installed"),
            "PYTHONPATH": str(folder / "installed"),
        }
        (block,) = re.findall(r"^```console\n(.*?)^```$", (folder / "README.md").read_text(), re.MULTILINE | re.DOTALL)
        done = []
        for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            run = subprocess.run(
                shlex.split(command), cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            done.append((command, printed, run))
            if run.returncode:
                break
        return folder, done

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(NAMES, pool.map(follow, NAMES), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_the_readme_print_what_it_says(name, runs):
    _, done = runs[name]
    for command, _, run in done:
        assert run.returncode == 0, f"{command}\n{run.stdout}{run.stderr}"
    command, printed, run = done[-1]
    assert command == "python run.py"
    assert (run.stdout, run.stderr) == (printed, "")


@pytest.mark.parametrize(("loop", "packed"), [("score", {"add", "mul", "div"}), ("size", {"mul"})])
def test_the_compiler_vectorises_the_loop_around_a_kernel(loop, packed, runs):
    folder, _ = runs["cython_loop"]
    (library,) = folder.glob("installed/candidates.*.so")
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble=__pyx_f_10candidates_{loop}", library]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert packed <= set(re.findall(PACKED[platform.machine()], code)), code
    # Nothing is called: neither the kernel nor, where Cython checks a division, what reports an error.
    assert not re.search(r"\s(call|callq|bl|blr)\s", code), code


def test_the_index_names_every_example():
    index = re.findall(r"^\| \[(\w+)\]\(\1/\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(index) == sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))
