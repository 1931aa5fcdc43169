"""Builds the extension against the installed kvformulas: python setup.py build_ext --inplace."""

import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

flags = ["/O2"] if sys.platform == "win32" else ["-O2", "-g0", "-ffp-contract=off"]

setup(
    name="threaded_scheduler",
    version="0",
    py_modules=[],
    ext_modules=cythonize([Extension("scheduler", ["scheduler.pyx"], extra_compile_args=flags)], build_dir="build"),
)
