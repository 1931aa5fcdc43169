"""What the commands share: bad input in one line, text for any terminal, strict JSON, plots whole or not at all."""

import io
import json
import math
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BadInput", "fit", "plot_option", "print_json", "print_text", "save_plot", "short", "table", "to_ascii"]

F = TypeVar("F", bound=Callable[..., Any] | click.Command)

PLOTS = (".pdf", ".png", ".svg")


class BadInput(click.ClickException):
    """What the user gave is wrong; the message is one line."""

    exit_code = 2


def short(text: str) -> str:
    """Quote what the user gave, in a message that must stay one line."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], aligned: Sequence[str]) -> str:
    """Lay out a table, each column aligned left or right."""
    from tabulate import tabulate  # type: ignore[import-untyped]

    text: str = tabulate(rows, headers, "simple", disable_numparse=True, colalign=aligned)
    return text


def print_json(value: object) -> None:
    """Print strict JSON."""
    print_text(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def print_text(text: str) -> None:
    """Print a text, in ASCII where standard output takes no more."""
    click.echo(fit(text))


def fit(text: str) -> str:
    """Return the text as it is if standard output can take it, otherwise in ASCII."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return to_ascii(text)
    return text


def to_ascii(text: str) -> str:
    """Spell a text in ASCII: signs as in programs, Greek letters by name, others without their accents."""
    for opening, closing, name in (("⌊", "⌉", "round"), ("⌊", "⌋", "floor"), ("⌈", "⌉", "ceil")):
        text = re.sub(f"{opening}([^⌊⌋⌈⌉]*){closing}", rf"{name}(\1)", text)
    spelled = {"·": "*", "\u00d7": "x", "≤": "<=", "≥": ">=", "≠": "!=", "∞": "inf", "\u2212": "-", "\u2019": "'"}
    for sign in set(text):
        if not sign.isascii():
            greek = re.fullmatch(r"GREEK SMALL LETTER (\w+)", unicodedata.name(sign, ""))
            dash = "-" if unicodedata.category(sign) == "Pd" else None
            plain = unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode()
            text = text.replace(sign, spelled.get(sign) or (greek and greek[1].lower()) or dash or plain or "?")
    return text


# Plots


def plot_option(says: str) -> Callable[[F], F]:
    """Return the option ``--plot``, which refuses what cannot be drawn before the work is done."""
    return click.option("--plot", metavar="FILE", callback=_plot, help=says)


def _plot(_: click.Context, __: click.Parameter, name: str | None) -> Path | None:
    if name is None:
        return None
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise BadInput('--plot needs matplotlib: pip install "kvformulas[plot]"') from None
    file = Path(name)
    if file.suffix.lower() not in PLOTS:
        raise BadInput(f"--plot must name a file that ends in {', '.join(PLOTS)}, not {name!r}")
    if not file.parent.is_dir() or file.is_dir():
        raise BadInput(f"--plot must name a file in a folder that exists, not {name!r}")
    return file


def save_plot(figure: "Figure", file: Path) -> None:
    """Write a figure, which replaces the file only when it is whole."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=file.suffix[1:].lower(), dpi=150)
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        part.write_bytes(drawn.getvalue())
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise BadInput(f"--plot must name a file that can be written, not {str(file)!r}: {error.strerror}") from None
