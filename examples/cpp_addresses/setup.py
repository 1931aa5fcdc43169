from setuptools import Extension, setup

setup(
    name="victims",
    py_modules=[],
    ext_modules=[Extension("victims", ["victims.cpp"], language="c++", extra_compile_args=["-std=c++17", "-O2"])],
)
