"""How much KV cache a model needs, and how many requests fit: from a config.json to bytes, blocks and requests.

``read_model`` turns a Hugging Face config.json into layer groups; ``plan`` computes what a request stores, what a paged
engine allocates for it, what the bound is, and how many requests a memory holds. Every figure is a formula's.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from kvformulas._allocation import Layout, Spec, lay_out
from kvformulas._config import Config, ConfigError
from kvformulas._layers import STATE_BYTES, Conv, Group, State, layer_groups
from kvformulas._weights import weight_bytes
from kvformulas.attention_layouts import (
    attention_kv_bytes_per_token,
    conv_state_bytes,
    kv_heads_per_rank,
    max_concurrency,
    mla_kv_bytes_per_token,
    quantized_head_bytes,
    recurrent_state_bytes,
    sliding_window_tokens,
)
from kvformulas.engine_admission import watermark_reserved_blocks
from kvformulas.kv_cache import kv_cache_total_memory, paged_attention_block_count

__all__ = [
    "KV_DTYPES",
    "ConfigError",
    "Conv",
    "Group",
    "GroupPlan",
    "Model",
    "Plan",
    "PlanError",
    "State",
    "plan",
    "read_model",
]

DEFAULT_CONTEXT = 32768  # tokens, or the model's own maximum if that is less
CONTEXT_LIMIT, BYTES_LIMIT = 1 << 40, 1 << 53  # beyond 2**53 a double does not count every byte
# A KV dtype: bits an element, elements that share a scale (0: a head's vector), bytes of a scale.
KV_DTYPES: dict[str, tuple[int, int, int]] = {
    "bf16": (16, 0, 0),
    "fp16": (16, 0, 0),
    "fp32": (32, 0, 0),
    "fp8": (8, 0, 0),  # vLLM's: one scale a layer, none in the cache
    "fp8_per_token_head": (8, 0, 4),
    "fp8_ds_mla": (8, 128, 4),  # the latent only; the rotary part stays bf16
    "int8": (8, 0, 4),
    "int4": (4, 0, 4),
    "nvfp4": (4, 16, 1),
    "q8_0": (8, 32, 2),  # llama.cpp's
    "q4_0": (4, 32, 2),
}
SAME_DTYPE = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32",
    "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "float8_e4m3fn": "fp8", "int8_per_token_head": "int8",
    "int4_per_token_head": "int4",
}  # fmt: skip
CONV_BYTES = 2  # engines serve a model, and keep its convolutions, in 16 bits
INDEX_KEY = (8, 0, 4)  # an indexer's key is fp8 with a 4-byte scale, whatever the KV dtype


class PlanError(ValueError):
    """An argument of a plan that is no size, no dtype, or does not fit the others; the message is one line."""


@dataclass(frozen=True, slots=True)
class Model:
    """
    What a config.json says of a model's KV cache.

    Parameters
    ----------
    name : str
        The file.
    model_type : str
        Its ``model_type``.
    groups : tuple of Group
        The layers, by what they keep.
    n_layers : int
        How many layers the decoder has.
    max_context : int, optional
        The longest context that the model was made for.
    dtype : str, optional
        That of the weights.
    kv_dtype : str, optional
        What the checkpoint asks for its KV cache.
    notes : tuple of str
        What was taken from elsewhere, or left out.
    folder : pathlib.Path, optional
        Where the weights may be.
    """

    name: str
    model_type: str
    groups: tuple[Group, ...]
    n_layers: int
    max_context: int | None = None
    dtype: str | None = None
    kv_dtype: str | None = None
    notes: tuple[str, ...] = ()
    folder: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the model as JSON has it."""
        return {
            "model_type": self.model_type,
            "n_layers": self.n_layers,
            "max_context": self.max_context,
            "dtype": self.dtype,
            "kv_dtype": self.kv_dtype,
            "groups": [group.to_dict() for group in self.groups],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """
    One group's share of a plan, on the fullest rank.

    Parameters
    ----------
    group : Group
        The layers.
    n_layers : int
        How many of them the rank holds.
    entry_bytes : int
        Bytes of one token, or of one compressed entry.
    fixed_bytes : int
        Bytes of a request however short it is.
    stored_bytes : int
        Bytes of a request at the context.
    """

    group: Group
    n_layers: int
    entry_bytes: int
    fixed_bytes: int
    stored_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return the group's kind and dimensions, and its bytes."""
        own = self.group.to_dict()
        figures = {name: value for name, value in asdict(self).items() if name.endswith("_bytes")}
        return own | (figures if self.group.kind not in {"none", "shared"} else {})


@dataclass(frozen=True, slots=True)
class Plan:
    """
    What one request at a context takes on the fullest rank, and what a memory holds.

    Parameters
    ----------
    model_type : str
        The config's ``model_type``.
    groups : tuple of GroupPlan
        The share of each group of layers.
    context : int
        Tokens of the request.
    kv_dtype : str
        One of ``KV_DTYPES``.
    block_size, max_batched_tokens, tp, pp : int
        As given.
    next_token_bytes : int
        What one more token adds to what is stored.
    fixed_bytes : int
        What a request stores however short it is: recurrent states and convolutions.
    stored_bytes : int
        What its tokens and states occupy.
    allocated_bytes : int
        What a paged engine takes for it.
    reserved_bytes : int
        What it would occupy if every layer kept every token.
    blocks_per_request : int
        Blocks that the engine takes for it.
    block_bytes : int
        Bytes of a block.
    kv_memory_bytes : int, optional
        The memory for the KV cache of a rank. This and what follows is there if a memory was given.
    blocks : int, optional
        Whole blocks that it holds.
    watermark_blocks : int, optional
        Blocks of these that admission keeps free.
    tokens : int, optional
        Tokens that the blocks hold, as an engine logs it.
    requests : int, optional
        Whole requests that fit.
    concurrency : float, optional
        The same with its fraction.
    wanted_requests : int, optional
        How many requests were wanted.
    wanted_bytes : int, optional
        What is allocated for them.
    fits : bool, optional
        Whether they fit.
    notes : tuple of str
        By what conventions the figures are.
    warnings : tuple of str
        What may be wrong with the question.
    """

    model_type: str
    groups: tuple[GroupPlan, ...]
    context: int
    kv_dtype: str
    block_size: int
    max_batched_tokens: int
    tp: int
    pp: int
    next_token_bytes: int
    fixed_bytes: int
    stored_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    blocks_per_request: int
    block_bytes: int
    kv_memory_bytes: int | None = None
    blocks: int | None = None
    watermark_blocks: int | None = None
    tokens: int | None = None
    requests: int | None = None
    concurrency: float | None = None
    wanted_requests: int | None = None
    wanted_bytes: int | None = None
    fits: bool | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON has it; what was not asked for is left out."""
        own = {name: getattr(self, name) for name in Plan.__dataclass_fields__}
        own |= {"groups": [group.to_dict() for group in self.groups]}
        own |= {"notes": list(self.notes), "warnings": list(self.warnings)}
        return {name: value for name, value in own.items() if value is not None}


def read_model(source: str | PathLike[str] | Mapping[str, Any], *, overrides: Mapping[str, Any] | None = None) -> Model:
    """
    Read a model's layer groups from its config.json.

    The part that describes the text decoder is found in a file of any form. What the file leaves out is the default of
    the model's class, as recorded from transformers or as transformers says if it is installed.

    Parameters
    ----------
    source : str, os.PathLike or Mapping
        A config.json, a model folder that holds one, or its fields.
    overrides : Mapping, optional
        Fields to take instead of the file's, for what a file leaves out.

    Returns
    -------
    Model
        The layer groups, and what else of the file matters.

    Raises
    ------
    ConfigError
        The file is no config.json, or does not say what decides the cache; the message names the field.

    See Also
    --------
    plan : What the layer groups take.

    Examples
    --------
    >>> from kvformulas.plan import read_model
    >>> model = read_model({"model_type": "qwen3", "num_hidden_layers": 32, "num_key_value_heads": 8, "head_dim": 128})
    >>> [(group.kind, group.n_layers, group.kv_heads, group.k_head_dim) for group in model.groups]
    [('full', 32, 8, 128)]
    """
    config = Config(source, overrides or {})
    groups = layer_groups(config)
    layers = {layer for group in groups for layer in group.layers}
    asked = config.kv_dtype()
    if asked is not None and asked[0] != "auto":
        config.notes.append(f"The checkpoint asks for a KV cache in {asked[0]} ({asked[1]}).")
    elif config.top.get("quantization_config") or config.text.get("quantization_config"):
        config.notes.append("The weights are quantised; the KV cache is not, unless --kv-dtype says so.")
    maximum = config.whole("max_position_embeddings", absent=0, least=0, limit=CONTEXT_LIMIT)
    longer = config.raw("model_max_length")  # Command-R's, whose max_position_embeddings is that of its first training
    if type(longer) is int and maximum < longer <= CONTEXT_LIMIT:
        maximum = longer
    return Model(
        config.name,
        config.model_type,
        groups,
        len(layers),
        maximum or None,
        config.dtype,
        asked[0] if asked and asked[0] != "auto" else None,
        tuple(config.notes),
        config.folder,
    )


def plan(
    model: Model,
    *,
    context: int | None = None,
    requests: int | None = None,
    kv_memory: int | None = None,
    gpu_memory: int | None = None,
    utilization: float = 0.9,
    weights: int | None = None,
    overhead: int = 0,
    tp: int = 1,
    pp: int = 1,
    kv_dtype: str = "auto",
    block_size: int = 16,
    max_batched_tokens: int = 8192,
    watermark: float = 0.0,
) -> Plan:
    """
    Plan the KV cache of a model: what one request takes, and how many fit.

    Blocks and their groups follow vLLM; ranks count what the fullest of them holds.

    Parameters
    ----------
    model : Model
        What ``read_model`` returns.
    context : int, optional
        Tokens of a request, prompt and output; 32,768 or the model's maximum if it is not given.
    requests : int, optional
        How many requests are wanted at once.
    kv_memory : int, optional
        Bytes for the KV cache on each rank.
    gpu_memory : int, optional
        Bytes of each GPU, of which the utilization less weights and overhead is for the KV cache.
    utilization : float, optional
        The share of the GPU that the engine may use.
    weights : int, optional
        Bytes of all weights, which the ranks share; those in the model's folder if not given.
    overhead : int, optional
        Bytes on each GPU for activations and the rest.
    tp, pp : int, optional
        Ranks of tensor and of pipeline parallelism.
    kv_dtype : str, optional
        One of ``KV_DTYPES``, or ``auto``: what the checkpoint asks for, else 16 bits.
    block_size : int, optional
        Tokens of a block.
    max_batched_tokens : int, optional
        Tokens that the engine computes in a step; a sliding layer keeps them for the step.
    watermark : float, optional
        The share of blocks that the engine keeps free when it admits a request.

    Returns
    -------
    Plan
        Bytes of one request on the fullest rank and, with a memory, blocks, tokens and requests.

    Raises
    ------
    PlanError
        An argument is no size or does not fit the others.

    See Also
    --------
    read_model : The model, from its config.json.

    Examples
    --------
    >>> from kvformulas.plan import plan, read_model
    >>> model = read_model({"model_type": "qwen3", "num_hidden_layers": 32, "num_key_value_heads": 8, "head_dim": 128})
    >>> made = plan(model, context=32768, kv_memory=16 << 30)
    >>> made.next_token_bytes, made.stored_bytes, made.requests
    (131072, 4294967296, 4)
    """
    if context is None:
        context = min(DEFAULT_CONTEXT, model.max_context or DEFAULT_CONTEXT)
    _within("context", context, 1, CONTEXT_LIMIT)
    for name, value, least, most in (
        ("requests", requests, 1, BYTES_LIMIT),
        ("kv_memory", kv_memory, 0, BYTES_LIMIT),
        ("gpu_memory", gpu_memory, 1, BYTES_LIMIT),
        ("weights", weights, 0, BYTES_LIMIT),
        ("overhead", overhead, 0, BYTES_LIMIT),
        ("tp", tp, 1, 1 << 16),
        ("pp", pp, 1, model.n_layers),
        ("block_size", block_size, 1, 1 << 20),
        ("max_batched_tokens", max_batched_tokens, 1, CONTEXT_LIMIT),
    ):
        if value is not None:
            _within(name, value, least, most)
    if not 0 < utilization <= 1:
        raise PlanError(f"utilization must be above 0 and at most 1, not {utilization!r}")
    if not 0 <= watermark < 1:
        raise PlanError(f"watermark must be at least 0 and below 1, not {watermark!r}")
    dtype, notes = _kv_dtype(model, kv_dtype)
    caches = _Caches(model, dtype, tp)
    stages = list(_stages(model.n_layers, pp))
    layout = caches.layout(block_size)
    laid = [layout.stage(stage) for stage in stages]
    stage = max(stages, key=lambda stage: caches.stored(stage, context))
    stored = caches.stored(stage, context)
    own = max(laid, key=lambda one: one.request_bytes(context, max_batched_tokens))
    per_request = own.blocks_per_request(context, max_batched_tokens)
    figures: dict[str, Any] = {
        "next_token_bytes": _bytes(caches.stored(stage, context + 1)) - _bytes(stored),
        "fixed_bytes": _bytes(caches.fixed(stage)),
        "stored_bytes": _bytes(stored),
        "allocated_bytes": _bytes(own.request_bytes(context, max_batched_tokens)),
        "reserved_bytes": _bytes(caches.stored(stage, context, bounded=False)),
        "blocks_per_request": int(per_request),
        "block_bytes": _bytes(own.block_bytes),
    }
    memory = _kv_memory(model, kv_memory, gpu_memory, utilization, weights, overhead, tp * pp)
    if memory is not None:
        figures |= _inverse(laid, memory, context, max_batched_tokens, watermark)
    if requests is not None:
        wanted = _bytes(kv_cache_total_memory(figures["allocated_bytes"], requests))
        figures |= {"wanted_requests": requests, "wanted_bytes": wanted}
        if memory is not None:
            figures["fits"] = requests <= figures["requests"]
    warnings = []
    if model.max_context is not None and context > model.max_context:
        warnings.append(f"the context of {context:,} tokens is beyond the model's maximum of {model.max_context:,}")
    notes += [*_conventions(model, tp, pp), *own.notes]
    run = max((group.compress_ratio for group in model.groups), default=0)
    if run:
        added = _bytes(caches.stored(stage, context + run)) - _bytes(stored)
        notes.append(f"The next {run} tokens add {added:,} bytes, since compressed entries come in runs.")
    return Plan(
        model.model_type,
        tuple(caches.group_plans(stage, context)),
        context,
        dtype,
        block_size,
        max_batched_tokens,
        tp,
        pp,
        notes=(*model.notes, *notes),
        warnings=tuple(warnings),
        **figures,
    )


def _within(name: str, value: object, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise PlanError(f"{name} must be a whole number from {least:,} to {most:,}, not {value!r}")


def _bytes(value: float) -> int:
    """Return a count of bytes, which a double holds exactly up to 2**53."""
    if not value < BYTES_LIMIT:
        raise PlanError(f"the cache is too large to count: {value:.3g} bytes")
    return math.ceil(value)


def _kv_dtype(model: Model, kv_dtype: str) -> tuple[str, list[str]]:
    asked = kv_dtype.lower()
    if asked == "auto":
        if model.kv_dtype is not None:
            dtype = SAME_DTYPE.get(model.kv_dtype, model.kv_dtype)
            if dtype not in KV_DTYPES:
                raise PlanError(
                    f"kv_dtype must be given: the checkpoint asks for {model.kv_dtype!r}, which is not known"
                )
            return dtype, []
        dtype = SAME_DTYPE.get(model.dtype or "", "")
        if dtype in {"bf16", "fp16"}:
            return dtype, []
        if dtype == "fp32":
            return "bf16", ["The file says float32: engines serve that, and keep its cache, in 16 bits."]
        return "bf16", [f"The model's dtype is {model.dtype or 'not in the file'}: the cache is taken to have 16 bits."]
    dtype = SAME_DTYPE.get(asked, asked)
    if dtype not in KV_DTYPES:
        raise PlanError(f"kv_dtype must be auto or one of {', '.join(KV_DTYPES)}, not {kv_dtype!r}")
    if dtype == "fp8_ds_mla" and not any(group.kv_lora_rank for group in model.groups):
        raise PlanError("kv_dtype fp8_ds_mla is for latent attention, which this model has not")
    return dtype, []


def _stages(n_layers: int, pp: int) -> Iterator[range]:
    """Yield the layers of each pipeline stage: as equal as can be, the last stage and then the first ones shorter."""
    counts = [n_layers // pp] * pp
    for i in range(2, n_layers % pp + 2):
        counts[-i] += 1
    first = 0
    for count in counts:
        yield range(first, first + count)
        first += count


class _Caches:
    """The bytes of a model's groups at a dtype, on one of several tensor-parallel ranks."""

    def __init__(self, model: Model, dtype: str, tp: int) -> None:
        self.model, self.dtype, self.tp = model, dtype, tp
        self.ratio = min((group.compress_ratio for group in model.groups if group.compress_ratio), default=0)

    def _vector(self, dim: float, dtype: tuple[int, int, int]) -> float:
        return quantized_head_bytes(dim, *dtype) if dim else 0.0

    def entry(self, group: Group, n_layers: int = 1) -> float:
        """Return the bytes of one token (or of one compressed entry) in some layers of a group."""
        dtype = KV_DTYPES[self.dtype]
        if group.kv_lora_rank:
            if self.dtype == "fp8_ds_mla":
                latent = self._vector(group.kv_lora_rank, dtype)
                rotary = self._vector(group.qk_rope_head_dim, KV_DTYPES["bf16"])
            elif dtype[1] == 0 and dtype[2]:  # one scale for the whole vector
                latent, rotary = self._vector(group.kv_lora_rank + group.qk_rope_head_dim, dtype), 0.0
            else:
                latent, rotary = (self._vector(dim, dtype) for dim in (group.kv_lora_rank, group.qk_rope_head_dim))
            return mla_kv_bytes_per_token(n_layers, latent, rotary, 1)
        if group.index_head_dim:
            return attention_kv_bytes_per_token(n_layers, 1, self._vector(group.index_head_dim, INDEX_KEY), 0, 1)
        if group.kv_heads:
            heads = kv_heads_per_rank(group.kv_heads, self.tp)
            k_bytes, v_bytes = self._vector(group.k_head_dim, dtype), self._vector(group.v_head_dim, dtype)
            return attention_kv_bytes_per_token(n_layers, heads, k_bytes, v_bytes, 1)
        return 0.0

    def state(self, group: Group, n_layers: int = 1) -> float:
        """Return the fixed bytes of a request in some layers of a group."""
        total = 0.0
        for state in group.states:
            heads = kv_heads_per_rank(state.heads, self.tp)
            total += recurrent_state_bytes(n_layers, heads, state.head_dim, state.state_size, STATE_BYTES[state.dtype])
        for conv in group.convs:
            for heads, dim in conv.parts:
                channels = kv_cache_total_memory(kv_heads_per_rank(heads, self.tp), dim)
                total += conv_state_bytes(n_layers, channels, conv.columns, CONV_BYTES)
        return total

    def kept(self, group: Group, context: int, bounded: bool = True) -> float:
        """Return how many entries a group keeps of a context."""
        if group.compress_ratio:  # an entry for each whole run of tokens
            return max(paged_attention_block_count(context - group.compress_ratio + 1, group.compress_ratio), 0.0)
        if group.window and bounded:
            return sliding_window_tokens(context, group.window)
        return float(context)

    def in_stage(self, stage: range) -> Iterator[tuple[Group, int]]:
        """Yield each group with the number of its layers in a stage."""
        for group in self.model.groups:
            yield group, sum(layer in stage for layer in group.layers)

    def fixed(self, stage: range) -> float:
        """Return the fixed bytes of a request."""
        return sum(self.state(group, n_layers) for group, n_layers in self.in_stage(stage))

    def stored(self, stage: range, context: int, bounded: bool = True) -> float:
        """Return all bytes of a request; with no bounds, as if every layer kept every token."""
        return self.fixed(stage) + sum(
            kv_cache_total_memory(self.entry(group, n_layers), self.kept(group, context, bounded))
            for group, n_layers in self.in_stage(stage)
            if n_layers
        )

    def group_plans(self, stage: range, context: int) -> Iterator[GroupPlan]:
        """Yield each group's figures."""
        for group, n_layers in self.in_stage(stage):
            entry, state = (self.entry(group, n_layers), self.state(group, n_layers)) if n_layers else (0.0, 0.0)
            kept = kv_cache_total_memory(entry, self.kept(group, context))
            yield GroupPlan(group, n_layers, _bytes(entry), _bytes(state), _bytes(state + kept))

    def layout(self, block_size: int) -> Layout:
        """Lay the caches out in blocks."""
        caches: list[tuple[int, Spec]] = []
        for group in self.model.groups:
            slots = {"sliding": "sliding", "chunked": "chunked", "recurrent": "state"}.get(group.kind, "full")
            page = self.state(group) if slots == "state" else self.entry(group)
            if group.compress_ratio:
                page /= group.compress_ratio  # a block of tokens holds that many entries less; a power of two
            if page:
                caches += [(layer, Spec(slots, page, window=group.window)) for layer in group.layers]
        return lay_out(sorted(caches, key=lambda cache: cache[0]), block_size=block_size, smallest_ratio=self.ratio)


def _kv_memory(
    model: Model,
    kv_memory: int | None,
    gpu_memory: int | None,
    utilization: float,
    weights: int | None,
    overhead: int,
    ranks: int,
) -> int | None:
    """Return the bytes for the KV cache on a rank, given or as vLLM finds them; None if no memory is given."""
    if gpu_memory is None:
        for name, value in (("weights", weights), ("overhead", overhead)):
            if value:
                raise PlanError(f"{name} must be given with gpu_memory, and there is none")
        return kv_memory
    if kv_memory is not None:
        raise PlanError("kv_memory and gpu_memory must not be given both")
    if weights is None and model.folder is not None:
        weights = weight_bytes(model.folder)
    if weights is None:
        raise PlanError("weights must be given with gpu_memory: there is no *.safetensors beside the config.json")
    usable = watermark_reserved_blocks(gpu_memory, utilization)  # the share of a total, without its fraction
    memory = int(usable) - int(paged_attention_block_count(weights, ranks)) - overhead
    if memory < 0:
        raise PlanError(
            f"gpu_memory is too small: of {gpu_memory:,} bytes {int(usable):,} are usable, and weights and overhead "
            f"take {int(usable) - memory:,} on each rank"
        )
    return memory


def _inverse(
    laid: Sequence[Layout], memory: int, context: int, max_batched_tokens: int, watermark: float
) -> dict[str, Any]:
    """Return what a memory holds: whole blocks, so whole requests. The stage that holds the fewest decides."""
    largest = max((layout.block_bytes for layout in laid), default=0.0)
    if largest == 0:
        raise PlanError("the model keeps no cache, so no memory limits its requests")
    blocks = int(max_concurrency(memory, largest))
    per_request = max(layout.blocks_per_request(context, max_batched_tokens) for layout in laid)
    reserved = int(watermark_reserved_blocks(blocks, watermark))
    concurrency = max_concurrency(blocks - reserved, per_request)
    pools = max(len(layout.pools) for layout in laid)
    block_tokens = min((layout.block_tokens for layout in laid if layout.block_tokens), default=0)
    if pools == 1 and block_tokens:
        tokens = int(kv_cache_total_memory(blocks, block_tokens))
    else:  # as vLLM logs it: requests at this context, in tokens
        tokens = int(kv_cache_total_memory(max_concurrency(blocks, per_request), context))
    return {
        "kv_memory_bytes": memory,
        "blocks": blocks,
        "watermark_blocks": reserved,
        "tokens": tokens,
        "requests": int(concurrency),
        "concurrency": concurrency,
    }


def _conventions(model: Model, tp: int, pp: int) -> list[str]:
    """Say what "stored" means where engines and transformers differ."""
    kinds = {group.kind for group in model.groups}
    notes = []
    if kinds & {"sliding", "chunked"}:
        notes.append("A window or chunk of W keeps min(T, W) tokens, as in engines (transformers keeps W - 1).")
    if any(group.kv_lora_rank for group in model.groups):
        notes.append("Latent attention keeps kv_lora_rank + qk_rope_head_dim elements a token, as in engines.")
    if "index" in kinds:
        notes.append("An index key is its head_dim in fp8 and a 4-byte scale, as in engines (transformers: bf16).")
    if "compressed" in kinds:
        notes.append(
            "A compressed layer adds an entry when a run of tokens is complete; the tokens that wait in its compressor "
            "are not counted. Keys are also the values."
        )
    if any(group.convs for group in model.groups):
        notes.append("A convolution keeps K - 1 columns in the model's dtype, as in engines (transformers keeps K).")
    if any(group.states for group in model.groups):
        dtypes = {state.dtype for group in model.groups for state in group.states}
        notes.append(f"Recurrent states are {', '.join(sorted(dtypes))}.")
    if "shared" in kinds:
        notes.append("Layers that use another layer's cache keep none of their own.")
    notes.append("Allocated: vLLM's rule (whole blocks, one size for all groups; kv_cache_utils.py).")
    if tp > 1:
        notes.append(f"Of {tp} tensor-parallel ranks each holds its KV heads, at least one; latents are on every rank.")
    if pp > 1:
        notes.append(f"Of {pp} pipeline stages the fullest is counted; weights are taken as divided evenly.")
    return notes
