"""A model's config.json: which part describes the text decoder, and what a field that it leaves out stands for.

What a file leaves out comes from the recorded defaults of transformers' config classes (`data/config_defaults.json`,
written by tools/record_config_defaults.py), from transformers itself when it is installed, or is refused by name.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

FILE_LIMIT = 1 << 24  # bytes; what is larger is no config.json, and a device may have no end
FIELD_LIMIT = 1_000_000
TEXT_PARTS = (
    "text_config", "llm_config", "language_config", "thinker_config", "lm_config", "language_model_config",
    "text_model_config",
)  # fmt: skip
SAME = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "num_transformer_layers"),
    "hidden_size": ("n_embd", "n_embed", "d_model", "model_dim", "embedding_dim"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "attention_heads", "num_query_heads"),
    "num_key_value_heads": (
        "num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num", "num_attention_groups",
        "num_key_value_heads_per_layer",
    ),
    "head_dim": ("attention_head_dim", "kv_channels"),
    "max_position_embeddings": (
        "model_max_length", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "context_length",
    ),
    "sliding_window": ("sliding_window_size", "attention_window_size"),
}  # fmt: skip
# A file always says how large its model is; only the text part of a larger model is saved without its class's sizes.
SIZES = {
    "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "kv_lora_rank",
    "qk_rope_head_dim", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
    "linear_value_head_dim", "linear_num_heads", "linear_head_dim", "mamba_num_heads", "mamba_n_heads",
    "n_mamba_heads", "mamba_d_state", "ssm_state_size", "state_size", "conv_L_cache",
}  # fmt: skip

# In the file of an unknown family: names of what may decide the cache, of those what does not, and of other lists with
# an entry for each layer.
DECIDES = re.compile(
    r"att(entio)?n|window|swa|mamba|ssm|recurren|hybrid|linear|local|global|chunk|kv|cache|cross|conv|mixer|layer_?types?"
    r"|block_?types?|loop|latent|mla|state_(size|dim)"
)
HARMLESS = re.compile(
    r"attention_heads|dropout|pdrop|bias|scal|softcap|multiplier|impl|fp32|norm|init|rope|rotary|theta|clip|expert|moe|mlp"
    r"|vision|audio|image|video|tokens?($|_)|use_cache|gate|fuse|quant|sink|mask"
)
ELSEWHERE = re.compile(r"mlp|moe|expert|ffn|intermediate|rope|scal|dropout|activation|vision|image|audio")

HEADS_BY_WIDTH: dict[str, Any] = {"num_key_value_heads": None, "head_dim": None}
# Families whose classes are not in transformers, or whose rule the recorder cannot see. Each says where it is from.
MORE_FAMILIES: dict[str, dict[str, Any]] = {
    **{
        name: {"class": "modeling_*.py in the model's repository", **HEADS_BY_WIDTH}
        for name in (
            "aquila", "arctic", "baichuan", "bailing_moe", "bailing_moe_v2", "btlm", "chatglm", "codeshell", "deci",
            "decilm", "deepseek", "deepseek_ref", "dots_ocr", "ernie4_5_moe_vl", "exaone", "gpt_refact", "grok-1",
            "h2ovl_chat", "hf_olmo", "hunyuan", "internlm", "internlm2", "internlmxcomposer2", "jais", "kimi_k2",
            "llava_llama", "llava_mistral", "llava_qwen", "minicpm", "minicpmo", "minicpmv", "molmo", "orion",
            "phi-msft", "phi3_v", "phi3small", "phi4mm", "qwen", "RefinedWeb", "RefinedWebModel", "skywork",
            "stablelm_epoch", "telechat", "xverse", "Yi",
        )
    },
    **{
        name: {"class": "modeling_minimax_*.py in the model's repository", **HEADS_BY_WIDTH, "lightning": True}
        for name in ("MiniMaxText01", "minimax_text_01", "MiniMaxM1", "minimax_m1", "minimax")
    },
    "bailing_moe_linear": {
        "class": "modeling_bailing_moe_linear.py in the model's repository",
        **HEADS_BY_WIDTH,
        "lightning": True,
    },
    "nemotron-nas": {"class": "modeling_decilm.py in the model's repository", **HEADS_BY_WIDTH, "layer_pattern": None},
    "gemma4_text": {"class": "Gemma4TextConfig", "global_head_dim": 512},
    "gemma4_unified_text": {"class": "Gemma4UnifiedTextConfig", "global_head_dim": 512},
    "gpt_neo": {"class": "GPTNeoConfig", **HEADS_BY_WIDTH, "window_size": 256, "layer_pattern": None},
    "zamba2": {"class": "Zamba2Config", "num_key_value_heads": None, "layer_pattern": None, "mamba_ngroups": 1,
               "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_expand": 2, "max_position_embeddings": 4096},
    "rwkv": {"class": "RwkvConfig", "layer_pattern": ["linear_attention"]},
    "xlstm": {"class": "xLSTMConfig", "layer_pattern": ["linear_attention"], "qk_dim_factor": 0.5, "v_dim_factor": 1.0},
    "longcat_flash": {"class": "LongcatFlashConfig", "attentions_per_layer": 2},
    "longcat_flash_ngram": {
        "class": "modeling_longcat_ngram.py in the model's repository", **HEADS_BY_WIDTH, "attentions_per_layer": 2,
    },
}  # fmt: skip


class ConfigError(ValueError):
    """A config that the planner can't or won't read; the message is one line that names the field."""


@cache
def _recorded() -> tuple[str, dict[str, dict[str, Any]], frozenset[str]]:
    record = json.loads((files("kvformulas.data") / "config_defaults.json").read_bytes())
    return record["source"], record["families"], frozenset(record["others"])


def short(value: object) -> str:
    """Write a value for a message, cut where it is long."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Config:
    """The text decoder's fields, each from the file, from its family's class, or refused by name."""

    def __init__(self, source: "str | PathLike[str] | Mapping[str, Any]", overrides: Mapping[str, Any]) -> None:
        """Read the file (or take the fields as they are), and find the part that describes the text decoder."""
        self.folder: Path | None = None
        if isinstance(source, Mapping):
            self.name, self.top = "config", dict(source)
        else:
            self.name, self.top, self.folder = read_file(fspath(source))
        self.notes: list[str] = []
        self.model_type = str(self.top.get("model_type") or "unknown")
        self.text, self.family, self.nested = self._text_part()
        self.text = {**self.text, **overrides}
        source_name, families, others = _recorded()
        record = {**families.get(self.family, {}), **MORE_FAMILIES.get(self.family, {})}
        self.known = bool(record)
        if not self.known and self.family in others:
            self.refuse(f"model_type is {self.family!r}: no decoder that generates text, by the lists of {source_name}")
        self.defaults = record
        self.citation = f"{record['class']} in {source_name}" if self.family in families else str(record.get("class"))
        self._cited: set[str] = set()
        self._read: set[str] = set()
        self._hf: dict[str, Any] | None = None

    def _text_part(self) -> tuple[dict[str, Any], str, bool]:
        part, family, nested = self.top, self.model_type, False
        families = _recorded()[1]
        while True:
            key = next((key for key in TEXT_PARTS if isinstance(part.get(key), dict) and part[key]), None)
            if key is None:
                break
            inner = part[key]
            family = str(inner.get("model_type") or families.get(family, {}).get("text", "unknown"))
            part, nested = inner, True
        record = families.get(family, {})
        if not nested and "text" in record:
            if not any(name in part for name in ("num_hidden_layers", *SAME["num_hidden_layers"])):
                self.refuse(f"text_config is missing: {family!r} is a model around a text model")
            family = record["text"]
        return part, family, nested

    # Where a field is from

    def refuse(self, message: str) -> NoReturn:
        """Refuse the config with one line."""
        raise ConfigError(f"{self.name}: {message}")

    def missing(self, field: str, why: str = "") -> NoReturn:
        """Refuse the config for a field that it leaves out, and say what would help."""
        says = f"{field} is missing{why and f' ({why})'}"
        give = f"give it with --set {field}=VALUE (in Python: overrides)"
        if field in SIZES and not self.nested:
            self.refuse(f"{says}, and no default stands for it: {give}")
        known = f"the class of {self.family!r} has no plain default for it"
        if not self.known:
            known = f"{self.family!r} is not a family whose defaults are known"
        self.refuse(f"{says}, and {known}: {give}, or install kvformulas[hf] to ask transformers")

    def raw(self, field: str) -> Any:
        """Return a field, or one that means the same, from the file alone; None if absent or null."""
        names = (field, *SAME.get(field, ()))
        self._read.update(names)
        for name in names:
            if self.text.get(name) is not None:
                return self.text[name]
        return None

    def says(self, field: str) -> bool:
        """Whether the file itself has the field, be it null."""
        return any(name in self.text for name in (field, *SAME.get(field, ())))

    def get(self, field: str) -> Any:
        """Return a field from the file or from the family's class; None if neither says."""
        value = self.raw(field)
        if value is None and not self.says(field) and (self.nested or field not in SIZES):
            for name in (field, *SAME.get(field, ())):
                if self.defaults.get(name) is not None:
                    value = self.defaults[name]
                    self._cite(field, value, self.citation)
                    break
        return value

    def has(self, field: str) -> bool:
        """Whether the file or the family's class has the field."""
        return any(self.raw(field) is not None or self.defaults.get(name) is not None
                   for name in (field, *SAME.get(field, ())))  # fmt: skip

    def from_class(self, field: str) -> Any:
        """Ask transformers for a field that the file leaves out; None if it isn't installed or doesn't say."""
        if self._hf is None:
            self._hf = _transformers_fields(self.top)
        value = self._hf.get(field)
        if value is not None:
            self._cite(field, value, "the model's class, by the installed transformers")
        return value

    def refuse_unread(self, n_layers: int) -> None:
        """Refuse the config of an unknown family that has a field which may decide the cache and was not read."""
        known = {name for record in _recorded()[1].values() for name in record}.union(self._read, *SAME.values())
        for name, value in self.text.items():
            if name in known or not value:
                continue
            each = isinstance(value, list) and len(value) in (n_layers, n_layers + self.n_predict)
            if (each and not ELSEWHERE.search(name)) or (DECIDES.search(name) and not HARMLESS.search(name)):
                says = f"{name} = {short(value)} is not known, and may decide what the cache holds"
                self.refuse(f"{says}: say --set {name}=null if it does not")

    def _cite(self, field: str, value: object, source: str) -> None:
        if field not in self._cited:
            self._cited.add(field)
            self.notes.append(f"{field} = {short(value)} is not in the file: the default of {source}.")

    def whole(self, field: str, *, absent: int | None = None, least: int = 1, limit: int = FIELD_LIMIT) -> int:
        """Return a whole number, or the given one if nobody has it."""
        value = self.get(field)
        if value is None:
            if absent is None and not (field in SIZES and not self.nested):
                value = self.from_class(field)
            if value is None:
                if absent is None:
                    self.missing(field)
                return absent
        return self.checked(field, value, least, limit)

    def checked(self, field: str, value: object, least: int = 1, limit: int = FIELD_LIMIT) -> int:
        """Return a value that must be a whole number."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not least <= value <= limit:
            self.refuse(f"{field} must be a whole number from {least} to {limit}, not {short(value)}")
        return value

    def flag(self, field: str) -> bool | None:
        """Return a yes or no, or None if nobody says."""
        value = self.get(field)
        if value is not None and not isinstance(value, bool):
            self.refuse(f"{field} must be true or false, not {short(value)}")
        return value

    def listed(self, field: str, value: object, n_layers: int) -> list[Any]:
        """Return a list with an entry a layer; entries beyond that may only be those of multi-token prediction."""
        if not isinstance(value, list | str):
            self.refuse(f"{field} must be a list with an entry for each layer, not {short(value)}")
        entries = list(value)
        extra = len(entries) - n_layers
        if 0 < extra <= self.n_predict:
            self.notes.append(f"{field} has {extra} more than the {n_layers} layers: multi-token prediction.")
            entries = entries[:n_layers]
        if len(entries) != n_layers:
            self.refuse(f"{field} must have an entry for each of the {n_layers} layers, not {len(entries)}")
        return entries

    def indices(self, field: str, value: object, n_layers: int, first: int = 0) -> set[int]:
        """Return the layers that a list of layer numbers names, counted from 0."""
        if not isinstance(value, list) or any(type(i) is not int or not first <= i < n_layers + first for i in value):
            self.refuse(f"{field} must be a list of layer numbers from {first} to {n_layers + first - 1}, "
                        f"not {short(value)}")  # fmt: skip
        return {i - first for i in value}

    @property
    def dtype(self) -> str | None:
        """The dtype of the weights as the file has it: bfloat16, float16, float32 or None."""
        for part in (self.text, self.top):
            for field in ("dtype", "torch_dtype"):
                value = part.get(field)
                if value is not None and not isinstance(value, dict):
                    return str(value).removeprefix("torch.")
        return None

    def kv_dtype(self) -> tuple[str, str] | None:
        """The dtype that the checkpoint asks for its KV cache, and the field that does; None if it asks for none."""
        for part in (self.text, self.top):
            quantization: Any = part.get("quantization_config") or part.get("compression_config") or {}
            if not isinstance(quantization, dict):
                self.refuse(f"quantization_config must be an object, not {short(quantization)}")
            inner = quantization.get("quantization")
            for asked in (quantization, inner if isinstance(inner, dict) else {}):
                for field in ("kv_cache_scheme", "kv_cache_quant_algo"):
                    if asked.get(field) is not None:
                        return self._scheme(asked[field]), f"quantization_config.{field}"
            export = quantization.get("export")
            if isinstance(export, dict) and export.get("kv_cache_group"):
                return self._quark(quantization, export["kv_cache_group"]), "quantization_config.export"
        file = self.folder and self.folder / "hf_quant_config.json"
        if file and file.is_file():
            fields = as_object(str(file), file.read_bytes()).get("quantization")
            if isinstance(fields, dict) and fields.get("kv_cache_quant_algo") is not None:
                where = "kv_cache_quant_algo in hf_quant_config.json"
                return self._scheme(fields["kv_cache_quant_algo"]), where
        return None

    @staticmethod
    def _scheme(scheme: object) -> str:
        """Return our dtype for compressed-tensors' kv_cache_scheme or ModelOpt's kv_cache_quant_algo, if known."""
        if isinstance(scheme, dict):
            kinds = {"8 float": "fp8", "8 int": "int8", "4 float": "nvfp4", "4 int": "int4"}
            return kinds.get(f"{scheme.get('num_bits')} {scheme.get('type', 'int')}") or short(scheme)
        asked = str(scheme).lower()
        return "auto" if asked == "none" else asked

    @staticmethod
    def _quark(quantization: dict[str, Any], group: object) -> str:
        """Return our dtype for the layers that Quark exports as the KV cache."""
        layers = quantization.get("layer_quant_config")
        if not isinstance(group, list) or not isinstance(layers, dict):
            return short(group)
        found = []
        for name in group:
            layer = layers.get(str(name))
            outputs = layer.get("output_tensors") if isinstance(layer, dict) else None
            if isinstance(outputs, dict):
                found.append(outputs.get("dtype"))
        return "fp8" if found and set(map(str, found)) <= {"fp8_e4m3", "fp8_e5m2"} else short(found)

    @property
    def n_predict(self) -> int:
        """How many layers predict further tokens; they are left out."""
        counts = [
            part.get(field)
            for part in (self.text, self.top)
            for field in ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "num_mtp_modules")
        ]
        return max((count for count in counts if type(count) is int), default=0)


def read_file(path: str) -> tuple[str, dict[str, Any], Path | None]:
    """Return a config.json's name and its fields, given it or its folder, and the folder where its weights may be."""
    file = Path(path)
    folder: Path | None = None
    if file.is_dir():
        folder, file = file, file / "config.json"
    elif file.name == "config.json":
        folder = file.parent
    name = str(file)
    try:
        with file.open("rb") as stream:
            data = stream.read(FILE_LIMIT + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"CONFIG must be a config.json or a folder with one: {name!r}: {reason}") from None
    if len(data) > FILE_LIMIT:
        raise ConfigError(f"{name!r} must be a config.json, not a file of more than {FILE_LIMIT >> 20} MiB")
    return name, as_object(name, data), folder


def as_object(name: str, data: bytes) -> dict[str, Any]:
    """Return the JSON object in a file's bytes."""
    try:
        fields = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError(f"{name!r} must hold JSON, not binary data") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name!r} must hold JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ConfigError(f"{name!r} must hold a JSON object, not {type(fields).__name__}")
    return fields


def _transformers_fields(top: Mapping[str, Any]) -> dict[str, Any]:
    """Let transformers read the config: its text part with all that the class fills in. No torch and no network."""
    try:
        transformers = import_module("transformers")
    except ImportError:
        return {}
    try:
        config = transformers.CONFIG_MAPPING[top.get("model_type")].from_dict(dict(top)).get_text_config(decoder=True)
        fields: dict[str, Any] = config.to_dict()
        layer_types = getattr(config, "layer_types", None)
    except Exception:  # whatever a class objects to, the field stays missing and is refused by name
        return {}
    if layer_types is not None:
        fields["layer_types"] = list(layer_types)
    return fields
