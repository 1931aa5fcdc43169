"""How many bytes a model folder's weights are, by the index or the headers of its safetensors files."""

import json
from pathlib import Path

from kvformulas._config import ConfigError, as_object

HEADER_LIMIT = 100_000_000  # bytes; the format's own limit


def weight_bytes(folder: Path) -> int | None:
    """Return the bytes of a folder's tensors, or None if it holds no safetensors file."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        metadata = as_object(str(index), index.read_bytes()).get("metadata")
        total = metadata.get("total_size") if isinstance(metadata, dict) else None
        if isinstance(total, float) and total.is_integer():
            total = int(total)
        if type(total) is not int or total < 1:
            raise ConfigError(f"metadata.total_size in {str(index)!r} must be a number of bytes")
        return total
    shards = sorted(folder.glob("model*.safetensors")) or sorted(folder.glob("*.safetensors"))
    return sum(map(_tensor_bytes, shards)) if shards else None


def _tensor_bytes(file: Path) -> int:
    """Return the end of the last tensor: a file is the header's length in 8 bytes, the header as JSON, the tensors."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        data = stream.read(length) if length <= HEADER_LIMIT else b""
    try:
        header = json.loads(data)
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        return max([int(end) for end in ends if end >= 0], default=0)
    except (ValueError, AttributeError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
        raise ConfigError(f"{str(file)!r} must be a safetensors file, and its header is not one") from None
