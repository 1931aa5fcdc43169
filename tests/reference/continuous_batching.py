# One iteration of a continuous-batching scheduler: admit, size, preempt, chunk, and its rates, by another route.
from math import prod

from reference.exact import whole_part


def admission_control_accept(request_kv_tokens, available_kv_tokens, safety_margin):
    return int(request_kv_tokens + safety_margin * available_kv_tokens <= available_kv_tokens)


def iteration_level_batch_size(available_kv_tokens, avg_seq_remaining):
    return whole_part(available_kv_tokens * (1 / avg_seq_remaining)) if avg_seq_remaining > 0 else 0


def preemption_score(seq_priority, tokens_generated, kv_cache_tokens):
    restarted = tokens_generated + 1
    if (seq_priority > 0 and restarted > 0) or (seq_priority < 0 and restarted < 0):
        return kv_cache_tokens / seq_priority / restarted
    return kv_cache_tokens


def chunked_prefill_chunks(prompt_len, chunk_size):
    return whole_part(1 + (prompt_len - 1) / chunk_size) if chunk_size > 0 else 1


def decode_throughput_tokens(batch_size, decode_latency_ms):
    return batch_size / (decode_latency_ms / 1000) if decode_latency_ms > 0 else 0


def streaming_first_token_latency(prompt_len, prefill_throughput_tps):
    return prompt_len * (1 / prefill_throughput_tps) if prefill_throughput_tps > 0 else 0


def head_of_line_blocking_score(longest_wait_ms, avg_wait_ms):
    return 1 if avg_wait_ms <= 0 else longest_wait_ms / avg_wait_ms


def batching_efficiency(actual_compute, theoretical_max_compute):
    if theoretical_max_compute > 0:
        return actual_compute / theoretical_max_compute if actual_compute < theoretical_max_compute else 1
    return 0


def sequence_completion_fraction(completed, total_running):
    return completed * (1 / total_running) if total_running > 0 else 0


def beam_memory_per_request(*sizes):
    return 2 * prod(sizes)
