"""Programs that are distributed already: the launch script passes the option without which they take one card."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.test_pairs import distributed, output, script
from transplt.project import tree
from transplt.project.launch import launch_script
from transplt.project.options import Options, make_plan

PROGRAM = """\
import argparse
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument({stated})
args = parser.parse_args()
{more}

def setup():
    dist.init_process_group("nccl")


{begin}
model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
"""


def given(stated: str, begin: str, more: str = "") -> list[str]:
    """What the launch script gives, by the remarks on the main file."""
    found = distributed(PROGRAM.format(stated=stated, begin=begin, more=more)).findings
    messages = [finding.message for finding in found if finding.code == "NPU330"]
    return [message.removeprefix("the launch script passes ") for message in messages if "launch script" in message]


@pytest.mark.parametrize(
    ("stated", "begin", "option"),
    [
        ('"--distributed", action="store_true"', "if args.distributed:\n    setup()", "--distributed"),
        ('"--multi-gpu", action="store_true"', "if args.multi_gpu:\n    setup()", "--multi-gpu"),
        ('"-d", "--dist", dest="many", action="store_true"', "if args.many:\n    setup()", "--dist"),
        (
            '"--launcher", choices=["none", "pytorch", "slurm"], default="none"',
            'if args.launcher != "none":\n    setup()',
            "--launcher pytorch",
        ),
        (
            '"--launcher", choices=["none", "pytorch"], default="none"',
            'if args.launcher == "none":\n    pass\nelse:\n    setup()',
            "--launcher pytorch",
        ),
    ],
)
def test_the_option_that_makes_the_process_group(stated: str, begin: str, option: str) -> None:
    assert given(stated, begin) == [option]


@pytest.mark.parametrize(
    ("stated", "begin", "more"),
    [
        ('"--distributed", action="store_true"', "setup()", ""),
        ('"--single", action="store_true"', "if not args.single:\n    setup()", ""),
        ('"--distributed", action="store_false"', "if args.distributed:\n    setup()", ""),
        ('"--world-size", type=int, default=1', "if args.world_size > 1:\n    setup()", ""),
        ('"--launcher", default="none"', 'if args.launcher != "none":\n    setup()', ""),
        ('"--launcher", choices=["none", "mpi"], default="none"', 'if args.launcher != "none":\n    setup()', ""),
        (
            '"--distributed", action="store_true"',
            "if args.distributed:\n    setup()",
            'import os\nargs.distributed = int(os.environ["WORLD_SIZE"]) > 1\n',
        ),
    ],
)
def test_what_needs_no_option_or_another_one(stated: str, begin: str, more: str) -> None:
    assert given(stated, begin, more) == []


def test_the_option_stands_before_those_of_the_user() -> None:
    assert '"$main" --launcher pytorch "$@"' in launch_script("main.py", option="--launcher pytorch")
    assert '"$main" "$@"' in launch_script("main.py")


def test_the_ranks_are_compared_behind_each_step() -> None:
    loop = "for x in loader:\n    model(x).backward()\n    optimizer.step()"
    found = distributed(script(loop=loop), check_ranks=50).data.decode()
    assert "    optimizer.step()\n    npu_port.check_ranks(optimizer, every=50)\n" in found
    assert "check_ranks" not in output(script(loop=loop))


def test_a_script_with_an_argument_called_async(tmp_path: Path) -> None:
    """No Python since 3.7 reads it; the migration renames it, with `distributed` too."""
    source = tmp_path / "project"
    source.mkdir()
    loop = "for x in loader:\n    model(x.cuda(async=True)).backward()\n    optimizer.step()"
    (source / "train.py").write_text(script(loop=loop), encoding="utf-8")
    plan = make_plan(Options(source=source, out=tmp_path / "out", jobs=1, page=False, entry="train.py"))
    tree.migrate_tree(plan)
    text = (plan.target / "train.py").read_text(encoding="utf-8")
    assert "model(x.npu(non_blocking=True)).backward()" in text and "npu_port.start()" in text
