# The runtime: the reference system's dispatch, its results and everything that it refuses.
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import kvformulas
from conftest import CONTRACT
from kvformulas.runtime import Runtime

RUNTIME = Runtime(mode="local")
MEMORY = ("kv_cache", "kv_cache_memory_per_layer")
USE = ("kv_cache", "kv_cache_utilization")
MODULES = ", ".join(CONTRACT)
FUNCTIONS = ", ".join(CONTRACT["kv_cache"])
TAKES = "kv_cache_utilization takes cached_tokens, max_tokens"


def refused(result):
    """Check that a result is a failure on one line, and return its code and its error."""
    assert set(result) == {"result", "latency_ms", "engine_used", "success", "error", "error_code"}
    assert (result["result"], result["engine_used"], result["success"]) == (None, "cython", False)
    assert result["latency_ms"] > 0
    assert "\n" not in result["error"]
    return result["error_code"], result["error"]


def test_the_reference_example():
    result = RUNTIME.execute(*MEMORY, [1, 2048, 8, 128, 2])
    assert 0 < result.pop("latency_ms") < 60_000
    assert result == {"result": 8388608.0, "engine_used": "cython", "success": True, "error": ""}


@pytest.mark.parametrize(
    "args",
    [
        [1536, 2048],
        (1536.0, 2048),
        {"max_tokens": 2048, "cached_tokens": 1536},
        [np.float32(1536), np.int64(2048)],
        [Fraction(1536), Decimal(2048)],
    ],
)
def test_forms_of_arguments(args):
    assert RUNTIME.execute(*USE, args)["result"] == 0.75


def test_every_formula(topic, formula):
    names = CONTRACT[topic][formula]
    values = [2.5, 0.75, *range(3, 8)][: len(names)]
    expected = getattr(kvformulas, formula)(*values)
    assert RUNTIME.execute(topic, formula, values)["result"] == expected
    assert RUNTIME.execute(topic, formula, dict(zip(names, values, strict=True)))["result"] == expected
    assert refused(RUNTIME.execute(topic, formula, values[1:]))[0] == "invalid_arguments"


@pytest.mark.parametrize(
    "module", ["", "KV_CACHE", "kvformulas.kv_cache", "cli", "os", "__doc__", None, 1, ["kv_cache"]]
)
def test_unknown_module(module):
    code, error = refused(RUNTIME.execute(module, "kv_cache_utilization", [1, 2]))
    assert (code, error) == ("module_not_registered", f"module {module!r} is not registered; there are {MODULES}")
    with pytest.raises(ValueError, match=r"^module must be one of kv_cache, "):
        RUNTIME.list_functions(module)


@pytest.mark.parametrize("function", ["", "__doc__", "__all__", "c", "real", "temperature_scale", None, {}])
def test_unknown_function(function):
    code, error = refused(RUNTIME.execute("kv_cache", function, [1, 2]))
    assert code == "function_not_registered"
    assert error == f"function {function!r} is not in kv_cache; there are {FUNCTIONS}"


class Broken:
    def __float__(self):
        raise RuntimeError("no\nnumber")

    def __repr__(self):
        raise RuntimeError("no text")


class Wordless:
    def __repr__(self):
        raise RuntimeError("no text")


class Endless:
    def __float__(self):
        return float(10**400)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ([1], f"{TAKES}: 2 in number, not 1"),
        ((1, 2, 3), f"{TAKES}: 2 in number, not 3"),
        ([], f"{TAKES}: 2 in number, not 0"),
        ({}, f"{TAKES}; missing cached_tokens, max_tokens"),
        ({"cached_tokens": 1}, f"{TAKES}; missing max_tokens"),
        ({"cached_tokens": 1, "max_token": 2}, f"{TAKES}; not 'max_token'"),
        ({"cached_tokens": 1, "max_tokens": 2, 3: 4}, f"{TAKES}; not 3"),
        (None, "args must be a list or a dict, not NoneType"),
        ("12", "args must be a list or a dict, not str"),
        ({1, 2}, "args must be a list or a dict, not set"),
        (np.array([1, 2]), "args must be a list or a dict, not ndarray"),
        ([True, 2], "cached_tokens must be a real number, not bool: True"),
        ({"cached_tokens": 1, "max_tokens": False}, "max_tokens must be a real number, not bool: False"),
        ([np.True_, 2], "cached_tokens must be a real number, not bool: np.True_"),
        ([1, "2"], "max_tokens must be a real number, not str: '2'"),
        ([1, np.str_("2")], "max_tokens must be a real number, not str_: np.str_('2')"),
        ([1, b"2"], "max_tokens must be a real number, not bytes: b'2'"),
        ([1, None], "max_tokens must be a real number, not NoneType: None"),
        ([1, 2j], "max_tokens must be a real number, not complex: 2j"),
        ([[1], 2], "cached_tokens must be a real number, not list: [1]"),
        ([np.array([1.0]), 2], "cached_tokens must be a real number, not ndarray: array([1.])"),
        ([Wordless(), 2], "cached_tokens must be a real number, not Wordless: <Wordless instance at 0x"),
        ([[10**5000], 2], "cached_tokens must be a real number, not list: "),
        ([Broken(), 2], "cached_tokens must be a real number: no number"),
        ([Decimal("sNaN"), 2], "cached_tokens must be a real number: cannot convert signaling NaN to float"),
        ([Endless(), 2], "cached_tokens is too large for a double: <"),
        ([Fraction(10**400), 2], "cached_tokens is too large for a double: Fraction("),
        ([1, 1 << 1024], "max_tokens is too large for a double: an int of 1025 bits"),
        ([1, -(10**5000)], "max_tokens is too large for a double: an int of 16610 bits"),
    ],
)
def test_invalid_arguments(args, error):
    code, found = refused(RUNTIME.execute(*USE, args))
    assert code == "invalid_arguments"
    # An address or digits may follow where the text ends openly.
    assert found == error or (error[-1] in "x<( " and found.startswith(error))


def test_ints_are_rounded_once():
    assert RUNTIME.execute("kv_cache", "kv_cache_total_memory", [2**53 + 1, 1])["result"] == float(2**53 + 1)
    assert RUNTIME.execute("kv_cache", "kv_cache_total_memory", [2**1023, 1])["result"] == 2.0**1023


def test_nan_and_infinity_are_numbers():
    assert str(RUNTIME.execute(*USE, [float("nan"), 2])["result"]) == "nan"
    assert RUNTIME.execute(*USE, [float("inf"), 2])["result"] == 1.0


def test_batch():
    good = {"module": "kv_cache", "function": "kv_cache_utilization", "args": [1, 2]}
    entries = [
        good | {"id": 7},
        good | {"args": {"cached_tokens": 3, "max_tokens": 4}},
        good | {"module": "kv"},
        good | {"function": "use"},
        good | {"args": [1]},
        {"module": "kv_cache"},
        ["kv_cache", "kv_cache_utilization", [1, 2]],
        None,
    ]
    batch = RUNTIME.execute_batch(entries)
    assert (batch["count"], batch["ok"], batch["failed"]) == (8, 2, 6)
    assert [result["result"] for result in batch["results"][:2]] == [0.5, 0.75]
    entry = "an entry must be a dict with module, function and args"
    assert [refused(result) for result in batch["results"][2:]] == [
        ("module_not_registered", f"module 'kv' is not registered; there are {MODULES}"),
        ("function_not_registered", f"function 'use' is not in kv_cache; there are {FUNCTIONS}"),
        ("invalid_arguments", f"{TAKES}: 2 in number, not 1"),
        ("invalid_arguments", "an entry must have module, function and args; function, args is missing"),
        ("invalid_arguments", f"{entry}, not list"),
        ("invalid_arguments", f"{entry}, not NoneType"),
    ]
    assert RUNTIME.execute_batch([]) == {"results": [], "count": 0, "ok": 0, "failed": 0}
    assert RUNTIME.execute_batch(iter([good]))["ok"] == 1


@pytest.mark.parametrize(("calls", "kind"), [(None, "NoneType"), (3, "int"), ("[]", "str"), ({"module": ""}, "dict")])
def test_what_is_no_batch(calls, kind):
    with pytest.raises(TypeError, match=f"^calls must be a list of dicts, not {kind}$"):
        RUNTIME.execute_batch(calls)


def test_lists():
    assert RUNTIME.list_modules() == list(CONTRACT)
    assert {module: RUNTIME.list_functions(module) for module in CONTRACT} == {
        module: list(functions) for module, functions in CONTRACT.items()
    }


@pytest.mark.parametrize("mode", ["remote", "", None, []])
def test_mode(mode):
    assert Runtime().mode == "local"
    with pytest.raises(ValueError, match=r"^mode must be 'local', not "):
        Runtime(mode=mode)


def test_threads_share_a_runtime():
    def total(layers):
        return RUNTIME.execute("kv_cache", "kv_cache_total_memory", [1024, layers])["result"]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(total, range(2000))) == [1024.0 * layers for layers in range(2000)]


def test_a_call_parses_no_docstring():
    code = (
        "import sys; from kvformulas.runtime import Runtime\n"
        "assert Runtime().execute('kv_cache', 'kv_cache_utilization', [1, 2])['result'] == 0.5\n"
        "print({'docstring_parser', 'pylatexenc', 'click', 'numpy', 'kvformulas.llm_sampling'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
