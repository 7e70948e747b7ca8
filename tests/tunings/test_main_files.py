"""Which file of a program gets the lines that hold for all of it."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_tuned, check_untuned

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
LAUNCHER = {"submit.py": "import train as trainer\n\n\ndef launch(args):\n    trainer.main(args)\n"}


@pytest.mark.parametrize(
    "guarded",
    ["args = argparse.ArgumentParser().parse_args()\n        main(args)", "main(parser().parse_known_args()[0])"],
)
def test_a_main_program_that_a_launcher_imports_too(guarded: str) -> None:
    check_tuned("compile-mode", MAIN.format(guarded=guarded), TUNED.format(guarded=guarded), files=LAUNCHER)


def test_a_main_program_that_nobody_imports() -> None:
    check_tuned("compile-mode", MAIN.format(guarded="main(None)"), TUNED.format(guarded="main(None)"))


def test_a_module_that_shows_what_it_does() -> None:
    source = MAIN.format(guarded="main(None)").replace(".cuda()", "")
    check_untuned("compile-mode", source, files=LAUNCHER)
