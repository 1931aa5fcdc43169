/* The loops of candidates.pyx as a C author would write them by hand, formula in place, with the same answers. */
#include <math.h>

static inline double hand_preemption(double priority, double generated, double tokens)
{
    double restart_cost = priority * (generated + 1.0);
    return restart_cost <= 0.0 ? tokens : tokens / restart_cost;
}

static inline double hand_blocks(double length, double size)
{
    double padded = length + size - 1.0;
    if (size <= 0.0)
        return length;
    if (padded < 9007199254740992.0)
        return trunc(padded / size);
    if (length > 9007199254740992.0 || !(padded < INFINITY))
        return ceil(length / size) + (size - size);
    return floor((length - 1.0) / size) + 1.0;
}

static Py_ssize_t hand_argmax(const double *priority, const double *generated, const double *tokens, Py_ssize_t n)
{
    Py_ssize_t best = 0;
    double highest = -INFINITY;
    for (Py_ssize_t i = 0; i < n; i++) {
        double score = hand_preemption(priority[i], generated[i], tokens[i]);
        if (score > highest) {
            highest = score;
            best = i;
        }
    }
    return best;
}

static void hand_scores(
    const double *priority, const double *generated, const double *tokens, double *scores, Py_ssize_t n
)
{
    for (Py_ssize_t i = 0; i < n; i++)
        scores[i] = hand_preemption(priority[i], generated[i], tokens[i]);
}

static double hand_total(const double *lengths, double size, Py_ssize_t n)
{
    double total = 0.0;
    for (Py_ssize_t i = 0; i < n; i++)
        total += hand_blocks(lengths[i], size);
    return total;
}
