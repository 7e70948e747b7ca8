"""The quick start: every command of its pages, on a sample of the example's shape, or on the example itself.

`TRANSPLT_EXAMPLES=CHECKOUT`, a checkout of pytorch/examples at commit 6ab697c, makes it run on that.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.regen_samples import ROOT, SAMPLES
from tests.processes import measured_alone

CHECKOUT = os.environ.get("TRANSPLT_EXAMPLES", "")


def blocks(page: str, kind: str) -> list[list[str]]:
    """The lines of each block of a kind on a page: `sh` is typed, `text` is what is printed."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [block.splitlines() for block in re.findall(rf"^```{kind}\n(.*?)^```", text, re.M | re.S)]


def commands(page: str) -> list[str]:
    """The command lines of a page, in their order."""
    return [line for block in blocks(page, "sh") for line in block]


def test_both_languages_have_the_same_commands_and_outputs() -> None:
    for kind in ("sh", "text"):
        assert blocks("quick_start.md", kind) == blocks("quick_start_zh.md", kind)
    assert len(commands("quick_start.md")) == 8


def typed(folder: Path, command: str, code: int = 0) -> str:
    """What a command prints that is typed in a folder."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    program, *arguments = shlex.split(command)
    assert program == "transplt"
    done = subprocess.run(
        [*measured_alone("transplt"), *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, (command, done.stdout + done.stderr)
    return done.stdout + done.stderr


def type_all(folder: Path) -> list[str]:
    """Type what follows the two commands that fetch the example; a migration leaves something to a person."""
    printed = []
    for command in commands("quick_start.md")[2:]:
        printed.append(typed(folder, command, int(command.startswith("transplt -i"))))
        assert "prove" not in command or "transplt prove: equal: " in printed[-1], printed[-1]
        assert "--amp apex" not in command or "(15 unsafe)" in printed[-1], printed[-1]
    return printed


def test_what_the_page_quotes_of_the_first_command(tmp_path: Path) -> None:
    """The example's README has three commands for CUDA, the first in line 33; the sample has none."""
    source = Path(shutil.copytree(SAMPLES / "quick_start" / "cuda", tmp_path / "imagenet"))
    command = "```bash\npython main.py -a resnet50 --dist-backend 'nccl'\n```\n"
    (source / "README.md").write_text("\n" * 31 + 3 * command, encoding="utf-8")
    printed = typed(tmp_path, "transplt -i imagenet -o out", 1)
    assert "\n".join(blocks("quick_start.md", "text")[0]) in printed


@pytest.mark.torch
@pytest.mark.slow  # its migration is shown above, its proof in tests/prove/test_golden_samples.py
def test_every_command_on_a_sample_of_the_same_shape(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copytree(SAMPLES / "quick_start" / "cuda", tmp_path / "examples" / "imagenet")
    type_all(tmp_path)
    assert (tmp_path / "checkpoint.pth").exists()


@pytest.mark.torch
@pytest.mark.slow  # that it trains as its original is proven in tests/prove/test_golden_samples.py
def test_the_branches_of_the_sample_that_the_page_does_not_reach(tmp_path: Path) -> None:
    """A part under DataParallel; a card that is named; what is resumed and only evaluated."""
    run = f"transplt run --npus 1 {SAMPLES / 'quick_start' / 'expected' / 'main.py'} --samples 32"
    for arguments, line in (
        ("-a vgg_small --amp --epochs 1", "model.features = npu_port.OneCardDataParallel(model.features)"),
        ("-a vgg_small --amp --epochs 2 --resume checkpoint.pth", "amp.load_state_dict(checkpoint['amp'])"),
        ("-a alexnet_small --epochs 1 --gpu 0 --seed 1", "model = model.npu(args.gpu)"),
        ("-a alexnet_small --gpu 0 --pretrained --resume checkpoint.pth -e", "location = 'npu:{}'.format(args.gpu)"),
    ):
        printed = typed(tmp_path, f"{run} {arguments}")
        assert "transplt run: runs: " in printed
        assert line not in printed.partition("did not run")[2], printed
        assert ("goes on behind epoch 1" in printed) is ("--resume" in arguments)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.skipif(not CHECKOUT, reason="TRANSPLT_EXAMPLES names no checkout of pytorch/examples")
def test_every_command_on_the_example(tmp_path: Path) -> None:
    shutil.copytree(Path(CHECKOUT) / "imagenet", tmp_path / "examples" / "imagenet")
    # A migration leaves the commands of the example's README to a person.
    printed = "".join(type_all(tmp_path)).splitlines()
    assert (tmp_path / "checkpoint.pth.tar").exists()
    for block in blocks("quick_start.md", "text"):
        assert any(printed[at : at + len(block)] == block for at in range(len(printed))), block
