"""A device that a test expects moves with the text that gives it, or not at all."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite

RUN = "import torch\n\ndef parse(argv):\n    return dict(each[2:].split('=') for each in argv)\n"


@pytest.mark.parametrize(
    ("given", "check", "code"),
    [
        ('["--device=cuda:0", "--seed=42"]', 'assert opts["device"] == "cuda:0"', "NPU208"),
        ('["--device", "cuda:1"]', 'assert opts["device"] == "cuda:1" and opts', None),
        ('["--device", "cuda:1"]', 'unittest.assertEqual(opts["device"], "cuda:1")', None),
    ],
)
def test_what_is_expected_stays_with_what_is_given(given: str, check: str, code: str | None) -> None:
    check_noop(
        f"""
        from run import parse

        def test_parse(unittest):
            opts = parse({given})
            {check}
        """,
        open_codes=sorted({"NPU203"} | ({code} if code else set())),
        files={"run.py": RUN},
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # what gives it moves too
        ('x = torch.zeros(1, device="cuda:0")', 'x = torch.zeros(1, device="npu:0")'),
        # another device is given
        ('opts = parse(["--device=cuda:1"])', 'opts = parse(["--device=cuda:1"])'),
    ],
)
def test_what_is_expected_moves(before: str, after: str) -> None:
    check_rewrite(
        f"""
        import torch
        from run import parse

        def test_parse(model):
            {before}
            assert model.device == torch.device("cuda:0")
            assert model.opts["device"] == "cuda:0"
        """,
        f"""
        import torch
        import torch_npu  # noqa: F401
        from run import parse

        def test_parse(model):
            {after}
            assert model.device == torch.device("npu:0")
            assert model.opts["device"] == "npu:0"
        """,
        open_codes=["NPU208"] if before == after else [],
        files={"run.py": RUN},
    )


def test_another_function_gives_it() -> None:
    check_rewrite(
        """
        import torch
        from run import parse

        def test_text():
            parse(["--device=cuda:0"])

        def test_device(opts):
            assert opts["device"] == "cuda:0"
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from run import parse

        def test_text():
            parse(["--device=cuda:0"])

        def test_device(opts):
            assert opts["device"] == "npu:0"
        """,
        open_codes=["NPU208"],
        files={"run.py": RUN},
    )
