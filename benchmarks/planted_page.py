"""docs/reference/planted.md from what `planted_faults.py` found."""
# ruff: noqa: E501

from __future__ import annotations

from typing import Any

_WORDS = {
    "named": "named", "later": "behind others", "others": "others only", "nothing": "nothing", "fails": "fails", "": "",
}  # fmt: skip
_TASKS = ("statistics", "tensor")


def page(result: dict[str, Any]) -> str:
    versions: list[str] = result["versions"]
    faults: list[Any] = result["faults"]
    lines = [
        "# Planted faults, side by side",
        "",
        f"Written by `benchmarks/planted_faults.py` on {result['date']}. torch 2.13.0 on a CPU, mindstudio-probe {' and '.join(versions)}.",
        "",
        "Each fault is planted in a program of 30 to 60 lines (`tests/precision/programs`), which is recorded with it and "
        "without it: by `transplt run --dump` on the emulated NPU and on the stand-in for CUDA, and by each version of "
        "msprobe on the CPU, in a probe copy of `transplt instrument`. Each pair is compared by its statistics and by "
        "the elements of its tensors.",
        "",
        "- transplt: `named` is the operator (or weight, or input), how it differs, and the line of the program, in the "
        "first sentence that `transplt compare` prints; anything else is what it prints. First of the dumps of "
        "`transplt run`, then of those of msprobe.",
        "- msprobe: what the comparison of that version calls wrong (`error`, `warning`, `No`) first, in the order of its "
        "table, in the step in which the fault begins. `named`: that row belongs to the operator or to the module around "
        "it, in the direction in which it is at fault. An empty cell was not compared. `behind others`: such a row comes behind rows of other operators. "
        "`others only`: the fault has no such row, and others have. Rows that one side lacks count where the fault is a "
        "missing or additional operator. `search` is `--diff_analyze` of 26.2.",
        "",
        *_counts(result),
        "",
        *_table(faults, versions),
        "",
        "## Equal runs",
        "",
        "| program | pair | transplt, statistics | transplt, tensor |",
        "|---|---|---|---|",
    ]
    for each in result["equal"]:
        said = (each["transplt"][task] or "no divergence" for task in _TASKS)
        lines.append(f"| {each['kind']} | {each['name']} | {' | '.join(said)} |")
    if result["across"]:
        lines += [
            "", "## The same run, recorded by both versions of msprobe", "",
            f"| program | task | transplt | msprobe {versions[0]} | msprobe {versions[1]} |", "|---|---|---|---|---|",
        ]  # fmt: skip
        for each in result["across"]:
            said = (each["said"][name] or "no divergence" for name in ("transplt", *versions))
            lines.append(f"| {each['kind']} | {each['task']} | {' | '.join(said)} |")
    return "\n".join(lines) + "\n"


def _counts(result: dict[str, Any]) -> list[str]:
    faults, versions = result["faults"], result["versions"]
    lines = ["| named of all | statistics | tensor |", "|---|---:|---:|"]
    sources = ["transplt", *(f"transplt on {version}" for version in versions)]
    for source in sources:
        cells = []
        for task in _TASKS:
            told = [each[source][task] for each in faults if source in each]
            cells.append(f"{sum(not each['missed'] for each in told)} of {len(told)}")
        name = "transplt, dumps of `transplt run`" if source == "transplt" else source.replace(" on ", ", dumps of msprobe ")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for version in versions:
        for search in ("", " search"):
            cells = []
            for task in _TASKS:
                told = [each[version].get(task + search, {}).get("verdict", "") for each in faults if each.get(version)]
                cells.append(f"{sum(each == 'named' for each in told)} of {len(told)}")
            if any(each.get(version, {}).get("tensor" + search, {}).get("verdict") for each in faults):
                lines.append(f"| msprobe {version}{search.replace(' search', ', `--diff_analyze`')} | {' | '.join(cells)} |")
    return lines


def _table(faults: list[Any], versions: list[str]) -> list[str]:
    heads = ["program", "fault", "transplt"]
    heads += [f"{version} {task}" for version in versions for task in _TASKS]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for each in faults:
        cells = [each["kind"], each["name"], _of_transplt(each, versions)]
        cells += [_of_msprobe(each.get(version, {}), task) for version in versions for task in _TASKS]
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return lines


def _of_transplt(each: dict[str, Any], versions: list[str]) -> str:
    told = [
        (source, task, each[source][task]["missed"])
        for source in ("transplt", *(f"transplt on {version}" for version in versions))
        for task in _TASKS
        if source in each
    ]
    wrong = [(source, task, missed) for source, task, missed in told if missed]
    if not wrong:
        return "named"
    kept = [f"{source.removeprefix('transplt on ').replace('transplt', 'run')}, {task}: {missed}" for source, task, missed in wrong]
    return f"named in {len(told) - len(wrong)} of {len(told)}; not in {kept[0][:160]}"


def _of_msprobe(told: dict[str, Any], task: str) -> str:
    found = told.get(task)
    if found is None:
        return ""
    text = _WORDS[found["verdict"]]
    if found["verdict"] in ("later", "others"):
        text += f" (`{found['first']}`)"
    search = told.get(f"{task} search", {}).get("verdict", "")
    return f"{text}; search: {_WORDS[search]}" if search in ("named", "later", "others") else text
