// The loops of each formula over contiguous elements: C++ templates, so that the kernel is inlined and they are vectorised.
// On x86-64 they are compiled twice, for every processor and for those with AVX2 and FMA. Both give the same bits, since the
// compiler may not contract (setup.py). Only the language is used: nothing of the C++ library is linked.
#ifndef KVFORMULAS_UFUNCS_H
#define KVFORMULAS_UFUNCS_H

#include <cfenv>
#include <cstddef>
#include <utility>

#if defined(__GNUC__)
#define KVF_INLINE __attribute__((always_inline)) inline
#define KVF_LOOP __attribute__((flatten, noinline))
#else
#define KVF_INLINE inline
#define KVF_LOOP
#endif

#if defined(__GNUC__) && defined(__x86_64__)
#include <xmmintrin.h>
#define KVF_AVX2_LOOP __attribute__((flatten, target("avx2,fma")))
#define KVF_HAS_AVX2 (__builtin_cpu_init(), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define KVF_AVX2_LOOP
#define KVF_HAS_AVX2 0
#endif

// The results may lie where an argument does (out=), never across it: the loop needs no check.
#if defined(__GNUC__) && !defined(__clang__)
#define KVF_INDEPENDENT _Pragma("GCC ivdep")
#define KVF_TWICE _Pragma("GCC unroll 2")
#else
#define KVF_INDEPENDENT
#define KVF_TWICE
#endif

namespace {

// The processor's floating-point flags, to put back: a vectorised loop computes both sides of a guard.
#if defined(__GNUC__) && defined(__x86_64__)
typedef unsigned Flags;
inline void hold(Flags *flags) { *flags = _mm_getcsr(); }
inline void put_back(const Flags *flags) { _mm_setcsr(*flags); }
#else
typedef std::fenv_t Flags;
inline void hold(Flags *flags) { std::feholdexcept(flags); }
inline void put_back(const Flags *flags) { std::fesetenv(flags); }
#endif

typedef void (*Loop)(const void *const *arguments, void *results, std::ptrdiff_t from, std::ptrdiff_t to);

// The AVX2 loops take whole lines of 16 elements and leave the rest to the other ones.
enum { MOST_ARGUMENTS = 8, LINES = ~15 };

struct Loops {
    Loop any, avx2;
};

struct Formula {
    int arguments;
    Loops doubles, floats;
    Loops doubles_by_number, floats_by_number;  // for two arguments, the second one number for all; else null
};

template <typename Element> KVF_INLINE const Element &at(const void *array, std::ptrdiff_t i) {
    return static_cast<const Element *>(array)[i];
}
template <typename Element> KVF_INLINE void put(void *array, std::ptrdiff_t i, double result) {
    static_cast<Element *>(array)[i] = static_cast<Element>(result);
}

template <typename Element, typename Kernel, Kernel kernel> struct Over;

template <typename Element, typename... Doubles, double (*kernel)(Doubles...)>
struct Over<Element, double (*)(Doubles...), kernel> {
    template <std::size_t... k>
    static KVF_INLINE void each(
        const void *const *arguments, void *y, std::ptrdiff_t from, std::ptrdiff_t to, std::index_sequence<k...>
    ) {
        const void *x[] = {arguments[k]...};
        KVF_INDEPENDENT
        for (std::ptrdiff_t i = from; i < to; i++) put<Element>(y, i, kernel(at<Element>(x[k], i)...));
    }
    static KVF_LOOP void any(const void *const *x, void *y, std::ptrdiff_t from, std::ptrdiff_t to) {
        each(x, y, from, to, std::index_sequence_for<Doubles...>());
    }
    static KVF_AVX2_LOOP void avx2(const void *const *x, void *y, std::ptrdiff_t, std::ptrdiff_t to) {
        each(x, y, 0, to & LINES, std::index_sequence_for<Doubles...>());
        any(x, y, to & LINES, to);
    }
    static constexpr Loops loops() { return {any, avx2}; }
    static constexpr Loops loops_by_number() { return {nullptr, nullptr}; }
};

// Of two arguments the second is often one number; and where there is little to compute, unrolling once is worth it.
template <typename Element, double (*kernel)(double, double)> struct Over<Element, double (*)(double, double), kernel> {
    static KVF_LOOP void any(const void *const *x, void *y, std::ptrdiff_t from, std::ptrdiff_t to) {
        const void *a = x[0], *b = x[1];
        KVF_INDEPENDENT
        for (std::ptrdiff_t i = from; i < to; i++) put<Element>(y, i, kernel(at<Element>(a, i), at<Element>(b, i)));
    }
    static KVF_AVX2_LOOP void avx2(const void *const *x, void *y, std::ptrdiff_t, std::ptrdiff_t to) {
        const void *a = x[0], *b = x[1];
        KVF_INDEPENDENT KVF_TWICE
        for (std::ptrdiff_t i = 0; i < (to & LINES); i++) put<Element>(y, i, kernel(at<Element>(a, i), at<Element>(b, i)));
        any(x, y, to & LINES, to);
    }
    static KVF_LOOP void any_by_number(const void *const *x, void *y, std::ptrdiff_t from, std::ptrdiff_t to) {
        const void *a = x[0];
        const double b = at<Element>(x[1], 0);
        KVF_INDEPENDENT
        for (std::ptrdiff_t i = from; i < to; i++) put<Element>(y, i, kernel(at<Element>(a, i), b));
    }
    static KVF_AVX2_LOOP void avx2_by_number(const void *const *x, void *y, std::ptrdiff_t, std::ptrdiff_t to) {
        const void *a = x[0];
        const double b = at<Element>(x[1], 0);
        KVF_INDEPENDENT KVF_TWICE
        for (std::ptrdiff_t i = 0; i < (to & LINES); i++) put<Element>(y, i, kernel(at<Element>(a, i), b));
        any_by_number(x, y, to & LINES, to);
    }
    static constexpr Loops loops() { return {any, avx2}; }
    static constexpr Loops loops_by_number() { return {any_by_number, avx2_by_number}; }
};

template <typename Kernel, Kernel kernel> struct Of {
    static const Formula formula;
};

template <typename... Doubles> constexpr int count(double (*)(Doubles...)) {
    static_assert(sizeof...(Doubles) <= MOST_ARGUMENTS, "raise MOST_ARGUMENTS");
    return sizeof...(Doubles);
}

template <typename Kernel, Kernel kernel>
const Formula Of<Kernel, kernel>::formula = {
    count(kernel),
    Over<double, Kernel, kernel>::loops(),
    Over<float, Kernel, kernel>::loops(),
    Over<double, Kernel, kernel>::loops_by_number(),
    Over<float, Kernel, kernel>::loops_by_number(),
};

}  // namespace

#define FORMULA(kernel) (&Of<decltype(&kernel), &kernel>::formula)

#endif
