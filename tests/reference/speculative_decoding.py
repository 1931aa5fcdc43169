# Draft-then-verify decoding, grammars, repair, contrast, healing and watermarks, by another route.
from reference.exact import is_even, whole_part

_FEW = 8


def speculative_accept_prob(target_prob, draft_prob):
    return 1 if draft_prob <= 0 or target_prob >= draft_prob else target_prob / draft_prob


def speculative_expected_tokens(acceptance_rate, speculation_depth):
    if acceptance_rate <= 0:
        return 1
    if acceptance_rate >= 1:
        return 1 + speculation_depth
    if speculation_depth in range(_FEW):
        # One token, and one more for each draft token that is accepted after all those before it.
        expected = 1
        for _ in range(round(float(speculation_depth))):
            expected = 1 + acceptance_rate * expected
        return expected
    return ((1 + speculation_depth) * acceptance_rate.log()).expm1() / (acceptance_rate - 1)


def draft_model_speedup(expected_tokens, target_latency_ms, draft_latency_ms, speculation_depth):
    total_ms = speculation_depth * draft_latency_ms + target_latency_ms
    return target_latency_ms / total_ms * expected_tokens if total_ms > 0 else 1


def medusa_head_acceptance(medusa_prob, target_prob, _):
    return 1 if medusa_prob <= 0 or target_prob >= medusa_prob else target_prob / medusa_prob


def json_grammar_logit_mask(_, is_valid_next):
    return -1_000_000_000 if is_valid_next <= 0.5 else 0


def constrained_beam_score(beam_log_prob, grammar_valid, length, alpha):
    if grammar_valid >= 0.5:
        return beam_log_prob * length**-alpha if length > 0 else beam_log_prob
    return -1_000_000_000


def structured_repair_score(output_validity, repair_attempts, max_repair_attempts):
    if max_repair_attempts > 0:
        return (max_repair_attempts - repair_attempts) * output_validity / max_repair_attempts
    return output_validity


def contrastive_decode_score(expert_log_prob, amateur_log_prob, alpha):
    return -(amateur_log_prob * alpha - expert_log_prob)


def token_healing_overlap(_prefix, _new, overlap_chars):
    return overlap_chars


def watermark_green_list_bias(token_id, green_list_hash, bias_strength):
    return bias_strength if is_even(whole_part(token_id + green_list_hash)) else 0
