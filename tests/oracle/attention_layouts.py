# What a token costs by attention layout: full, latent, windowed, chunked, recurrent, quantised, split: the definitions.
# ruff: noqa: ARG001  a definition takes the context and the contract's arguments, whether it reads them or not
from oracle.context import least, truncated, unknown


def attention_kv_bytes_per_token(mp, n_layers, n_kv_heads, k_head_dim, v_head_dim, dtype_bytes):
    return n_layers * n_kv_heads * (k_head_dim + v_head_dim) * dtype_bytes


def mla_kv_bytes_per_token(mp, n_layers, kv_lora_rank, qk_rope_head_dim, dtype_bytes):
    return n_layers * (kv_lora_rank + qk_rope_head_dim) * dtype_bytes


def sliding_window_tokens(mp, seq_len, window):
    if window <= 0:
        return seq_len
    return least(mp, seq_len, window)


def chunked_attention_tokens(mp, seq_len, chunk):
    if seq_len <= 0:
        return mp.zero
    if chunk <= 0:
        return seq_len
    if chunk == mp.inf and seq_len < mp.inf:
        return seq_len
    before = seq_len - 1
    return before - truncated(mp, before / chunk) * chunk + 1


def recurrent_state_bytes(mp, n_layers, n_heads, head_dim, state_size, dtype_bytes):
    return n_layers * n_heads * head_dim * state_size * dtype_bytes


def conv_state_bytes(mp, n_layers, channels, columns, dtype_bytes):
    return n_layers * channels * columns * dtype_bytes


def quantized_head_bytes(mp, head_dim, bits, group_size, scale_bytes):
    groups = mp.one if group_size <= 0 else mp.ceil(head_dim / group_size)
    return head_dim * bits / 8 + groups * scale_bytes


def kv_heads_per_rank(mp, n_kv_heads, tensor_parallel):
    if tensor_parallel <= 0:
        return n_kv_heads
    heads = mp.ceil(n_kv_heads / tensor_parallel)
    return heads if unknown(heads) or heads > 1 else mp.one


def sliding_window_blocks(mp, seq_len, window, max_batched_tokens, block_size):
    tokens = least(mp, window - 1 + max_batched_tokens, seq_len)
    if block_size <= 0:
        return tokens
    return mp.ceil(tokens / block_size) + 1


def block_waste_tokens(mp, seq_len, block_size):
    if block_size <= 0:
        return mp.zero
    return mp.ceil(seq_len / block_size) * block_size - seq_len


def max_concurrency(mp, total_blocks, blocks_per_request):
    if blocks_per_request <= 0:
        return mp.zero
    return total_blocks / blocks_per_request


EXAMPLES = [
    (attention_kv_bytes_per_token, (28, 8, 128, 128, 2), 114688),
    (attention_kv_bytes_per_token, (2, 3, 5, 7, 11), 792),
    (mla_kv_bytes_per_token, (61, 512, 64, 2), 70272),
    (sliding_window_tokens, (10, 4), 4),
    (sliding_window_tokens, (3, 4), 3),
    (sliding_window_tokens, (10, 0), 10),
    (chunked_attention_tokens, (8192, 8192), 8192),
    (chunked_attention_tokens, (8193, 8192), 1),
    (chunked_attention_tokens, (7, 0), 7),
    (chunked_attention_tokens, (0, 4), 0),
    (chunked_attention_tokens, (4.5, 4), 4.5),
    (recurrent_state_bytes, (64, 80, 64, 128, 2), 83886080),
    (conv_state_bytes, (64, 5376, 3, 2), 2064384),
    (quantized_head_bytes, (128, 8, 128, 4), 132),
    (quantized_head_bytes, (128, 4, 16, 1), 72),
    (quantized_head_bytes, (80, 4, 32, 2), 46),
    (quantized_head_bytes, (80, 4, 0, 2), 42),
    (kv_heads_per_rank, (8, 32), 1),
    (kv_heads_per_rank, (8, 3), 3),
    (kv_heads_per_rank, (8, 0), 8),
    (sliding_window_blocks, (32768, 1024, 8192, 16), 577),
    (sliding_window_blocks, (100, 1024, 8192, 0), 100),
    (block_waste_tokens, (10718, 16), 2),
    (block_waste_tokens, (16, 16), 0),
    (block_waste_tokens, (16, 0), 0),
    (max_concurrency, (3, 2), 1.5),
    (max_concurrency, (3, 0), 0),
]
