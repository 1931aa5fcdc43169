"""The ``kvformulas plan`` command: from a model folder to how much KV cache a request takes and how many fit."""

import json
import re
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvformulas._output import BadInput, plot_option, print_json, print_text, save_plot, table

if TYPE_CHECKING:
    from kvformulas.plan import Group, GroupPlan, Model, Plan

SUFFIXES = {"": 1, "B": 1}
SUFFIXES |= {f"{unit}iB": 1 << 10 * power for power, unit in enumerate("KMGT", 1)}
SUFFIXES |= {f"{unit}B": 10 ** (3 * power) for power, unit in enumerate("KMGT", 1)}
TOKEN_SUFFIXES = {"": 1, "k": 1000, "K": 1 << 10, "m": 10**6, "M": 1 << 20}  # as vLLM reads --max-model-len
NUMBER = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]*)", re.ASCII)
PLOT_POINTS = 200
NOTES_WIDTH = 88


class Amount(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic since click 8.4
    """A whole amount with a unit."""

    def __init__(self, name: str, suffixes: dict[str, int], example: str) -> None:
        """Take the suffixes that stand for a factor."""
        self.name, self.suffixes, self.example = name, suffixes, example

    def convert(self, value: Any, param: click.Parameter | None, _ctx: click.Context | None) -> int:
        """Read 32K or 1.5GiB exactly."""
        if isinstance(value, int):
            return value
        found = NUMBER.fullmatch(value.strip())
        option = f"--{(param.name if param else self.name or '').replace('_', '-')}"
        if found is None or found[2] not in self.suffixes:
            known = ", ".join(filter(None, self.suffixes))
            says = f"a number with or without a unit ({known}), like {self.example}"
            raise BadInput(f"{option} must be {says}, not {value!r}")
        amount = Fraction(found[1]) * self.suffixes[found[2]]
        if amount.denominator != 1:
            raise BadInput(f"{option} must be a whole number of {self.name}, not {value!r}")
        return int(amount)


SIZE = Amount("bytes", SUFFIXES, "16GiB")
TOKENS = Amount("tokens", TOKEN_SUFFIXES, "32K")


@click.command()
@click.argument("config")
@click.option("--context", type=TOKENS, help="Tokens of a request.  [default: 32K, or the model's maximum]")
@click.option("--requests", type=int, metavar="N", help="How many requests at once are wanted.")
@click.option("--kv-memory", type=SIZE, metavar="SIZE", help="Memory for the KV cache on each rank, like 16GiB.")
@click.option("--gpu-memory", type=SIZE, metavar="SIZE", help="Memory of each GPU, like 80GiB.")
@click.option("--utilization", type=float, default=0.9, show_default=True, help="Share of the GPU that may be used.")
@click.option("--weights", type=SIZE, metavar="SIZE", help="All weights.  [default: the folder's *.safetensors]")
@click.option("--overhead", type=SIZE, default=0, metavar="SIZE", help="Activations and the rest, on each GPU.")
@click.option("--tp", type=int, default=1, show_default=True, help="Ranks of tensor parallelism.")
@click.option("--pp", type=int, default=1, show_default=True, help="Stages of pipeline parallelism.")
@click.option("--kv-dtype", default="auto", show_default=True, help="bf16, fp8, int8, nvfp4, ...")
@click.option("--block-size", type=int, default=16, show_default=True, help="Tokens of a block.")
@click.option(
    "--max-batched-tokens", type=TOKENS, default=8192, show_default=True, metavar="TOKENS", help="Tokens of a step."
)
@click.option("--watermark", type=float, default=0.0, help="Share of the blocks that admission keeps free, like 0.01.")
@click.option("--set", "settings", multiple=True, metavar="FIELD=VALUE", help="A field that the file leaves out.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@plot_option("Draw memory and concurrency.")
def plan(config: str, settings: tuple[str, ...], as_json: bool, plot: Path | None, **options: Any) -> None:
    """Plan the KV cache of a model: what a request takes, and how many requests fit.

    CONFIG is a Hugging Face config.json, or a model folder that holds one. As a context 32K is 32,768 tokens, and 32k
    is 32,000.
    """
    from kvformulas import plan as planner

    try:
        model = planner.read_model(config, overrides=dict(map(_setting, settings)))
        made = planner.plan(model, **options)
        if plot is not None:
            save_plot(draw(model, made, options), plot)
    except (planner.ConfigError, planner.PlanError) as error:
        raise BadInput(_as_options(str(error), options)) from None
    except OSError as error:
        raise BadInput(f"cannot read {error.filename!r}: {error.strerror}") from None
    for warning in made.warnings:
        click.echo(f"kvformulas: warning: {warning}", err=True)
    if as_json:
        print_json(made.to_dict())
    else:
        print_text(page(model, made))


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadInput(f"--set must be FIELD=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _as_options(message: str, options: dict[str, Any]) -> str:
    """Name the options where the planner names its arguments."""
    for name in options:
        found = rf"\b{name}\b" if "_" in name else rf"^{name}\b"
        message = re.sub(found, f"--{name.replace('_', '-')}", message)
    return message


# The table


def page(model: "Model", made: "Plan") -> str:
    """Lay out a plan for a person: sizes in binary units with the exact bytes beside them."""
    rank = "" if made.tp * made.pp == 1 else f", on the fullest of {made.tp * made.pp} ranks"
    head = f"{model.name}: {model.model_type}, {model.n_layers} layers, KV cache in {made.kv_dtype}"
    parts = [f"{head}\nOne request of {made.context:,} tokens{rank}:"]
    groups = [
        (group.group.kind, str(group.n_layers), _dims(group), *_amount(group.stored_bytes)) for group in made.groups
    ]
    parts.append(_table(("layers", "number", "each keeps", "stored", "bytes"), groups))
    answers = [
        ("stored", "what its tokens and states occupy", made.stored_bytes),
        ("allocated", f"whole blocks of an engine: {made.blocks_per_request:,}", made.allocated_bytes),
        ("reserved", "if every layer kept every token", made.reserved_bytes),
        ("next token", "one more token", made.next_token_bytes),
        ("fixed", "states, however long it is", made.fixed_bytes),
    ]
    rows = [(name, says, *_amount(size)) for name, says, size in answers]
    parts.append(_table(("answer", "what it is", "size", "bytes"), rows))
    fits = _budget(made)
    if fits:
        parts.append(_table(("memory", "what it is", "amount", "exactly"), fits))
    wrap = textwrap.TextWrapper(NOTES_WIDTH, initial_indent="- ", subsequent_indent="  ")
    parts.append("\n".join(wrap.fill(note) for note in made.notes))
    return "\n\n".join(parts)


def _budget(made: "Plan") -> list[tuple[str, str, str, str]]:
    rows = []
    if made.kv_memory_bytes is not None:
        rows = [
            ("KV memory", "on each rank", *_amount(made.kv_memory_bytes)),
            ("blocks", f"of {made.block_bytes:,} bytes", f"{made.blocks:,}", ""),
            ("tokens", "that the blocks hold", f"{made.tokens:,}", ""),
            ("requests", f"of {made.context:,} tokens at once", f"{made.requests:,}", f"{made.concurrency:.2f}"),
        ]
        if made.watermark_blocks:
            rows.insert(2, ("kept free", "blocks under the watermark", f"{made.watermark_blocks:,}", ""))
    if made.wanted_bytes is not None:
        fit = {None: "", True: "they fit", False: "they do not fit"}[made.fits]
        says = ", ".join(filter(None, (f"{made.wanted_requests:,} requests", fit)))
        rows.append(("wanted", says, *_amount(made.wanted_bytes)))
    return rows


def _dims(planned: "GroupPlan") -> str:
    group = planned.group
    if group.kind == "none":
        return "nothing"
    if group.kind == "shared":
        return f"the cache of layer {', '.join(map(str, group.shares))}"
    if group.states or group.convs:
        says = [f"a state of {s.heads} x {s.head_dim} x {s.state_size} ({s.dtype})" for s in group.states]
        says += [f"{sum(heads * dim for heads, dim in conv.parts):,} channels x {conv.columns}" for conv in group.convs]
        return ", ".join(says)
    return _entry(group)


def _entry(group: "Group") -> str:
    if group.kv_lora_rank:
        says = f"latent {group.kv_lora_rank} + {group.qk_rope_head_dim}"
    elif group.index_head_dim:
        says = f"index key {group.index_head_dim}"
    elif not group.v_head_dim:
        says = f"{group.kv_heads} x {group.k_head_dim}, key and value in one"
    elif group.k_head_dim == group.v_head_dim:
        says = f"{group.kv_heads} KV heads x {group.k_head_dim}"
    else:
        says = f"{group.kv_heads} KV heads x {group.k_head_dim} (K), {group.v_head_dim} (V)"
    if group.window:
        says += f", {'chunks' if group.kind == 'chunked' else 'window'} of {group.window:,}"
    if group.compress_ratio:
        says += f", every {group.compress_ratio} tokens"
    return says


def _amount(size: int) -> tuple[str, str]:
    """Return a size in the largest binary unit that it reaches, and its bytes."""
    for unit in ("GiB", "MiB", "KiB"):
        if size >= SUFFIXES[unit]:
            return f"{size / SUFFIXES[unit]:,.2f} {unit}", f"{size:,}"
    return f"{size} B", f"{size:,}"


def _table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    return table(headers, rows, ["left"] * (len(headers) - 2) + ["right", "right"])


# The plot


def draw(model: "Model", made: "Plan", options: dict[str, Any]) -> Any:
    """Draw memory against context and, with a memory, concurrency against context; return the figure."""
    from matplotlib.figure import Figure

    from kvformulas import plan as planner

    longest = max(made.context, min(model.max_context or made.context, 4 * made.context), 2)
    contexts = sorted({1 + (longest - 1) * i // (PLOT_POINTS - 1) for i in range(PLOT_POINTS)})
    plans = [planner.plan(model, **(options | {"context": context})) for context in contexts]
    panels = 1 if made.kv_memory_bytes is None else 2
    figure = Figure(figsize=(5.6, 3.2 * panels), layout="constrained")
    axes = figure.subplots(panels, squeeze=False, sharex=True)[:, 0]
    for name, style in (("reserved", ":"), ("allocated", "--"), ("stored", "-")):
        sizes = [getattr(one, f"{name}_bytes") / (1 << 30) for one in plans]
        axes[0].plot(contexts, sizes, style, label=name)
    axes[0].set_ylabel("KV cache of one request [GiB]")
    axes[0].legend()
    if panels == 2:
        at_once = [one.concurrency or 0.0 for one in plans]
        axes[1].plot(contexts, at_once)
        axes[1].set(ylabel="requests at once", yscale="log" if min(at_once) > 0 else "linear")
        axes[1].yaxis.set_major_formatter("{x:,g}")
    for panel in axes:
        panel.axvline(made.context, color="grey", linewidth=1)
        panel.grid(alpha=0.3)
    axes[-1].set_xlabel("context [tokens]")
    axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    return figure
