"""The command ``kvformulas speculate``: from a speculative decoder's counters to whether it pays, and how deep."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

import kvformulas
from kvformulas._output import BadInput, plot_option, print_json, print_text, save_plot, short, table

__all__ = ["speculate"]

DEEPEST = 1000  # draft tokens a step: the table has a row for each depth
LEAST_ROWS = 8
MOST = 10**15  # of a count: a double holds it, and its products with a depth


def _whole(least: int, most: int) -> Callable[..., int | None]:
    def read(_: click.Context, param: click.Parameter, text: str | None) -> int | None:
        if text is None:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 18 or not least <= int(text) <= most:
            raise BadInput(f"{param.opts[0]} must be a whole number from {least} to {most}, not {short(text)}")
        return int(text)

    return read


def _real(least: float, most: float) -> Callable[..., float | None]:
    def read(_: click.Context, param: click.Parameter, text: str | None) -> float | None:
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise BadInput(f"{param.opts[0]} must be a number from {least:g} to {most:g}, not {short(text)}")
        return value

    return read


@click.command()
@click.option("--drafted", metavar="N", callback=_whole(0, MOST), help="Tokens that the draft proposed, in all steps.")
@click.option("--accepted", metavar="N", callback=_whole(0, MOST), help="Those of them that the target accepted.")
@click.option("--steps", metavar="N", callback=_whole(1, MOST), help="Passes of the target that verified a draft.")
@click.option("--acceptance-rate", metavar="RATE", callback=_real(0, 1), help="Instead of the three counts.")
@click.option("--depth", metavar="N", callback=_whole(1, DEEPEST), help="Draft tokens of a step.")
@click.option(
    "--cost-ratio",
    metavar="RATIO",
    required=True,
    callback=_real(0, 1e6),
    help="Time of a draft token over that of a step of the target alone.",
)
@click.option(
    "--max-depth",
    metavar="N",
    default="64",
    show_default=True,
    callback=_whole(1, DEEPEST),
    help="How deep to look for the best depth.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@plot_option("Draw the speedup against the depth.")
def speculate(cost_ratio: float, max_depth: int, as_json: bool, plot: Path | None, **given: Any) -> None:
    """Tell what speculative decoding brings: from an engine's counters, or from an acceptance rate.

    The counters are those of an engine's log: drafted and accepted tokens, and steps. Any two of the depth, the steps
    and the drafted tokens give the third. Accepted over drafted is not the acceptance rate: after the first rejection a
    step's other tokens are not looked at.
    """
    found = _analysed(cost_ratio, max_depth, **given)
    if plot is not None:
        _draw(found, plot)
    if as_json:
        print_json(asdict(found))
    else:
        print_text(_page(found))


@dataclass(frozen=True, slots=True)
class Depth:
    """What a step of some depth brings at the acceptance rate."""

    depth: int
    expected_tokens: float
    speedup: float
    break_even_acceptance: float


@dataclass(frozen=True, slots=True)
class Speculation:
    """What the counters say. ``measured_depth`` is the draft tokens of a step that they are of, on average."""

    acceptance_rate: float
    mean_acceptance_length: float
    expected_tokens: float
    speedup: float
    break_even_acceptance: float
    best_depth: int
    best_speedup: float
    depth: int
    measured_depth: float
    cost_ratio: float
    max_depth: int
    depths: list[Depth]


def _analysed(
    cost_ratio: float,
    max_depth: int,
    drafted: int | None,
    accepted: int | None,
    steps: int | None,
    acceptance_rate: float | None,
    depth: int | None,
) -> Speculation:
    if acceptance_rate is not None:
        if (drafted, accepted, steps) != (None, None, None):
            raise BadInput("--acceptance-rate must be given without --drafted, --accepted and --steps: they imply it")
        if depth is None:
            raise BadInput("--depth is missing: the draft tokens of a step")
        rate, measured = acceptance_rate, float(depth)
        mean = kvformulas.mean_acceptance_length(kvformulas.expected_accepted_tokens(rate, depth), 1)
    else:
        accepted, steps, depth, measured = _counted(drafted, accepted, steps, depth)
        rate = kvformulas.acceptance_rate_from_counts(accepted, steps, measured)
        mean = kvformulas.mean_acceptance_length(accepted, steps)

    def at(depth: int) -> Depth:
        return Depth(
            depth,
            kvformulas.speculative_expected_tokens(rate, depth),
            kvformulas.speculative_walltime_speedup(rate, depth, cost_ratio),
            kvformulas.break_even_acceptance(depth, cost_ratio),
        )

    here, best = at(depth), at(int(kvformulas.best_speculation_depth(rate, cost_ratio, max_depth)))
    rows = max(LEAST_ROWS, depth, min(best.depth + 2, max_depth))
    return Speculation(
        rate,
        mean,
        here.expected_tokens,
        here.speedup,
        here.break_even_acceptance,
        best.depth,
        best.speedup,
        depth,
        measured,
        cost_ratio,
        max_depth,
        [at(depth) for depth in range(1, rows + 1)],
    )


def _counted(
    drafted: int | None, accepted: int | None, steps: int | None, depth: int | None
) -> tuple[int, int, int, float]:
    """Return the accepted tokens, the steps, the depth and the draft tokens of a step that were counted."""
    if accepted is None:
        raise BadInput("--accepted is missing: the accepted draft tokens, or give an --acceptance-rate")
    if [drafted, steps, depth].count(None) > 1:
        raise BadInput("two of --drafted, --steps and --depth must be given with --accepted, or an --acceptance-rate")
    if depth is None:
        assert drafted is not None
        assert steps is not None
        depth = -(-drafted // steps)
        if not 1 <= depth <= DEEPEST:
            raise BadInput(f"--drafted must be 1 to {DEEPEST} tokens for each of the {steps} --steps, not {drafted}")
    if steps is None:
        assert drafted is not None
        steps = -(-drafted // depth)
    if drafted is None:
        drafted = steps * depth
    if drafted > steps * depth:
        raise BadInput(f"--drafted must be at most --steps times --depth, {steps * depth}, not {drafted}")
    if accepted > drafted:
        raise BadInput(f"--accepted must be at most the drafted tokens, {drafted}, not {accepted}")
    if drafted == 0:
        raise BadInput("--drafted must be above 0: without a draft there is no acceptance rate")
    return accepted, steps, depth, drafted / steps


# The table and the plot


def _page(found: Speculation) -> str:
    if found.best_depth == 0:
        best = "no depth pays"
    else:
        best = f"with a speedup of {found.best_speedup:.3f}"
        if found.best_depth == found.max_depth:
            best += ", the deepest that was looked at"
    says = "chance that a draft token is accepted if the one before it was"
    if found.measured_depth != found.depth:
        says = f"at the {found.measured_depth:.3f} draft tokens that a step had on average"
    summary = [
        ("acceptance rate", f"{found.acceptance_rate:.4f}", says),
        (
            "mean acceptance length",
            f"{found.mean_acceptance_length:.3f}",
            "tokens of a step, with the target's own",
        ),
        ("expected tokens", f"{found.expected_tokens:.3f}", f"the same, from the rate at a depth of {found.depth}"),
        ("speedup", f"{found.speedup:.3f}", f"at a depth of {found.depth}; below 1 it is a slowdown"),
        ("break-even acceptance", f"{found.break_even_acceptance:.4f}", "acceptance rate above which this depth pays"),
        ("best depth", f"{found.best_depth}", best),
    ]
    marks = {found.depth: "now", found.best_depth: "best"}
    if found.depth == found.best_depth:
        marks[found.depth] = "now, best"
    rows = [
        (
            str(row.depth),
            f"{row.expected_tokens:.3f}",
            f"{row.speedup:.3f}",
            f"{row.break_even_acceptance:.4f}",
            marks.get(row.depth, ""),
        )
        for row in found.depths
    ]
    head = f"A draft token takes {found.cost_ratio:g} of the target's step."
    parts = [
        head,
        table(("what", "value", "what it says"), summary, ("left", "right", "left")),
        table(("depth", "expected tokens", "speedup", "break-even", ""), rows, ("right",) * 4 + ("left",)),
    ]
    return "\n\n".join(parts)


def _draw(found: Speculation, file: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7.2, 4.5), layout="constrained")
    axes = figure.add_subplot()
    depths = [0, *(row.depth for row in found.depths)]
    axes.plot(depths, [1, *(row.speedup for row in found.depths)], "o-", label="speedup")
    axes.axhline(1, color="grey", linestyle="--", linewidth=1, label="no speculation")
    axes.plot(found.depth, found.speedup, "s", markersize=10, fillstyle="none", label=f"now: {found.speedup:.2f}")
    axes.plot(
        found.best_depth,
        found.best_speedup,
        "D",
        markersize=13,
        fillstyle="none",
        label=f"best: {found.best_speedup:.2f}",
    )
    axes.set(
        xlabel="depth (draft tokens of a step)",
        ylabel="speedup over decoding without a draft",
        title=f"acceptance rate {found.acceptance_rate:.3f}, cost ratio {found.cost_ratio:g}",
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend()
    save_plot(figure, file)
