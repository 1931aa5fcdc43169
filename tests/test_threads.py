# Eight threads call every wrapper at once and get the bits that one thread gets; where the interpreter has no GIL,
# importing kvformulas does not bring it back.
import inspect
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from struct import pack
from threading import Barrier

import numpy as np

import kvformulas
from conftest import FORMULAS
from hostile import cases
from kvformulas import ufuncs

THREADS = 8
POINTS = 500


def points(name):
    """Return every n-th hostile case of a formula, as tuples."""
    every = list(cases(name, len(inspect.signature(getattr(kvformulas, name)).parameters)))
    return every[:: max(1, len(every) // POINTS)]


def bits(values):
    """Return the bytes of doubles; every NaN is one."""
    return b"".join(pack("<d", value) if value == value else b"nan" for value in values)  # noqa: PLR0124


def scalars():
    return b"".join(bits(getattr(kvformulas, name)(*point) for point in points(name)) for _, name in FORMULAS)


def arrays():
    with np.errstate(all="ignore"):
        return b"".join(bits(getattr(ufuncs, name)(*np.array(points(name)).T).tolist()) for _, name in FORMULAS)


def in_threads(function):
    barrier = Barrier(THREADS)

    def together():
        barrier.wait()
        return function()

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result() for future in [pool.submit(together) for _ in range(THREADS)]]


def test_wrappers_in_eight_threads():
    assert set(in_threads(scalars)) == {scalars()}


def test_ufuncs_in_eight_threads_give_the_scalars_bits():
    assert set(in_threads(arrays)) == {scalars()}


def test_importing_every_module_leaves_the_gil_off():
    modules = ", ".join(f"kvformulas.{name}" for name in (*kvformulas._FORMULAS, "capi", "ufuncs"))
    code = f"import sys, {modules}; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(not sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert run.stderr == ""
