# examples/threaded_scheduler, built against the installed kvformulas: the same report from any number of threads,
# nothing lost or made up, and the same as a slow model of the same rules that is written for reading.
import importlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples/threaded_scheduler"
TRACE = Path(__file__).parent / "data/mooncake_conversation_1000.jsonl"
ROWS = [json.loads(line) for line in TRACE.read_text().splitlines()]
CONTEXT, BLOCK = 40960, 512
BLOCK_BYTES = 2 * BLOCK * 8 * 128 * 2 * 28


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Build the example as its README says, in a copy."""
    folder = tmp_path_factory.mktemp("threaded_scheduler")
    for name in ("setup.py", "scheduler.pyx", "run.py"):
        shutil.copy(EXAMPLE / name, folder)
    run = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"], cwd=folder, check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def load(folder, monkeypatch):
    """Import the built program; others may have a module of the same name."""
    monkeypatch.syspath_prepend(folder)
    for name in ("run", "scheduler"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    program = importlib.import_module("run")
    assert Path(program.__file__).parent == folder
    return program


def start(folder, *arguments, trace=TRACE):
    command = [sys.executable, "run.py", str(trace), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


def report(folder, *arguments):
    run = start(folder, "--json", *arguments)
    assert (run.returncode, run.stderr) == (0, "")
    return json.loads(run.stdout)


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_the_report_is_the_same_whatever_the_number_of_threads(folder, form):
    runs = [start(folder, *form, "--memory-gib", 6, "--threads", threads) for threads in (1, 2, 3, 8)]
    assert {(run.returncode, run.stdout, run.stderr) for run in runs} == {(0, runs[0].stdout, "")}
    assert "937" in runs[0].stdout


def test_the_readme_shows_the_report(folder):
    run = start(folder)
    assert f"$ python run.py\n{run.stdout}```\n" in (EXAMPLE / "README.md").read_text()


@pytest.mark.parametrize("memory_gib", [0, 2, 4, 16, 1000])
def test_every_request_is_served_or_rejected_and_every_token_is_there(folder, memory_gib):
    capacity = memory_gib * 2**30 // BLOCK_BYTES
    kinds = {"served": [], "too_long": [], "too_large": []}
    for row in ROWS:
        length = row["input_length"] + row["output_length"]
        fits = -(-length // BLOCK) * BLOCK <= capacity * BLOCK * 0.99
        kinds["too_long" if length > CONTEXT else "served" if fits else "too_large"].append(row)

    result = report(folder, "--memory-gib", memory_gib)

    assert {kind: result[kind] for kind in kinds} == {kind: len(rows) for kind, rows in kinds.items()}
    assert result["output_tokens"] == sum(row["output_length"] for row in kinds["served"])
    assert result["capacity"] == 8 * capacity
    assert 0.0 <= result["utilization_mean"] <= result["utilization_peak"] <= 1.0


def test_little_memory_preempts_and_evicts_and_ample_memory_does_neither(folder):
    little, ample = report(folder, "--memory-gib", 4), report(folder, "--memory-gib", 1000)
    assert little["preemptions"] > 0
    assert little["evictions"] > 0
    assert (ample["preemptions"], ample["evictions"]) == (0, 0)
    assert ample["found"] > little["found"] > 0
    assert ample["ttft_p99_ms"] < little["ttft_p99_ms"]


def test_scaling_is_measured(folder):
    run = start(folder, "--scaling", "1,2", "--rounds", 1)
    assert (run.returncode, run.stderr) == (0, "")
    first, second = run.stdout.splitlines()[-2:]
    assert first.startswith("threads: 1, ")
    assert "1.00 times as fast as 1" in first
    assert second.startswith("threads: 2, ")


def test_the_checks_notice_a_token_that_nobody_was_given(folder, monkeypatch):
    program = load(folder, monkeypatch)
    requests, names = program.read(TRACE)
    dealt = [requests[:3]]
    replicas = program.engines(dealt, names, 2.0**34)
    program.serve(replicas, 1)
    assert program.report(dealt, replicas)["served"] == 3
    arrival, input_length, output_length, prompt = requests[0]
    with pytest.raises(AssertionError, match="output tokens"):
        program.report([[(arrival, input_length, output_length + 1, prompt), *requests[1:3]]], replicas)


def change(**fields):
    return json.dumps(ROWS[6] | fields).encode()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not JSON (Expecting property name enclosed in double quotes, column "),
        (b"", "not JSON (Expecting value, column 1)"),
        (b"\xff", "'utf-8' codec can't decode"),
        (b"[1]", "expected a JSON object"),
        (b"{}", "timestamp must be a whole number from 0, not None"),
        (change(input_length=0), "input_length must be a whole number from 1, not 0"),
        (change(output_length=1.5), "output_length must be a whole number from 1, not 1.5"),
        (change(output_length=True), "output_length must be a whole number from 1, not True"),
        (change(hash_ids="0"), "hash_ids must be a list of whole numbers"),
        (change(hash_ids=[-1]), "hash_ids must be a list of whole numbers"),
        (change(input_length=513, hash_ids=[0]), "hash_ids must have 2 numbers for 513 tokens, not 1"),
    ],
)
def test_a_malformed_row_is_named(folder, tmp_path, line, message):
    trace = tmp_path / "trace.jsonl"
    trace.write_bytes(b"\n".join([*(json.dumps(row).encode() for row in ROWS[:6]), line, b"{}"]))
    run = start(folder, trace=trace)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert run.stderr.startswith(f"{trace}, line 7: {message}")


def test_other_bad_input(folder, tmp_path):
    empty, backwards = tmp_path / "empty", tmp_path / "backwards"
    empty.touch()
    backwards.write_text("\n".join(json.dumps(ROWS[i]) for i in (900, 0)))
    for run, message in [
        (start(folder, trace=tmp_path / "none"), f"cannot read {tmp_path / 'none'}: No such file or directory"),
        (start(folder, trace=empty), f"{empty} has no requests"),
        (start(folder, trace=backwards), f"{backwards}, line 2: timestamp 0 is before the previous row's 294000"),
        (start(folder, "--memory-gib", "nan"), "--memory-gib must be between 0 and 4096, not nan"),
    ]:
        assert (run.returncode, run.stdout, run.stderr) == (2, "", message + "\n")
    assert start(folder, "--threads", "0").returncode == 2


def compare(program, rows, names, capacity, given):
    """Return what both the engine and the slow model counted."""
    block_bytes = (
        2 * given["block_size"] * given["kv_heads"] * given["head_dim"] * given["dtype_bytes"] * given["layers"]
    )
    engine = program.Engine(rows, names, capacity * block_bytes, **given)
    engine.run()
    counts, results = slow_model(rows, capacity, SimpleNamespace(**given))
    assert {name: getattr(engine, name) for name in counts} == counts
    assert engine.results() == results
    return counts


@pytest.mark.parametrize("capacity", [45, 73])
def test_the_engine_does_what_the_slow_model_does(folder, monkeypatch, capacity):
    program = load(folder, monkeypatch)
    requests, names = program.read(TRACE)
    given = program.model() | program.COST | program.POLICY | {"block_size": BLOCK}
    seen = Counter()
    for rows in program.route(requests[:200], 2):
        seen.update(compare(program, rows, names, capacity, given))
    assert min(seen[name] for name in ("preemptions", "evictions", "found")) > 0


def test_the_engine_does_what_the_slow_model_does_where_all_is_tight_and_much_is_equal(folder, monkeypatch):
    program = load(folder, monkeypatch)
    policy = {"block_size": 8, "token_budget": 40, "chunk_size": 16, "safety_margin": 0.1, "context_limit": 80}
    given = program.model() | program.COST | policy
    random = Random(0)
    seen = Counter()
    for _ in range(300):
        rows, names, arrival = [], {}, 0
        for _ in range(random.randrange(1, 30)):
            arrival += random.choice([0, 0, 20, 200])
            prompt = random.choices("ab", [3, 1], k=random.randrange(1, 9))
            prefixes = ["".join(prompt[: i + 1]) for i in range(len(prompt))]
            tokens = 8 * len(prompt) - random.choice([0, 0, 3])
            named = [names.setdefault(prefix, len(names)) for prefix in prefixes]
            rows.append((arrival, tokens, random.randrange(1, 25), named))
        seen.update(compare(program, rows, len(names), random.randrange(4, 30), given))
    assert min(seen[name] for name in ("preemptions", "evictions", "found")) > 100


def slow_model(rows, capacity, given):
    """Serve one replica's requests by the README's rules: counts and sets instead of blocks, plain arithmetic."""
    size, free, now = given.block_size, capacity, 0.0
    cached = {}  # name: [how many hold it, the last iteration in which one let go of it]
    count = Counter(iterations=0, preemptions=0, evictions=0, chunks=0, output_tokens=0, looked_up=0, found=0, peak=0)
    coming = [
        SimpleNamespace(
            arrival=float(arrival), input=tokens, output=output, names=names, generated=0, target=0, computed=0,
            held=[], own=0, reason="coming", scheduled=-1.0, first=-1.0,
        )
        for arrival, tokens, output, names in rows
    ]  # fmt: skip
    everyone, waiting, running = list(coming), [], []

    def fits(blocks, available):
        return blocks * size <= available * size * (1 - given.safety_margin)

    def idle():
        return {name for name, (holders, _) in cached.items() if holders == 0}

    def take():
        nonlocal free
        if free:
            free -= 1
        else:
            del cached[max(idle(), key=lambda name: (count["iterations"] - cached[name][1], name))]
            count["evictions"] += 1

    def let_go(request):
        nonlocal free
        for name in request.held:
            cached[name] = [cached[name][0] - 1, count["iterations"]]
        free += request.own
        request.held, request.own = [], 0
        running.remove(request)

    def grow():
        before = count["preemptions"]
        for request in [r for r in running if r.generated and r.computed >= r.target]:
            while request in running and request.computed + 1 > (len(request.held) + request.own) * size:
                if free or idle():
                    take()
                    request.own += 1
                else:
                    victim = max(reversed(running), key=lambda r: r.computed / (r.generated + 1))
                    let_go(victim)
                    waiting.insert(0, victim)
                    count["preemptions"] += 1
        return count["preemptions"] > before

    def prefill(request, left):
        tokens = min(request.target - request.computed, given.chunk_size, left)
        if tokens <= 0:
            return 0
        count["chunks"] += 1
        filled = range(request.computed // size, min(request.computed + tokens, request.input) // size)
        for name in [request.names[i] for i in filled]:
            if name not in cached:
                cached[name] = [1, 0]
                request.held.append(name)
                request.own -= 1
        request.computed += tokens
        return tokens

    def admit(request):
        request.target = request.input + request.generated
        usable = request.names[: min(request.input, request.target - 1) // size]
        shared = []
        for name in usable:
            if name not in cached:
                break
            shared.append(name)
        needed = -(-request.target // size) - len(shared)
        if not fits(needed, free + len(idle() - set(shared))):
            return False
        count["looked_up"] += len(usable)
        count["found"] += len(shared)
        for name in shared:
            cached[name][0] += 1
        for _ in range(needed):
            take()
        request.held, request.own, request.computed = shared, needed, len(shared) * size
        if request.scheduled < 0:
            request.scheduled = now
        running.append(waiting.pop(0))
        return True

    while coming or waiting or running:
        if not waiting and not running:
            now = max(now, coming[0].arrival)
        while coming and coming[0].arrival <= now:
            request = coming.pop(0)
            if request.input + request.output > given.context_limit:
                request.reason = "too long"
            elif not fits(-(-(request.input + request.output) // size), capacity):
                request.reason = "too large"
            else:
                waiting.append(request)
        if not waiting and not running:
            continue

        count["iterations"] += 1
        preempted = grow()
        decoding = [request for request in running if request.computed >= request.target]
        for request in decoding:
            request.computed += 1
        left = given.token_budget - len(decoding)
        prompts = 0
        for request in running:
            if request not in decoding:
                prompts += prefill(request, left - prompts)
        while not preempted and waiting and prompts < left and admit(waiting[0]):
            prompts += prefill(running[-1], left - prompts)
        count["peak"] = max(count["peak"], capacity - free - len(idle()))

        context = sum(request.computed for request in decoding)
        moved = 2 * context * given.layers * given.kv_heads * given.head_dim * given.dtype_bytes
        now += given.step_ms + 1000 * (prompts / given.prefill_tps) + moved / (given.bandwidth_gbs * 1e6)
        for request in [r for r in running if r.computed >= r.target]:
            request.generated += 1
            count["output_tokens"] += 1
            if request.first < 0:
                request.first = now
            if request.generated == request.output:
                request.reason = None
                let_go(request)
    assert free + len(cached) == capacity
    return dict(count), [(r.reason, r.arrival, r.scheduled, r.first) for r in everyone]
