"""Which file of a program gets the lines that hold for all of it."""

from __future__ import annotations

import pytest

from tests.harness import migrate
from tests.tunings.tuned import check_tuned

MAIN = """
    import argparse
    import torch


    def main(args):
        torch.nn.Linear(2, 2).cuda()


    if __name__ == "__main__":
        {guarded}
    """
TUNED = """
    import argparse
    import torch
    import torch_npu  # noqa: F401

    torch.npu.set_compile_mode(jit_compile=False)


    def main(args):
        torch.nn.Linear(2, 2).npu()


    if __name__ == "__main__":
        {guarded}
    """
LAUNCHER = {"submit.py": 'import train as trainer\n\n\nif __name__ == "__main__":\n    launch(trainer.main)\n'}


@pytest.mark.parametrize(
    "guarded",
    ["args = argparse.ArgumentParser().parse_args()\n        main(args)", "main(parser().parse_known_args()[0])"],
)
def test_a_main_program_that_a_launcher_imports_too(guarded: str) -> None:
    check_tuned("compile-mode", MAIN.format(guarded=guarded), TUNED.format(guarded=guarded), files=LAUNCHER)


def test_a_main_program_that_nobody_imports() -> None:
    check_tuned("compile-mode", MAIN.format(guarded="main(None)"), TUNED.format(guarded="main(None)"))


@pytest.mark.parametrize(
    ("guarded", "importer"),
    [
        ("main(argparse.ArgumentParser().parse_args())", "import torch\n" + LAUNCHER["submit.py"]),
        ("main(argparse.ArgumentParser().parse_args())", "from torch import nn\n" + LAUNCHER["submit.py"]),
        ("main(None)", LAUNCHER["submit.py"]),
    ],
)
def test_a_module_of_another_program(guarded: str, importer: str) -> None:
    result = migrate(MAIN.format(guarded=guarded), files={"submit.py": importer}, tune=(("compile-mode", ""),))
    assert b".npu()" in result.data
    assert b"set_compile_mode" not in result.data
