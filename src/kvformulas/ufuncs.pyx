# cython: language_level=3, freethreading_compatible=True, autotestdict=False, cdivision=True
# distutils: language = c++
"""
Every formula as a NumPy ufunc of the same name: arrays, broadcasting, ``out=``, ``where=``, ``reduce``.

The values are those of the scalar function, bit for bit. Types follow ``np.true_divide``: integers and booleans give a
float64, so that whole numbers stay exact; float32 arrays, alone or with Python numbers, give a float32, computed in
double and rounded once. A float16 becomes a float32. Complex, long double and object arrays are a ``TypeError``.

As with the scalars, there is no warning of a division by zero, an overflow or a NaN.
"""
# Not `@cython.ufunc`: its loop takes any strides, so it is not vectorised and takes 2 to 4 times as long as NumPy's own
# for one operation at 10**4 elements; and NumPy would choose its float32 loop for small integers. Here a formula has
# loops over contiguous elements (ufuncs.h), as fast as NumPy's for one operation and much faster for several. What is
# not contiguous (strides, one number for all) is brought to them in blocks that fit the L1 cache.
from cpython.exc cimport PyErr_Clear
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport malloc
from libc.string cimport memset

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

try:
    import numpy
except ModuleNotFoundError:
    numpy = None
if numpy is None or int(numpy.__version__.partition(".")[0]) < 2:
    raise ImportError('kvformulas.ufuncs needs NumPy 2 or later: pip install "kvformulas[numpy]"')

import os

import kvformulas

# Not `cimport numpy`: that would load NumPy before anything above is run.
cdef extern from *:
    """
    #define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
    #define NPY_TARGET_VERSION NPY_2_0_API_VERSION
    """

cdef extern from "numpy/arrayobject.h":
    ctypedef Py_ssize_t npy_intp
    ctypedef struct DType "PyArray_DTypeMeta":
        pass
    DType PyArray_HalfDType, PyArray_FloatDType, PyArray_DoubleDType, PyArray_PyFloatDType
    int NPY_FLOAT, NPY_DOUBLE
    int import_array "_import_array"() except -1
    DType *PyArray_PromoteDTypeSequence(npy_intp, DType **)

cdef extern from "numpy/ufuncobject.h":
    ctypedef void (*InnerLoop "PyUFuncGenericFunction")(
        char **, const npy_intp *, const npy_intp *, void *
    ) noexcept nogil
    ctypedef struct PyUFuncObject:
        int nin
    int PyUFunc_None
    int import_umath "_import_umath"() except -1
    object PyUFunc_FromFuncAndData(InnerLoop *, void **, char *, int, int, int, int, const char *, const char *, int)
    int PyUFunc_AddPromoter(object, object, object) except -1

cdef extern from "ufuncs.h" nogil:
    enum:
        MOST_ARGUMENTS
    ctypedef void (*Loop)(const void *const *, void *, npy_intp, npy_intp) noexcept nogil
    ctypedef struct Loops:
        Loop any, avx2
    ctypedef struct Formula:
        int arguments
        Loops doubles, floats, doubles_by_number, floats_by_number
    ctypedef struct Flags:
        pass
    void hold(Flags *)
    void put_back(const Flags *)
    bint KVF_HAS_AVX2
    const Formula *FORMULA(double (*)(double) noexcept nogil)
    const Formula *FORMULA(double (*)(double, double) noexcept nogil)
    const Formula *FORMULA(double (*)(double, double, double) noexcept nogil)
    const Formula *FORMULA(double (*)(double, double, double, double) noexcept nogil)
    const Formula *FORMULA(double (*)(double, double, double, double, double) noexcept nogil)
    const Formula *FORMULA(double (*)(double, double, double, double, double, double) noexcept nogil)
    const Formula *FORMULA(double (*)(double, double, double, double, double, double, double) noexcept nogil)

cdef enum:
    BLOCK = 256  # 2 KiB an argument

cdef struct Tables:
    void *data[2]
    char types[2 * (MOST_ARGUMENTS + 1)]

# KVFORMULAS_AVX2=0 in the environment chooses the other build, to compare the two.
cdef bint use_avx2 = KVF_HAS_AVX2 and os.environ.get("KVFORMULAS_AVX2") != "0"


cdef inline void copy(
    const char *source, npy_intp source_step, char *target, npy_intp target_step, npy_intp n, bint single
) noexcept nogil:
    cdef npy_intp i
    if single:
        for i in range(n):
            (<float *>(target + i * target_step))[0] = (<const float *>(source + i * source_step))[0]
    else:
        for i in range(n):
            (<double *>(target + i * target_step))[0] = (<const double *>(source + i * source_step))[0]


cdef inline void run(
    char **operands, npy_intp n, const npy_intp *steps, const Formula *formula, npy_intp element
) noexcept nogil:
    cdef double[MOST_ARGUMENTS + 1][BLOCK] blocks
    cdef bint[MOST_ARGUMENTS + 1] in_place
    cdef const void *arguments[MOST_ARGUMENTS]
    cdef void *results
    cdef char *start
    cdef bint single = element == sizeof(float)
    cdef int k, result = formula.arguments
    cdef npy_intp size, done = 0, most = n
    cdef Loops loops = formula.floats if single else formula.doubles
    cdef Loops by_number = formula.floats_by_number if single else formula.doubles_by_number
    # In reduce and accumulate each result is the next one's first argument.
    cdef bint chained = operands[result] == operands[0] + steps[0]
    cdef Flags flags
    hold(&flags)
    for k in range(result + 1):
        in_place[k] = steps[k] == element
    if by_number.any and steps[1] == 0 and in_place[0] and in_place[2]:
        in_place[1] = True
        loops = by_number
    for k in range(result + 1):
        if not in_place[k]:
            most = BLOCK
    if chained:
        most = 1
    while done < n:
        size = min(most, n - done)
        for k in range(result):
            start = operands[k] + done * steps[k]
            if in_place[k]:
                arguments[k] = start
            elif steps[k] != 0 or done == 0 or chained:
                arguments[k] = blocks[k]
                copy(start, steps[k], <char *>blocks[k], element, size, single)
        start = operands[result] + done * steps[result]
        results = <void *>start if in_place[result] else <void *>blocks[result]
        if use_avx2:
            loops.avx2(arguments, results, 0, size)
        else:
            loops.any(arguments, results, 0, size)
        if not in_place[result]:
            copy(<char *>results, element, start, steps[result], size, single)
        done += size
    put_back(&flags)


cdef void run_floats(char **operands, const npy_intp *n, const npy_intp *steps, void *formula) noexcept nogil:
    run(operands, n[0], steps, <const Formula *>formula, sizeof(float))


cdef void run_doubles(char **operands, const npy_intp *n, const npy_intp *steps, void *formula) noexcept nogil:
    run(operands, n[0], steps, <const Formula *>formula, sizeof(double))


# NumPy asks when the types are not all float32 or all float64.
cdef int promote(PyObject *ufunc, DType **given, DType **wanted, DType **chosen) noexcept:
    cdef DType *dtypes[MOST_ARGUMENTS + 1]
    cdef int k, result = (<PyUFuncObject *>ufunc).nin
    cdef DType *common = wanted[result]
    if not common:
        for k in range(result):
            dtypes[k] = given[k]
        dtypes[result] = &PyArray_PyFloatDType
        common = PyArray_PromoteDTypeSequence(result + 1, dtypes)
        Py_XDECREF(<PyObject *>common)
        PyErr_Clear()
    if common == &PyArray_HalfDType:
        common = &PyArray_FloatDType
    elif common == &PyArray_PyFloatDType:
        common = &PyArray_DoubleDType
    elif common != &PyArray_FloatDType and common != &PyArray_DoubleDType:
        return -1  # NumPy then says that the types are not supported
    for k in range(result + 1):
        chosen[k] = common
        Py_INCREF(<object>common)
    return 0


cdef InnerLoop[2] inner_loops = [run_floats, run_doubles]
cdef object promoter = PyCapsule_New(<void *>promote, "numpy._ufunc_promoter", NULL)
cdef list texts = []  # NumPy keeps the pointers only


cdef add(str name, const Formula *formula):
    scalar = getattr(kvformulas, name)
    arguments = ", ".join(scalar.__code__.co_varnames[:formula.arguments])
    summary = scalar.__doc__.strip().partition("\n")[0]
    doc = f"""{name}({arguments}, /, out=None, *, where=True, dtype=None)

{summary}

The arguments are numbers or arrays. Their units, the domain and the error are those of `{scalar.__module__}.{name}`.
"""
    cdef bytes c_name = name.encode(), c_doc = doc.encode()
    cdef int operands = formula.arguments + 1
    cdef Tables *tables = <Tables *>malloc(sizeof(Tables))
    if not tables:
        raise MemoryError
    tables.data[0] = tables.data[1] = <void *>formula
    memset(tables.types, NPY_FLOAT, operands)
    memset(tables.types + operands, NPY_DOUBLE, operands)
    texts.extend((c_name, c_doc))
    ufunc = PyUFunc_FromFuncAndData(
        inner_loops, tables.data, tables.types, 2, operands - 1, 1, PyUFunc_None, c_name, c_doc, 0
    )
    PyUFunc_AddPromoter(ufunc, (numpy.dtype,) * formula.arguments + (None,), promoter)
    globals()[name] = ufunc
    __all__.append(name)


import_array()
import_umath()
__all__ = []
add("kv_cache_memory_per_layer", FORMULA(kv_cache.kv_cache_memory_per_layer))
add("kv_cache_total_memory", FORMULA(kv_cache.kv_cache_total_memory))
add("kv_cache_utilization", FORMULA(kv_cache.kv_cache_utilization))
add("kv_eviction_score_lru", FORMULA(kv_cache.kv_eviction_score_lru))
add("kv_eviction_score_h2o", FORMULA(kv_cache.kv_eviction_score_h2o))
add("radix_cache_shared_prefix_len", FORMULA(kv_cache.radix_cache_shared_prefix_len))
add("prefix_cache_hit_bytes", FORMULA(kv_cache.prefix_cache_hit_bytes))
add("kv_quantization_error", FORMULA(kv_cache.kv_quantization_error))
add("paged_attention_block_count", FORMULA(kv_cache.paged_attention_block_count))
add("incremental_decode_kv_append", FORMULA(kv_cache.incremental_decode_kv_append))
add("page_table_lookup", FORMULA(paged_kv_cache.page_table_lookup))
add("cache_compaction_gain", FORMULA(paged_kv_cache.cache_compaction_gain))
add("block_copy_cost", FORMULA(paged_kv_cache.block_copy_cost))
add("prefix_sharing_savings", FORMULA(paged_kv_cache.prefix_sharing_savings))
add("speculative_branch_memory", FORMULA(paged_kv_cache.speculative_branch_memory))
add("cache_eviction_lru_score", FORMULA(paged_kv_cache.cache_eviction_lru_score))
add("cache_eviction_beladys_score", FORMULA(paged_kv_cache.cache_eviction_beladys_score))
add("cache_hit_latency_saving", FORMULA(paged_kv_cache.cache_hit_latency_saving))
add("dynamic_ntk_rope_scale", FORMULA(paged_kv_cache.dynamic_ntk_rope_scale))
add("context_extension_factor", FORMULA(paged_kv_cache.context_extension_factor))
add("temperature_scale", FORMULA(llm_sampling.temperature_scale))
add("top_k_threshold", FORMULA(llm_sampling.top_k_threshold))
add("top_p_cumulative", FORMULA(llm_sampling.top_p_cumulative))
add("min_p_threshold", FORMULA(llm_sampling.min_p_threshold))
add("repetition_penalty_scale", FORMULA(llm_sampling.repetition_penalty_scale))
add("token_frequency_penalty", FORMULA(llm_sampling.token_frequency_penalty))
add("beam_score_update", FORMULA(llm_sampling.beam_score_update))
add("length_penalty", FORMULA(llm_sampling.length_penalty))
add("pow_approx", FORMULA(llm_sampling.pow_approx))
add("typical_p_score", FORMULA(llm_sampling.typical_p_score))
add("greedy_token_id", FORMULA(llm_sampling.greedy_token_id))
add("temperature_logit_scale", FORMULA(generation_loop.temperature_logit_scale))
add("top_k_accept", FORMULA(generation_loop.top_k_accept))
add("top_p_cumulative_accept", FORMULA(generation_loop.top_p_cumulative_accept))
add("min_p_accept", FORMULA(generation_loop.min_p_accept))
add("repetition_penalty_logit", FORMULA(generation_loop.repetition_penalty_logit))
add("frequency_penalty_logit", FORMULA(generation_loop.frequency_penalty_logit))
add("presence_penalty_logit", FORMULA(generation_loop.presence_penalty_logit))
add("typical_sampling_accept", FORMULA(generation_loop.typical_sampling_accept))
add("eta_sampling_accept", FORMULA(generation_loop.eta_sampling_accept))
add("eos_stop_score", FORMULA(generation_loop.eos_stop_score))
add("speculative_accept_prob", FORMULA(speculative_decoding.speculative_accept_prob))
add("speculative_expected_tokens", FORMULA(speculative_decoding.speculative_expected_tokens))
add("draft_model_speedup", FORMULA(speculative_decoding.draft_model_speedup))
add("medusa_head_acceptance", FORMULA(speculative_decoding.medusa_head_acceptance))
add("json_grammar_logit_mask", FORMULA(speculative_decoding.json_grammar_logit_mask))
add("constrained_beam_score", FORMULA(speculative_decoding.constrained_beam_score))
add("structured_repair_score", FORMULA(speculative_decoding.structured_repair_score))
add("contrastive_decode_score", FORMULA(speculative_decoding.contrastive_decode_score))
add("token_healing_overlap", FORMULA(speculative_decoding.token_healing_overlap))
add("watermark_green_list_bias", FORMULA(speculative_decoding.watermark_green_list_bias))
add("admission_control_accept", FORMULA(continuous_batching.admission_control_accept))
add("iteration_level_batch_size", FORMULA(continuous_batching.iteration_level_batch_size))
add("preemption_score", FORMULA(continuous_batching.preemption_score))
add("chunked_prefill_chunks", FORMULA(continuous_batching.chunked_prefill_chunks))
add("decode_throughput_tokens", FORMULA(continuous_batching.decode_throughput_tokens))
add("streaming_first_token_latency", FORMULA(continuous_batching.streaming_first_token_latency))
add("head_of_line_blocking_score", FORMULA(continuous_batching.head_of_line_blocking_score))
add("batching_efficiency", FORMULA(continuous_batching.batching_efficiency))
add("sequence_completion_fraction", FORMULA(continuous_batching.sequence_completion_fraction))
add("beam_memory_per_request", FORMULA(continuous_batching.beam_memory_per_request))
add("attention_kv_bytes_per_token", FORMULA(attention_layouts.attention_kv_bytes_per_token))
add("mla_kv_bytes_per_token", FORMULA(attention_layouts.mla_kv_bytes_per_token))
add("sliding_window_tokens", FORMULA(attention_layouts.sliding_window_tokens))
add("chunked_attention_tokens", FORMULA(attention_layouts.chunked_attention_tokens))
add("recurrent_state_bytes", FORMULA(attention_layouts.recurrent_state_bytes))
add("conv_state_bytes", FORMULA(attention_layouts.conv_state_bytes))
add("quantized_head_bytes", FORMULA(attention_layouts.quantized_head_bytes))
add("kv_heads_per_rank", FORMULA(attention_layouts.kv_heads_per_rank))
add("sliding_window_blocks", FORMULA(attention_layouts.sliding_window_blocks))
add("block_waste_tokens", FORMULA(attention_layouts.block_waste_tokens))
add("max_concurrency", FORMULA(attention_layouts.max_concurrency))
add("watermark_reserved_blocks", FORMULA(engine_admission.watermark_reserved_blocks))
add("watermark_admission_accept", FORMULA(engine_admission.watermark_admission_accept))
add("new_blocks_needed", FORMULA(engine_admission.new_blocks_needed))
add("usable_prefix_hit_tokens", FORMULA(engine_admission.usable_prefix_hit_tokens))
add("decode_growth_reserve", FORMULA(engine_admission.decode_growth_reserve))
add("orca_admission_accept", FORMULA(engine_admission.orca_admission_accept))
add("prefill_step_tokens", FORMULA(engine_admission.prefill_step_tokens))
add("aligned_chunk_tokens", FORMULA(engine_admission.aligned_chunk_tokens))
add("uncached_prefill_chunks", FORMULA(engine_admission.uncached_prefill_chunks))
add("response_ratio", FORMULA(engine_admission.response_ratio))
add("time_to_first_token", FORMULA(engine_admission.time_to_first_token))
add("time_per_output_token", FORMULA(engine_admission.time_per_output_token))
add("concurrency", FORMULA(engine_admission.concurrency))
add("mean_acceptance_length", FORMULA(speculation_analysis.mean_acceptance_length))
add("expected_accepted_tokens", FORMULA(speculation_analysis.expected_accepted_tokens))
add("acceptance_rate_from_counts", FORMULA(speculation_analysis.acceptance_rate_from_counts))
add("speculative_walltime_speedup", FORMULA(speculation_analysis.speculative_walltime_speedup))
add("speculative_operations_factor", FORMULA(speculation_analysis.speculative_operations_factor))
add("break_even_acceptance", FORMULA(speculation_analysis.break_even_acceptance))
add("best_speculation_depth", FORMULA(speculation_analysis.best_speculation_depth))
add("residual_weight", FORMULA(speculation_analysis.residual_weight))
add("medusa_typical_threshold", FORMULA(speculation_analysis.medusa_typical_threshold))
add("eta_cutoff", FORMULA(sampling_rules.eta_cutoff))
add("epsilon_sampling_accept", FORMULA(sampling_rules.epsilon_sampling_accept))
add("length_normalized_score", FORMULA(sampling_rules.length_normalized_score))
add("contrastive_plausible_accept", FORMULA(sampling_rules.contrastive_plausible_accept))
add("watermark_green_list_size", FORMULA(sampling_rules.watermark_green_list_size))
add("watermark_z_score", FORMULA(sampling_rules.watermark_z_score))
add("top_n_sigma_accept", FORMULA(sampling_rules.top_n_sigma_accept))
add("dynamic_temperature", FORMULA(sampling_rules.dynamic_temperature))
add("gumbel_max_score", FORMULA(sampling_rules.gumbel_max_score))
add("mirostat_mu_update", FORMULA(sampling_rules.mirostat_mu_update))
add("rope_inverse_frequency", FORMULA(rope_scaling.rope_inverse_frequency))
add("ntk_rope_base", FORMULA(rope_scaling.ntk_rope_base))
add("dynamic_ntk_rope_base", FORMULA(rope_scaling.dynamic_ntk_rope_base))
add("llama3_rope_frequency", FORMULA(rope_scaling.llama3_rope_frequency))
add("yarn_attention_factor", FORMULA(rope_scaling.yarn_attention_factor))
add("yarn_correction_dim", FORMULA(rope_scaling.yarn_correction_dim))
add("yarn_ramp", FORMULA(rope_scaling.yarn_ramp))
add("longrope_attention_factor", FORMULA(rope_scaling.longrope_attention_factor))
