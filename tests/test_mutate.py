# The mutation tool itself, on a small sample: what it changes, that changes die and unchanged functions live, that a
# weak test lets mutants live, and that its list of equivalents may be neither short nor stale.
import ast
import sys
from pathlib import Path

import pytest

from conftest import CONTRACT

TOOLS = Path(__file__).parents[1] / "tools"
pytestmark = pytest.mark.checkout

SMALL = """
def ratio(used, size):
    if size <= 0.0:
        return 0.0
    return used / size
"""


@pytest.fixture(scope="module")
def mutate():
    """Return tools/mutate.py as a module."""
    sys.path.insert(0, str(TOOLS))
    try:
        import mutate
    finally:
        sys.path.remove(str(TOOLS))
    return mutate


@pytest.fixture(scope="module")
def kernels(mutate):
    return mutate.read_kernels()


def unchanged(mutate, kernel):
    return mutate.Mutant(kernel.name, "none", "", "", kernel.tree)


def test_every_kernel_is_read_with_its_arguments(kernels):
    read = {name: kernel.arguments for name, kernel in kernels.items() if kernel.topic != "rules"}
    assert read == {name: arguments for formulas in CONTRACT.values() for name, arguments in formulas.items()}
    assert {"minimum", "power", "blocks_covering"} <= {k.name for k in kernels.values() if k.topic == "rules"}


def test_the_tools_compile_with_the_flags_of_the_package(mutate):
    setup = (TOOLS.parent / "setup.py").read_text()
    assert all(f'"{flag}"' in setup for flag in mutate.FLAGS)


def test_the_mutants_of_a_small_function(mutate):
    function = ast.parse(SMALL).body[0]
    found = mutate.mutants(function, mutate.KERNEL)
    assert {(m.kind, m.before, m.after) for m in found} == {
        *(("comparison", "if size <= 0.0:", f"if size {op} 0.0:") for op in ("<", ">", ">=", "==", "!=")),
        ("condition negated", "if size <= 0.0:", "if not size <= 0.0:"),
        ("always", "if size <= 0.0:", "if True:"),
        ("never", "if size <= 0.0:", "if False:"),
        ("variable", "if size <= 0.0:", "if used <= 0.0:"),
        *(("constant", "if size <= 0.0:", f"if size <= {number}:") for number in ("1.0", "2.0", "-1.0")),
        *(("constant", "return 0.0", f"return {number}") for number in ("1.0", "2.0", "-1.0")),
        ("result negated", "return 0.0", "return -0.0"),
        *(("operator", "return used / size", f"return used {op} size") for op in "+-*"),
        ("operand dropped", "return used / size", "return used"),
        ("operand dropped", "return used / size", "return size"),
        ("operands swapped", "return used / size", "return size / used"),
        ("variable", "return used / size", "return size / size"),
        ("variable", "return used / size", "return used / used"),
        ("result negated", "return used / size", "return -(used / size)"),
    }
    assert len({m.key for m in found}) == len(found)
    assert ast.unparse(function) == SMALL.strip(), "the original is left as it was"


def test_a_mutant_of_a_rule_is_judged_by_the_formulas_that_use_it(mutate, kernels):
    assert {"minimum", "radix_cache_shared_prefix_len"} <= set(mutate.users("minimum", kernels))
    assert "medusa_head_acceptance" in mutate.users("at_most_one", kernels)
    assert mutate.users("kv_cache_utilization", kernels) == ["kv_cache_utilization"]


def test_changed_kernels_die_and_unchanged_ones_live(mutate, kernels):
    names = ["kv_cache_utilization", "minimum", "speculative_expected_tokens"]
    every = {name: mutate.mutants(kernels[name].tree, mutate.KERNEL) for name in names}
    # Of speculative_expected_tokens the textbook form, which only the points near 1 can tell from the right one.
    textbook = [m for m in every["speculative_expected_tokens"] if "exp((speculation_depth" in m.after]
    fatal = [*every["kv_cache_utilization"][:8], *textbook]
    originals = [unchanged(mutate, kernels[name]) for name in names]
    killers = list(mutate.kernel_killers([*fatal, *originals], kernels))
    assert all(killers[: len(fatal)])
    assert len(textbook) >= 2
    assert killers[len(fatal) :] == [None] * len(names)


def test_without_its_evidence_a_kernels_mutants_live(mutate, kernels, monkeypatch):
    monkeypatch.setattr(mutate.Judge, "fails_vectors", lambda *_: False)
    monkeypatch.setattr(mutate.Judge, "fails_hostile", lambda *_: False)
    monkeypatch.setattr(mutate.comparison, "error", lambda *_: 0.0)
    chosen = mutate.mutants(kernels["temperature_scale"].tree, mutate.KERNEL)[:4]
    assert None in mutate.kernel_killers(chosen, kernels)


def mutants_of_the_oracle(mutate, name):
    files = mutate.oracle_files()
    function = next(f for module in files.values() for f in mutate.functions_of(module) if f.name == name)
    return files, [*mutate.mutants(function, mutate.ORACLE)], mutate.Mutant(name, "none", "", "", function)


@pytest.mark.parametrize("name", ["cache_eviction_beladys_score", "least"])
def test_changed_definitions_die_by_the_vectors_alone_and_unchanged_ones_live(name, mutate):
    files, changed, original = mutants_of_the_oracle(mutate, name)
    *killers, last = mutate.oracle_killers([*changed, original], files)
    assert len(changed) >= 5
    assert all(killers)
    assert last is None


def test_without_vectors_a_definitions_mutants_live(mutate, monkeypatch):
    monkeypatch.setattr(mutate, "vectors", dict)
    files, changed, _ = mutants_of_the_oracle(mutate, "cache_eviction_beladys_score")
    assert set(mutate.oracle_killers(changed, files)) == {None}


def test_a_definition_that_never_ends_is_killed(mutate, monkeypatch):
    monkeypatch.setattr(mutate, "SECONDS", 0.05)

    def endless(*_):
        while True:
            pass

    assert mutate.oracle_killer({"pow_approx": endless}) == "endless loop"


@pytest.mark.parametrize(
    ("listed", "killers", "faults"),
    [
        ([], ["vectors", "vectors"], []),
        ([], ["vectors", None], ["survives: "]),
        ([1], ["vectors", None], []),
        ([1], ["vectors", "vectors"], ["listed as equivalent, but killed by vectors: "]),
        ([1, ("ratio", "return 1.0", "return 2.0")], ["vectors", None], ["listed, but no such mutant: "]),
    ],
)
def test_the_list_of_equivalents_is_exact(listed, killers, faults, mutate, monkeypatch, capsys):
    found = mutate.mutants(ast.parse(SMALL).body[0], mutate.KERNEL)[:2]
    keys = [found[key].key if isinstance(key, int) else key for key in listed]
    monkeypatch.setattr(mutate, "equivalents", lambda _: dict.fromkeys(keys, "for a reason"))
    result = mutate.report("kernels", found, found, killers)
    assert len(result["faults"]) == len(faults)
    assert all(fault.startswith(start) for fault, start in zip(result["faults"], faults, strict=True))
    assert "of the non-equivalent" in capsys.readouterr().out


def test_a_sample_holds_every_function_and_is_the_same_every_time(mutate, kernels):
    found = [m for kernel in kernels.values() for m in mutate.mutants(kernel.tree, mutate.KERNEL)]
    sample = mutate.sampled(found, 200, seed=1)
    assert len(sample) == 200
    assert {m.function for m in sample} == {m.function for m in found}
    assert sample == mutate.sampled(found, 200, seed=1) != mutate.sampled(found, 100, seed=2)


@pytest.mark.parametrize("part", ["kernels", "oracle"])
def test_every_equivalent_has_a_reason_and_is_a_mutant(part, mutate, kernels):
    if part == "kernels":
        found = [m for kernel in kernels.values() for m in mutate.mutants(kernel.tree, mutate.KERNEL)]
    else:
        functions = [f for module in mutate.oracle_files().values() for f in mutate.functions_of(module)]
        found = [m for function in functions for m in mutate.mutants(function, mutate.ORACLE)]
    listed = mutate.equivalents(part)
    assert set(listed) <= {m.key for m in found}
    assert all(len(reason) > 20 for reason in listed.values())
