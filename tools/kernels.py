"""What mutate.py and sanitize.py share: the kernels as Python syntax trees, and building extension modules of them.

A kernel body is Python save for its declarations, so the tokenizer takes those out and the `ast` module reads the rest.
"""

import ast
import io
import subprocess
import sys
import sysconfig
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
KERNELS = SRC / "kvformulas" / "kernels"
RULES = "rules"

# The flags that fix the arithmetic, as in setup.py; the level of optimisation is the caller's.
FLAGS = ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")


@dataclass(frozen=True)
class Kernel:
    """One `cdef inline` function: the topic that holds it, and its body as Python."""

    name: str
    topic: str
    tree: ast.FunctionDef

    @property
    def arguments(self) -> list[str]:
        return [argument.arg for argument in self.tree.args.args]

    @property
    def locals(self) -> list[str]:
        stores = (n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        return list(dict.fromkeys(stores))

    @property
    def counters(self) -> set[str]:
        return {n.target.id for n in ast.walk(self.tree) if isinstance(n, ast.For)}

    @property
    def calls(self) -> set[str]:
        return calls_of(self.tree)


def calls_of(tree: ast.AST) -> set[str]:
    return {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}


def as_python(pxd: str) -> str:
    """Return the text of a kernel file without what only Cython understands."""
    kept = []
    tokens = list(tokenize.generate_tokens(io.StringIO(pxd).readline))
    for token, following in pairwise([*tokens, tokens[-1]]):
        word = token.string
        if word == "cdef" and following.string == "inline":
            kept.append((token.type, "def"))
        elif word == "cimport":
            kept.append((token.type, "import"))
        elif word not in {"cdef", "inline", "double", "int", "noexcept", "nogil"}:
            kept.append((token.type, word))
    return tokenize.untokenize(kept)


def read_kernels(folder: Path = KERNELS) -> dict[str, Kernel]:
    """Return every function of the kernel files by name, the shared rules included."""
    kernels = {}
    for path in sorted(folder.glob("*.pxd")):
        for node in ast.parse(as_python(path.read_text())).body:
            if isinstance(node, ast.FunctionDef):
                # `cdef double x` has become a bare `x`.
                node.body = [statement for statement in node.body if not isinstance(statement, ast.Expr)]
                kernels[node.name] = Kernel(node.name, path.stem, node)
    return kernels


def run(command: Sequence[str | Path]) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{(done.stdout + done.stderr)[:4000]}")


def cython(source: Path, c_file: Path) -> Path:
    run([sys.executable, "-m", "cython", "-3", "-I", SRC, source, "-o", c_file])
    return c_file


def compile_module(c_file: Path, folder: Path, flags: Iterable[str], compiler: str = "gcc") -> Path:
    """Build one extension module into the folder and return its path."""
    target = folder / (c_file.stem + sysconfig.get_config_var("EXT_SUFFIX"))
    folder.mkdir(parents=True, exist_ok=True)
    include = sysconfig.get_path("include")
    # Cython's own code is not under test, so its warnings are off.
    run([compiler, "-w", "-shared", "-fPIC", f"-I{include}", *flags, c_file, "-o", target, "-lm"])
    return target


def load(library: Path) -> ModuleType:
    spec = spec_from_file_location(library.name.partition(".")[0], library)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
