"""From a config's fields to layer groups: what the layers of each kind keep."""

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from kvformulas._config import Config, short
from kvformulas._layer_kinds import (
    CHUNKED,
    CONV,
    CROSS,
    CSA,
    FULL,
    HCA,
    HYBRID,
    HYBRID_SLIDING,
    INDEXED,
    LINEAR,
    NONE,
    SLIDING,
    LayerKinds,
)

STATE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


@dataclass(frozen=True, slots=True)
class State:
    """
    What a recurrent layer keeps for a request.

    Parameters
    ----------
    heads, head_dim, state_size : int
        Their product is the number of elements; ranks share the heads.
    dtype : str
        That of the elements.
    """

    heads: int
    head_dim: int
    state_size: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Conv:
    """
    The last inputs of a causal convolution.

    Parameters
    ----------
    parts : tuple of (int, int)
        Channels, as heads that ranks share and their width.
    columns : int
        Inputs kept of each channel.
    """

    parts: tuple[tuple[int, int], ...]
    columns: int


@dataclass(frozen=True, slots=True)
class Group:
    """
    Layers that keep the same thing.

    A layer that keeps two things is in two groups. Dimensions that a kind does not have are 0.

    Parameters
    ----------
    kind : str
        ``full``, ``sliding``, ``chunked``, ``mla`` (latent), ``compressed`` (an entry every ``compress_ratio`` tokens),
        ``index`` (a sparse-attention indexer's keys), ``recurrent`` (fixed bytes a request), ``none`` or ``shared``
        (uses the cache of one of the layers in ``shares``).
    layers : tuple of int
        The layers' numbers, from 0.
    kv_heads, k_head_dim, v_head_dim : int
        KV heads, and the dimensions of a head's key and value; a value of 0 is its key.
    window : int
        Tokens of the window or chunk.
    kv_lora_rank, qk_rope_head_dim : int
        The latent of a token, and its rotary part.
    index_head_dim : int
        Dimensions of an index key.
    compress_ratio : int
        Tokens of an entry.
    states : tuple of State
        What a recurrent layer keeps.
    convs : tuple of Conv
        What convolutions keep.
    shares : tuple of int
        The layers whose caches are shared.
    """

    kind: str
    layers: tuple[int, ...]
    kv_heads: int = 0
    k_head_dim: int = 0
    v_head_dim: int = 0
    window: int = 0
    kv_lora_rank: int = 0
    qk_rope_head_dim: int = 0
    index_head_dim: int = 0
    compress_ratio: int = 0
    states: tuple[State, ...] = ()
    convs: tuple[Conv, ...] = ()
    shares: tuple[int, ...] = ()

    @property
    def n_layers(self) -> int:
        """How many layers the group has."""
        return len(self.layers)

    def to_dict(self) -> dict[str, Any]:
        """Return the kind, the number of layers and the dimensions that the kind has."""
        own = {name: value for name, value in asdict(self).items() if value and name not in {"kind", "layers"}}
        if self.kind == "chunked":
            own["chunk"] = own.pop("window")
        if self.kv_heads:
            own["v_head_dim"] = self.v_head_dim
        return {"kind": self.kind, "n_layers": self.n_layers, **own, "layers": list(self.layers)}


def layer_groups(config: Config) -> tuple[Group, ...]:
    """Return the groups of a decoder's layers, in the order of their first layers."""
    return _Reader(config).groups()


class _Reader(LayerKinds):
    def groups(self) -> tuple[Group, ...]:
        found: dict[Group, list[int]] = {}
        self.kept = tuple(sorted(set(self.shares.values())))
        for layer, kind in enumerate(self.kinds):
            for item in self._layer(layer, kind):
                found.setdefault(item, []).append(layer)
        if self.by_fields_alone:
            self.config.refuse_unread(self.n_layers)
        repeats = self.config.defaults.get("attentions_per_layer", 1)
        if repeats > 1:
            self.config.notes.append(f"Each of the {self.n_layers} layers has {repeats} attentions, counted as layers.")
            self.n_layers *= repeats
        groups = [
            Group(**{f.name: getattr(item, f.name) for f in fields(Group)} | {"layers": tuple(
                repeats * layer + i for layer in layers for i in range(repeats))})
            for item, layers in found.items()
        ]  # fmt: skip
        if self.config.n_predict:
            self.config.notes.append(
                f"Layers of multi-token prediction ({self.config.n_predict}) are left out: engines keep their cache "
                "only when they speculate."
            )
        return tuple(groups)

    # What a layer keeps

    def _layer(self, layer: int, kind: str) -> list[Group]:
        if kind == NONE:
            return [Group("none", ())]
        if kind == CROSS:
            note = "Cross-attention layers keep the keys and values of the image, not of the text: not counted."
            if note not in self.config.notes:
                self.config.notes.append(note)
            return [Group("none", ())]
        items: list[Group] = []
        if kind in (HYBRID, HYBRID_SLIDING) and self.config.family.startswith("inkling"):
            items.append(self._input_convs(layer, kind == HYBRID_SLIDING))
        elif kind in (LINEAR, HYBRID, HYBRID_SLIDING):
            items.append(self._recurrent)
        if kind == CONV:
            items.append(self._short_conv())
        if self.one_vector or kind in (CSA, HCA):
            return self._compressed(kind)
        if kind not in (LINEAR, CONV):
            sliding = kind in (SLIDING, HYBRID_SLIDING)
            if layer in self.shares:
                items.append(Group("shared", (), shares=self.kept))
            else:
                items.append(self._attention(layer, kind, sliding))
            if not sliding and self._holds_index(layer, kind):
                items.append(Group("index", (), index_head_dim=self._index_dim() or 0))
        return items

    def _field(self, layer: int, name: str, sliding: bool) -> Any:
        """Return a field as it is for one layer: its own, its kind's, or every layer's."""
        config = self.config
        if self.own.get(layer, {}).get(name) is not None:
            return self.own[layer][name]
        if sliding:
            value = config.get(f"swa_{name}")
            if value is not None:
                return value
            other = config.raw("attention_other_setting")
            if isinstance(other, dict) and other.get("attention_type") in (None, "sliding_attention"):
                for own_name in (name, "num_attention_groups" if name == "num_key_value_heads" else name):
                    if other.get(own_name) is not None:
                        return other[own_name]
        value = config.get(name)
        if isinstance(value, list):
            value = config.listed(name, value, self.n_layers)[layer]
        return value

    def _dim(self, layer: int, name: str, sliding: bool) -> int | None:
        """Return a whole number for one layer; None if absent, null or 0 (which files use for none)."""
        value = self._field(layer, name, sliding)
        return None if value is None else self.config.checked(name, value, least=0) or None

    def _attention(self, layer: int, kind: str, sliding: bool) -> Group:
        config = self.config
        name, window = FULL, 0
        if sliding:
            name, window = SLIDING, self._layer_window(layer)
        elif kind == CHUNKED:
            name, window = CHUNKED, config.whole("attention_chunk_size")
        rank = self._dim(layer, "kv_lora_rank", sliding)
        if rank is not None and config.flag("use_mla") is not False:
            rope = self._field(layer, "qk_rope_head_dim", sliding)
            if rope is None:
                config.missing("qk_rope_head_dim", "kv_lora_rank is given")
            rope = config.checked("qk_rope_head_dim", rope, least=0) if self._rotates(layer) else 0
            return Group("mla" if name == FULL else name, (), window=window, kv_lora_rank=rank, qk_rope_head_dim=rope)
        latent = next(
            (name for name in ("q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim") if config.raw(name)), None
        )
        if latent and config.flag("use_mla") is not False:
            config.missing("kv_lora_rank", f"{latent} is given")
        heads = self._kv_heads(layer, sliding)
        k_dim = self._head_dim(layer, sliding)
        v_dim = self._dim(layer, "v_head_dim", sliding) or k_dim
        return Group(name, (), kv_heads=heads, k_head_dim=k_dim, v_head_dim=v_dim, window=window)

    def _rotates(self, layer: int) -> bool:
        """Whether a latent layer has a rotary part (Mistral Large 4 has none in every fourth layer)."""
        config = self.config
        if config.raw("no_rope_layers"):
            return bool(config.listed("no_rope_layers", config.raw("no_rope_layers"), self.n_layers)[layer])
        if config.family.startswith("mistral_large4"):
            return (layer + 1) % config.whole("no_rope_layer_interval", absent=4) != 0
        return True

    def _layer_window(self, layer: int) -> int:
        blocks = self.config.raw("block_configs")
        if blocks is not None:
            return self.config.checked("window_length", blocks[layer]["attention"].get("window_length"))
        if self.own.get(layer, {}).get("sliding_window"):
            return self.config.checked("sliding_window", self.own[layer]["sliding_window"])
        window = self._window()
        if window is None:
            self.config.missing("sliding_window", "layers slide")
        return window

    def _kv_heads(self, layer: int, sliding: bool) -> int:
        config = self.config
        blocks = config.raw("block_configs")
        if blocks is not None:
            attention = blocks[layer]["attention"]
            if attention.get("num_key_value_heads") is not None:
                return config.checked("num_key_value_heads", attention["num_key_value_heads"])
            if attention.get("n_heads_in_group") is None:
                config.refuse(f"block_configs[{layer}].attention.n_heads_in_group is missing")
            return self._quotient("num_attention_heads", attention["n_heads_in_group"], "n_heads_in_group")
        if not sliding and config.get("global_head_dim") is not None:
            own = config.get("num_global_key_value_heads")
            if own is not None and config.get("attention_k_eq_v") is not False:
                return config.checked("num_global_key_value_heads", own)
        attention = config.raw("attn_config")
        if isinstance(attention, dict):
            if attention.get("kv_n_heads") is not None:
                return config.checked("attn_config.kv_n_heads", attention["kv_n_heads"])
            kind = attention.get("attn_type", "multihead_attention")
            if kind == "multiquery_attention":
                return 1
            if kind != "multihead_attention":
                config.refuse(f"attn_config.kv_n_heads is missing (attn_type is {kind!r})")
            return config.whole("num_attention_heads")
        if config.flag("multi_query") and not config.flag("new_decoder_architecture") and not config.raw("n_head_kv"):
            return 1
        if config.raw("attention_head_type") == "multiquery":
            return 1
        if config.flag("multi_query_attention") is False:
            return config.whole("num_attention_heads")
        if sliding and config.family.startswith("mimo_v2") and not config.has("swa_num_key_value_heads"):
            config.missing("swa_num_key_value_heads", "sliding layers have other KV heads")
        value = self._field(layer, "num_key_value_heads", sliding)
        if value is None:
            if config.says("num_key_value_heads") or not self._has_default("num_key_value_heads"):
                if not config.says("num_key_value_heads") and not config.known:
                    value = config.from_class("num_key_value_heads")
                    if value is None:
                        config.missing("num_key_value_heads")
                    return config.checked("num_key_value_heads", value)
                return config.whole("num_attention_heads")
            config.missing("num_key_value_heads")
        return config.checked("num_key_value_heads", value)

    def _has_default(self, field: str) -> bool:
        """Whether the family's class has a number for a field; a null stands for as many as query heads."""
        return any(self.config.defaults.get(name) is not None for name in (field, "num_kv_heads"))

    def _head_dim(self, layer: int, sliding: bool) -> int:
        config = self.config
        if not sliding and config.get("global_head_dim") is not None:
            return config.whole("global_head_dim")
        value = self._field(layer, "head_dim", sliding)
        if value is not None:
            return config.checked("head_dim", value)
        if not config.known and not config.says("head_dim"):
            asked = config.from_class("head_dim")
            if asked is None:
                config.missing("head_dim", "often, but not always, hidden_size / num_attention_heads")
            return config.checked("head_dim", asked)
        if config.family in (
            "zamba",
            "zamba2",
        ):  # whose attention reads the input of the model beside that of the layer
            width = config.whole("attention_hidden_size", absent=0, least=0) or 2 * config.whole("hidden_size")
            return self._quotient(
                "attention_hidden_size", config.whole("num_attention_heads"), "num_attention_heads", width
            )
        return self._quotient("hidden_size", config.whole("num_attention_heads"), "num_attention_heads")

    def _quotient(self, field: str, divisor: object, name: str, value: int = 0) -> int:
        value, by = value or self.config.whole(field), self.config.checked(name, divisor)
        if value % by:
            self.config.refuse(f"{field} must be a multiple of {name} {by}, not {value}")
        return value // by

    # Index keys, compressed entries

    def _holds_index(self, layer: int, kind: str) -> bool:
        config = self.config
        if config.flag("use_dsa") is False:
            return False
        if self._index_dim() is None:
            if config.raw("index_topk") is not None:
                config.missing("index_head_dim", "index_topk is given")
            return False
        latent = config.get("kv_lora_rank") is not None
        if kind != INDEXED and (
            INDEXED in self.kinds or not (latent or (self.by_fields_alone and config.raw("index_head_dim")))
        ):
            return False
        sparse = config.raw("sparse_attention_config")
        if isinstance(sparse, dict):
            values = sparse.get("sparse_disable_index_value", [1] * self.n_layers)
            if not config.listed("sparse_disable_index_value", values, self.n_layers)[layer]:
                config.refuse("sparse_disable_index_value is 0 for a sparse layer: what index values keep is not known")
            return True
        types = config.raw("indexer_types")
        if types is not None:
            entries = config.listed("indexer_types", types, self.n_layers)
        elif config.raw("index_topk_pattern") is not None:
            pattern = config.listed("index_topk_pattern", config.raw("index_topk_pattern"), self.n_layers)
            entries = [{"F": "full", "S": "shared"}.get(entry, entry) for entry in pattern]
        elif config.family.startswith("hy_v4"):
            config.missing("indexer_types")
        else:
            every = max(config.whole("index_topk_freq", absent=1, least=0), 1)
            offset = config.whole("index_skip_topk_offset", absent=2, least=0)
            return max(layer - offset + 1, 0) % every == 0
        if entries[layer] not in ("full", "shared"):
            config.refuse(f"indexer_types must be full or shared, not {entries[layer]!r}")
        return bool(entries[layer] == "full")

    def _compressed(self, kind: str) -> list[Group]:
        config = self.config
        if kind not in (SLIDING, CSA, HCA):
            config.refuse(f"layers of kind {kind} beside compressed ones are not read")
        dim = config.whole("head_dim")
        window = self._window()
        if window is None:
            config.missing("sliding_window", "every layer slides")
        items = [Group("sliding", (), kv_heads=1, k_head_dim=dim, window=window)]
        if kind == SLIDING:
            return items
        rates = config.raw("compress_rates") or {}
        ratio = config.checked(f"compress_rates.{kind}", rates.get(kind, {CSA: 4, HCA: 128}[kind]))
        items.append(Group("compressed", (), kv_heads=1, k_head_dim=dim, compress_ratio=ratio))
        if kind == CSA:
            index = config.whole("index_head_dim")
            items.append(Group("index", (), index_head_dim=index, compress_ratio=ratio))
        return items

    # Recurrent states

    @cached_property
    def _recurrent(self) -> Group:
        """What every recurrent layer keeps."""
        config = self.config
        state_dtype = self._state_dtype("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
        states: tuple[State, ...]
        convs: tuple[Conv, ...] = ()
        linear = config.raw("linear_attn_config")
        if isinstance(linear, dict) or config.has("linear_num_heads") or config.has("short_conv_kernel_size"):
            heads, dim, width = self._delta_attention(linear if isinstance(linear, dict) else {})
            states = (State(heads, dim, dim, state_dtype),)
            convs = (Conv(((heads, dim),) * 3, width - 1),)
        elif config.has("linear_num_value_heads"):
            values, keys = config.whole("linear_num_value_heads"), config.whole("linear_num_key_heads")
            v_dim, k_dim = config.whole("linear_value_head_dim"), config.whole("linear_key_head_dim")
            states = (State(values, v_dim, k_dim, state_dtype),)
            parts = ((keys, k_dim), (keys, k_dim), (values, v_dim))
            convs = (Conv(parts, config.whole("linear_conv_kernel_dim") - 1),)
        elif config.has("conv1d_width"):
            width = config.whole("lru_width", absent=0, least=0) or config.whole("hidden_size")
            states = (State(width, 1, 1, state_dtype),)
            convs = (Conv(((width, 1),), config.whole("conv1d_width") - 1),)
        elif config.has("cca_time0"):  # ZAYA's convolutions of queries and keys, and half of the last token's values
            width, dim = config.whole("cca_time0") + config.whole("cca_time1"), self._head_dim(0, sliding=False)
            kv_heads = self._kv_heads(0, sliding=False)
            mixed = Conv(((config.whole("num_attention_heads"), dim), (kv_heads, dim)), width - 2)
            states, convs = (), (mixed, Conv(((kv_heads, dim // 2),), 1))
        elif config.family == "rwkv":
            width = config.whole("attention_hidden_size", absent=0, least=0) or config.whole("hidden_size")
            states = (State(width, 1, 3, "float32"),)  # numerator, denominator and maximum of each channel
            convs = (Conv(((config.whole("hidden_size"), 1),) * 2, 1),)  # the last token, for both halves
        elif config.family == "xlstm":
            states = self._matrix_memory(self._state_dtype("inference_state_dtype"))
        elif config.defaults.get("lightning"):
            heads = config.whole("num_attention_heads")
            dim = self._head_dim(0, sliding=False)
            states = (State(heads, dim, dim, state_dtype),)
        else:
            states, convs = self._mamba(state_dtype)
        return Group("recurrent", (), states=states, convs=convs)

    def _state_dtype(self, *names: str) -> str:
        """Return the dtype that the file has for recurrent states, or float32."""
        name = next((name for name in names if self.config.raw(name) is not None), None)
        if name is None:
            return "float32"
        dtype = str(self.config.raw(name)).removeprefix("torch.")
        if dtype not in STATE_BYTES:
            self.config.refuse(f"{name} must be one of {', '.join(STATE_BYTES)}, not {short(self.config.raw(name))}")
        return dtype

    def _matrix_memory(self, dtype: str) -> tuple[State, ...]:
        """Return xLSTM's states: a matrix, a normaliser and a maximum for each head."""
        config = self.config
        heads, width = config.whole("num_heads"), config.whole("hidden_size")
        dims = []
        for field in ("qk_dim_factor", "v_dim_factor"):
            factor = config.get(field)
            if not isinstance(factor, int | float) or isinstance(factor, bool):
                config.missing(field)
            dims.append(-(-int(width * factor) // 64) * 64 // heads)
        return State(heads, dims[0], dims[1], dtype), State(heads, dims[0], 1, dtype), State(heads, 1, 1, dtype)

    def _delta_attention(self, linear: dict[str, Any]) -> tuple[int, int, int]:
        """Return heads, head_dim and kernel width of a delta attention whose queries, keys and values are alike."""
        config = self.config

        def own(name: str, *fields: str) -> int:
            if linear.get(name) is not None:
                return config.checked(f"linear_attn_config.{name}", linear[name])
            field = next((field for field in fields if config.get(field) is not None), fields[0])
            return config.whole(field)

        return (
            own("num_heads", "linear_num_heads", "num_attention_heads"),
            own("head_dim", "linear_head_dim", "head_dim"),
            own("short_conv_kernel_size", "linear_conv_kernel_dim", "short_conv_kernel_size"),
        )

    def _either(self, *names: str) -> tuple[str, Any]:
        """Return the first of several fields that the file, or else the class, has; the one that is missing if none."""
        for name in names:
            if self.config.raw(name) is not None:
                return name, self.config.raw(name)
        name = next((name for name in names if self.config.defaults.get(name) is not None), names[0])
        return name, self.config.get(name)

    def _number(self, *names: str) -> int:
        name, value = self._either(*names)
        if value is None:
            self.config.missing(name, "a layer is recurrent")
        return self.config.checked(name, value)

    def _mamba(self, state_dtype: str) -> tuple[tuple[State, ...], tuple[Conv, ...]]:
        config = self.config
        size = self._number("ssm_state_size", "mamba_d_state", "state_size", "d_state")
        width = self._number("conv_kernel", "mamba_d_conv", "d_conv", "conv_kernel_size")
        head_name, head_count = self._either("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
        group_name, group_count = self._either("n_groups", "mamba_n_groups", "mamba_ngroups")
        if head_count is None and (group_count is not None or config.defaults.get(head_name)):
            config.missing(head_name, "a layer is recurrent")
        if head_count is None or (head_name == "n_mamba_heads" and group_count is None):  # Mamba-1: no groups
            inner = int(self._number("mamba_expand", "expand") * config.whole("hidden_size"))
            return (State(inner, 1, size, state_dtype),), (Conv(((inner, 1),), width - 1),)
        heads = config.checked(head_name, head_count)
        if group_count is None:
            config.missing(group_name, "a layer is recurrent")
        groups = config.checked(group_name, group_count)
        _, dim = self._either("mamba_head_dim", "mamba_d_head", "mamba_headdim")
        if dim is None and head_name == "num_heads":
            dim = config.get("head_dim")
        if dim is None or dim == "auto":
            inner = config.whole("mamba_d_ssm", absent=0, least=0)
            inner = inner or self._number("mamba_expand", "expand") * config.whole("hidden_size")
            if inner % heads:
                config.refuse(f"mamba_d_head is missing, and {inner} channels are no multiple of {head_name} {heads}")
            dim = inner // heads
        dim = config.checked("mamba_head_dim", dim)
        parts = ((heads, dim), (groups, size), (groups, size))
        return (State(heads, dim, size, state_dtype),), (Conv(parts, width - 1),)

    def _input_convs(self, layer: int, sliding: bool) -> Group:
        """Return Inkling's convolutions: of keys, of values, and of the inputs of both halves of a layer."""
        attention = self._attention(layer, FULL, sliding)
        hidden = self.config.whole("hidden_size")
        parts = (
            (attention.kv_heads, attention.k_head_dim),
            (attention.kv_heads, attention.v_head_dim),
            (1, 2 * hidden),
        )
        columns = self._number("sconv_kernel_size", "conv_kernel_size") - 1
        return Group("recurrent", (), convs=(Conv(parts, columns),))

    def _short_conv(self) -> Group:
        config = self.config
        channels = config.whole("conv_dim", absent=0, least=0) or config.whole("hidden_size")
        return Group("recurrent", (), convs=(Conv(((channels, 1),), config.whole("conv_L_cache") - 1),))
