# The longest context at which so many requests fit: a bisection over the planner.
import sys
from bisect import bisect_left
from pathlib import Path

from kvformulas.plan import plan, read_model

MEMORY = 16 << 30  # bytes for the KV cache


def requests(model, context):
    """Return how many requests of a context fit into the memory."""
    return plan(model, context=context, kv_memory=MEMORY).requests


def longest_context(model, wanted):
    """Return the longest context, up to the model's own, at which the wanted requests fit."""
    contexts = range(1, model.max_context + 1)
    return bisect_left(contexts, True, key=lambda context: requests(model, context) < wanted)


def main():
    """Print the answer for a few numbers of requests, and check it on both sides."""
    model = read_model(Path(__file__).with_name("gemma-3-12b-it"))
    for wanted in (1, 4, 8):
        context = longest_context(model, wanted)
        print(f"{wanted} at once: {context:,} tokens each")
        if requests(model, context) < wanted or (
            context < model.max_context and requests(model, context + 1) >= wanted
        ):
            sys.exit("the planner disagrees with the bisection")


if __name__ == "__main__":
    main()
