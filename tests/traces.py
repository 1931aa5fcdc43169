# Traces for the tests of the replay: made of requests, and what came out of them.
import io
import json
from pathlib import Path

from kvformulas import replay as replay_module
from kvformulas.replay import POLICIES, replay

MOONCAKE = Path(__file__).with_name("data") / "mooncake_conversation_1000.jsonl"


def row(ids, **fields):
    ids = list(ids)
    usual = {"timestamp": 0, "input_length": 512 * len(ids), "output_length": 1, "hash_ids": ids}
    return json.dumps(usual | fields)


def read(data, name="trace.jsonl"):
    return replay_module._read(io.BytesIO(data), name)


def mutate(source, line):
    """Return the line with a few bytes removed, doubled, changed or put in."""
    data = bytearray(line)
    for _ in range(source.randint(1, 3)):
        at = source.randrange(len(data)) if data else 0
        what = source.randrange(5)
        if what == 0:
            del data[at : at + source.randint(1, 9)]
        elif what == 1:
            data[at:at] = data[at : at + source.randint(1, 30)]
        elif what == 2:
            data[at : at + 1] = bytes([source.randrange(256)])
        elif what == 3:
            data[at:at] = source.choice([b"-", b"0", b"1e5", b".5", b'"', b"[", b"]", b"{", b"}", b",", b":", b"\0"])
        else:
            data[at:at] = str(source.getrandbits(source.choice([8, 40, 64, 70]))).encode()
    return bytes(data).replace(b"\n", b" ")


def trace_of(requests):
    return read("\n".join(row(r.hash_ids, input_length=r.input_length) for r in requests).encode())


def counts(result):
    return (result.block_hits, result.token_hits, result.evictions)


def hits(trace, capacity):
    return [result.block_hits for result in replay(trace, POLICIES, [capacity])]
