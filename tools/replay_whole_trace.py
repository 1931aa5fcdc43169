"""Compare the engine with the slow model of the tests on a whole trace: python tools/replay_whole_trace.py TRACE.

Some minutes for the whole conversation trace of Mooncake: the model is plain, not fast.
"""

import json
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import replay_model
from kvformulas.replay import POLICIES, read_trace, replay


@click.command(help=__doc__)
@click.argument("trace", type=click.Path(exists=True, path_type=Path))
@click.argument("capacities", nargs=-1, type=int)
def main(trace: Path, capacities: tuple[int, ...]) -> None:
    rows = map(json.loads, trace.read_text().splitlines())
    requests = [replay_model.Request(row["input_length"], row["hash_ids"]) for row in rows]
    failed = False
    for result in replay(read_trace(trace), POLICIES, capacities or (1000, 3000, 10_000, 30_000)):
        expected = replay_model.replay(requests, result.policy, result.capacity_blocks)
        same = expected == replay_model.Counts(result.block_hits, result.token_hits, result.evictions)
        says = f"{result.policy}, {result.capacity_blocks:,} blocks: {expected}"
        click.echo(f"{'ok' if same else 'FAILED':7} {says}" + ("" if same else f", not {result}"))
        failed |= not same
    sys.exit(failed)


if __name__ == "__main__":
    main()
