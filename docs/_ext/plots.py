"""Curves of the formulas for which a curve says more than words, in colours for light and for dark pages.

A function of a formula's name draws its plot and returns the caption; that of the replay draws what docs/data holds.
"""

import io
import json
import math
from pathlib import Path

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure
from rst import directive

import kvformulas
from kvformulas._cli_plan import draw
from kvformulas.plan import plan, read_model

EXAMPLE = Path(__file__).parents[2] / "examples" / "kv_plan" / "gemma-3-12b-it"
EXAMPLE_OPTIONS = {"context": 32768, "kv_memory": 16 << 30}

DOCS = Path(__file__).parents[1]
LIGHT = ["#1f2328", "#d0d5db", "#0b62c4", "#c2410c", "#15803d", "#9333ea"]
DARK = ["#dfe3e8", "#454b54", "#63a9ff", "#ff9b5e", "#5fd38a", "#c99bff"]
INK, GRID, *CURVES = LIGHT


def curves(axes, name, xs, argument, values, arguments, **style):
    """Plot a formula over `xs`, a curve for each value of another argument; `arguments(x, value)` makes a call's."""
    function = getattr(kvformulas, name)
    for value in values:
        ys = [function(*arguments(float(x), value)) for x in xs]
        axes.plot(xs, ys, label=f"{argument} = {value:,g}", **style)


def kv_cache_utilization(axes):
    xs = np.linspace(0, 4096, 300)
    curves(axes, "kv_cache_utilization", xs, "max_tokens", (1024, 2048, 4096), lambda x, most: (x, most))
    axes.set(xlabel="cached_tokens [tokens]", ylabel="utilisation [ratio]")
    return "The share rises in proportion and stays at 1 from the capacity on."


def kv_eviction_score_h2o(axes):
    xs = np.linspace(0, 1, 50)
    curves(axes, "kv_eviction_score_h2o", xs, "attention_sum", (0.5, 2, 6), lambda x, mass: (mass, x))
    axes.set(xlabel="recency_weight [ratio]", ylabel="score [probability]")
    return "A heavy hitter keeps a high score when its weight is low. The smallest score is the victim."


def kv_eviction_score_lru(axes):
    xs = np.linspace(10, 20, 50)
    curves(axes, "kv_eviction_score_lru", xs, "last_access_time", (0, 5, 10), lambda x, last: (last, x))
    axes.set(xlabel="current_time [any time unit]", ylabel="score [the same unit]")
    return "Every entry ages at the same rate, so the order of two entries changes only when one is used again."


def cache_eviction_lru_score(axes):
    xs = np.arange(10, 21)
    curves(axes, "cache_eviction_lru_score", xs, "last_access_step", (0, 5, 10), lambda x, last: (last, x))
    axes.set(xlabel="current_step [steps]", ylabel="score [steps]")
    return "Every block ages by one a step, so the order of two blocks changes only when one is used again."


def cache_eviction_beladys_score(axes):
    xs = np.arange(0, 9)
    curves(axes, "cache_eviction_beladys_score", xs, "next_access_step", (8, 14, 20), lambda x, use: (use, x))
    axes.set(xlabel="current_step [steps]", ylabel="score [steps]")
    return (
        "The score falls to 0 at the next use. Past it the block counts as never used again: 1e9, far above this plot."
    )


def kv_quantization_error(axes):
    xs = np.linspace(116, 134, 3601)
    curves(axes, "kv_quantization_error", xs, "scale", (1, 2), lambda x, scale: (x, scale, 0))
    axes.set(xlabel="value [any unit]", ylabel="error [the same unit]")
    return (
        "Around the largest code, 127: at scale 1 it stands for 127, and what is larger errs by its whole distance "
        "from that; at scale 2 it stands for 254, and the error stays within half a scale."
    )


def paged_attention_block_count(axes):
    xs = np.arange(0, 129)
    curves(
        axes, "paged_attention_block_count", xs, "block_size", (8, 16, 32), lambda x, size: (x, size), ds="steps-pre"
    )
    axes.set(xlabel="seq_len [tokens]", ylabel="blocks")
    return "The first token of a block pays for the whole block."


def cache_compaction_gain(axes):
    xs = np.arange(1, 129)
    for size in (8, 16, 32):
        allocated = np.array([size * kvformulas.paged_attention_block_count(float(x), size) for x in xs])
        axes.plot(xs, 100 * (1 - xs / allocated), label=f"block_size = {size}")
    axes.set(xlabel="length of the sequence [tokens]", ylabel="waste [% of its blocks]", ylim=(0, 100))
    return (
        "What a sequence really wastes in its last block, by its block count. The formula takes every fragmented block "
        "as half empty, which is the mean over all lengths."
    )


def dynamic_ntk_rope_scale(axes):
    xs = np.linspace(0, 16384, 300)
    curves(axes, "dynamic_ntk_rope_scale", xs, "alpha", (0.5, 1, 2), lambda x, alpha: (x, 4096, alpha))
    axes.set(xlabel="seq_len [tokens]", ylabel="factor of the rotary base [ratio]")
    return "With a base_context of 4,096 tokens: 1 up to it, a power of the ratio beyond."


def temperature_scale(axes):
    xs = np.linspace(0.05, 2, 300)
    curves(axes, "temperature_scale", xs, "logit", (-2, 1, 2, 4), lambda x, logit: (logit, x))
    axes.set(xlabel="temperature [ratio]", ylabel="scaled logit", ylim=(-15, 25))
    return "Low temperatures drive the logits apart, high ones together."


def repetition_penalty_scale(axes):
    xs = np.linspace(-6, 6, 121)
    curves(axes, "repetition_penalty_scale", xs, "penalty", (1, 1.2, 2), lambda x, penalty: (x, penalty, 1))
    axes.set(xlabel="logit", ylabel="logit after the penalty")
    return "Positive logits are divided and negative ones multiplied: both fall, and 0 stays."


def token_frequency_penalty(axes):
    xs = np.arange(0, 11)
    arguments = {"frequency 0.5, presence 0": (0.5, 0), "frequency 0, presence 2": (0, 2), "both": (0.5, 2)}
    for label, penalties in arguments.items():
        ys = [kvformulas.token_frequency_penalty(5, float(x), *penalties) for x in xs]
        axes.plot(xs, ys, label=label, marker="o", ms=4)
    axes.set(xlabel="token_count [count]", ylabel="logit after the penalties")
    return "From a logit of 5: the frequency penalty is charged for each occurrence, the presence penalty once."


def length_penalty(axes):
    xs = np.linspace(1, 60, 120)
    curves(axes, "length_penalty", xs, "alpha", (0, 0.6, 1), lambda x, alpha: (-0.5 * x, x, alpha))
    axes.set(xlabel="length [tokens]", ylabel="score [nats]")
    return "Of a beam that loses half a nat a token. Without normalisation (alpha = 0) the longer beam always loses."


def eta_sampling_accept(axes):
    xs = np.linspace(0, 8, 200)
    for eta in (0.02, 0.1, 0.3):
        axes.plot(xs, [eta * math.exp(-x / 2) for x in xs], label=f"eta = {eta:g}")
    axes.set(xlabel="entropy [nats]", ylabel="smallest probability that passes", yscale="log")
    return "The threshold falls as the distribution gets flatter, so that more tokens pass."


def speculative_accept_prob(axes):
    xs = np.linspace(0.001, 1, 300)
    curves(axes, "speculative_accept_prob", xs, "target_prob", (0.1, 0.3, 0.6), lambda x, target: (target, x))
    axes.set(xlabel="draft_prob [probability]", ylabel="acceptance [probability]")
    return "A token that the draft model likes no more than the target model does is always kept."


def speculative_expected_tokens(axes):
    xs = np.linspace(0, 1, 200)
    curves(axes, "speculative_expected_tokens", xs, "speculation_depth", (1, 2, 4, 8), lambda x, depth: (x, depth))
    axes.set(xlabel="acceptance_rate [ratio]", ylabel="expected tokens of a step")
    return "The yield ends at depth + 1: the drafted tokens and one of the target model's own."


def draft_model_speedup(axes):
    def arguments(rate, depth):
        return kvformulas.speculative_expected_tokens(rate, depth), 50, 8, depth

    curves(axes, "draft_model_speedup", np.linspace(0, 1, 200), "speculation_depth", (1, 2, 4, 8), arguments)
    axes.axhline(1, ls=":", color=INK, lw=1)
    axes.set(xlabel="acceptance_rate [ratio]", ylabel="speedup [ratio]")
    return "With 50 ms a target step and 8 ms a draft step. Below the dotted line speculation costs time."


def structured_repair_score(axes):
    xs = np.arange(0, 6)
    values = (0.5, 0.8, 1)
    curves(axes, "structured_repair_score", xs, "output_validity", values, lambda x, v: (v, x, 4), marker="o", ms=4)
    axes.set(xlabel="repair_attempts [count]", ylabel="score [ratio]")
    return "With 4 attempts at most: each costs a quarter of the validity, and one too many makes the score negative."


def admission_control_accept(axes):
    xs = np.linspace(0, 250, 1001)
    curves(axes, "admission_control_accept", xs, "safety_margin", (0, 0.1, 0.3), lambda x, margin: (x, 200, margin))
    axes.set(xlabel="request_kv_tokens [tokens]", ylabel="admitted", yticks=[0, 1])
    return "With 200 tokens free: the margin moves down the size of the last request that is admitted."


def preemption_score(axes):
    xs = np.arange(0, 201)
    curves(axes, "preemption_score", xs, "seq_priority", (1, 2, 4), lambda x, priority: (priority, x, 1000))
    axes.set(xlabel="tokens_generated [tokens]", ylabel="score [tokens]", yscale="log")
    return (
        "With 1,000 cached tokens. What has generated much is dear to restart, so its score is low. The largest goes."
    )


def decode_throughput_tokens(axes):
    xs = np.linspace(5, 100, 200)
    curves(axes, "decode_throughput_tokens", xs, "batch_size", (8, 32, 64), lambda x, batch: (batch, x))
    axes.set(xlabel="decode_latency_ms [ms]", ylabel="throughput [tokens/s]", yscale="log")
    return "A batch twice as large pays as long as its step takes less than twice the time."


def sliding_window_tokens(axes):
    xs = np.linspace(0, 32768, 300)
    curves(axes, "sliding_window_tokens", xs, "window", (1024, 4096, 16384), lambda x, window: (x, window))
    axes.set(xlabel="seq_len [tokens]", ylabel="tokens kept")
    return "A layer with a window grows with the sequence until the window is full."


def chunked_attention_tokens(axes):
    xs = np.arange(0, 32769, 8)
    curves(axes, "chunked_attention_tokens", xs, "chunk", (4096, 8192), lambda x, chunk: (x, chunk))
    axes.set(xlabel="seq_len [tokens]", ylabel="tokens attended to", ylim=(0, 11000))
    return "A chunk is filled, and the next begins with nothing."


def block_waste_tokens(axes):
    xs = np.arange(0, 97)
    curves(axes, "block_waste_tokens", xs, "block_size", (8, 16, 32), lambda x, size: (x, size))
    axes.set(xlabel="seq_len [tokens]", ylabel="empty slots [tokens]", ylim=(0, 44))
    return "What stays empty in the last block: half a block on average."


def usable_prefix_hit_tokens(axes):
    xs = np.arange(0, 201)
    curves(axes, "usable_prefix_hit_tokens", xs, "block_size", (16, 64), lambda x, size: (192, x, size))
    axes.set(xlabel="cached_tokens [tokens]", ylabel="usable tokens")
    return "A prompt of 192 tokens: whole blocks only, and never the last token, although all of them are cached."


def response_ratio(axes):
    xs = np.linspace(0, 4096, 50)
    curves(axes, "response_ratio", xs, "uncached_tokens", (512, 1024, 4096), lambda x, tokens: (x, tokens))
    axes.set(xlabel="waited_tokens [tokens]", ylabel="priority [ratio]")
    return "Short work overtakes quickly; long work only by waiting long."


def acceptance_rate_from_counts(axes):
    xs = np.linspace(0, 1, 200)
    curves(axes, "acceptance_rate_from_counts", xs, "depth", (1, 2, 5, 10), lambda x, depth: (x * depth, 1, depth))
    axes.set(xlabel="accepted over drafted [ratio]", ylabel="acceptance rate [probability]")
    return "Accepted over drafted is the rate at a depth of 1 only. The deeper the draft, the more it understates it."


def speculative_walltime_speedup(axes):
    xs = np.linspace(0, 1, 200)
    curves(axes, "speculative_walltime_speedup", xs, "depth", (1, 2, 4, 8), lambda x, depth: (x, depth, 0.1))
    axes.axhline(1, ls=":", color=INK, lw=1)
    axes.set(xlabel="acceptance_rate [probability]", ylabel="speedup [ratio]")
    return "With a cost_ratio of 0.1. Below the dotted line speculation costs time."


def break_even_acceptance(axes):
    xs = np.linspace(0, 1, 200)
    curves(axes, "break_even_acceptance", xs, "depth", (1, 2, 4, 8), lambda x, depth: (depth, x))
    axes.set(xlabel="cost_ratio [ratio]", ylabel="acceptance rate [probability]")
    return "Above its curve a depth pays. Deep drafts need a good draft model or a cheap one."


def best_speculation_depth(axes):
    xs = np.linspace(0, 1, 400)
    curves(axes, "best_speculation_depth", xs, "cost_ratio", (0.02, 0.05, 0.1, 0.2), lambda x, cost: (x, cost, 16))
    axes.set(xlabel="acceptance_rate [probability]", ylabel="best depth [tokens]")
    return "Up to a max_depth of 16. Below a rate equal to the cost ratio no depth pays."


def medusa_typical_threshold(axes):
    xs = np.linspace(0, 6, 200)
    curves(axes, "medusa_typical_threshold", xs, "epsilon", (0.09, 0.3), lambda x, epsilon: (epsilon, 0.6, x))
    axes.set(xlabel="entropy [nats]", ylabel="threshold [probability]")
    return "With a delta of 0.6: the less sure the model is, the less likely a token may be."


def eta_cutoff(axes):
    xs = np.linspace(0, 8, 200)
    curves(axes, "eta_cutoff", xs, "epsilon", (0.0009, 0.002, 0.004), lambda x, epsilon: (epsilon, x))
    axes.set(xlabel="entropy [nats]", ylabel="cutoff [probability]")
    return "Flat where the distribution is peaked, and falling once its entropy is high."


def dynamic_temperature(axes):
    xs = np.linspace(0, 4, 200)
    curves(axes, "dynamic_temperature", xs, "exponent", (0.5, 1, 2), lambda x, power: (x, 4, 0.5, 1.5, power))
    axes.set(xlabel="entropy [nats]", ylabel="temperature [ratio]")
    return "From 0.5 to 1.5 over entropies up to 4."


def watermark_z_score(axes):
    xs = np.arange(0, 201)
    curves(axes, "watermark_z_score", xs, "gamma", (0.25, 0.5, 0.75), lambda x, gamma: (x, 200, gamma))
    axes.axhline(4, ls=":", color=INK, lw=1)
    axes.set(xlabel="green_count of 200 tokens", ylabel="z score")
    return "Above the dotted line, at 4, a text of 200 tokens is taken for watermarked."


def dynamic_ntk_rope_base(axes):
    xs = np.linspace(0, 32768, 300)
    curves(axes, "dynamic_ntk_rope_base", xs, "factor", (1, 2, 4), lambda x, factor: (10000, factor, x, 4096, 128))
    axes.set(xlabel="seq_len [tokens]", ylabel="rotary base")
    return "Base 10,000 and heads of 128, trained up to 4,096 tokens: from there on the base grows with the sequence."


def llama3_rope_frequency(axes):
    waves = np.geomspace(100, 100_000, 400)

    def share(wave, factor):
        angle = 2 * np.pi / float(wave)
        return kvformulas.llama3_rope_frequency(angle, factor, 1, 4, 8192) / angle

    for factor in (8, 32):
        axes.plot(waves, [share(wave, factor) for wave in waves], label=f"factor = {factor}")
    axes.set(xscale="log", xlabel="wavelength [tokens]", ylabel="scaled over unscaled angle [ratio]")
    return "Trained up to 8,192 tokens: waves shorter than a quarter of that are kept, longer than all of it divided."


def yarn_ramp(axes):
    xs = np.arange(0, 64)
    curves(axes, "yarn_ramp", xs, "high", (32, 48), lambda x, high: (x, 20, high))
    axes.set(xlabel="pair_index", ylabel="share that is interpolated [ratio]")
    return "From a low of 20: the pairs before it are left alone, those after high divided."


def yarn_attention_factor(axes):
    xs = np.linspace(0.5, 40, 300)
    axes.plot(xs, [kvformulas.yarn_attention_factor(float(x)) for x in xs], label="YaRN")
    other = [kvformulas.longrope_attention_factor(float(x), 4096) for x in xs]
    axes.plot(xs, other, ls="--", label="LongRoPE, from 4,096 tokens")
    axes.set(xlabel="scale [ratio]", ylabel="attention factor [ratio]")
    return "YaRN's factor beside LongRoPE's, which also knows the trained length."


def replay(axes):
    data = json.loads((DOCS / "data" / "replay.json").read_text(encoding="utf-8"))
    policies = dict.fromkeys(result["policy"] for result in data["results"])
    # Hollow and dotted, so that a curve on top of another hides nothing.
    for policy, style in zip(policies, ("o-", "s:", "D-.", "^--"), strict=True):
        points = [(r["capacity_blocks"], 100 * r["token_hit_ratio"]) for r in data["results"] if r["policy"] == policy]
        axes.plot(*zip(*points, strict=True), style, fillstyle="none", ms=7, label=policy)
    ceiling = 100 * data["ceiling"]["token_hit_ratio"]
    axes.axhline(ceiling, ls="--", color=INK, lw=1, label="no limit")
    axes.set(xlabel="capacity [blocks of 512 tokens]", ylabel="prompt tokens reused [%]", xscale="log", ylim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return (
        f"{data['requests']:,} requests with {data['block_accesses']:,} block accesses. Without a limit "
        f"{ceiling:.1f} % of the prompt tokens are reused."
    )


PLOTS = {
    make.__name__: make
    for make in (
        kv_cache_utilization,
        kv_eviction_score_h2o,
        kv_eviction_score_lru,
        kv_quantization_error,
        paged_attention_block_count,
        cache_compaction_gain,
        cache_eviction_lru_score,
        cache_eviction_beladys_score,
        dynamic_ntk_rope_scale,
        temperature_scale,
        repetition_penalty_scale,
        token_frequency_penalty,
        length_penalty,
        eta_sampling_accept,
        speculative_accept_prob,
        speculative_expected_tokens,
        draft_model_speedup,
        structured_repair_score,
        admission_control_accept,
        preemption_score,
        decode_throughput_tokens,
        sliding_window_tokens,
        chunked_attention_tokens,
        block_waste_tokens,
        usable_prefix_hit_tokens,
        response_ratio,
        acceptance_rate_from_counts,
        speculative_walltime_speedup,
        break_even_acceptance,
        best_speculation_depth,
        medusa_typical_threshold,
        eta_cutoff,
        dynamic_temperature,
        watermark_z_score,
        dynamic_ntk_rope_base,
        llama3_rope_frequency,
        yarn_ramp,
        yarn_attention_factor,
        replay,
    )
}


STYLE = {
    "font.size": 11,
    "svg.hashsalt": "kvformulas",  # the same file from the same figures
    "axes.prop_cycle": cycler(color=CURVES),
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 2,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "grid.color": GRID,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}


def figure(name, folder):
    """Draw a plot into a folder of docs; return what shows it, or nothing where there is none of that name."""
    if name not in PLOTS:
        return ""
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(5.6, 3.6), layout="constrained")
        axes = drawing.subplots()
        caption = PLOTS[name](axes)
        axes.legend()
        return _shown(drawing, name, folder, caption)


def plan_plot(folder):
    """Draw what ``kvformulas plan --plot`` draws of the guide's example."""
    model = read_model(EXAMPLE)
    made = plan(model, **EXAMPLE_OPTIONS)
    caption = (
        f"Gemma-3-12b in {EXAMPLE_OPTIONS['kv_memory'] >> 30} GiB, as ``--plot`` draws it; the grey line is at "
        f"{made.context:,} tokens. What fits falls fast until the windows are full, and then in proportion to the full "
        "layers alone."
    )
    with mpl.rc_context(STYLE):
        return _shown(draw(model, made, EXAMPLE_OPTIONS), "plan", folder, caption)


def _shown(drawing, name, folder, caption):
    """Write a drawing in light and in dark, and return what shows it."""
    with mpl.rc_context(STYLE):
        light = io.StringIO()
        drawing.savefig(light, format="svg", transparent=True, metadata={"Date": None})
    dark = light.getvalue()
    for before, after in zip(LIGHT, DARK, strict=True):
        dark = dark.replace(before, after)
    blocks = []
    for theme, svg in (("light", light.getvalue()), ("dark", dark)):
        file = folder / f"{name}-{theme}.svg"
        if not file.exists() or file.read_text(encoding="utf-8") != svg:
            file.write_text(svg, encoding="utf-8")
        alt = f"Plot of {name}. {caption}".replace("``", "")
        blocks.append(directive("image", f"/{file.relative_to(DOCS).as_posix()}", class_=f"plot only-{theme}", alt=alt))
    return "\n\n".join([*blocks, directive("rst-class", "caption"), caption])
