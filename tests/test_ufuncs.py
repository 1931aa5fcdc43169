# The ufuncs give the scalars' bits in every layout, type and build of the loops, and behave as NumPy's own do.
import functools
import hashlib
import itertools
import os
import pickle
import subprocess
import sys
import warnings
from operator import add

import numpy as np
import pytest

import hostile
import kvformulas
from conftest import CONTRACT, FORMULAS
from kvformulas import ufuncs
from points import columns

INTEGERS = "bBhHiIqQ"
every_formula = pytest.mark.parametrize("name", [name for _, name in FORMULAS])


def bits(values):
    """Return the bits of doubles or float32s; every NaN counts as the same."""
    values = np.array(values)
    values[np.isnan(values)] = np.nan
    return values.tobytes()


@functools.cache
def examples(name):
    """Return hostile and ordinary arguments, one array each, and the scalar function's results."""
    arity = getattr(ufuncs, name).nin
    hard = np.array(hostile.cases(name, arity)).T
    arguments = np.concatenate([hard, np.array(columns(name, 1001))], axis=1)
    function = getattr(kvformulas, name)
    return arguments, np.array([function(*row) for row in arguments.T.tolist()])


def test_every_formula_once():
    assert ufuncs.__all__ == [name for _, name in FORMULAS]


def test_name_arguments_and_docstring(topic, formula):
    ufunc = getattr(ufuncs, formula)
    scalar = getattr(kvformulas, formula)
    assert isinstance(ufunc, np.ufunc)
    assert (ufunc.__name__, ufunc.nin, ufunc.nout) == (formula, len(CONTRACT[topic][formula]), 1)
    lines = ufunc.__doc__.splitlines()
    assert lines[2] == f"{formula}({', '.join(CONTRACT[topic][formula])}, /, out=None, *, where=True, dtype=None)"
    assert lines[4] == scalar.__doc__.strip().splitlines()[0]
    assert f"`kvformulas.{topic}.{formula}`" in lines[6]


@every_formula
def test_contiguous(name):
    arguments, expected = examples(name)
    assert bits(getattr(ufuncs, name)(*arguments)) == bits(expected)


@every_formula
def test_strides(name):
    ufunc = getattr(ufuncs, name)
    arguments, expected = examples(name)
    rows = np.ascontiguousarray(arguments.T).T
    assert bits(ufunc(*rows)) == bits(expected)
    assert bits(ufunc(*rows[:, ::-1])) == bits(expected[::-1])
    assert bits(ufunc(*arguments[:, 1::3])) == bits(expected[1::3])
    layouts = itertools.cycle([np.copy, lambda a: a[::-1].copy()[::-1], lambda a: a.repeat(2)[::2]])
    mixed = [layout(argument) for layout, argument in zip(layouts, arguments, strict=False)]
    apart = np.zeros(2 * expected.size)
    assert bits(ufunc(*mixed, out=apart[::2])) == bits(expected)
    assert not apart[1::2].any()


@every_formula
def test_one_number_for_all(name):
    ufunc, scalar = getattr(ufuncs, name), getattr(kvformulas, name)
    arguments = examples(name)[0][:, -1300:]
    for fixed in itertools.product([False, True], repeat=ufunc.nin):
        call = [argument[-1] if one else argument for one, argument in zip(fixed, arguments, strict=True)]
        rows = np.array(np.broadcast_arrays(*call, arguments[0])[:-1]).T.tolist()
        result = np.broadcast_to(ufunc(*call), len(rows))
        assert bits(result) == bits([scalar(*row) for row in rows]), fixed


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 15, 255, 256, 257, 511, 513, 9001])
def test_sizes(n):
    a, b, c = np.random.default_rng(n).uniform(0.5, 100, (3, n))
    for t in (float, np.float32):
        x, y, z = a.astype(t), b.astype(t), c.astype(t)
        guarded = (np.arange(n) % 3 - 1).astype(t)
        expected = [kvformulas.preemption_score(*map(float, row)) for row in zip(guarded, y, z, strict=True)]
        assert bits(ufuncs.preemption_score(guarded, y, z)) == bits(np.array(expected, t))
        assert bits(ufuncs.temperature_scale(x, y)) == bits(x / y)
        assert bits(ufuncs.temperature_scale(x, t(3))) == bits(x / t(3))


@every_formula
def test_in_place(name):
    arguments, expected = examples(name)
    for k in range(len(arguments)):
        call = [a.copy() for a in arguments]
        assert getattr(ufuncs, name)(*call, out=call[k]) is call[k]
        assert bits(call[k]) == bits(expected)


def test_overlapping_out():
    for step in (1, 2, -1, -2):
        values = np.arange(4000.0)[::step]
        expected = values[:-1] + values[1:]
        ufuncs.beam_score_update(values[:-1], values[1:], out=values[1:])
        assert bits(values[1:]) == bits(expected)


def test_where_leaves_the_rest_alone():
    x = np.arange(1000.0)
    out = np.full(1000, -7.0)
    ufuncs.temperature_scale(x, 2, out=out, where=x % 3 == 0)
    assert bits(out) == bits(np.where(x % 3 == 0, x / 2, -7))


def test_broadcasting_and_dimensions():
    rows, columns_ = np.arange(1.0, 8)[:, None], np.arange(1.0, 301)
    assert bits(ufuncs.kv_cache_utilization(rows, columns_)) == bits(np.minimum(1, rows / columns_))
    assert bits(ufuncs.kv_cache_utilization(rows, columns_[::-1]).T) == bits(np.minimum(1, rows / columns_[::-1]).T)
    assert type(ufuncs.kv_cache_utilization(1, 2)) is np.float64
    assert ufuncs.kv_cache_utilization(np.zeros((3, 0)), 2).shape == (3, 0)
    assert ufuncs.kv_cache_total_memory.outer([1, 2], [3, 4]).tolist() == [[3, 4], [6, 8]]
    with pytest.raises(ValueError, match="broadcast"):
        ufuncs.kv_cache_utilization(np.zeros(3), np.zeros(4))


def test_reductions_chain():
    values = np.random.default_rng(0).normal(size=1003)
    chain = list(itertools.accumulate(values.tolist(), kvformulas.beam_score_update))
    assert bits(ufuncs.beam_score_update.accumulate(values)) == bits(chain)
    assert ufuncs.beam_score_update.reduce(values) == chain[-1]
    assert ufuncs.beam_score_update.reduce(values[::-1], initial=0.5) == functools.reduce(add, values[::-1], 0.5)
    assert bits(ufuncs.beam_score_update.reduceat(values, [0, 9])) == bits(
        [chain[8], functools.reduce(add, values[9:])]
    )
    square = values[:900].reshape(30, 30)
    assert bits(ufuncs.beam_score_update.reduce(square, axis=0)) == bits(functools.reduce(add, square))
    single = values.astype(np.float32)
    assert bits(ufuncs.beam_score_update.accumulate(single)) == bits(list(itertools.accumulate(single)))
    assert ufuncs.beam_score_update.reduce(np.arange(9, dtype=np.int16)) == 36.0
    ufuncs.beam_score_update.at(values, [0, 0, 3], 1.0)
    assert values[0] == chain[0] + 1 + 1


@every_formula
def test_float32_is_computed_in_double_and_rounded_once(name):
    ufunc, scalar = getattr(ufuncs, name), getattr(kvformulas, name)
    with np.errstate(all="ignore"):
        arguments = examples(name)[0][:, ::7].astype(np.float32)
        expected = np.array([scalar(*row) for row in arguments.T.tolist()]).astype(np.float32)
    for call in (arguments, np.ascontiguousarray(arguments.T).T):
        result = ufunc(*call)
        assert result.dtype == np.float32
        assert bits(result) == bits(expected)


def test_types_are_those_of_true_divide():
    arrays = [np.array([8, 2], t) for t in [*INTEGERS, "?", "e", "f", "d"]]
    numbers = [3, 2.5, True, np.float32(2), np.float64(2), np.int8(2), np.uint64(2)]
    for x, y in itertools.product(arrays + numbers, repeat=2):
        wanted = np.result_type(np.true_divide(x, y), np.float32)
        assert ufuncs.temperature_scale(x, y).dtype == wanted == np.promote_types(np.result_type(x, y, 0.0), np.float32)


@pytest.mark.parametrize("t", [*INTEGERS, "?"])
def test_integers_are_exact(t):
    largest = 1 if t == "?" else min(np.iinfo(t).max, 2**53 - 1)
    values = np.array([0, 1, largest - 1, largest], t)
    for result in (ufuncs.incremental_decode_kv_append(values), ufuncs.beam_score_update(values, 1)):
        assert result.dtype == float
        assert result.tolist() == [int(value) + 1 for value in values.tolist()]
    assert ufuncs.kv_cache_total_memory(values[1:2], 2**40).tolist() == [2**40]


def test_dtype_can_be_chosen():
    assert ufuncs.temperature_scale([8, 2], 3, dtype=np.float32).dtype == np.float32
    assert ufuncs.temperature_scale(np.ones(2, np.float32), 3, dtype=float).dtype == float
    out = np.empty(2, np.float32)
    assert ufuncs.temperature_scale([8, 2], 3, out=out) is out
    with pytest.raises(TypeError):
        ufuncs.temperature_scale([8, 2], 3, dtype=int)


@pytest.mark.parametrize("wrong", [1j, "1", None, np.longdouble(1), np.timedelta64(1, "s")], ids=repr)
def test_other_types_are_refused(wrong):
    for value in (wrong, np.array([wrong, wrong])):
        with pytest.raises(TypeError, match="temperature_scale"):
            ufuncs.temperature_scale(value, 2)


def test_a_python_int_may_be_large_but_not_too_large():
    assert ufuncs.kv_cache_total_memory(np.array([1, 2], np.int8), 2**70).tolist() == [2.0**70, 2.0**71]
    with pytest.raises(OverflowError):
        ufuncs.temperature_scale(np.ones(2), 10**400)


@every_formula
def test_no_floating_point_warning(name):
    arguments = examples(name)[0]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        getattr(ufuncs, name)(*arguments)
        np.sqrt(4.0)


def test_the_flags_of_others_are_kept():
    values = np.array([1, 0, 2, 3], np.float32)
    with pytest.warns(RuntimeWarning, match="overflow"):
        ufuncs.temperature_scale(np.array([1e300, 1e300]), 2, out=values[:2])


# Pickling a ufunc looks its name up in every module that is loaded, deprecated ones of other packages included.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pickle():
    assert pickle.loads(pickle.dumps(ufuncs.temperature_scale)) is ufuncs.temperature_scale


def digest():
    """Return one hash of every formula's results."""
    results = (bits(getattr(ufuncs, name)(*layout)) for _, name in FORMULAS for layout in both_loops(name))
    return hashlib.sha256(b"".join(results)).hexdigest()


def both_loops(name):
    arguments = examples(name)[0]
    yield arguments
    yield [arguments[0], *(a[-1] for a in arguments[1:])]


def test_both_builds_of_the_loops_give_the_same_bits():
    code = "import test_ufuncs; print(test_ufuncs.digest())"
    environment = os.environ | {"KVFORMULAS_AVX2": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == digest()


@pytest.mark.parametrize("numpy", ["raise ModuleNotFoundError('No module named numpy')", "__version__ = '1.26.4'"])
def test_without_numpy_2_the_rest_works(tmp_path, numpy):
    (tmp_path / "numpy.py").write_text(numpy)
    code = "import kvformulas; print(kvformulas.top_k_accept(1, 2)); import kvformulas.ufuncs"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "1.0\n"
    assert run.stderr.splitlines()[-1] == (
        'ImportError: kvformulas.ufuncs needs NumPy 2 or later: pip install "kvformulas[numpy]"'
    )
