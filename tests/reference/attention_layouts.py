# What a token costs by attention layout: full, latent, windowed, chunked, recurrent, quantised, by another route.
from math import prod

from reference.exact import ceiling, whole_part


def attention_kv_bytes_per_token(n_layers, n_kv_heads, k_head_dim, v_head_dim, dtype_bytes):
    shared = n_layers * n_kv_heads * dtype_bytes
    return shared * k_head_dim + shared * v_head_dim


def mla_kv_bytes_per_token(n_layers, kv_lora_rank, qk_rope_head_dim, dtype_bytes):
    return dtype_bytes * n_layers * qk_rope_head_dim + dtype_bytes * n_layers * kv_lora_rank


def sliding_window_tokens(seq_len, window):
    return window if 0 < window < seq_len else seq_len


def chunked_attention_tokens(seq_len, chunk):
    if not seq_len > 0:
        return 0
    return seq_len - chunk * whole_part((seq_len - 1) / chunk) if chunk > 0 else seq_len


def recurrent_state_bytes(*sizes):
    return prod(sizes)


def conv_state_bytes(*sizes):
    return prod(sizes)


def quantized_head_bytes(head_dim, bits, group_size, scale_bytes):
    scales = scale_bytes * (ceiling(head_dim / group_size) if group_size > 0 else 1)
    return (head_dim * bits + 8 * scales) / 8


def kv_heads_per_rank(n_kv_heads, tensor_parallel):
    if tensor_parallel > 0:
        return ceiling(n_kv_heads / tensor_parallel) if n_kv_heads > tensor_parallel else 1
    return n_kv_heads


def sliding_window_blocks(seq_len, window, max_batched_tokens, block_size):
    tokens = sorted([window + max_batched_tokens - 1, seq_len])[0]
    return ceiling((tokens + block_size) / block_size) if block_size > 0 else tokens


def block_waste_tokens(seq_len, block_size):
    return block_size * ceiling(seq_len / block_size) - seq_len if block_size > 0 else 0


def max_concurrency(total_blocks, blocks_per_request):
    return total_blocks * (1 / blocks_per_request) if blocks_per_request > 0 else 0
