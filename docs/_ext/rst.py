"""reStructuredText from Python: sections, directives, tables and links, as the other extensions here write them."""

import math
import textwrap


def section(title, *blocks, mark="-"):
    return "\n\n".join([f"{title}\n{mark * len(title)}", *filter(None, blocks)])


def directive(name, argument="", body="", **options):
    lines = [f".. {name}:: {argument}", *(f"   :{key.strip('_').replace('_', '-')}: {options[key]}" for key in options)]
    return "\n".join(line.rstrip() for line in lines) + (f"\n\n{textwrap.indent(body, '   ')}" if body else "")


def table(header, rows, **options):
    """Return a table; without a header its first column is one."""

    def line(row):
        return "* - " + "\n  - ".join(textwrap.indent(str(cell), "    ").strip() for cell in row)

    kind = {"header_rows": 1} if header else {"stub_columns": 1}
    return directive("list-table", "", "\n".join(map(line, [header, *rows] if header else rows)), **kind, **options)


def bullets(items):
    return "\n".join(f"- {textwrap.indent(item, '  ').strip()}" for item in items)


def formula(name):
    return f":formula:`{name}`"


def formulas(names):
    return ", ".join(map(formula, names))


def sentence(text):
    return text[0].upper() + text[1:]


def number(value):
    """Return a double for people: whole numbers in full, others to six digits, NaN and infinities by their signs."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "\N{MINUS SIGN}∞"
    text = f"{value:,.0f}" if value == int(value) and abs(value) < 1e16 else f"{value:.6g}"
    return text.replace("-", "\N{MINUS SIGN}", 1) if text.startswith("-") else text
