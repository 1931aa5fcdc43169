"""The pages of the formulas, the tables of them, and the indexes: all from the catalog, the kernels and docs/data.

The pages are written to docs/formulas, which is not kept, before Sphinx looks for documents. What is hand-written is
the prose of a topic (docs/topics) and the questions that a formula answers (docs/questions.toml); where one is missing,
the build fails.
"""

import ast
import doctest
import importlib
import json
import math
import re
import textwrap
import tomllib
from ctypes import c_char_p, py_object, pythonapi
from functools import cache
from importlib.resources import files
from pathlib import Path

import measurements
import plots
from docutils import nodes
from rst import bullets, directive, formula, formulas, number, section, sentence, table
from sphinx.addnodes import pending_xref
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective, SphinxRole

import kvformulas
from kvformulas import capi, catalog

DOCS = Path(__file__).parents[1]
PAGES = DOCS / "formulas"
PLOTS = PAGES / "plots"
EDGES = (math.nan, -math.inf, -1.0, 0.0, math.inf)


# What the sources say


@cache
def names():
    return {entry.name for topic in catalog.modules() for entry in catalog.formulas(topic)}


@cache
def questions():
    """Return the hand-written questions by subject, each with the formulas that answer it."""
    subjects = tomllib.loads((DOCS / "questions.toml").read_text(encoding="utf-8"))
    answering = {name for subject in subjects.values() for names in subject.values() for name in names}
    if answering != names():
        raise ExtensionError(
            f"docs/questions.toml must ask for every formula: {', '.join(sorted(answering ^ names()))}"
        )
    return subjects


def questions_of(name):
    return [question for subject in questions().values() for question, names in subject.items() if name in names]


def address_signature(name):
    get_name = pythonapi.PyCapsule_GetName
    get_name.argtypes, get_name.restype = [py_object], c_char_p
    return get_name(capi.__pyx_capi__[name]).decode()


def has_array_twin(name):
    try:
        return hasattr(importlib.import_module("kvformulas.ufuncs"), name)
    except ImportError:
        return False


@cache
def rules():
    """Return the helpers that kernels share, by name."""
    text = (files("kvformulas") / "kernels" / "rules.pxd").read_text(encoding="utf-8")
    parts = re.split(r"\n\n\n(?=cdef inline double )", text)[1:]
    return {re.match(r"cdef inline double (\w+)", part)[1]: part.strip() for part in parts}


def called(source, among):
    return [name for name in among if re.search(rf"\b{name}\(", source.partition("\n")[2])]


def rules_of(source):
    """Return the helpers that a kernel uses, and those that they use, in the order of use."""
    found = []
    for name in called(source, rules()):
        found += [name, *rules_of(rules()[name])]
    return list(dict.fromkeys(found))


def first_call(entry):
    """Run the docstring's examples and return the arguments of the formula's first call in them."""
    calls = []
    module = importlib.import_module(f"kvformulas.{entry.module}")
    wrapper = getattr(module, entry.name)

    def recorder(*args, **kwargs):
        calls.append([*args, *(kwargs[a.name] for a in entry.arguments if a.name in kwargs)])
        return wrapper(*args, **kwargs)

    namespace = {}
    setattr(module, entry.name, recorder)
    try:
        for example in doctest.DocTestParser().get_examples(entry.example):
            exec(compile(ast.parse(example.source), entry.name, "exec"), namespace)
            if calls:
                return [float(value) for value in calls[0]]
    finally:
        setattr(module, entry.name, wrapper)
    raise ExtensionError(f"the examples of {entry.name} must call it")


def plain(source):
    """Return a reference whose first initial does not begin a list."""
    return "\\" + source if source[0].isalpha() else source


def paper(source):
    """Part a reference into the work and the place in it."""
    places = "section|equation|algorithm|theorem|table|figure|chapter|page"
    source = source.removesuffix(".")
    quoted = re.fullmatch(rf'(.*?"[^"]+".*?)(?:, ((?:{places})s? .+))?', source)
    work, place = quoted.groups("") if quoted else source.partition(", ")[::2]
    return plain(work), place


def said(summary):
    """Return a docstring's summary without the verb that every one begins with."""
    return sentence(summary.removeprefix("Return "))


def prose(text, name):
    """Return a docstring's text with links to the other formulas that it names, and with powers of two as such."""

    def link(match):
        return formula(match[1]) if match[1] != name and match[1] in names() else match[0]

    def power(match):
        return "2" + match[1].translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))

    return re.sub(r"\b2\*\*(-?\d+)", power, re.sub(r"``(\w+)``", link, text))


# A formula's page


def signatures(entry):
    name, arguments = entry.name, [argument.name for argument in entry.arguments]
    python = ", ".join(f"{argument}: float" for argument in arguments)
    c = ", ".join(f"double {argument}" for argument in arguments)
    address = f'``kvformulas.capi.__pyx_capi__["{name}"]``, a capsule named ``{address_signature(name)}``'
    faces = [("Address", f"{address}: for :doc:`numba, SciPy, C and C++ </guides/addresses>`")]
    if has_array_twin(name):
        faces.append(("Arrays", f"``kvformulas.ufuncs.{name}({', '.join(arguments)})``: see :doc:`/guides/arrays`"))
    faces.append(("Shell", f"``kvformulas execute {entry.module} {name} {' '.join(a.upper() for a in arguments)}``"))
    return section(
        "Signatures",
        directive(
            "py:function",
            f"{name}({python}) -> float",
            f"Also ``kvformulas.{name}``. An argument is any real number, by position or by name.",
            module=f"kvformulas.{entry.module}",
        ),
        directive(
            "c:function",
            f"double {name}({c})",
            directive("code-block", "cython", f"from kvformulas cimport {name}  # inlined; noexcept nogil"),
        ),
        "\n".join(f":{face}: {text}" for face, text in faces),
    )


def edges(entry):
    call = first_call(entry)
    function = catalog.function(entry.name)
    rows = [
        [f"``{argument.name}``", *(number(function(*call[:i], edge, *call[i + 1 :])) for edge in EDGES)]
        for i, argument in enumerate(entry.arguments)
    ]
    shown = ", ".join(f"{x:.0f}" if x.is_integer() else repr(x) for x in call)
    return (
        "Computed when this page was built: one argument replaced, the others as in "
        f"``{entry.name}({shown})`` = {number(function(*call))}.\n\n"
        + table(["argument", *map(number, EDGES)], rows, class_="edges")
    )


def limits(entry):
    facts = {"Domain": entry.domain, "Guard": entry.guard, "Special values": entry.special_values}
    return section(
        "Domain, guards and edges",
        "\n\n".join(f"{name}\n   {prose(sentence(text), entry.name)}" for name, text in facts.items()),
        edges(entry),
    )


def kernel(entry):
    source = catalog.kernel(entry.name)
    helpers = rules_of(source)
    others = [name for name in called(source, sorted(names())) if name != entry.name]
    # A label with the file's name says where each part is from.
    blocks = [directive("code-block", "cython", source, caption=f"src/kvformulas/kernels/{entry.module}.pxd")]
    if helpers:
        text = "\n\n\n".join(rules()[name] for name in helpers)
        blocks.append(directive("code-block", "cython", text, caption="src/kvformulas/kernels/rules.pxd"))
    if others:
        blocks.append(f"It calls {formulas(others)}.")
    return section("The kernel", *blocks)


def references(entry):
    notes = "\n".join(f".. [{i}] {plain(source)}" for i, source in enumerate(entry.source, 1))
    return section("References", notes)


def displayed(latex):
    """Return the math directive, an assignment on a line of its own and a definition below what it defines."""
    lines = re.split(r"\s*;\s*\n|\n(?=\\text\{ with \})", latex)
    return directive("math", "", "\n\n".join(line.strip().replace(r"\text{ with }", r"\text{with }") for line in lines))


def page(entry):
    topic = f":doc:`/topics/{entry.module}`"
    siblings = [f"{formula(reference.name)}: {reference.description}" for reference in entry.see_also]
    parts = [
        directive("meta", "", f":description: {catalog.plain_text(said(entry.summary))}"),
        section(
            entry.name,
            # A topic's title counts as one in the search: people search with questions.
            directive("topic", " ".join(questions_of(entry.name)), said(entry.summary), class_="question"),
            displayed(entry.math),
            prose(entry.description, entry.name),
            plots.figure(entry.name, PLOTS),
            mark="=",
        ),
        section(
            "Arguments",
            table(
                ["argument", "unit", "meaning"],
                [
                    *((f"``{a.name}``", a.unit, prose(a.description, entry.name)) for a in entry.arguments),
                    ("*returns*", entry.unit, prose(entry.returns, entry.name)),
                ],
                class_="arguments",
            ),
        ),
        section("Example", entry.example),
        signatures(entry),
        limits(entry),
        section("Accuracy", prose(sentence(entry.error), entry.name), measurements.accuracy_of(entry.name)),
        section("Notes", *(prose(note, entry.name) for note in entry.notes)) if entry.notes else "",
        kernel(entry),
        section("See also", bullets([*siblings, f"{topic}: the topic"])),
        references(entry),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def write_pages(_app):
    """Write the pages; one that is as it was keeps its date, so that Sphinx reads only what changed."""
    for topic in catalog.modules():
        if not any((DOCS / "topics" / f"{topic}{suffix}").exists() for suffix in (".rst", ".md")):
            raise ExtensionError(f"docs/topics/{topic}.rst must say what the topic {topic} is about")
    PLOTS.mkdir(parents=True, exist_ok=True)
    texts = {PAGES / f"{entry.name}.rst": page(entry) for entry in catalog.formulas()}
    for path in PAGES.glob("*.rst"):
        if path not in texts:
            path.unlink()
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# Directives


def topic_table(environment, topic):
    """Return a topic's module and the table of its formulas, a line each."""
    topic = topic or environment.docname.rpartition("/")[2]
    summary = importlib.import_module(f"kvformulas.{topic}").__doc__.strip().partition("\n")[0]
    entries = catalog.formulas(topic)
    return "\n\n".join(
        [
            directive("py:module", f"kvformulas.{topic}", synopsis=summary),
            table(
                ["formula", "what it does"], [(formula(e.name), said(e.summary)) for e in entries], class_="formulas"
            ),
            directive("toctree", "", "\n".join(f"/formulas/{e.name}" for e in entries), hidden=""),
        ]
    )


def topic_list(_environment, _argument):
    """Return the table of topics."""
    rows = [
        (
            f":doc:`/topics/{topic}` ({len(catalog.names(topic))})",
            importlib.import_module(f"kvformulas.{topic}").__doc__.strip().partition("\n")[0],
        )
        for topic in catalog.modules()
    ]
    return table(["topic (formulas)", "what it is about"], rows)


def topic_toctree(_environment, _argument):
    """Put the topics into the navigation."""
    return directive(
        "toctree", "", "\n".join(f"/topics/{topic}" for topic in catalog.modules()), caption="Topics", hidden=""
    )


def question_index(_environment, _argument):
    """Return the questions by subject, each with the formulas that answer it."""
    return "\n\n".join(
        section(subject, table(["question", "formula"], [(asked, formulas(names)) for asked, names in entries.items()]))
        for subject, entries in questions().items()
    )


def argument_index(_environment, _argument):
    """Return every argument's name with its units and the formulas that take it."""
    found = {}
    for entry in catalog.formulas():
        for argument in entry.arguments:
            found.setdefault(argument.name, []).append((argument.unit, entry.name))
    rows = [
        (f"``{name}``", ", ".join(dict.fromkeys(unit for unit, _ in uses)), formulas(formula for _, formula in uses))
        for name, uses in sorted(found.items())
    ]
    return table(["argument", "unit", "taken by"], rows)


def paper_index(_environment, _argument):
    """Return every work that the formulas cite, with the place that each cites."""
    found = {}
    for entry in catalog.formulas():
        for source in entry.source:
            work, place = paper(source)
            found.setdefault(work, []).append(formula(entry.name) + (f" ({place})" if place else ""))
    return "\n\n".join(f"{work}\n   {', '.join(found[work])}" for work in sorted(found, key=str.casefold))


def formula_count(_environment, _argument):
    """Return how many formulas there are, in how many topics."""
    return f"{len(catalog.formulas())} formulas in {len(catalog.modules())} topics."


# The memory product


def memory_products(_environment, _argument):
    """Return the table of the formulas that hold the memory product, at the size of Qwen3-0.6B."""
    model = json.loads((files("kvformulas.data") / "qwen3-0.6b.json").read_text(encoding="utf-8"))
    layers, heads, head_dim = model["num_hidden_layers"], model["num_key_value_heads"], model["head_dim"]
    dtype, tokens = 2, 2048
    shape = (layers, heads, head_dim, dtype)
    per_layer = kvformulas.kv_cache_memory_per_layer(1, tokens, heads, head_dim, dtype)
    cases = [
        ("kv_cache_memory_per_layer", (1, tokens, heads, head_dim, dtype), "one layer, 2,048 tokens"),
        ("kv_cache_total_memory", (per_layer, layers), "the same over all layers"),
        ("prefix_cache_hit_bytes", (tokens, heads, head_dim, layers, dtype), "a cached prefix of 2,048 tokens"),
        ("prefix_sharing_savings", (tokens, 2, *shape), "two sequences share it: one copy less"),
        (
            "cache_compaction_gain",
            (2 * tokens // 16, 16, dtype, layers, heads, head_dim),
            "256 blocks of 16, half empty",
        ),
        ("speculative_branch_memory", (1, tokens, *shape), "one branch of 2,048 drafted tokens"),
        ("beam_memory_per_request", (1, tokens, *shape), "one beam of 2,048 tokens"),
        ("block_copy_cost", (tokens, *shape, 100), "a block of 2,048 tokens copied at 100 GB/s"),
    ]
    rows = []
    for name, arguments, meaning in cases:
        value, unit = catalog.function(name)(*arguments), catalog.formula(name).unit
        size = f"{value / 2**20:,g} MiB" if unit == "bytes" else f"{value:g} {unit}"
        rows.append((formula(name), f"``({', '.join(f'{a:.0f}' for a in arguments)})``", size, meaning))
    return table(["formula", "arguments", "value", "what it is the size of"], rows)


def plan_plot(_environment, _argument):
    """Show the plot of the planner's guide."""
    return plots.plan_plot(PLOTS)


DIRECTIVES = (
    topic_table,
    topic_list,
    topic_toctree,
    question_index,
    argument_index,
    paper_index,
    plan_plot,
    formula_count,
    memory_products,
)


class FormulaRole(SphinxRole):
    """Link a formula's name to its page; an unknown name is an error."""

    def run(self):
        link = pending_xref(
            "",
            refdoc=self.env.docname,
            refdomain="py",
            reftype="func",
            reftarget=f"kvformulas.{catalog.formula(self.text).module}.{self.text}",
            refexplicit=True,
            refwarn=True,
        )
        link += nodes.literal("", self.text, classes=["xref", "py", "py-func"])
        return [link], []


def generated(make):
    """Return the directive of what a function returns as reStructuredText."""

    class Generated(SphinxDirective):
        optional_arguments = 1
        final_argument_whitespace = True

        def run(self):
            text = make(self.env, self.arguments[0] if self.arguments else None)
            return self.parse_text_to_nodes(textwrap.dedent(text), allow_section_headings=True)

    return Generated


def setup(app):
    for make in (*DIRECTIVES, *measurements.DIRECTIVES):
        app.add_directive(make.__name__.replace("_", "-"), generated(make))
    app.add_role("formula", FormulaRole())
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
