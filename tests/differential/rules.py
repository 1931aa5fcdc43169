# What kvformulas makes of the cases that are compared with transformers: rotary scaling and the rules of sampling.
# Nothing here needs transformers; test_transformers.py beside it does, and writes what it found to transformers.json.
import json
import math
import random
from pathlib import Path

import kvformulas as kv

RECORD = Path(__file__).with_name("transformers.json")
# transformers computes angles in single precision, whose rounded exponents the logarithm of the base magnifies. Its z
# score is computed in double precision, but loses what cancels.
TOLERANCE = {"angles": 4e-6, "factor": 1e-15, "logits": 0.0, "z_score": 1e-14}
ABSOLUTE = {"z_score": 1e-14}

BASES = ((10000.0, 128, 2048), (500000.0, 128, 8192), (1000000.0, 64, 32768))


def _rope_cases():
    for base, dim, trained in BASES:
        model = {"base": base, "head_dim": dim, "max_position": trained}
        for factor in (1.0, 2.0, 8.0):
            for seq in (trained // 2, trained, trained + 1, 2 * trained, 7 * trained):
                yield "dynamic", model | {"factor": factor, "seq_len": seq}
        for alpha in (2, 4, 8):
            yield "ntk", model | {"alpha": alpha}
        for factor in (1.0, 4.0, 40.0):
            for turns in ((32.0, 1.0), (4.0, 2.0), (1.0, 1.0)):
                yield "yarn", model | {"factor": factor, "beta_fast": turns[0], "beta_slow": turns[1]}
        for factor in (8.0, 32.0):
            for bounds in ((1.0, 4.0), (2.0, 16.0)):
                yield "llama3", model | {"factor": factor, "low": bounds[0], "high": bounds[1]}
        for factor in (0.5, 1.0, 4.0, 32.0):
            yield "longrope", model | {"factor": factor}


def _sampling_cases():
    chance = random.Random(0)
    for n in range(6):
        # Eighths, so that there are ties, and some fine ones.
        logits = [chance.randint(-64, 64) / 8 if n % 2 else round(chance.gauss(0, 4), 3) for _ in range(40)]
        yield "repetition_penalty", {"logits": logits, "penalty": 1 + n / 4, "ids": chance.choices(range(40), k=12)}
        yield "temperature", {"logits": logits, "temperature": 0.3 + n / 4}
        yield "top_k", {"logits": logits, "k": 1 + 7 * n}
        for share in (0.125, 0.5, 0.9, 0.99):
            yield "top_p", {"logits": logits, "p": share}
            yield "min_p", {"logits": logits, "min_p": share}
        for mass in (0.2, 0.5, 0.95):
            yield "typical", {"logits": logits, "mass": mass}
        # Squares of powers of two: transformers takes the root in single precision.
        for epsilon in (2.0**-10, 2.0**-6, 0.25):
            yield "epsilon", {"logits": logits, "epsilon": epsilon}
            yield "eta", {"logits": logits, "epsilon": epsilon}
    for gamma in (0.1, 0.25, 0.5, 0.7):
        yield "green_list", {"vocab_size": 1000 + int(1000 * gamma) % 7, "gamma": gamma}
        for green in (0, 20, 120):
            yield "z_score", {"green": green, "tokens": 200, "gamma": gamma}


CASES = [*_rope_cases(), *_sampling_cases()]


# --- Rotary scaling: the angles of all pairs, and the attention factor ------------------------------------------------


def _angles(base, dim):
    return [kv.rope_inverse_frequency(base, pair, dim) for pair in range(dim // 2)]


def dynamic(base, head_dim, max_position, factor, seq_len):
    return {"angles": _angles(kv.dynamic_ntk_rope_base(base, factor, seq_len, max_position, head_dim), head_dim)}


def ntk(base, head_dim, max_position, alpha):
    del max_position
    return {"angles": _angles(kv.ntk_rope_base(base, alpha, head_dim), head_dim)}


def yarn(base, head_dim, max_position, factor, beta_fast, beta_slow):
    fast, slow = (kv.yarn_correction_dim(turns, head_dim, base, max_position) for turns in (beta_fast, beta_slow))
    low, high = max(math.floor(fast), 0), min(math.ceil(slow), head_dim - 1)
    mixed = []
    for pair, angle in enumerate(_angles(base, head_dim)):
        ramp = kv.yarn_ramp(pair, low, high)
        mixed.append(ramp * angle / factor + (1 - ramp) * angle)
    return {"angles": mixed, "factor": kv.yarn_attention_factor(factor)}


def llama3(base, head_dim, max_position, factor, low, high):
    angles = _angles(base, head_dim)
    return {"angles": [kv.llama3_rope_frequency(angle, factor, low, high, max_position) for angle in angles]}


def longrope(base, head_dim, max_position, factor):
    del base, head_dim
    return {"factor": kv.longrope_attention_factor(factor, max_position)}


# --- Sampling: the new logits, or those of the tokens that stay -------------------------------------------------------


def _distribution(logits):
    largest = max(logits)
    total = math.fsum(math.exp(logit - largest) for logit in logits)
    log_probs = [logit - largest - math.log(total) for logit in logits]
    entropy = -math.fsum(math.exp(x) * x for x in log_probs)
    return [math.exp(x) for x in log_probs], log_probs, entropy


def _stay(logits, accepted):
    # By their logits: which of equal ones go is up to a sort that isn't stable.
    return {"stay": sorted(logit for logit, accept in zip(logits, accepted, strict=True) if accept)}


def _by(keys):
    """Return tokens in the order of these keys, and for each the keys' competition rank from 1."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return order, [1 + sum(other < key for other in keys) for key in keys]


def repetition_penalty(logits, penalty, ids):
    return {"logits": [kv.repetition_penalty_scale(logit, penalty, ids.count(i)) for i, logit in enumerate(logits)]}


def temperature(logits, temperature):
    return {"logits": [kv.temperature_scale(logit, temperature) for logit in logits]}


def top_k(logits, k):
    _, rank = _by([-logit for logit in logits])
    return _stay(logits, (kv.top_k_accept(r, k) for r in rank))


def top_p(logits, p):
    probs, *_ = _distribution(logits)
    order, _ = _by([-logit for logit in logits])
    accepted, before = [0.0] * len(logits), 0.0
    for token in order:
        accepted[token] = kv.top_p_cumulative(probs[token], before, p)
        before += probs[token]
    return _stay(logits, accepted)


def min_p(logits, min_p):
    probs, *_ = _distribution(logits)
    return _stay(logits, (kv.min_p_accept(prob, max(probs), min_p) for prob in probs))


def typical(logits, mass):
    probs, log_probs, entropy = _distribution(logits)
    order, _ = _by([kv.typical_p_score(x, entropy) for x in log_probs])
    # The bound is the score of the token that completes the mass.
    total = 0.0
    for token in order:
        total += probs[token]
        if total >= mass:
            break
    bound = kv.typical_p_score(log_probs[token], entropy)
    return _stay(logits, (kv.typical_sampling_accept(x, entropy, bound) for x in log_probs))


def epsilon(logits, epsilon):
    probs, *_ = _distribution(logits)
    return _stay(logits, (kv.epsilon_sampling_accept(p, epsilon) or p == max(probs) for p in probs))


def eta(logits, epsilon):
    probs, _, entropy = _distribution(logits)
    return _stay(logits, (p >= kv.eta_cutoff(epsilon, entropy) or p == max(probs) for p in probs))


def green_list(vocab_size, gamma):
    return {"logits": [kv.watermark_green_list_size(vocab_size, gamma)]}


def z_score(green, tokens, gamma):
    return {"z_score": kv.watermark_z_score(green, tokens, gamma)}


def ours(rule, arguments):
    """Return what kvformulas makes of a case: named lists of numbers, or numbers."""
    return globals()[rule](**arguments)


def differences(theirs, mine):
    """Yield what differs by more than its tolerance."""
    assert set(theirs) == set(mine)
    for kind, value in theirs.items():
        if kind == "stay":
            if value != mine[kind]:
                yield kind, value, mine[kind]
        else:
            pairs = zip(value, mine[kind], strict=True) if isinstance(value, list) else [(value, mine[kind])]
            absolute = ABSOLUTE.get(kind, 0.0)
            yield from (
                (kind, x, y) for x, y in pairs if not math.isclose(x, y, rel_tol=TOLERANCE[kind], abs_tol=absolute)
            )


def record():
    """Return what transformers made of the cases when it was last asked."""
    return json.loads(RECORD.read_text())
