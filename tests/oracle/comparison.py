# How far a kernel's double is from the oracle's value: in ULP, and 0 or infinity where the value is a decision.
#
# A decision (a gate, a count of blocks, a parity) is made on an operand that a kernel rounds: a threshold, a quotient
# or a sum. Where the exact operand lies within that rounding of a jump, no double can tell on which side it is. The
# rule: the kernel's decision must be that of some real within the operand's own budget of the exact operand, and the
# budget is nil where every argument is a whole number up to 2**53, and where the operand is a double that one operation
# gives. The oracle itself always decides by the exact operand.
import math

from oracle import IRRATIONAL, value
from oracle.context import reals, truncated
from ulp import error as ulp_error
from ulp import exactly, gap, nearest_double

_BITS = 8192
_LARGEST_WHOLE = 2.0**53
_ONE_ROUNDING = 0.5

# Where terms can cancel, the error is counted in ULP of the largest number that the sum passes through: a term, a
# partial sum or the result. These functions take exact numbers of any type: fractions, or the balls of accuracy.py.


def _quantization(value, scale, zero_point):
    if not scale > 0:
        return 0
    code = (2 * (value / scale + zero_point) + 1) / 2
    code = min(max(code.floor() if hasattr(code, "floor") else math.floor(code), -128), 127)
    return max(abs(value), abs(code * scale), abs(zero_point * scale), abs((code - zero_point) * scale))


def _penalties(logit, token_count, frequency_penalty, presence_penalty):
    frequency = token_count * frequency_penalty
    presence = presence_penalty if token_count > 0 else 0
    return max(abs(logit), abs(frequency), abs(presence), abs(logit - frequency), abs(logit - frequency - presence))


def _difference(term, factor, other):
    return max(abs(term), abs(factor * other), abs(term - factor * other))


LARGEST_TERM = {
    "kv_quantization_error": _quantization,
    "token_frequency_penalty": _penalties,
    "frequency_penalty_logit": _difference,
    "contrastive_decode_score": _difference,
}


def _blocks(tokens, size):
    return (tokens + size - 1) / size


# Counts: the operand whose fraction is dropped, the size of its largest term, and its budget in gaps at that.
COUNTS = {
    "iteration_level_batch_size": (
        lambda tokens, each: tokens / each,
        lambda tokens, each: tokens / each,
        _ONE_ROUNDING,
    ),
    "paged_attention_block_count": (_blocks, lambda tokens, size: max(abs(tokens), size, 1) / size, 3),
    "chunked_prefill_chunks": (_blocks, lambda tokens, size: max(abs(tokens), size, 1) / size, 3),
}
# Gates: the two sides of the comparison, of which the second is the threshold, and its budget in gaps.
GATES = {
    "admission_control_accept": (lambda request, free, margin: (request, free * (1 - margin)), 1.5),
    "min_p_accept": (lambda prob, largest, min_p: (prob, largest * min_p), _ONE_ROUNDING),
    "typical_sampling_accept": (lambda log_prob, entropy, tau: (tau, abs(log_prob + entropy)), _ONE_ROUNDING),
    "eta_sampling_accept": (lambda prob, entropy, eta: (prob, eta * _exp(-entropy / 2)), 2),
}


def _exp(x):
    return x.context.exp(x)


# A whole part of odd or even parity.
PARITIES = frozenset({"watermark_green_list_bias"})
DECISIONS = frozenset({*COUNTS, *GATES, *PARITIES})


def _settled(name, args):
    """Do the arguments leave no room: one is not finite, or all are whole and small, and so is a sum of them?"""
    if not all(map(math.isfinite, args)):
        return True
    if name in PARITIES and abs(args[0] + args[1]) >= _LARGEST_WHOLE:
        return False
    return all(abs(x) <= _LARGEST_WHOLE and x == math.floor(x) for x in args)


def _room(budget, exact, largest):
    """Return how far from the exact operand a kernel's may lie; one rounding (half a gap) leaves a double as it is."""
    return 0 if budget == _ONE_ROUNDING and nearest_double(exact) == exact else budget * gap(largest)


def _may_decide(name, args, got):
    """Is `got` the decision of some real within its budget of the exact operand?"""
    if _settled(name, args):
        return False
    mp = reals(256 if name in IRRATIONAL else _BITS)
    numbers = [mp.mpf(x) for x in args]
    if name in GATES and got in (0, 1):
        sides, budget = GATES[name]
        left, threshold = sides(*numbers)
        room = _room(budget, threshold, threshold)
        return room > 0 and abs(left - threshold) <= room
    if name in COUNTS and args[1] > 0 and math.isfinite(got):
        operand, largest, budget = COUNTS[name]
        exact = operand(*numbers)
        room = _room(budget, exact, largest(*numbers))
        return got == math.trunc(got) and truncated(mp, exact - room) <= got <= truncated(mp, exact + room)
    if name in PARITIES and got in (0, args[2]):
        code = numbers[0] + numbers[1]
        room = _room(_ONE_ROUNDING, code, code)
        return truncated(mp, code - room) != truncated(mp, code + room)
    return False


def largest_term(name, args):
    """Return the exact size of the largest term, for a formula whose budget is in ULP of it, else None."""
    if name not in LARGEST_TERM or not all(map(math.isfinite, args)):
        return None
    return LARGEST_TERM[name](*map(exactly, args))


def error(name, args, got, prec=256):
    """Return how far `got` is from the formula's value at these doubles, in ULP; a wrong decision is infinitely far."""
    distance = ulp_error(got, value(name, args, prec), largest_term(name, args))
    if distance == 0 or name not in DECISIONS:
        return distance
    return 0.0 if _may_decide(name, args, got) else math.inf
