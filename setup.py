"""The extension modules and the compiler flags; everything else about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

if sys.platform == "win32":
    # MSVC's defaults are right: /fp:precise neither reassociates nor contracts.
    compile_args, link_args = ["/O2"], []
else:
    compile_args = [
        "-O3",
        "-fno-math-errno",  # nobody reads errno: lets libm calls be plain and loops vectorise
        "-fno-trapping-math",  # nobody reads the FP flags: lets comparisons become selects, trunc become inline code
        "-ffp-contract=off",  # never fuse a multiply and an add: the same bits on every machine
    ]
    link_args = ["-Wl,-s", "-Wl,--as-needed"] if sys.platform == "linux" else []  # stripped: a third of the size

macros = []
directives = {}
tracing = bool(os.environ.get("KVFORMULAS_LINETRACE"))
if tracing:  # for tools/line_coverage.py, which finds the C files beside their sources
    macros = [("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")]
    directives = {"linetrace": True}
    compile_args, link_args = ["-O0", "-ffp-contract=off"], []

extensions = [
    Extension(
        f"kvformulas.{path.stem}",
        [str(path)],
        include_dirs=["src/kvformulas", numpy.get_include()],
        depends=["src/kvformulas/ufuncs.h"],
        define_macros=macros,
        extra_compile_args=compile_args,
        extra_link_args=link_args,
        optional=path.stem == "ufuncs",  # the one in C++: the rest must build where there is only a C compiler
    )
    for path in sorted(Path("src/kvformulas").glob("*.pyx"))
]

setup(
    ext_modules=cythonize(
        extensions,
        build_dir=None if tracing else "build",
        include_path=["src"],
        force=True,  # Cython does not see that a wrapper depends on its kernels
        compiler_directives=directives,
    )
)
