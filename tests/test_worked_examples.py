# The worked examples that the specification pins, at Qwen3-0.6B's size, and the figures of the departures.
import math

import pytest

import kvformulas as kv


@pytest.mark.parametrize(
    ("formula", "arguments", "value"),
    [
        ("kv_cache_memory_per_layer", (1, 2048, 8, 128, 2), 8_388_608),
        ("kv_cache_total_memory", (8_388_608, 28), 234_881_024),
        ("prefix_cache_hit_bytes", (2048, 8, 128, 28, 2), 234_881_024),
        ("cache_compaction_gain", (10, 16, 2, 28, 8, 128), 9_175_040),
        ("prefix_sharing_savings", (2048, 4, 28, 8, 128, 2), 704_643_072),
        ("speculative_branch_memory", (4, 5, 28, 8, 128, 2), 2_293_760),
        ("block_copy_cost", (16, 28, 8, 128, 2, 100), 0.01835008),
        ("beam_memory_per_request", (4, 2048, 28, 8, 128, 2), 939_524_096),
        ("paged_attention_block_count", (2048, 16), 128),
        ("paged_attention_block_count", (2049, 16), 129),
        ("paged_attention_block_count", (1, 16), 1),
        ("paged_attention_block_count", (0, 16), 0),
        ("chunked_prefill_chunks", (5000, 2048), 3),
        ("radix_cache_shared_prefix_len", (10, 15, 12), 10),
        ("speculative_expected_tokens", (0.8, 4), 3.3616),
        ("draft_model_speedup", (3.3616, 50, 8, 4), 2.0497560975609757),
        ("speculative_accept_prob", (0.3, 0.5), 0.6),
        ("speculative_accept_prob", (0.5, 0.3), 1),
        ("admission_control_accept", (180, 200, 0.1), 1),
        ("admission_control_accept", (181, 200, 0.1), 0),
        ("attention_kv_bytes_per_token", (28, 8, 128, 128, 2), 114_688),
        ("attention_kv_bytes_per_token", (32, 8, 128, 128, 2), 131_072),
        ("mla_kv_bytes_per_token", (61, 512, 64, 2), 70_272),
        ("mla_kv_bytes_per_token", (61, 512, 64, 0.5), 1_151_336_448 / 65_536),
        ("quantized_head_bytes", (128, 8, 128, 4), 132),
        ("quantized_head_bytes", (128, 4, 16, 1), 72),
        ("kv_heads_per_rank", (8, 32), 1),
        ("sliding_window_blocks", (32768, 1024, 8192, 16), 577),
        ("block_waste_tokens", (10718, 16), 2),
        ("paged_attention_block_count", (10718, 16), 670),
        ("watermark_reserved_blocks", (18724, 0.02), 374),
        ("usable_prefix_hit_tokens", (64, 64, 16), 48),
        ("usable_prefix_hit_tokens", (32768, 32768, 448), 32704),
    ],
)
def test_pinned_value(formula, arguments, value):
    assert getattr(kv, formula)(*arguments) == value


def test_a_sequence_that_just_started_is_preempted_67_times_as_readily():
    assert kv.preemption_score(1, 2, 1000) / kv.preemption_score(1, 200, 1000) == 67


def test_departure_1_powers_and_series_are_accurate():
    assert kv.pow_approx(7, 1) == 7
    alpha = 1 - 2.0**-28
    # 1 + alpha + alpha**2 + alpha**3 + alpha**4, without cancellation.
    assert kv.speculative_expected_tokens(alpha, 4) == pytest.approx(math.fsum(alpha**i for i in range(5)), rel=4e-16)


def test_departure_2_negative_values_round_to_nearest():
    assert kv.kv_quantization_error(-1.375, 1, 0) == 0.375


def test_departure_3_counts_do_not_wrap():
    assert kv.paged_attention_block_count(1e19, 1) == 1e19


def test_departure_4_nan_propagates():
    assert math.isnan(kv.kv_cache_utilization(math.nan, 2))


def test_departure_5_top_p_compares_the_cumulative_probability():
    assert kv.top_p_cumulative_accept(0.5, 0.95, 0.9) == 1
    assert kv.top_p_cumulative_accept(0.95, 0.5, 0.9) == 0
