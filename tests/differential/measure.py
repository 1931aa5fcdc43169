"""Build a config's text decoder with transformers on the meta device, run it over a prompt, and count its cache.

Meta tensors have shapes and no memory, so nothing is reduced but where a class can't run on them: those run on the CPU
with the sizes that don't influence the cache cut down.
"""

import json
import logging
import warnings

import torch
from transformers import CONFIG_MAPPING, AutoModel

logging.disable(logging.WARNING)
# What of a layer's cache counts as what. A compressor's buffers (tokens that wait for their run) are not counted.
HOLDS = {
    "keys": "kv",
    "values": "kv",
    "indexer_keys": "index",
    "idx_keys": "index",
    "conv_states": "conv",
    "recurrent_states": "state",
}
ON_CPU = {  # sizes that the cache does not depend on
    "gemma3n_text": {
        "hidden_size": 64, "intermediate_size": 64, "vocab_size": 64, "vocab_size_per_layer_input": 64,
        "hidden_size_per_layer_input": 8, "num_attention_heads": 2, "laurel_rank": 8,
    },
    "longcat_flash": {
        "hidden_size": 64, "ffn_hidden_size": 64, "expert_ffn_hidden_size": 64, "vocab_size": 64,
        "num_attention_heads": 2, "n_routed_experts": 4, "moe_topk": 2, "zero_expert_num": 2,
    },
}  # fmt: skip


STEP_BY_STEP = {"jamba", "mamba"}  # their classes go through a prompt token by token


def n_tokens(fields):
    """Return the length of the prompt: more than most windows, and no multiple of a compression ratio."""
    model_type = fields["model_type"]
    return 601 if model_type in ON_CPU else 101 if model_type in STEP_BY_STEP else 2501


def measure(fields):
    """Return, for each layer, how many elements its cache holds after the prompt, by what they are."""
    tokens = torch.zeros((1, n_tokens(fields)), dtype=torch.long)
    fields = json.loads(json.dumps(fields))
    model_type = fields["model_type"]
    fields.update(ON_CPU.get(model_type, {}))
    config = CONFIG_MAPPING[model_type].from_dict(fields).get_text_config(decoder=True)
    with warnings.catch_warnings(), torch.device("cpu" if model_type in ON_CPU else "meta"), torch.no_grad():
        warnings.simplefilter("ignore")
        model = AutoModel.from_config(config, attn_implementation="eager", dtype=torch.bfloat16).eval()
        if model_type not in ON_CPU:
            model.set_experts_implementation("batched_mm")
        output = model(input_ids=tokens.to(model.device), use_cache=True)
    cache = next(output[name] for name in ("cache", "past_key_values", "cache_params") if output.get(name) is not None)
    return [_elements(layer) for layer in cache.layers]


def _elements(layer):
    counts, seen = {}, set()
    for name, value in vars(layer).items():
        for key, tensor in value.items() if isinstance(value, dict) else [(None, value)]:
            if not isinstance(tensor, torch.Tensor) or not tensor.numel() or id(tensor) in seen:
                continue
            what = ("index" if key == "indexer" else "compressed") if name == "compressed_kv" else HOLDS.get(name)
            if what is not None:
                seen.add(id(tensor))
                counts[what] = counts.get(what, 0) + tensor.numel()
    return counts
