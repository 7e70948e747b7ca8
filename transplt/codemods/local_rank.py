"""The flag in which `torch.distributed.launch` says a process which card is its own.

From torch 2.0 on it passes `--local-rank`, before that `--local_rank`; torch's own page says to accept both
(torch/distributed/run.py). `torchrun` passes neither: it sets LOCAL_RANK (torch/distributed/launch.py). DeepSpeed's
launcher goes on passing `--local_rank` (deepspeed/launcher/launch.py).
"""

from __future__ import annotations

import ast
import re

from transplt.codemods.call_edits import keyword_of
from transplt.edits.rewrite import Change
from transplt.edits.work import Work
from transplt.finding import Level
from transplt.trees.transform import CannotRewrite, Swap

_OLD, _NEW = "--local_rank", "--local-rank"
_FLAG = re.compile(rf"#[^\r\n]*|(?P<flag>(['\"]){_OLD}\2)")


def plan(work: Work) -> None:
    """Let flags called `--local_rank` be given as `--local-rank` too.

    A file that starts under DeepSpeed, or reads LOCAL_RANK itself as a program for torchrun does, is left alone.
    """
    utf8 = work.source.utf8
    if b"--local_rank" not in utf8 or b"argparse" not in utf8 or b"deepspeed" in utf8.lower():
        return
    if b'"LOCAL_RANK"' in utf8 or b"'LOCAL_RANK'" in utf8:
        return
    for call in work.scan.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
            continue
        flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
        if len(flags) < len(call.args) or _OLD not in flags:
            continue
        if _NEW not in flags and work.take(call):
            message = "torch.distributed.launch passes --local-rank since torch 2.0"
            work.changes.append(Change(call, "NPU313", message, Swap(_both), api="argparse"))
        required = keyword_of(call, "required")
        if isinstance(required, ast.Constant) and required.value is True:
            work.note(
                call,
                "NPU313",
                "a start with torchrun fails: it passes no --local_rank",
                level=Level.INFO,
                help='instead of required=True write default=int(os.environ.get("LOCAL_RANK", 0))',
            )


def _both(call: str) -> str:
    found = next((match for match in _FLAG.finditer(call) if match["flag"]), None)
    if found is None:
        raise CannotRewrite("the flag is not a plain string")
    return f"{call[: found.end()]}, {found['flag'].replace(_OLD, _NEW)}{call[found.end() :]}"
