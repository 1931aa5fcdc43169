# The stubs say what the compiled modules are: mypy's stubtest compares the two, and a user's code is checked by them.
import subprocess
import sys

from conftest import CONTRACT

COMPILED = [f"kvformulas.{name}" for name in (*CONTRACT, "_replay", "capi", "ufuncs")]

USER_CODE = """\
from fractions import Fraction

import kvformulas
from kvformulas import kv_cache_utilization, runtime
from kvformulas.kv_cache import kv_cache_memory_per_layer

a: float = kv_cache_memory_per_layer(1, 2048, 8, head_dim=Fraction(128), dtype_bytes=0.5)
b: float = kvformulas.top_k_accept(1, 2)
c: str = kv_cache_utilization(1, 2)
kvformulas.kv_cache_total_memory("1", 2)
kvformulas.kv_cache_total_memory(1)
kvformulas.no_such_formula(1)
runtime.Runtime(mode="local")
"""


def test_stubtest(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *COMPILED, "--mypy-config-file", tmp_path / "none"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_users_code_is_checked(tmp_path):
    path = tmp_path / "user.py"
    path.write_text(USER_CODE)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", path],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    lines = [line for line in run.stdout.splitlines() if "error" in line]
    assert [line.split(":")[1] for line in lines[:-1]] == ["9", "10", "11", "12"], run.stdout
