# How far a kernel's double is from the oracle's value: in ULP, and 0 or infinity where the value is a decision.
#
# A decision (a gate, a count of blocks, a parity) is made on an operand that a kernel rounds: a threshold, a quotient
# or a sum. Where the exact operand lies within that rounding of a jump, no double can tell on which side it is. The
# rule: the kernel's decision must be that of some real within the operand's own budget of the exact operand, and the
# budget is nil where every argument is a whole number up to 2**53, and where the operand is a double that one operation
# gives. The oracle itself always decides by the exact operand.
import math

from oracle import IRRATIONAL, value
from oracle.context import power, reals, truncated
from ulp import error as ulp_error
from ulp import exactly, gap, nearest_double

_BITS = 8192
_LARGEST_WHOLE = 2.0**53
_ONE_ROUNDING = 0.5
SURE, LARGEST_BUDGET = 0.5, 4  # in ULP: right whatever the formula, wrong whatever the formula
_MANY = 16  # whole parts, where all between them count

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


def _sum(*terms):
    partial = [sum(terms[:n]) for n in range(1, len(terms) + 1)]
    return max(map(abs, [*terms, *partial]))


def _ceiling(x):
    return x.ceil() if hasattr(x, "ceil") else math.ceil(x)


def _head_bytes(head_dim, bits, group_size, scale_bytes):
    groups = _ceiling(head_dim / group_size) if group_size > 0 else 1
    return _sum(head_dim * bits / 8, groups * scale_bytes)


def _missing_blocks(computed, new, lookahead, max_model_len, block_size, held, cached):
    size = block_size if block_size > 0 else 1
    tokens = computed + new + lookahead
    partial = computed + new if tokens <= max_model_len else 0
    blocks = min(tokens, max_model_len)
    if block_size > 0:
        blocks = _ceiling(blocks / block_size)
    return max(abs(partial) / size, _sum(blocks, -held, -cached))


def _window_blocks(seq_len, window, batched, block_size):
    tokens = window - 1 + batched
    largest = _sum(window, -1, batched) if tokens <= seq_len else 0
    if block_size > 0:
        return max(largest / block_size, _sum(_ceiling(min(tokens, seq_len) / block_size), 1))
    return max(largest, abs(min(tokens, seq_len)))


def _first_token(queue, transfer, uncached, throughput):
    return _sum(queue, transfer, uncached / throughput if throughput > 0 else 0)


def _one_and_a_ratio(part, whole):
    ratio = part / whole if whole > 0 else 0
    return max(1, abs(ratio), abs(1 + ratio))


def _temperature(*arguments):
    mp, (entropy, most, low, high, exponent) = _floating(*arguments)
    if entropy <= 0 or most <= 0:
        return abs(low)
    change = (high - low) * power(mp, entropy / most, exponent)
    return max(abs(low), abs(change), abs(low + change))


def _gumbel(*arguments):
    # The outer logarithm is of a rounded number, so that its error is one of 1, however small it is itself.
    mp, (logit, uniform) = _floating(*arguments)
    noise = mp.log(-mp.log(uniform)) if 0 < uniform < 1 else 0
    return max(1, abs(logit), abs(noise), abs(logit - noise))


def _mirostat(mu, learning_rate, surprise, target_surprise):
    step = learning_rate * (surprise - target_surprise)
    return max(abs(mu), abs(step), abs(mu - step))


def _llama3(*arguments):
    # Between its bounds a frequency is a share of two terms; the share is a difference, of terms that may be larger.
    mp, (inv_freq, factor, low, high, positions) = _floating(*arguments)
    if factor <= 0:
        return abs(inv_freq)
    rotations = positions * inv_freq / (2 * mp.pi)
    scaled = max(abs(inv_freq), abs(inv_freq / factor))
    near = 1 + mp.mpf(2) ** -50  # within its rounding of a bound, a kernel's may be on the other side
    if low < high and low <= rotations * near and rotations <= high * near:
        return scaled * max(1, rotations / (high - low))
    return abs(inv_freq / factor) if rotations < low else abs(inv_freq)


def _correction_dim(*arguments):
    # The logarithm of a rounded number errs by one of 1, however small it is itself.
    mp, (rotations, head_dim, base, positions) = _floating(*arguments)
    if rotations <= 0 or base <= 1 or positions <= 0:
        return 0
    logarithm = mp.log(positions / (2 * mp.pi * rotations))
    return abs(head_dim / (2 * mp.log(base))) * max(1, abs(logarithm))


def _floating(*numbers):
    """Return numbers of any type that are doubles as mpf, and their context: for terms that are no rational numbers."""
    mp = reals(64)
    return mp, [mp.mpf(float(number)) for number in numbers]


LARGEST_TERM = {
    "kv_quantization_error": _quantization,
    "token_frequency_penalty": _penalties,
    "frequency_penalty_logit": _difference,
    "contrastive_decode_score": _difference,
    "llama3_rope_frequency": _llama3,
    "yarn_correction_dim": _correction_dim,
    "dynamic_temperature": _temperature,
    "gumbel_max_score": _gumbel,
    "mirostat_mu_update": _mirostat,
    "mean_acceptance_length": _one_and_a_ratio,
    "quantized_head_bytes": _head_bytes,
    "sliding_window_blocks": _window_blocks,
    "new_blocks_needed": _missing_blocks,
    "response_ratio": lambda waited, uncached: _sum(1, waited / uncached if uncached > 0 else waited),
    "time_to_first_token": _first_token,
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
    "watermark_green_list_size": (
        lambda vocab, gamma: gamma * vocab,
        lambda vocab, gamma: gamma * vocab,
        _ONE_ROUNDING,
    ),
}
# Of these the operand is a product, of any sign, and no quotient.
PRODUCTS = frozenset({"watermark_green_list_size"})
# Gates: the two sides of the comparison, of which the second is the threshold, and its budget in gaps.
GATES = {
    "admission_control_accept": (lambda request, free, margin: (request, free * (1 - margin)), 1.5),
    "orca_admission_accept": (lambda reserved, most, slots: (slots, reserved + most), _ONE_ROUNDING),
    "min_p_accept": (lambda prob, largest, min_p: (prob, largest * min_p), _ONE_ROUNDING),
    "typical_sampling_accept": (lambda log_prob, entropy, tau: (tau, abs(log_prob + entropy)), _ONE_ROUNDING),
    "eta_sampling_accept": (lambda prob, entropy, eta: (prob, eta * _exp(-entropy / 2)), 2),
    "contrastive_plausible_accept": (lambda prob, largest, alpha: (prob, alpha * largest), _ONE_ROUNDING),
    "top_n_sigma_accept": (lambda logit, largest, sigma, n: (logit, largest - n * sigma), _ONE_ROUNDING),
}


def _exp(x):
    return x.context.exp(x)


def _one_more(depth, acceptance_rate, cost_ratio):
    """Return the two sides that decide whether a draft token more pays: what it yields and what it costs."""
    power = acceptance_rate.context.power(acceptance_rate, depth + 1)
    return power * (depth * cost_ratio + 1), cost_ratio * (1 - power) / (1 - acceptance_rate)


# The best of the whole numbers up to the last argument: the sides of "is the next one better?", and the budget in ULP
# of either side. A kernel's must be the best for some such sides.
OPTIMA = {"best_speculation_depth": (_one_more, 8)}
# A whole part of odd or even parity.
PARITIES = frozenset({"watermark_green_list_bias"})
# Sums of whole arguments that may be too large to be exact.
SUMS = {
    "watermark_green_list_bias": lambda a: a[0] + a[1],
    "sliding_window_blocks": lambda a: a[1] - 1 + a[2],
    "watermark_admission_accept": lambda a: a[0] + a[3] * a[4],
    "new_blocks_needed": lambda a: a[0] + a[1] + a[2],
    "usable_prefix_hit_tokens": lambda a: a[0] - 1,
    "orca_admission_accept": lambda a: a[0] + a[1],
    "uncached_prefill_chunks": lambda a: a[0] - a[1],
}
DECISIONS = frozenset({*COUNTS, *GATES, *OPTIMA, *PARITIES})


def _settled(name, args):
    """Do the arguments leave no room: one is not finite, or all are whole and small, and so is a sum of them?"""
    if not all(map(math.isfinite, args)):
        return True
    if name in SUMS and abs(SUMS[name](args)) >= _LARGEST_WHOLE:
        return False
    return all(abs(x) <= _LARGEST_WHOLE and x == math.floor(x) for x in args)


def _room(budget, exact, largest):
    """Return how far from the exact operand a kernel's may lie; one rounding (half a gap) leaves a double as it is."""
    return 0 if budget == _ONE_ROUNDING and nearest_double(exact) == exact else budget * gap(largest)


def _may_decide(name, args, got):
    """Is `got` the decision of some real within its budget of the exact operand?"""
    # How far an optimum is sought doesn't decide it.
    if _settled(name, args[:-1] if name in OPTIMA else args):
        return False
    mp = reals(256 if name in IRRATIONAL else _BITS)
    numbers = [mp.mpf(x) for x in args]
    if name in GATES and got in (0, 1):
        sides, budget = GATES[name]
        left, threshold = sides(*numbers)
        room = _room(budget, threshold, threshold)
        return room > 0 and abs(left - threshold) <= room
    if name in COUNTS and (args[1] > 0 or name in PRODUCTS) and math.isfinite(got):
        operand, largest, budget = COUNTS[name]
        exact = operand(*numbers)
        room = _room(budget, exact, largest(*numbers))
        return got == math.trunc(got) and truncated(mp, exact - room) <= got <= truncated(mp, exact + room)
    if name in OPTIMA and 0 <= got <= args[-1] and got == math.trunc(got):
        sides, budget = OPTIMA[name]
        room = 1 + budget * mp.mpf(2) ** -52
        # From 2**53 on, the whole number before is that which is a double.
        before = min(mp.mpf(got) - 1, mp.mpf(math.nextafter(got, 0)))
        (more, less), (more_before, less_before) = sides(got, *numbers[:-1]), sides(before, *numbers[:-1])
        return (more <= less * room or got > args[-1] - 1) and (got == 0 or more_before * room >= less_before)
    if name in PARITIES and got in (0, args[2]):
        code = numbers[0] + numbers[1]
        room = _room(_ONE_ROUNDING, code, code)
        return truncated(mp, code - room) != truncated(mp, code + room)
    return False


# Formulas with a whole part inside: the exact values that the rounding of its operand leaves open, where that operand
# is next to a whole number.
def _wholes(part, exact, room):
    low, high = part(exact - room), part(exact + room)
    return {part(exact), high, *(low + n for n in range(int(min(high - low, _MANY)) + 1))}


def _quotients(part, numerator, divisor, budget, largest=None):
    """Return the whole parts of a quotient whose numerator was rounded: its budget is in gaps, of the largest term."""
    if not divisor > 0:
        return set()
    exact = numerator / divisor
    return _wholes(part, exact, _room(budget, exact, exact if largest is None else largest / divisor))


def _least(tokens, limit, largest):
    """Return the lesser of a rounded sum and a limit, how far it may be off, in gaps, and of what."""
    if limit < tokens - 2 * gap(largest):
        return limit, _ONE_ROUNDING, limit
    return min(tokens, limit), 1.5, largest


def _grouped(mp, head_dim, bits, group_size, scale_bytes):
    groups = _quotients(mp.ceil, head_dim, group_size, _ONE_ROUNDING)
    return [head_dim * bits / 8 + n * scale_bytes for n in groups]


def _windowed(mp, seq_len, window, batched, block_size):
    tokens = window - 1 + batched
    held, budget, largest = _least(tokens, seq_len, max(abs(window), 1, abs(tokens)))
    return [n + 1 for n in _quotients(mp.ceil, held, block_size, budget, largest)]


def _admitted(mp, needed, free, reserved, total, watermark):
    product = total * watermark
    right = free - reserved
    answers = set()
    for n in _wholes(lambda x: truncated(mp, x), product, _room(_ONE_ROUNDING, product, product)):
        left = needed + n
        room = _room(_ONE_ROUNDING, left, left) + _room(_ONE_ROUNDING, right, right)
        answers |= {mp.zero, mp.one} if abs(left - right) <= room else {mp.mpf(left <= right)}
    return answers


def _missing(mp, computed, new, lookahead, max_model_len, block_size, held, cached):
    tokens = computed + new + lookahead
    stored, budget, largest = _least(tokens, max_model_len, max(abs(computed + new), abs(tokens)))
    return [max(mp.zero, n - held - cached) for n in _quotients(mp.ceil, stored, block_size, budget, largest)]


def _usable(mp, prompt_len, cached_tokens, block_size):
    tokens = min(cached_tokens, prompt_len - 1)
    return [n * block_size for n in _quotients(lambda x: truncated(mp, x), tokens, block_size, 1)]


def _aligned(mp, remaining, cap, unit):
    if remaining <= cap:
        return []
    return [n * unit for n in _quotients(lambda x: truncated(mp, x), cap, unit, _ONE_ROUNDING)]


def _reserved(mp, total, watermark):
    product = total * watermark
    return _wholes(lambda x: truncated(mp, x), product, _room(_ONE_ROUNDING, product, product))


STEPS = {
    "quantized_head_bytes": _grouped,
    "kv_heads_per_rank": lambda mp, heads, ranks: [
        max(mp.one, n) for n in _quotients(mp.ceil, heads, ranks, _ONE_ROUNDING)
    ],
    "sliding_window_blocks": _windowed,
    "watermark_reserved_blocks": _reserved,
    "watermark_admission_accept": _admitted,
    "new_blocks_needed": _missing,
    "usable_prefix_hit_tokens": _usable,
    "aligned_chunk_tokens": _aligned,
    "uncached_prefill_chunks": lambda mp, prompt, cached, size: _quotients(mp.ceil, prompt - cached, size, 1.5),
}


def largest_term(name, args):
    """Return the exact size of the largest term, for a formula whose budget is in ULP of it, else None."""
    if name not in LARGEST_TERM or not all(map(math.isfinite, args)):
        return None
    return LARGEST_TERM[name](*map(exactly, args))


def error(name, args, got, prec=256):
    """Return how far `got` is from the formula's value at these doubles, in ULP; a wrong decision is infinitely far."""
    exact, largest = value(name, args, prec), largest_term(name, args)
    distance = ulp_error(got, exact, largest)
    if name in STEPS and distance > SURE and not _settled(name, args):
        mp = reals(_BITS)
        others = STEPS[name](mp, *map(mp.mpf, args))
        if len(others) > _MANY and min(others) <= got <= max(others):
            return 0.0
        return min([distance, *(ulp_error(got, other, largest) for other in others)])
    if distance == 0 or name not in DECISIONS:
        return distance
    # A whole number that is no double is rounded to one.
    return 0.0 if got == nearest_double(exact) or _may_decide(name, args, got) else math.inf
