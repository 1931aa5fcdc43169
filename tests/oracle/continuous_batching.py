# One iteration of a continuous-batching scheduler: admit, size, preempt, chunk, and its rates: the definitions.
# ruff: noqa: ARG001  a definition takes the context and the contract's arguments, whether it reads them or not
from oracle.context import least, truncated


def admission_control_accept(mp, request_kv_tokens, available_kv_tokens, safety_margin):
    return mp.one if request_kv_tokens <= available_kv_tokens * (1 - safety_margin) else mp.zero


def iteration_level_batch_size(mp, available_kv_tokens, avg_seq_remaining):
    if avg_seq_remaining <= 0:
        return mp.zero
    return truncated(mp, available_kv_tokens / avg_seq_remaining)


def preemption_score(mp, seq_priority, tokens_generated, kv_cache_tokens):
    restart_cost = seq_priority * (tokens_generated + 1)
    if restart_cost <= 0:
        return kv_cache_tokens
    return kv_cache_tokens / restart_cost


def chunked_prefill_chunks(mp, prompt_len, chunk_size):
    if chunk_size <= 0:
        return mp.one
    return truncated(mp, (prompt_len + chunk_size - 1) / chunk_size)


def decode_throughput_tokens(mp, batch_size, decode_latency_ms):
    if decode_latency_ms <= 0:
        return mp.zero
    return batch_size * 1000 / decode_latency_ms


def streaming_first_token_latency(mp, prompt_len, prefill_throughput_tps):
    if prefill_throughput_tps <= 0:
        return mp.zero
    return prompt_len / prefill_throughput_tps


def head_of_line_blocking_score(mp, longest_wait_ms, avg_wait_ms):
    if avg_wait_ms <= 0:
        return mp.one
    return longest_wait_ms / avg_wait_ms


def batching_efficiency(mp, actual_compute, theoretical_max_compute):
    if theoretical_max_compute <= 0:
        return mp.zero
    return least(mp, mp.one, actual_compute / theoretical_max_compute)


def sequence_completion_fraction(mp, completed, total_running):
    if total_running <= 0:
        return mp.zero
    return completed / total_running


def beam_memory_per_request(mp, beam_width, max_seq_len, n_layers, n_heads, head_dim, dtype_bytes):
    beam_bytes = 2 * max_seq_len * n_layers * n_heads * head_dim * dtype_bytes
    return beam_width * beam_bytes


# The double 0.1 is a little above a tenth, so that 180 of 200 at a margin of 0.1 is, exactly, a little too much: the
# kernel's answer 1 there is the roundings' doing, within what comparison.py allows.
EXAMPLES = [
    (admission_control_accept, (180, 200, 0.1), 0),
    (admission_control_accept, (179, 200, 0.1), 1),
    (admission_control_accept, (181, 200, 0.1), 0),
    (admission_control_accept, (150, 200, 0.25), 1),
    (iteration_level_batch_size, (1000, 300), 3),
    (iteration_level_batch_size, (1000, 0), 0),
    (preemption_score, (1, 2, 201), 67),
    (preemption_score, (0, 2, 201), 201),
    (chunked_prefill_chunks, (5000, 2048), 3),
    (chunked_prefill_chunks, (5000, 0), 1),
    (decode_throughput_tokens, (32, 20), 1600),
    (decode_throughput_tokens, (32, 0), 0),
    (streaming_first_token_latency, (512, 1024), 0.5),
    (streaming_first_token_latency, (512, 0), 0),
    (head_of_line_blocking_score, (90, 30), 3),
    (head_of_line_blocking_score, (90, 0), 1),
    (batching_efficiency, (3, 4), 0.75),
    (batching_efficiency, (5, 4), 1),
    (batching_efficiency, (5, 0), 0),
    (sequence_completion_fraction, (3, 2), 1.5),
    (sequence_completion_fraction, (3, 0), 0),
    (beam_memory_per_request, (4, 2048, 28, 8, 128, 2), 939524096),
]
