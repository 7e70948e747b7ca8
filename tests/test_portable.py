"""The portable style: edits after which CUDA and CPU behave as before, everything else a finding."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern

CHOICE = 'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.cuda.is_available()", "torch.accelerator.is_available()"),
        ("torch.cuda.device_count()", "torch.accelerator.device_count()"),
        ("torch.cuda.current_device()", "torch.accelerator.current_device_index()"),
        ("torch.cuda.set_device(rank)", "torch.accelerator.set_device_index(rank)"),
        ("torch.cuda.synchronize()", "torch.accelerator.synchronize()"),
        ("torch.cuda.max_memory_allocated()", "torch.accelerator.max_memory_allocated()"),
    ],
)
@pattern("P1", "P2", "P3", "P4", "P7", "P8")
def test_names_that_torch_has_for_every_accelerator(old: str, new: str) -> None:
    check_rewrite(
        f"import torch\ndef f(rank):\n    return {old}\n",
        f"import torch\ndef f(rank):\n    return {new}\n",
        style="portable",
    )


@pattern("P29", "T2")
def test_the_device_is_chosen_by_what_is_there() -> None:
    check_rewrite(
        """
        import torch
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if device.type == "cuda":
            torch.cuda.synchronize()
        if device.type != 'cuda':
            pass
        """,
        f"""
        import torch
        device = torch.device({CHOICE})
        if device.type in ("cuda", "npu"):
            torch.accelerator.synchronize()
        if device.type not in ('cuda', 'npu'):
            pass
        """,
        style="portable",
        codes_applied=["NPU260", "NPU261", "NPU262"],
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("x = x.cuda()", "NPU210"),
        ("x = x.to('cuda')", "NPU201"),
        ("y = x.is_cuda", "NPU211"),
        ("torch.distributed.init_process_group('nccl')", "NPU301"),
        ("scaler = torch.cuda.amp.GradScaler()", "NPU103"),
        ("torch.cuda.manual_seed_all(1)", "NPU106"),
    ],
)
def test_what_would_change_on_cuda_is_a_finding(line: str, code: str) -> None:
    check_noop(f"import torch\ndef f(x):\n    {line}\n", open_codes=[code], style="portable")


def test_a_default_device_is_a_finding() -> None:
    check_noop(
        "import torch\ndef f(x, device='cuda'):\n    return x.to(device)\n", open_codes=["NPU201"], style="portable"
    )


@pytest.mark.parametrize("version", ["2.1", "2.5"])
def test_before_torch_accelerator_there_is_no_edit(version: str) -> None:
    check_noop(
        "import torch\nok = torch.cuda.is_available()\n", open_codes=["NPU101"], style="portable", torch_version=version
    )


def test_memory_statistics_came_later() -> None:
    source = "import torch\nused = torch.cuda.memory_allocated()\n"
    check_noop(source, open_codes=["NPU104"], style="portable", torch_version="2.10")


@pattern("T21")
def test_a_chain_that_asks_for_mps_stays() -> None:
    source = """
        import torch
        def pick():
            if torch.cuda.is_available():
                return "gpu"
            elif torch.backends.mps.is_available():
                return "mps"
            return "cpu"
        """
    check_noop(source, open_codes=["NPU101"], style="portable")


def test_an_alias_stays() -> None:
    check_noop("import torch.cuda as tc\nok = tc.is_available()\n", open_codes=["NPU101"], style="portable")


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nx = torch.ones(2)\n",
        "import torch\ndevice = torch.accelerator.current_accelerator()\n",
        "import torch\ndef f(device):\n    return device.type in ('cuda', 'npu')\n",
    ],
)
def test_portable_code_is_left_alone(source: str) -> None:
    check_noop(source, style="portable")


def test_chains_of_comparisons_are_left() -> None:
    source = 'import torch\n\nd = torch.device(x)\nprint(d.type == "cuda" == y, y == d.type == "cuda")\n'
    check_noop(source, style="portable", open_codes=["NPU201"])


def test_a_method_of_the_project_gains_no_second_name() -> None:
    source = "import torch\nclass Model(torch.nn.Module):\n    def cuda(self):\n        return self\n"
    check_noop(source, style="portable")
