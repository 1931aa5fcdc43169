# What is shipped: the sdist builds the wheel, both hold every source a user compiles against, and nothing else.
import importlib.metadata
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from conftest import CONTRACT, FORMULAS

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.checkout
SHIPPED = {
    "kvformulas/py.typed",
    "kvformulas/__init__.py",
    "kvformulas/__init__.pyi",
    "kvformulas/__init__.pxd",
    "kvformulas/_real.pxd",
    "kvformulas/_replay.pyi",
    "kvformulas/kernels/__init__.pxd",
    "kvformulas/kernels/rules.pxd",
    "kvformulas/data/config_defaults.json",
    "kvformulas/data/qwen3-0.6b.json",
    *(f"kvformulas/kernels/{topic}.pxd" for topic in CONTRACT),
    *(f"kvformulas/{topic}.pyi" for topic in CONTRACT),
}


@pytest.fixture(scope="session")
def distributions(tmp_path_factory):
    """Build the sdist, and the wheel from it, as an installer would."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


def test_wheel_holds_what_users_compile_against(distributions):
    names = set(zipfile.ZipFile(distributions[1]).namelist())
    assert names >= SHIPPED
    extensions = {name.split(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    assert extensions >= {f"kvformulas/{topic}" for topic in CONTRACT}
    assert not [name for name in names if name.endswith((".c", ".pyx")) or name.startswith(("tests", "src"))]


def test_sdist_holds_the_whole_project(distributions):
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    wanted = {f"src/{name}" for name in SHIPPED} | {f"src/kvformulas/{topic}.pyx" for topic in CONTRACT}
    wanted |= {name for name in tracked if not name.startswith((".", "docs/_build"))}
    assert wanted <= names
    assert not [name for name in names - wanted if name.endswith((".c", ".cpp", ".so", ".pyc"))]


def test_the_wheel_from_the_sdist_works(distributions, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = next(path for path in tmp_path.glob("env/*/python*") if path.stem == "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", distributions[1]], check=True)
    run = subprocess.run([python, "-m", "kvformulas", "tour"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "224 MiB" in run.stdout
    code = "import kvformulas.kv_cache as m; print(m.kv_cache_memory_per_layer(1, 2048, 8, 128, 2))"
    assert (
        subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        == "8388608.0\n"
    )


def test_the_installed_size_grows_only_with_the_formulas():
    files = importlib.metadata.files("kvformulas")
    written = {".py", ".pyc", ".json"}  # the programs on top, and what they know of models
    size = sum(Path(file.locate()).stat().st_size for file in files if file.suffix not in written)
    assert size <= 16_000 * len(FORMULAS)
