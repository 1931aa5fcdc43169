# Draft-then-verify decoding, grammars, repair, contrast, healing and watermarks: the definitions.
# ruff: noqa: ARG001  a definition takes the context and the contract's arguments, whether it reads them or not
from oracle.context import least, power, quotient, truncated, unknown


def speculative_accept_prob(mp, target_prob, draft_prob):
    if draft_prob <= 0:
        return mp.one
    return least(mp, mp.one, target_prob / draft_prob)


def speculative_expected_tokens(mp, acceptance_rate, speculation_depth):
    if acceptance_rate >= 1:
        return speculation_depth + 1
    if acceptance_rate <= 0:
        return mp.one
    # Doubles leave 1 - alpha and depth + 1 at 2**-53 or more, so this loses 106 of the bits at most.
    return (1 - power(mp, acceptance_rate, speculation_depth + 1)) / (1 - acceptance_rate)


def draft_model_speedup(mp, expected_tokens, target_latency_ms, draft_latency_ms, speculation_depth):
    total_ms = target_latency_ms + draft_latency_ms * speculation_depth
    if total_ms <= 0:
        return mp.one
    return expected_tokens * target_latency_ms / total_ms


def medusa_head_acceptance(mp, medusa_prob, target_prob, head_id):
    if medusa_prob <= 0:
        return mp.one
    return least(mp, mp.one, target_prob / medusa_prob)


def json_grammar_logit_mask(mp, token_id, is_valid_next):
    if unknown(is_valid_next):
        return mp.nan
    return mp.zero if is_valid_next > 0.5 else mp.mpf(-(10**9))


def constrained_beam_score(mp, beam_log_prob, grammar_valid, length, alpha):
    if grammar_valid < 0.5:
        return mp.mpf(-(10**9))
    if length <= 0:
        return beam_log_prob
    if unknown(grammar_valid):
        return mp.nan
    return quotient(mp, beam_log_prob, power(mp, length, alpha))


def structured_repair_score(mp, output_validity, repair_attempts, max_repair_attempts):
    if max_repair_attempts <= 0:
        return output_validity
    return output_validity * (1 - repair_attempts / max_repair_attempts)


def contrastive_decode_score(mp, expert_log_prob, amateur_log_prob, alpha):
    return expert_log_prob - alpha * amateur_log_prob


def token_healing_overlap(mp, prefix_last_token, new_first_token, overlap_chars):
    return overlap_chars


def watermark_green_list_bias(mp, token_id, green_list_hash, bias_strength):
    if unknown(token_id, green_list_hash, bias_strength):
        return mp.nan
    code = truncated(mp, token_id + green_list_hash)
    # An infinity is no whole number, so it is not even.
    return bias_strength if mp.isfinite(code) and mp.isint(code / 2) else mp.zero


EXAMPLES = [
    (speculative_accept_prob, (0.3, 0.5), 0.6),
    (speculative_accept_prob, (0.5, 0.3), 1),
    (speculative_accept_prob, (0.5, 0), 1),
    (speculative_expected_tokens, (0.8, 4), 3.3616),
    (speculative_expected_tokens, (0.5, 2), 1.75),
    (speculative_expected_tokens, (1, 4), 5),
    (speculative_expected_tokens, (0, 4), 1),
    (draft_model_speedup, (3.3616, 50, 8, 4), 2.0497560975609757),
    (draft_model_speedup, (3, 0, 0, 4), 1),
    (medusa_head_acceptance, (0.5, 0.25, 2), 0.5),
    (medusa_head_acceptance, (0.25, 0.5, 2), 1),
    (json_grammar_logit_mask, (7, 1), 0),
    (json_grammar_logit_mask, (7, 0.5), -1e9),
    (constrained_beam_score, (-6, 1, 4, 0.5), -3),
    (constrained_beam_score, (-6, 0, 4, 0.5), -1e9),
    (constrained_beam_score, (-6, 1, 0, 0.5), -6),
    (structured_repair_score, (1, 1, 4), 0.75),
    (structured_repair_score, (1, 6, 4), -0.5),
    (structured_repair_score, (0.5, 6, 0), 0.5),
    (contrastive_decode_score, (-1, -4, 0.5), 1),
    (token_healing_overlap, (1, 2, 3), 3),
    (watermark_green_list_bias, (3, 5, 2.5), 2.5),
    (watermark_green_list_bias, (3, 4, 2.5), 0),
    (watermark_green_list_bias, (-3, 0.5, 2.5), 2.5),
]
