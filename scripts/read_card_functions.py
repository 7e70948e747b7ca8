"""Reads the arguments of the functions of CANN that torch_npu looks up, into rules/support/card_functions.json.

    python scripts/read_card_functions.py FOLDER_OF_REPOSITORIES --wheel FOLDER_OF_WHEEL

The first folder holds checkouts Ascend+op-plugin, hicann+ops-nn and hicann+ops-math; the second a torch_npu as `pip
install --target` puts it. The names are those of the wheel's library. Arguments come from CANN's prototypes and from
what op-plugin passes; where they differ, what is passed holds. A function with an argument whose type is not certain is
left out. Nothing of the sources is copied but names and types. Then run `build_emulator_tables.py`.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

from build_api_support import write  # noqa: E402
from card_functions import call_sites, prototypes, schemas  # noqa: E402
from card_functions.arguments import CHANGED, FILLED, OPTIONAL, Argument  # noqa: E402
from card_types import sources  # noqa: E402
from read_card_types import head  # noqa: E402

#: The order is that of the sources in the table.
REPOSITORIES = (
    ("hicann/ops-nn", "https://gitcode.com/cann/ops-nn", "CANN Open Software License Agreement 2.0"),
    ("hicann/ops-math", "https://gitcode.com/cann/ops-math", "CANN Open Software License Agreement 2.0"),
    ("Ascend/op-plugin", "https://gitcode.com/Ascend/op-plugin", "BSD-3-Clause"),
)
PLUGIN, MEASURED = 2, 3
#: Functions of the wheel that no checkout has, as records and registers of its calls show them: `topk`,
#: `_npu_matmul_abft_verify`, `npu_mhc_pre_backward`, and `_fused_adam_` on a 950. The sixth argument of the first is 1
#: whatever topk is asked for.
SEEN = {
    "aclnnTopkV2": "self:t k:i dim:i largest:b sorted:b always:b values:t> indices:t>",
    "aclnnMatmulAbftVerify": "a:t b:t c:t checksum_weight:t e_max:d out:t>",
    "aclnnMhcPreBackwardV2": "x:t phi:t alpha:t grad_h_in:t grad_h_post:t grad_h_res:t inv_rms:t h_mix:t h_pre:t "
    "h_post:t gamma:t? grad_x_post:t? eps:f inner_precise:i x_grad:t> phi_grad:t> alpha_grad:t> bias_grad:t> "
    "gamma_grad:t>",
    "aclnnFusedAdam": "self:T& grads:T exp_avgs:T& exp_avg_sqs:T& max_exp_avg_sqs:T& state_steps:T grad_scale:t? "
    "found_inf:t? lr:d beta1:d beta2:d weight_decay:d eps:d amsgrad:b maximize:b",
}
#: Where one call passes a tensor that is nothing for an array that another call passes, or 64 bits of an aclDataType.
BY_HAND = {
    ("aclnnFusedInferAttentionScoreV5", "actual_shared_prefix_len"): "a",
    ("aclnnDequantSwigluQuantV2", "dst_type"): "k",
}
TORCH = "2.13"
_NAME = re.compile(rb"(?<![A-Za-z0-9_])(acl(?:nn)?[A-Z]\w*)GetWorkspaceSize(?=\0)")
#: Arguments of a function that CANN changed in number, from 8.5 on: MlaPrologV3KernelNpuOpApi.cpp asks for the version.
COUNTS = {"aclnnMlaPrologV3WeightNz": 37}
Arguments = tuple[Argument, ...]


@dataclass(slots=True)
class Sources:
    """What is said of one function: prototypes of headers before those of pages, what is passed, and operators."""

    prototypes: list[tuple[Arguments, int]] = field(default_factory=list)
    passed: list[tuple[Arguments, str]] = field(default_factory=list)
    operators: list[schemas.Call] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """What the two sources agree and disagree on, and what is left out."""

    agreed: int = 0
    compared: int = 0
    arguments: int = 0
    differ: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def wanted(wheel: Path) -> list[str]:
    """The names of the functions that the wheel's library looks up."""
    data = (wheel / "torch_npu" / "lib" / "libtorch_npu.so").read_bytes()
    return sorted({match[1].decode() for match in _NAME.finditer(data)})


def version_of(wheel: Path) -> str:
    """The version of the wheel, of its `version.py`."""
    text = (wheel / "torch_npu" / "version.py").read_text("utf-8")
    return str(ast.literal_eval(text.partition("__version__ = ")[2].splitlines()[0]))


def read(folder: Path, names: list[str]) -> dict[str, Sources]:
    """All that the checkouts say of the functions."""
    found = {name: Sources() for name in names}
    folders = [folder / name.replace("/", "+") for name, *_ in REPOSITORIES]
    said = {key: mark for each in folders[:PLUGIN] for key, mark in prototypes.directions(each).items()}
    for suffix in (".h", ".md"):
        for place in range(PLUGIN):
            for name, arguments in prototypes.read(folders[place], suffix):
                if name in found:
                    arguments = tuple(prototypes.marked(name, each, said.get((name, each.name))) for each in arguments)
                    found[name].prototypes.append((arguments, place))
    for call, official in schemas.calls(folders[PLUGIN], TORCH):
        if call.function in found:
            found[call.function].passed.append((call.arguments, call.operator))
            if official:
                found[call.function].operators.append(call)
    major, minor = map(int, TORCH.split("."))
    for name, passed, site in call_sites.calls(sources.op_plugin(folders[PLUGIN], (major, minor))):
        if name in found:
            found[name].passed.append((passed, site))
    return found


def row(name: str, of: Sources, report: Report) -> dict[str, Any] | None:
    """The row of a function; None where an argument is not certain."""
    if name in SEEN and not of.prototypes and not of.passed:
        return {"arguments": SEEN[name], "source": MEASURED}
    declared, source = of.prototypes[0] if of.prototypes else ((), PLUGIN)
    passed = _passed(name, of, report)
    if not passed and len({tuple(each.kind for each in arguments) for arguments, _ in of.prototypes}) > 1:
        report.left_out.append(f"{name}: prototypes differ")
        return None
    if declared and passed:
        source = _compare(name, declared, passed, source, report)
    if not declared or len(passed) not in (0, len(declared)):
        declared = passed
    elif passed:
        declared = tuple(
            replace(one, kind=other.kind or one.kind) for one, other in zip(declared, passed, strict=True)
        )
    if not declared or not all(each.kind for each in declared):
        unsure = " ".join(each.name for each in declared if not each.kind)
        report.left_out.append(f"{name}: {unsure or 'no source' if not of.passed else unsure or 'calls differ'}")
        return None
    made: dict[str, Any] = {"arguments": "", "source": source}
    letters = [each.kind for each in declared]
    fitting = [each for each in of.operators if each.known and [one.kind for one in each.arguments] == letters]
    if fitting:
        inplace = name.startswith("aclnnInplace")
        best = min(
            fitting,
            key=lambda each: (each.operator.partition(".")[0].endswith("_") != inplace, each.operator.endswith("out")),
        )
        made["aten"] = best.operator.partition(".")[0]
        declared = tuple(
            replace(one, name=other.name, marks=_joined(one.marks, other.marks))
            for one, other in zip(declared, best.arguments, strict=True)
        )
    made["arguments"] = " ".join(map(str, _told_apart(declared)))
    return dict(sorted(made.items()))


def _told_apart(arguments: Arguments) -> Iterator[Argument]:
    """Arguments with a number after a name that stood before: several are nothing, say."""
    for place, each in enumerate(arguments):
        before = sum(other.name == each.name for other in arguments[:place])
        yield replace(each, name=f"{each.name}_{before + 1}") if before else each


def _joined(one: str, other: str) -> str:
    written = next((mark for mark in one + other if mark in FILLED + CHANGED), "")
    return written + OPTIONAL * (OPTIONAL in one + other)


def _passed(name: str, of: Sources, report: Report) -> Arguments:
    """What op-plugin passes, of all its calls; nothing where they differ in number."""
    counts = {len(arguments) for arguments, _ in of.passed}
    if len(counts) > 1:
        report.differ.append(f"{name}: calls with {sorted(counts)} arguments")
        declared = counts & {COUNTS.get(name), *(len(arguments) for arguments, _ in of.prototypes)}
        counts = declared if len(declared) == 1 else set()
    calls = [arguments for arguments, _ in of.passed if len(arguments) in counts]
    joined = []
    for each in zip(*calls, strict=True):
        kinds = {one.kind for one in each} - {""}
        if (name, each[0].name) in BY_HAND:
            kinds = {BY_HAND[name, each[0].name]}
        if len(kinds) > 1:
            report.differ.append(f"{name}({each[0].name}): passed as {' and '.join(sorted(kinds))}")
        marks = "".join(one.marks for one in each)
        written = FILLED if FILLED in marks else CHANGED if CHANGED in marks else ""
        joined.append(
            Argument(each[0].name, kinds.pop() if len(kinds) == 1 else "", written + OPTIONAL * (OPTIONAL in marks))
        )
    return tuple(joined)


def _compare(name: str, declared: Arguments, passed: Arguments, source: int, report: Report) -> int:
    """Count what agrees; the source that holds."""
    report.compared += 1
    if len(declared) != len(passed):
        report.differ.append(f"{name}: {len(declared)} declared, {len(passed)} passed")
        return PLUGIN
    pairs = [(one, other) for one, other in zip(declared, passed, strict=True) if other.kind]
    report.arguments += len(pairs)
    wrong = [f"{one.name}: {one.kind} declared, {other.kind} passed" for one, other in pairs if one.kind != other.kind]
    report.differ += [f"{name}({each})" for each in wrong]
    report.agreed += not wrong
    for one, other in pairs:
        marks = one.marks.strip(OPTIONAL), other.marks.strip(OPTIONAL)
        if marks[0] != marks[1]:
            report.marks.append(f"{name}({one.name}): '{marks[0]}' declared, {other.name}'{marks[1]}' passed")
    return PLUGIN if wrong else source


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the checkouts")
    parser.add_argument("--wheel", type=Path, required=True, help="an unpacked torch_npu")
    parser.add_argument("--heads", nargs=3, help="the commits, for folders without git")
    arguments = parser.parse_args()
    names = wanted(arguments.wheel)
    report = Report()
    rows = {name: row(name, of, report) for name, of in read(arguments.folder, names).items()}
    functions = {name: made for name, made in sorted(rows.items()) if made is not None}
    heads = arguments.heads or [head(arguments.folder / name.replace("/", "+")) for name, *_ in REPOSITORIES]
    write(ROOT / "rules" / "support" / "card_functions.json", {
        "what": "Arguments of the functions of CANN that torch_npu looks up, in the order of their "
        "...GetWorkspaceSize without its last two. Letters: t aclTensor, T aclTensorList, s aclScalar, S "
        "aclScalarList, a aclIntArray, F aclFloatArray, B aclBoolArray, i 64-bit integer, h 32-bit, c 8-bit, b bool, d "
        "double, f float, k aclDataType, z char*. > is filled, & read and written, ? may be a null pointer. `aten`: "
        "the operator of PyTorch whose parameters have these names. `source`: whose types these are.",
        "sources": [
            {"name": name, "url": url, "commit": commit, "licence": licence}
            for (name, url, licence), commit in zip(REPOSITORIES, heads, strict=True)
        ] + [{
            "name": "torch_npu (calls of the wheel)", "url": "https://pypi.org/project/torch-npu/",
            "commit": version_of(arguments.wheel), "licence": "BSD-3-Clause",
        }],
        "functions": functions,
    })  # fmt: skip
    print(f"{len(functions)} of {len(names)} functions: rules/support/card_functions.json")
    print(f"both sources: {report.compared} functions, {report.agreed} agree, {report.arguments} arguments compared")
    for title, lines in (("differ", report.differ), ("marks", report.marks), ("left out", report.left_out)):
        print(f"{title}: {len(lines)}", *lines, sep="\n  ")


if __name__ == "__main__":
    main()
