# Compiles Cython against the installed kvformulas, as a user's own package would, and imports the result.
# A missing compiler fails the test that asked: nothing is skipped.
import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import kvformulas

INCLUDE = Path(kvformulas.__file__).parent.parent

SETUP = """
import json, sys
from Cython.Build import cythonize
from setuptools import Extension, setup
name, sources, include, flags = json.loads(sys.argv.pop())
extension = Extension(name, sources, extra_compile_args=flags)
setup(
    name=name,
    py_modules=[],
    ext_modules=cythonize([extension], include_path=[include], language_level=3, quiet=True),
)
"""


def build(
    source: str | Path | Sequence[Path], folder: Path, name: str, flags: Sequence[str] = ("-O2", "-ffp-contract=off")
) -> ModuleType:
    """Build the extension module `name` in `folder` from Cython text or from source files, and import it."""
    if isinstance(source, str):
        text, source = source, folder / f"{name}.pyx"
        source.write_text(text)
    paths = [str(path) for path in ([source] if isinstance(source, Path) else source)]
    if sys.platform == "win32":
        flags = ["/O2"]
    command = [sys.executable, "-c", SETUP, "build_ext", "--build-lib", ".", "--build-temp", "temp"]
    run = subprocess.run(
        [*command, json.dumps([name, paths, str(INCLUDE), list(flags)])],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    # The name may be longer by the interpreter's tag: name.cpython-311-x86_64-linux-gnu.so.
    library = next(path for path in folder.glob(f"{name}.*") if path.suffix in {".so", ".pyd"})
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
