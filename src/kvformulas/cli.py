"""The ``kvformulas`` command: list, describe and call the formulas, and compute the worked examples on a model.

Exit status: 0, or 2 for bad input with one line on standard error, 1 for output that cannot be written (silently, when
the reader of a pipe has gone), 130 when interrupted. JSON output is strict: a NaN or an infinity is the string "NaN",
"Infinity" or "-Infinity".
"""

import json
import math
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.resources import files
from typing import Any, TypeVar

import click

from kvformulas import catalog, runtime
from kvformulas._cli_plan import plan
from kvformulas._cli_replay import replay
from kvformulas._cli_speculate import speculate
from kvformulas._output import BadInput, fit, print_json, print_text, short

__all__ = ["main"]

WIDTH, TOUR_WIDTH = 80, 120
FIELD_LIMIT = 1_000_000
BATCH_SIZE, SEQ_LEN, DTYPE_BYTES, BLOCK_SIZE = 1, 2048, 2, 16

T = TypeVar("T")


class Commands(click.Group):
    """A group that says which commands there are when asked for another."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            raise BadInput(f"command must be one of {', '.join(self.commands)}, not {args[0]!r}")
        return super().resolve_command(ctx, args)


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=Commands, invoke_without_command=True)
@click.version_option(package_name="kvformulas", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """The arithmetic of LLM serving: KV caches, sampling, speculative decoding and batching, one formula a function."""
    if ctx.invoked_subcommand is None:
        print_text(ctx.get_help())


@cli.command()
@as_json
def modules(as_json: bool) -> None:
    """List the modules."""
    summaries = {
        name: (import_module(f"kvformulas.{name}").__doc__ or "").strip().splitlines()[0] for name in catalog.modules()
    }
    if as_json:
        print_json(
            [
                {"name": name, "summary": summary, "functions": catalog.names(name)}
                for name, summary in summaries.items()
            ]
        )
        return
    rows = [(name, len(catalog.names(name)), summary) for name, summary in summaries.items()]
    print_text(_table(("module", "formulas", "what it is about"), rows, WIDTH))


@cli.command()
@click.argument("module")
@as_json
def functions(module: str, as_json: bool) -> None:
    """List the formulas of MODULE; with --json, its contract."""
    if as_json:
        print_json(_known(catalog.contract, module))
        return
    rows = [(formula.name, formula.summary) for formula in _known(catalog.formulas, module)]
    print_text(_table(("formula", "what it does"), rows, WIDTH))


@cli.command()
@click.argument("formula")
@as_json
def show(formula: str, as_json: bool) -> None:
    """Show all about FORMULA: math, units, guards, error, sources, an example."""
    found = _known(catalog.formula, formula)
    kernel = catalog.kernel(formula)
    if as_json:
        plain = {"signature": found.signature, "plain_math": catalog.plain_math(found.math), "kernel": kernel}
        print_json(asdict(found) | plain)
        return
    print_text(_page(found, kernel))


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("module")
@click.argument("function")
@click.argument("args", nargs=-1, metavar="[ARG]...", type=click.UNPROCESSED)
@click.option("--args-json", metavar="JSON", help="The arguments as a JSON array, or as an object by name.")
@as_json
def execute(module: str, function: str, args: tuple[str, ...], args_json: str | None, as_json: bool) -> None:
    """Call FUNCTION of MODULE with each ARG, or with NAME=VALUE for each.

    A number is written as Python's float() reads it (2048, -1.5, 1e9, -inf, nan); whole numbers are exact.
    """
    if args_json is None:
        values = _arguments(module, function, args)
    elif args:
        raise BadInput(f"arguments must be given once: by --args-json, or as {args[0]!r}")
    else:
        values = _json_arguments(args_json)
    result = runtime.Runtime().execute(module, function, values)
    if not result["success"]:
        raise BadInput(result["error"])
    if as_json:
        print_json(result)
    else:
        print_text(repr(result["result"]))


@cli.command()
@click.argument("config", required=False)
@as_json
def tour(config: str | None, as_json: bool) -> None:
    """Compute the worked examples on a model's config.json, or on that of Qwen3-0.6B.

    CONFIG is a file, or a folder that holds a config.json. Every layer is taken to keep the keys and values of every
    token.
    """
    model = _model(config)
    rows = _tour(model)
    if as_json:
        figures = {"batch_size": BATCH_SIZE, "seq_len": SEQ_LEN, "dtype_bytes": DTYPE_BYTES, "block_size": BLOCK_SIZE}
        print_json({"model": asdict(model) | figures, "rows": [asdict(row) | {"text": row.text} for row in rows]})
        return
    print_text(model.text)
    table = [(row.formula, row.arguments, row.text, row.says) for row in rows]
    print_text("\n" + _table(("formula", "arguments", "value", "what it says"), table, TOUR_WIDTH))


cli.add_command(plan)
cli.add_command(replay)
cli.add_command(speculate)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    try:
        status = cli.main(args, prog_name="kvformulas", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        return _fail(_message(error), 2)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except OSError as error:
        # What is left in the buffer would fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1 if isinstance(error, BrokenPipeError) else _fail(f"cannot write the output: {error.strerror}", 1)


def _fail(message: str, status: int) -> int:
    line = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in " ".join(message.split()))
    click.echo(f"kvformulas: {line}", err=True)
    return status


def _message(error: click.ClickException) -> str:
    """Say what click found wrong, in our words where its own depend on its version."""
    if not isinstance(error, click.UsageError):
        return error.format_message()
    if isinstance(error, click.NoSuchOption):
        message = f"there is no option {error.option_name}"
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        name = error.param.opts[0] if isinstance(error.param, click.Option) else error.param.human_readable_name
        message = f"{name} is missing"
    else:
        message = error.format_message().rstrip(".")
    return f"{message}; see {error.ctx.command_path if error.ctx else 'kvformulas'} --help"


def _known(look_up: Callable[[str], T], name: str) -> T:
    try:
        return look_up(name)
    except ValueError as error:
        raise BadInput(str(error)) from None


# Arguments of a call


def _arguments(module: str, function: str, args: Sequence[str]) -> list[int | float] | dict[str, int | float]:
    """Read the arguments of a call, which are all numbers or all NAME=VALUE."""
    named = [arg for arg in args if "=" in arg]
    if not named:
        known = module in catalog.modules() and function in catalog.names(module)
        names = catalog.arguments(function) if known else ()
        return [_number(arg, names[i] if i < len(names) else f"argument {i + 1}") for i, arg in enumerate(args)]
    values: dict[str, int | float] = {}
    for arg in args:
        name, equals, text = arg.partition("=")
        if not equals:
            raise BadInput(f"arguments must be all numbers or all NAME=VALUE, not {arg!r} beside {named[0]!r}")
        if name in values:
            raise BadInput(f"{name} must be given once, not again as {arg!r}")
        values[name] = _number(text, name)
    return values


def _number(text: str, name: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"{name} must be a number, not {short(text)}") from None
    if math.isinf(value) and "inf" not in text.lower():
        raise BadInput(f"{name} is too large for a double: {short(text)}")
    return value


def _json_arguments(text: str) -> list[Any] | dict[str, Any]:
    def named(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise BadInput(f"--args-json must name every argument once, not as {short(text)}")
        return values

    def number(digits: str) -> int | float:
        return _number(digits, "a number in --args-json")

    try:
        values = json.loads(text, object_pairs_hook=named, parse_int=number, parse_float=number)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list | dict):
        raise BadInput(f"--args-json must be a JSON array or object, not {short(text)}")
    return values


# The worked examples on a model


@dataclass(frozen=True, slots=True)
class Model:
    """What the worked examples take from a config.json, and where its head_dim comes from."""

    config: str
    n_layers: int
    n_kv_heads: int
    head_dim: int
    head_dim_from: str

    @property
    def text(self) -> str:
        """The heading of the tour."""
        return (
            f"{self.config}: {self.n_layers} layers, {self.n_kv_heads} KV heads, head_dim {self.head_dim} "
            f"(from {self.head_dim_from}).\n"
            f"FP16 ({DTYPE_BYTES} bytes an element), {SEQ_LEN:,} tokens, batch {BATCH_SIZE}, "
            f"blocks of {BLOCK_SIZE} tokens, unless the arguments say otherwise."
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One worked example. ``arguments`` are those of the call, or of two calls whose results are divided."""

    formula: str
    arguments: str
    value: float
    unit: str
    says: str

    @property
    def text(self) -> str:
        """The value in full, with its unit, and in larger units of bytes beside it."""
        value = f"{int(self.value):,}" if self.value.is_integer() else repr(self.value)
        if self.unit in {"ratio", "probability"}:
            return value
        if self.unit == "bytes":
            return f"{value} bytes {_binary(self.value)}"
        return f"{value} {self.unit.removesuffix('s') if value == '1' else self.unit}"


def _figure(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _binary(size: float) -> str:
    power, unit = next((p, u) for p, u in ((30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")) if size >= 2**p or p == 0)
    amount = size / 2**power
    text = f"{amount:,.4f}".rstrip("0").rstrip(".")
    return f"{'=' if float(text.replace(',', '')) == amount else '~'} {text} {unit}"


def _model(config: str | None) -> Model:
    from kvformulas._config import ConfigError, as_object, read_file

    try:
        if config is None:
            name = "Qwen3-0.6B"
            fields = as_object(name, (files("kvformulas.data") / "qwen3-0.6b.json").read_bytes())
        else:
            name, fields, _ = read_file(config)
    except ConfigError as error:
        raise BadInput(str(error)) from None

    def whole(field: str) -> int:
        if field not in fields:
            raise BadInput(f"{name!r} must have the field {field}, and does not")
        value = fields[field]
        if type(value) is not int or not 1 <= value <= FIELD_LIMIT:
            shown = short(json.dumps(value))[1:-1]
            raise BadInput(f"{field} in {name!r} must be a whole number from 1 to {FIELD_LIMIT}, not {shown}")
        return value

    layers, heads = whole("num_hidden_layers"), whole("num_key_value_heads")
    if fields.get("head_dim") is not None:
        return Model(name, layers, heads, whole("head_dim"), "head_dim")
    width, queries = whole("hidden_size"), whole("num_attention_heads")
    if width % queries:
        raise BadInput(f"hidden_size in {name!r} must be a multiple of num_attention_heads {queries}, not {width}")
    source = "hidden_size / num_attention_heads, as in transformers when head_dim is absent"
    return Model(name, layers, heads, width // queries, source)


def _tour(model: Model) -> list[Row]:
    layers, heads, dim = model.n_layers, model.n_kv_heads, model.head_dim
    shape = (layers, heads, dim, DTYPE_BYTES)
    rows: list[Row] = []

    def row(says: str, name: str, *args: float) -> float:
        value = catalog.function(name)(*args)
        rows.append(Row(name, ", ".join(map(_figure, args)), value, catalog.formula(name).unit, says))
        return value

    per_layer = row(
        "keys and values of one layer", "kv_cache_memory_per_layer", BATCH_SIZE, SEQ_LEN, heads, dim, DTYPE_BYTES
    )
    row(f"all {layers} layers", "kv_cache_total_memory", per_layer, layers)
    row("a shared prefix, not computed again", "prefix_cache_hit_bytes", SEQ_LEN, heads, dim, layers, DTYPE_BYTES)
    row("what 10 half-empty blocks waste", "cache_compaction_gain", 10, BLOCK_SIZE, DTYPE_BYTES, layers, heads, dim)
    row("4 requests share one prompt: 3 copies less", "prefix_sharing_savings", SEQ_LEN, 4, *shape)
    row("a draft of 4 branches, 5 tokens deep", "speculative_branch_memory", 4, 5, *shape)
    row("one block copied at 100 GB/s", "block_copy_cost", BLOCK_SIZE, *shape, 100)
    row("beam search with 4 beams", "beam_memory_per_request", 4, SEQ_LEN, *shape)
    row("full blocks only", "paged_attention_block_count", SEQ_LEN, BLOCK_SIZE)
    row("one token more opens a block", "paged_attention_block_count", SEQ_LEN + 1, BLOCK_SIZE)
    row("a single token needs a block", "paged_attention_block_count", 1, BLOCK_SIZE)
    row("nothing cached, no block", "paged_attention_block_count", 0, BLOCK_SIZE)
    row("a prompt of 5,000 tokens in chunks of 2,048", "chunked_prefill_chunks", 5000, 2048)
    row("no longer than the shorter prefix", "radix_cache_shared_prefix_len", 10, 15, 12)
    preempt = catalog.function("preemption_score")
    ratio = preempt(1, 2, 1000) / preempt(1, 200, 1000)
    says = "how much sooner to preempt a sequence after 2 tokens than after 200"
    rows.append(Row("preemption_score", "1, 2, 1000\n/ 1, 200, 1000", ratio, "ratio", says))
    row("tokens of a step when 4 are drafted and 80 % pass", "speculative_expected_tokens", 0.8, 4)
    row("speedup where a draft token costs 8 of 50 ms", "draft_model_speedup", 3.3616, 50, 8, 4)
    row("the target likes the token less: accept 60 %", "speculative_accept_prob", 0.3, 0.5)
    row("the target likes it more: always accept", "speculative_accept_prob", 0.5, 0.3)
    return rows


# Output


def _page(formula: catalog.Formula, kernel: str) -> str:
    def paragraph(text: str, hang: str = "") -> str:
        return textwrap.fill(fit(catalog.plain_text(text)), WIDTH, initial_indent="  ", subsequent_indent=f"  {hang}")

    def indented(text: str) -> str:
        return textwrap.indent(text, "  ")

    examples = [indented(text) if ">>>" in text else paragraph(text) for text in formula.example.split("\n\n")]
    arguments = [(a.name, a.unit, fit(catalog.plain_text(a.description))) for a in formula.arguments]
    parts = [
        ("", textwrap.fill(formula.signature, WIDTH, subsequent_indent=" " * (len(formula.name) + 1))),
        ("", textwrap.fill(catalog.plain_text(formula.summary), WIDTH)),
        ("Formula", paragraph(catalog.plain_math(formula.math))),
        ("Arguments", indented(_table(("name", "unit", "meaning"), arguments, WIDTH - 2))),
        ("Returns", paragraph(f"{formula.returns.removesuffix('.')} [{formula.unit}].")),
        ("About", "\n\n".join(paragraph(text) for text in formula.description.split("\n\n") if text)),
        ("Domain", paragraph(formula.domain)),
        ("Guard", paragraph(formula.guard)),
        ("Special values", paragraph(formula.special_values)),
        ("Error", paragraph(formula.error)),
        ("Notes", "\n\n".join(map(paragraph, formula.notes))),
        ("Kernel", indented(kernel)),
        ("Sources", "\n".join(paragraph(f"[{i}] {text}", "    ") for i, text in enumerate(formula.source, 1))),
        ("See also", "\n".join(paragraph(f"{other.name}: {other.description}", "  ") for other in formula.see_also)),
        ("Example", "\n\n".join(examples)),
    ]
    return "\n\n".join(f"{title}\n{text}".lstrip("\n") for title, text in parts if text)


def _table(headers: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> str:
    """Lay out a table whose last column is wrapped to what the others leave of the width."""
    from tabulate import tabulate  # type: ignore[import-untyped]

    def widest(column: int) -> int:
        cells = max((len(line) for row in rows for line in str(row[column]).splitlines()), default=0)
        return max(cells, len(headers[column]) + 2)  # tabulate's own least width

    last = len(headers) - 1
    left = width - sum(widest(column) + 2 for column in range(last))
    widths = [*[None] * last, max(left, 20)]
    table: str = tabulate(rows, headers, "simple", disable_numparse=True, maxcolwidths=widths)
    return table
