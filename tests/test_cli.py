# The command: what each form prints, its exit status, and one line for everything that it refuses.
import json
import os
import signal
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

from conftest import CONTRACT, FORMULAS
from kvformulas import catalog, cli
from kvformulas._output import to_ascii
from kvformulas.runtime import Runtime

MODULE = [sys.executable, "-m", "kvformulas"]
SCRIPT = [str(Path(sysconfig.get_path("scripts")) / "kvformulas")]
QWEN3 = json.loads((files("kvformulas.data") / "qwen3-0.6b.json").read_text())
USE = ("execute", "kv_cache", "kv_cache_utilization")
MODULES = ", ".join(CONTRACT)
COMMANDS = "modules, functions, show, execute, tour, plan, replay, speculate"


@pytest.fixture
def run(capsys):
    """Run the command in this process; the result is its output."""

    def run(*args):
        status = cli.main(args)
        out, err = capsys.readouterr()
        assert (status, err) == (0, "")
        return out

    return run


@pytest.fixture
def run_json(run):
    """Run the command with --json; the result is what its output holds, which must be strict JSON."""
    return lambda *args: json.loads(run(*args, "--json"), parse_constant=pytest.fail)


@pytest.fixture
def refuse(capsys):
    """Run the command on bad input; the result is its one line."""

    def refuse(*args):
        status = cli.main(args)
        out, err = capsys.readouterr()
        assert (status, out) == (2, "")
        assert err.startswith("kvformulas: ")
        assert err.endswith("\n")
        assert err.count("\n") == 1
        return err.removeprefix("kvformulas: ").removesuffix("\n")

    return refuse


def start(command, *args, **options):
    return subprocess.run([*command, *args], capture_output=True, text=True, check=False, **options)


# Both ways to start it


@pytest.mark.parametrize("command", [MODULE, SCRIPT])
def test_commands(command):
    done = start(command, *USE, "1536", "2048")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.75\n", "")
    done = start(command, *USE, "1", "x")
    line = "kvformulas: max_tokens must be a number, not 'x'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


def test_help_and_version(run):
    assert run("--version") == f"kvformulas {version('kvformulas')}\n"
    assert run().startswith("Usage: kvformulas [OPTIONS] ")
    assert run() == run("--help")
    for command in COMMANDS.split(", "):
        assert f"  {command} " in run()
        assert "--json" in run(command, "--help")


# Lists


def test_modules(run, run_json):
    assert [line.split()[:2] for line in run("modules").splitlines()[2:] if line[0] != " "] == [
        [module, str(len(functions))] for module, functions in CONTRACT.items()
    ]
    found = run_json("modules")
    assert {entry["name"]: entry["functions"] for entry in found} == {
        module: list(functions) for module, functions in CONTRACT.items()
    }
    assert all(entry["summary"].endswith((".", "?")) for entry in found)


@pytest.mark.parametrize("module", CONTRACT)
def test_functions(run, run_json, module):
    lines = run("functions", module).splitlines()
    assert [line.split()[0] for line in lines[2:] if line[0] != " "] == list(CONTRACT[module])
    assert max(map(len, lines)) <= 80
    assert run_json("functions", module) == catalog.contract(module)


# show


def test_show_is_whole_and_fits_the_terminal(run, topic, formula):
    found = catalog.formula(formula)
    page = run("show", formula)
    assert page.startswith(f"{formula}(")
    assert f">>> from kvformulas.{topic} import " in page
    titles = ["Formula", "Arguments", "Returns", "Domain", "Guard", "Special values", "Error", "Kernel", "Sources"]
    assert [line for line in page.splitlines() if line in titles] == titles
    kernel = catalog.kernel(formula)
    shown = " ".join(page.split())
    texts = [found.summary, found.domain, found.guard, found.special_values, found.error, *found.notes, kernel]
    assert all(" ".join(catalog.plain_text(text).split()) in shown for text in texts)
    assert all(f"{argument.name} " in page and f" {argument.unit} " in page for argument in found.arguments)
    code = [line.strip() for line in f"{kernel}\n{found.example}".splitlines()]
    assert all(len(line) <= 80 or line.strip() in code for line in page.splitlines())
    assert to_ascii(page).isascii()
    assert "?" not in to_ascii(page).replace("?", "", page.count("?"))


def test_show_json(run_json):
    found = run_json("show", "kv_cache_utilization")
    assert found["module"] == "kv_cache"
    assert found["arguments"][0] == {"name": "cached_tokens", "unit": "tokens", "description": "Tokens in the cache."}
    assert found["plain_math"] == "min(1, cached_tokens / max_tokens)"
    assert found["signature"] == "kv_cache_utilization(cached_tokens, max_tokens)"
    assert found["kernel"] == catalog.kernel("kv_cache_utilization")
    assert {field: found[field] for field in ("math", "guard", "error", "example", "unit")} == {
        field: getattr(catalog.formula("kv_cache_utilization"), field)
        for field in ("math", "guard", "error", "example", "unit")
    }


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_output_fits_the_encoding(encoding):
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = start(MODULE, "show", "kv_quantization_error", env=environment, encoding=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    sign, rounded = ("·", "⌊value") if encoding == "utf-8" else ("*", "round(value")
    assert f"|value - (q - zero_point) {sign} scale|" in done.stdout
    assert rounded in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if "cdef" not in line) <= 80


def test_ascii_spelling():
    text = "⌊a · b⌉ ≤ ⌊c⌋ ≠ ⌈d⌉, α ∞ – “é” x² 漢"  # noqa: RUF001
    assert to_ascii(text) == "round(a * b) <= floor(c) != ceil(d), alpha inf - ?e? x2 ?"


# execute


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (("kv_cache", "kv_cache_memory_per_layer", "1", "2048", "8", "128", "2"), "8388608.0"),
        ((*USE, "-1.5", "2"), "-0.75"),
        ((*USE, "-1e9", "+1_000"), "-1000000.0"),
        ((*USE, "-inf", "2"), "-inf"),
        ((*USE, "nan", "2"), "nan"),
        ((*USE, "Infinity", "2"), "1.0"),
        ((*USE, "--", "-1", "2"), "-0.5"),
        ((*USE, "max_tokens=2", "cached_tokens=-1"), "-0.5"),
        ((*USE, "--args-json", "[1, 4e0]"), "0.25"),
        ((*USE, '--args-json={"max_tokens": 4, "cached_tokens": 1}'), "0.25"),
        ((*USE, "--args-json", "[-Infinity, 4]"), "-inf"),
        (("kv_cache", "kv_cache_total_memory", "9007199254740993", "1"), "9007199254740992.0"),
        (("kv_cache", "kv_cache_total_memory", "9007199254740995", "1"), "9007199254740996.0"),
        (("kv_cache", "kv_cache_total_memory", "--args-json", "[9007199254740995, 1]"), "9007199254740996.0"),
    ],
)
def test_execute(run, args, shown):
    assert run(*(args if args[0] == "execute" else ("execute", *args))) == f"{shown}\n"


@pytest.mark.parametrize(
    ("value", "result"), [("1", 0.5), ("nan", "NaN"), ("-inf", "-Infinity"), ("-1e308", -5e307), ("-0.0", -0.0)]
)
def test_execute_json(run_json, value, result):
    found = run_json(*USE, value, "2")
    assert 0 < found.pop("latency_ms") < 60_000
    assert found == {"result": result, "engine_used": "cython", "success": True, "error": ""}
    assert run_json("execute", "kv_cache", "kv_cache_total_memory", "1e308", "10")["result"] == "Infinity"


TAKES = "kv_cache_utilization takes cached_tokens, max_tokens"
NO_JSON = "--args-json must be a JSON array or object, not"


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (("frobnicate",), f"command must be one of {COMMANDS}, not 'frobnicate'"),
        (("",), f"command must be one of {COMMANDS}, not ''"),
        (("--frobnicate",), "there is no option --frobnicate; see kvformulas --help"),
        (("modules", "-x"), "there is no option -x; see kvformulas modules --help"),
        (("modules", "kv_cache"), "Got unexpected extra argument (kv_cache); see kvformulas modules --help"),
        (("functions",), "MODULE is missing; see kvformulas functions --help"),
        (("functions", "kv"), f"module must be one of {MODULES}, not 'kv'"),
        (("functions", "kv", "--json"), f"module must be one of {MODULES}, not 'kv'"),
        (("functions", "a\n\x1b[31m\udcff"), rf"module must be one of {MODULES}, not 'a\n\x1b[31m\udcff'"),
        (("show",), "FORMULA is missing; see kvformulas show --help"),
        (("show", "pow"), "name must be that of a formula, not 'pow'"),
        (("show", "kv_cache_utilisation"),
         "name must be that of a formula, not 'kv_cache_utilisation'; did you mean kv_cache_utilization?"),
        (("show", "__doc__"), "name must be that of a formula, not '__doc__'"),
        (("show", "a", "b"), "Got unexpected extra argument (b); see kvformulas show --help"),
        (("execute",), "MODULE is missing; see kvformulas execute --help"),
        (("execute", "kv_cache"), "FUNCTION is missing; see kvformulas execute --help"),
        (("execute", "kv", "use", "1"), f"module 'kv' is not registered; there are {MODULES}"),
        (("execute", "kv_cache", "use"),
         f"function 'use' is not in kv_cache; there are {', '.join(CONTRACT['kv_cache'])}"),
        (USE, f"{TAKES}: 2 in number, not 0"),
        ((*USE, "1", "2", "3", "--json"), f"{TAKES}: 2 in number, not 3"),
        ((*USE, "1", ""), "max_tokens must be a number, not ''"),
        ((*USE, "0x10", "1"), "cached_tokens must be a number, not '0x10'"),
        ((*USE, "True", "1"), "cached_tokens must be a number, not 'True'"),
        ((*USE, "1", "2", "--jsn"), "argument 3 must be a number, not '--jsn'"),
        (("execute", "kv", "use", "x"), "argument 1 must be a number, not 'x'"),
        ((*USE, "x" * 100, "1"), f"cached_tokens must be a number, not '{'x' * 57}...'"),
        ((*USE, "1e999", "1"), "cached_tokens is too large for a double: '1e999'"),
        ((*USE, "1", "1" + "0" * 400), "max_tokens is too large for a double: an int of 1329 bits"),
        ((*USE, "1", "1" + "0" * 5000), f"max_tokens is too large for a double: '1{'0' * 56}...'"),
        ((*USE, "cached_tokens=1"), f"{TAKES}; missing max_tokens"),
        ((*USE, "cached_tokens=1", "max=2"), f"{TAKES}; not 'max'"),
        ((*USE, "=1", "max_tokens=2"), f"{TAKES}; not ''"),
        ((*USE, "cached_tokens=1", "cached_tokens=2"),
         "cached_tokens must be given once, not again as 'cached_tokens=2'"),
        ((*USE, "cached_tokens=x", "max_tokens=2"), "cached_tokens must be a number, not 'x'"),
        ((*USE, "1", "max_tokens=2"), "arguments must be all numbers or all NAME=VALUE, not '1' beside 'max_tokens=2'"),
        ((*USE, "1", "--args-json", "[1, 2]"), "arguments must be given once: by --args-json, or as '1'"),
        ((*USE, "--args-json"), "Option '--args-json' requires an argument; see kvformulas --help"),
        ((*USE, "--args-json", ""), f"{NO_JSON} ''"),
        ((*USE, "--args-json", "[1, 2"), f"{NO_JSON} '[1, 2'"),
        ((*USE, "--args-json", "12"), f"{NO_JSON} '12'"),
        ((*USE, "--args-json", "[" * 100_000), f"{NO_JSON} '{'[' * 57}...'"),
        ((*USE, "--args-json", "[1, true]"), "max_tokens must be a real number, not bool: True"),
        ((*USE, "--args-json", '[1, "2"]'), "max_tokens must be a real number, not str: '2'"),
        ((*USE, "--args-json", "[1, null]"), "max_tokens must be a real number, not NoneType: None"),
        ((*USE, "--args-json", "[1, 1e999]"), "a number in --args-json is too large for a double: '1e999'"),
        ((*USE, "--args-json", '{"max_tokens": 1, "max_tokens": 2}'),
         """--args-json must name every argument once, not as '{"max_tokens": 1, "max_tokens": 2}'"""),
    ],
)  # fmt: skip
def test_bad_input(refuse, args, line):
    assert refuse(*args) == line


# tour


PINNED = [
    ("kv_cache_memory_per_layer", "1, 2048, 8, 128, 2", 8388608, "8,388,608 bytes = 8 MiB"),
    ("kv_cache_total_memory", "8388608, 28", 234881024, "234,881,024 bytes = 224 MiB"),
    ("prefix_cache_hit_bytes", "2048, 8, 128, 28, 2", 234881024, "234,881,024 bytes = 224 MiB"),
    ("cache_compaction_gain", "10, 16, 2, 28, 8, 128", 9175040, "9,175,040 bytes = 8.75 MiB"),
    ("prefix_sharing_savings", "2048, 4, 28, 8, 128, 2", 704643072, "704,643,072 bytes = 672 MiB"),
    ("speculative_branch_memory", "4, 5, 28, 8, 128, 2", 2293760, "2,293,760 bytes = 2.1875 MiB"),
    ("block_copy_cost", "16, 28, 8, 128, 2, 100", 0.01835008, "0.01835008 ms"),
    ("beam_memory_per_request", "4, 2048, 28, 8, 128, 2", 939524096, "939,524,096 bytes = 896 MiB"),
    ("paged_attention_block_count", "2048, 16", 128, "128 blocks"),
    ("paged_attention_block_count", "2049, 16", 129, "129 blocks"),
    ("paged_attention_block_count", "1, 16", 1, "1 block"),
    ("paged_attention_block_count", "0, 16", 0, "0 blocks"),
    ("chunked_prefill_chunks", "5000, 2048", 3, "3 chunks"),
    ("radix_cache_shared_prefix_len", "10, 15, 12", 10, "10 tokens"),
    ("preemption_score", "1, 2, 1000\n/ 1, 200, 1000", 67, "67"),
    ("speculative_expected_tokens", "0.8, 4", 3.3616, "3.3616 tokens"),
    ("draft_model_speedup", "3.3616, 50, 8, 4", 2.0497560975609757, "2.0497560975609757"),
    ("speculative_accept_prob", "0.3, 0.5", 0.6, "0.6"),
    ("speculative_accept_prob", "0.5, 0.3", 1, "1"),
]
REST = {"batch_size": 1, "seq_len": 2048, "dtype_bytes": 2, "block_size": 16}


def test_tour(run, run_json):
    found = run_json("tour")
    assert found["model"] == REST | {
        "config": "Qwen3-0.6B", "n_layers": 28, "n_kv_heads": 8, "head_dim": 128, "head_dim_from": "head_dim",
    }  # fmt: skip
    assert [(row["formula"], row["arguments"], row["value"], row["text"]) for row in found["rows"]] == PINNED
    assert all(row["says"] and row["unit"] for row in found["rows"])
    page = run("tour")
    lines = page.splitlines()
    assert lines[0] == "Qwen3-0.6B: 28 layers, 8 KV heads, head_dim 128 (from head_dim)."
    assert lines[3].split() == ["formula", "arguments", "value", "what", "it", "says"]
    assert max(map(len, lines)) <= 120
    rows = [line.split("  ")[0] for line in lines[5:] if line[0] != " "]
    assert rows == [row[0] for row in PINNED]
    assert all(text in page for *_, text in PINNED)


def config(folder, **fields):
    """Write Qwen3's config with other fields; None stands for a field that is left out."""
    path = folder / "config.json"
    path.write_text(json.dumps({key: value for key, value in (QWEN3 | fields).items() if value is not None}))
    return str(path)


def test_tour_of_another_model(run, run_json, tmp_path):
    path = config(tmp_path, num_hidden_layers=80, num_key_value_heads=3, head_dim=7)
    found = run_json("tour", path)
    assert found["model"] == REST | {
        "config": path, "n_layers": 80, "n_kv_heads": 3, "head_dim": 7, "head_dim_from": "head_dim",
    }  # fmt: skip
    rows = {row["formula"]: row for row in found["rows"]}
    assert rows["kv_cache_memory_per_layer"]["text"] == "172,032 bytes = 168 KiB"
    assert rows["beam_memory_per_request"]["text"] == "55,050,240 bytes = 52.5 MiB"
    assert rows["speculative_branch_memory"]["text"] == "134,400 bytes = 131.25 KiB"
    for row in found["rows"][:14]:
        args = [float(arg) for arg in row["arguments"].split(", ")]
        module = catalog.formula(row["formula"]).module
        assert Runtime().execute(module, row["formula"], args)["result"] == row["value"]
    assert run("tour", str(tmp_path)) == run("tour", path)


@pytest.mark.parametrize("absent", [{}, {"head_dim": None}])
def test_tour_without_a_head_dim(run, tmp_path, absent):
    path = tmp_path / "llama"
    fields = {"num_hidden_layers": 32, "num_key_value_heads": 8, "hidden_size": 4096, "num_attention_heads": 32}
    path.write_text(json.dumps(fields | absent), encoding="utf-8-sig")
    assert run("tour", str(path)).startswith(
        f"{path}: 32 layers, 8 KV heads, head_dim 128 "
        "(from hidden_size / num_attention_heads, as in transformers when head_dim is absent).\n"
    )


def test_large_sizes_are_rounded_only_beside_the_figure(run_json, tmp_path):
    rows = run_json("tour", config(tmp_path, num_hidden_layers=61, num_key_value_heads=129))["rows"]
    assert rows[1]["text"] == "8,251,244,544 bytes = 7.6846 GiB".replace("=", "~")


WHOLE = "must be a whole number from 1 to 1000000"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"num_hidden_layers": None}, "{path!r} must have the field num_hidden_layers, and does not"),
        ({"num_key_value_heads": None}, "{path!r} must have the field num_key_value_heads, and does not"),
        ({"num_hidden_layers": 0}, f"num_hidden_layers in {{path!r}} {WHOLE}, not 0"),
        ({"num_hidden_layers": -28}, f"num_hidden_layers in {{path!r}} {WHOLE}, not -28"),
        ({"num_hidden_layers": 28.0}, f"num_hidden_layers in {{path!r}} {WHOLE}, not 28.0"),
        ({"num_hidden_layers": True}, f"num_hidden_layers in {{path!r}} {WHOLE}, not true"),
        ({"num_hidden_layers": float("nan")}, f"num_hidden_layers in {{path!r}} {WHOLE}, not NaN"),
        ({"num_hidden_layers": 10**30}, f"num_hidden_layers in {{path!r}} {WHOLE}, not 1{'0' * 30}"),
        ({"num_key_value_heads": "8"}, f'num_key_value_heads in {{path!r}} {WHOLE}, not "8"'),
        ({"num_key_value_heads": [8]}, f"num_key_value_heads in {{path!r}} {WHOLE}, not [8]"),
        ({"head_dim": 0}, f"head_dim in {{path!r}} {WHOLE}, not 0"),
        ({"head_dim": None, "hidden_size": None}, "{path!r} must have the field hidden_size, and does not"),
        ({"head_dim": None, "hidden_size": 1000},
         "hidden_size in {path!r} must be a multiple of num_attention_heads 16, not 1000"),
    ],
)  # fmt: skip
def test_bad_fields(refuse, tmp_path, fields, line):
    path = config(tmp_path, **fields)
    assert refuse("tour", path) == line.format(path=path)
    assert refuse("tour", str(tmp_path), "--json") == line.format(path=path)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "must hold JSON: Expecting value: line 1 column 1 (char 0)"),
        (b'{"a": 1,\n', "must hold JSON: Expecting property name enclosed in double quotes: line 2 column 1 (char 9)"),
        (b"\x89PNG\r\n\x1a\n\xff\x00", "must hold JSON, not binary data"),
        (b"[1, 2]", "must hold a JSON object, not list"),
        (b"null", "must hold a JSON object, not NoneType"),
        (b" " * (2**24 + 1), "must be a config.json, not a file of more than 16 MiB"),
    ],
)
def test_bad_files(refuse, tmp_path, data, line):
    path = tmp_path / "a model"
    path.write_bytes(data)
    assert refuse("tour", str(path)) == f"{str(path)!r} {line}"


def test_deep_and_long_json_is_refused(refuse, tmp_path):
    path = tmp_path / "config.json"
    for text in ("[" * 200_000, '{"num_hidden_layers": 1' + "0" * 5000 + "}"):
        path.write_text(text)
        assert refuse("tour", str(path)).startswith(f"{str(path)!r} must hold JSON: ")


def test_no_file(refuse, tmp_path):
    expected = "CONFIG must be a config.json or a folder with one"
    missing = str(tmp_path / "missing")
    assert refuse("tour", missing) == f"{expected}: {missing!r}: No such file or directory"
    inside = str(tmp_path / "config.json")
    assert refuse("tour", str(tmp_path)) == f"{expected}: {inside!r}: No such file or directory"
    assert refuse("tour", "a\0b") == rf"{expected}: 'a\x00b': embedded null byte"


# Its surroundings


def test_a_reader_that_leaves_is_no_error():
    with subprocess.Popen([*MODULE, "tour"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_output_that_cannot_be_written():
    with Path(os.devnull).open() as unwritable:
        done = subprocess.run([*MODULE, "modules"], stdout=unwritable, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "kvformulas: cannot write the output: Bad file descriptor\n")


def test_an_interrupt_is_silent(capsys):
    def interrupted():
        yield "modules"
        signal.raise_signal(signal.SIGINT)

    # What a shell runs in the background ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert cli.main(interrupted()) == 130
    signal.signal(signal.SIGINT, before)
    assert capsys.readouterr() == ("", "")


def test_it_starts_without_what_it_may_not_need():
    code = (
        "import sys; from kvformulas.cli import main; main(['execute', 'kv_cache', 'kv_cache_utilization', '1', '2'])\n"
        "print({'docstring_parser', 'pylatexenc', 'tabulate', 'numpy', 'kvformulas.replay'} & set(sys.modules))"
    )
    assert start([sys.executable, "-c", code]).stdout == "0.5\nset()\n"


def test_every_formula_is_shown():
    assert len(FORMULAS) == len(catalog.formulas())
