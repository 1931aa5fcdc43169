# Whom to preempt, decided in C++ with formulas at the addresses that kvformulas.capi publishes.
import random
import sys

from victims import oldest, victims

from kvformulas import kv_eviction_score_lru, paged_attention_block_count, preemption_score

random.seed(3)
sequences = [
    (
        float(random.choice([1, 2, 4])),  # priority
        float(random.randrange(1024)),  # tokens generated
        float(random.randrange(1, 32768)),  # tokens cached
        random.uniform(0, 60),  # when last used [s]
    )
    for _ in range(5000)
]
wanted, now = 20_000.0, 60.0

chosen = victims(sequences, wanted)
idle = oldest(sequences, now)
freed = sum(paged_attention_block_count(sequences[i][2], 16) for i in chosen)
print(f"{len(chosen)} of {len(sequences):,} sequences go, which frees {freed:,.0f} blocks")
print(f"the first is {chosen[0]}; the one that was idle for longest is {idle}")

ranked = sorted(range(len(sequences)), key=lambda i: -preemption_score(*sequences[i][:3]))
if chosen != ranked[: len(chosen)] or freed < wanted:
    sys.exit("Python chooses other victims")
if freed - paged_attention_block_count(sequences[chosen[-1]][2], 16) >= wanted:
    sys.exit("one victim too many")
if idle != max(range(len(sequences)), key=lambda i: kv_eviction_score_lru(sequences[i][3], now)):
    sys.exit("Python finds another one idle for longest")
print("Python chooses the same")
