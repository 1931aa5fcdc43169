"""The arithmetic of LLM serving, exact, documented, at C speed.

Every formula is an attribute of this package and of its topic's module. Nothing is loaded until it is used (PEP 562),
so `import kvformulas` costs neither an extension module nor NumPy.
"""

_FORMULAS = {
    "kv_cache": (
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
    ),
    "paged_kv_cache": (
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
    ),
    "llm_sampling": (
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
    ),
    "generation_loop": (
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
    ),
    "speculative_decoding": (
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
    ),
    "continuous_batching": (
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
    ),
    "attention_layouts": (
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
    ),
    "engine_admission": (
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
    ),
    "speculation_analysis": (
        "mean_acceptance_length",
        "expected_accepted_tokens",
        "acceptance_rate_from_counts",
        "speculative_walltime_speedup",
        "speculative_operations_factor",
        "break_even_acceptance",
        "best_speculation_depth",
        "residual_weight",
        "medusa_typical_threshold",
    ),
    "sampling_rules": (
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
    ),
    "rope_scaling": (
        "rope_inverse_frequency",
        "ntk_rope_base",
        "dynamic_ntk_rope_base",
        "llama3_rope_frequency",
        "yarn_attention_factor",
        "yarn_correction_dim",
        "yarn_ramp",
        "longrope_attention_factor",
    ),
}
_MODULES = (*_FORMULAS, "capi", "catalog", "cli", "plan", "replay", "runtime", "ufuncs")
_TOPIC_OF = {name: topic for topic, names in _FORMULAS.items() for name in names}

__all__ = ["__version__", *_FORMULAS, *_TOPIC_OF]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    # __import__, because importing importlib would cost more than the formula's own module.
    if name in _TOPIC_OF:
        value = getattr(__import__(f"kvformulas.{_TOPIC_OF[name]}", fromlist=[name]), name)
    elif name in _MODULES:
        return __import__(f"kvformulas.{name}", fromlist=[name])
    elif name == "__version__":
        from importlib.metadata import version

        value = version("kvformulas")
    else:
        raise AttributeError(f"module 'kvformulas' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
