# The catalog: what it reads from the wrappers, its JSON form, its errors, and math as plain text.
import dataclasses
import inspect
import math
import random
import re
import subprocess
import sys
from importlib import import_module
from importlib.resources import files

import pytest

import kvformulas
from conftest import CONTRACT, FORMULAS
from kvformulas import catalog


def test_a_formula_is_its_docstring():
    found = catalog.formula("kv_cache_utilization")
    assert found.module == "kv_cache"
    assert found.signature == "kv_cache_utilization(cached_tokens, max_tokens)"
    assert found.arguments == (
        catalog.Argument("cached_tokens", "tokens", "Tokens in the cache."),
        catalog.Argument("max_tokens", "tokens", "Tokens that the cache can hold."),
    )
    assert (found.returns, found.unit) == ("Share in use.", "ratio")
    assert found.math == r"\min\left(1, \frac{\mathrm{cached\_tokens}}{\mathrm{max\_tokens}}\right)"
    assert found.guard == "``max_tokens <= 0`` gives 0.0."
    assert catalog.Reference("batching_efficiency", "The same clamped ratio, of compute.") in found.see_also
    assert ">>> kv_cache_utilization(4096, 2048)\n1.0" in found.example


def test_nothing_of_a_docstring_is_lost(topic, formula):
    found = catalog.formula(formula)
    assert (found.module, found.name) == (topic, formula)
    doc = " ".join(inspect.getdoc(getattr(kvformulas, formula)).split())
    texts = [found.summary, found.domain, found.guard, found.special_values, found.error]
    texts += [
        found.returns.removesuffix("."),
        *found.notes,
        *found.source,
        found.description,
        found.math,
        found.example,
    ]
    texts += [argument.description.removesuffix(".") for argument in found.arguments]
    texts += [f"{other.name} : {other.description}" for other in found.see_also]
    assert all(" ".join(text.split()) in doc for text in texts)
    assert all(text.endswith(".") for text in (found.summary, *found.source, *(r.description for r in found.see_also)))
    assert {other.name for other in found.see_also} <= {name for _, name in FORMULAS} - {formula}
    words = sum(len(text.split()) for text in texts) + sum(len(f.unit.split()) for f in (found, *found.arguments))
    # What remains are the titles and rules of the sections, the argument's names and types, labels and numbers.
    assert len(doc.split()) - words < 45 + 3 * len(found.arguments)


def test_formulas_are_read_once_and_cannot_be_changed():
    found = catalog.formula("pow_approx")
    assert catalog.formula("pow_approx") is found
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.name = "power"


def test_selection():
    assert catalog.modules() == tuple(CONTRACT)
    assert [found.name for found in catalog.formulas()] == [name for _, name in FORMULAS]
    assert [found.name for found in catalog.formulas("llm_sampling")] == list(CONTRACT["llm_sampling"])
    assert catalog.names("kv_cache") == tuple(CONTRACT["kv_cache"])
    assert catalog.function("pow_approx") is kvformulas.pow_approx
    assert catalog.arguments("pow_approx") == ("base", "exponent")


def test_contract():
    parameter = {"type": "Float64", "has_default": False, "is_mut": False}
    assert catalog.contract("kv_cache")["functions"][2] == {
        "name": "kv_cache_utilization",
        "params": [{"name": "cached_tokens"} | parameter, {"name": "max_tokens"} | parameter],
        "return_type": "Float64",
    }
    contracts = catalog.contracts()
    assert all((found["engine"], found["structs"]) == ("cython", []) for found in contracts)
    assert {
        found["name"]: {f["name"]: [p["name"] for p in f["params"]] for f in found["functions"]} for found in contracts
    } == CONTRACT


def test_a_kernel_is_shown_whole_and_alone(topic, formula):
    kernel = catalog.kernel(formula)
    assert kernel in (files("kvformulas") / "kernels" / f"{topic}.pxd").read_text()
    assert kernel.startswith(f"cdef inline double {formula}(")
    assert kernel.count("noexcept nogil:") == 1
    assert kernel.splitlines()[-1].startswith("    return ")


@pytest.mark.parametrize("look_up", [catalog.formula, catalog.function, catalog.arguments, catalog.kernel])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pow_aprox", "name must be that of a formula, not 'pow_aprox'; did you mean pow_approx?"),
        ("__doc__", "name must be that of a formula, not '__doc__'"),
        (None, "name must be that of a formula, not None"),
        ([], "name must be that of a formula, not []"),
    ],
)
def test_unknown_formula(look_up, name, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        look_up(name)


@pytest.mark.parametrize("look_up", [catalog.formulas, catalog.names, catalog.contract])
@pytest.mark.parametrize("name", ["cli", "kernels", "", []])
def test_unknown_module(look_up, name):
    message = f"module must be one of {', '.join(CONTRACT)}, not {name!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        look_up(name)


GOOD = """
Return it.

.. math::

    x

Parameters
----------
x : float
    A number [ratio].

Returns
-------
float
    The number [ratio].

Notes
-----
**Domain:** all.

**Guard:** none.

**Special values:** none.

**Error:** none.

**Origin:** a test.

Examples
--------
>>> 1
1
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (GOOD, "", "have a text"),
        ("\n    x\n", "\n", "have a formula under '.. math::'"),
        ("x : float", "y : float", "describe x, in this order"),
        ("A number [ratio].", "A number.", "end the description of x with a [unit] and a period"),
        ("The number [ratio].", "The number [ratio]", "end the description of the result with a [unit] and a period"),
        ("**Guard:** none.", "No guard.", "have a paragraph **Guard:** in its Notes"),
        (">>> 1\n1\n", "", "have an example"),
    ],
)
def test_a_docstring_with_a_gap_is_refused(old, new, message):
    def wrapper(x: float) -> float:
        return x

    wrapper.__doc__ = GOOD
    assert catalog._describe("topic", "wrapper", wrapper).notes == ("**Origin:** a test.",)
    wrapper.__doc__ = GOOD.replace(old, new)
    with pytest.raises(ValueError, match=f"^the docstring of wrapper must {re.escape(message)}$"):
        catalog._describe("topic", "wrapper", wrapper)


def test_numpy_is_not_needed():
    code = "import sys; sys.modules['numpy'] = None; from kvformulas import catalog; print(len(catalog.formulas()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(len(FORMULAS))


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"2 \cdot \mathrm{batch\_size} \times x", "2 · batch_size · x"),
        (r"\frac{a}{b}", "a / b"),
        (r"\frac{a + b}{c}", "(a + b) / c"),
        (r"\frac{a \cdot b}{c \cdot d}", "a · b / (c · d)"),
        (r"\frac{\frac{a}{b}}{\frac{c}{d}}", "a / b / (c / d)"),
        (r"\dfrac{(a + b)}{(c + d)}", "(a + b) / (c + d)"),
        (r"\tfrac{-a}{-b}", "(-a) / (-b)"),
        (r"\frac{\left|a - b\right|}{\left\lfloor c + d \right\rceil}", "|a - b| / ⌊c + d⌉"),
        ("x^{a+b}", "x^(a+b)"),
        ("x^2 y^{10}", "x^2 y^10"),
        ("x^{y^z}", "x^(y^z)"),
        (r"e^{-\frac{H}{2}}", "e^(-H / 2)"),
        (r"\left(\frac{a}{b}\right)^{\alpha}", "(a / b)^\N{GREEK SMALL LETTER ALPHA}"),
        (r"\sqrt{a + b}", "sqrt(a + b)"),
        (r"\operatorname{trunc}\left( x \right)", "trunc(x)"),
        (r"a \le b, \quad c \geq d \ne e", "a ≤ b, c ≥ d ≠ e"),
        (r"a \\ b", "a; b"),
        (r"\begin{cases} a, & \text{if } b > 0 \\ c & x \le y \\ d & \text{otherwise.} \end{cases}",
         "a if b > 0; c if x ≤ y; d otherwise"),
        (r"f - \begin{cases} a & \text{if } b \\ 0 & \text{otherwise} \end{cases}", "f - (a if b; 0 otherwise)"),
        (r"\unheardof{a}", "unheardof a"),
    ],
)  # fmt: skip
def test_plain_math(latex, text):
    assert catalog.plain_math(latex) == text


def test_plain_text():
    text = "See ``x <= 0`` and :func:`~kvformulas.kv_cache.pow` [1]_,\n:math:`\\frac{a}{b}`. **Origin:** 2**53."
    assert catalog.plain_text(text) == "See x <= 0 and pow [1], a / b. Origin: 2**53."


def evaluate(text, values):
    """Compute a plain formula, with its cases and with what it defines before or after the value."""
    signs = {"·": "*", "^": "**", "≤": "<=", "≥": ">=", "⌊": "round(", "⌉": ")", " is even": " % 2 == 0", "π": "pi"}
    for sign, python in (signs | {" is odd": " % 2 == 1"}).items():
        text = text.replace(sign, python)
    text = re.sub(r"\|([^|]+)\|", r"abs(\1)", text)
    known = {"min": min, "max": max, "abs": abs, "round": round, "trunc": math.trunc, "ceil": math.ceil}
    known |= {"mod": math.fmod, "sqrt": math.sqrt, "ln": math.log, "e": math.e, "pi": math.pi, "nan": math.nan} | values
    text, _, definition = text.partition(" with ")
    if match := re.fullmatch(r"(\w) = (.+?); \((.+)\)", text):
        definition, text = f"{match[1]} = {match[2]}", match[3]
    if definition:
        name, _, value = definition.partition(" = ")
        known[name] = eval(value, {"__builtins__": {}}, known)
    *cases, last = text.split("; ")
    last = f"{last} else nan" if " if " in last else last.removesuffix(" otherwise")
    return eval(" else ".join([*cases, last]), {"__builtins__": {}}, known)


SHARES = {"acceptance_rate", "cost_ratio", "gamma", "uniform"}
# What solves an equation or maximises an expression is not computed by its math.
SOLUTIONS = {"acceptance_rate_from_counts", "break_even_acceptance"}
OPTIMA = {"best_speculation_depth"}  # test_laws_speculation_analysis.py compares it with all other depths


def ordinary(formula, chance):
    """Draw arguments away from the guards, which the math leaves out."""
    values = {
        name: chance.uniform(0.1, 0.9) if name in SHARES else chance.uniform(1.1, 9)
        for name in catalog.arguments(formula)
    }
    return values | {name: values[name] + 9 for name in ("head_dim", "high") if name in values}


def test_plain_math_is_the_formula(topic, formula):
    text = catalog.plain_math(catalog.formula(formula).math)
    assert not set("\\{}&") & set(text)
    function = getattr(import_module(f"kvformulas.{topic}"), formula)
    chance = random.Random(formula)
    for _ in range(50 if formula not in SOLUTIONS | OPTIMA else 0):
        values = ordinary(formula, chance)
        assert math.isclose(function(**values), evaluate(text, values), rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.parametrize("formula", sorted(SOLUTIONS))
def test_plain_math_is_the_equation_that_a_solution_solves(formula):
    unknown, _, equation = catalog.plain_math(catalog.formula(formula).math).partition(" with ")
    chance = random.Random(formula)
    for _ in range(50):
        values = ordinary(formula, chance)
        if "steps" in values:
            values["accepted_tokens"] = values["steps"] * values["depth"] * chance.uniform(0.1, 0.9)
        solved = values | {unknown: getattr(kvformulas, formula)(**values)}
        left, right = (evaluate(side, solved) for side in equation.split(" = "))
        assert math.isclose(left, right, rel_tol=1e-12)
