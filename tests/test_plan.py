# The planner: right values with their derivation, engine logs, laws of the three answers, and the command.
import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvformulas import cli
from kvformulas._cli_plan import draw
from kvformulas.plan import KV_DTYPES, ConfigError, PlanError, plan, read_model
from layouts import CONFIGS

QWEN3, GEMMA3, DEEPSEEK = "Qwen--Qwen3-0.6B", "google--gemma-3-12b-it", "deepseek-ai--DeepSeek-V3"
LLAMA, GPT_OSS, QWEN35 = "meta-llama--Meta-Llama-3.1-8B", "openai--gpt-oss-120b", "Qwen--Qwen3.5-27B"
NAMES = sorted(file.stem for file in CONFIGS.glob("*.json"))
MODELS = {name: read_model(CONFIGS / f"{name}.json") for name in NAMES}
GIB = 1 << 30


def planned(name, **arguments):
    """Plan one of the files."""
    return plan(MODELS[name], **arguments)


# Right values


@pytest.mark.parametrize(
    ("name", "one_token", "stored"),
    [
        (QWEN3, 114_688, 3_758_096_384),
        (LLAMA, 131_072, 4_294_967_296),
        (GEMMA3, 393_216, 2_483_027_968),
        (DEEPSEEK, 70_272, 2_302_672_896),
        # 18 of 36 layers keep all 32,768 tokens and 18 the last 128, 8 heads of 64 for K and V in 2 bytes:
        # 18 * (32768 + 128) * 8 * (64 + 64) * 2
        (GPT_OSS, 73_728, 18 * (32_768 + 128) * 8 * (64 + 64) * 2),
    ],
)
def test_right_values(name, one_token, stored):
    assert planned(name, context=1).stored_bytes == one_token
    assert planned(name, context=32_768).stored_bytes == stored


def test_gpt_oss_is_derived():
    assert planned(GPT_OSS, context=32_768).stored_bytes == 1_212_678_144
    full, sliding = (
        sum(group.stored_bytes for group in planned(GPT_OSS, context=32_768).groups if group.group.kind == kind)
        for kind in ("full", "sliding")
    )
    assert (full, sliding) == (18 * 32_768 * 2048, 18 * 128 * 2048)
    assert planned(GPT_OSS, context=32_768).next_token_bytes == 18 * 2048  # the sliding layers are full


def test_gemma3_is_allocated_in_blocks_of_eight_layers():
    # One group of 8 full layers and five of 8 sliding ones; a block of 16 tokens is 8 * 16 * 8192 bytes.
    for batched, sliding_blocks, allocated in ((8192, 577, 5_172_625_408), (2048, 193, 3_159_359_488)):
        made = planned(GEMMA3, context=32_768, max_batched_tokens=batched)
        assert made.blocks_per_request == 2048 + 5 * sliding_blocks
        assert made.block_bytes == 1_048_576
        assert made.allocated_bytes == made.blocks_per_request * made.block_bytes == allocated
    assert planned(GEMMA3, context=32_768).reserved_bytes == 393_216 * 32_768


def test_qwen35_keeps_states_beside_its_tokens():
    made = planned(QWEN35, context=32_768)
    state, conv = 48 * 128 * 128 * 4, (2 * 16 * 128 + 48 * 128) * 3 * 2
    assert made.fixed_bytes == 48 * (state + conv)
    assert made.next_token_bytes == 16 * 4 * (256 + 256) * 2
    assert made.stored_bytes == made.fixed_bytes + made.next_token_bytes * 32_768
    # vLLM: attention's block grows to hold a state's page of 3,207,168 bytes; 784 = 16 * ceil(3207168 / 65536) tokens.
    assert made.block_bytes == 16 * 784 * 4096
    assert made.blocks_per_request == math.ceil(32_768 / 784) + 3  # 48 layers of states are three groups of 16


def test_deepseek_v4_adds_an_entry_a_run():
    made = planned("deepseek-v4", context=32_768)
    window, entry, index = 43 * 128 * 1024, 1024, 132
    assert made.stored_bytes == window + 8192 * 21 * (entry + index) + 256 * 20 * entry
    assert planned("deepseek-v4", context=3).next_token_bytes == 43 * 1024 + 21 * (entry + index)


# What engines log


def test_an_engine_log_line_of_blocks_and_watermark():
    # vllm-project/vllm#44594: 16 GiB for the cache, 57,344 bytes a token (Qwen3-0.6B in fp8), watermark of 2 %
    made = planned(QWEN3, kv_memory=16 * GIB, kv_dtype="fp8", watermark=0.02)
    assert made.next_token_bytes == 57_344
    assert (made.blocks, made.watermark_blocks, made.tokens) == (18_724, 374, 18_724 * 16)


def test_an_engine_log_line_of_concurrency():
    # vllm-project/vllm#10517: 1,478 blocks of 16 tokens for 29,000 tokens are a concurrency of 0.82
    per_block = planned(LLAMA).block_bytes
    made = planned(LLAMA, context=29_000, kv_memory=1478 * per_block)
    assert made.blocks == 1478
    assert round(made.concurrency, 2) == round(1478 / math.ceil(29_000 / 16), 2) == 0.82
    assert made.requests == 0


# Quantised caches


@pytest.mark.parametrize(
    ("dtype", "per_head"),
    [("bf16", 256), ("fp32", 512), ("fp8", 128), ("int8", 132), ("fp8_per_token_head", 132), ("nvfp4", 72),
     ("int4", 68), ("q8_0", 136), ("q4_0", 72), ("bfloat16", 256), ("FP8_E4M3", 128)],
)  # fmt: skip
def test_a_quantised_cache_includes_its_scales(dtype, per_head):
    assert planned(QWEN3, kv_dtype=dtype).next_token_bytes == 28 * 8 * 2 * per_head


def test_the_latent_of_sparse_attention_in_fp8_is_656_bytes():
    assert planned(DEEPSEEK, kv_dtype="fp8_ds_mla").next_token_bytes == 61 * 656
    with pytest.raises(PlanError, match="fp8_ds_mla is for latent attention"):
        planned(QWEN3, kv_dtype="fp8_ds_mla")


def test_an_index_key_is_fp8_with_a_scale_whatever_the_cache_is():
    for dtype, latent in (("bf16", 1152), ("fp8", 576)):
        assert planned("deepseek-v32", kv_dtype=dtype).next_token_bytes == 61 * (latent + 132)


def test_a_checkpoint_that_asks_for_an_unknown_cache_needs_to_be_told():
    fields = json.loads((CONFIGS / f"{LLAMA}.json").read_text())
    model = read_model(fields | {"quantization_config": {"kv_cache_scheme": {"num_bits": 3}}})
    with pytest.raises(PlanError, match=r"kv_dtype must be given: the checkpoint asks for .*num_bits"):
        plan(model)
    assert plan(model, kv_dtype="fp8").next_token_bytes == 65_536


def test_auto_is_what_the_checkpoint_says():
    assert planned("llama-fp8-cache").kv_dtype == "fp8"
    assert planned("llama-fp8-cache", kv_dtype="bf16").next_token_bytes == 131_072
    assert planned("llava").kv_dtype == "fp16"
    in_fp32 = read_model(json.loads((CONFIGS / f"{LLAMA}.json").read_text()) | {"torch_dtype": "float32"})
    assert plan(in_fp32).next_token_bytes == 131_072
    assert any("in 16 bits" in note for note in plan(in_fp32).notes)
    assert plan(in_fp32, kv_dtype="fp32").next_token_bytes == 262_144


# Ranks


def test_tensor_parallel_ranks_share_heads_but_never_less_than_one():
    assert [planned(QWEN3, tp=tp).next_token_bytes for tp in (1, 2, 8, 32)] == [114_688, 57_344, 14_336, 14_336]
    assert {planned(DEEPSEEK, tp=tp).next_token_bytes for tp in (1, 8)} == {70_272}
    fixed = planned(QWEN35, tp=4).fixed_bytes
    assert fixed == planned(QWEN35).fixed_bytes // 4


def test_pipeline_parallel_counts_the_fullest_stage():
    assert planned(QWEN3, pp=4).next_token_bytes == 7 * 4096
    assert planned(QWEN3, pp=3).next_token_bytes == 10 * 4096  # 9, 10 and 9 layers
    assert planned(DEEPSEEK, pp=61).next_token_bytes == 1152


def test_gpu_memory_less_weights_is_kv_memory():
    made = planned(LLAMA, gpu_memory=80 * GIB, weights=16_060_522_496, overhead=GIB, utilization=0.9)
    assert made.kv_memory_bytes == int(80 * GIB * 0.9) - 16_060_522_496 - GIB
    two = planned(LLAMA, gpu_memory=80 * GIB, weights=16_060_522_496, tp=2)
    assert two.kv_memory_bytes == int(80 * GIB * 0.9) - 16_060_522_496 // 2


def test_weights_are_those_of_the_folder(tmp_path):
    (tmp_path / "config.json").write_text((CONFIGS / f"{LLAMA}.json").read_text())
    with pytest.raises(PlanError, match="weights must be given with gpu_memory"):
        plan(read_model(tmp_path), gpu_memory=GIB)
    for name, end in (("model-1.safetensors", 1000), ("model-2.safetensors", 24)):
        header = json.dumps(
            {"__metadata__": {}, "x": {"dtype": "U8", "shape": [end], "data_offsets": [0, end]}}
        ).encode()
        (tmp_path / name).write_bytes(len(header).to_bytes(8, "little") + header)
    assert plan(read_model(tmp_path), gpu_memory=GIB, utilization=1).kv_memory_bytes == GIB - 1024
    for data in (b"", b"\xff" * 9, b"\x02" + b"\0" * 7 + b"[]", b"\x0e" + b"\0" * 7 + b'{"x": {"a":0}}'):
        (tmp_path / "model-1.safetensors").write_bytes(data)
        with pytest.raises(ConfigError, match="must be a safetensors file"):
            plan(read_model(tmp_path), gpu_memory=GIB)
    (tmp_path / "model.safetensors.index.json").write_text('{"metadata": {"total_size": 4096}}')
    assert plan(read_model(tmp_path), gpu_memory=GIB, utilization=1).kv_memory_bytes == GIB - 4096
    (tmp_path / "model.safetensors.index.json").write_text('{"metadata": {"total_size": 4096.0}}')
    assert plan(read_model(tmp_path), gpu_memory=GIB, utilization=1).kv_memory_bytes == GIB - 4096
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"metadata\.total_size"):
        plan(read_model(tmp_path), gpu_memory=GIB)


# Laws

contexts = st.integers(1, 1 << 20)
names = st.sampled_from(NAMES)


@given(names, contexts)
def test_stored_is_fixed_and_grows_by_the_next_token(name, context):
    now, then = planned(name, context=context), planned(name, context=context + 1)
    assert then.stored_bytes - now.stored_bytes == now.next_token_bytes >= 0
    assert now.fixed_bytes == then.fixed_bytes <= now.stored_bytes <= now.reserved_bytes


@given(names, contexts, st.sampled_from([1, 16, 128]), st.sampled_from([1, 2048, 8192]))
def test_an_engine_allocates_whole_blocks_for_what_is_stored(name, context, block_size, batched):
    made = planned(name, context=context, block_size=block_size, max_batched_tokens=batched)
    assert made.stored_bytes <= made.allocated_bytes == made.blocks_per_request * made.block_bytes


@given(names, contexts, st.integers(0, 1 << 40), st.sampled_from(sorted(set(KV_DTYPES) - {"fp8_ds_mla"})))
def test_what_fits_fits_and_one_more_does_not(name, context, memory, dtype):
    made = planned(name, context=context, kv_memory=memory, kv_dtype=dtype)
    assert made.blocks * made.block_bytes <= memory < (made.blocks + 1) * made.block_bytes
    assert made.requests * made.blocks_per_request <= made.blocks < (made.requests + 1) * made.blocks_per_request


@given(names, contexts, st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 3]))
def test_ranks_never_take_more_than_all_of_it_and_together_at_least_all(name, context, tp, pp):
    one, rank = planned(name, context=context), planned(name, context=context, tp=tp, pp=pp)
    assert rank.stored_bytes <= one.stored_bytes <= rank.stored_bytes * tp * pp


@given(names, st.integers(1, 1 << 14))
def test_a_full_cache_has_three_equal_answers_at_whole_blocks(name, blocks):
    if {group.kind for group in MODELS[name].groups} <= {"full", "mla", "index", "none", "shared"}:
        made = planned(name, context=16 * blocks)
        assert made.stored_bytes == made.allocated_bytes == made.reserved_bytes


def test_a_model_is_json_too():
    written = json.loads(json.dumps(MODELS[GEMMA3].to_dict(), allow_nan=False))
    assert (written["n_layers"], written["max_context"], written["dtype"]) == (48, 131_072, "bfloat16")
    assert [(group["kind"], group["n_layers"]) for group in written["groups"]] == [("sliding", 40), ("full", 8)]


def test_the_longest_context_may_be_in_another_field():
    command_r = {"model_type": "cohere", "num_hidden_layers": 40, "hidden_size": 8192, "num_attention_heads": 64}
    lengths = {"max_position_embeddings": 8192, "model_max_length": 131_072}
    assert read_model(command_r | lengths).max_context == 131_072


def test_to_dict_is_strict_json_with_whole_bytes():
    for name in NAMES:
        written = json.loads(json.dumps(planned(name, context=4096, kv_memory=GIB).to_dict(), allow_nan=False))
        assert {"model_type", "groups", "context", "next_token_bytes", "fixed_bytes", "stored_bytes", "allocated_bytes",
                "reserved_bytes", "kv_memory_bytes", "blocks", "tokens", "requests"} <= set(written)  # fmt: skip
        counts = [written, *written["groups"]]
        assert all(type(value) is int for part in counts for key, value in part.items() if key.endswith("_bytes"))
        assert all({"kind", "n_layers"} <= set(group) for group in written["groups"])


# Refusals of arguments


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"context": 0}, "context must be a whole number from 1"),
        ({"context": -1}, "context"),
        ({"context": 1 << 41}, "context"),
        ({"requests": 0}, "requests"),
        ({"kv_memory": -1}, "kv_memory"),
        ({"kv_memory": 1 << 60}, "kv_memory"),
        ({"kv_memory": 1, "gpu_memory": 1}, "kv_memory and gpu_memory must not be given both"),
        ({"gpu_memory": GIB, "weights": 2 * GIB}, "gpu_memory is too small"),
        ({"weights": GIB}, "weights must be given with gpu_memory"),
        ({"kv_memory": GIB, "overhead": 1}, "overhead must be given with gpu_memory"),
        ({"utilization": 1.5}, "utilization"),
        ({"utilization": math.nan}, "utilization"),
        ({"watermark": 1}, "watermark"),
        ({"tp": 0}, "tp"),
        ({"pp": 99}, "pp must be a whole number from 1 to 28"),
        ({"block_size": 0}, "block_size"),
        ({"max_batched_tokens": 0}, "max_batched_tokens"),
        ({"kv_dtype": "bf17"}, "kv_dtype must be auto or one of bf16"),
        ({"context": 1 << 40}, "too large to count"),
    ],
)
def test_an_argument_that_is_no_size_is_refused(arguments, says):
    with pytest.raises(PlanError, match=says):
        planned(QWEN3, **arguments)


def test_a_model_without_a_cache_has_no_limit():
    fields = {"model_type": "nemotron_h", "hybrid_override_pattern": "-E", "num_hidden_layers": 2}
    with pytest.raises(PlanError, match="keeps no cache"):
        plan(read_model(fields), kv_memory=GIB)


# The command


@pytest.fixture
def run(capsys):
    """Run the command in this process; the result is its output and what it warned of."""

    def run(*args):
        status = cli.main(["plan", *args])
        out, err = capsys.readouterr()
        assert status == 0
        return out, err

    return run


@pytest.fixture
def refuse(capsys):
    """Run the command on bad input; the result is its one line."""

    def refuse(*args):
        status = cli.main(["plan", *args])
        out, err = capsys.readouterr()
        assert (status, out) == (2, "")
        assert err.startswith("kvformulas: ")
        assert err.count("\n") == 1
        return err.removeprefix("kvformulas: ").rstrip()

    return refuse


def path(name):
    """Return the file of a config."""
    return str(CONFIGS / f"{name}.json")


def test_the_table_has_sizes_and_exact_bytes(run):
    out, err = run(path(GEMMA3), "--context", "32K", "--kv-memory", "16GiB", "--requests", "8", "--watermark", "0.02")
    assert err == ""
    for text in ("2.31 GiB", "2,483,027,968", "4.82 GiB", "5,172,625,408", "12.00 GiB", "window of 1,024", "16,384",
                 "327", "8 requests, they do not fit", "transformers keeps W - 1", "vLLM's rule"):  # fmt: skip
        assert text in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 120
    assert out.isascii()


def test_every_layout_has_a_page(run):
    for name in NAMES:
        out, _ = run(path(name))
        assert MODELS[name].model_type in out


def test_json_is_the_plan(run):
    out, _ = run(path(QWEN35), "--context", "4096", "--kv-memory", "1.5GiB", "--tp", "2", "--json")
    expected = planned(QWEN35, context=4096, kv_memory=3 * GIB // 2, tp=2).to_dict()
    assert json.loads(out, parse_constant=pytest.fail) == json.loads(json.dumps(expected))


def test_a_context_beyond_the_maximum_is_warned_of_and_answered(run):
    out, err = run(path(QWEN3), "--context", "1M", "--json")
    assert json.loads(out)["context"] == 1 << 20
    assert err == "kvformulas: warning: the context of 1,048,576 tokens is beyond the model's maximum of 40,960\n"


def test_the_default_context_is_no_longer_than_the_model(run):
    assert json.loads(run(path("gpt2"), "--json")[0])["context"] == 1024
    assert json.loads(run(path(LLAMA), "--json")[0])["context"] == 32_768


@pytest.mark.parametrize(
    ("text", "size"),
    [("16GiB", 16 * GIB), ("1.5 GiB", 3 * GIB // 2), ("80GB", 80 * 10**9), ("1000000", 10**6), ("2MiB", 2 << 20)],
)
def test_sizes_are_read_exactly(run, text, size):
    assert json.loads(run(path(QWEN3), "--kv-memory", text, "--json")[0])["kv_memory_bytes"] == size


@pytest.mark.parametrize(("text", "tokens"), [("32K", 32_768), ("32k", 32_000), ("0.5K", 512), ("131072", 131_072)])
def test_contexts_are_read_as_engines_read_them(run, text, tokens):
    assert json.loads(run(path(LLAMA), "--context", text, "--json")[0])["context"] == tokens


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--context", "32Q"], "--context must be a number with or without a unit (k, K, m, M), like 32K, not '32Q'"),
        (["--context", "-5"], "--context must be a number"),
        (["--context", "0"], "--context must be a whole number from 1"),
        (["--context", "0.0001K"], "--context must be a whole number of tokens, not '0.0001K'"),
        (["--kv-memory", "16G"], "--kv-memory must be a number with or without a unit (B, KiB"),
        (["--kv-memory", "1GiB", "--gpu-memory", "1GiB"], "--kv-memory and --gpu-memory must not be given both"),
        (["--gpu-memory", "80GiB"], "--weights must be given with --gpu-memory"),
        (["--kv-dtype", "bf17"], "--kv-dtype must be auto or one of bf16"),
        (["--tp", "0"], "--tp must be a whole number"),
        (["--utilization", "2"], "--utilization must be above 0"),
        (["--requests", "1.5"], "--requests"),
        (["--set", "x"], "--set must be FIELD=VALUE, not 'x'"),
        (["--set", "head_dim=x"], "head_dim must be a whole number"),
    ],
)
def test_bad_options_are_one_line(refuse, args, says):
    assert says in refuse(path(LLAMA), *args)


def test_bad_files_are_one_line(refuse, tmp_path, monkeypatch):
    monkeypatch.setattr("kvformulas._config._transformers_fields", lambda _: {})
    file = tmp_path / "config.json"
    assert "No such file" in refuse(str(tmp_path / "nowhere"))
    assert refuse("/dev/zero").endswith("must be a config.json, not a file of more than 16 MiB")
    (tmp_path / "model.safetensors").mkdir()
    file.write_text((CONFIGS / f"{LLAMA}.json").read_text())
    assert "cannot read" in refuse(str(tmp_path), "--gpu-memory", "80GiB")
    for data, says in (
        (b"{", "must hold JSON"),
        (b"\xff\xfe\x00", "not binary data"),
        (b"[]", "must hold a JSON object, not list"),
        (b"{}", "num_hidden_layers is missing"),
        (b'{"model_type": "llama"}', "num_hidden_layers is missing"),
        (b'{"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12}',
         "model_type is 'bert': no decoder that generates text"),
        (b'{"model_type": "new", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12}',
         "num_key_value_heads is missing, and no default stands for it: give it with --set num_key_value_heads=VALUE"),
    ):  # fmt: skip
        file.write_bytes(data)
        assert says in refuse(str(tmp_path))


def test_a_refusal_says_what_to_pass_and_it_works(refuse, run, tmp_path, monkeypatch):
    monkeypatch.setattr("kvformulas._config._transformers_fields", lambda _: {})
    fields = json.loads((CONFIGS / f"{LLAMA}.json").read_text()) | {"model_type": "new"}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    assert "give it with --set head_dim=VALUE" in refuse(str(tmp_path))
    out, _ = run(str(tmp_path), "--set", "head_dim=128", "--json")
    assert json.loads(out)["next_token_bytes"] == 131_072


def test_a_plot_draws_three_answers_and_what_fits():
    model, options = MODELS[GEMMA3], {"kv_memory": 16 * GIB}
    memory, fits = draw(model, planned(GEMMA3, **options), options).axes
    lines = {line.get_label(): line.get_data() for line in memory.lines if not line.get_label().startswith("_")}
    assert list(lines) == ["reserved", "allocated", "stored"]
    contexts, stored = lines["stored"]
    assert (contexts[0], contexts[-1]) == (1, 131_072)
    assert stored[-1] == planned(GEMMA3, context=131_072).stored_bytes / GIB
    assert fits.lines[0].get_ydata()[-1] == planned(GEMMA3, context=131_072, **options).concurrency
    assert len(draw(model, planned(GEMMA3), {}).axes) == 1


def test_a_plot_is_a_file_of_the_kind_that_its_name_says(run, refuse, tmp_path):
    for name, begin in (("x.png", b"\x89PNG"), ("x.svg", b"<?xml")):
        run(path(GEMMA3), "--kv-memory", "0", "--plot", str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(begin)
    assert refuse(path(LLAMA), "--plot", "x").startswith("--plot must name a file that ends in ")


# Imports


def test_the_planner_loads_neither_numpy_nor_transformers():
    code = "import sys; from kvformulas.plan import plan, read_model; "
    code += f"plan(read_model({path(GEMMA3)!r})); print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert "kvformulas.plan" in loaded
    assert not loaded & {"numpy", "transformers", "torch", "matplotlib", "click"}
