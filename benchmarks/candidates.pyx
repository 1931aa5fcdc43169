# cython: language_level=3, freethreading_compatible=True
# A scheduler's loops over candidates, without the GIL: the kernels inlined from the installed package, the same by
# hand in C, and the same through an address, which no compiler can inline.
# Arrays come as the address of their data: a memoryview of each would cost as much as a good part of a short loop.
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY

from kvformulas cimport paged_attention_block_count, preemption_score

cdef extern from "candidates.h" nogil:
    Py_ssize_t hand_argmax(const double *, const double *, const double *, Py_ssize_t)
    void hand_scores(const double *, const double *, const double *, double *, Py_ssize_t)
    double hand_total(const double *, double, Py_ssize_t)

ctypedef double (*Function2)(double, double) noexcept nogil
ctypedef double (*Function3)(double, double, double) noexcept nogil


def argmax_inlined(size_t priority, size_t generated, size_t tokens, Py_ssize_t n):
    cdef const double *p = <const double *> priority
    cdef const double *g = <const double *> generated
    cdef const double *t = <const double *> tokens
    cdef Py_ssize_t i, best = 0
    cdef double score, highest = -INFINITY
    with nogil:
        for i in range(n):
            score = preemption_score(p[i], g[i], t[i])
            if score > highest:
                highest, best = score, i
    return best


def argmax_by_hand(size_t priority, size_t generated, size_t tokens, Py_ssize_t n):
    cdef Py_ssize_t best
    with nogil:
        best = hand_argmax(<const double *> priority, <const double *> generated, <const double *> tokens, n)
    return best


def argmax_through(capsule, size_t priority, size_t generated, size_t tokens, Py_ssize_t n):
    cdef Function3 formula = <Function3> PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    cdef const double *p = <const double *> priority
    cdef const double *g = <const double *> generated
    cdef const double *t = <const double *> tokens
    cdef Py_ssize_t i, best = 0
    cdef double score, highest = -INFINITY
    with nogil:
        for i in range(n):
            score = formula(p[i], g[i], t[i])
            if score > highest:
                highest, best = score, i
    return best


def scores_inlined(size_t priority, size_t generated, size_t tokens, size_t scores, Py_ssize_t n):
    cdef const double *p = <const double *> priority
    cdef const double *g = <const double *> generated
    cdef const double *t = <const double *> tokens
    cdef double *out = <double *> scores
    cdef Py_ssize_t i
    with nogil:
        for i in range(n):
            out[i] = preemption_score(p[i], g[i], t[i])


def scores_by_hand(size_t priority, size_t generated, size_t tokens, size_t scores, Py_ssize_t n):
    with nogil:
        hand_scores(
            <const double *> priority, <const double *> generated, <const double *> tokens, <double *> scores, n
        )


def scores_through(capsule, size_t priority, size_t generated, size_t tokens, size_t scores, Py_ssize_t n):
    cdef Function3 formula = <Function3> PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    cdef const double *p = <const double *> priority
    cdef const double *g = <const double *> generated
    cdef const double *t = <const double *> tokens
    cdef double *out = <double *> scores
    cdef Py_ssize_t i
    with nogil:
        for i in range(n):
            out[i] = formula(p[i], g[i], t[i])


def blocks_inlined(size_t lengths, double block_size, Py_ssize_t n):
    cdef const double *length = <const double *> lengths
    cdef Py_ssize_t i
    cdef double total = 0.0
    with nogil:
        for i in range(n):
            total += paged_attention_block_count(length[i], block_size)
    return total


def blocks_by_hand(size_t lengths, double block_size, Py_ssize_t n):
    cdef double total
    with nogil:
        total = hand_total(<const double *> lengths, block_size, n)
    return total


def blocks_through(capsule, size_t lengths, double block_size, Py_ssize_t n):
    cdef Function2 formula = <Function2> PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    cdef const double *length = <const double *> lengths
    cdef Py_ssize_t i
    cdef double total = 0.0
    with nogil:
        for i in range(n):
            total += formula(length[i], block_size)
    return total
