# One step in NumPy, on the array twins of the formulas.
import numpy as np

from kvformulas.ufuncs import (
    min_p_threshold,
    repetition_penalty_scale,
    temperature_scale,
    token_frequency_penalty,
    top_p_cumulative,
)


def step(logits, counts, settings, draw):
    """Return the token drawn, the tokens kept, likeliest first, and their probabilities in the top-k slice."""
    scaled = repetition_penalty_scale(logits, settings.repetition_penalty, counts)
    scaled = token_frequency_penalty(scaled, counts, settings.frequency_penalty, settings.presence_penalty)
    scaled = temperature_scale(scaled, settings.temperature)

    # Stable: of equal logits the lower token comes first, in all three programs.
    tokens = np.argsort(-scaled, kind="stable")[: settings.top_k]
    weights = np.exp(scaled[tokens] - scaled[tokens[0]])
    probabilities = weights / weights.sum()

    keep = probabilities >= min_p_threshold(probabilities[0], settings.min_p)
    if settings.top_p < 1:  # at 1 it is off: a sum that rounds up to 1 must not cut the tail
        before = np.cumsum(probabilities) - probabilities
        keep &= top_p_cumulative(probabilities, before, settings.top_p) == 1
    tokens, probabilities = tokens[keep], probabilities[keep]

    cumulative = np.cumsum(probabilities)
    drawn = np.searchsorted(cumulative[:-1], draw * cumulative[-1], side="right")
    return tokens[drawn], tokens, probabilities
