# cython: language_level=3, freethreading_compatible=True
# distutils: extra_compile_args = -O2 -ffp-contract=off
"""An integrand for `scipy.integrate.quad`: the kernels in the form that quad calls, double (int, double *)."""
from libc.math cimport pow

from kvformulas cimport draft_model_speedup, speculative_expected_tokens


cdef double weighted_speedup(int n, double *x) noexcept nogil:
    # x[0] is what quad integrates over, the rest its `args`: depth, latencies [ms], a and b of the Beta distribution.
    cdef double rate = x[0], depth = x[1], target_ms = x[2], draft_ms = x[3], a = x[4], b = x[5]
    return pow(rate, a - 1.0) * pow(1.0 - rate, b - 1.0) * draft_model_speedup(
        speculative_expected_tokens(rate, depth), target_ms, draft_ms, depth
    )
