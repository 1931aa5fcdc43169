# Cython finds the .pxd files of the installed kvformulas by itself.
from Cython.Build import cythonize
from setuptools import Extension, setup

FLAGS = [
    "-O3",
    "-fno-trapping-math",  # a division may be computed and not used: an `if` around it becomes a select
    "-ffp-contract=off",  # the same bits on every machine
]
extension = Extension("candidates", ["candidates.pyx"], extra_compile_args=FLAGS)
setup(py_modules=[], ext_modules=cythonize([extension]))
