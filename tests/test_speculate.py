# The command speculate: what it says is what the formulas say, its counters fit together, and bad ones are refused.
import json
import sys

import pytest

import kvformulas
from kvformulas import cli

COST = ("--cost-ratio", "0.1")
COUNTS = ("--drafted", "260", "--accepted", "208", "--steps", "52", "--depth", "5")
RATE = ("--acceptance-rate", "0.8", "--depth", "4")


@pytest.fixture
def run(capsys):
    """Run the command; the result is its output."""

    def run(*args):
        status = cli.main(["speculate", *args])
        out, err = capsys.readouterr()
        assert (status, err) == (0, "")
        return out

    return run


@pytest.fixture
def refuse(capsys):
    """Run the command on bad input; the result is its one line."""

    def refuse(*args):
        status = cli.main(["speculate", *args])
        out, err = capsys.readouterr()
        assert (status, out, err.count("\n")) == (2, "", 1)
        return err.removeprefix("kvformulas: ").removesuffix("\n")

    return refuse


@pytest.fixture
def found(run):
    """Run the command with --json; the result is what it says."""
    return lambda *args: json.loads(run(*args, "--json"), parse_constant=pytest.fail)


def test_an_engines_counters(found):
    # ggml-org/llama.cpp#3649: 208 accepted of 260 drafted is no rate of 0.80.
    says = found(*COUNTS, *COST)
    rate = says["acceptance_rate"]
    assert rate == kvformulas.acceptance_rate_from_counts(208, 52, 5) == pytest.approx(0.927, abs=5e-4)
    assert says["mean_acceptance_length"] == kvformulas.mean_acceptance_length(208, 52) == 5
    assert says["expected_tokens"] == kvformulas.speculative_expected_tokens(rate, 5) == pytest.approx(5)
    assert says["speedup"] == kvformulas.speculative_walltime_speedup(rate, 5, 0.1)
    assert says["break_even_acceptance"] == kvformulas.break_even_acceptance(5, 0.1)
    assert says["best_depth"] == kvformulas.best_speculation_depth(rate, 0.1, 64)
    assert (says["depth"], says["measured_depth"], says["cost_ratio"]) == (5, 5, 0.1)


def test_an_acceptance_rate(found):
    says = found("--acceptance-rate", "0.44", "--depth", "5", "--cost-ratio", "0.11")
    assert says["acceptance_rate"] == 0.44
    assert says["speedup"] == pytest.approx(1.144, abs=5e-4)  # Leviathan 2023, theorem 3.8
    assert says["mean_acceptance_length"] == pytest.approx(says["expected_tokens"], rel=1e-15)


def test_the_best_depth_is_the_best_of_the_table(found):
    says = found(*RATE, *COST)
    best = max(says["depths"], key=lambda row: row["speedup"])
    assert (best["depth"], best["speedup"]) == (says["best_depth"], says["best_speedup"])
    assert [row["depth"] for row in says["depths"]] == list(range(1, len(says["depths"]) + 1))
    here = says["depths"][says["depth"] - 1]
    assert all(here[key] == says[key] for key in ("expected_tokens", "speedup", "break_even_acceptance"))


@pytest.mark.parametrize("left_out", ["--drafted", "--steps", "--depth"])
def test_two_of_depth_steps_and_drafted_give_the_third(found, left_out):
    at = COUNTS.index(left_out)
    assert found(*COUNTS[:at], *COUNTS[at + 2 :], *COST) == found(*COUNTS, *COST)


def test_steps_that_drafted_less_lower_the_depth_of_the_rate(found, run):
    counts = ("--drafted", "250", "--accepted", "208", "--steps", "52", "--depth", "5")
    says = found(*counts, *COST)
    assert says["measured_depth"] == 250 / 52
    assert says["acceptance_rate"] == kvformulas.acceptance_rate_from_counts(208, 52, 250 / 52)
    assert says["speedup"] == kvformulas.speculative_walltime_speedup(says["acceptance_rate"], 5, 0.1)
    assert "at the 4.808 draft tokens that a step had on average" in run(*counts, *COST)


def test_the_page(run):
    page = run(*COUNTS, *COST)
    lines = [line.split() for line in page.splitlines()]
    assert ["acceptance", "rate", "0.9265"] in [line[:3] for line in lines]
    assert ["best", "depth", "12"] in [line[:3] for line in lines]
    assert [line[-1] for line in lines if line[:1] in (["5"], ["12"])] == ["now", "best"]
    assert max(map(len, page.splitlines())) <= 100
    assert "now, best" in run("--acceptance-rate", "0.8", "--depth", "6", "--cost-ratio", "0.05", "--max-depth", "6")


def test_where_nothing_pays_and_where_everything_does(run, found):
    assert "no depth pays" in run("--acceptance-rate", "0.3", "--depth", "2", "--cost-ratio", "0.5")
    assert found("--acceptance-rate", "0.3", "--depth", "2", "--cost-ratio", "0.5")["best_depth"] == 0
    free = run("--acceptance-rate", "1", "--depth", "2", "--cost-ratio", "0", "--max-depth", "9")
    assert "with a speedup of 10.000, the deepest that was looked at" in free


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plot(run, tmp_path, suffix):
    file = tmp_path / f"speedup.{suffix}"
    assert run(*COUNTS, *COST, "--plot", str(file)) == run(*COUNTS, *COST)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert file.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", ["speedup", "speedup.txt", "no/folder.png", "/dev/full/x.svg", "."])
def test_plot_to_no_place(refuse, tmp_path, name):
    line = refuse(*COUNTS, *COST, "--plot", str(tmp_path / name))
    assert line.startswith("--plot must name a file ")
    assert name in line or name == "."
    assert not list(tmp_path.iterdir())


def test_a_plot_that_cannot_be_written_leaves_the_old_one(refuse, tmp_path, monkeypatch):
    file = tmp_path / "speedup.png"
    file.write_bytes(b"old")

    def write_bytes(path, _data):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", write_bytes)
    line = refuse(*COUNTS, *COST, "--plot", str(file))
    assert line == f"--plot must name a file that can be written, not {str(file)!r}: No space left on device"
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_plot_needs_matplotlib_and_says_so(refuse, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    line = '--plot needs matplotlib: pip install "kvformulas[plot]"'
    assert refuse(*COUNTS, *COST, "--plot", "x.png") == line


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (COUNTS, "--cost-ratio is missing; see kvformulas speculate --help"),
        (COST, "--accepted is missing: the accepted draft tokens, or give an --acceptance-rate"),
        (
            ("--accepted", "8", "--steps", "4", *COST),
            "two of --drafted, --steps and --depth must be given with --accepted, or an --acceptance-rate",
        ),
        (("--acceptance-rate", "0.8", *COST), "--depth is missing: the draft tokens of a step"),
        (
            (*COUNTS, *RATE, *COST),
            "--acceptance-rate must be given without --drafted, --accepted and --steps: they imply it",
        ),
        ((*COUNTS, "--accepted", "261", *COST), "--accepted must be at most the drafted tokens, 260, not 261"),
        ((*COUNTS, "--steps", "51", *COST), "--drafted must be at most --steps times --depth, 255, not 260"),
        (
            ("--drafted", "0", "--accepted", "0", "--steps", "4", "--depth", "2", *COST),
            "--drafted must be above 0: without a draft there is no acceptance rate",
        ),
        (
            ("--drafted", "9000", "--accepted", "8", "--steps", "4", *COST),
            "--drafted must be 1 to 1000 tokens for each of the 4 --steps, not 9000",
        ),
        ((*COUNTS, "--steps", "0", *COST), "--steps must be a whole number from 1 to 1000000000000000, not '0'"),
        ((*COUNTS, "--drafted", "-1", *COST), "--drafted must be a whole number from 0 to 1000000000000000, not '-1'"),
        ((*COUNTS, "--depth", "2.5", *COST), "--depth must be a whole number from 1 to 1000, not '2.5'"),
        ((*COUNTS, *COST, "--max-depth", "1001"), "--max-depth must be a whole number from 1 to 1000, not '1001'"),
        ((*RATE, "--acceptance-rate", "1.5", *COST), "--acceptance-rate must be a number from 0 to 1, not '1.5'"),
        ((*RATE, "--acceptance-rate", "nan", *COST), "--acceptance-rate must be a number from 0 to 1, not 'nan'"),
        ((*RATE, "--cost-ratio", "x"), "--cost-ratio must be a number from 0 to 1e+06, not 'x'"),
        ((*RATE, "--cost-ratio", "-0.1"), "--cost-ratio must be a number from 0 to 1e+06, not '-0.1'"),
        ((*RATE, "--cost-ratio", "inf"), "--cost-ratio must be a number from 0 to 1e+06, not 'inf'"),
    ],
)
def test_bad_input(refuse, args, line):
    assert refuse(*args) == line
