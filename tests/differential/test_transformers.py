# kvformulas against transformers, as it is installed. Not part of the ordinary tests, which check the recorded figures:
#
#     pip install ".[test,differential]" && python -m pytest tests/differential/test_transformers.py
#     python tests/differential/test_transformers.py        # writes the record anew
import json
from importlib.metadata import version
from types import SimpleNamespace

import pytest
import torch
from transformers import LlamaConfig, LogitsProcessorList
from transformers.generation import logits_process, watermarking
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from differential import rules

CASE = pytest.mark.parametrize(
    ("rule", "arguments"), rules.CASES, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(rules.CASES)]
)
# transformers' names of what the cases call by the formulas' names.
NAMES = {"low": "low_freq_factor", "high": "high_freq_factor"}


def rope(kind, base, head_dim, max_position, seq_len=None, **parameters):
    """Return transformers' angles and attention factor."""
    parameters = {NAMES.get(name, name): value for name, value in parameters.items()}
    if kind == "longrope":
        parameters |= {name: [1.0] * (head_dim // 2) for name in ("short_factor", "long_factor")}
    if kind != "dynamic":
        parameters["original_max_position_embeddings"] = max_position
    config = LlamaConfig(
        hidden_size=head_dim,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=head_dim,
        # Where there is an original length, this is that of the extended model.
        max_position_embeddings=max_position if kind == "dynamic" else int(max_position * parameters["factor"]),
        rope_parameters={"rope_type": kind, "rope_theta": base, **parameters},
    )
    angles, factor = ROPE_INIT_FUNCTIONS[kind](config, device="cpu", seq_len=seq_len)
    # Single precision has no more digits.
    return [float(f"{x:.9g}") for x in angles.tolist()], float(factor)


def sampled(processor, logits, ids=(0,)):
    """Return the logits that a processor makes of these, in double precision."""
    scores = torch.tensor([logits], dtype=torch.float64)
    return LogitsProcessorList([processor])(torch.tensor([list(ids)]), scores)[0].tolist()


PROCESSORS = {
    "repetition_penalty": lambda a: logits_process.RepetitionPenaltyLogitsProcessor(a["penalty"]),
    "temperature": lambda a: logits_process.TemperatureLogitsWarper(a["temperature"]),
    "top_k": lambda a: logits_process.TopKLogitsWarper(a["k"]),
    "top_p": lambda a: logits_process.TopPLogitsWarper(a["p"]),
    "min_p": lambda a: logits_process.MinPLogitsWarper(a["min_p"]),
    "typical": lambda a: logits_process.TypicalLogitsWarper(a["mass"]),
    "epsilon": lambda a: logits_process.EpsilonLogitsWarper(a["epsilon"]),
    "eta": lambda a: logits_process.EtaLogitsWarper(a["epsilon"]),
}


def theirs(rule, arguments):
    """Return what transformers makes of a case, as `rules.ours` does."""
    if rule in {"dynamic", "llama3"}:
        return {"angles": rope(rule, **arguments)[0]}
    if rule == "ntk":
        # There is no static type; a dynamic one at a factor of 1 grows by the ratio of the lengths.
        seq_len = arguments["alpha"] * arguments["max_position"]
        model = {name: arguments[name] for name in ("base", "head_dim", "max_position")}
        return {"angles": rope("dynamic", **model, factor=1.0, seq_len=seq_len)[0]}
    if rule == "yarn":
        angles, factor = rope(rule, **arguments)
        return {"angles": angles, "factor": factor}
    if rule == "longrope":
        return {"factor": rope(rule, **arguments)[1]}
    if rule == "green_list":
        processor = logits_process.WatermarkLogitsProcessor(
            arguments["vocab_size"], device="cpu", greenlist_ratio=arguments["gamma"]
        )
        return {"logits": [processor.greenlist_size]}
    if rule == "z_score":
        detector = SimpleNamespace(greenlist_ratio=arguments["gamma"])
        score = watermarking.WatermarkDetector._compute_z_score(detector, arguments["green"], arguments["tokens"])
        return {"z_score": float(score)}
    logits = sampled(PROCESSORS[rule](arguments), arguments["logits"], arguments.get("ids", (0,)))
    if rule in {"repetition_penalty", "temperature"}:
        return {"logits": logits}
    return {"stay": sorted(logit for logit in logits if logit > float("-inf"))}


@CASE
def test_kvformulas_agrees_with_transformers(rule, arguments):
    assert list(rules.differences(theirs(rule, arguments), rules.ours(rule, arguments))) == []


@CASE
def test_the_record_is_what_transformers_says(rule, arguments):
    recorded = next(case for case in rules.record()["cases"] if case["rule"] == rule and case["arguments"] == arguments)
    assert list(rules.differences(theirs(rule, arguments), recorded["theirs"])) == []


if __name__ == "__main__":
    versions = {package: version(package) for package in ("transformers", "torch")}
    found = [
        {"rule": rule, "arguments": arguments, "theirs": theirs(rule, arguments)} for rule, arguments in rules.CASES
    ]
    lines = ",\n".join(f"  {json.dumps(case)}" for case in found)
    rules.RECORD.write_text(f'{{"versions": {json.dumps(versions)}, "cases": [\n{lines}\n]}}\n')
