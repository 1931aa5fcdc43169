# The oracle against its worked examples, against the second reference and against itself at twice the precision; then
# every formula against the oracle, within the budget that its docstring states.
import ast
import inspect
import itertools
import math
import random
from pathlib import Path

import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kvformulas
import oracle
import points
import reference
import ulp
from conftest import CONTRACT, FORMULAS
from oracle import comparison

TESTS = Path(__file__).parent
SOURCES = [TESTS / "ulp.py", *sorted(TESTS.glob("oracle/*.py")), *sorted(TESTS.glob("reference/*.py"))]
EACH = pytest.mark.parametrize("formula", [name for _, name in FORMULAS])
FINITE = st.floats(allow_nan=False, allow_infinity=False)
HOSTILE = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 2.0**53, 1e300, 0.5, 1.0, -3.0]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_oracle_imports_nothing_that_it_judges(source):
    allowed = {"fractions", "functools", "math", "re", "typing", "ulp"}
    allowed |= {"flint", "reference"} if source.parent.name == "reference" else {"mpmath.ctx_mp", "oracle"}
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level
            modules = [node.module]
        else:
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert all(module in allowed or module.partition(".")[0] in allowed for module in modules), modules
        # The global context is mpmath.mp; nothing imports mpmath itself, and no import is made in secret.
        assert not (isinstance(node, ast.Name) and node.id in {"__import__", "exec", "eval", "importlib", "mpmath"})


def test_the_oracle_has_the_contracts_names_and_arguments():
    for module in oracle.TOPICS:
        for name, arguments in CONTRACT[module.__name__.rpartition(".")[2]].items():
            assert list(inspect.signature(getattr(module, name)).parameters) == ["mp", *arguments]


@pytest.mark.parametrize("module", oracle.TOPICS, ids=lambda module: module.__name__)
def test_the_oracle_pins_worked_examples(module):
    for function, arguments, value in module.EXAMPLES:
        assert oracle.double(function.__name__, arguments) == value, (function.__name__, arguments)
    assert {function.__name__ for function, *_ in module.EXAMPLES} == set(CONTRACT[module.__name__.rpartition(".")[2]])


@pytest.mark.parametrize("module", oracle.TOPICS, ids=lambda module: module.__name__)
def test_the_reference_agrees_with_the_worked_examples(module):
    for function, arguments, value in module.EXAMPLES:
        assert agree(function.__name__, tuple(map(float, arguments)))
        if function.__name__ not in oracle.IRRATIONAL:
            assert ulp.nearest_double(reference.value(function.__name__, map(float, arguments))) == value


def agree(name, args):
    """Does the oracle, at its precision and at twice that, agree with the second reference?"""
    exact, double = oracle.value(name, args), oracle.double(name, args)
    assert oracle.double(name, args, prec=512) == double
    if name not in oracle.IRRATIONAL:
        return ulp.nearest_double(reference.value(name, args)) == double
    ball = reference.enclosure(name, args, bits=192)
    mantissa, exponent = exact.man_exp if exact else (0, 0)
    with ctx.workprec(1024):
        point = arb((abs(mantissa) if exact > 0 else -abs(mantissa), exponent))
        # A ball may be a single point; then the oracle's own roundings are allowed for.
        slack = arb(0, abs(point) * arb(2) ** -140)
        return (ball + slack).contains(point) and (ball.is_exact() or ball.rel_accuracy_bits() > 140)


@EACH
def test_the_oracle_agrees_with_the_reference_on_sampled_points(formula):
    for args in points.points(formula, 150, seed=7):
        assert agree(formula, args), [x.hex() for x in args]


@pytest.mark.parametrize("formula", [name for _, name in FORMULAS if name not in oracle.IRRATIONAL])
def test_a_rational_formula_agrees_with_exact_fractions_at_any_finite_doubles(formula):
    arity = len(points.ARGUMENTS[formula])

    @settings(max_examples=50)
    @given(st.tuples(*[FINITE] * arity))
    @example((1.0,) * arity)
    def check(args):
        assert agree(formula, args)

    check()


@EACH
def test_the_oracle_always_answers(formula):
    arity = len(points.ARGUMENTS[formula])
    choose = random.Random(formula)
    cases = itertools.product(HOSTILE, repeat=arity)
    if arity > 2:
        cases = (choose.choices(HOSTILE, k=arity) for _ in range(100))
    for args in cases:
        answer = oracle.value(formula, args)
        assert type(answer).context.prec >= 256
        assert not comparison.error(formula, args, oracle.double(formula, args)) > 0.5


@EACH
def test_every_formula_is_within_its_budget(formula):
    wrapper = getattr(kvformulas, formula)
    budget = ulp.budget(inspect.getdoc(wrapper))
    assert budget.ulps <= 4
    assert budget.of_largest_term == (formula in comparison.LARGEST_TERM)
    worst = max(
        (comparison.error(formula, args, wrapper(*args)), args) for args in points.points(formula, 400, seed=11)
    )
    assert worst[0] <= budget.ulps, [x.hex() for x in worst[1]]


@pytest.mark.parametrize(
    ("formula", "args", "right", "wrong"),
    [
        # The double 0.1 is more than a tenth: ten whole sequences do not quite fit, but the quotient rounds to 10.
        ("iteration_level_batch_size", (1, 0.1), {9, 10}, {8, 11, 9.5, math.nan}),
        ("iteration_level_batch_size", (2**53 - 1, 3), {3002399751580330}, {3002399751580331}),
        ("paged_attention_block_count", (2**53, 3), {3002399751580331}, {3002399751580330}),
        ("paged_attention_block_count", (0.3, 0.1), {-6, -5}, {-7, -4}),
        ("chunked_prefill_chunks", (5000, 2048), {3}, {2, 4}),
        # 200 * (1 - 0.1) is a hair below 180.
        ("admission_control_accept", (180, 200, 0.1), {0, 1}, {0.5, math.nan}),
        ("admission_control_accept", (181, 200, 0.1), {0}, {1}),
        ("admission_control_accept", (200, 200, 0), {1}, {0}),
        ("min_p_accept", (0.1 * 0.7, 0.1, 0.7), {0, 1}, {2}),
        ("min_p_accept", (6, 2, 3), {1}, {0}),
        ("min_p_accept", (0.375, 0.75, 0.5), {1}, {0}),  # the product is a double: no rounding, no room
        ("typical_sampling_accept", (-2, 1.5, 0.5), {1}, {0}),
        ("eta_sampling_accept", (math.exp(-1), 2, 1), {0, 1}, {0.5}),
        ("eta_sampling_accept", (0.3678, 2, 1), {0}, {1}),
        ("watermark_green_list_bias", (1 - 2.0**-53, 2.0**-54, 7), {0, 7}, {3}),
        ("watermark_green_list_bias", (3, 4, 7), {0}, {7}),
        ("watermark_green_list_bias", (2.0**53, 1, 7), {0, 7}, {1}),
        ("top_k_accept", (41, 40), {0}, {1}),
        ("iteration_level_batch_size", (math.inf, 2), {math.inf}, {1e300, math.nan}),
    ],
)
def test_a_decision_may_go_either_way_within_the_rounding_of_its_operand_and_nowhere_else(formula, args, right, wrong):
    for got in right:
        assert comparison.error(formula, args, float(got)) == 0
    for got in wrong:
        assert comparison.error(formula, args, float(got)) == math.inf


def test_points_are_the_same_every_time_and_finite(topic, formula):
    rows = points.points(formula, 40, seed=3)
    assert rows == points.points(formula, 40, seed=3) != points.points(formula, 40, seed=4)
    assert all(len(args) == len(CONTRACT[topic][formula]) and all(map(math.isfinite, args)) for args in rows)


@pytest.mark.checkout
@EACH
def test_the_accuracy_tool_bounds_the_error_tightly(formula, accuracy):
    wrapper = getattr(kvformulas, formula)
    with ctx.workprec(reference.BITS):
        for args in points.points(formula, 60, seed=5):
            exact, bound = (
                comparison.error(formula, args, wrapper(*args)),
                accuracy.bound(formula, args, wrapper(*args)),
            )
            assert exact - 2.0**-150 <= bound * (1 + 1e-12)
            assert bound <= exact * (1 + 1e-12) + 2.0**-150


@pytest.mark.checkout
@pytest.mark.parametrize(
    ("formula", "fault"),
    [
        ("temperature_scale", lambda x, t: x * 1e9 if t <= 0 else x / t * (1 + 2.0**-52)),
        ("cache_compaction_gain", lambda *sizes: 0.4999999999999 * 2 * math.prod(sizes)),
        ("eos_stop_score", lambda prob, threshold: float(prob > threshold)),
        ("chunked_prefill_chunks", lambda length, size: 1.0 if size <= 0 else float((length + size) // size)),
        (
            "speculative_expected_tokens",
            lambda a, g: g + 1 if a >= 1 else 1.0 if a <= 0 else (1 - a ** (g + 1)) / (1 - a),
        ),
    ],
)
def test_the_accuracy_tool_finds_a_seeded_fault(formula, fault, accuracy, monkeypatch):
    budget = ulp.budget(inspect.getdoc(getattr(kvformulas, formula)))
    with ctx.workprec(reference.BITS):
        monkeypatch.setattr(kvformulas, formula, fault)
        assert not accuracy.measure((formula, 2000, budget))["within_budget"]


@pytest.fixture(scope="module")
def accuracy():
    """Return tools/accuracy.py as a module."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("accuracy", TESTS.parent / "tools" / "accuracy.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
