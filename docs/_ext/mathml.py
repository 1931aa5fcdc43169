"""Math as MathML, made at build time: browsers draw it themselves, so a page needs neither a script nor the network.

MathML never breaks a line, and a product of long names is wider than a phone: a displayed formula is therefore several
`<math>` elements in a row, parted before multiplication and equality signs. The font is STIX Two Math, which the
ziamath package ships.
"""

import logging
import re
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

from docutils.nodes import SkipNode
from fontTools import subset
from latex2mathml.converter import convert

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
TALL = {"mfrac", "mtable", "msqrt", "mroot", "msup", "msub"}
# ASCII, Latin-1, Greek, punctuation, arrows, operators, corners, and the italic letters that a lone letter becomes.
CHARACTERS = [
    *range(0x20, 0x7F),
    *range(0xA0, 0x100),
    *range(0x370, 0x400),
    *range(0x2000, 0x2070),
    *range(0x2190, 0x2194),
    *range(0x2200, 0x2270),
    0x22C5,
    *range(0x2308, 0x230C),
    *range(0x1D434, 0x1D468),
    *range(0x1D6E2, 0x1D71C),
]

ElementTree.register_namespace("", NAMESPACE)


def kind(element):
    return element.tag.removeprefix(f"{{{NAMESPACE}}}")


def parsed(latex, display):
    # A name of several letters is one word: its letters are no factors, its underscores no subscripts.
    words = re.sub(r"\\mathrm\{((?:\w|\\_)+)\}", lambda match: rf"\text{{{match[1]}}}".replace(r"\_", "_"), latex)
    root = ElementTree.fromstring(convert(words, display=display))
    for element in root.iter():
        if kind(element) == "mtext" and re.fullmatch(r"\w+", element.text):
            # A text counts as space, and a row of spaces and one operator as that operator: it would lose its spacing.
            element.tag = f"{{{NAMESPACE}}}mi"
            element.set("mathvariant", "normal")
        elif kind(element) == "mtext":  # whose outer spaces a browser would drop
            element.text = re.sub(r"^ | $", "\N{NO-BREAK SPACE}", element.text)
        elif kind(element) == "mo" and element.text in ("max", "min"):
            element.tag = f"{{{NAMESPACE}}}mi"
        elif element.text == "·":
            element.set("lspace", "0.25em")
            element.set("rspace", "0.25em")
    for row in root.iter():
        for before, sign in pairwise(row):
            if before.text in ("(", ",") and sign.text == "\N{MINUS SIGN}":  # of a number, not of a difference
                sign.set("form", "prefix")
    return root


def flattened(row):
    """Yield the parts of a row, and instead of a bracket around nothing tall, which need not stretch, its parts."""
    for child in row:
        if kind(child) == "mrow" and TALL.isdisjoint(map(kind, child.iter())):
            yield from flattened(child)
        else:
            yield child


def pieces(root):
    """Part a displayed formula where a line may break."""
    parts = [[]]
    for element in flattened(root):
        if kind(element) == "mo" and element.text in ("·", "=") and parts[-1]:
            element.set("form", "infix")
            parts.append([])
        parts[-1].append(element)
    for part in parts:
        math = ElementTree.Element(root.tag, {"displaystyle": "true"})
        math.extend(part)
        yield ElementTree.tostring(math, encoding="unicode")


def visit_inline(translator, node):
    translator.body.append(ElementTree.tostring(parsed(node.astext(), "inline"), encoding="unicode"))
    raise SkipNode


def visit_block(translator, node):
    for line in re.split(r"\n\n+", node.astext().strip()):
        translator.body.append(f'<div class="math">{"<wbr>".join(pieces(parsed(line, "block")))}</div>\n')
    raise SkipNode


def write_font(app, exception):
    target = Path(app.outdir, "_static", "STIXTwoMath.woff")
    if exception is not None or app.builder.format != "html" or target.exists():
        return
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    options = subset.Options(flavor="woff", layout_features=["*"], notdef_outline=True)
    with as_file(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf") as path:
        font = subset.load_font(str(path), options)
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=CHARACTERS)
        subsetter.subset(font)
        subset.save_font(font, str(target), options)


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
