# Configs of many layouts: the groups that the planner reads, against what the files and the models themselves say.
import json
import sys
import types

import pytest

from kvformulas.plan import ConfigError, PlanError, plan, read_model
from layouts import CONFIGS, RECORDED, elements, runs

STATE, CONV = "states", "convs"
KV128 = {"kv_heads": 8, "k_head_dim": 128, "v_head_dim": 128}
LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}


def kv(heads, k_dim, v_dim=None, **more):
    """Return the dimensions of a group that keeps keys and values."""
    return {"kv_heads": heads, "k_head_dim": k_dim, "v_head_dim": k_dim if v_dim is None else v_dim, **more}


def state(heads, dim, size):
    """Return the dimensions of a state in fp32."""
    return {"heads": heads, "head_dim": dim, "state_size": size, "dtype": "float32"}


def conv(columns, *parts):
    """Return the dimensions of a convolution's state."""
    return {"parts": parts, "columns": columns}


# Each layout: the file, and its groups as (kind, layers, dimensions). The comment says what makes it a layout.
LAYOUTS = {
    "gpt2": [("full", 12, kv(12, 64))],  # MHA, the old names of fields
    "gpt-bigcode": [("full", 12, kv(1, 64))],  # MQA by a flag
    "falcon": [("full", 32, kv(1, 64))],  # MQA by another flag, 71 query heads
    "meta-llama--Meta-Llama-3.1-8B": [("full", 32, KV128)],  # GQA, head_dim from the width
    "Qwen--Qwen3-0.6B": [("full", 28, KV128)],  # head_dim of its own
    "mistralai--Mixtral-8x7B-v0.1": [("full", 32, KV128)],  # sliding_window: null
    "qwen2-window-off": [("full", 28, kv(4, 128))],  # use_sliding_window: false
    "mistral": [("sliding", 32, KV128 | {"window": 4096})],  # all layers slide
    "cohere2": [("sliding", 30, kv(64, 128, window=4096)), ("full", 10, kv(64, 128))],  # the class's pattern
    "exaone4-letters": [("sliding", 24, kv(32, 128, window=4096)), ("full", 8, kv(32, 128))],  # a pattern of letters
    "openai--gpt-oss-120b": [("sliding", 18, kv(8, 64, window=128)), ("full", 18, kv(8, 64))],  # by list
    "google--gemma-3-12b-it": [("sliding", 40, kv(8, 256, window=1024)), ("full", 8, kv(8, 256))],  # by default
    "gemma4-text": [  # other heads and dims in full layers, keys as values, and sharing
        ("sliding", 20, kv(4, 256, window=512)),
        ("full", 4, kv(2, 512)),
        ("shared", 6, {"shares": (22, 23)}),
    ],
    "gemma3n-text": [
        ("sliding", 16, kv(2, 256, window=512)),
        ("full", 4, kv(2, 256)),
        ("shared", 15, {"shares": (18, 19)}),
    ],
    "hunyuan-cross-layer": [("full", 32, KV128), ("shared", 32, {"shares": tuple(range(0, 64, 2))})],
    "mimo-v2-flash": [("full", 9, kv(4, 192, 128)), ("sliding", 39, kv(8, 192, 128, window=128))],  # unequal K and V
    "meta-llama--Llama-4-Scout-17B-16E-Instruct": [("chunked", 36, KV128 | {"chunk": 8192}), ("full", 12, KV128)],
    "nemotron-nas": [("full", 1, KV128), ("none", 2, {}), ("full", 1, kv(4, 128))],  # layers without attention
    "llava": [("full", 32, kv(32, 128))],  # a wrapper that leaves the text part to its class
    "deepseek-ai--DeepSeek-V3": [("mla", 61, LATENT)],
    "longcat-flash": [("mla", 56, LATENT)],  # two attentions a layer
    "deepseek-v32": [("mla", 61, LATENT), ("index", 61, {"index_head_dim": 128})],
    "glm-moe-dsa": [("mla", 78, LATENT), ("index", 21, {"index_head_dim": 128})],  # an index every fourth layer
    "minimax-m3-text": [("full", 60, kv(4, 128)), ("index", 57, {"index_head_dim": 128})],
    "deepseek-v4": [
        ("sliding", 43, kv(1, 512, 0, window=128)),
        ("compressed", 21, kv(1, 512, 0, compress_ratio=4)),
        ("index", 21, {"index_head_dim": 128, "compress_ratio": 4}),
        ("compressed", 20, kv(1, 512, 0, compress_ratio=128)),
    ],
    "Qwen--Qwen3.5-27B": [  # gated linear attention by list, in a multimodal wrapper
        ("recurrent", 48, {STATE: (state(48, 128, 128),), CONV: (conv(3, (16, 128), (16, 128), (48, 128)),)}),
        ("full", 16, kv(4, 256)),
    ],
    "qwen3-next": [  # the same by interval
        ("recurrent", 36, {STATE: (state(32, 128, 128),), CONV: (conv(3, (16, 128), (16, 128), (32, 128)),)}),
        ("full", 12, kv(2, 256)),
    ],
    "olmo-hybrid": [
        ("recurrent", 24, {STATE: (state(30, 192, 96),), CONV: (conv(3, (30, 96), (30, 96), (30, 192)),)}),
        ("full", 8, kv(30, 128)),
    ],
    "kimi-linear": [  # delta attention and MLA, layers counted from 1
        ("recurrent", 20, {STATE: (state(32, 128, 128),), CONV: (conv(3, *((32, 128),) * 3),)}),
        ("mla", 7, LATENT),
    ],
    "minimax-text-01": [("full", 16, KV128), ("recurrent", 16, {STATE: (state(32, 128, 128),)})],  # no convolution
    "nvidia--Nemotron-H-56B-Base-8K": [  # Mamba-2, attention and neither, by letters
        ("recurrent", 54, {STATE: (state(256, 64, 256),), CONV: (conv(3, (256, 64), (8, 256), (8, 256)),)}),
        ("none", 54, {}),
        ("full", 10, KV128),
    ],
    "bamba": [  # Mamba-2, attention by its indices
        ("recurrent", 29, {STATE: (state(128, 64, 256),), CONV: (conv(3, (128, 64), (1, 256), (1, 256)),)}),
        ("full", 3, KV128),
    ],
    "granite-moe-hybrid": [
        ("recurrent", 29, {STATE: (state(128, 64, 256),), CONV: (conv(3, (128, 64), (1, 256), (1, 256)),)}),
        ("full", 3, kv(32, 128)),
    ],
    "falcon-h1": [  # both in each layer
        ("recurrent", 32, {STATE: (state(128, 8, 256),), CONV: (conv(3, (128, 8), (1, 256), (1, 256)),)}),
        ("full", 32, KV128),
    ],
    "zamba2": [
        ("recurrent", 54, {STATE: (state(8, 640, 64),), CONV: (conv(3, (8, 640), (1, 64), (1, 64)),)}),
        ("full", 9, kv(32, 160)),
    ],
    "mamba2": [("recurrent", 64, {STATE: (state(128, 64, 128),), CONV: (conv(3, (128, 64), (8, 128), (8, 128)),)})],
    "mamba": [("recurrent", 32, {STATE: (state(1536, 1, 16),), CONV: (conv(3, (1536, 1)),)})],
    "jamba": [("recurrent", 28, {STATE: (state(8192, 1, 16),), CONV: (conv(3, (8192, 1)),)}), ("full", 4, KV128)],
    "lfm2": [("recurrent", 26, {CONV: (conv(2, (2560, 1)),)}), ("full", 6, kv(8, 80))],  # short convolutions
    "recurrent-gemma": [
        ("recurrent", 18, {STATE: (state(2560, 1, 1),), CONV: (conv(3, (2560, 1)),)}),
        ("sliding", 8, kv(10, 256, window=2048)),
    ],
    "llama-fp8-cache": [("full", 32, KV128)],
}

# More layouts: only the fields that decide the cache, as files of these families have them, and the groups.
SHORT = {
    "llama-1": ({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32},
                [("full", 32, kv(32, 128))]),  # from before GQA
    "falcon-40b": ({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128,
                    "num_kv_heads": 8, "multi_query": True, "new_decoder_architecture": True},
                   [("full", 60, kv(8, 64))]),
    "falcon-40b by its old names": ({"model_type": "RefinedWeb", "hidden_size": 8192, "n_layer": 60, "n_head": 128,
                                     "n_head_kv": 8, "multi_query": True}, [("full", 60, kv(8, 64))]),
    "santacoder": ({"model_type": "gpt2", "n_layer": 24, "n_head": 16, "n_embd": 2048,
                    "attention_head_type": "multiquery"}, [("full", 24, kv(1, 128))]),
    "gpt-neo-1.3b": ({"model_type": "gpt_neo", "hidden_size": 2048, "num_layers": 24, "num_heads": 16,
                      "attention_types": [[["global", "local"], 12]], "window_size": 256},
                     [("full", 12, kv(16, 128)), ("sliding", 12, kv(16, 128, window=256))]),
    "chatglm2-6b": ({"model_type": "chatglm", "hidden_size": 4096, "num_layers": 28, "num_attention_heads": 32,
                     "multi_query_attention": True, "multi_query_group_num": 2, "kv_channels": 128},
                    [("full", 28, kv(2, 128))]),
    "olmo-7b": ({"model_type": "hf_olmo", "d_model": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": None,
                 "multi_query_attention": False}, [("full", 32, kv(32, 128))]),
    "dbrx": ({"model_type": "dbrx", "d_model": 6144, "n_layers": 40, "n_heads": 48, "attn_config": {"kv_n_heads": 8}},
             [("full", 40, KV128)]),  # in a part of its own
    "openelm": ({"model_type": "openelm", "num_transformer_layers": 4, "head_dim": 64, "model_dim": 1280,
                 "num_kv_heads": [3, 3, 4, 5], "num_query_heads": [12, 12, 16, 20]},
                [("full", 2, kv(3, 64)), ("full", 1, kv(4, 64)), ("full", 1, kv(5, 64))]),  # its own in each layer
    "decilm-7b": ({"model_type": "deci", "hidden_size": 4096, "num_hidden_layers": 3, "num_attention_heads": 32,
                   "num_key_value_heads_per_layer": [4, 2, 4]}, [("full", 2, kv(4, 128)), ("full", 1, kv(2, 128))]),
    "smollm3": ({"model_type": "smollm3", "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16,
                 "num_key_value_heads": 4, "layer_types": ["full_attention"] * 36, "no_rope_layers": [1, 1, 1, 0] * 9,
                 "sliding_window": None, "use_sliding_window": False}, [("full", 36, kv(4, 128))]),
    "qwen3 with its window on": ({"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "head_dim": 128,
                                  "num_attention_heads": 32, "num_key_value_heads": 8, "use_sliding_window": True,
                                  "sliding_window": 4096, "max_window_layers": 28},
                                 [("full", 28, KV128), ("sliding", 8, KV128 | {"window": 4096})]),
    "paligemma2": ({"model_type": "paligemma", "text_config": {
        "model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26, "num_key_value_heads": 4}},
        [("sliding", 13, kv(4, 256, window=4096)), ("full", 13, kv(4, 256))]),  # nearly all from its class
    "mllama": ({"model_type": "mllama", "text_config": {
        "model_type": "mllama_text_model", "hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32,
        "num_key_value_heads": 8, "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]}},
        [("full", 32, KV128), ("none", 8, {})]),  # the image's keys and values are not the text's
    "deepseek-vl2": ({"model_type": "deepseek_vl_v2", "language_config": {
        "model_type": "deepseek_v2", "hidden_size": 2560, "num_hidden_layers": 30, "num_attention_heads": 32,
        "num_key_value_heads": 32, "kv_lora_rank": 512, "use_mla": True}}, [("mla", 30, LATENT)]),
    "deepseek-vl2-tiny": ({"model_type": "deepseek_vl_v2", "language_config": {
        "model_type": "deepseek_v2", "hidden_size": 1280, "num_hidden_layers": 12, "num_attention_heads": 10,
        "num_key_value_heads": 10, "kv_lora_rank": None, "qk_rope_head_dim": 0, "v_head_dim": 0, "use_mla": False}},
        [("full", 12, kv(10, 128))]),  # zeros that stand for none
    "longcat-flash-lite": ({"model_type": "longcat_flash_ngram", "hidden_size": 3072, "num_layers": 14,
                            "num_attention_heads": 32, "attention_method": "MLA", **LATENT}, [("mla", 28, LATENT)]),
    "step-3.5-flash": ({"model_type": "step3p5", "hidden_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 64,
                        "num_attention_groups": 8, "head_dim": 128, "sliding_window": 512,
                        "layer_types": ["full_attention", *["sliding_attention"] * 3, "full_attention"],
                        "num_nextn_predict_layers": 3, "attention_other_setting": {
                            "attention_type": "sliding_attention", "num_attention_groups": 4, "head_dim": 64}},
                       [("full", 1, KV128), ("sliding", 3, kv(4, 64, window=512))]),
    "minimax-m1": ({"model_type": "minimax_m1", "attn_type_list": [0, 0, 0, 1], "hidden_size": 6144, "head_dim": 128,
                    "num_hidden_layers": 4, "num_attention_heads": 64, "num_key_value_heads": 8},
                   [("recurrent", 3, {STATE: (state(64, 128, 128),)}), ("full", 1, KV128)]),
    "ring-mini-linear": ({"model_type": "bailing_moe_linear", "hidden_size": 2048, "num_hidden_layers": 20,
                          "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "layer_group_size": 5},
                         [("recurrent", 16, {STATE: (state(16, 128, 128),)}), ("full", 4, kv(4, 128))]),
    "zamba-7b": ({"model_type": "zamba", "hidden_size": 3712, "num_hidden_layers": 76, "num_attention_heads": 16,
                  "num_key_value_heads": 16, "attn_layer_offset": 4, "attn_layer_period": 6, "n_mamba_heads": 2,
                  "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2},
                 [("recurrent", 76, {STATE: (state(7424, 1, 16),), CONV: (conv(3, (7424, 1)),)}),
                  ("full", 13, kv(16, 464))]),  # heads of twice the width: its attention reads two inputs
    "zaya1-8b": ({"model_type": "zaya", "num_hidden_layers": 40, "hidden_size": 2048, "num_attention_heads": 8,
                  "num_key_value_heads": 2, "layer_types": ["hybrid"] * 40},
                 [("recurrent", 40, {CONV: (conv(2, (8, 128), (2, 128)), conv(1, (2, 64)))}),
                  ("full", 40, kv(2, 128))]),
    "rwkv-4": ({"model_type": "rwkv", "hidden_size": 768, "num_hidden_layers": 12},
               [("recurrent", 12, {STATE: (state(768, 1, 3),), CONV: (conv(1, (768, 1), (768, 1)),)})]),
    "xlstm-7b": ({"model_type": "xlstm", "hidden_size": 4096, "num_heads": 8, "num_hidden_layers": 32},
                 [("recurrent", 32, {STATE: (state(8, 256, 512), state(8, 256, 1), state(8, 1, 1))})]),
    "inkling": ({"model_type": "inkling_text", "hidden_size": 6144, "num_hidden_layers": 2, "num_attention_heads": 64,
                 "num_key_value_heads": 8, "head_dim": 128, "swa_num_key_value_heads": 16, "sliding_window": 512,
                 "local_layer_ids": [0], "sconv_kernel_size": 4},
                [("recurrent", 1, {CONV: (conv(3, (16, 128), (16, 128), (1, 12288)),)}),
                 ("sliding", 1, kv(16, 128, window=512)),
                 ("recurrent", 1, {CONV: (conv(3, (8, 128), (8, 128), (1, 12288)),)}), ("full", 1, KV128)]),
    "mistral-large-4": ({"model_type": "mistral_large4_text", "num_hidden_layers": 4, "index_head_dim": 128,
                         "index_topk_pattern": "FSSF", **LATENT},
                        [("mla", 3, LATENT), ("index", 2, {"index_head_dim": 128}), ("mla", 1, {"kv_lora_rank": 512})]),
    "latents with and without a rotary part": (
        {"model_type": "new", "num_hidden_layers": 4, "index_head_dim": 128, "use_dsa": False,
         "no_rope_layers": [1, 0, 1, 1], **LATENT}, [("mla", 3, LATENT), ("mla", 1, {"kv_lora_rank": 512})]),
    "index keys by list": (
        {"model_type": "glm_moe_dsa", "num_hidden_layers": 3, "index_head_dim": 128,
         "indexer_types": ["full", "shared", "full"], **LATENT},
        [("mla", 3, LATENT), ("index", 2, {"index_head_dim": 128})]),
    "modernbert-decoder": ({"model_type": "modernbert-decoder", "hidden_size": 768, "num_hidden_layers": 22,
                            "num_attention_heads": 12, "global_attn_every_n_layers": 3, "local_attention": 128},
                           [("full", 8, kv(12, 64)), ("sliding", 14, kv(12, 64, window=64))]),
    "mpt-7b": ({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32,
                "attn_config": {"attn_type": "multihead_attention"}}, [("full", 32, kv(32, 128))]),
    "mpt with one head": ({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32,
                           "attn_config": {"attn_type": "multiquery_attention"}}, [("full", 32, kv(1, 128))]),
    "qwen2-vl": ({"model_type": "qwen2_vl", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
                  "num_key_value_heads": 4, "use_sliding_window": False, "sliding_window": 32768},
                 [("full", 28, kv(4, 128))]),  # the text's fields beside the image's
    "llama-4 by list": ({"model_type": "llama4_text", "num_hidden_layers": 4, "hidden_size": 5120, "head_dim": 128,
                         "num_attention_heads": 40, "num_key_value_heads": 8, "attention_chunk_size": 8192,
                         "no_rope_layers": [1, 1, 1, 0]},
                        [("chunked", 3, KV128 | {"chunk": 8192}), ("full", 1, KV128)]),
    "nemotron-nas with windows": ({"model_type": "nemotron-nas", "hidden_size": 4096, "num_hidden_layers": 2,
                                   "num_attention_heads": 32, "block_configs": [
                                       {"attention": {"num_key_value_heads": 4}},
                                       {"attention": {"n_heads_in_group": 4, "window_length": 8192}}]},
                                  [("full", 1, kv(4, 128)), ("sliding", 1, KV128 | {"window": 8192})]),
    "layers with fields of their own": (
        {"model_type": "new", "num_hidden_layers": 3, "num_key_value_heads": 8, "head_dim": 128, "sliding_window": 512,
         "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
         "per_layer_config": {"0": {"head_dim": 256}, "2": {"sliding_window": 64}}},
        [("full", 1, kv(8, 256)), ("sliding", 1, KV128 | {"window": 512}), ("sliding", 1, KV128 | {"window": 64})]),
    "sharing by list": ({"model_type": "new", "num_hidden_layers": 4, "num_key_value_heads": 8, "head_dim": 128,
                         "kv_source_layers": [0, 0, 2, 2]}, [("full", 2, KV128), ("shared", 2, {"shares": (0, 2)})]),
}  # fmt: skip


def fields_of(name):
    """Return the fields of one of the files."""
    return json.loads((CONFIGS / f"{name}.json").read_text())


def as_listed(model):
    """Return a model's groups as LAYOUTS has them."""
    written = []
    for group in model.groups:
        own = group.to_dict()
        kind, n_layers, layers = own.pop("kind"), own.pop("n_layers"), own.pop("layers")
        assert len(layers) == n_layers
        written.append((kind, n_layers, own))
    return written


def test_every_file_is_a_layout_here():
    assert {file.stem for file in CONFIGS.glob("*.json")} == set(LAYOUTS)


@pytest.mark.parametrize("name", LAYOUTS)
def test_groups_are_read_from_the_file(name):
    assert as_listed(read_model(CONFIGS / f"{name}.json")) == LAYOUTS[name]


@pytest.mark.parametrize("name", SHORT)
def test_groups_are_read_from_what_decides(name):
    fields, groups = SHORT[name]
    assert as_listed(read_model(fields)) == groups


@pytest.mark.parametrize("name", set(RECORDED["models"]) - {"deepseek-v4", "minimax-text-01"})
def test_groups_are_what_transformers_keeps(name):
    recorded = RECORDED["models"][name]
    assert runs(elements(read_model(CONFIGS / f"{name}.json"), recorded["n_tokens"])) == recorded["layers"]


def test_where_engines_keep_something_else_than_transformers():
    measured = RECORDED["models"]["deepseek-v4"]["layers"]
    window, dim = 127, 512
    assert measured[0] == [2, {"kv": 2 * window * dim}]  # key and value, though one vector: engines keep it once
    assert measured[1] == [1, {"kv": window * dim, "index": 625 * 128, "compressed": 625 * dim}]
    assert measured[2] == [1, {"kv": window * dim, "compressed": 19 * dim}]
    lightning = RECORDED["models"]["minimax-text-01"]["layers"]
    assert lightning[:2] == [[1, {"kv": 2501 * 2 * 8 * 128}], [1, {}]]  # its state is outside the cache's layers


# The name of a family decides nothing that the fields decide


@pytest.mark.parametrize("name", ["Qwen--Qwen3-0.6B", "openai--gpt-oss-120b", "mimo-v2-flash", "deepseek-v4",
                                  "kimi-linear", "nvidia--Nemotron-H-56B-Base-8K", "glm-moe-dsa"])  # fmt: skip
def test_an_unknown_family_is_read_by_its_fields(name):
    fields = fields_of(name) | {"model_type": "something_new"}
    assert as_listed(read_model(fields)) == LAYOUTS[name]


def test_a_text_part_is_found_at_any_depth():
    text = fields_of("Qwen--Qwen3-0.6B")
    for wrapped in ({"llm_config": text}, {"thinker_config": {"text_config": text}}, {"language_config": text}):
        assert as_listed(read_model({"model_type": "wrapper", **wrapped})) == LAYOUTS["Qwen--Qwen3-0.6B"]


def test_entries_of_multi_token_prediction_are_left_out_and_said_so():
    model = read_model(CONFIGS / "deepseek-v4.json")
    assert model.n_layers == 43
    assert any("compress_ratios has 1 more" in note for note in model.notes)
    assert any("multi-token prediction (1) are left out" in note for note in model.notes)
    fields = fields_of("deepseek-v4") | {"num_nextn_predict_layers": 0}
    with pytest.raises(ConfigError, match="compress_ratios must have an entry for each of the 43 layers, not 44"):
        read_model(fields)


def test_what_a_file_leaves_out_is_cited():
    notes = read_model(CONFIGS / "google--gemma-3-12b-it.json").notes
    assert "head_dim = 256 is not in the file: the default of Gemma3TextConfig in transformers 5.24.0." in notes


@pytest.mark.parametrize(
    ("quantization", "dtype"),
    [
        ({"quant_method": "fp8"}, None),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, None),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "fp8"),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "int"}}, "int8"),
        ({"kv_cache_scheme": "FP8"}, "fp8"),
        ({"kv_cache_quant_algo": "NVFP4"}, "nvfp4"),
        ({"quantization": {"kv_cache_quant_algo": "FP8"}}, "fp8"),
        ({"kv_cache_quant_algo": None, "export": {"kv_cache_group": ["*k"]}}, '["*k"]'),
        ({"export": {"kv_cache_group": ["*k"]}, "layer_quant_config": {"*k": {}}}, "[]"),
        (
            {
                "export": {"kv_cache_group": ["*k"]},
                "layer_quant_config": {"*k": {"output_tensors": {"dtype": "fp8_e4m3"}}},
            },
            "fp8",
        ),
    ],
)  # fmt: skip
def test_quantised_weights_leave_the_cache_alone_unless_the_file_says_otherwise(quantization, dtype):
    fields = fields_of("meta-llama--Meta-Llama-3.1-8B") | {"quantization_config": quantization}
    assert read_model(fields).kv_dtype == dtype


def test_modelopt_says_it_in_a_file_of_its_own(tmp_path):
    (tmp_path / "config.json").write_text((CONFIGS / "Qwen--Qwen3-0.6B.json").read_text())
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {"kv_cache_quant_algo": "FP8"}}')
    assert read_model(tmp_path).kv_dtype == read_model(tmp_path / "config.json").kv_dtype == "fp8"


def test_a_window_or_chunk_that_is_null_is_none():
    scout = fields_of("meta-llama--Llama-4-Scout-17B-16E-Instruct")
    unchunked = {**scout, "text_config": scout["text_config"] | {"attention_chunk_size": None}}
    assert as_listed(read_model(unchunked)) == [("full", 48, KV128)]
    assert as_listed(read_model(fields_of("mistral") | {"sliding_window": None})) == [("full", 32, KV128)]


# Every refusal names the field


def without(name, *fields):
    """Return a file's fields without some."""
    return {field: value for field, value in fields_of(name).items() if field not in fields}


LLAMA = "meta-llama--Meta-Llama-3.1-8B"
REFUSED = {
    "num_hidden_layers": without(LLAMA, "num_hidden_layers"),
    "num_attention_heads": without(LLAMA, "num_attention_heads"),
    "hidden_size": without(LLAMA, "hidden_size"),
    "num_key_value_heads": without("Qwen--Qwen3-0.6B", "num_key_value_heads"),
    "kv_lora_rank": without("deepseek-ai--DeepSeek-V3", "kv_lora_rank"),
    "qk_rope_head_dim": without("deepseek-ai--DeepSeek-V3", "qk_rope_head_dim"),
    "sliding_window": fields_of("openai--gpt-oss-120b") | {"sliding_window": None},
    "layer_types": fields_of(LLAMA) | {"model_type": "new", "head_dim": 128, "sliding_window": 4096},
    "head_dim": fields_of(LLAMA) | {"model_type": "new"},
    "swa_num_key_value_heads": without("mimo-v2-flash", "swa_num_key_value_heads"),
    "ssm_state_size": without("nvidia--Nemotron-H-56B-Base-8K", "ssm_state_size"),
    "mamba_num_heads": without("nvidia--Nemotron-H-56B-Base-8K", "mamba_num_heads"),
    "linear_num_value_heads": without("qwen3-next", "linear_num_value_heads"),
    "hybrid_override_pattern": fields_of("nvidia--Nemotron-H-56B-Base-8K") | {"hybrid_override_pattern": "M?" * 59},
    "compress_ratios": fields_of("deepseek-v4") | {"compress_ratios": [7] * 43},
    "no_rope_layers": fields_of(LLAMA) | {"model_type": "new", "head_dim": 128, "attention_chunk_size": 8192},
    "linear_attn_config": fields_of("kimi-linear")
    | {"linear_attn_config": {"full_attn_layers": [4], "kda_layers": []}},
    "num_kv_shared_layers": fields_of("gemma3n-text") | {"num_kv_shared_layers": 35},
    "block_configs": fields_of("nemotron-nas") | {"block_configs": [{}] * 4},
    "attn_layer_indices": fields_of("bamba") | {"attn_layer_indices": [32]},
    "is_encoder_decoder": {"model_type": "bart", "num_hidden_layers": 12},
    "architectures": {"model_type": "new", "architectures": ["NewForMaskedLM"], "num_hidden_layers": 12},
    "model_type": {"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12},
    "text_config": {"model_type": "gemma3"},
    "quantization_config": fields_of(LLAMA) | {"quantization_config": "fp8"},
    "n_recurrent_loops": fields_of(LLAMA) | {"n_recurrent_loops": 2},
    "mamba_ssm_cache_dtype": fields_of("mamba2") | {"mamba_ssm_cache_dtype": "int3"},
    "attention_types": SHORT["gpt-neo-1.3b"][0] | {"attention_types": ["global"]},
    "index_head_dim": fields_of("deepseek-v32") | {"index_head_dim": None, "index_topk": 2048},
    "sparse_attention_config": fields_of("minimax-m3-text") | {"sparse_attention_config": True},
    "sparse_attention_freq": fields_of("minimax-m3-text") | {"sparse_attention_config": {}},
    "attn_config.kv_n_heads": SHORT["mpt-7b"][0] | {"attn_config": {"attn_type": "grouped_query_attention"}},
    "max_window_layers": {
        "model_type": "qwen2_moe",
        "num_hidden_layers": 24,
        "hidden_size": 2048,
        "sliding_window": 64,
        "num_attention_heads": 16,
        "use_sliding_window": True,
        "max_window_layers": 21,
    },
    "per_layer_config": fields_of(LLAMA) | {"per_layer_config": {"first": {}}},
    "kv_source_layers": SHORT["sharing by list"][0] | {"kv_source_layers": [0, 0, 3, 3]},
    "leaves no sliding layer": SHORT["layers with fields of their own"][0] | {"num_kv_shared_layers": 2},
    "mamba_d_head": fields_of("bamba") | {"mamba_d_head": "auto", "mamba_n_heads": 127},
    "block_configs.0..attention.sparsify": SHORT["nemotron-nas with windows"][0]
    | {"block_configs": [{"attention": {"mamba": {}, "sparsify": [1]}}] * 2},
    "indexer_types": SHORT["index keys by list"][0] | {"indexer_types": ["full", "half", "full"]},
    "beside compressed ones": fields_of("deepseek-v4")
    | {"compress_ratios": None, "compress_rates": {}, "layer_types": ["full_attention"] * 43},
    # What an unknown family has and the planner has never heard of
    "mixer_kinds": fields_of("Qwen--Qwen3-0.6B") | {"model_type": "new", "mixer_kinds": ["a", "b"] * 14},
    "local_attention_every": fields_of("Qwen--Qwen3-0.6B") | {"model_type": "new", "local_attention_every": 4},
}


@pytest.mark.parametrize("field", REFUSED)
def test_a_refusal_names_the_field(field, monkeypatch):
    monkeypatch.setattr("kvformulas._config._transformers_fields", lambda _: {})
    with pytest.raises(ConfigError, match=field) as caught:
        read_model(REFUSED[field])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, 1.5, "8", True, 10**7, 1e308, float("nan"), [8] * 3, {}])
@pytest.mark.parametrize("field", ["num_hidden_layers", "num_key_value_heads", "head_dim"])
def test_a_field_that_is_no_size_is_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        read_model(fields_of("Qwen--Qwen3-0.6B") | {field: value})


HOSTILE = [None, True, -1, 1.5, 1e308, "28", [], {}]


def places(fields):
    """Yield each place in a config that holds a value, as the object or list that holds it and the key."""
    for key in fields if isinstance(fields, dict) else {0, len(fields) - 1} if fields else ():
        yield fields, key
        if isinstance(fields[key], dict | list):
            yield from places(fields[key])


@pytest.mark.parametrize("name", LAYOUTS)
def test_whatever_a_field_holds_the_answer_is_a_plan_or_one_line(name):
    fields = fields_of(name)
    for holder, key in list(places(fields)):
        before = holder[key]
        for holder[key] in HOSTILE:
            try:
                plan(read_model(fields))
            except (ConfigError, PlanError) as error:
                assert "\n" not in str(error)  # noqa: PT017
        holder[key] = before


def test_an_unknown_field_of_an_unknown_family_may_be_set_aside():
    model = read_model(REFUSED["mixer_kinds"], overrides={"mixer_kinds": None})
    assert as_listed(model) == LAYOUTS["Qwen--Qwen3-0.6B"]


def test_an_unknown_kind_of_layer_is_refused_by_name():
    with pytest.raises(ConfigError, match="layer_types has 'holographic_attention', which is no known kind of layer"):
        read_model(fields_of("openai--gpt-oss-120b") | {"layer_types": ["holographic_attention"] * 36})


def test_an_override_stands_for_a_field_that_is_missing():
    fields = fields_of(LLAMA) | {"model_type": "new"}
    assert as_listed(read_model(fields, overrides={"head_dim": 128})) == LAYOUTS[LLAMA]


def test_a_missing_field_is_asked_of_transformers(monkeypatch):
    asked = []

    class Config:
        layer_types = ("full_attention", "sliding_attention")

        def get_text_config(self, decoder):
            assert decoder
            return self

        def to_dict(self):
            return {"head_dim": 64, "num_key_value_heads": 4}

        @classmethod
        def from_dict(cls, fields):
            asked.append(fields)
            return cls()

    module = types.SimpleNamespace(CONFIG_MAPPING={"new": Config})
    monkeypatch.setitem(sys.modules, "transformers", module)
    fields = {"model_type": "new", "num_hidden_layers": 2, "sliding_window": 128}
    assert as_listed(read_model({**fields, "num_key_value_heads": 4})) == [
        ("full", 1, kv(4, 64)),
        ("sliding", 1, kv(4, 64, window=128)),
    ]
    assert asked == [{**fields, "num_key_value_heads": 4}]
    module.CONFIG_MAPPING.clear()  # one that transformers does not know, either
    with pytest.raises(ConfigError, match="layer_types is missing"):
        read_model(fields)


def test_transformers_fills_in_when_it_is_there(monkeypatch):
    monkeypatch.setattr("kvformulas._config._transformers_fields", lambda _: {"head_dim": 128})
    model = read_model(fields_of(LLAMA) | {"model_type": "new"})
    assert as_listed(model) == LAYOUTS[LLAMA]
    assert any("by the installed transformers" in note for note in model.notes)
