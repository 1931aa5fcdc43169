# The replay's right values on real requests, and the engine against the slow model, request by request.
import json
import random
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import replay_model
from kvformulas.replay import POLICIES, read_trace, replay
from replay_model import Request
from traces import MOONCAKE, counts, hits, trace_of

TEN_CAPACITIES = (0, 1, 2, 10, 30, 100, 300, 1000, 10_000, 1_000_000)
# Of the whole trace, whose first 1,000 rows are here: block hits and token hits [%] at 1,000, 3,000, 10,000 and 30,000
# blocks, from an independent implementation.
WHOLE_TRACE = {
    "fifo": ((12_842, 18_827, 60_852, 93_985), (4.54, 6.65, 21.51, 33.22)),
    "lru": ((12_847, 18_850, 61_046, 93_978), (4.54, 6.66, 21.57, 33.22)),
    "lfu": ((22_320, 33_590, 54_034, 80_750), (7.89, 11.88, 19.10, 28.55)),
    "belady": ((55_019, 84_953, 105_710, 105_710), (19.44, 30.03, 37.36, 37.36)),
}


@pytest.fixture(scope="module")
def mooncake():
    return read_trace(MOONCAKE)


@pytest.fixture(scope="module")
def mooncake_requests():
    rows = map(json.loads, MOONCAKE.read_text().splitlines())
    return [Request(row["input_length"], row["hash_ids"]) for row in rows]


def test_first_thousand_rows(mooncake):
    assert hits(mooncake, 1000) == [1038, 1038, 1405, 4240]
    assert hits(mooncake, 100) == [999, 999, 999, 1678]
    assert hits(mooncake, 1) == [999] * 4
    assert hits(mooncake, 0) == [0] * 4


@pytest.mark.checkout
def test_whole_trace():
    """What docs/data records of it: made by `make bench-replay`, and checked by tools/replay_whole_trace.py."""
    data = json.loads((Path(__file__).parents[1] / "docs" / "data" / "replay.json").read_text())
    assert (data["requests"], data["block_accesses"], data["unique_blocks"]) == (12_031, 288_500, 182_790)
    assert data["ceiling"]["block_hits"] == 105_710
    found = {(r["policy"], r["capacity_blocks"]): r for r in data["results"]}
    for policy, (block_hits, token_percents) in WHOLE_TRACE.items():
        results = [found[policy, capacity] for capacity in (1000, 3000, 10_000, 30_000)]
        assert tuple(r["block_hits"] for r in results) == block_hits
        assert tuple(round(100 * r["token_hit_ratio"], 2) for r in results) == token_percents


@pytest.mark.parametrize("policy", POLICIES)
def test_first_thousand_rows_against_the_model(mooncake, mooncake_requests, policy):
    for result in replay(mooncake, [policy], TEN_CAPACITIES):
        expected = replay_model.replay(mooncake_requests, policy, result.capacity_blocks)
        assert counts(result) == (expected.block_hits, expected.token_hits, expected.evictions), result
        assert result.block_hit_ratio == result.block_hits / sum(len(r.hash_ids) for r in mooncake_requests)
        assert result.token_hit_ratio == result.token_hits / sum(r.input_length for r in mooncake_requests)


def test_the_trace_itself(mooncake, mooncake_requests):
    named = [block for request in mooncake_requests for block in request.hash_ids]
    assert (mooncake.requests, mooncake.block_accesses) == (1000, len(named))
    assert mooncake.unique_blocks == len(set(named))
    assert mooncake.input_tokens == sum(request.input_length for request in mooncake_requests)
    arrays = (mooncake.blocks, mooncake.next_uses, mooncake.ends, mooncake.input_lengths)
    taken = sum(sys.getsizeof(values) for values in arrays)  # with what an array keeps to grow
    assert taken <= 16 * mooncake.block_accesses
    assert mooncake.overfull_requests == 0
    for result in replay(mooncake, POLICIES, [mooncake.unique_blocks]):
        assert {name: getattr(result, name) for name in mooncake.ceiling} == mooncake.ceiling
        assert result.evictions == 0


# The engine against the model, after each request

LENGTHS = st.integers(0, 3000)
# Few ids: repeated in one request, after several parents, anywhere in the order.
ODD = st.lists(st.builds(Request, LENGTHS, st.lists(st.integers(0, 9), max_size=6)), min_size=1, max_size=12)


@st.composite
def chained(draw):
    """Requests whose ids stand for whole prefixes, as in a real trace, numbered in any order."""
    prompts = draw(st.lists(st.lists(st.integers(0, 2), max_size=5), min_size=1, max_size=12))
    prefixes = sorted({tuple(p[: i + 1]) for p in prompts for i in range(len(p))})
    ids = dict(zip(prefixes, draw(st.permutations(range(len(prefixes)))), strict=True))
    return [Request(draw(LENGTHS), [ids[tuple(p[: i + 1])] for i in range(len(p))]) for p in prompts]


@settings(max_examples=300)
@given(st.one_of(ODD, chained()), st.sampled_from(POLICIES), st.integers(0, 12))
@example([Request(512, [1, 1, 2, 1]), Request(512, [2, 1]), Request(512, [1, 1])], "lru", 1)
@example([Request(512, [1, 9]), Request(512, [2, 9]), Request(512, [3]), Request(512, [2, 9])], "lfu", 2)
def test_every_step_against_the_model(requests, policy, capacity):
    for length in range(1, len(requests) + 1):
        start = requests[:length]
        expected = replay_model.replay(start, policy, capacity)
        [result] = replay(trace_of(start), [policy], [capacity])
        assert counts(result) == (expected.block_hits, expected.token_hits, expected.evictions)


@settings(max_examples=60)
@given(st.integers(0, 2**64), st.sampled_from(POLICIES))
def test_longer_traces_against_the_model(seed, policy):
    source, tree, requests = random.Random(seed), [[]], []
    for _ in range(60):
        path = source.choice(tree)[: source.randint(0, 30)]
        path = path + [len(tree) * 100 + i for i in range(source.randint(0, 8))]
        tree.append(path)
        requests.append(Request(source.randint(0, 20_000), path))
    names = list(range(100 * len(tree)))
    source.shuffle(names)
    requests = [Request(r.input_length, [names[block] for block in r.hash_ids]) for r in requests]
    for result in replay(trace_of(requests), [policy], [1, 5, 20, 60, 150]):
        expected = replay_model.replay(requests, policy, result.capacity_blocks)
        assert counts(result) == (expected.block_hits, expected.token_hits, expected.evictions)


def test_ceiling_is_what_nothing_evicted_gives():
    source = random.Random(1)
    for _ in range(50):
        requests = [Request(source.randint(0, 2000), [source.randint(0, 9) for _ in range(5)]) for _ in range(10)]
        trace = trace_of(requests)
        for policy in POLICIES:
            expected = replay_model.replay(requests, policy, 10)
            assert (trace.ceiling_block_hits, trace.ceiling_token_hits) == (expected.block_hits, expected.token_hits)


def test_any_number_of_threads_gives_the_same(mooncake):
    results = [replay(mooncake, POLICIES, TEN_CAPACITIES, threads) for threads in (1, 2, 3, 40, None)]
    assert all(result == results[0] for result in results)
    order = [(result.policy, result.capacity_blocks) for result in results[0]]
    assert order == [(policy, capacity) for policy in POLICIES for capacity in TEN_CAPACITIES]
