# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""A scheduler's view of its running sequences: what each holds, and which to preempt first."""
from kvformulas cimport kv_cache_memory_per_layer, kv_cache_total_memory, preemption_score


cdef void score(
    const double *priority, const double *generated, const double *cached, double *scores, Py_ssize_t n
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        scores[i] = preemption_score(priority[i], generated[i], cached[i])


cdef void size(
    const double *cached, double *memory, Py_ssize_t n, double layers, double heads, double head_dim, double dtype_bytes
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        memory[i] = kv_cache_total_memory(
            kv_cache_memory_per_layer(1.0, cached[i], heads, head_dim, dtype_bytes), layers
        )


def scores_of(
    const double[::1] priority not None, const double[::1] generated not None, const double[::1] cached not None,
    double[::1] out not None,
):
    """Write the preemption score of every sequence into `out`."""
    cdef Py_ssize_t n = out.shape[0]
    if not n == priority.shape[0] == generated.shape[0] == cached.shape[0]:
        raise ValueError("the arrays differ in length")
    if n:
        with nogil:
            score(&priority[0], &generated[0], &cached[0], &out[0], n)


def bytes_of(
    const double[::1] cached not None, double[::1] out not None,
    *, double layers, double heads, double head_dim, double dtype_bytes,
):
    """Write the bytes of every sequence's KV cache into `out`."""
    cdef Py_ssize_t n = out.shape[0]
    if n != cached.shape[0]:
        raise ValueError("the arrays differ in length")
    if n:
        with nogil:
            size(&cached[0], &out[0], n, layers, heads, head_dim, dtype_bytes)
