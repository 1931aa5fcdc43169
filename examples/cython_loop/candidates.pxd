# What other Cython modules may cimport: the loops over plain C arrays.
cdef void score(
    const double *priority, const double *generated, const double *cached, double *scores, Py_ssize_t n
) noexcept nogil
cdef void size(
    const double *cached, double *memory, Py_ssize_t n, double layers, double heads, double head_dim, double dtype_bytes
) noexcept nogil
