"""Which kind each layer of a decoder is, and which layers share a cache, read from structure and not from names.

A field may be there and mean nothing: a list with an entry a layer decides before a pattern, a pattern before a rule,
and a rule before a single field. Whatever is left open is refused by the name of the field that would decide it.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from kvformulas._config import Config, short

FULL, SLIDING, CHUNKED, LINEAR, CONV, NONE = "full", "sliding", "chunked", "linear", "conv", "none"
HYBRID, HYBRID_SLIDING, INDEXED, CROSS = "hybrid", "hybrid_sliding", "indexed", "cross"
CSA, HCA = "compressed_sparse_attention", "heavily_compressed_attention"
LABELS = {
    **dict.fromkeys(("full_attention", "attention", "full", "global", "global_attention", "softmax_attention"), FULL),
    **dict.fromkeys(("sliding_attention", "sliding_window", "sliding", "local", "local_attention", "swa"), SLIDING),
    "chunked_attention": CHUNKED,
    **dict.fromkeys(
        ("linear_attention", "mamba", "mamba2", "recurrent", "kda", "gdn", "gated_deltanet", "lightning_attention"),
        LINEAR,
    ),
    **dict.fromkeys(("conv", "short_conv"), CONV),
    **dict.fromkeys(("mlp", "moe", "ffn", "no_op"), NONE),
    "hybrid": HYBRID,
    "hybrid_sliding": HYBRID_SLIDING,
    **dict.fromkeys(("indexed_attention", "deepseek_sparse_attention", "minimax_m3_sparse"), INDEXED),
    CSA: CSA,
    HCA: HCA,
}
LETTERS = {"M": LINEAR, "*": FULL, "-": NONE, "E": NONE}
# Each is a way of keeping more or other things than its fields say; none is guessed at.
NOT_READ = {
    "n_recurrent_loops": "layers that run more than once keep a cache a run",
    "total_ut_steps": "layers that run more than once keep a cache a run",
    "loop_num_passes": "layers that run more than once keep a cache a run",
    "loop_config": "layers that run more than once keep a cache a run",
    "num_layers_per_stack": "layers that run more than once keep a cache a run",
    "index_kpool": "what a pooled index cache keeps is not known",
    "indexer_compress_ratio": "what a compressed index cache keeps is not known",
    "kv_reuse_group": "its layers share keys and values in groups of their own",
    "n_shared_head": "its KV heads are shared by a rule of its own",
    "attn_mode": "the linear attentions of flash-linear-attention say too little of their states",
    "decay_low_rank_dim": "the states of RWKV-7 are not known",
    "head_size_divisor": "the states of RWKV-5 and RWKV-6 are not known",
    "mb_per_layer": "its decoder shares the keys and values of one layer",
    "ssm_cfg": "the original Mamba files say too little; use the ones converted for transformers",
}
RECURRENT_FIELDS = (
    "linear_attn_config", "linear_num_value_heads", "linear_num_heads", "mamba_d_state", "ssm_state_size", "lru_width",
    "conv_L_cache", "attn_layer_indices", "state_size",
)  # fmt: skip


class LayerKinds:
    """The kind of every layer of a config's decoder (``kinds``), and whose cache it uses (``shares``)."""

    def __init__(self, config: Config) -> None:
        self.config = config
        architectures = config.top.get("architectures")
        architectures = architectures if isinstance(architectures, list) else []
        if config.top.get("is_encoder_decoder") is True or config.get("is_encoder_decoder") is True:
            config.refuse("is_encoder_decoder is true: only models with a decoder alone are planned")
        if any(str(name).endswith(("ForMaskedLM", "CLIPModel", "ForTokenClassification")) for name in architectures):
            config.refuse(f"architectures is {architectures}: an encoder keeps no KV cache")
        for field, why in NOT_READ.items():
            if config.raw(field) not in (None, 1, 0, []):
                config.refuse(f"{field} = {short(config.raw(field))}: {why}")
        self.n_layers = self._n_layers()
        self.explicit = True  # the file names the layers' kinds itself
        self.by_fields_alone = False  # nothing says that the layers are alike but that nothing says otherwise
        # DeepSeek-V4 keeps one vector a token that is both key and value.
        self.one_vector = config.raw("compress_ratios") is not None or config.raw("compress_rates") is not None
        self.own = self._own_fields()
        self.kinds = self._kinds()
        self.shares = self._shares()

    def _n_layers(self) -> int:
        config = self.config
        value = config.get("num_hidden_layers")
        if value is None:
            for field in ("layers_block_type", "hybrid_override_pattern", "layer_types", "block_configs"):
                if isinstance(config.raw(field), list | str):
                    value = len(config.raw(field))
                    break
        if value is None:
            config.missing("num_hidden_layers")
        return config.checked("num_hidden_layers", value)

    def _own_fields(self) -> dict[int, dict[str, Any]]:
        """Return the fields that single layers have of their own: per_layer_config, by the layer's number."""
        config = self.config
        per_layer = config.raw("per_layer_config") or {}
        try:
            return {int(layer): dict(own) for layer, own in per_layer.items()}
        except (AttributeError, TypeError, ValueError):
            config.refuse("per_layer_config must be an object of objects, by the number of the layer")

    def _window(self) -> int | None:
        """Return the sliding window, or None where there is none or it is switched off."""
        config = self.config
        if config.flag("use_sliding_window") is False or config.flag("swa") is False:
            return None
        value = config.get("sliding_window")
        if value is None and config.get("local_attention") is not None:
            value = config.whole("local_attention") // 2
        if value is None and config.raw("attention_types") is not None:
            value = config.get("window_size")
        if isinstance(value, list):
            config.refuse("sliding_window must be one number for all sliding layers, not a list")
        if value is None or (type(value) is int and value in (0, -1)):
            return None
        return config.checked("sliding_window", value)

    def _kinds(self) -> list[str]:
        kinds = self._named_kinds() or self._ruled_kinds()
        window = self._window()
        if window is None and self.config.raw("block_configs") is None:  # whose windows are in the blocks
            off = {SLIDING: FULL, HYBRID_SLIDING: HYBRID}
            if any(kind in off for kind in kinds):
                switched = self.config.flag("use_sliding_window") is False or self.config.says("sliding_window")
                if self.explicit and not switched:
                    self.config.missing("sliding_window", "layers slide")
                if self.explicit and self.config.flag("use_sliding_window") is not False:
                    self.config.refuse("sliding_window must be a number, since layers slide")
                kinds = [off.get(kind, kind) for kind in kinds]
                self.config.notes.append("The sliding window is switched off: every layer keeps every token.")
        elif (
            window is not None
            and not any(kind in (SLIDING, HYBRID_SLIDING, CSA, HCA) for kind in kinds)
            and self.config.raw("sliding_window")
        ):
            self.config.notes.append(f"sliding_window = {window} is there, but no layer uses it.")
        return kinds

    def _named_kinds(self) -> list[str] | None:
        """Return the kinds where the file has a list or pattern with an entry for each layer."""
        config, n = self.config, self.n_layers
        if config.raw("block_configs") is not None:
            blocks = config.listed("block_configs", config.raw("block_configs"), n)
            return [self._block_kind(i, block) for i, block in enumerate(blocks)]
        if config.raw("compress_ratios") is not None:
            ratios = config.listed("compress_ratios", config.raw("compress_ratios"), n)
            kinds = {0: SLIDING, 1: SLIDING, 4: CSA, 128: HCA}
            for ratio in ratios:
                if type(ratio) is not int or ratio not in kinds:
                    config.refuse(f"compress_ratios must be 0, 4 or 128, not {short(ratio)}")
            return [kinds[ratio] for ratio in ratios]
        for field in ("layers_block_type", "layer_types", "layer_type_list", "attention_layers"):
            if config.raw(field) is not None:
                return self._labels(field, config.listed(field, config.raw(field), n))
        pattern = config.raw("hybrid_override_pattern")
        if pattern is not None:
            letters = config.listed("hybrid_override_pattern", pattern, n)
            if any(letter not in LETTERS for letter in letters):
                config.refuse(f"hybrid_override_pattern must be of the letters {' '.join(LETTERS)}, not {pattern!r}")
            return [LETTERS[letter] for letter in letters]
        for field, kinds in (
            ("hybrid_layer_pattern", {0: FULL, 1: SLIDING}),
            ("attn_type_list", {0: LINEAR, 1: FULL}),
        ):
            if config.raw(field) is not None:
                entries = config.listed(field, config.raw(field), n)
                if any(entry not in (0, 1) for entry in entries):
                    config.refuse(f"{field} must be of 0 and 1, not {entries}")
                if config.raw("attention_chunk_size") is not None:
                    config.notes.append(f"attention_chunk_size is there, but {field} decides: nothing is chunked.")
                return [kinds[entry] for entry in entries]
        return None

    def _labels(self, field: str, entries: Sequence[object]) -> list[str]:
        for entry in entries:
            if not isinstance(entry, str) or entry not in LABELS:
                self.config.refuse(f"{field} has {short(entry)}, which is no known kind of layer")
        kinds = [LABELS[str(entry)] for entry in entries]
        if INDEXED in kinds and self._index_dim() is None:
            self.config.missing("index_head_dim", f"{field} has indexed attention")
        return kinds

    def _block_kind(self, layer: int, block: object) -> str:
        attention = block.get("attention") if isinstance(block, dict) else None
        if not isinstance(attention, dict):
            self.config.refuse(f"block_configs[{layer}].attention must be an object")
        for field in ("mamba", "llama4", "sparsify"):
            if attention.get(field):
                self.config.refuse(f"block_configs[{layer}].attention.{field} is not read")
        if attention.get("no_op") or attention.get("replace_with_linear"):
            return NONE
        return SLIDING if attention.get("window_length") else FULL

    def _ruled_kinds(self) -> list[str]:
        """Return the kinds where a rule, of the file or of the family's class, gives them."""
        config, layers = self.config, range(self.n_layers)
        linear = config.raw("linear_attn_config")
        if isinstance(linear, dict) and ("full_attn_layers" in linear or "kda_layers" in linear):
            full, kda = (
                config.indices(f"linear_attn_config.{name}", linear.get(name), self.n_layers, first=1)
                for name in ("full_attn_layers", "kda_layers")
            )
            if full & kda or full | kda != set(layers):
                config.refuse("linear_attn_config must name each layer once, in full_attn_layers or in kda_layers")
            return [FULL if i in full else LINEAR for i in layers]
        for field, inside, other in (
            ("attn_layer_indices", FULL, LINEAR),
            ("full_attn_idxs", FULL, CONV),
            ("local_layer_ids", HYBRID_SLIDING, HYBRID),
            ("cross_attention_layers", CROSS, FULL),
        ):
            value = config.get(field)
            if value is not None and not (field == "cross_attention_layers" and config.says("layer_types")):
                chosen = config.indices(field, value, self.n_layers)
                return [inside if i in chosen else other for i in layers]
        if config.raw("attention_types") is not None:
            return self._labels("attention_types", config.listed("attention_types", self._spelt_out(), self.n_layers))
        if config.raw("block_types") is not None or config.defaults.get("block_types"):
            value = config.get("block_types")
            if not isinstance(value, list) or not value:
                config.refuse(f"block_types must be a list of kinds of layers, not {short(value)}")
            cycle = self._labels("block_types", value)
            kinds = [cycle[i % len(cycle)] for i in layers]
            return [SLIDING if kind == FULL and self._window() else kind for kind in kinds]
        if config.get("attn_layer_period") is not None:
            period, offset = config.whole("attn_layer_period"), config.whole("attn_layer_offset", least=0)
            if config.has("n_mamba_heads"):  # Zamba's, whose period counts from its fourth layer
                return [HYBRID if i == 2 or (i > 2 and (i - 3) % period == offset) else LINEAR for i in layers]
            return [FULL if i % period == offset else LINEAR for i in layers]
        sparse = config.raw("sparse_attention_config")
        if sparse is not None:
            if not isinstance(sparse, dict) or not isinstance(sparse.get("use_sparse_attention", True), bool):
                config.refuse(f"sparse_attention_config must be an object with flags and lists, not {short(sparse)}")
            if sparse.get("use_sparse_attention", True):
                entries = config.listed("sparse_attention_freq", sparse.get("sparse_attention_freq"), self.n_layers)
                return [INDEXED if entry else FULL for entry in entries]
        return self._interval_kinds()

    def _spelt_out(self) -> list[Any]:
        """Return GPT-Neo's list of kinds and how often they repeat as a list with an entry for each layer."""
        try:
            return [
                kind
                for kinds, times in self.config.raw("attention_types")
                for kind in list(kinds) * min(times, self.n_layers)
            ]
        except (TypeError, ValueError):
            self.config.refuse("attention_types must be a list of lists of kinds, each with how often they repeat")

    def _interval_kinds(self) -> list[str]:
        config, layers = self.config, range(self.n_layers)
        for field, other in (
            ("full_attention_interval", LINEAR),
            ("layer_group_size", LINEAR),
            ("sliding_window_pattern", SLIDING),
            ("_sliding_window_pattern", SLIDING),
            ("global_attn_every_n_layers", SLIDING),
        ):
            value = config.get(field)
            if isinstance(value, str):
                if not value or set(value) - {"L", "G"}:
                    config.refuse(f"{field} must be a number or letters L and G, not {value!r}")
                return [SLIDING if value[i % len(value)] == "L" else FULL for i in layers]
            if value is not None:
                every = config.checked(field, value)
                if config.family == "modernbert-decoder":  # the first of every few layers is full, not the last
                    return [FULL if i % every == 0 else other for i in layers]
                tail = len(layers) // every * every if config.family == "bailing_moe_linear" else len(layers)
                self.explicit = other != SLIDING
                return [FULL if (i + 1) % every == 0 or i >= tail else other for i in layers]
        chunk = config.get("attention_chunk_size")
        if chunk is not None:
            return self._chunked_kinds()
        if config.flag("use_sliding_window") is True and config.raw("max_window_layers") is not None:
            if config.family == "qwen2_moe":
                config.refuse("max_window_layers with use_sliding_window: say which layers slide, in layer_types")
            first = config.whole("max_window_layers", least=0)
            return [SLIDING if i >= first else FULL for i in layers]
        return self._class_kinds()

    def _chunked_kinds(self) -> list[str]:
        config, layers = self.config, range(self.n_layers)
        chunked = config.raw("no_rope_layers")
        if chunked:
            entries = config.listed("no_rope_layers", chunked, self.n_layers)
            return [CHUNKED if entry else FULL for entry in entries]
        if config.get("no_rope_layer_interval") is None:
            config.missing("no_rope_layers", "attention_chunk_size is given, but not which layers are chunked")
        every = config.whole("no_rope_layer_interval")
        return [CHUNKED if (i + 1) % every else FULL for i in layers]

    def _class_kinds(self) -> list[str]:
        config, layers = self.config, range(self.n_layers)
        self.explicit = False
        if config.defaults.get("layer_pattern"):
            pattern = config.defaults["layer_pattern"]
            kinds = [LABELS[label] for label in pattern]
            recurrent = any(config.raw(field) is not None for field in RECURRENT_FIELDS)
            if recurrent or not set(kinds) <= {FULL, INDEXED}:
                runs = ", ".join(f"{len(list(run))} {label}" for label, run in groupby(pattern))
                config.notes.append(f"The file does not list the layers' kinds: {config.citation} repeats {runs}.")
            if config.says("attention_chunk_size"):  # null, or it would have decided
                kinds = [FULL if kind == CHUNKED else kind for kind in kinds]
            return [kinds[i % len(kinds)] for i in layers]
        if "layer_pattern" in config.defaults or not config.known:
            mixed = next((field for field in RECURRENT_FIELDS if config.raw(field) is not None), None)
            if config.known or mixed or self._window() is not None:
                asked = config.from_class("layer_types")
                if asked is not None:
                    return self._labels("layer_types", config.listed("layer_types", asked, self.n_layers))
                why = f"{mixed or 'sliding_window'} is given, but not for which layers"
                config.missing("layer_types", "" if config.known else why)
            self.by_fields_alone = True
            config.notes.append(f"{config.family!r} is not a known family: read by its fields alone.")
        return [SLIDING if self._window() is not None else FULL] * self.n_layers

    def _shares(self) -> dict[int, int]:
        """Return the layers that use another layer's cache, each with that layer."""
        config = self.config
        n_shared = config.whole("num_kv_shared_layers", absent=0, least=0)
        if n_shared:
            first = self.n_layers - n_shared
            if first <= 0:
                config.refuse(f"num_kv_shared_layers must be less than the {self.n_layers} layers, not {n_shared}")
            last = {kind: i for i, kind in enumerate(self.kinds[:first])}
            absent = next((kind for kind in self.kinds[first:] if kind not in last), None)
            if absent is not None:
                config.refuse(f"num_kv_shared_layers = {n_shared} leaves no {absent} layer to share from")
            return {i: last[self.kinds[i]] for i in range(first, self.n_layers)}
        sources = config.raw("kv_source_layers")
        if sources is not None:
            entries = config.listed("kv_source_layers", sources, self.n_layers)
            if any(type(entry) is not int or not 0 <= entry <= i for i, entry in enumerate(entries)):
                config.refuse("kv_source_layers must name, for each layer, itself or a layer before it")
            return {i: entry for i, entry in enumerate(entries) if entry != i}
        if config.flag("use_cla"):
            factor = config.whole("cla_share_factor")
            return {i: i - i % factor for i in range(self.n_layers) if i % factor}
        return {}

    def _index_dim(self) -> int | None:
        sparse = self.config.raw("sparse_attention_config")
        if isinstance(sparse, dict) and sparse.get("sparse_index_dim"):
            return self.config.checked("sparse_attention_config.sparse_index_dim", sparse["sparse_index_dim"])
        return self.config.whole("index_head_dim", absent=0, least=0) or None
