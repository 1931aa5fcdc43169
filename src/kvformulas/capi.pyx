# cython: language_level=3, freethreading_compatible=True, autotestdict=False
"""
The address of every formula, for numba, `scipy.LowLevelCallable`, ctypes, C and C++.

`__pyx_capi__[name]` is a capsule: its pointer is the C function, its name the signature, as Cython exports functions.
Inline functions are never exported by Cython itself; here the compiler proves each signature through a `ctypedef`.
"""
from cpython.pycapsule cimport PyCapsule_New

from kvformulas.kernels cimport kv_cache
from kvformulas.kernels cimport paged_kv_cache
from kvformulas.kernels cimport llm_sampling
from kvformulas.kernels cimport generation_loop
from kvformulas.kernels cimport speculative_decoding
from kvformulas.kernels cimport continuous_batching
from kvformulas.kernels cimport attention_layouts
from kvformulas.kernels cimport engine_admission
from kvformulas.kernels cimport speculation_analysis
from kvformulas.kernels cimport sampling_rules
from kvformulas.kernels cimport rope_scaling

ctypedef double (*Function1)(double) noexcept nogil
ctypedef double (*Function2)(double, double) noexcept nogil
ctypedef double (*Function3)(double, double, double) noexcept nogil
ctypedef double (*Function4)(double, double, double, double) noexcept nogil
ctypedef double (*Function5)(double, double, double, double, double) noexcept nogil
ctypedef double (*Function6)(double, double, double, double, double, double) noexcept nogil
ctypedef double (*Function7)(double, double, double, double, double, double, double) noexcept nogil


cdef object address_1(Function1 function):
    return PyCapsule_New(<void *>function, "double (double)", NULL)


cdef object address_2(Function2 function):
    return PyCapsule_New(<void *>function, "double (double, double)", NULL)


cdef object address_3(Function3 function):
    return PyCapsule_New(<void *>function, "double (double, double, double)", NULL)


cdef object address_4(Function4 function):
    return PyCapsule_New(<void *>function, "double (double, double, double, double)", NULL)


cdef object address_5(Function5 function):
    return PyCapsule_New(<void *>function, "double (double, double, double, double, double)", NULL)


cdef object address_6(Function6 function):
    return PyCapsule_New(<void *>function, "double (double, double, double, double, double, double)", NULL)


cdef object address_7(Function7 function):
    return PyCapsule_New(<void *>function, "double (double, double, double, double, double, double, double)", NULL)


__pyx_capi__ = {
    "kv_cache_memory_per_layer": address_5(kv_cache.kv_cache_memory_per_layer),
    "kv_cache_total_memory": address_2(kv_cache.kv_cache_total_memory),
    "kv_cache_utilization": address_2(kv_cache.kv_cache_utilization),
    "kv_eviction_score_lru": address_2(kv_cache.kv_eviction_score_lru),
    "kv_eviction_score_h2o": address_2(kv_cache.kv_eviction_score_h2o),
    "radix_cache_shared_prefix_len": address_3(kv_cache.radix_cache_shared_prefix_len),
    "prefix_cache_hit_bytes": address_5(kv_cache.prefix_cache_hit_bytes),
    "kv_quantization_error": address_3(kv_cache.kv_quantization_error),
    "paged_attention_block_count": address_2(kv_cache.paged_attention_block_count),
    "incremental_decode_kv_append": address_1(kv_cache.incremental_decode_kv_append),
    "page_table_lookup": address_2(paged_kv_cache.page_table_lookup),
    "cache_compaction_gain": address_6(paged_kv_cache.cache_compaction_gain),
    "block_copy_cost": address_6(paged_kv_cache.block_copy_cost),
    "prefix_sharing_savings": address_6(paged_kv_cache.prefix_sharing_savings),
    "speculative_branch_memory": address_6(paged_kv_cache.speculative_branch_memory),
    "cache_eviction_lru_score": address_2(paged_kv_cache.cache_eviction_lru_score),
    "cache_eviction_beladys_score": address_2(paged_kv_cache.cache_eviction_beladys_score),
    "cache_hit_latency_saving": address_2(paged_kv_cache.cache_hit_latency_saving),
    "dynamic_ntk_rope_scale": address_3(paged_kv_cache.dynamic_ntk_rope_scale),
    "context_extension_factor": address_2(paged_kv_cache.context_extension_factor),
    "temperature_scale": address_2(llm_sampling.temperature_scale),
    "top_k_threshold": address_1(llm_sampling.top_k_threshold),
    "top_p_cumulative": address_3(llm_sampling.top_p_cumulative),
    "min_p_threshold": address_2(llm_sampling.min_p_threshold),
    "repetition_penalty_scale": address_3(llm_sampling.repetition_penalty_scale),
    "token_frequency_penalty": address_4(llm_sampling.token_frequency_penalty),
    "beam_score_update": address_2(llm_sampling.beam_score_update),
    "length_penalty": address_3(llm_sampling.length_penalty),
    "pow_approx": address_2(llm_sampling.pow_approx),
    "typical_p_score": address_2(llm_sampling.typical_p_score),
    "greedy_token_id": address_3(llm_sampling.greedy_token_id),
    "temperature_logit_scale": address_2(generation_loop.temperature_logit_scale),
    "top_k_accept": address_2(generation_loop.top_k_accept),
    "top_p_cumulative_accept": address_3(generation_loop.top_p_cumulative_accept),
    "min_p_accept": address_3(generation_loop.min_p_accept),
    "repetition_penalty_logit": address_3(generation_loop.repetition_penalty_logit),
    "frequency_penalty_logit": address_3(generation_loop.frequency_penalty_logit),
    "presence_penalty_logit": address_3(generation_loop.presence_penalty_logit),
    "typical_sampling_accept": address_3(generation_loop.typical_sampling_accept),
    "eta_sampling_accept": address_3(generation_loop.eta_sampling_accept),
    "eos_stop_score": address_2(generation_loop.eos_stop_score),
    "speculative_accept_prob": address_2(speculative_decoding.speculative_accept_prob),
    "speculative_expected_tokens": address_2(speculative_decoding.speculative_expected_tokens),
    "draft_model_speedup": address_4(speculative_decoding.draft_model_speedup),
    "medusa_head_acceptance": address_3(speculative_decoding.medusa_head_acceptance),
    "json_grammar_logit_mask": address_2(speculative_decoding.json_grammar_logit_mask),
    "constrained_beam_score": address_4(speculative_decoding.constrained_beam_score),
    "structured_repair_score": address_3(speculative_decoding.structured_repair_score),
    "contrastive_decode_score": address_3(speculative_decoding.contrastive_decode_score),
    "token_healing_overlap": address_3(speculative_decoding.token_healing_overlap),
    "watermark_green_list_bias": address_3(speculative_decoding.watermark_green_list_bias),
    "admission_control_accept": address_3(continuous_batching.admission_control_accept),
    "iteration_level_batch_size": address_2(continuous_batching.iteration_level_batch_size),
    "preemption_score": address_3(continuous_batching.preemption_score),
    "chunked_prefill_chunks": address_2(continuous_batching.chunked_prefill_chunks),
    "decode_throughput_tokens": address_2(continuous_batching.decode_throughput_tokens),
    "streaming_first_token_latency": address_2(continuous_batching.streaming_first_token_latency),
    "head_of_line_blocking_score": address_2(continuous_batching.head_of_line_blocking_score),
    "batching_efficiency": address_2(continuous_batching.batching_efficiency),
    "sequence_completion_fraction": address_2(continuous_batching.sequence_completion_fraction),
    "beam_memory_per_request": address_6(continuous_batching.beam_memory_per_request),
    "attention_kv_bytes_per_token": address_5(attention_layouts.attention_kv_bytes_per_token),
    "mla_kv_bytes_per_token": address_4(attention_layouts.mla_kv_bytes_per_token),
    "sliding_window_tokens": address_2(attention_layouts.sliding_window_tokens),
    "chunked_attention_tokens": address_2(attention_layouts.chunked_attention_tokens),
    "recurrent_state_bytes": address_5(attention_layouts.recurrent_state_bytes),
    "conv_state_bytes": address_4(attention_layouts.conv_state_bytes),
    "quantized_head_bytes": address_4(attention_layouts.quantized_head_bytes),
    "kv_heads_per_rank": address_2(attention_layouts.kv_heads_per_rank),
    "sliding_window_blocks": address_4(attention_layouts.sliding_window_blocks),
    "block_waste_tokens": address_2(attention_layouts.block_waste_tokens),
    "max_concurrency": address_2(attention_layouts.max_concurrency),
    "watermark_reserved_blocks": address_2(engine_admission.watermark_reserved_blocks),
    "watermark_admission_accept": address_5(engine_admission.watermark_admission_accept),
    "new_blocks_needed": address_7(engine_admission.new_blocks_needed),
    "usable_prefix_hit_tokens": address_3(engine_admission.usable_prefix_hit_tokens),
    "decode_growth_reserve": address_4(engine_admission.decode_growth_reserve),
    "orca_admission_accept": address_3(engine_admission.orca_admission_accept),
    "prefill_step_tokens": address_3(engine_admission.prefill_step_tokens),
    "aligned_chunk_tokens": address_3(engine_admission.aligned_chunk_tokens),
    "uncached_prefill_chunks": address_3(engine_admission.uncached_prefill_chunks),
    "response_ratio": address_2(engine_admission.response_ratio),
    "time_to_first_token": address_4(engine_admission.time_to_first_token),
    "time_per_output_token": address_3(engine_admission.time_per_output_token),
    "concurrency": address_2(engine_admission.concurrency),
    "mean_acceptance_length": address_2(speculation_analysis.mean_acceptance_length),
    "expected_accepted_tokens": address_2(speculation_analysis.expected_accepted_tokens),
    "acceptance_rate_from_counts": address_3(speculation_analysis.acceptance_rate_from_counts),
    "speculative_walltime_speedup": address_3(speculation_analysis.speculative_walltime_speedup),
    "speculative_operations_factor": address_3(speculation_analysis.speculative_operations_factor),
    "break_even_acceptance": address_2(speculation_analysis.break_even_acceptance),
    "best_speculation_depth": address_3(speculation_analysis.best_speculation_depth),
    "residual_weight": address_2(speculation_analysis.residual_weight),
    "medusa_typical_threshold": address_3(speculation_analysis.medusa_typical_threshold),
    "eta_cutoff": address_2(sampling_rules.eta_cutoff),
    "epsilon_sampling_accept": address_2(sampling_rules.epsilon_sampling_accept),
    "length_normalized_score": address_3(sampling_rules.length_normalized_score),
    "contrastive_plausible_accept": address_3(sampling_rules.contrastive_plausible_accept),
    "watermark_green_list_size": address_2(sampling_rules.watermark_green_list_size),
    "watermark_z_score": address_3(sampling_rules.watermark_z_score),
    "top_n_sigma_accept": address_4(sampling_rules.top_n_sigma_accept),
    "dynamic_temperature": address_5(sampling_rules.dynamic_temperature),
    "gumbel_max_score": address_2(sampling_rules.gumbel_max_score),
    "mirostat_mu_update": address_4(sampling_rules.mirostat_mu_update),
    "rope_inverse_frequency": address_3(rope_scaling.rope_inverse_frequency),
    "ntk_rope_base": address_3(rope_scaling.ntk_rope_base),
    "dynamic_ntk_rope_base": address_5(rope_scaling.dynamic_ntk_rope_base),
    "llama3_rope_frequency": address_5(rope_scaling.llama3_rope_frequency),
    "yarn_attention_factor": address_1(rope_scaling.yarn_attention_factor),
    "yarn_correction_dim": address_4(rope_scaling.yarn_correction_dim),
    "yarn_ramp": address_3(rope_scaling.yarn_ramp),
    "longrope_attention_factor": address_2(rope_scaling.longrope_attention_factor),
}
