# cython: cdivision=True
# Rotary position embeddings beyond their trained length: NTK, dynamic NTK, Llama 3, YaRN and LongRoPE scaling.
from libc.math cimport INFINITY, NAN, exp, fabs, fma, isnan, log, sqrt

from kvformulas.kernels.rules cimport maximum, minimum, power


cdef inline double rope_inverse_frequency(double base, double pair_index, double head_dim) noexcept nogil:
    cdef double exponent = -2.0 * (pair_index / head_dim)
    cdef double lost = fma(-exponent, head_dim, -2.0 * pair_index) / head_dim
    cdef double value
    if base <= 0.0 or head_dim <= 0.0:
        return 1.0
    # A power multiplies the rounding of its exponent by the logarithm of its base: this takes it out.
    value = power(base, exponent)
    if not (0.0 < fabs(lost) < 1.0 and 0.0 < value < INFINITY):
        return value
    return value * exp(lost * log(base))


cdef inline double ntk_rope_base(double base, double alpha, double head_dim) noexcept nogil:
    if alpha <= 0.0 or head_dim <= 2.0:
        return base
    # d / (d - 2) is 1 + 2 / (d - 2): of the smaller exponent, the rounding is lost in the result's.
    return base * (alpha * power(alpha, 2.0 / (head_dim - 2.0)))


cdef inline double dynamic_ntk_rope_base(
    double base, double factor, double seq_len, double max_position, double head_dim
) noexcept nogil:
    if max_position <= 0.0 or seq_len <= max_position:
        return base
    # factor * seq_len / max_position - (factor - 1), without its cancellation
    return ntk_rope_base(base, fma(factor, seq_len - max_position, max_position) / max_position, head_dim)


cdef inline double llama3_rope_frequency(
    double inv_freq, double factor, double low_freq_factor, double high_freq_factor, double original_max_position
) noexcept nogil:
    cdef double rotations = original_max_position * inv_freq / 6.283185307179586
    cdef double kept
    if factor <= 0.0:
        return inv_freq
    if isnan(factor) or isnan(low_freq_factor) or isnan(high_freq_factor):
        return NAN
    if rotations < low_freq_factor:
        return inv_freq / factor
    if rotations >= high_freq_factor:
        return inv_freq
    kept = (rotations - low_freq_factor) / (high_freq_factor - low_freq_factor)
    return (1.0 - kept) * inv_freq / factor + kept * inv_freq


cdef inline double yarn_attention_factor(double scale) noexcept nogil:
    if scale <= 1.0:
        return 1.0
    return 0.1 * log(scale) + 1.0


cdef inline double yarn_correction_dim(
    double rotations, double head_dim, double base, double max_position
) noexcept nogil:
    if rotations <= 0.0 or base <= 1.0 or max_position <= 0.0:
        return 0.0
    return head_dim * log(max_position / (6.283185307179586 * rotations)) / (2.0 * log(base))


cdef inline double yarn_ramp(double pair_index, double low, double high) noexcept nogil:
    if high <= low:
        return NAN if isnan(pair_index) else 1.0 if pair_index > low else 0.0
    return maximum(minimum((pair_index - low) / (high - low), 1.0), 0.0)


cdef inline double longrope_attention_factor(double scale, double original_max_position) noexcept nogil:
    if scale <= 1.0 or original_max_position <= 1.0:
        return 1.0
    return sqrt(1.0 + log(scale) / log(original_max_position))
