"""How the documentation is built. What is particular to it is in _ext: math, plots, formula pages, measured figures."""

import os
import sys
import sysconfig
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
# The pages show what the installed command prints.
os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])

project = "kvformulas"
author = "The kvformulas developers"
copyright = author
version = release = version_of(project)

extensions = [
    "breaks",
    "formulas",
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.programoutput",
]
exclude_patterns = ["_build", "_ext", "data"]
nitpicky = True
# An inventory of the standard library would need the network.
nitpick_ignore = [("py:class", f"collections.abc.{name}") for name in ("Callable", "Iterable", "Mapping", "Sequence")]
# Nor are these classes: words of numpydoc's types, and what annotations write without its module.
nitpick_ignore += [
    ("py:class", name) for name in ("array", "callable", "optional", "os.PathLike", "path", "pathlib.Path", "sequence")
]
add_function_parentheses = False
toc_object_entries = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
highlight_language = "python"
programoutput_prompt_template = "$ {command}\n{output}"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = ["ref.footnote"]  # a source may stand in a page's list without a place in its text

pygments_style = "tango"
pygments_dark_style = "github-dark"
html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"kvformulas {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # excerpts are fetched, which browsers forbid for files
html_search_scorer = str(Path(__file__).parent / "_ext" / "scorer.js")
html_show_copyright = False
templates_path = []
