"""Record what a config.json may leave out: the defaults of transformers' config classes, for kvformulas.data.

Run it with the version of transformers whose defaults are to ship: `python tools/record_config_defaults.py`. Only the
fields that decide a KV cache are kept, only those that a class declares, and only for models that generate text; of the
other models the names are kept, so that an encoder is refused as what it is.
"""

import json
import logging
from pathlib import Path

import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

OUTPUT = Path(__file__).parent.parent / "src" / "kvformulas" / "data" / "config_defaults.json"
FIELDS = [
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "hidden_size",
    "n_embd",
    "d_model",
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "attention_heads",
    "num_key_value_heads",
    "num_kv_heads",
    "head_dim",
    "attention_head_dim",
    "kv_channels",
    "v_head_dim",
    "multi_query",
    "new_decoder_architecture",
    "sliding_window",
    "sliding_window_size",
    "attention_window_size",
    "local_attention",
    "use_sliding_window",
    "max_window_layers",
    "attention_chunk_size",
    "no_rope_layer_interval",
    "global_attn_every_n_layers",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "qk_nope_head_dim",
    "index_head_dim",
    "global_head_dim",
    "num_global_key_value_heads",
    "attention_k_eq_v",
    "num_kv_shared_layers",
    "swa_num_key_value_heads",
    "swa_head_dim",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
    "linear_num_heads",
    "linear_head_dim",
    "short_conv_kernel_size",
    "attn_layer_period",
    "attn_layer_offset",
    "attn_layer_indices",
    "mamba_n_heads",
    "mamba_num_heads",
    "n_mamba_heads",
    "mamba_d_head",
    "mamba_head_dim",
    "mamba_headdim",
    "mamba_n_groups",
    "mamba_ngroups",
    "n_groups",
    "mamba_d_state",
    "ssm_state_size",
    "state_size",
    "mamba_d_conv",
    "conv_kernel",
    "mamba_expand",
    "expand",
    "mamba_d_ssm",
    "cca_time0",
    "cca_time1",
    "lru_width",
    "conv1d_width",
    "block_types",
    "conv_L_cache",
    "full_attn_idxs",
    "layer_group_size",
    "cross_attention_layers",
    "attention_hidden_size",
    "qk_dim_factor",
    "v_dim_factor",
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "context_length",
]
KINDS = {
    "full_attention",
    "sliding_attention",
    "chunked_attention",
    "indexed_attention",
    "linear_attention",
    "conv",
    "hybrid",
    "hybrid_sliding",
}
GENERATES = (
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
)
# These are in the causal mapping for historical reasons: they are encoders unless a config says is_decoder.
ENCODERS = [
    "bert",
    "bert-generation",
    "big_bird",
    "camembert",
    "data2vec-text",
    "electra",
    "ernie",
    "megatron-bert",
    "rembert",
    "roberta",
    "roberta-prelayernorm",
    "roc_bert",
    "roformer",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
    "xlm",
    "xlnet",
]


def as_json(value):
    """Write a value without spaces: the file is installed."""
    return json.dumps(value, separators=(",", ":"))


def family(config_class):
    """Return the record of one class, and the type of its text part if it has one."""
    config = config_class()
    if config.is_encoder_decoder:
        return {"class": config_class.__name__, "is_encoder_decoder": True}, None
    text = config.get_text_config(decoder=True)
    if text is not config:
        return {"class": config_class.__name__, "text": text.model_type}, type(text)
    record = {"class": config_class.__name__}
    declared = config_class.__dataclass_fields__
    for name in FIELDS:
        if name in declared:
            value = declared[name].default
            if isinstance(value, int | float | str):
                record[name] = value
            elif isinstance(value, list | tuple) and all(isinstance(item, int | str) for item in value):
                record[name] = list(value)
    if "attn_config" in declared:
        record["attn_config"] = {}
    if hasattr(config, "layer_types"):
        record["layer_pattern"] = layer_pattern(config_class)
    return record, None


def layer_pattern(config_class):
    """Return the shortest list of layer types that repeats for any number of layers; None if the rule is another."""
    lists = []
    for n_layers in (8, 13, 26, 37):
        try:
            lists.append(config_class(num_hidden_layers=n_layers).layer_types)
        except (AttributeError, ValueError, TypeError):
            return None
    if any(not isinstance(types, list) or len(types) != n for types, n in zip(lists, (8, 13, 26, 37), strict=True)):
        return None
    for period in range(1, 9):
        pattern = lists[-1][:period]
        if all(types == [pattern[i % period] for i in range(len(types))] for types in lists):
            return pattern if set(pattern) <= KINDS else None
    return None


def main():
    logging.disable(logging.WARNING)
    wanted = {name for mapping in GENERATES for name in getattr(modeling_auto, mapping)} - set(ENCODERS)
    families, parts, failed = {}, {}, set()
    for name in sorted(wanted):
        try:
            families[name], part = family(CONFIG_MAPPING[name])
        except Exception as error:  # a class that needs arguments has no defaults to record
            print(f"{name}: {type(error).__name__}: {str(error)[:80]}")
            failed.add(name)
            continue
        if part is not None and part.model_type not in ENCODERS:
            parts[part.model_type] = part
    for name, part in sorted(parts.items()):
        if name not in families:
            families[name] = family(part)[0]
    others = sorted(set(CONFIG_MAPPING) - set(families) - failed)
    lines = ",\n".join(f"{as_json(name)}:{as_json(families[name])}" for name in sorted(families))
    OUTPUT.write_text(
        f'{{"source": "transformers {transformers.__version__}", "families": {{\n{lines}\n}},\n'
        f'"others": {as_json(others)}}}\n'
    )


if __name__ == "__main__":
    main()
