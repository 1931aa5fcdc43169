"""The measured figures: whatever docs/data holds, which tools, benchmarks and the replay write.

A page builds without them, and then names the command that measures them.
"""

import json
import re
from pathlib import Path

import plots
from rst import bullets, formula, table

DATA = Path(__file__).parents[1] / "data"
REPLAY = "make bench-replay TRACE=FILE"
COMMANDS = {
    "accuracy": "make accuracy",
    "mutation": "make mutate",
    "benchmarks": "make bench",
    "benchmarks_free_threaded": "python3.13t benchmarks/run.py --only threads --output docs/data",
    "benchmarks_replay": REPLAY,
    "replay": REPLAY,
}


def load(name):
    path = DATA / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def missing(name):
    return f"*Not measured yet:* ``{COMMANDS[name]}`` *writes docs/data/{name}.json.*"


# Accuracy


def error(value):
    return "0" if value == 0 else f"{value:.4f}"


def unit_of(row):
    return "ULP" if row["unit"] == "ULP" else "ULP of the largest term"


def accuracy_of(name):
    """Return what was measured of one formula."""
    data = load("accuracy")
    row = next((row for row in data["formulas"] if row["formula"] == name), None) if data else None
    if row is None:
        return missing("accuracy")
    unit = unit_of(row)
    found = [
        (
            "Largest error found",
            f"{error(row['maximum'])} {unit} ({error(row['maximum_in_gaps'])} gaps between doubles)",
        ),
        ("Mean error", f"{error(row['mean'])} {unit}"),
        ("Allowed", f"{row['budget']:g} {unit}"),
    ]
    if row["worst_arguments"]:
        found += [
            ("Worst arguments", "``" + "`` ``".join(row["worst_arguments"]) + "``"),
            ("Result there", f"``{row['worst_result']}``"),
        ]
    heading = f"Sampled over {row['points']:,} points: a sample proves no bound."
    return f"{heading} :doc:`/guides/accuracy` says how.\n\n" + table(None, found, class_="measured")


def accuracy_table(_environment, _argument):
    data = load("accuracy")
    if data is None:
        return missing("accuracy")
    rows = [
        (
            formula(row["formula"]),
            f"{row['budget']:g}" + (" of the largest term" if row["unit"] != "ULP" else ""),
            error(row["maximum"]) + ("" if row["within_budget"] else " **exceeded**"),
            error(row["maximum_in_gaps"]),
            error(row["mean"]),
        )
        for row in data["formulas"]
    ]
    machine = ", ".join(data["machine"].values())
    versions = ", ".join(f"{package} {version}" for package, version in data["versions"].items())
    header = ["formula", "allowed [ULP]", "largest found [ULP]", "in gaps", "mean [ULP]"]
    return f"{data['text']}\n\n{table(header, rows, class_='figures labels-1')}\n\nMeasured on {machine}; {versions}."


# Mutation


def mutation_table(_environment, _argument):
    data = load("mutation")
    if data is None:
        return missing("mutation")
    rows = [
        (
            part,
            f"{result['mutants']:,} of {result['of']:,}",
            f"{result['killed']:,}",
            f"{len(result['equivalent']):,}",
            f"{len(result['survive']):,}",
            f"{result['score']:.2%}",
            "; ".join(f"{killer}: {count:,}" for killer, count in result["killed_by"].items()),
        )
        for part, result in data.items()
    ]
    header = ["of the", "mutants", "killed", "equivalent", "survive", "score", "killed by"]
    return table(header, rows)


def equivalent_mutants(_environment, _argument):
    data = load("mutation")
    if data is None:
        return missing("mutation")
    rows = [
        (part, f"``{mutant['function']}``", f"``{mutant['before']}``", f"``{mutant['after']}``", mutant["reason"])
        for part, result in data.items()
        for mutant in result["equivalent"]
    ]
    return table(["of the", "function", "before", "after", "why no test can tell"], rows) if rows else "None."


# Benchmarks


def spread(figures):
    def short(value):
        return f"{value:.2f}" if value < 10 else f"{value:.0f}"

    return f"{short(figures['median'])} ({short(figures['low'])} to {short(figures['high'])})"


def text(words):
    """Return a label as reStructuredText, 10^4 as 10,000."""
    return re.sub(r"10\^(\d)", lambda match: f"{10 ** int(match[1]):,}", words).replace("`", "``")


def benchmark_table(_environment, argument):
    """Return a section of the benchmarks, of another record if that is named too, as a table of ratios."""
    section, _, record = argument.partition(" ")
    name = f"benchmarks_{record}" if record else "benchmarks"
    data = load(name)
    if data is None:
        return missing(name)
    rows = data["sections"][section]
    names = list(dict.fromkeys(name for row in rows for name in row["ratios"]))
    labels = [key for key in rows[0] if key not in ("reference", "ratios")]
    cells = [
        [
            *(text(row[label]) for label in labels),
            *(spread(row["ratios"][name]) if name in row["ratios"] else "—" for name in names),
        ]
        for row in rows
    ]
    return table([*labels, *names], cells, class_=f"figures labels-{len(labels)}")


def targets(data):
    verdict = {True: "met", False: "**missed**", None: "not measured"}
    rows = [(text(target["text"]), text(target["measured"]), verdict[target["met"]]) for target in data["targets"]]
    return table(["target", "measured", ""], rows)


def machine(data):
    return bullets([f"{name}: {value}" for name, value in data["machine"].items()])


def benchmark_targets(_environment, _argument):
    data = load("benchmarks")
    return missing("benchmarks") if data is None else targets(data)


def benchmark_method(_environment, _argument):
    data = load("benchmarks")
    if data is None:
        return missing("benchmarks")
    size = f"Installed, the package takes {data['installed_bytes']:,} bytes; as a wheel {data['wheel_bytes']:,}."
    return f"{data['method']}\n\n{machine(data)}\n\n{size}"


def benchmark_replay(_environment, _argument):
    data = load("benchmarks_replay")
    if data is None:
        return missing("benchmarks_replay")
    parts = [data["method"], targets(data)]
    for race in data["races"]:
        rows = [[name, "1" if name == "kvformulas" else spread(ratio)] for name, ratio in race["ratios"].items()]
        header = ["", "times as long"]
        if race["memory"]:
            header.append("peak memory")
            rows = [[*row, f"{race['memory'][row[0]] / 2**20:,.0f} MiB"] for row in rows]
        parts += [f"**{race['title']}.** {race['note']}", table(header, rows)]
    return "\n\n".join([*parts, f"**Two threads.** {data['two_threads']['text']}", machine(data)])


# The replay


def replay_plot(_environment, _argument):
    if load("replay") is None:
        return missing("replay")
    return plots.figure("replay", plots.DOCS / "formulas" / "plots")


def replay_table(_environment, _argument):
    """Return the share of prompt tokens reused: a row a capacity, a column a policy."""
    data = load("replay")
    if data is None:
        return missing("replay")
    shares = {(r["capacity_blocks"], r["policy"]): f"{r['token_hit_ratio']:.2%}" for r in data["results"]}
    capacities, policies = (list(dict.fromkeys(keys)) for keys in zip(*shares, strict=True))
    rows = [(f"{capacity:,}", *(shares[capacity, policy] for policy in policies)) for capacity in capacities]
    rows.append(("no limit", *[f"{data['ceiling']['token_hit_ratio']:.2%}"] * len(policies)))
    return table(["blocks", *policies], rows, class_="figures labels-1")


DIRECTIVES = (
    accuracy_table,
    mutation_table,
    equivalent_mutants,
    benchmark_table,
    benchmark_targets,
    benchmark_method,
    benchmark_replay,
    replay_plot,
    replay_table,
)
