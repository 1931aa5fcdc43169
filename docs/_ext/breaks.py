"""Long names may break a line after an underscore: in headings, literals, signatures and the navigation."""

import re

BEFORE = r'<span class="pre">|<h1>|<a class="[^"]*reference internal" href="[^"]*">'
NAMES = re.compile(rf"({BEFORE})(\w*_\w+)")


def breakable(html):
    return NAMES.sub(lambda match: match[1] + match[2].replace("_", "_<wbr>"), html)


def let_names_break(_app, _page, _template, context, _doctree):
    for part in ("body", "furo_navigation_tree"):
        if part in context:
            context[part] = breakable(context[part])
    for neighbour in ("prev", "next"):
        if context.get(neighbour):
            context[neighbour] = context[neighbour] | {"title": context[neighbour]["title"].replace("_", "_<wbr>")}


def setup(app):
    app.connect("html-page-context", let_names_break, priority=900)  # after the theme has made its navigation
    return {"parallel_read_safe": True, "parallel_write_safe": True}
