# The formulas against what transformers was recorded to say; differential/test_transformers.py asks it itself.
import pytest

from differential import rules

CASES = rules.record()["cases"]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['rule']}-{n}" for n, case in enumerate(CASES)])
def test_kvformulas_agrees_with_the_record(case):
    assert list(rules.differences(case["theirs"], rules.ours(case["rule"], case["arguments"]))) == []


def test_the_record_is_of_all_cases():
    assert [(case["rule"], case["arguments"]) for case in CASES] == [(rule, given) for rule, given in rules.CASES]
