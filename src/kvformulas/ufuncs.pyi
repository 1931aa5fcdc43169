# The formulas as NumPy ufuncs, by the names of the scalar functions.
from typing import Final

from numpy import ufunc

__all__ = [
    "kv_cache_memory_per_layer",
    "kv_cache_total_memory",
    "kv_cache_utilization",
    "kv_eviction_score_lru",
    "kv_eviction_score_h2o",
    "radix_cache_shared_prefix_len",
    "prefix_cache_hit_bytes",
    "kv_quantization_error",
    "paged_attention_block_count",
    "incremental_decode_kv_append",
    "page_table_lookup",
    "cache_compaction_gain",
    "block_copy_cost",
    "prefix_sharing_savings",
    "speculative_branch_memory",
    "cache_eviction_lru_score",
    "cache_eviction_beladys_score",
    "cache_hit_latency_saving",
    "dynamic_ntk_rope_scale",
    "context_extension_factor",
    "temperature_scale",
    "top_k_threshold",
    "top_p_cumulative",
    "min_p_threshold",
    "repetition_penalty_scale",
    "token_frequency_penalty",
    "beam_score_update",
    "length_penalty",
    "pow_approx",
    "typical_p_score",
    "greedy_token_id",
    "temperature_logit_scale",
    "top_k_accept",
    "top_p_cumulative_accept",
    "min_p_accept",
    "repetition_penalty_logit",
    "frequency_penalty_logit",
    "presence_penalty_logit",
    "typical_sampling_accept",
    "eta_sampling_accept",
    "eos_stop_score",
    "speculative_accept_prob",
    "speculative_expected_tokens",
    "draft_model_speedup",
    "medusa_head_acceptance",
    "json_grammar_logit_mask",
    "constrained_beam_score",
    "structured_repair_score",
    "contrastive_decode_score",
    "token_healing_overlap",
    "watermark_green_list_bias",
    "admission_control_accept",
    "iteration_level_batch_size",
    "preemption_score",
    "chunked_prefill_chunks",
    "decode_throughput_tokens",
    "streaming_first_token_latency",
    "head_of_line_blocking_score",
    "batching_efficiency",
    "sequence_completion_fraction",
    "beam_memory_per_request",
    "attention_kv_bytes_per_token",
    "mla_kv_bytes_per_token",
    "sliding_window_tokens",
    "chunked_attention_tokens",
    "recurrent_state_bytes",
    "conv_state_bytes",
    "quantized_head_bytes",
    "kv_heads_per_rank",
    "sliding_window_blocks",
    "block_waste_tokens",
    "max_concurrency",
    "watermark_reserved_blocks",
    "watermark_admission_accept",
    "new_blocks_needed",
    "usable_prefix_hit_tokens",
    "decode_growth_reserve",
    "orca_admission_accept",
    "prefill_step_tokens",
    "aligned_chunk_tokens",
    "uncached_prefill_chunks",
    "response_ratio",
    "time_to_first_token",
    "time_per_output_token",
    "concurrency",
    "mean_acceptance_length",
    "expected_accepted_tokens",
    "acceptance_rate_from_counts",
    "speculative_walltime_speedup",
    "speculative_operations_factor",
    "break_even_acceptance",
    "best_speculation_depth",
    "residual_weight",
    "medusa_typical_threshold",
    "eta_cutoff",
    "epsilon_sampling_accept",
    "length_normalized_score",
    "contrastive_plausible_accept",
    "watermark_green_list_size",
    "watermark_z_score",
    "top_n_sigma_accept",
    "dynamic_temperature",
    "gumbel_max_score",
    "mirostat_mu_update",
    "rope_inverse_frequency",
    "ntk_rope_base",
    "dynamic_ntk_rope_base",
    "llama3_rope_frequency",
    "yarn_attention_factor",
    "yarn_correction_dim",
    "yarn_ramp",
    "longrope_attention_factor",
]

kv_cache_memory_per_layer: Final[ufunc]
kv_cache_total_memory: Final[ufunc]
kv_cache_utilization: Final[ufunc]
kv_eviction_score_lru: Final[ufunc]
kv_eviction_score_h2o: Final[ufunc]
radix_cache_shared_prefix_len: Final[ufunc]
prefix_cache_hit_bytes: Final[ufunc]
kv_quantization_error: Final[ufunc]
paged_attention_block_count: Final[ufunc]
incremental_decode_kv_append: Final[ufunc]
page_table_lookup: Final[ufunc]
cache_compaction_gain: Final[ufunc]
block_copy_cost: Final[ufunc]
prefix_sharing_savings: Final[ufunc]
speculative_branch_memory: Final[ufunc]
cache_eviction_lru_score: Final[ufunc]
cache_eviction_beladys_score: Final[ufunc]
cache_hit_latency_saving: Final[ufunc]
dynamic_ntk_rope_scale: Final[ufunc]
context_extension_factor: Final[ufunc]
temperature_scale: Final[ufunc]
top_k_threshold: Final[ufunc]
top_p_cumulative: Final[ufunc]
min_p_threshold: Final[ufunc]
repetition_penalty_scale: Final[ufunc]
token_frequency_penalty: Final[ufunc]
beam_score_update: Final[ufunc]
length_penalty: Final[ufunc]
pow_approx: Final[ufunc]
typical_p_score: Final[ufunc]
greedy_token_id: Final[ufunc]
temperature_logit_scale: Final[ufunc]
top_k_accept: Final[ufunc]
top_p_cumulative_accept: Final[ufunc]
min_p_accept: Final[ufunc]
repetition_penalty_logit: Final[ufunc]
frequency_penalty_logit: Final[ufunc]
presence_penalty_logit: Final[ufunc]
typical_sampling_accept: Final[ufunc]
eta_sampling_accept: Final[ufunc]
eos_stop_score: Final[ufunc]
speculative_accept_prob: Final[ufunc]
speculative_expected_tokens: Final[ufunc]
draft_model_speedup: Final[ufunc]
medusa_head_acceptance: Final[ufunc]
json_grammar_logit_mask: Final[ufunc]
constrained_beam_score: Final[ufunc]
structured_repair_score: Final[ufunc]
contrastive_decode_score: Final[ufunc]
token_healing_overlap: Final[ufunc]
watermark_green_list_bias: Final[ufunc]
admission_control_accept: Final[ufunc]
iteration_level_batch_size: Final[ufunc]
preemption_score: Final[ufunc]
chunked_prefill_chunks: Final[ufunc]
decode_throughput_tokens: Final[ufunc]
streaming_first_token_latency: Final[ufunc]
head_of_line_blocking_score: Final[ufunc]
batching_efficiency: Final[ufunc]
sequence_completion_fraction: Final[ufunc]
beam_memory_per_request: Final[ufunc]
attention_kv_bytes_per_token: Final[ufunc]
mla_kv_bytes_per_token: Final[ufunc]
sliding_window_tokens: Final[ufunc]
chunked_attention_tokens: Final[ufunc]
recurrent_state_bytes: Final[ufunc]
conv_state_bytes: Final[ufunc]
quantized_head_bytes: Final[ufunc]
kv_heads_per_rank: Final[ufunc]
sliding_window_blocks: Final[ufunc]
block_waste_tokens: Final[ufunc]
max_concurrency: Final[ufunc]
watermark_reserved_blocks: Final[ufunc]
watermark_admission_accept: Final[ufunc]
new_blocks_needed: Final[ufunc]
usable_prefix_hit_tokens: Final[ufunc]
decode_growth_reserve: Final[ufunc]
orca_admission_accept: Final[ufunc]
prefill_step_tokens: Final[ufunc]
aligned_chunk_tokens: Final[ufunc]
uncached_prefill_chunks: Final[ufunc]
response_ratio: Final[ufunc]
time_to_first_token: Final[ufunc]
time_per_output_token: Final[ufunc]
concurrency: Final[ufunc]
mean_acceptance_length: Final[ufunc]
expected_accepted_tokens: Final[ufunc]
acceptance_rate_from_counts: Final[ufunc]
speculative_walltime_speedup: Final[ufunc]
speculative_operations_factor: Final[ufunc]
break_even_acceptance: Final[ufunc]
best_speculation_depth: Final[ufunc]
residual_weight: Final[ufunc]
medusa_typical_threshold: Final[ufunc]
eta_cutoff: Final[ufunc]
epsilon_sampling_accept: Final[ufunc]
length_normalized_score: Final[ufunc]
contrastive_plausible_accept: Final[ufunc]
watermark_green_list_size: Final[ufunc]
watermark_z_score: Final[ufunc]
top_n_sigma_accept: Final[ufunc]
dynamic_temperature: Final[ufunc]
gumbel_max_score: Final[ufunc]
mirostat_mu_update: Final[ufunc]
rope_inverse_frequency: Final[ufunc]
ntk_rope_base: Final[ufunc]
dynamic_ntk_rope_base: Final[ufunc]
llama3_rope_frequency: Final[ufunc]
yarn_attention_factor: Final[ufunc]
yarn_correction_dim: Final[ufunc]
yarn_ramp: Final[ufunc]
longrope_attention_factor: Final[ufunc]
