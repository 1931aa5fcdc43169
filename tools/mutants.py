"""What a mutant is: a function with one thing changed. Kernels and oracle are Python to `ast`: this serves both."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
# The oracle's first argument everywhere: the context that it computes in.
CONTEXT = "mp"
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


@dataclass(frozen=True)
class Language:
    """What a call or a named constant is replaced with; in a call, {0}, {1} … are its arguments."""

    calls: dict[str, tuple[str, ...]]
    constants: dict[str, tuple[str, ...]]
    symmetric: frozenset[str] = frozenset()  # calls whose arguments have no order
    unsigned: frozenset[str] = frozenset()  # values that are their own negative


ROUNDINGS = ("trunc", "floor", "ceil", "rint")
KERNEL = Language(
    calls={
        "at_most_one": ("{0}", "fmin({0}, 1.0)", "fmax({0}, 1.0)"),
        "blocks_covering": ("ceil({0} / {1})", "trunc(({0} + {1} - 1.0) / {1})"),
        "exp": ("expm1({0})", "1.0 + {0}"),
        "expm1": ("exp({0})", "exp({0}) - 1.0"),
        "fabs": ("{0}", "-fabs({0})"),
        "fma": ("{0} * {1} + {2}", "{0} * {1}", "{2}"),
        "isinf": ("True", "False"),
        "isnan": ("True", "False"),
        "log": ("log1p({0})", "{0} - 1.0"),
        "log1p": ("log(1.0 + {0})", "log({0})", "{0}"),
        "minimum": ("{0}", "{1}", "fmin({0}, {1})", "fmax({0}, {1})"),
        "pow": ("exp({1} * log({0}))", "{0}"),
        "power": ("pow({0}, {1})", "{0}"),
        "power_of_rounded": ("power({0}, {2})", "power_of_rounded({0}, -({1}), {2})"),
        "quotient_error": ("0.0", "-quotient_error({0}, {1}, {2})"),
    }
    | {name: (*(f"{other}({{0}})" for other in ROUNDINGS if other != name), "{0}") for name in ROUNDINGS},
    constants={"NAN": ("0.0", "INFINITY"), "INFINITY": ("0.0", "1.0", "NAN")},
    unsigned=frozenset({"NAN"}),
)
ORACLE = Language(
    calls={
        "abs": ("{0}", "-abs({0})"),
        "least": ("{1}", "{2}", "min({1}, {2})", "max({1}, {2})"),
        "max": ("{0}", "{1}", "min({0}, {1})"),
        "min": ("{0}",),
        "mp.ceil": ("mp.floor({0})", "mp.nint({0})", "{0}"),
        "mp.exp": ("mp.expm1({0})", "1 + {0}"),
        "mp.floor": ("mp.ceil({0})", "mp.nint({0})", "{0}"),
        "mp.isfinite": ("True", "False"),
        "mp.isinf": ("True", "False"),
        "mp.isint": ("True", "False"),
        "mp.nint": ("mp.floor({0})", "mp.ceil({0})", "{0}"),
        "mp.power": ("mp.exp({1} * mp.log({0}))", "{0}"),
        "mp.sign": ("1", "-mp.sign({0})"),
        "power": ("{1}", "{1} ** {2}"),
        "quotient": ("{1} / {2}", "{1} * {2}"),
        "truncated": ("mp.floor({1})", "mp.ceil({1})", "mp.nint({1})", "{1}"),
        "unknown": ("True", "False"),
    },
    constants={
        "inf": ("0", "mp.nan"),
        "mp.inf": ("mp.one",),
        "mp.nan": ("mp.zero",),
        "mp.one": ("mp.zero", "mp.mpf(2)"),
        "mp.zero": ("mp.one",),
    },
    symmetric=frozenset({"least", "max", "min", "unknown"}),
    unsigned=frozenset({"mp.nan", "mp.zero"}),
)


@dataclass(frozen=True)
class Mutant:
    """One change to one function. Its identity is what changed, never where: line numbers move."""

    function: str
    kind: str
    before: str
    after: str
    tree: ast.FunctionDef

    @property
    def key(self) -> tuple[str, str, str]:
        return self.function, self.before, self.after

    def __str__(self) -> str:
        return f"{self.function} [{self.kind}]: {self.before}  →  {self.after}"


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def constants(value: float) -> list[float]:
    """Return what to put in the place of a number: the usual ones, its neighbours, its half, double and negative."""
    candidates = (0.0, 1.0, 2.0, value + 1.0, value - 1.0, value / 2.0, value * 2.0, -value)
    return [other for other in dict.fromkeys(candidates) if other != value]


def replacements(node: ast.AST, names: list[str], language: Language) -> Iterator[tuple[str, ast.expr]]:
    """Yield what may stand in the place of one expression; `names` are the variables that have a value there."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            for other in ARITHMETIC:
                if not isinstance(op, other):
                    yield "operator", ast.BinOp(left, other(), right)
            yield "operand dropped", left
            yield "operand dropped", right
            if isinstance(op, ast.Sub | ast.Div):
                yield "operands swapped", ast.BinOp(right, op, left)
        case ast.Compare(left=left, ops=ops, comparators=right):
            for i, op in enumerate(ops):
                for other in COMPARISONS:
                    if not isinstance(op, other):
                        yield "comparison", ast.Compare(left, [*ops[:i], other(), *ops[i + 1 :]], right)
            if len(ops) > 1:
                yield "comparison dropped", ast.Compare(left, ops[:-1], right[:-1])
                yield "comparison dropped", ast.Compare(right[0], ops[1:], right[1:])
        case ast.BoolOp(op=op, values=values):
            yield "and/or", ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
            for i in range(len(values)):
                rest = values[:i] + values[i + 1 :]
                yield "condition dropped", rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "negation dropped", operand
        case ast.Constant(value=value) if type(value) in (int, float):
            for other in constants(value):
                yield "constant", expression(repr(other))
        case ast.Name(ctx=ast.Load()) | ast.Attribute() if ast.unparse(node) in language.constants:
            for text in language.constants[ast.unparse(node)]:
                yield "constant", expression(text)
        case ast.Name(id=name, ctx=ast.Load()) if name in names:
            for other in names:
                if other != name:
                    yield "variable", ast.Name(other)
        case ast.Call(func=func, args=args, keywords=keywords):
            texts = [f"({ast.unparse(argument)})" for argument in args if not isinstance(argument, ast.Starred)]
            for template in language.calls.get(ast.unparse(func), ()):
                if len(texts) == len(args):
                    yield "call", expression(template.format(*texts))
            for i in range(len(args) - 1 if ast.unparse(func) not in language.symmetric else 0):
                if ast.unparse(args[i]) != CONTEXT:
                    swapped = [*args[:i], args[i + 1], args[i], *args[i + 2 :]]
                    yield "arguments swapped", ast.Call(func, swapped, keywords)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "branches swapped", ast.IfExp(test, orelse, body)
            yield "branch dropped", body
            yield "branch dropped", orelse


def sites(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield every node with the place that holds it: its parent, the field, and the index if the field is a list."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if isinstance(value, ast.AST):
                yield parent, field, None, value
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, ast.AST):
                        yield parent, field, i, item


def head(statement: ast.stmt) -> str:
    """Return a statement's text; of an `if` or a `while`, the condition alone."""
    text = ast.unparse(statement)
    return text.partition("\n")[0] if isinstance(statement, ast.If | ast.While | ast.For) else text


def statements(block: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], int]]:
    """Yield every statement in the order of the text, as the list that holds it and its index there."""
    for i, statement in enumerate(block):
        yield block, i
        if isinstance(statement, ast.If | ast.While | ast.For):
            yield from statements(statement.body)
            yield from statements(statement.orelse)


def mutants(function: ast.FunctionDef, language: Language) -> list[Mutant]:
    """Return every mutant of one function, without repetitions."""
    tree = copy.deepcopy(function)
    original = ast.unparse(tree)
    heads = [head(block[i]) for block, i in statements(tree.body)]
    found: dict[str, Mutant] = {}
    known = [argument.arg for argument in tree.args.args if argument.arg != CONTEXT]
    for nth, (block, i) in enumerate(list(statements(tree.body))):
        statement, before = block[i], heads[nth]
        if isinstance(statement, ast.For):
            continue  # a loop that ends before its count: the count is a bound on mutants only
        where = f"  # {heads[: nth + 1].count(before)} of {heads.count(before)}" if heads.count(before) > 1 else ""
        # Of an `if`, the condition alone: what it guards are statements of their own.
        places = [(statement, "test", None, statement.test)] if isinstance(statement, ast.If | ast.While) else []
        for parent, field, index, node in places + list(sites(places[0][-1] if places else statement)):
            for kind, other in [*replacements(node, known, language), *whole(parent, field, node, language)]:
                put(parent, field, index, other)
                changed = ast.unparse(ast.fix_missing_locations(tree))
                if changed != original and changed not in found:
                    copied = ast.parse(changed).body[0]
                    found[changed] = Mutant(tree.name, kind, before + where, head(statement), copied)
            put(parent, field, index, node)
        if isinstance(statement, ast.Assign):
            stores = (n.id for n in ast.walk(statement.targets[0]) if isinstance(n, ast.Name))
            known = list(dict.fromkeys([*known, *stores]))
    return list(found.values())


def whole(parent: ast.AST, field: str, node: ast.AST, language: Language) -> Iterator[tuple[str, ast.expr]]:
    """Yield the replacements of a whole condition or a whole result."""
    if field == "test":
        if not isinstance(node, ast.UnaryOp):
            yield "condition negated", ast.UnaryOp(ast.Not(), node)
        yield "always", ast.Constant(True)
        yield "never", ast.Constant(False)
    elif (
        field == "value"
        and isinstance(parent, ast.Return | ast.Assign)
        and not isinstance(node, ast.Tuple)
        and ast.unparse(node) not in language.unsigned
    ):
        yield "result negated", ast.UnaryOp(ast.USub(), node)


def put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node
