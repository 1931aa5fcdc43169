"""What formulas there are, and what their documentation says, as objects.

Everything is read from the wrappers: names and order from ``inspect.signature``, the rest from the docstring. Names and
arguments cost no parsing; a docstring is parsed once, when its formula is first asked for.
"""

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypedDict

from kvformulas import _FORMULAS, _TOPIC_OF

if TYPE_CHECKING:
    from docstring_parser.numpydoc import NumpydocParser

__all__ = [
    "Argument",
    "Contract",
    "ContractFunction",
    "ContractParameter",
    "Formula",
    "Reference",
    "arguments",
    "contract",
    "contracts",
    "formula",
    "formulas",
    "function",
    "kernel",
    "modules",
    "names",
    "plain_math",
    "plain_text",
]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a formula; its place is its place in ``Formula.arguments``."""

    name: str
    unit: str
    description: str


@dataclass(frozen=True, slots=True)
class Reference:
    """Another formula, and what it has to do with this one."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Formula:
    """One formula as its docstring describes it. ``math`` is LaTeX; the other texts are reStructuredText."""

    module: str
    name: str
    arguments: tuple[Argument, ...]
    returns: str
    unit: str
    summary: str
    math: str
    description: str
    domain: str
    guard: str
    special_values: str
    error: str
    notes: tuple[str, ...]
    source: tuple[str, ...]
    see_also: tuple[Reference, ...]
    example: str

    @property
    def signature(self) -> str:
        """The call with its argument names, as ``f(x, y)``."""
        return f"{self.name}({', '.join(argument.name for argument in self.arguments)})"


class ContractParameter(TypedDict):
    """A parameter in the reference system's contract."""

    name: str
    type: str
    has_default: bool
    is_mut: bool


class ContractFunction(TypedDict):
    """A function in the reference system's contract."""

    name: str
    params: list[ContractParameter]
    return_type: str


class Contract(TypedDict):
    """A module in the reference system's contract."""

    name: str
    engine: str
    structs: list[object]
    functions: list[ContractFunction]


def _is_key(name: object, known: dict[str, Any]) -> bool:
    return isinstance(name, str) and name in known


def modules() -> tuple[str, ...]:
    """Return the names of the topic modules."""
    return tuple(_FORMULAS)


def names(module: str) -> tuple[str, ...]:
    """Return the names of a topic module's formulas; an unknown module is a ``ValueError``."""
    if not _is_key(module, _FORMULAS):
        raise ValueError(f"module must be one of {', '.join(_FORMULAS)}, not {module!r}")
    return _FORMULAS[module]


def _topic(name: str) -> str:
    if not _is_key(name, _TOPIC_OF):
        close = difflib.get_close_matches(str(name), _TOPIC_OF)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(f"name must be that of a formula, not {name!r}{hint}")
    return _TOPIC_OF[name]


def function(name: str) -> Callable[..., float]:
    """Return the wrapper of a formula; an unknown name is a ``ValueError``."""
    wrapper: Callable[..., float] = getattr(import_module(f"kvformulas.{_topic(name)}"), name)
    return wrapper


def arguments(name: str) -> tuple[str, ...]:
    """Return the names of a formula's arguments, in order; an unknown name is a ``ValueError``."""
    return tuple(inspect.signature(function(name)).parameters)


def formula(name: str) -> Formula:
    """Return one formula; an unknown name is a ``ValueError`` that offers the closest ones."""
    _topic(name)
    return _formula(name)


def formulas(module: str | None = None) -> tuple[Formula, ...]:
    """Return the formulas of one topic module, or all; an unknown module is a ``ValueError``."""
    chosen = tuple(_TOPIC_OF) if module is None else names(module)
    return tuple(_formula(name) for name in chosen)


def contract(module: str) -> Contract:
    """Return a topic module in the reference system's JSON form; an unknown module is a ``ValueError``."""
    return {
        "name": module,
        "engine": "cython",
        "structs": [],
        "functions": [
            {
                "name": name,
                "params": [
                    {"name": argument, "type": "Float64", "has_default": False, "is_mut": False}
                    for argument in arguments(name)
                ],
                "return_type": "Float64",
            }
            for name in names(module)
        ],
    }


def contracts() -> list[Contract]:
    """Return every topic module in the reference system's JSON form."""
    return [contract(module) for module in modules()]


def kernel(name: str) -> str:
    """Return the kernel's own lines from the shipped ``.pxd``; an unknown name is a ``ValueError``."""
    text = (files("kvformulas") / "kernels" / f"{_topic(name)}.pxd").read_text(encoding="utf-8")
    start = text.index(f"cdef inline double {name}(")
    # Two blank lines part one kernel from the next.
    return text[start:].partition("\n\n\n")[0].rstrip()


# From docstring to object


@functools.cache
def _parser() -> "NumpydocParser":
    from docstring_parser.numpydoc import NumpydocParser, ParamSection, Section

    parser = NumpydocParser()
    parser.add_section(ParamSection("See Also", "see_also"))  # the same form: a name, a colon, a description
    parser.add_section(Section("Examples", "examples"))  # whole, so that the text between examples keeps its place
    return parser


@functools.cache
def _formula(name: str) -> Formula:
    return _describe(_topic(name), name, function(name))


def _describe(module: str, name: str, wrapper: Callable[..., float]) -> Formula:
    def require(text: str | None, what: str) -> str:
        if not text:
            raise ValueError(f"the docstring of {name} must have {what}")
        return text

    doc = _parser().parse(require(inspect.getdoc(wrapper), "a text"))
    parts: dict[str, list[Any]] = {}
    for meta in doc.meta:
        parts.setdefault(meta.args[0], []).append(meta)

    def section(key: str) -> str:
        return "".join(meta.description or "" for meta in parts.get(key, []))

    def measured(text: str | None, what: str) -> tuple[str, str]:
        match = re.fullmatch(r"(.+) \[([^\[\]]+)\]\.", _line(text or ""))
        if match is None:
            raise ValueError(f"the docstring of {name} must end the description of {what} with a [unit] and a period")
        return f"{match[1]}.", match[2]

    documented = {meta.arg_name: meta.description for meta in parts.get("param", [])}
    expected = tuple(inspect.signature(wrapper).parameters)
    if tuple(documented) != expected:
        raise ValueError(f"the docstring of {name} must describe {', '.join(expected)}, in this order")
    described = []
    for argument, text in documented.items():
        meaning, unit = measured(text, argument)
        described.append(Argument(argument, unit, meaning))
    returns, unit = measured(section("returns"), "the result")
    math, description = _split_math(doc.long_description or "")
    labelled: dict[str, str] = {}
    notes = []
    for paragraph in re.split(r"\n\s*\n", section("notes")):
        match = re.fullmatch(r"\*\*([\w ]+):\*\* (.+)", _line(paragraph))
        if match is None:
            notes.append(_line(paragraph))
        else:
            labelled[match[1]] = match[2]
    for label in ("Domain", "Guard", "Special values", "Error"):
        require(labelled.get(label), f"a paragraph **{label}:** in its Notes")
    sources = re.split(r"^\.\. \[\d+\] ", section("references"), flags=re.MULTILINE)[1:]
    return Formula(
        module=module,
        name=name,
        arguments=tuple(described),
        returns=returns,
        unit=unit,
        summary=require(doc.short_description, "a summary"),
        math=require(math, "a formula under '.. math::'"),
        description=description,
        domain=labelled.pop("Domain"),
        guard=labelled.pop("Guard"),
        special_values=labelled.pop("Special values"),
        error=labelled.pop("Error"),
        notes=(*notes, *(f"**{label}:** {text}" for label, text in labelled.items())),
        source=tuple(_line(source) for source in sources),
        see_also=tuple(
            Reference(meta.arg_name.rpartition(".")[2], _line(f"{meta.type_name or ''} {meta.description or ''}"))
            for meta in parts.get("see_also", [])
        ),
        example=require(section("examples"), "an example"),
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def _split_math(text: str) -> tuple[str, str]:
    """Part the body of the ``.. math::`` directives from the paragraphs around them."""
    math, prose, inside = [], [], False
    for line in text.splitlines():
        if line.startswith(".. math::"):
            inside = True
        elif inside and (not line or line.startswith(" ")):
            math.append(line.strip())
        else:
            inside = False
            prose.append(line)
    return "\n".join(math).strip(), "\n".join(prose).strip()


# Texts for a terminal


def plain_text(text: str) -> str:
    """Return reStructuredText as one plain paragraph: without markup for literals, roles and references."""
    text = re.sub(r":math:`([^`]+)`", lambda match: plain_math(match[1]), _line(text))
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?([^`]+)`", r"\1", text)
    text = re.sub(r"\*\*(\w[\w ]*:)\*\*", r"\1", text)
    return re.sub(r"\[(\d+)\]_", r"[\1]", text.replace("``", ""))


def plain_math(latex: str) -> str:
    """Return LaTeX math as text: fractions and powers on one line, with the brackets that they need there."""
    text = _line(_latex2text()(latex))
    text = re.sub(r"\| ?([^|]*?) ?\|", r"|\1|", text)
    text = re.sub(r"([(⌊⌈]) ", r"\1", text)
    return re.sub(r" ([),;⌋⌉])", r"\1", text)


def _outside_brackets(text: str) -> Iterator[str]:
    depth, bars = 0, 0
    for sign in text:
        if sign in ")]⌋⌉":
            depth -= 1
        elif sign == "|":
            bars ^= 1
        elif sign in "([⌊⌈":
            depth += 1
        elif depth == bars == 0:
            yield sign


def _bracketed(text: str, operators: str) -> str:
    """Put brackets around a text in which one of the operators stands outside brackets."""
    text = text.strip()
    return f"({text})" if set(operators).intersection(_outside_brackets(text)) else text


@functools.cache
def _latex2text() -> Callable[[str], str]:
    # pylatexenc has no type information.
    from pylatexenc import latex2text, latexwalker, macrospec  # type: ignore[import-untyped]

    def fraction(node: Any, l2tobj: Any) -> str:
        above = _bracketed(l2tobj.node_arg_to_text(node, 0), "+-<>≤≥=")
        below = _bracketed(l2tobj.node_arg_to_text(node, 1), "+-·/<>≤≥= ")
        return f"{above} / {below}"

    def power(node: Any, l2tobj: Any) -> str:
        return "^" + _bracketed(l2tobj.node_arg_to_text(node, 0), "+-·/^<>≤≥= ")

    def root(node: Any, l2tobj: Any) -> str:
        return f"sqrt({l2tobj.node_arg_to_text(node, 1).strip()})"

    def cases(node: Any, l2tobj: Any) -> str:
        rows: list[list[list[Any]]] = [[[]]]
        for child in node.nodelist:
            if child.isNodeType(latexwalker.LatexMacroNode) and child.macroname == "\\":
                rows.append([[]])
            elif child.isNodeType(latexwalker.LatexSpecialsNode) and child.specials_chars == "&":
                rows[-1].append([])
            else:
                rows[-1][-1].append(child)
        lines = []
        for row in rows:
            cells = [_line(l2tobj.nodelist_to_text(cell)).rstrip(" ,;.") for cell in row]
            value, condition = cells[0], " ".join(cells[1:])
            if condition and not condition.startswith(("if ", "otherwise", "else")):
                condition = f"if {condition}"
            lines.append(f"{value} {condition}".strip())
        return f"({'; '.join(line for line in lines if line)})"

    signs = {
        "cdot": " · ",
        "times": " · ",
        "le": " ≤ ",
        "leq": " ≤ ",
        "ge": " ≥ ",
        "geq": " ≥ ",
        "ne": " ≠ ",
        "left": "",
        "right": "",
        "bigl": "",
        "bigr": "",
        "Bigl": "",
        "Bigr": "",
        "lvert": "|",
        "rvert": "|",
        "\\": "; ",
        ",": " ",
        ";": " ",
        "!": "",
        "quad": " ",
        "qquad": " ",
        "bmod": " mod ",
    }
    walker = latexwalker.get_default_latex_context_db()
    walker.add_context_category(
        "kvformulas",
        prepend=True,
        macros=[macrospec.MacroSpec(name, "{{") for name in ("dfrac", "tfrac")]
        + [macrospec.MacroSpec("operatorname", "{")],
        environments=[macrospec.EnvironmentSpec("cases")],
        specials=[macrospec.SpecialsSpec("^", args_parser=macrospec.MacroStandardArgsParser("{"))],
    )
    text = latex2text.get_default_latex_context_db()
    text.add_context_category(
        "kvformulas",
        prepend=True,
        macros=[latex2text.MacroTextSpec(name, simplify_repl=fraction) for name in ("frac", "dfrac", "tfrac")]
        + [latex2text.MacroTextSpec(name, simplify_repl=sign) for name, sign in signs.items()]
        + [latex2text.MacroTextSpec(name, discard=False) for name in ("operatorname", "text", "mathrm")]
        + [latex2text.MacroTextSpec("sqrt", simplify_repl=root)],
        environments=[latex2text.EnvironmentTextSpec("cases", simplify_repl=cases)],
        specials=[
            latex2text.SpecialsTextSpec("^", simplify_repl=power),
            latex2text.SpecialsTextSpec("&", simplify_repl=" "),
        ],
    )
    # A macro that the library does not know would vanish, and the formula with it.
    text.set_unknown_macro_spec(latex2text.MacroTextSpec("", simplify_repl=lambda node: f" {node.macroname} "))
    converter = latex2text.LatexNodes2Text(latex_context=text, math_mode="text")

    def convert(latex: str) -> str:
        nodes, _, _ = latexwalker.LatexWalker(latex, latex_context=walker, tolerant_parsing=False).get_latex_nodes()
        converted: str = converter.nodelist_to_text(nodes).strip()
        alone = [node for node in nodes if node.latex_verbatim().strip()]
        if len(alone) == 1 and alone[0].isNodeType(latexwalker.LatexEnvironmentNode):
            return converted.removeprefix("(").removesuffix(")")
        return converted

    return convert
