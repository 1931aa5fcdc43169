"""Serves a request trace on simulated replicas, in threads, and prints what a person wants to know.

The replicas are independent, and which request goes to which doesn't depend on the threads: the report is the same,
byte for byte, however many there are. Exit status: 0, 1 for a broken conservation check, 2 for bad input.
"""

import argparse
import json
import os
import reprlib
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

from scheduler import Engine

import kvformulas

TRACE = Path(__file__).resolve().parents[2] / "tests/data/mooncake_conversation_1000.jsonl"
BLOCK_SIZE = 512  # tokens: the trace's
COST = {"prefill_tps": 20_000.0, "step_ms": 8.0, "bandwidth_gbs": 300.0}
POLICY = {"token_budget": 2048, "chunk_size": 1024, "safety_margin": 0.01}
COPIES = 20  # of the trace in a round of --scaling
COUNTS = ("capacity", "iterations", "preemptions", "evictions", "chunks", "output_tokens", "looked_up", "found")
FIELDS = {"timestamp": 0, "input_length": 1, "output_length": 1}  # and the least value of each


class BadInput(Exception):
    """The trace or an option is wrong; the message is one line."""


def whole(value, least=0):
    return type(value) is int and least <= value < 2**53


def parse(line):
    """Return the request that a line of the trace holds, or raise a ValueError that says what is wrong with it."""
    try:
        row = json.loads(line.rstrip())
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg}, column {error.colno})") from None
    if not isinstance(row, dict):
        raise ValueError("expected a JSON object")
    for field, least in FIELDS.items():
        if not whole(row.get(field), least):
            raise ValueError(f"{field} must be a whole number from {least}, not {reprlib.repr(row.get(field))}")
    prompt = row.get("hash_ids")
    if not isinstance(prompt, list) or not all(map(whole, prompt)):
        raise ValueError("hash_ids must be a list of whole numbers")
    blocks = int(kvformulas.paged_attention_block_count(row["input_length"], BLOCK_SIZE))
    if len(prompt) != blocks:
        raise ValueError(f"hash_ids must have {blocks} numbers for {row['input_length']} tokens, not {len(prompt)}")
    return (*(row[field] for field in FIELDS), prompt)


def read(path):
    """Return the trace's requests, and how many different blocks their prompts have."""
    requests, names = [], {}
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    arrival, input_length, output_length, prompt = parse(line)
                    if requests and arrival < requests[-1][0]:
                        raise ValueError(f"timestamp {arrival} is before the previous row's {requests[-1][0]}")
                except (ValueError, RecursionError) as error:
                    raise BadInput(f"{path}, line {number}: {error}") from None
                # Numbered as they appear, so that of two blocks of one prompt the later has the larger number.
                requests.append(
                    (arrival, input_length, output_length, [names.setdefault(name, len(names)) for name in prompt])
                )
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    if not requests:
        raise BadInput(f"{path} has no requests")
    return requests, len(names)


def route(requests, replicas):
    """Deal the requests to the replicas: to where the longest known part of the prompt went, else to the least used.

    The first block doesn't count as known: every prompt of the trace begins with it.
    """
    dealt, tokens, home = [[] for _ in range(replicas)], [0] * replicas, {}
    for request in requests:
        _, input_length, _, prompt = request
        known = next((name for name in reversed(prompt[1:]) if name in home), None)
        replica = tokens.index(min(tokens)) if known is None else home[known]
        dealt[replica].append(request)
        tokens[replica] += input_length
        for name in prompt:
            home.setdefault(name, replica)
    return dealt


def model():
    """Return the shape of Qwen3-0.6B from the config that the package ships."""
    config = json.loads(files("kvformulas.data").joinpath("qwen3-0.6b.json").read_text())
    return {
        "layers": config["num_hidden_layers"],
        "kv_heads": config["num_key_value_heads"],
        "head_dim": config["head_dim"],
        "dtype_bytes": 2,
        "context_limit": config["max_position_embeddings"],
    }


def engines(dealt, names, memory_bytes):
    return [
        Engine(requests, names, memory_bytes, block_size=BLOCK_SIZE, **model(), **COST, **POLICY) for requests in dealt
    ]


def serve(replicas, threads):
    """Run the replicas: each thread takes one after another, and none holds the GIL meanwhile."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(Engine.run, replicas))


def report(dealt, replicas):
    """Return what came of it, and check that no request, token or block got lost or was made up."""
    results = [result for engine in replicas for result in engine.results()]
    requests = [request for requests in dealt for request in requests]
    served = [(request, result) for request, result in zip(requests, results, strict=True) if result[0] is None]
    reasons = [result[0] for result in results if result[0] is not None]
    total = {
        name: sum(getattr(engine, name) for engine in replicas)
        for name in (
            "capacity",
            "iterations",
            "preemptions",
            "evictions",
            "chunks",
            "output_tokens",
            "looked_up",
            "found",
        )
    }
    if total["output_tokens"] != sum(output_length for (_, _, output_length, _), _ in served):
        raise AssertionError("the output tokens are not those of the requests served")
    if not all(arrival <= scheduled < first for _, (_, arrival, scheduled, first) in served):
        raise AssertionError("a request was served before it came")

    first_tokens = sorted(first - arrival for _, (_, arrival, _, first) in served) or [0.0]
    waits = [scheduled - arrival for _, (_, arrival, scheduled, _) in served] or [0.0]
    makespan_ms = max(engine.clock_ms for engine in replicas)
    busy_ms = sum(engine.busy_ms for engine in replicas)
    shape = model()
    found_tokens = total["found"] * BLOCK_SIZE
    return {
        "requests": len(requests),
        "served": len(served),
        "served_fraction": kvformulas.sequence_completion_fraction(len(served), len(requests)),
        "too_long": reasons.count("too long"),
        "too_large": reasons.count("too large"),
        **total,
        "saved_seconds": kvformulas.cache_hit_latency_saving(found_tokens, COST["prefill_tps"]),
        "saved_bytes": kvformulas.prefix_cache_hit_bytes(
            found_tokens, shape["kv_heads"], shape["head_dim"], shape["layers"], shape["dtype_bytes"]
        ),
        "ttft_mean_ms": statistics.fmean(first_tokens),
        "ttft_p99_ms": first_tokens[-(-99 * len(first_tokens) // 100) - 1],
        "wait_mean_ms": statistics.fmean(waits),
        "wait_longest_ms": max(waits),
        "makespan_ms": makespan_ms,
        "tokens_per_second": kvformulas.decode_throughput_tokens(total["output_tokens"], makespan_ms),
        "utilization_mean": sum(engine.utilization_ms for engine in replicas) / busy_ms if busy_ms else 0.0,
        "utilization_peak": max(kvformulas.kv_cache_utilization(engine.peak, engine.capacity) for engine in replicas),
    }


def as_text(r, replicas, memory_gib):
    found = f"{r['found']:,} of {r['looked_up']:,} blocks found"
    saved = f"{r['saved_seconds']:.1f} s of prefill and {r['saved_bytes'] / 2**30:.1f} GiB saved"
    rows = {
        "requests": f"{r['requests']:,}, of which {r['served']:,} served ({r['served_fraction']:.1%})",
        "rejected": f"{r['too_long']:,} longer than the model's context, {r['too_large']:,} larger than the cache",
        "preemptions": f"{r['preemptions']:,}",
        "TTFT": f"mean {r['ttft_mean_ms'] / 1e3:.3f} s, p99 {r['ttft_p99_ms'] / 1e3:.3f} s",
        "  of it waiting": f"mean {r['wait_mean_ms'] / 1e3:.3f} s, longest {r['wait_longest_ms'] / 1e3:.3f} s",
        "output tokens": f"{r['output_tokens']:,}, {r['tokens_per_second']:,.1f}/s for {r['makespan_ms'] / 1e3:.1f} s",
        "work": f"{r['iterations']:,} iterations, {r['chunks']:,} chunks of prompts",
        "KV cache in use": f"mean {r['utilization_mean']:.1%}, peak {r['utilization_peak']:.1%}",
        "prefix cache": f"{found}, {saved}, {r['evictions']:,} blocks evicted",
        "checked": "requests served once or rejected, output tokens complete, blocks within capacity and given back",
    }
    blocks = f"{r['capacity'] // replicas:,} blocks of {BLOCK_SIZE} tokens ({memory_gib:g} GiB) each"
    return "\n".join([f"Qwen3-0.6B on {replicas} replicas, {blocks}", *(f"{key:17}{rows[key]}" for key in rows)])


def scaling(make, counts, rounds):
    """Yield a line for each number of threads: how much faster it is than the first, as the rounds' median.

    The trace takes milliseconds, too little to time: a round serves it many times over.
    """
    runs = {threads: [] for threads in counts}
    for _ in range(rounds):
        for threads, times in runs.items():
            replicas = [engine for _ in range(COPIES) for engine in make()]
            start, used = time.perf_counter(), time.process_time()
            serve(replicas, threads)
            times.append((time.perf_counter() - start, time.process_time() - used))
    yield f"The same {COPIES} times over, medians of {rounds} rounds:"
    for threads, times in runs.items():
        pairs = list(zip(runs[counts[0]], times, strict=True))
        speed = statistics.median(first[0] / run[0] for first, run in pairs)
        used = statistics.median(run[1] / first[1] for first, run in pairs)
        yield (
            f"threads: {threads}, {statistics.median(run[0] for run in times):.3f} s, {speed:.2f} times as fast as "
            f"{counts[0]}, processor time {used:.2f} times"
        )


def whole_number(text):
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 256, not {text!r}")
    return int(text)


def whole_numbers(text):
    return [whole_number(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description="Serve a request trace on simulated replicas, in threads.")
    parser.add_argument("trace", nargs="?", type=Path, default=TRACE, help="JSON lines (the Mooncake trace)")
    parser.add_argument(
        "--threads", type=whole_number, default=os.cpu_count() or 1, help="as many as there are processors"
    )
    parser.add_argument("--replicas", type=whole_number, default=8, help="engines (8)")
    parser.add_argument("--memory-gib", type=float, default=16.0, help="of each replica's KV cache (16)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--scaling", type=whole_numbers, metavar="1,2", help="also print how the time scales with threads"
    )
    parser.add_argument("--rounds", type=whole_number, default=9, help="runs of each for --scaling (9)")
    options = parser.parse_args()
    try:
        if not 0.0 <= options.memory_gib <= 4096.0:
            raise BadInput(f"--memory-gib must be between 0 and 4096, not {options.memory_gib}")
        requests, names = read(options.trace)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2

    dealt = route(requests, options.replicas)

    def make():
        return engines(dealt, names, options.memory_gib * 2**30)

    try:
        replicas = make()
        serve(replicas, options.threads)
        result = report(dealt, replicas)
    except AssertionError as error:
        print(f"check failed: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result) if options.json else as_text(result, options.replicas, options.memory_gib))
    if options.scaling:
        print(*scaling(make, options.scaling, options.rounds), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
