# The cache that transformers really builds, against the planner's groups; its own command, see CONTRIBUTING.md.
# `python tests/differential/test_cache_sizes.py` records the measured sizes for the tests that need no torch.
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import pytest
import torch
import transformers

from differential.measure import measure, n_tokens
from kvformulas.plan import read_model
from layouts import CONFIGS, RECORDED, elements, runs

# Files whose classes are not in transformers, or take another form of a field.
NOT_THERE = {"nemotron-nas", "hunyuan-cross-layer", "exaone4-letters"}
# Lightning attention's state is in no cache layer in transformers; DeepSeek-V4's layers without compression keep one
# vector a token as both key and value, as engines do; RecurrentGemma keeps its cache in its modules.
OTHERWISE = {"minimax-text-01", "deepseek-v4", "recurrent-gemma"}
FILES = [file for file in sorted(CONFIGS.glob("*.json")) if file.stem not in NOT_THERE | {"recurrent-gemma"}]


@pytest.mark.parametrize("file", [file for file in FILES if file.stem not in OTHERWISE], ids=lambda file: file.stem)
def test_the_cache_is_what_the_planner_says(file):
    fields = json.loads(file.read_text())
    measured = runs(measure(fields))
    assert measured == runs(elements(read_model(file), n_tokens(fields)))
    assert measured == RECORDED["models"][file.stem]["layers"]


def record():
    """Measure every config and write what its layers keep."""
    models = {}
    for file in FILES:
        fields = json.loads(file.read_text())
        models[file.stem] = {"n_tokens": n_tokens(fields), "layers": runs(measure(fields))}
        print(file.stem, flush=True)
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(models[name])}" for name in models)
    text = f'{{"versions": {json.dumps(versions)}, "models": {{\n{lines}\n}}}}\n'
    (CONFIGS.parent / "cache_sizes.json").write_text(text)


if __name__ == "__main__":
    record()
