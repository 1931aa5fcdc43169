"""Measure `kvformulas replay` side by side with other simulators: python benchmarks/replay.py TRACE [--quick].

TRACE is in Mooncake's JSON lines. The competitors, `pip install kvcache-simulator libcachesim`, replay the same
requests with LRU and take turns with kvformulas; each turn gives one ratio, shown are their median and quartiles.
kvcache-simulator's C++ program needs a C++ compiler; its replay alone is timed by replay_rival.cc. libcachesim knows no
prefixes: it replays the same accesses as an ordinary cache, from a binary file.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

import run
from kvformulas.replay import POLICIES, Trace, read_trace, replay
from method import Spread, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CAPACITIES = (1000, 3000, 10_000, 30_000)
MODEL = "glm-5.2"  # any of its models: it only turns capacities into GiB
PACKAGES = ("kvformulas", "kvcache-simulator", "libcachesim")
# A process starts with the peak memory of the one that starts it, so commands start from a small one.
LAUNCHER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[2:], stdout=open(sys.argv[1], "wb"))
_, status, used = os.wait4(process.pid, 0)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(status != 0)
"""
LIBCACHESIM = """
import sys, libcachesim as lcs
for capacity in map(int, sys.argv[2:]):
    parameters = lcs.ReaderInitParam(ignore_obj_size=True)
    reader = lcs.TraceReader(sys.argv[1], lcs.TraceType.ORACLE_GENERAL_TRACE, parameters)
    print(lcs.LRU(capacity, hashpower=18).process_trace(reader))
"""
METHOD = (
    "Every figure is a ratio within this run: the programs take turns, {turns} of them, and each turn gives one ratio "
    "to kvformulas. Shown is the median of the ratios, with their quartiles in parentheses. The policy is LRU with "
    "{capacities} blocks, the trace one of {requests:,} requests with {accesses:,} block accesses."
)
SCRIPTS = Path(sysconfig.get_path("scripts"))


@dataclass
class Race:
    """What competitors need for the same work, in seconds by turn, and their peak memory in bytes."""

    title: str
    note: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)

    def ratio(self, name: str) -> Spread:
        """How many times as long as kvformulas."""
        own = self.seconds["kvformulas"]
        return Spread.of([other / mine for other, mine in zip(self.seconds[name], own, strict=True)])

    def as_data(self) -> dict[str, Any]:
        """Return the race as JSON has it."""
        return vars(self) | {"ratios": {name: vars(self.ratio(name)) for name in self.seconds}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, metavar="TRACE")
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--output", type=Path, default=Path("build/benchmarks"), metavar="DIR", help="%(default)s")
    options = parser.parse_args()
    turns = 3 if options.quick else 15

    trace = read_trace(options.trace)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        packed = pack(trace, folder / "accesses.oracleGeneral")
        races = [alone(trace, options.trace, packed, turns), whole(options.trace, packed, turns)]
    threads, share = two_threads(trace, turns)

    machine = run.describe_machine() | {package: run.installed_version(package) for package in PACKAGES}
    capacities = ", ".join(f"{capacity:,}" for capacity in CAPACITIES)
    how = METHOD.format(turns=turns, capacities=capacities, requests=trace.requests, accesses=trace.block_accesses)
    targets = [
        Target(f"{race.title}: three times as fast as kvcache-simulator", f"{ratio} times", ratio.median >= 3)
        for race in races
        for ratio in [race.ratio("kvcache-simulator")]
    ]
    # A machine that has no core to spare for one thread says nothing about two.
    verdict = threads.median >= 1.8 if threads.median >= 1.8 or share > 0.95 else None
    targets.append(Target("Two threads: 1.8 times one", f"{threads} times", verdict))
    two = f"All policies with all capacities, by the wall's clock: {threads} times as fast as one thread."
    two += f" That one had {share:.0%} of a core."
    report = "\n\n".join(
        [
            f"# Replay\n\n{how}",
            run.targets_table(targets),
            *(f"## {race.title}\n\n{race.note}\n\n{table(race, trace)}" for race in races),
            f"## Two threads\n\n{two}",
            "## The machine\n\n" + tabulate(machine.items(), ("", ""), "pipe", disable_numparse=True),
        ]
    )
    data = {
        "method": how,
        "machine": machine,
        "targets": [vars(target) for target in targets],
        "races": [race.as_data() for race in races],
        "two_threads": vars(threads) | {"share_of_a_core": share, "text": two},
    }
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "benchmarks_replay.md").write_text(report + "\n", encoding="utf-8")
    (options.output / "benchmarks_replay.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    print(report)


def table(race: Race, trace: Trace) -> str:
    runs = len(CAPACITIES)
    lines = []
    for name, seconds in race.seconds.items():
        once = statistics.median(seconds) / runs
        memory = f"{race.memory[name] / 2**20:,.0f} MiB" if name in race.memory else ""
        ratio = "1" if name == "kvformulas" else str(race.ratio(name))
        speeds = [f"{count / once:,.0f}" for count in (trace.requests, trace.block_accesses)]
        lines.append((name, f"{1000 * once:.1f} ms", *speeds, ratio, memory))
    head = ("", "a capacity", "requests/s", "accesses/s", "times as long", "peak memory")
    return tabulate(lines, head, "pipe", disable_numparse=True)


def take_turns(race: Race, competitors: dict[str, Callable[[], float]], turns: int) -> Race:
    """Let each competitor say its seconds, in turns, after one turn to warm up."""
    for work in competitors.values():
        work()
    for _ in range(turns):
        for name, work in competitors.items():
            race.seconds.setdefault(name, []).append(work())
    return race


# The replay alone, in processor time, the trace in memory already


def alone(trace: Trace, path: Path, packed: Path, turns: int) -> Race:
    note = "The trace is in memory, in each program's own form; processor time of one thread, all capacities in turn."
    simulator = Rival(path, packed.parent)
    race = take_turns(
        Race("Replay alone", note),
        {
            "kvformulas": lambda: own(trace),
            "kvcache-simulator": simulator.seconds,
            "libcachesim": libcachesim(packed),
        },
        turns,
    )
    simulator.close()
    return race


def own(trace: Trace) -> float:
    start = time.process_time()
    replay(trace, ["lru"], CAPACITIES, threads=1)
    return time.process_time() - start


class Rival:
    """kvcache-simulator's C++ replay, with the trace loaded, waiting for capacities."""

    def __init__(self, path: Path, folder: Path) -> None:
        from kvcache_sim import cpp_backend
        from kvcache_sim.trace import parse_trace_file

        program = folder / "rival"
        source = Path(__file__).with_name("replay_rival.cc")
        simulator = f'-DSIMULATOR="{cpp_backend._cpp_source_path()}"'
        # Its own flags.
        command = [shutil.which("c++") or "c++", "-std=c++17", "-O3", simulator, str(source), "-o", str(program)]
        subprocess.run(command, check=True)
        trace = parse_trace_file(path, block_size=512)
        files = cpp_backend._write_binary_trace(trace, folder)
        counts = (trace.request_count, len(trace.ids), trace.request_count // 2)
        options = ("--request-count", "--total-blocks", "--warmup-requests")
        self.process = subprocess.Popen(
            [program, "--policy", "batch", "--ids", files.ids, "--tokens", files.tokens]
            + ["--request-ends", files.request_ends]
            + [part for option, count in zip(options, counts, strict=True) for part in (option, str(count))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        total = 0.0
        for capacity in CAPACITIES:
            print(capacity, file=self.process.stdin, flush=True)
            total += float(self.process.stdout.readline().split()[0])
        return total

    def close(self) -> None:
        self.process.communicate()


def libcachesim(packed: Path) -> Callable[[], float]:
    import libcachesim as lcs

    kind = lcs.TraceType.ORACLE_GENERAL_TRACE

    def seconds() -> float:
        start = time.process_time()
        for capacity in CAPACITIES:
            reader = lcs.TraceReader(str(packed), kind, lcs.ReaderInitParam(ignore_obj_size=True))
            lcs.LRU(capacity, hashpower=18).process_trace(reader)
        return time.process_time() - start

    return seconds


def pack(trace: Trace, path: Path) -> Path:
    """Write the accesses in libcachesim's binary form."""
    record = struct.Struct("<IQIq").pack
    path.write_bytes(b"".join(record(i, block + 1, 1, -1) for i, block in enumerate(trace.blocks)))
    return path


# The whole command, from the file to JSON


def whole(path: Path, packed: Path, turns: int) -> Race:
    from kvcache_sim.calculator import BYTES_PER_GIB, calculate_cache_size, load_models_data, models_by_id

    folder = packed.parent
    models = load_models_data(None)
    trace = read_trace(path)
    size = calculate_cache_size(
        models_by_id(models)[MODEL],
        tokens=max(1, trace.input_tokens // trace.requests),
        precision=None,
        indexer_precision=None,
        block_size=512,
        include_draft_kv_cache=False,
        include_linear_attention_state=False,
        models_data=models,
    )
    block = float(size.bytes_per_block or size.bytes_per_token * 512)
    budgets = ",".join(repr((c + 0.5) * block / BYTES_PER_GIB) for c in CAPACITIES)
    capacities = ",".join(map(str, CAPACITIES))
    race = Race(
        "Whole command",
        "From the file to JSON on standard output; libcachesim, which cannot read that file, from a binary one to miss "
        "ratios. Processor time, all processes of a command.",
    )

    def command(name: str, program: str | Path, *args: str | Path) -> Callable[[], float]:
        def seconds() -> float:
            launch = [sys.executable, "-c", LAUNCHER, folder / f"{name}.json", program, *args]
            done = subprocess.run(launch, check=True, capture_output=True, text=True)
            used, peak = map(float, done.stdout.split())
            race.memory[name] = max(race.memory.get(name, 0), 1024 * int(peak))
            return used

        return seconds

    own = ("--policy", "lru", "--capacity", capacities, "--json", "--threads", "1")
    rivals_own = ("--model", MODEL, "--block-size", "512", "--budgets-gib", budgets, "--policies", "lru")
    rivals_own += ("--format", "json", "--no-progress")
    rival = "kvcache-simulator"
    take_turns(
        race,
        {
            "kvformulas": command("kvformulas", SCRIPTS / "kvformulas", "replay", path, *own),
            rival: command(rival, SCRIPTS / rival, "run", "--trace", path, *rivals_own),
            "libcachesim": command("libcachesim", sys.executable, "-c", LIBCACHESIM, packed, *map(str, CAPACITIES)),
        },
        turns,
    )
    points = json.loads((folder / "kvcache-simulator.json").read_text())["points"]
    assert [point["cacheBlocks"] for point in points] == list(CAPACITIES)
    return race


def two_threads(trace: Trace, turns: int) -> tuple[Spread, float]:
    """Return how many times as fast two threads are as one, and the share of a core that one thread got meanwhile."""

    def seconds(threads: int) -> tuple[float, float]:
        start, start_processor = time.perf_counter(), time.process_time()
        replay(trace, POLICIES, CAPACITIES * 4, threads)
        return time.perf_counter() - start, time.process_time() - start_processor

    seconds(2)
    ratios, shares = [], []
    for _ in range(turns):
        (one, processor), (two, _) = seconds(1), seconds(2)
        ratios.append(one / two)
        shares.append(processor / one)
    return Spread.of(ratios), statistics.median(shares)


if __name__ == "__main__":
    main()
