/* What a C author would write by hand instead: METH_FASTCALL functions of one to seven arguments. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>

#define EXPECT(wanted) \
    if (given != wanted) \
    return PyErr_Format(PyExc_TypeError, "expected %d arguments, got %zd", wanted, given)

#define DOUBLE(name, i) \
    double name = PyFloat_AsDouble(args[i]); \
    if (name == -1.0 && PyErr_Occurred()) \
    return NULL

static PyObject *incremental_decode_kv_append(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    EXPECT(1);
    DOUBLE(current_len, 0);
    return PyFloat_FromDouble(current_len + 1.0);
}

static PyObject *kv_cache_utilization(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    EXPECT(2);
    DOUBLE(cached_tokens, 0);
    DOUBLE(max_tokens, 1);
    if (max_tokens <= 0.0)
        return PyFloat_FromDouble(0.0);
    double share = cached_tokens / max_tokens;
    return PyFloat_FromDouble(share > 1.0 ? 1.0 : share);
}

static PyObject *preemption_score(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    EXPECT(3);
    DOUBLE(seq_priority, 0);
    DOUBLE(tokens_generated, 1);
    DOUBLE(kv_cache_tokens, 2);
    double restart_cost = seq_priority * (tokens_generated + 1.0);
    return PyFloat_FromDouble(restart_cost <= 0.0 ? kv_cache_tokens : kv_cache_tokens / restart_cost);
}

static PyObject *draft_model_speedup(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    EXPECT(4);
    DOUBLE(expected_tokens, 0);
    DOUBLE(target_ms, 1);
    DOUBLE(draft_ms, 2);
    DOUBLE(depth, 3);
    double total_ms = target_ms + draft_ms * depth;
    return PyFloat_FromDouble(total_ms <= 0.0 ? 1.0 : expected_tokens * target_ms / total_ms);
}

static PyObject *kv_cache_memory_per_layer(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    EXPECT(5);
    DOUBLE(batch_size, 0);
    DOUBLE(seq_len, 1);
    DOUBLE(n_heads, 2);
    DOUBLE(head_dim, 3);
    DOUBLE(dtype_bytes, 4);
    return PyFloat_FromDouble(2.0 * batch_size * seq_len * n_heads * head_dim * dtype_bytes);
}

static PyObject *beam_memory_per_request(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    EXPECT(6);
    DOUBLE(beam_width, 0);
    DOUBLE(max_seq_len, 1);
    DOUBLE(n_layers, 2);
    DOUBLE(n_heads, 3);
    DOUBLE(head_dim, 4);
    DOUBLE(dtype_bytes, 5);
    return PyFloat_FromDouble(beam_width * (2.0 * max_seq_len * n_layers * n_heads * head_dim * dtype_bytes));
}

static PyObject *new_blocks_needed(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    EXPECT(7);
    DOUBLE(computed, 0);
    DOUBLE(added, 1);
    DOUBLE(lookahead, 2);
    DOUBLE(longest, 3);
    DOUBLE(block_size, 4);
    DOUBLE(held, 5);
    DOUBLE(cached, 6);
    double tokens = computed + added + lookahead;
    tokens = tokens < longest ? tokens : longest;
    double needed = (block_size <= 0.0 ? tokens : ceil(tokens / block_size)) - held - cached;
    return PyFloat_FromDouble(needed > 0.0 ? needed : 0.0);
}

#define BY_POSITION(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    BY_POSITION(incremental_decode_kv_append),
    BY_POSITION(kv_cache_utilization),
    BY_POSITION(preemption_score),
    BY_POSITION(draft_model_speedup),
    BY_POSITION(kv_cache_memory_per_layer),
    BY_POSITION(beam_memory_per_request),
    BY_POSITION(new_blocks_needed),
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "baseline", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_baseline(void)
{
    return PyModuleDef_Init(&module);
}
