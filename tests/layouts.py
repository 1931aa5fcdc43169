# What the layers of a model keep by transformers' conventions, in elements: what the differential test measures.
import json
from pathlib import Path

CONFIGS = Path(__file__).with_name("data") / "configs"
RECORDED = json.loads((Path(__file__).with_name("data") / "cache_sizes.json").read_text())


def elements(model, n_tokens):
    """Return, for each layer, how many elements of what it keeps: a window W - 1 tokens, a convolution K columns."""
    layers = [{} for _ in range(model.n_layers)]
    for group in model.groups:
        for what, count in _kept(group, n_tokens).items():
            for layer in group.layers:
                layers[layer][what] = layers[layer].get(what, 0) + count
    return [{what: count for what, count in layer.items() if count} for layer in layers]


def _kept(group, n_tokens):
    tokens = min(n_tokens, group.window - 1) if group.window else n_tokens
    if group.compress_ratio:
        tokens = n_tokens // group.compress_ratio
    if group.kv_lora_rank:
        return {"kv": tokens * (group.kv_lora_rank + group.qk_rope_head_dim)}
    if group.index_head_dim:
        return {"index": tokens * group.index_head_dim}
    if group.kv_heads:
        what = "compressed" if group.compress_ratio else "kv"
        return {what: tokens * group.kv_heads * (group.k_head_dim + group.v_head_dim)}
    states = sum(state.heads * state.head_dim * state.state_size for state in group.states)
    convs = sum((conv.columns + 1) * sum(heads * dim for heads, dim in conv.parts) for conv in group.convs)
    return {"state": states, "conv": convs}


def runs(layers):
    """Write a list of layers as runs of equal ones."""
    written = []
    for layer in layers:
        if written and written[-1][1] == layer:
            written[-1][0] += 1
        else:
            written.append([1, layer])
    return written
