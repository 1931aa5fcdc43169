# The replay: what each odd input does, what is refused, the Python face and the command.
import dataclasses
import doctest
import errno
import gzip
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from array import array
from contextlib import suppress
from importlib.resources import files
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvformulas import _cli_replay, _replay, cli, plan
from kvformulas import replay as replay_module
from kvformulas.replay import POLICIES, Result, TraceError, read_trace, replay
from traces import MOONCAKE, counts, hits, mutate, read, row

QWEN3 = files("kvformulas.data") / "qwen3-0.6b.json"
ROWS = b"".join(MOONCAKE.read_bytes().splitlines(keepends=True)[:100])


@pytest.fixture
def write(tmp_path):
    """Write a trace of rows, or of bytes as they are."""

    def write(*rows):
        path = tmp_path / "trace.jsonl"
        path.write_bytes(b"".join(r if isinstance(r, bytes) else r.encode() + b"\n" for r in rows))
        return path

    return write


@pytest.fixture(scope="module")
def mooncake():
    return read(ROWS)


@pytest.fixture
def path(tmp_path):
    """A file with the same."""
    path = tmp_path / "mooncake.jsonl"
    path.write_bytes(ROWS)
    return path


# Odd inputs


def test_capacity_0_keeps_nothing_and_evicts_nothing(write):
    trace = read_trace(write(row([1, 2]), row([1, 2])))
    assert [counts(result) for result in replay(trace, POLICIES, [0])] == [(0, 0, 0)] * 4


def test_capacity_1_keeps_the_first_block_of_a_request(write):
    trace = read_trace(write(row([1, 2]), row([1, 2]), row([3, 4]), row([1, 2])))
    # belady keeps 1, which is needed again.
    assert [counts(result) for result in replay(trace, POLICIES, [1])] == [*[(1, 512, 2)] * 3, (2, 1024, 0)]


def test_a_request_longer_than_the_capacity_keeps_its_first_blocks(write):
    trace = read_trace(write(row([9]), row(range(5)), row(range(5))))
    assert [counts(result) for result in replay(trace, POLICIES[:3], [3])] == [(3, 1536, 1)] * 3


def test_a_repeated_hash_is_one_block_and_two_accesses(write):
    trace = read_trace(write(row([7, 7]), row([7, 7, 8])))
    assert (trace.block_accesses, trace.unique_blocks) == (5, 2)
    assert [counts(result) for result in replay(trace, POLICIES, [2])] == [(2, 1024, 0)] * 4


def test_a_hash_with_two_parents_stays_with_the_one_that_brought_it(write):
    # 9 came after 1, so 2 is a leaf and goes first, although 9 was used after 2 as well.
    trace = read_trace(write(row([1, 9]), row([2, 9]), row([3]), row([2]), row([1, 9])))
    [result] = replay(trace, ["lru"], [3])
    assert counts(result) == (2, 1024, 2)


def test_equal_scores_take_the_larger_hash_id(write):
    for first, second in ((5, 6), (6, 5)):
        trace = read_trace(write(row([first]), row([second]), row([7]), row([5])))
        assert hits(trace, 2)[2] == (1 if first == 6 else 0)  # lfu: equal accesses, so the older goes
    # 8 and 2**64 - 1 are leaves of one request.
    big = 2**64 - 1
    for order in ([1, 8, 1, big], [1, big, 1, 8]):
        chain = [row([1]), row([8]), row([big]), row(order), row([3]), row([8])]
        assert hits(read_trace(write(*chain)), 3)[1] == 4 + 1


def test_tokens_of_a_partial_block(write):
    trace = read_trace(write(row([1, 2], input_length=700), row([1, 2], input_length=700)))
    assert replay(trace, ["lru"], [2]) == [Result("lru", 2, 2, 0.5, 700, 0.5, 0)]


def test_requests_without_blocks_or_tokens(write):
    trace = read_trace(write(row([]), row([], input_length=0)))
    assert replay(trace, ["belady"], [5]) == [Result("belady", 5, 0, 0.0, 0, 0.0, 0)]


def test_more_blocks_than_tokens_are_counted(write):
    trace = read_trace(write(row([1, 2], input_length=512), row([1, 2], input_length=513), row([1], input_length=600)))
    assert trace.overfull_requests == 1


def test_gzip_is_told_by_its_first_bytes(path, mooncake):
    path.write_bytes(gzip.compress(ROWS))
    assert hits(read_trace(path), 1000) == hits(mooncake, 1000)
    packed = path.read_bytes()
    for broken in (packed[:-9], packed[: len(packed) // 2], packed[:9], packed[:2] + b"junk", packed + b"junk"):
        path.write_bytes(broken)
        with pytest.raises(TraceError, match="must be a whole gzip file"):
            read_trace(path)


def test_every_way_to_end_a_line():
    for odd in (
        ROWS.rstrip(b"\n"),
        ROWS.replace(b"\n", b"\r\n"),
        ROWS.replace(b"\n", b"\n\n \t\r\n"),
        b"\xef\xbb\xbf" + ROWS,
        b"\xef\xbb\xbf\n" + ROWS,
    ):
        assert outcome(odd) == outcome(ROWS)


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf", gzip.compress(b"")])
def test_an_empty_trace_is_refused(write, data):
    with pytest.raises(TraceError, match=r"trace.jsonl' must hold at least one request, and is empty"):
        read_trace(write(data))


GOOD = row([1, 2])
BAD_ROWS = {
    "{": "a row must be JSON: ",
    GOOD[:-1]: "a row must be JSON: ",
    GOOD + GOOD: "a row must be JSON: ",
    "[1, 2]": "a row must be a JSON object, not [1, 2]",
    "null": "a row must be a JSON object, not null",
    '"' + 99 * "x" + '"': 'a row must be a JSON object, not "' + 56 * "x" + "...",
    "[" * 100_000: "a row must be JSON, nested less deeply",
    '{"timestamp": NaN}': "a row must be JSON, which has no NaN",
    GOOD.replace("timestamp", "time"): "timestamp is missing",
    GOOD.replace("hash_ids", "ids"): "hash_ids is missing",
    '{"timestamp": 1, ' + GOOD[1:]: '"timestamp" is given twice',
    GOOD[:-1] + ', "hash_ids": []}': '"hash_ids" is given twice',
    row([1], timestamp=-1): "timestamp must be a number of milliseconds, at least 0, not -1",
    row([1], timestamp=True): "timestamp must be a number of milliseconds, at least 0, not true",
    row([1], timestamp="1"): 'timestamp must be a number of milliseconds, at least 0, not "1"',
    GOOD.replace("0,", "1e999,", 1): "timestamp must be a number of milliseconds, at least 0, not Infinity",
    row([1], timestamp=10**399): "timestamp is too large for a double: 1" + 56 * "0" + "...",
    row([1], input_length=-1): "input_length must be a whole number from 0 to 4294967295, not -1",
    row([1], input_length=2**32): "input_length must be a whole number from 0 to 4294967295, not 4294967296",
    row([1], input_length=1.5): "input_length must be a whole number from 0 to 4294967295, not 1.5",
    row([1], output_length=None): "output_length must be a whole number from 0 to 4294967295, not null",
    row([1], hash_ids=7): "hash_ids must be a list, not 7",
    row([-1]): "a hash id must be a whole number from 0 to 18446744073709551615, not -1",
    row([2**64]): "a hash id must be a whole number from 0 to 18446744073709551615, not 18446744073709551616",
    row([1.0]): "a hash id must be a whole number from 0 to 18446744073709551615, not 1.0",
    row([False]): "a hash id must be a whole number from 0 to 18446744073709551615, not false",
    row([[1]]): "a hash id must be a whole number from 0 to 18446744073709551615, not [1]",
    row(["a"]): 'a hash id must be a whole number from 0 to 18446744073709551615, not "a"',
    GOOD.replace("[1", "[01"): "a row must be JSON: ",
    GOOD.replace("[1", "[1,"): "a row must be JSON: ",
    GOOD.replace("2]", "2,]"): "a row must be JSON: ",
    GOOD + "\0": "a row must be JSON: ",
    GOOD.replace(" ", "\v", 1): "a row must be JSON: ",
    GOOD.replace("[1", "[" + 5000 * "1"): "a number must have at most 400 digits, not 5000",
}


@pytest.mark.parametrize(("bad", "says"), BAD_ROWS.items(), ids=range(len(BAD_ROWS)))
def test_a_bad_row_is_refused_with_its_line(write, bad, says):
    path = write(GOOD, "", bad, GOOD)
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{str(path)!r}, line 3: {says}")


def test_no_depth_of_nesting_escapes():
    # Where reading still works, writing the value for the message may not.
    for depth in range(sys.getrecursionlimit() - 100, sys.getrecursionlimit() + 2):
        with pytest.raises(TraceError, match=r"line 1: (a row must be JSON, nested less deeply|a hash id must be)"):
            read(GOOD.replace("[1", "[" + "[" * depth + "]" * depth).encode())


def test_bytes_that_are_no_text(write):
    with pytest.raises(TraceError, match=r"line 2: a row must be text in UTF-8"):
        read_trace(write(GOOD, b'{"\xff": 1}\n'))


def test_a_trace_out_of_order_in_time_is_refused(write):
    path = write(row([1], timestamp=5), row([1], timestamp=5), row([1], timestamp=4))
    with pytest.raises(TraceError, match=r"line 3: timestamp must not be less than the 5 of the row before, and is 4"):
        read_trace(path)


def test_a_line_without_end_is_refused(write, monkeypatch):
    monkeypatch.setattr(replay_module, "LINE_LIMIT", 1 << 20)
    with pytest.raises(TraceError, match=r"line 2: a row must have at most 1 MiB"):
        read_trace(write(GOOD, bytes((1 << 20) + 2)))


def test_long_rows_and_many_hashes():
    ids = [random.Random(i).getrandbits(64) for i in range(5000)]
    trace = read("\n".join([row(ids), row(ids), row(reversed(ids))]).encode())
    assert (trace.block_accesses, trace.unique_blocks) == (15_000, 5000)
    rank = {value: i for i, value in enumerate(sorted(ids))}
    assert trace.blocks.tolist() == [rank[value] for value in [*ids, *ids, *reversed(ids)]]


@pytest.mark.parametrize(
    "line",
    [
        GOOD,
        '\t{"hash_ids":[],"output_length":0,"input_length":0,"timestamp":0}\r\n',
        '{ "hash_ids" : [ 1 , 20 ] , "timestamp" : 12 , "output_length" : 0 , "input_length" : 4294967295 } \n',
        row([10**18 - 1], timestamp=10**17),
    ],
)
def test_the_usual_form_takes_the_short_way(line):
    reader = _replay.Reader()
    assert reader.add_plain(line.encode())
    fields = json.loads(line)
    assert (reader.timestamp, reader.input_tokens) == (fields["timestamp"], fields["input_length"])


@pytest.mark.parametrize(
    "line",
    [
        row([2**64 - 1, 0]),
        row([1], timestamp=0.25),
        row([1], session={"id": [1, {"a": "b"}], "text": 'a"}\\'}),
        GOOD.replace("timestamp", "\\u0074imestamp"),
        GOOD.replace("[1", "[-0"),
    ],
)
def test_other_forms_are_read_too(line):
    assert not _replay.Reader().add_plain(line.encode())
    fields = json.loads(line)
    ids = sorted(set(fields["hash_ids"]))
    assert read(line.encode()).blocks.tolist() == [ids.index(value) for value in fields["hash_ids"]]


def outcome(data):
    """What reading gives: arrays, or the message."""
    try:
        trace = read(data)
    except TraceError as error:
        return str(error)
    return (trace.blocks, trace.next_uses, trace.ends, trace.input_lengths)


@settings(max_examples=600)
@given(st.randoms(use_true_random=False), st.lists(st.integers(0, 2**64), max_size=4), st.integers(0, 10**19))
def test_the_short_way_takes_nothing_that_json_would_not(source, ids, timestamp):
    line = mutate(source, row(ids, timestamp=timestamp).encode())
    reader = _replay.Reader()
    if reader.add_plain(line):
        time_read, length, read_ids = replay_module._row(line, 0)
        assert (reader.timestamp, reader.input_tokens) == (time_read, length)
        rank = {value: i for i, value in enumerate(sorted(set(read_ids)))}
        assert reader.finish()[0].tolist() == [rank[value] for value in read_ids]
    else:
        result = outcome(line)
        assert isinstance(result, str) or result[0] is not None


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(data):
    result = outcome(data)
    assert isinstance(result, tuple) or result.startswith("'trace.jsonl'")


# The API


def test_results_are_frozen_and_plain(mooncake):
    [result] = replay(mooncake, ["lru"], [10**30])
    assert result.to_dict() == dataclasses.asdict(result)
    assert result.capacity_blocks == 10**30
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.policy = "fifo"


def test_bad_arguments_are_refused(mooncake):
    with pytest.raises(ValueError, match=r"policy must be one of fifo, lru, lfu, belady, not 'mru'"):
        replay(mooncake, ["mru"])
    for capacity in (-1, 1.5, True, "1", None):
        with pytest.raises(ValueError, match=rf"capacity must be a whole number, at least 0, not {capacity!r}"):
            replay(mooncake, capacities=[capacity])
    for threads in (0, 1.5):
        with pytest.raises(ValueError, match=rf"threads must be a whole number, at least 1, not {threads}"):
            replay(mooncake, threads=threads)


def test_arrays_that_do_not_fit_are_refused(mooncake):
    ones = array("I", [1])
    for change in (
        {"blocks": ones},
        {"next_uses": ones},
        {"ends": ones},
        {"input_lengths": ones},
        {"unique_blocks": 10},
        {"ends": array("I", reversed(mooncake.ends))},
        {"input_lengths": array("H", bytes(2 * len(mooncake.ends)))},
    ):
        with pytest.raises(ValueError, match=r"the arrays of a trace must fit each other"):
            replay(dataclasses.replace(mooncake, **change), ["lru"], [10])


class Interrupted(BaseException):
    pass


def test_an_interrupted_replay_ends_at_once(mooncake):
    calls = []

    def progress():
        calls.append(time.monotonic())
        raise Interrupted

    with pytest.raises(Interrupted):
        replay(mooncake, POLICIES, range(0, 10_000, 10), threads=2, progress=progress)
    assert len(calls) == 1
    assert time.monotonic() - calls[0] < 5
    arrays = (mooncake.blocks, mooncake.next_uses, mooncake.ends, mooncake.input_lengths)
    assert _replay.replay(*arrays, mooncake.unique_blocks, 1, 5, bytearray([1])) == (0, 0, 0)


def test_example(tmp_path, monkeypatch):
    shutil.copy(MOONCAKE, tmp_path / "trace.jsonl")
    monkeypatch.chdir(tmp_path)
    tests = doctest.DocTestFinder().find(replay, "replay")
    assert [doctest.DocTestRunner().run(test) for test in tests] == [doctest.TestResults(0, 3)]


# The command


@pytest.fixture
def run(capsys):
    def run(*args, err=""):
        status = cli.main(("replay", *map(str, args)))
        output = capsys.readouterr()
        assert (status, output.err) == (0, err)
        return output.out

    return run


@pytest.fixture
def refuse(capsys):
    def refuse(*args):
        status = cli.main(("replay", *map(str, args)))
        output = capsys.readouterr()
        assert (status, output.out, output.err.count("\n")) == (2, "", 1)
        return output.err.removeprefix("kvformulas: ").strip()

    return refuse


def test_table(run, path, mooncake):
    lines = run(path, "--capacity", "100,1000", "--policy", "lru,belady").splitlines()
    assert lines[:2] == [
        "100 requests with 1,524,742 prompt tokens.",
        "3,034 block accesses, 2,935 unique blocks of 512 tokens.",
    ]
    results = replay(mooncake, ["lru", "belady"], [100, 1000])
    cells = [line.split() for line in lines[5:]]
    assert [line[:3] for line in cells] == [
        *([r.policy, f"{r.capacity_blocks:,}", str(r.block_hits)] for r in results),
        ["any", "no", "limit"],
    ]
    assert cells[-1][3:] == ["99", "3.26%", "50,688", "3.32%", "0"]


def test_json(run, mooncake, path):
    document = json.loads(run(path, "--json", "--threads", "2"), parse_constant=pytest.fail)
    results = replay(mooncake, POLICIES, _cli_replay.CAPACITIES)
    assert document == {
        "requests": 100,
        "block_accesses": mooncake.block_accesses,
        "unique_blocks": mooncake.unique_blocks,
        "ceiling": mooncake.ceiling,
        "results": [result.to_dict() for result in results],
    }
    assert list(document["results"][0]) == [
        "policy",
        "capacity_blocks",
        "block_hits",
        "block_hit_ratio",
        "token_hits",
        "token_hit_ratio",
        "evictions",
    ]


def test_what_is_given_twice_counts_once(run, path):
    document = json.loads(run(path, "--capacity", "5,5", "--policy", "LRU, lru", "--json"))
    assert [(r["policy"], r["capacity_blocks"]) for r in document["results"]] == [("lru", 5)]


def test_blocks_that_seem_smaller_are_mentioned(run, write):
    path = write(row([1, 2, 3], input_length=48))
    line = (
        "kvformulas: 1 of 1 requests name more blocks than input_length has 512 tokens: "
        "is a block smaller in this trace?\n"
    )
    assert '"block_accesses": 3' in run(path, "--json", err=line)


def test_bad_input_is_one_line(refuse, write, tmp_path, path):
    see = "; see kvformulas replay --help"
    assert refuse() == "TRACE is missing" + see
    missing = str(tmp_path / "none")
    assert refuse(missing) == f"TRACE must be a file that can be read: {missing!r}: No such file or directory"
    assert refuse("a\0b").startswith("TRACE must be a file that can be read: ")
    bad = str(write(GOOD, row([-1])))
    assert refuse(bad).startswith(f"TRACE {bad!r}, line 2: a hash id must be a whole number")
    assert refuse(write()).endswith("must hold at least one request, and is empty")
    for text in ("-5", "1,,3", "x", "1e3", "1.5", ""):
        assert "must be whole numbers of blocks with commas between them, not " in refuse(path, "--capacity", text)
    assert "must be one or more of fifo, lru, lfu, belady, not 'mru'" in refuse(path, "--policy", "lru,mru")
    assert "--threads" in refuse(path, "--threads", "0")
    for options in (("--model", "x"), ("--kv-memory", "1GiB")):
        assert refuse(path, *options) == "--model and --kv-memory need each other" + see
    for size in ("16", "16 GiB", "0.5TB", "7B"):
        assert "like 16GiB" not in refuse(missing, "--model", "x", "--kv-memory", size)
    for size in ("16Gi", "-1GiB", "GiB", "1e3", "iB", "nan"):
        assert "like 16GiB" in refuse(missing, "--model", "x", "--kv-memory", size)


def test_too_little_memory_is_said(refuse, monkeypatch, path):
    def exhausted(*_args):
        raise MemoryError

    monkeypatch.setattr(replay_module, "replay", exhausted)
    assert refuse(path) == f"TRACE {str(path)!r} is too large for this machine's memory"
    monkeypatch.setattr(replay_module, "read_trace", exhausted)
    assert refuse(path) == f"TRACE {str(path)!r} is too large for this machine's memory"


def test_memory_becomes_capacity_through_the_planner(run, refuse, monkeypatch, path):
    asked = {}

    def recording(model, **options):
        asked.update(options)
        return plan.plan(model, **options)

    monkeypatch.setitem(sys.modules, "kvformulas.plan", SimpleNamespace(plan=recording, read_model=plan.read_model))
    options = ("--model", QWEN3, "--policy", "lru", "--json", "--kv-memory")
    block = 28 * 2 * 8 * 128 * 2 * 512  # layers, keys and values, KV heads, head_dim, bytes of bfloat16, tokens
    document = json.loads(run(path, *options, "16GiB"))
    assert [r["capacity_blocks"] for r in document["results"]] == [2**34 // block]
    assert asked == {"context": max(read_trace(path).input_lengths), "kv_memory": 2**34, "block_size": 512}
    document = json.loads(run(path, *options, f"{7 * block}", "--capacity", "1,100,7"))
    assert [r["capacity_blocks"] for r in document["results"]] == [1, 100, 7]
    run(path, *options, "1.5 MB")
    assert asked["kv_memory"] == 1_500_000
    assert refuse(path, *options, "99999TB").startswith("--kv-memory must be a whole number from 0 to ")
    assert refuse(path, "--kv-memory", "1GiB", "--model", "none").startswith("CONFIG must be a config.json or a folder")
    assert refuse(path, "--kv-memory", "1GiB", "--model", "x" * 5000).endswith("File name too long")


def test_plot(run, refuse, tmp_path, path):
    for name, start in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.PDF", b"%PDF")):
        run(path, "--capacity", "0,1,10,100,1000,3000,10000", "--plot", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    text = (tmp_path / "a.svg").read_text()
    for label in (*POLICIES, "no limit: ", "capacity (blocks of 512 tokens)", "prompt tokens reused"):
        assert f"<!-- {label}" in text
    run(path, "--capacity", "0", "--policy", "lru", "--plot", tmp_path / "b.svg")
    assert refuse(path, "--plot", "a.foo") == "--plot must name a file that ends in .pdf, .png, .svg, not 'a.foo'"
    (tmp_path / "c.png").mkdir()
    for name in (tmp_path / "none" / "a.png", tmp_path / "c.png", "a\0b/c.png"):
        line = f"--plot must name a file in a folder that exists, not {str(name)!r}"
        assert refuse(path, "--plot", name) == line.replace("\0", "\\x00")


def test_a_plot_that_cannot_be_written_loses_no_results(capsys, monkeypatch, tmp_path, path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    plot = tmp_path / "a.png"
    assert cli.main(("replay", str(path), "--plot", str(plot))) == 2
    output = capsys.readouterr()
    assert output.out.startswith("100 requests")
    assert output.err == (
        f"kvformulas: --plot must name a file that can be written, not {str(plot)!r}: No space left on device\n"
    )


def test_progress_on_a_terminal(run, monkeypatch, path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    run(path)
    assert "replaying" in terminal.getvalue()
    assert "12/12" in terminal.getvalue()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither such terminals nor such signals")
def test_an_interrupt_ends_all_threads():
    import pty

    terminal, theirs = pty.openpty()
    capacities = ",".join(map(str, range(10_000)))
    command = [sys.executable, "-m", "kvformulas", "replay", MOONCAKE, "--capacity", capacities]
    # What a shell runs in the background ignores interrupts, and so would what it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as process:
        signal.signal(signal.SIGINT, before)
        os.close(theirs)
        shown = b""
        while b"replaying" not in shown:
            shown += os.read(terminal, 1000)
        process.send_signal(signal.SIGINT)
        with suppress(OSError):  # the last to hold the terminal has gone
            while piece := os.read(terminal, 1000):
                shown += piece
        assert process.stdout.read() == b""
    os.close(terminal)
    assert process.returncode == 130
    assert b"Traceback" not in shown
    assert b"40000/40000" not in shown
