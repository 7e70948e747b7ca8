"""`-s`: the card comes from the environment."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern
from transplt.base.finding import Operation

READ = (
    'NPU_DEVICE_ID = int(os.environ.get("LOCAL_RANK") or os.environ.get("ASCEND_DEVICE_ID") '
    'or os.environ.get("DEVICE_ID") or 0)'
)


@pattern("P26", "P27", "P21")
def test_a_script_with_a_main_guard() -> None:
    check_rewrite(
        """
        import torch

        def main():
            device = torch.device("cuda:0")
            torch.cuda.set_device(0)
            return torch.ones(3).cuda(0, non_blocking=True), torch.device("cuda", 0), device

        if __name__ == "__main__":
            main()
        """,
        f"""
        import torch
        import torch_npu  # noqa: F401
        import os

        {READ}

        def main():
            device = torch.device(f"npu:{{NPU_DEVICE_ID}}")
            torch.npu.set_device(NPU_DEVICE_ID)
            return torch.ones(3).npu(NPU_DEVICE_ID, non_blocking=True), torch.device("npu", NPU_DEVICE_ID), device

        if __name__ == "__main__":
            torch.npu.set_device(NPU_DEVICE_ID)
            main()
        """,
        specify_device=True,
    )


def test_a_flat_script_selects_its_card_below_the_imports() -> None:
    check_rewrite(
        """
        import os
        import torch
        model = torch.nn.Linear(2, 2).cuda()
        """,
        f"""
        import os
        import torch
        import torch_npu  # noqa: F401

        {READ}
        torch.npu.set_device(NPU_DEVICE_ID)
        model = torch.nn.Linear(2, 2).npu()
        """,
        specify_device=True,
    )


def test_a_module_that_is_no_script_only_reads_the_index() -> None:
    result = migrate(
        """
        import torch

        def put(x):
            return x.to("cuda:0")
        """,
        specify_device=True,
    )
    assert b'x.to(f"npu:{NPU_DEVICE_ID}")' in result.data
    assert b"set_device" not in result.data


@pytest.mark.parametrize(
    "line",
    [
        'device = torch.device("cpu")',
        "y = x.to(device, non_blocking=True)",
        "x = x.float()",
        "device = args.device",
        'x = x.to("cpu")',
    ],
)
def test_what_names_no_card_stays(line: str) -> None:
    check_noop(f"import torch\ndef f(x, device, args):\n    {line}\n    return x\n", specify_device=True)


@pytest.mark.parametrize("device", ["rank", "local_rank", "args.gpu"])
def test_a_computed_index_stays(device: str) -> None:
    result = migrate(
        f"import torch\ndef f(x, rank, local_rank, args):\n    return x.cuda({device})\n", specify_device=True
    )
    assert f"x.npu({device})".encode() in result.data


def test_several_fixed_cards_are_left_to_a_person() -> None:
    result = migrate(
        """
        import torch

        def split(a, b):
            return a.to("cuda:0"), b.to("cuda:1")
        """,
        specify_device=True,
    )
    assert b'a.to("npu:0"), b.to("npu:1")' in result.data
    assert [f.code for f in result.findings if f.open] == ["NPU251", "NPU251"]


def test_without_the_option_the_index_stays() -> None:
    assert b'"npu:0"' in migrate('import torch\nx = torch.ones(1).to("cuda:0")\n').data


def test_what_goes_in_at_one_place_is_one_record() -> None:
    source = "import os\nimport torch\nmodel = torch.nn.Linear(2, 2).cuda()\n"
    result = migrate(source, specify_device=True)
    inserted = [f for f in result.findings if f.edit is not None and f.edit.operation is Operation.INSERT]
    assert len(inserted) == 1
    assert inserted[0].edit is not None and "import torch_npu" in inserted[0].edit.after
