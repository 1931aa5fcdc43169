# Every formula through ctypes: no compiler, no dependency.
import ctypes
import sys

import kvformulas
from kvformulas.capi import __pyx_capi__ as addresses

name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.argtypes, name_of.restype = [ctypes.py_object], ctypes.c_char_p
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.argtypes, pointer_of.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p


def formula(name):
    """Return the C function as a ctypes one; the capsule's name is its signature, as in b"double (double, double)"."""
    signature = name_of(addresses[name])
    arity = signature.count(b"double") - 1
    function = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arity)(pointer_of(addresses[name], signature))
    return function, arity


per_layer, _ = formula("kv_cache_memory_per_layer")
total, _ = formula("kv_cache_total_memory")
mebibytes = total(per_layer(1, 2048, 8, 128, 2), 28) / 2**20
print(f"Qwen3-0.6B, 2,048 tokens in FP16: {mebibytes:.0f} MiB of keys and values")
if mebibytes != 224:
    sys.exit("224 MiB is right")

values = [2.5, 0.75, 0.9, 4.0, 0.5, 3.0, 1.5]
for name in addresses:
    function, arity = formula(name)
    if function(*values[:arity]) != getattr(kvformulas, name)(*values[:arity]):
        sys.exit(f"{name} differs from Python's")
print(f"{len(addresses)} formulas give at their address what they give from Python")
