"""The flag in which `torch.distributed.launch` passes a process the number of its card.

From torch 2.0 on it passes `--local-rank`, before that `--local_rank`; torch's own page says to accept both
(torch/distributed/run.py). `torchrun` passes neither: it sets LOCAL_RANK (torch/distributed/launch.py). DeepSpeed's
launcher goes on passing `--local_rank` (deepspeed/launcher/launch.py). A file that speaks of these may be started by
torch's launcher all the same: BEiT asks `parse_known_args` whether DeepSpeed is wanted before `parse_args` reads the
rest, and the training scripts of OpenMMLab set LOCAL_RANK from the flag. A second spelling does no harm there, and a
parser that knows one alone ends the script.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Level
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import with_twin
from transplt.edits.work import Work
from transplt.syntax.nodes import keyword_of, of_kind, string_of

fixer = Fixer(
    __name__,
    code="NPU313",
    rank=360,
    needs=(b"--local_rank", b'DEFINE_integer("local_rank"', b"DEFINE_integer('local_rank'"),
)

_OLD, _NEW = "--local_rank", "--local-rank"
#: What reads arguments and lets those pass that it does not know, and what ends the script at such a one.
_LETS_PASS, _REFUSES = "parse_known_args", ("parse_args", "parse_intermixed_args", "parse_args_into_dataclasses")


@fixer.on(ast.Call, last="add_argument")
def flag_of_the_launcher(work: Work, call: ast.Call) -> Finds:
    """Let a flag called `--local_rank` be given as `--local-rank` too."""
    flags = [arg.value for arg in of_kind(ast.Constant, call.args)]
    if not isinstance(call.func, ast.Attribute) or len(flags) < len(call.args) or _OLD not in flags:
        return
    started_otherwise = _is_started_otherwise(work)
    called = {call.func.attr for call in work.scan.calls if isinstance(call.func, ast.Attribute)}
    passes_unknown_flags = _LETS_PASS in called and called.isdisjoint(_REFUSES)
    if b"argparse" not in work.source.utf8 or (started_otherwise and passes_unknown_flags):
        return
    if _NEW not in flags and work.take(call):
        message = "torch.distributed.launch passes --local-rank (not --local_rank) since torch 2.0"
        yield Edit(call, "NPU313", message, with_twin(_OLD, _NEW), api="argparse")
    match keyword_of(call, "required"):
        case ast.Constant(value=True) if not started_otherwise:
            yield work.note(
                call,
                "NPU313",
                "torchrun cannot start this script: torchrun passes no --local_rank",
                level=Level.INFO,
                help='instead of required=True write default=int(os.environ.get("LOCAL_RANK", 0))',
            )


@fixer.on(ast.Call, name="click.option")
def option_of_click(work: Work, call: ast.Call) -> Finds:
    """Let an option of click be given in both ways; the parameter is called after the first of them."""
    flags = [arg.value for arg in of_kind(ast.Constant, call.args)]
    if _OLD in flags and _NEW not in flags and work.take(call):
        message = "torch.distributed.launch passes --local-rank (not --local_rank) since torch 2.0"
        yield Edit(call, "NPU313", message, with_twin(_OLD, _NEW), api="click.option")


@fixer.on(ast.Call, name="absl.flags.DEFINE_integer")
def flag_of_one_spelling(work: Work, call: ast.Call) -> Finds:
    """Report a flag of absl, which has one spelling alone."""
    if call.args and string_of(call.args[0]) == "local_rank" and not _is_started_otherwise(work):
        yield work.note(
            call,
            "NPU313",
            "torch.distributed.launch passes --local-rank since torch 2.0, which absl refuses",
            level=Level.MANUAL,
            help="start with torchrun and take the value from LOCAL_RANK",
        )


def _is_started_otherwise(work: Work) -> bool:
    """True for a file that speaks of DeepSpeed, or reads LOCAL_RANK itself as a program for torchrun does."""
    utf8 = work.source.utf8
    return b"deepspeed" in utf8.lower() or b'"LOCAL_RANK"' in utf8 or b"'LOCAL_RANK'" in utf8
