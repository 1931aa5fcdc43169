# A separate package, compiled against the installed wheel, reaches every kernel in both ways and without the GIL.
import kvformulas
from build_ext import build
from conftest import CONTRACT, FORMULAS

VALUES = [3.0, 0.75, 5.0, 2.0, 4.0, 7.0, 1.5]  # no formula gives NaN here


def test_cimport_from_the_package_and_from_a_topic(tmp_path):
    names = [name for _, name in FORMULAS]
    lines = ["from kvformulas cimport " + ", ".join(names)]
    for topic, formulas in CONTRACT.items():
        lines.append(
            f"from kvformulas.kernels.{topic} cimport " + ", ".join(f"{name} as topic_{name}" for name in formulas)
        )
    lines += ["def results():", f"    cdef double[{2 * len(FORMULAS)}] r", "    with nogil:"]
    for i, (topic, name) in enumerate(FORMULAS):
        arguments = ", ".join(map(repr, VALUES[: len(CONTRACT[topic][name])]))
        lines += [f"        r[{2 * i}] = {name}({arguments})", f"        r[{2 * i + 1}] = topic_{name}({arguments})"]
    lines.append("    return list(r)")

    results = build("\n".join(lines), tmp_path, "cimports").results()

    for i, (topic, name) in enumerate(FORMULAS):
        expected = getattr(kvformulas, name)(*VALUES[: len(CONTRACT[topic][name])])
        assert results[2 * i] == results[2 * i + 1] == expected, name


def test_an_inlined_kernel_needs_nothing_at_run_time(tmp_path):
    module = build(
        "from kvformulas cimport kv_cache_total_memory\n"
        "def total(double per_layer, double layers):\n"
        "    return kv_cache_total_memory(per_layer, layers)\n"
        "def loaded():\n"
        "    import sys\n"
        "    return [name for name in sys.modules if name.startswith('kvformulas.kernels')]\n",
        tmp_path,
        "inlined",
    )
    assert module.total(8388608, 28) == 234881024
    assert module.loaded() == []
