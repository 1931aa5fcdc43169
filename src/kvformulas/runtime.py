"""The dispatch of the reference system: call a formula by the names of its module and function.

A call never raises: what is wrong with it is in its result. Which names there are comes from the catalog alone.
"""

import functools
import reprlib
from collections.abc import Callable, Iterable, Mapping
from time import perf_counter_ns
from typing import Any, Literal, NotRequired, TypedDict

from kvformulas import catalog

__all__ = ["BatchResult", "Call", "ErrorCode", "Result", "Runtime"]

ErrorCode = Literal["module_not_registered", "function_not_registered", "invalid_arguments"]


class Result(TypedDict):
    """What a call gave. ``result`` is None and ``error_code`` present exactly when ``success`` is false."""

    result: float | None
    latency_ms: float
    engine_used: str
    success: bool
    error: str
    error_code: NotRequired[ErrorCode]


class Call(TypedDict):
    """One call of a batch: arguments in order, or by name."""

    module: str
    function: str
    args: list[Any] | tuple[Any, ...] | Mapping[str, Any]


class BatchResult(TypedDict):
    """The results of a batch in its order, how many there are, and how many succeeded and failed."""

    results: list[Result]
    count: int
    ok: int
    failed: int


class _Refused(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Runtime:
    """Calls formulas in this process. It holds no state, so that threads may share one.

    Parameters
    ----------
    mode : str
        Where to run: "local" is the only place.
    """

    __slots__ = ("mode",)

    def __init__(self, mode: str = "local") -> None:
        if mode != "local":
            raise ValueError(f"mode must be 'local', not {mode!r}")
        self.mode = mode

    def execute(self, module: str, function: str, args: list[Any] | tuple[Any, ...] | Mapping[str, Any]) -> Result:
        """Call a formula with a list of arguments or a dict of them by name.

        Every argument is a real number. Bools, strings, arrays and whatever else is no number are
        ``invalid_arguments``, and so is an int that is too large for a double.
        """
        start = perf_counter_ns()
        try:
            value = _call(module, function, args)
        except _Refused as refused:
            return _failed(refused.code, str(refused), start)
        return {
            "result": value,
            "latency_ms": (perf_counter_ns() - start) / 1e6,
            "engine_used": "cython",
            "success": True,
            "error": "",
        }

    def execute_batch(self, calls: Iterable[Call]) -> BatchResult:
        """Execute calls in order. An entry that is no call is a failed result; its further keys are ignored."""
        if isinstance(calls, str | bytes | Mapping) or not isinstance(calls, Iterable):
            raise TypeError(f"calls must be a list of dicts, not {type(calls).__name__}")
        results = [self._execute_entry(entry) for entry in calls]
        ok = sum(result["success"] for result in results)
        return {"results": results, "count": len(results), "ok": ok, "failed": len(results) - ok}

    def _execute_entry(self, entry: object) -> Result:
        start = perf_counter_ns()
        if not isinstance(entry, Mapping):
            message = f"an entry must be a dict with module, function and args, not {type(entry).__name__}"
            return _failed("invalid_arguments", message, start)
        missing = [key for key in ("module", "function", "args") if key not in entry]
        if missing:
            message = f"an entry must have module, function and args; {', '.join(missing)} is missing"
            return _failed("invalid_arguments", message, start)
        return self.execute(entry["module"], entry["function"], entry["args"])

    def list_modules(self) -> list[str]:
        """Return the names of the modules."""
        return list(catalog.modules())

    def list_functions(self, module: str) -> list[str]:
        """Return the names of a module's functions; an unknown module is a ``ValueError``."""
        return list(catalog.names(module))


def _failed(code: ErrorCode, message: str, start: int) -> Result:
    return {
        "result": None,
        "latency_ms": (perf_counter_ns() - start) / 1e6,
        "engine_used": "cython",
        "success": False,
        "error": message,
        "error_code": code,
    }


@functools.cache
def _entry(function: str) -> tuple[Callable[..., float], tuple[str, ...]]:
    return catalog.function(function), catalog.arguments(function)


def _call(module: object, function: object, args: object) -> float:
    if not isinstance(module, str) or module not in catalog.modules():
        expected = ", ".join(catalog.modules())
        raise _Refused("module_not_registered", f"module {_show(module)} is not registered; there are {expected}")
    if not isinstance(function, str) or function not in catalog.names(module):
        expected = ", ".join(catalog.names(module))
        raise _Refused(
            "function_not_registered", f"function {_show(function)} is not in {module}; there are {expected}"
        )
    wrapper, names = _entry(function)
    values = _in_order(function, names, args)
    for index, value in enumerate(values):
        if type(value) is not float and type(value) is not int:
            values[index] = _real(names[index], value)
    try:
        return wrapper(*values)
    except OverflowError as error:
        raise _Refused("invalid_arguments", str(error)) from None


def _in_order(function: str, names: tuple[str, ...], args: object) -> list[Any]:
    expected = f"{function} takes {', '.join(names)}"
    if isinstance(args, list | tuple):
        if len(args) != len(names):
            raise _Refused("invalid_arguments", f"{expected}: {len(names)} in number, not {len(args)}")
        return list(args)
    if isinstance(args, Mapping):
        unknown = [_show(name) for name in args if name not in names]
        if unknown:
            raise _Refused("invalid_arguments", f"{expected}; not {', '.join(unknown)}")
        missing = [name for name in names if name not in args]
        if missing:
            raise _Refused("invalid_arguments", f"{expected}; missing {', '.join(missing)}")
        return [args[name] for name in names]
    raise _Refused("invalid_arguments", f"args must be a list or a dict, not {type(args).__name__}")


def _real(name: str, value: Any) -> float:
    kind = type(value)
    # What has a length is a string or an array, though float() might read it. NumPy's bool is named like Python's.
    number = hasattr(kind, "__float__") or hasattr(kind, "__index__")
    if not number or hasattr(kind, "__len__") or kind.__name__ in ("bool", "bool_"):
        raise _Refused("invalid_arguments", f"{name} must be a real number, not {kind.__name__}: {_show(value)}")
    try:
        return float(value)
    except OverflowError:
        raise _Refused("invalid_arguments", f"{name} is too large for a double: {_show(value)}") from None
    except Exception as error:
        # The conversion is the caller's code: what it says is all that is known.
        raise _Refused("invalid_arguments", f"{name} must be a real number: {_line(str(error))}") from None


def _line(text: str) -> str:
    return " ".join(text.split())


def _show(value: object) -> str:
    """Return a short repr on one line; a repr is the caller's code too."""
    try:
        return _line(reprlib.repr(value))
    except Exception:
        return f"a {type(value).__name__}"
