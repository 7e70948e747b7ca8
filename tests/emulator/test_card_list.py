"""The npu-smi of the emulated host, as launch scripts ask it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from transplt.proof.launch.card_list import put_card_list

COUNT = "npu-smi info -l | awk -F: '/Chip Count/ { total += $2 } END { print total + 0 }'"


def asked(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{folder}:/usr/bin:/bin"}
    return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)


def test_it_lists_the_cards_in_the_form_that_our_launch_script_counts(tmp_path: Path) -> None:
    assert asked(put_card_list(tmp_path, 2), COUNT).stdout == "2\n"


def test_it_says_what_it_does_not_know(tmp_path: Path) -> None:
    done = asked(put_card_list(tmp_path, 2), "npu-smi info")
    assert done.returncode == 1 and done.stdout == "" and "only supports npu-smi info -l" in done.stderr
