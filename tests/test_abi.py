# The addresses are a contract: abi.json says which there were, with their signatures. Some may be added, none changed.
import ctypes
import json
from pathlib import Path

import pytest

from conftest import FORMULAS
from kvformulas import capi

ABI = json.loads((Path(__file__).parent / "abi.json").read_text())

capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]


@pytest.mark.parametrize("name", ABI)
def test_what_had_an_address_has_it_still(name):
    assert capsule_name(capi.__pyx_capi__[name]).decode() == ABI[name]


def test_what_is_new_is_frozen_too():
    assert [name for _, name in FORMULAS] == list(ABI)
