# Declared here, so that Cython exports it and LowLevelCallable.from_cython finds it.
cdef double weighted_speedup(int n, double *x) noexcept nogil
