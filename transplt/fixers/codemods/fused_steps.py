"""Scalers of torch_npu beside optimizers that unscale by themselves: the first step raises a TypeError.

torch_npu's scaler calls `optimizer.step(grad_scaler=self)` where torch's sets two attributes; the fused optimizers of
torch have no such argument (torch_npu/npu/amp/grad_scaler.py, torch/amp/grad_scaler.py: step). On an NPU accelerate,
and with it the Trainer of transformers, takes torch_npu's (accelerate/utils/modeling.py: get_grad_scaler).
"""

from __future__ import annotations

import ast

from transplt.base.finding import Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.around import program_around
from transplt.fixers.codemods.amp import NPU_SCALERS
from transplt.fixers.codemods.fused_adamw import IGNORED
from transplt.fixers.codemods.grad_scalers import MOVES, is_type, uses_of
from transplt.program.models import is_optimizer
from transplt.program.optimizers import asks_for_fused
from transplt.program.program import Program
from transplt.rules.since import only_older
from transplt.rules.versions import version_key
from transplt.syntax.nodes import by_place, hides_arguments, keyword_of, last_name, string_of

fixer = Fixer(
    __name__, code="NPU160", rank=610, versions=">=2.3", edits=False, words=("gradscaler", "fp16"),
    needs=(b"GradScaler", b"TrainingArguments", b"trl", b"Accelerator"),
)  # fmt: skip

_SCALER = "torch.npu.amp.GradScaler"
_FUSED = "adamw_torch_fused"
#: From when on transformers takes it without being asked, with a torch that is new enough (its pull request 37358).
_SINCE, _SINCE_TORCH = "4.54.0", (2, 8)


@fixer.on(ast.Module)
def scaler_of_torch_npu(work: Work, tree: ast.Module) -> Finds:
    """Report the first use of a scaler of torch_npu in a program with a fused optimizer."""
    if work.settings.style == "portable" or b"GradScaler" not in work.source.utf8:
        return
    stays = NPU_SCALERS.union(old for old in MOVES if work.rules.builtin.names[old].new in NPU_SCALERS)
    uses = by_place(node for node, _ in uses_of(work, stays) if not is_type(node))
    program = program_around(work) if uses else None
    if program is not None and (beside := _fused(program, work.scan.path)):
        do = 'remove fused=True, or call torch.amp.GradScaler with "npu" before the other arguments'
        if beside.startswith("AdamW"):
            do = f"remove fused=True: with torch's scaler nothing stops, but {IGNORED}"
        message = f"{_SCALER} cannot step {beside}: TypeError at the first step"
        yield work.note(uses[0], fixer.code, message, api=_SCALER, help=do)


@fixer.on(ast.Call, name="accelerate.Accelerator")
def scaler_of_accelerate(work: Work, call: ast.Call) -> Finds:
    """Report float16 of accelerate in a program with a fused optimizer."""
    program = program_around(work) if string_of(keyword_of(call, "mixed_precision")) == "fp16" else None
    if program is not None and (beside := _fused(program, work.scan.path)):
        yield work.note(
            call,
            fixer.code,
            f"the scaler of accelerate is {_SCALER} on an NPU, which cannot step {beside}: TypeError at the first step",
            api="accelerate.Accelerator",
            help='remove fused=True, or use mixed_precision="bf16", which needs no scaler',
        )


@fixer.on(ast.Module)
def scaler_of_transformers(work: Work, tree: ast.Module) -> Finds:
    """Report float16 of a Trainer whose optimizer is the fused one: where it is asked for, or is the default."""
    for call in work.scan.calls:
        half = keyword_of(call, "fp16")
        if half is None or (isinstance(half, ast.Constant) and not half.value):
            continue
        package, name = (work.names.qualified(call.func) or "").partition(".")[0], last_name(call.func)
        ending = {"transformers": "TrainingArguments", "trl": "Config"}.get(package)
        of_a_trainer = ending and name.endswith(ending) and not work.defines_package(package)
        if of_a_trainer and _steps_fused(work, call):
            certain = isinstance(half, ast.Constant)
            when = "" if certain else ", where fp16 is on"
            yield work.note(
                call.func,
                fixer.code,
                f"{_SCALER}, which {name}(fp16=...) takes, cannot step {_FUSED}: TypeError at the first step{when}",
                level=Level.MANUAL if certain else Level.INFO,
                api=name,
                help='write optim="adamw_torch", or train with bf16=True, which needs no scaler',
            )


def _steps_fused(work: Work, call: ast.Call) -> bool:
    """True for a Trainer of which torch's scaler steps the fused AdamW, as far as its arguments say it."""
    asked, engine = keyword_of(call, "optim"), keyword_of(call, "deepspeed")
    if engine is not None and not (isinstance(engine, ast.Constant) and engine.value is None):
        return False  # it scales by itself
    if asked is not None:
        return string_of(asked) == _FUSED or last_name(asked) == _FUSED.upper()
    older = only_older(dict(work.settings.pins).get("transformers", ""), _SINCE)
    return not hides_arguments(call) and not older and version_key(work.settings.torch_version) >= _SINCE_TORCH


def _fused(program: Program, path: str) -> str:
    """A fused optimizer of a program in words, one of the file at a path first; empty where it has none."""
    for file in sorted(program.files, key=lambda each: (each.path != path, each.path)):
        for call in by_place(file.scan.calls):
            if call.keywords and is_optimizer(file, call) and asks_for_fused(file, call):
                where = "" if file.path == path else f"{file.path}:"
                return f"{last_name(call.func)}(fused=True) in {where or 'line '}{call.lineno}"
    return ""
