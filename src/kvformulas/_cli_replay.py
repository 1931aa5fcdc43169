"""The command `kvformulas replay`: its options, its table, its JSON and its plot."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvformulas._cli_plan import SIZE
from kvformulas._output import BadInput, plot_option, print_json, print_text, save_plot, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvformulas.replay import Result, Trace

__all__ = ["replay"]

CAPACITIES = (1000, 3000, 10000)
DIGITS = 18


def _policies(_: click.Context, __: click.Parameter, value: str | None) -> list[str]:
    from kvformulas.replay import POLICIES

    names = list(POLICIES) if value is None else [part.strip().lower() for part in value.split(",")]
    for name in names:
        if name not in POLICIES:
            raise click.BadParameter(f"must be one or more of {', '.join(POLICIES)}, not {name!r}")
    return list(dict.fromkeys(names))


def _capacities(_: click.Context, __: click.Parameter, value: str | None) -> list[int]:
    parts = [] if value is None else [part.strip() for part in value.split(",")]
    for part in parts:
        if not re.fullmatch(rf"[0-9]{{1,{DIGITS}}}", part):
            raise click.BadParameter(f"must be whole numbers of blocks with commas between them, not {part!r}")
    return list(dict.fromkeys(map(int, parts)))


@click.command()
@click.argument("trace")
@click.option(
    "--capacity",
    metavar="BLOCKS",
    callback=_capacities,
    help=f"Blocks that the cache holds (default: what --model gives, or {','.join(map(str, CAPACITIES))}).",
)
@click.option(
    "--policy", metavar="NAMES", callback=_policies, help="Whom to evict: of fifo,lru,lfu,belady (default: all)."
)
@click.option("--threads", type=click.IntRange(1, 1024), help="Replays that run at once, instead of one a core.")
@click.option("--model", metavar="CONFIG", help="A model's config.json or its folder: blocks of --kv-memory.")
@click.option("--kv-memory", type=SIZE, metavar="SIZE", help="Memory for the KV cache of --model, as 16GiB.")
@plot_option("Draw the hit ratios.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def replay(
    trace: str,
    capacity: list[int],
    policy: list[str],
    threads: int | None,
    model: str | None,
    kv_memory: int | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Replay TRACE against a prefix cache: how much is reused, by eviction policy and capacity.

    TRACE has a request a line, as JSON with timestamp (ms), input_length, output_length (tokens) and hash_ids (one for
    each 512 tokens of the prompt); it may be compressed by gzip.
    """
    from kvformulas.replay import replay as run

    if (model is None) != (kv_memory is None):
        raise click.UsageError("--model and --kv-memory need each other")
    requests = _read(trace)
    capacities = capacity
    if model is not None and kv_memory is not None:
        planned = _planned(model, kv_memory, requests)
        capacities = list(dict.fromkeys([*capacity, planned]))
    capacities = capacities or list(CAPACITIES)
    if requests.overfull_requests:
        click.echo(
            f"kvformulas: {requests.overfull_requests:,} of {requests.requests:,} requests name more blocks than "
            "input_length has 512 tokens: is a block smaller in this trace?",
            err=True,
        )
    try:
        with (
            click.progressbar(length=len(policy) * len(capacities), label="replaying", file=sys.stderr, show_pos=True)
            if _terminal()
            else _NoBar() as bar
        ):
            results = run(requests, policy, capacities, threads, lambda: bar.update(1))
    except MemoryError:
        raise BadInput(f"TRACE {trace!r} is too large for this machine's memory") from None
    if as_json:
        print_json(_document(requests, results))
    else:
        print_text(_page(requests, results))
    if plot is not None:
        _draw(requests, results, plot)


class _NoBar:
    """What stands in for the progress bar where nobody looks."""

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, steps: int) -> None:
        """Show nothing."""


def _terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _read(path: str) -> Trace:
    from kvformulas.replay import TraceError, read_trace

    try:
        return read_trace(path)
    except TraceError as error:
        raise BadInput(f"TRACE {error}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"TRACE must be a file that can be read: {path!r}: {reason}") from None
    except MemoryError:
        raise BadInput(f"TRACE {path!r} is too large for this machine's memory") from None


def _planned(model: str, kv_memory: int, trace: Trace) -> int:
    """Ask the planner how many blocks the memory holds, for prompts as long as the trace's longest."""
    from kvformulas.plan import plan, read_model
    from kvformulas.replay import BLOCK_TOKENS

    context = max(trace.input_lengths) or 1
    try:
        planned = plan(read_model(model), context=context, kv_memory=kv_memory, block_size=BLOCK_TOKENS)
    except OSError as error:
        raise BadInput(f"--model must be a file that can be read: {model!r}: {error.strerror}") from None
    except ValueError as error:
        raise BadInput(str(error).replace("kv_memory", "--kv-memory")) from None
    # In tokens, as not every model's blocks are made of 512; None only without a memory.
    return (planned.tokens or 0) // BLOCK_TOKENS


def _document(trace: Trace, results: Sequence[Result]) -> dict[str, Any]:
    return {
        "requests": trace.requests,
        "block_accesses": trace.block_accesses,
        "unique_blocks": trace.unique_blocks,
        "ceiling": trace.ceiling,
        "results": [result.to_dict() for result in results],
    }


def _page(trace: Trace, results: Sequence[Result]) -> str:
    def row(policy: str, capacity: str, hits: dict[str, Any], evictions: str) -> tuple[str, ...]:
        return (
            policy,
            capacity,
            f"{hits['block_hits']:,}",
            f"{hits['block_hit_ratio']:.2%}",
            f"{hits['token_hits']:,}",
            f"{hits['token_hit_ratio']:.2%}",
            evictions,
        )

    rows = [row(r.policy, f"{r.capacity_blocks:,}", r.to_dict(), f"{r.evictions:,}") for r in results]
    rows.append(row("any", "no limit", trace.ceiling, "0"))
    headers = ("policy", "capacity", "block hits", "of blocks", "token hits", "of tokens", "evictions")
    return (
        f"{trace.requests:,} requests with {trace.input_tokens:,} prompt tokens.\n"
        f"{trace.block_accesses:,} block accesses, {trace.unique_blocks:,} unique blocks of 512 tokens.\n\n"
        f"{table(headers, rows, ('left', *['right'] * 6))}"
    )


def _draw(trace: Trace, results: Sequence[Result], file: Path) -> None:
    """Draw the share of prompt tokens reused against capacity, one line a policy, and the ceiling."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

    figure = Figure(figsize=(7.2, 4.5), layout="constrained")
    axes = figure.add_subplot()
    policies = list(dict.fromkeys(result.policy for result in results))
    for policy, style in zip(policies, ("o-", "s:", "D-.", "^--"), strict=False):
        points = sorted((r.capacity_blocks, r.token_hit_ratio) for r in results if r.policy == policy)
        # Hollow and dotted, so that a line on top of another hides nothing.
        axes.plot(*zip(*points, strict=True), style, fillstyle="none", markersize=8, label=policy)
    ceiling = trace.ceiling["token_hit_ratio"]
    axes.axhline(ceiling, color="black", linestyle="--", linewidth=1, label=f"no limit: {ceiling:.1%}")
    capacities = sorted({result.capacity_blocks for result in results})
    if capacities[0] > 0:
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=1)  # the logarithm has no place for 0
    if len(capacities) <= 6:
        axes.set_xticks(capacities)
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_ylim(0, max(1.1 * ceiling, 0.01))
    axes.set_xlabel("capacity (blocks of 512 tokens)")
    axes.set_ylabel("prompt tokens reused")
    axes.grid(alpha=0.3)
    axes.legend(loc="best")
    save_plot(figure, file)
