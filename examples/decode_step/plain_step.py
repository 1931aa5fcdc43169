# The reference: one step in plain Python, nothing imported but math. The others must keep and draw the same tokens.
import math


def step(logits, counts, settings, draw):
    """Return the token drawn, the tokens kept, likeliest first, and their probabilities in the top-k slice."""
    scaled = []
    for logit, count in zip(logits, counts, strict=True):
        penalised = logit
        if count > 0:
            penalised = logit / settings.repetition_penalty if logit > 0 else logit * settings.repetition_penalty
            penalised = penalised - count * settings.frequency_penalty - settings.presence_penalty
        scaled.append(penalised * 1e9 if settings.temperature <= 0 else penalised / settings.temperature)

    tokens = sorted(range(len(scaled)), key=lambda token: -scaled[token])[: settings.top_k]
    weights = [math.exp(scaled[token] - scaled[tokens[0]]) for token in tokens]
    total = 0.0
    for weight in weights:
        total += weight
    probabilities = [weight / total for weight in weights]

    kept, mass = 0, 0.0
    for probability in probabilities:
        if probability < probabilities[0] * settings.min_p or mass >= settings.top_p < 1:
            break
        kept += 1
        mass += probability

    cumulative = 0.0
    for drawn in range(kept):
        cumulative += probabilities[drawn]
        if cumulative > draw * mass:
            break
    return tokens[drawn], tokens[:kept], probabilities[:kept]
