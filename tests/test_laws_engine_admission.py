# Laws of what engines decide: two or more a formula, to the bit unless a rounding has a say.
import math

from hypothesis import assume
from hypothesis import strategies as st

import kvformulas as kv
from test_laws import ascending, close, count, finite, law, positive, power_of_two, probability, size, whole, whole_size

blocks = st.integers(0, 2**40)


@law(total=ascending(st.floats(0, 1e300)), watermark=ascending(probability))
def test_a_watermark_is_whole_monotone_and_at_most_all(total, watermark):
    reserved = kv.watermark_reserved_blocks
    low, high = reserved(total[0], watermark[0]), reserved(total[1], watermark[1])
    assert low <= reserved(total[0], watermark[1]) <= high <= total[1]
    assert low == math.trunc(low)


@law(total=count, watermark=probability)
def test_a_watermark_drops_the_fraction_as_python_does(total, watermark):
    assert kv.watermark_reserved_blocks(total, watermark) == int(total * watermark)
    assert kv.watermark_reserved_blocks(-total, watermark) == -int(total * watermark)


@law(needed=blocks, free=blocks, reserved=blocks, total=blocks, watermark=probability)
def test_a_watermark_is_a_number_of_blocks(needed, free, reserved, total, watermark):
    mark = kv.watermark_reserved_blocks(total, watermark)
    accepted = kv.watermark_admission_accept(needed, free, reserved, total, watermark)
    assert accepted == (needed + mark + reserved <= free)
    assert accepted == kv.watermark_admission_accept(needed + mark, free, reserved, total, 0)


@law(needed=ascending(blocks), free=ascending(blocks), reserved=ascending(blocks), watermark=ascending(probability))
def test_watermark_admission_is_monotone(needed, free, reserved, watermark):
    gate, total = kv.watermark_admission_accept, 18724
    strictest = gate(needed[1], free[0], reserved[1], total, watermark[1])
    assert strictest <= gate(needed[0], free[0], reserved[1], total, watermark[1])
    assert strictest <= gate(needed[1], free[1], reserved[1], total, watermark[1])
    assert strictest <= gate(needed[1], free[0], reserved[0], total, watermark[1])
    assert strictest <= gate(needed[1], free[0], reserved[1], total, watermark[0])


@law(needed=blocks, reserved=blocks, lent=blocks)
def test_a_promised_block_is_not_free(needed, reserved, lent):
    gate = kv.watermark_admission_accept
    assert gate(needed, 1000 + lent, reserved + lent, 1000, 0.1) == gate(needed, 1000, reserved, 1000, 0.1)


@law(computed=blocks, new=blocks, lookahead=blocks, limit=blocks, block=size, held=count)
def test_new_blocks_and_held_ones_cover_the_tokens(computed, new, lookahead, limit, block, held):
    missing = kv.new_blocks_needed(computed, new, lookahead, limit, block, held, 0)
    all_blocks = kv.paged_attention_block_count(min(computed + new + lookahead, limit), block)
    assert missing == max(0, all_blocks - held)
    assert kv.new_blocks_needed(computed, new, lookahead, limit, block, held + missing, 0) == 0


@law(computed=blocks, new=blocks, lookahead=blocks, limit=blocks, block=size, held=count, cached=count)
def test_what_is_there_and_what_is_stored_may_be_shared_out_anyhow(
    computed, new, lookahead, limit, block, held, cached
):
    missing = kv.new_blocks_needed(computed, new, lookahead, limit, block, held, cached)
    assert missing == kv.new_blocks_needed(lookahead, computed, new, limit, block, cached, held)
    assert missing == kv.new_blocks_needed(computed + new + lookahead, 0, 0, limit, block, held + cached, 0)


@law(tokens=count, new=size, block=size)
def test_a_step_opens_the_blocks_that_its_tokens_reach(tokens, new, block):
    held = kv.paged_attention_block_count(tokens, block)
    opened = kv.new_blocks_needed(tokens, new, 0, 10**9, block, held, 0)
    assert opened == kv.paged_attention_block_count(tokens + new, block) - held


@law(prompt=whole_size, cached=whole, block=whole_size)
def test_a_usable_hit_is_whole_blocks_cached_and_short_of_the_prompt(prompt, cached, block):
    usable = int(kv.usable_prefix_hit_tokens(prompt, cached, block))
    assert usable % block == 0
    assert usable <= min(cached, prompt - 1) < usable + block


@law(prompt=size, cached=count, block=size)
def test_a_token_behind_the_hit_makes_it_usable_whole(prompt, cached, block):
    full = cached // block * block
    assert kv.usable_prefix_hit_tokens(full + 1, full, block) == full
    assert kv.usable_prefix_hit_tokens(prompt, cached, 1) == kv.usable_prefix_hit_tokens(prompt, cached, 0)


@law(limit=ascending(count), clip=ascending(count), ratio=ascending(probability))
def test_a_reserve_grows_with_limit_clip_and_ratio(limit, clip, ratio):
    reserve = kv.decode_growth_reserve
    least = reserve(limit[0], 0, clip[0], ratio[0])
    assert least <= reserve(limit[1], 0, clip[0], ratio[0])
    assert least <= reserve(limit[0], 0, clip[1], ratio[0])
    assert least <= reserve(limit[0], 0, clip[0], ratio[1])


@law(rest=count, generated=count, clip=count, ratio=probability)
def test_a_reserve_depends_on_what_is_left(rest, generated, clip, ratio):
    reserve = kv.decode_growth_reserve(rest + generated, generated, clip, ratio)
    assert reserve == kv.decode_growth_reserve(rest, 0, clip, ratio)
    assert reserve == kv.prefill_step_tokens(rest, clip, 0) * ratio


@law(reserved=finite, request_=finite, slots=finite)
def test_orca_adds_in_either_order(reserved, request_, slots):
    accepted = kv.orca_admission_accept(reserved, request_, slots)
    assert accepted == kv.orca_admission_accept(request_, reserved, slots)
    assert accepted == kv.admission_control_accept(reserved + request_, slots, 0)


@law(reserved=ascending(finite), request_=ascending(finite), slots=ascending(finite))
def test_orca_is_monotone(reserved, request_, slots):
    gate = kv.orca_admission_accept
    assert gate(reserved[1], request_[1], slots[0]) <= gate(reserved[0], request_[0], slots[1])


@law(remaining=finite, budget=finite, threshold=positive)
def test_a_step_takes_the_least_in_any_order(remaining, budget, threshold):
    step = kv.prefill_step_tokens(remaining, budget, threshold)
    assert step == kv.prefill_step_tokens(budget, remaining, threshold) == min(remaining, budget, threshold)


@law(remaining=finite, budget=finite, none=st.floats(-1e60, 0))
def test_no_threshold_is_an_infinite_one(remaining, budget, none):
    unlimited = kv.prefill_step_tokens(remaining, budget, math.inf)
    assert kv.prefill_step_tokens(remaining, budget, none) == unlimited


@law(remaining=whole, cap=whole, unit=whole_size)
def test_a_chunk_is_the_rest_or_whole_units(remaining, cap, unit):
    chunk = int(kv.aligned_chunk_tokens(remaining, cap, unit))
    assert chunk <= min(remaining, cap)
    assert chunk == remaining or (chunk % unit == 0 and cap - chunk < unit)


@law(remaining=count, cap=count, unit=size)
def test_aligning_loses_less_than_a_unit_and_nothing_without_one(remaining, cap, unit):
    plain = kv.prefill_step_tokens(remaining, cap, 0)
    assert 0 <= plain - kv.aligned_chunk_tokens(remaining, cap, unit) < unit
    assert kv.aligned_chunk_tokens(remaining, cap, 1) == plain == kv.aligned_chunk_tokens(remaining, cap, 0)


@law(prompt=whole, chunk=whole_size)
def test_without_a_cache_the_chunks_are_the_static_ones(prompt, chunk):
    assert kv.uncached_prefill_chunks(prompt, 0, chunk) == kv.chunked_prefill_chunks(prompt, chunk)
    assert kv.uncached_prefill_chunks(prompt, prompt, chunk) == 0


@law(prompt=count, cached=ascending(count), chunk=size)
def test_a_hit_saves_chunks_one_by_one(prompt, cached, chunk):
    more, fewer = (kv.uncached_prefill_chunks(prompt, hit, chunk) for hit in cached)
    assert more >= fewer
    assert kv.uncached_prefill_chunks(prompt, cached[0] + chunk, chunk) == more - 1


@law(waited=ascending(st.floats(0, 1e60)), work=ascending(positive))
def test_a_ratio_grows_with_the_wait_and_falls_with_the_work(waited, work):
    ratio = kv.response_ratio
    assert 1 <= ratio(waited[0], work[1]) <= ratio(waited[1], work[1]) <= ratio(waited[1], work[0])


@law(waited=positive, work=positive, factor=power_of_two)
def test_a_ratio_has_no_unit_and_no_work_counts_as_one_token(waited, work, factor):
    assert kv.response_ratio(waited * factor, work * factor) == kv.response_ratio(waited, work)
    assert kv.response_ratio(waited, 0) == kv.response_ratio(waited, 1)


@law(queue=finite, transfer=finite, tokens=finite, rate=positive)
def test_the_first_token_waits_for_its_three_parts(queue, transfer, tokens, rate):
    total = kv.time_to_first_token(queue, transfer, tokens, rate)
    assert total == queue + transfer + kv.streaming_first_token_latency(tokens, rate)
    assert total == kv.time_to_first_token(transfer, queue, tokens, rate)
    assert kv.time_to_first_token(0, 0, tokens, rate) == kv.streaming_first_token_latency(tokens, rate)


@law(queue=ascending(positive), transfer=ascending(positive), tokens=ascending(positive), rate=ascending(positive))
def test_the_first_token_is_later_for_more_of_anything_and_a_lower_rate(queue, transfer, tokens, rate):
    soonest = kv.time_to_first_token(queue[0], transfer[0], tokens[0], rate[1])
    assert soonest <= kv.time_to_first_token(queue[1], transfer[1], tokens[1], rate[0])


@law(first=st.integers(0, 1000), pace=st.integers(0, 1000), tokens=size)
def test_the_pace_times_the_tokens_behind_the_first_is_the_time_behind_it(first, pace, tokens):
    assume(tokens > 1)
    assert kv.time_per_output_token(first + pace * (tokens - 1), first, tokens) == pace
    rate = kv.decode_throughput_tokens(1, 1000 * kv.time_per_output_token(first + pace * (tokens - 1), first, tokens))
    assert close(rate * pace, 1 if pace else 0, 2)


@law(end=finite, first=finite, tokens=st.floats(1.5, 1e60))
def test_the_pace_is_odd_in_the_times(end, first, tokens):
    assert kv.time_per_output_token(end, first, tokens) == -kv.time_per_output_token(first, end, tokens)


@law(rate=positive, latency=positive, factor=power_of_two)
def test_littles_law_has_no_unit_of_time(rate, latency, factor):
    assert kv.concurrency(rate * factor, latency / factor) == kv.concurrency(rate, latency)
    assert kv.concurrency(rate, latency) == kv.concurrency(latency, rate)


@law(rate=count, queue=count, service=count)
def test_the_system_is_its_queue_and_its_batch(rate, queue, service):
    assert kv.concurrency(rate, queue + service) == kv.concurrency(rate, queue) + kv.concurrency(rate, service)
