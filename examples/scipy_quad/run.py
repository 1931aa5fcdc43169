# Formulas as C callbacks of scipy.integrate.quad: no Python is run at any point of the interval.
import math
import sys

import integrands
from scipy import LowLevelCallable
from scipy.integrate import quad
from scipy.special import beta

import kvformulas.capi

# A formula of one argument is called at its address. A decode step at length t attends to t + 1 tokens; the integral
# of that over [start - 1/2, end - 1/2] is its sum over the steps, since it is linear.
attended, _ = quad(LowLevelCallable.from_cython(kvformulas.capi, "incremental_decode_kv_append"), 2047.5, 4095.5)
print(f"decoding from 2,048 to 4,096 tokens attends to {attended:,.0f} cached tokens in all")
if round(attended) != sum(range(2049, 4097)):
    sys.exit(f"the sum is {sum(range(2049, 4097)):,}")


# Of more arguments, through integrands.pyx. An acceptance rate is no constant: here Beta(8, 2), of mean 0.8.
def in_python(rate, depth, target_ms, draft_ms, a, b):
    expected = -math.expm1((depth + 1) * math.log(rate)) / (1 - rate)
    return rate ** (a - 1) * (1 - rate) ** (b - 1) * (expected * target_ms / (target_ms + draft_ms * depth))


integrand = LowLevelCallable.from_cython(integrands, "weighted_speedup")
a, b, target_ms, draft_ms = 8.0, 2.0, 50.0, 8.0
print("depth  mean speedup  at the mean rate")
for depth in range(1, 9):
    args = (float(depth), target_ms, draft_ms, a, b)
    integral, _ = quad(integrand, 0, 1, args=args)
    expected = kvformulas.speculative_expected_tokens(a / (a + b), depth)
    at_mean = kvformulas.draft_model_speedup(expected, target_ms, draft_ms, depth)
    print(f"{depth:5}  {integral / beta(a, b):12.4f}  {at_mean:16.4f}")
    if integral != quad(in_python, 0, 1, args=args)[0]:
        sys.exit("quad over plain Python gives another value")
print("quad over plain Python gives the same to the last bit")
