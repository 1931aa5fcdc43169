"""Replay a trace of prompts against a prefix cache: how much is reused, by eviction policy and capacity.

The unit is a block of 512 tokens, named by a hash id that stands for the whole prompt up to its end. Time is the
request's index. A victim is always a leaf: a cached block without cached children, and none of the request at hand.
"""

from __future__ import annotations

import gzip
import json
import math
import operator
import os
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from kvformulas import _replay

__all__ = ["BLOCK_TOKENS", "POLICIES", "Result", "Trace", "TraceError", "read_trace", "replay"]

BLOCK_TOKENS = 512
POLICIES = _replay.POLICIES
FIELDS = ("timestamp", "input_length", "output_length", "hash_ids")
LINE_LIMIT = 1 << 26  # bytes; a device may have no end
LENGTH_LIMIT, HASH_LIMIT = 1 << 32, 1 << 64
DIGITS = 400  # more than the largest double has


class TraceError(ValueError):
    """A trace that cannot be used; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one policy reused with one capacity."""

    policy: str
    capacity_blocks: int
    block_hits: int
    block_hit_ratio: float
    token_hits: int
    token_hit_ratio: float
    evictions: int

    def to_dict(self) -> dict[str, str | int | float]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Requests as compact arrays, which every replay shares; made by `read_trace`.

    Parameters
    ----------
    blocks : array
        For each access, root first, the rank of the block's hash id among those of the trace.
    next_uses : array
        For each access the index of the next request that names its block, or 2**32 - 1.
    ends : array
        For each request the number of accesses up to its end.
    input_lengths : array
        For each request the tokens of its prompt.
    requests, block_accesses, unique_blocks, input_tokens : int
        How many there are of each; a unique block is a hash id, however often it is named.
    ceiling_block_hits, ceiling_token_hits : int
        What a cache without a limit reuses.
    overfull_requests : int
        Requests that name more blocks than their prompt can fill, as they do when a block has not 512 tokens.
    """

    blocks: array[int] = field(repr=False)
    next_uses: array[int] = field(repr=False)
    ends: array[int] = field(repr=False)
    input_lengths: array[int] = field(repr=False)
    requests: int
    block_accesses: int
    unique_blocks: int
    input_tokens: int
    ceiling_block_hits: int
    ceiling_token_hits: int
    overfull_requests: int

    @property
    def ceiling(self) -> dict[str, int | float]:
        """What a cache without a limit reuses."""
        return _hits(self, self.ceiling_block_hits, self.ceiling_token_hits)


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """
    Read a trace in Mooncake's JSON lines, plain or gzip-compressed.

    Parameters
    ----------
    path : path
        The file. Each line is an object with ``timestamp`` (ms, never less than the row's before), ``input_length`` and
        ``output_length`` (tokens) and ``hash_ids`` (whole numbers below 2**64, one a block of 512 tokens). Further
        fields and blank lines are ignored.

    Returns
    -------
    Trace
        The requests, in the file's order.

    Raises
    ------
    TraceError
        With the number of the first bad line and what is wrong with it, or when there is no row at all.
    OSError
        If the file cannot be read.
    """
    name = os.fspath(path)
    with Path(path).open("rb") as file:
        try:
            # Not a seek: the file may be a pipe.
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            return _read(gzip.GzipFile(fileobj=file) if packed else file, name)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TraceError(f"{name!r} must be a whole gzip file: {error}") from None


def _read(file: BinaryIO | gzip.GzipFile, name: str) -> Trace:
    reader = _replay.Reader()
    lines: Iterable[bytes] = iter(lambda: file.readline(LINE_LIMIT + 1), b"")
    for number, line in enumerate(lines, 1):
        if reader.add_plain(line):
            continue
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if text.isspace() or not text:
            continue
        try:
            reader.add(*_row(text, reader.timestamp))
        except ValueError as error:
            raise TraceError(f"{name!r}, line {number}: {error}") from None
        except RecursionError:
            raise TraceError(f"{name!r}, line {number}: a row must be JSON, nested less deeply") from None
    blocks, next_uses, ends, lengths, unique = reader.finish()
    if not ends:
        raise TraceError(f"{name!r} must hold at least one request, and is empty")
    return Trace(
        blocks,
        next_uses,
        ends,
        lengths,
        requests=len(ends),
        block_accesses=len(blocks),
        unique_blocks=unique,
        input_tokens=reader.input_tokens,
        ceiling_block_hits=reader.ceiling_block_hits,
        ceiling_token_hits=reader.ceiling_token_hits,
        overfull_requests=reader.overfull,
    )


def _row(line: bytes, earlier: float) -> tuple[float, int, list[int]]:
    """Read and check one row that is not in the usual form."""
    if len(line) > LINE_LIMIT:
        raise ValueError(f"a row must have at most {LINE_LIMIT >> 20} MiB")
    try:
        row = json.loads(line.decode(), object_pairs_hook=_once, parse_int=_integer, parse_constant=_no_number)
    except UnicodeDecodeError:
        raise ValueError("a row must be text in UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"a row must be JSON: {error.msg} at column {error.pos + 1}") from None
    if not isinstance(row, dict):
        raise ValueError(f"a row must be a JSON object, not {_short(row)}")
    for name in FIELDS:
        if name not in row:
            raise ValueError(f"{name} is missing")
    _whole("output_length", row["output_length"], LENGTH_LIMIT)
    input_length = _whole("input_length", row["input_length"], LENGTH_LIMIT)
    if not isinstance(row["hash_ids"], list):
        raise ValueError(f"hash_ids must be a list, not {_short(row['hash_ids'])}")
    hash_ids = [_whole("a hash id", value, HASH_LIMIT) for value in row["hash_ids"]]
    timestamp = row["timestamp"]
    if isinstance(timestamp, bool) or not isinstance(timestamp, int | float) or not 0 <= timestamp < math.inf:
        raise ValueError(f"timestamp must be a number of milliseconds, at least 0, not {_short(timestamp)}")
    if timestamp < earlier:
        before = f"{earlier:.17g} of the row before"
        raise ValueError(f"timestamp must not be less than the {before}, and is {_short(timestamp)}")
    try:
        return float(timestamp), input_length, hash_ids
    except OverflowError:
        raise ValueError(f"timestamp is too large for a double: {_short(timestamp)}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{_short(next(name for name in names if names.count(name) > 1))} is given twice")
    return fields


def _integer(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a number must have at most {DIGITS} digits, not {len(digits)}")
    return int(digits)


def _no_number(text: str) -> float:
    raise ValueError(f"a row must be JSON, which has no {text}")


def _whole(name: str, value: Any, limit: int) -> int:
    if type(value) is not int or not 0 <= value < limit:
        raise ValueError(f"{name} must be a whole number from 0 to {limit - 1}, not {_short(value)}")
    return value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def replay(
    trace: Trace,
    policies: Sequence[str] = POLICIES,
    capacities: Sequence[int] = (1000, 3000, 10000),
    threads: int | None = None,
    progress: Callable[[], object] | None = None,
) -> list[Result]:
    """
    Replay a trace once for each policy and capacity, in parallel threads without the GIL.

    Parameters
    ----------
    trace : Trace
        The requests.
    policies : sequence of str
        Whom to evict. ``fifo``: the block inserted longest ago; ``lru``: the one used longest ago; ``lfu``: the one
        with the fewest accesses in the trace so far, then as ``lru``; ``belady``: the one whose next use is farthest,
        and a new block whose own is no nearer is not kept. Among equals goes the larger hash id.
    capacities : sequence of int
        Blocks that the cache holds.
    threads : int, optional
        How many replays may run at once; as many as the processor has cores if not given. The results don't depend
        on it.
    progress : callable, optional
        Called after each replay, in the caller's thread.

    Returns
    -------
    list of Result
        In the order of the policies, and of the capacities for each.

    Raises
    ------
    ValueError
        For an unknown policy, a capacity that is no whole number or negative, or no thread.

    Examples
    --------
    >>> from kvformulas.replay import read_trace, replay
    >>> trace = read_trace("trace.jsonl")
    >>> for result in replay(trace, ["lru", "belady"], [1000]):
    ...     print(result.policy, result.block_hits, f"{result.token_hit_ratio:.2%}")
    lru 1038 3.87%
    belady 4240 15.79%
    """
    policies = list(policies)
    for policy in policies:
        if policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {policy!r}")
    capacities = [_at_least(0, "capacity", capacity) for capacity in capacities]
    threads = _cores() if threads is None else _at_least(1, "threads", threads)
    stop = bytearray(1)

    def run(policy: str, capacity: int) -> Result:
        block_hits, token_hits, evictions = _replay.replay(
            trace.blocks,
            trace.next_uses,
            trace.ends,
            trace.input_lengths,
            trace.unique_blocks,
            POLICIES.index(policy),
            min(capacity, trace.unique_blocks),
            stop,
        )
        hits: dict[str, Any] = _hits(trace, block_hits, token_hits)
        return Result(policy, capacity, **hits, evictions=evictions)

    with ThreadPoolExecutor(threads, "replay") as pool:
        try:
            tasks = [pool.submit(run, policy, capacity) for policy in policies for capacity in capacities]
            for task in as_completed(tasks):
                task.result()
                if progress is not None:
                    progress()
        except BaseException:  # also when interrupted: nobody wants the rest
            stop[0] = 1
            pool.shutdown(cancel_futures=True)
            raise
    return [task.result() for task in tasks]


def _at_least(least: int, name: str, value: object) -> int:
    """Return an int for anything that counts as one."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, not {value!r}")
    return number


def _hits(trace: Trace, block_hits: int, token_hits: int) -> dict[str, int | float]:
    return {
        "block_hits": block_hits,
        "block_hit_ratio": block_hits / max(trace.block_accesses, 1),
        "token_hits": token_hits,
        "token_hit_ratio": token_hits / max(trace.input_tokens, 1),
    }


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
