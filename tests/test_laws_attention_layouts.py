# Laws of the attention layouts: two or more a formula, to the bit unless a rounding has a say.
from hypothesis import assume
from hypothesis import strategies as st

import kvformulas as kv
from test_laws import (
    ascending,
    count,
    finite,
    law,
    positive,
    power_of_two,
    same,
    several,
    size,
    small,
    whole,
    whole_size,
)

dim = st.integers(1, 2**13)


@law(args=several(4, small), extra=small)
def test_keys_and_values_weigh_alike(args, extra):
    layers, heads, width, key = args
    total = kv.attention_kv_bytes_per_token(layers, heads, key, extra, width)
    assert total == kv.attention_kv_bytes_per_token(layers, heads, extra, key, width)
    assert total == kv.attention_kv_bytes_per_token(layers, heads, key + extra, 0, width)


@law(args=several(4, small))
def test_a_token_with_equal_keys_and_values_is_the_old_product(args):
    layers, heads, head_dim, width = args
    layer = kv.kv_cache_memory_per_layer(1, 1, heads, head_dim, width)
    total = kv.attention_kv_bytes_per_token(layers, heads, head_dim, head_dim, width)
    assert total == kv.kv_cache_total_memory(layer, layers)


@law(layers=small, rank=small, rope=small, width=small)
def test_a_latent_is_one_head_that_stores_keys_alone(layers, rank, rope, width):
    latent = kv.mla_kv_bytes_per_token(layers, rank, rope, width)
    assert latent == kv.attention_kv_bytes_per_token(layers, 1, rank, rope, width)


@law(layers=positive, rank=positive, rope=positive, width=positive, factor=power_of_two)
def test_a_latent_scales_with_layers_and_with_its_parts(layers, rank, rope, width, factor):
    latent = kv.mla_kv_bytes_per_token(layers, rank, rope, width)
    assert kv.mla_kv_bytes_per_token(layers * factor, rank, rope, width) == factor * latent
    assert kv.mla_kv_bytes_per_token(layers, rank * factor, rope * factor, width) == factor * latent


@law(seq=ascending(finite), window=positive)
def test_a_window_is_monotone_and_never_exceeded(seq, window):
    shorter, longer = (kv.sliding_window_tokens(x, window) for x in seq)
    assert shorter <= longer <= window
    assert kv.sliding_window_tokens(longer, window) == longer


@law(seq=finite, none=st.floats(-1e60, 0))
def test_no_window_is_the_whole_sequence(seq, none):
    assert same(kv.sliding_window_tokens(seq, none), seq)


@law(seq=whole_size, chunk=whole_size)
def test_a_chunk_starts_again_when_it_is_full(seq, chunk):
    seen = kv.chunked_attention_tokens(seq, chunk)
    assert 1 <= seen <= chunk
    assert (seq - int(seen)) % chunk == 0
    assert seen <= kv.sliding_window_tokens(seq, chunk)


@law(seq=size, chunk=size)
def test_the_next_token_sees_one_more_or_itself(seq, chunk):
    seen, then = (kv.chunked_attention_tokens(n, chunk) for n in (seq, seq + 1))
    assert then == (1 if seen == chunk else seen + 1)


@law(seq=st.floats(1, 1e300), chunk=st.floats(1, 1e300), factor=st.integers(0, 30).map(lambda n: 2.0**n))
def test_the_last_chunk_holds_less_than_a_chunk_and_a_token(seq, chunk, factor):
    assert 1 <= kv.chunked_attention_tokens(seq, chunk) <= chunk + 1
    assert kv.chunked_attention_tokens(seq, chunk * factor) <= seq


@law(args=several(5, small))
def test_a_state_is_a_product_in_any_order(args):
    layers, heads, head_dim, state, width = args
    total = kv.recurrent_state_bytes(*args)
    assert total == kv.recurrent_state_bytes(width, state, head_dim, heads, layers)
    assert total == kv.conv_state_bytes(layers, heads * head_dim, state, width)


@law(layers=small, channels=small, columns=small, width=small)
def test_a_column_more_costs_every_channel(layers, channels, columns, width):
    grown = kv.conv_state_bytes(layers, channels, columns + 1, width) - kv.conv_state_bytes(
        layers, channels, columns, width
    )
    assert grown == kv.recurrent_state_bytes(layers, channels, 1, 1, width)


@law(head_dim=dim, bits=st.integers(1, 32), group=size, scale=small)
def test_scales_come_by_the_group(head_dim, bits, group, scale):
    total = kv.quantized_head_bytes(head_dim, bits, group, scale)
    groups = kv.paged_attention_block_count(head_dim, group)
    assert total == head_dim * bits / 8 + groups * scale
    assert total == kv.quantized_head_bytes(head_dim, bits, group, 0) + groups * scale


@law(head_dim=dim, bits=st.integers(1, 32), group=ascending(size), scale=small)
def test_larger_groups_cost_less_and_one_group_least(head_dim, bits, group, scale):
    fine, coarse = (kv.quantized_head_bytes(head_dim, bits, g, scale) for g in group)
    assert fine >= coarse >= kv.quantized_head_bytes(head_dim, bits, 0, scale)
    whole_vector = kv.quantized_head_bytes(head_dim, bits, head_dim, scale)
    assert whole_vector == kv.quantized_head_bytes(head_dim, bits, 0, scale)


@law(heads=whole_size, ranks=whole_size)
def test_ranks_hold_all_heads_and_none_is_idle(heads, ranks):
    each = int(kv.kv_heads_per_rank(heads, ranks))
    assert each * ranks >= heads
    assert each == 1 or (each - 1) * ranks < heads


@law(heads=ascending(finite), ranks=ascending(positive))
def test_a_rank_holds_more_of_more_heads_and_less_of_more_ranks(heads, ranks):
    held = kv.kv_heads_per_rank
    assert 1 <= held(heads[0], ranks[0]) <= held(heads[1], ranks[0])
    assert held(max(heads[1], 0), ranks[1]) <= held(max(heads[1], 0), ranks[0])


@law(seq=whole, window=whole_size, batched=whole, block=whole_size)
def test_a_window_takes_a_block_more_than_its_tokens(seq, window, batched, block):
    assume(0 < window - 1 + batched <= 2**53)
    tokens = kv.sliding_window_tokens(seq, window - 1 + batched)
    blocks = kv.sliding_window_blocks(seq, window, batched, block)
    assert blocks == kv.paged_attention_block_count(tokens, block) + 1


@law(seq=ascending(count), window=ascending(size), batched=ascending(count), block=ascending(size))
def test_window_blocks_are_monotone(seq, window, batched, block):
    blocks = kv.sliding_window_blocks
    most = blocks(seq[1], window[1], batched[1], block[0])
    assert most >= blocks(seq[0], window[1], batched[1], block[0])
    assert most >= blocks(seq[1], window[0], batched[1], block[0])
    assert most >= blocks(seq[1], window[1], batched[0], block[0])
    assert most >= blocks(seq[1], window[1], batched[1], block[1])


@law(seq=st.integers(0, 2**52), block=st.integers(1, 2**52))
def test_blocks_hold_the_tokens_and_the_waste(seq, block):
    waste = kv.block_waste_tokens(seq, block)
    assert 0 <= waste < block
    assert kv.paged_attention_block_count(seq, block) * block == seq + waste


@law(seq=st.floats(0, 1e300), block=st.floats(1e-300, 1e300), factor=power_of_two)
def test_waste_is_less_than_a_block_and_has_the_unit_of_its_tokens(seq, block, factor):
    assert 0 <= kv.block_waste_tokens(seq, block) <= block
    assume(block > 1e-200 and (seq == 0 or seq > 1e-200) and max(seq, block) < 1e200)
    assert kv.block_waste_tokens(seq * factor, block * factor) == factor * kv.block_waste_tokens(seq, block)


@law(total=positive, each=positive, factor=power_of_two)
def test_concurrency_has_no_unit(total, each, factor):
    assert kv.max_concurrency(total * factor, each * factor) == kv.max_concurrency(total, each)


@law(total=whole, each=whole_size)
def test_whole_requests_at_once_are_the_batch_size(total, each):
    requests = kv.max_concurrency(total, each)
    assert requests // 1 == kv.iteration_level_batch_size(total, each)
    assert (requests >= 1) == (total >= each)
