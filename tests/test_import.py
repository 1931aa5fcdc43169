# Importing the package is free: no extension module and no NumPy until a formula is used.
import subprocess
import sys


def modules_after(statement):
    code = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_import_loads_the_package_alone():
    assert modules_after("import kvformulas") == {"kvformulas"}


def test_a_formula_loads_its_module_alone():
    loaded = modules_after("import kvformulas; kvformulas.kv_cache_utilization(1, 2)")
    assert {name for name in loaded if "kvformulas" in name} == {"kvformulas", "kvformulas.kv_cache"}
    assert not any(name.split(".")[0] in {"numpy", "click"} for name in loaded)


def test_from_import_of_formulas_modules_and_version():
    loaded = modules_after("from kvformulas import kv_cache_utilization, runtime, __version__")
    assert {"kvformulas.kv_cache", "kvformulas.runtime"} <= loaded
    assert not any(name.startswith("numpy") for name in loaded)


def test_star_import_gives_every_formula():
    code = "from kvformulas import *; print(kv_cache_memory_per_layer(1, 2048, 8, 128, 2), top_k_accept(1, 2))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "8388608.0 1.0\n"


def test_unknown_attribute_is_an_attribute_error():
    code = "import kvformulas; kvformulas.kv_cache_size"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == "AttributeError: module 'kvformulas' has no attribute 'kv_cache_size'"
