# The competitors' formulas in plain Python, as their user would write them: called as they are, and compiled by numba.
from math import ceil, exp, trunc


def incremental_decode_kv_append(current_len: float) -> float:
    return current_len + 1.0


def kv_cache_utilization(cached_tokens: float, max_tokens: float) -> float:
    if max_tokens <= 0.0:
        return 0.0
    return min(cached_tokens / max_tokens, 1.0)


def preemption_score(seq_priority: float, tokens_generated: float, kv_cache_tokens: float) -> float:
    restart_cost = seq_priority * (tokens_generated + 1.0)
    if restart_cost <= 0.0:
        return kv_cache_tokens
    return kv_cache_tokens / restart_cost


def draft_model_speedup(
    expected_tokens: float, target_latency_ms: float, draft_latency_ms: float, speculation_depth: float
) -> float:
    total_ms = target_latency_ms + draft_latency_ms * speculation_depth
    if total_ms <= 0.0:
        return 1.0
    return expected_tokens * target_latency_ms / total_ms


def kv_cache_memory_per_layer(
    batch_size: float, seq_len: float, n_heads: float, head_dim: float, dtype_bytes: float
) -> float:
    return 2.0 * batch_size * seq_len * n_heads * head_dim * dtype_bytes


def beam_memory_per_request(
    beam_width: float, max_seq_len: float, n_layers: float, n_heads: float, head_dim: float, dtype_bytes: float
) -> float:
    return beam_width * (2.0 * max_seq_len * n_layers * n_heads * head_dim * dtype_bytes)


def new_blocks_needed(
    computed_tokens: float,
    new_tokens: float,
    lookahead_tokens: float,
    max_model_len: float,
    block_size: float,
    held_blocks: float,
    cached_blocks: float,
) -> float:
    tokens = min(computed_tokens + new_tokens + lookahead_tokens, max_model_len)
    blocks = tokens if block_size <= 0.0 else ceil(tokens / block_size)
    return max(blocks - held_blocks - cached_blocks, 0.0)


def kv_cache_total_memory(per_layer_bytes: float, n_layers: float) -> float:
    return per_layer_bytes * n_layers


def temperature_scale(logit: float, temperature: float) -> float:
    if temperature <= 0.0:
        return logit * 1e9
    return logit / temperature


def paged_attention_block_count(seq_len: float, block_size: float) -> float:
    if block_size <= 0.0:
        return seq_len
    return float(trunc((seq_len + block_size - 1.0) / block_size))


def eta_sampling_accept(token_prob: float, entropy: float, eta: float) -> float:
    return 1.0 if token_prob >= eta * exp(-0.5 * entropy) else 0.0


def dynamic_ntk_rope_scale(seq_len: float, base_context: float, alpha: float) -> float:
    if base_context <= 0.0 or seq_len <= base_context:
        return 1.0
    return (seq_len / base_context) ** alpha
