# The documentation as people get it: built without a warning, complete, and read in a browser from the file system.
# DOCS_HTML names a built site to test instead of building one. A missing Chromium is a failure.
import doctest
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import kvformulas
import ulp
from conftest import FORMULAS
from kvformulas import catalog

pytestmark = [pytest.mark.checkout, pytest.mark.docs]

DOCS = Path(__file__).parents[1] / "docs"
PROSE = sorted(path for path in DOCS.rglob("*.rst") if not {"_build", "formulas"} & set(path.relative_to(DOCS).parts))
PHONE, DESKTOP = (390, 844), (1440, 900)
# Every page, with the same switches as a Chromium that must not talk to anyone.
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
SEARCHES = {
    **{name: name for name in (
        "kv_cache_utilization", "kv_quantization_error", "block_copy_cost", "dynamic_ntk_rope_scale", "length_penalty",
        "min_p_accept", "eta_sampling_accept", "draft_model_speedup", "watermark_green_list_bias", "preemption_score",
    )},
    "how many blocks do I need": "paged_attention_block_count",
    "will this request be admitted": "admission_control_accept",
    "what speedup does speculative decoding bring": "draft_model_speedup",
    "which sequence should be preempted": "preemption_score",
    "how many bytes does the KV cache take": "kv_cache_memory_per_layer",
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if built := os.environ.get("DOCS_HTML"):
        return Path(built).resolve()
    folder = tmp_path_factory.mktemp("docs")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "-n",
        "--keep-going",
        "-q",
        "-j",
        "2",
        "-d",
        str(folder / "doctrees"),
    ]
    built = subprocess.run([*command, str(DOCS), str(folder / "html")], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "html"


class Page(HTMLParser):
    """A page's text, its identifiers, what it links to and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.words, self.ids, self.links, self.loads = [], set(), [], []
        self.feed(path.read_text(encoding="utf-8"))
        self.text = " ".join("".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag == "a":
            self.links.append(found.get("href"))
        elif tag in ("script", "img", "iframe") and "src" in found:
            self.loads.append(found["src"])
        elif tag == "link" and found.get("rel") not in ("index", "search", "next", "prev", "author", "copyright"):
            self.loads.append(found["href"])

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}


@pytest.fixture(scope="module")
def texts(site, pages):
    return {path.relative_to(site).with_suffix("").as_posix(): page.text for path, page in pages.items()}


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_examples_in_the_prose_run(path):
    assert doctest.testfile(str(path), module_relative=False, encoding="utf-8").failed == 0


# What must be on the pages


def test_every_formula_has_a_page_with_every_face(texts, formula):
    text = texts[f"formulas/{formula}"]
    arguments = catalog.arguments(formula)
    assert f"double {formula}({', '.join(f'double {name}' for name in arguments)})" in text
    assert f"{formula}({', '.join(f'{name}: float' for name in arguments)}) → float" in text
    assert f"from kvformulas cimport {formula}" in text
    assert f'kvformulas.capi.__pyx_capi__["{formula}"]' in text
    assert "cdef inline double" in text
    assert "Sampled over" in text
    assert all(argument.unit in text for argument in catalog.formula(formula).arguments)


def test_every_topic_has_a_page_with_its_formulas(texts, topic):
    assert all(name in texts[f"topics/{topic}"] for name in catalog.names(topic))


def test_every_name_can_be_found(site, texts):
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    known = {line.split()[0] for line in zlib.decompress(inventory).decode().splitlines()}
    for topic, name in FORMULAS:
        assert f"{name}() (in module kvformulas.{topic})" in texts["genindex"]
        assert f"kvformulas.{topic}.{name}" in known
        assert all(name in texts[f"find/{page}"] for page in ("questions", "symbols", "papers"))


def test_the_accuracy_is_that_of_these_formulas(texts):
    # A budget or a formula that changed leaves stale figures behind: `make accuracy` measures them again.
    rows = {row["formula"]: row for row in json.loads((DOCS / "data" / "accuracy.json").read_text())["formulas"]}
    assert list(rows) == [name for _, name in FORMULAS]
    for name, row in rows.items():
        assert row["within_budget"]
        assert row["budget"] == ulp.budget(getattr(kvformulas, name).__doc__).ulps
        assert name in texts["guides/accuracy"]


def test_every_link_resolves(site, pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target, fragment = urldefrag(link or "")
            if re.match(r"[a-z]+:", target):
                continue
            there = (path.parent / unquote(target)).resolve() if target else path
            known = pages[there].ids if there in pages else None
            if not there.exists() or (fragment and known is not None and unquote(fragment) not in known):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for path, page in pages.items():
        for source in page.loads:
            target = urldefrag(source)[0].partition("?")[0]
            assert (path.parent / target).resolve().is_relative_to(site), source
            assert (path.parent / target).exists(), source


# In a browser


@contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, "the documentation is tested in Chromium, which is not installed: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def tab(browser):
    """Return a page that keeps what it complained about and what it asked for outside of the file system."""
    context = browser.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
    page = context.new_page()
    page.faults = []
    page.on("console", lambda said: page.faults.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("requestfailed", lambda request: page.faults.append(f"failed: {request.url}"))
    page.on(
        "request", lambda asked: None if asked.url.startswith(("file:", "data:")) else page.faults.append(asked.url)
    )
    yield page
    context.close()


MATH = """async () => (await document.fonts.ready, {
    formulas: document.querySelectorAll("math").length,
    undrawn: [...document.querySelectorAll("math")].filter(m => !m.getClientRects().length || m.querySelector("merror"))
        .map(m => m.textContent),
    font: document.fonts.check("16px 'STIX Two Math'"),
    raw: /\\\\(frac|mathrm|cdot|begin)/.test(document.body.innerText),
})"""
WIDTHS = "() => [document.scrollingElement.scrollWidth, innerWidth]"
PLOTS = """() => [...document.querySelectorAll("img.plot")].filter(p => p.getClientRects().length)
    .map(p => [p.className.match(/only-(\\w+)/)[1], p.complete && p.naturalWidth > 0])"""


def test_every_page_is_sound_on_a_phone_and_on_a_desktop(site, pages, tab):
    drawn = 0
    for path in pages:
        tab.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
        tab.goto(path.as_uri())
        math = tab.evaluate(MATH)
        assert not math["undrawn"], path
        assert not math["raw"], path
        assert math["font"] or not math["formulas"], path
        drawn += math["formulas"]
        for width, height in (DESKTOP, PHONE):
            tab.set_viewport_size({"width": width, "height": height})
            needed, there = tab.evaluate(WIDTHS)
            assert needed <= there, f"{path.relative_to(site)} overflows at {width} pixels"
        assert not tab.faults, path
    assert drawn >= len(FORMULAS)


@pytest.mark.parametrize("name", ["formulas/draft_model_speedup", "guides/replay"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plots_suit_the_theme(site, browser, theme, name):
    context = browser.new_context(color_scheme=theme)
    page = context.new_page()
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_load_state()
    assert page.evaluate(PLOTS) == [[theme, True]]
    context.close()


@pytest.mark.parametrize("words", SEARCHES)
def test_search_finds(site, tab, words):
    tab.goto(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
    tab.wait_for_selector("#search-results .search-summary:has-text('found')", timeout=20_000)
    tab.wait_for_function("document.querySelectorAll('#search-results li a').length > 0")
    links = tab.eval_on_selector_all("#search-results li > a", "found => found.slice(0, 5).map(a => a.href)")
    assert any(urldefrag(link)[0].partition("?")[0].endswith(f"formulas/{SEARCHES[words]}.html") for link in links), (
        links
    )
    assert not tab.faults
