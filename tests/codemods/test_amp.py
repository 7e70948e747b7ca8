"""Mixed precision: renames without shifted arguments, and the device where torch means CUDA by default."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern


def rewritten(before: str, after: str, head: str = "import torch", **more: object) -> None:
    """One statement after the imports of torch."""
    check_rewrite(f"{head}\n{before}\n", f"{head}\nimport torch_npu  # noqa: F401\n{after}\n", **more)  # type: ignore[arg-type]


@pattern("P12", "P13", "T15")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.amp.autocast()", "torch.npu.amp.autocast()"),
        ("torch.cuda.amp.autocast(True)", "torch.npu.amp.autocast(True)"),
        ("torch.cuda.amp.autocast(use_amp)", "torch.npu.amp.autocast(use_amp)"),
        ("torch.cuda.amp.autocast(enabled=False)", "torch.npu.amp.autocast(enabled=False)"),
        (
            "torch.cuda.amp.autocast(True, torch.bfloat16, False)",
            "torch.npu.amp.autocast(True, torch.bfloat16, False)",
        ),
        (
            "torch.cuda.amp.autocast(dtype=torch.bfloat16, cache_enabled=False)",
            "torch.npu.amp.autocast(dtype=torch.bfloat16, cache_enabled=False)",
        ),
        ("autocast = torch.cuda.amp.autocast", "autocast = torch.npu.amp.autocast"),
        (
            "functools.partial(torch.cuda.amp.autocast, enabled=on)",
            "functools.partial(torch.npu.amp.autocast, enabled=on)",
        ),
    ],
)
def test_the_old_names_keep_their_arguments(before: str, after: str) -> None:
    rewritten(before, after)


@pattern("P13", "T15")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.amp.GradScaler()", "torch.npu.amp.GradScaler()"),
        ("torch.cuda.amp.GradScaler(2.**16)", "torch.npu.amp.GradScaler(2.**16)"),
        ("torch.cuda.amp.GradScaler(1024, 2, 0.5, 100, on)", "torch.npu.amp.GradScaler(1024, 2, 0.5, 100, enabled=on)"),
        ("torch.cuda.amp.GradScaler(enabled=on)", "torch.npu.amp.GradScaler(enabled=on)"),
        ("torch.cuda.amp.GradScaler(**options)", "torch.npu.amp.GradScaler(**options)"),
        ("isinstance(s, torch.cuda.amp.GradScaler)", "isinstance(s, torch.npu.amp.GradScaler)"),
    ],
)
def test_before_2_3_the_scaler_is_that_of_torch_npu(before: str, after: str) -> None:
    rewritten(before, after, torch_version="2.2")


@pattern("P14", "P15", "P32")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.autocast('cuda')", "torch.autocast('npu')"),
        ("torch.autocast('cuda', torch.bfloat16)", "torch.autocast('npu', torch.bfloat16)"),
        ("torch.autocast(device_type='cuda', enabled=on)", "torch.autocast(device_type='npu', enabled=on)"),
        ('torch.amp.autocast("cuda", dtype=torch.float16)', 'torch.amp.autocast("npu", dtype=torch.float16)'),
        ('torch.amp.GradScaler("cuda", enabled=on)', 'torch.amp.GradScaler("npu", enabled=on)'),
        ('torch.amp.GradScaler(device="cuda")', 'torch.amp.GradScaler(device="npu")'),
        (
            "functools.partial(torch.autocast, device_type='cuda')",
            "functools.partial(torch.autocast, device_type='npu')",
        ),
    ],
)
def test_the_device_is_a_string(before: str, after: str) -> None:
    rewritten(before, after)


@pattern("P12", "P14")
def test_decorators_with_and_without_a_call() -> None:
    check_rewrite(
        """
        import torch
        from torch.cuda.amp import autocast

        @autocast()
        def a(x): ...

        @torch.cuda.amp.autocast(enabled=False)
        def b(x): ...

        @torch.autocast(device_type="cuda")
        def c(x): ...
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from torch_npu.npu.amp import autocast

        @autocast()
        def a(x): ...

        @torch.npu.amp.autocast(enabled=False)
        def b(x): ...

        @torch.autocast(device_type="npu")
        def c(x): ...
        """,
    )


@pattern("P16")
def test_custom_functions_of_autograd() -> None:
    check_rewrite(
        """
        import torch
        from torch.cuda.amp import custom_bwd, custom_fwd

        class Scale(torch.autograd.Function):
            @staticmethod
            @custom_fwd(cast_inputs=torch.float32)
            def forward(ctx, x): ...

            @staticmethod
            @custom_bwd
            def backward(ctx, g): ...

        class Shift(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
            def forward(ctx, x): ...

            @staticmethod
            @torch.amp.custom_bwd(device_type="cuda")
            def backward(ctx, g): ...
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from torch_npu.npu.amp import custom_bwd, custom_fwd

        class Scale(torch.autograd.Function):
            @staticmethod
            @custom_fwd(cast_inputs=torch.float32)
            def forward(ctx, x): ...

            @staticmethod
            @custom_bwd
            def backward(ctx, g): ...

        class Shift(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="npu", cast_inputs=torch.float32)
            def forward(ctx, x): ...

            @staticmethod
            @torch.amp.custom_bwd(device_type="npu")
            def backward(ctx, g): ...
        """,
    )


@pattern("P15", "P17")
@pytest.mark.parametrize(
    ("head", "before", "after"),
    [
        ("import torch", "torch.amp.GradScaler()", 'torch.amp.GradScaler("npu")'),
        ("import torch", "torch.GradScaler()", 'torch.GradScaler("npu")'),
        ("import torch", "torch.amp.GradScaler(enabled=on)", 'torch.amp.GradScaler("npu", enabled=on)'),
        ("import torch", "torch.amp.GradScaler(init_scale=8,)", 'torch.amp.GradScaler("npu", init_scale=8,)'),
        ("import torch.amp", "torch.amp.GradScaler()", 'torch.amp.GradScaler("npu")'),
        ("from torch.amp import GradScaler", "GradScaler(enabled=on)", 'GradScaler("npu", enabled=on)'),
        ("from torch.amp import GradScaler as GS", "GS()", 'GS("npu")'),
        ("from torch import amp", "amp.GradScaler()", 'amp.GradScaler("npu")'),
        (
            "import functools, torch",
            "functools.partial(torch.amp.GradScaler, enabled=on)",
            'functools.partial(torch.amp.GradScaler, enabled=on, device="npu")',
        ),
    ],
)
def test_a_scaler_without_a_device_would_switch_itself_off(head: str, before: str, after: str) -> None:
    rewritten(before, after, head, codes_applied=["NPU121", "NPU403"])


@pattern("P15")
@pytest.mark.parametrize(
    "line",
    [
        "torch.amp.GradScaler(device)",
        "torch.amp.GradScaler(device=device)",
        'torch.amp.GradScaler("cpu")',
        'torch.amp.GradScaler("npu", enabled=on)',
        "torch.amp.GradScaler(args.device, enabled=on)",
        "GradScaler()",
        "self.GradScaler()",
        "isinstance(scaler, torch.amp.GradScaler)",
        "scaler = scaler_class or torch.amp.GradScaler",
    ],
)
def test_scalers_that_stay(line: str) -> None:
    check_noop(f"import torch\n{line}\n")


def test_a_scaler_of_the_project_stays() -> None:
    check_noop("class GradScaler:\n    pass\n\nscaler = GradScaler()\n")


def test_a_scaler_in_a_branch_for_the_cpu_stays() -> None:
    check_noop(
        """
        import torch
        if device == "cpu":
            scaler = torch.amp.GradScaler(enabled=False)
        """
    )


@pattern("P15")
@pytest.mark.parametrize("line", ["torch.amp.GradScaler(*args)", "torch.amp.GradScaler(**options)"])
def test_stars_may_hold_the_device(line: str) -> None:
    check_noop(f"import torch\n{line}\n", open_codes=["NPU122"])


@pattern("P9")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.random.fork_rng()", 'torch.random.fork_rng(device_type="npu")'),
        ("torch.random.fork_rng(devices=[0])", 'torch.random.fork_rng(devices=[0], device_type="npu")'),
        ('torch.random.fork_rng(device_type="cuda")', 'torch.random.fork_rng(device_type="npu")'),
    ],
)
def test_fork_rng_forks_the_state_of_the_npu(before: str, after: str) -> None:
    rewritten(before, after)


@pattern("P9")
@pytest.mark.parametrize(
    "line", ["torch.random.fork_rng(device_type=kind)", "torch.random.fork_rng([0], True, a, b, kind)"]
)
def test_fork_rng_with_a_device(line: str) -> None:
    check_noop(f"import torch\n{line}\n")


@pattern("P14")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.is_autocast_enabled()", 'torch.is_autocast_enabled("npu")'),
        ('torch.is_autocast_enabled("cuda")', 'torch.is_autocast_enabled("npu")'),
        ("torch.set_autocast_enabled(True)", 'torch.set_autocast_enabled("npu", True)'),
        ("torch.get_autocast_gpu_dtype()", "torch.npu.get_autocast_dtype()"),
        ("torch.set_autocast_gpu_dtype(torch.bfloat16)", "torch.npu.set_autocast_dtype(torch.bfloat16)"),
        ('torch.get_autocast_dtype("cuda")', 'torch.get_autocast_dtype("npu")'),
    ],
)
def test_the_state_of_autocast(before: str, after: str) -> None:
    rewritten(before, after)


@pattern("P14")
@pytest.mark.parametrize(
    "line",
    [
        "torch.is_autocast_enabled(kind)",
        'torch.is_autocast_enabled("cpu")',
        "torch.set_autocast_enabled(kind, True)",
        "torch.is_autocast_cache_enabled()",
        "torch.is_autocast_enabled(*args)",
    ],
)
def test_states_that_name_their_device(line: str) -> None:
    check_noop(f"import torch\n{line}\n")


@pattern("P14")
def test_before_2_4_the_state_cannot_name_a_device() -> None:
    check_noop("import torch\non = torch.is_autocast_enabled()\n", torch_version="2.3", open_codes=["NPU123"])


@pattern("P13", "T15")
def test_a_subclass_of_the_scaler_names_what_would_shift() -> None:
    check_rewrite(
        """
        import torch

        class Scaler(torch.cuda.amp.GradScaler):
            def __init__(self, on):
                super().__init__(1024.0, 2.0, 0.5, 100, on)
        """,
        """
        import torch
        import torch_npu  # noqa: F401

        class Scaler(torch.npu.amp.GradScaler):
            def __init__(self, on):
                super().__init__(1024.0, 2.0, 0.5, 100, enabled=on)
        """,
    )


@pattern("P13", "T15")
def test_positional_arguments_in_a_star_are_for_a_person() -> None:
    source = "import torch\nscaler = torch.cuda.amp.GradScaler(*options)\n"
    check_noop(source, torch_version="2.2", open_codes=["NPU505"])


@pattern("P13")
def test_the_module_of_the_scaler() -> None:
    check_rewrite(
        "from torch.cuda.amp.grad_scaler import GradScaler, OptState\n",
        """
        import torch_npu  # noqa: F401
        from torch_npu.npu.amp.grad_scaler import GradScaler
        from torch.amp.grad_scaler import OptState
        """,
    )
    check_rewrite(
        "from torch.cuda.amp.grad_scaler import GradScaler, OptState\nscaler = GradScaler()\n",
        """
        from torch.amp.grad_scaler import GradScaler, OptState
        import torch_npu  # noqa: F401
        scaler = GradScaler("npu")
        """,
    )


TWO = """
import torch
try:
    from torch.amp import GradScaler
    OLD = False
except ImportError:
    from torch.cuda.amp import GradScaler
    OLD = True
"""


def of_two(before: str, after: str, **more: object) -> None:
    """Lines below both imports."""
    head = TWO.lstrip()
    moved = head.replace("torch.cuda.amp", "torch_npu.npu.amp").replace(
        "import torch\n", "import torch\nimport torch_npu  # noqa: F401\n"
    )
    check_rewrite(head + before, moved + after, **more)  # type: ignore[arg-type]


@pattern("P15")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'scaler = GradScaler("cuda") if not OLD else GradScaler()\n',
            'scaler = GradScaler("npu") if not OLD else GradScaler()\n',
        ),
        (
            "scaler = GradScaler(enabled=on) if OLD else GradScaler(device='cuda', enabled=on)\n",
            "scaler = GradScaler(enabled=on) if OLD else GradScaler(device='npu', enabled=on)\n",
        ),
        (
            "if OLD:\n    scaler = GradScaler()\nelse:\n    scaler = GradScaler('cuda')\n",
            "if OLD:\n    scaler = GradScaler()\nelse:\n    scaler = GradScaler('npu')\n",
        ),
        (
            "if OLD:\n    scaler = GradScaler()\nelif on:\n    scaler = torch.amp.GradScaler('cuda', enabled=on)\n",
            "if OLD:\n    scaler = GradScaler()\nelif on:\n    scaler = torch.amp.GradScaler('npu', enabled=on)\n",
        ),
        (
            "def make():\n    if not OLD:\n        return GradScaler('cuda')\n    return GradScaler()\n",
            "def make():\n    if not OLD:\n        return GradScaler('npu')\n    return GradScaler()\n",
        ),
        (
            "try:\n    scaler = GradScaler(device='cuda')\nexcept TypeError:\n    scaler = GradScaler()\n",
            "try:\n    scaler = GradScaler(device='npu')\nexcept TypeError:\n    scaler = GradScaler()\n",
        ),
    ],
)
def test_a_scaler_of_the_older_torch_takes_no_device(before: str, after: str) -> None:
    of_two(before, after)


@pattern("P15")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("scaler = GradScaler()\n", 'scaler = GradScaler("npu")\n'),
        (
            "scaler = GradScaler(enabled=on) if on else None\n",
            'scaler = GradScaler("npu", enabled=on) if on else None\n',
        ),
        (
            "a = GradScaler('cuda')\nb = GradScaler()\n",
            "a = GradScaler('npu')\nb = GradScaler(\"npu\")\n",
        ),
        (
            "if OLD:\n    scaler = GradScaler(8.0)\nelse:\n    scaler = GradScaler()\n",
            'if OLD:\n    scaler = GradScaler(8.0)\nelse:\n    scaler = GradScaler("npu")\n',
        ),
    ],
)
def test_a_call_that_serves_both_is_told_the_device(before: str, after: str) -> None:
    of_two(before, after)
    of_two(before.replace("'cuda'", "device"), before.replace("'cuda'", "device"), torch_version="2.2")


@pattern("P15")
def test_two_imports_of_which_a_condition_chooses() -> None:
    head = "import torch\nif OLD:\n    from torch.cuda.amp import GradScaler\n"
    head += "else:\n    from torch.amp import GradScaler\n"
    moved = head.replace("torch.cuda.amp", "torch_npu.npu.amp").replace(
        "torch\n", "torch\nimport torch_npu  # noqa: F401\n", 1
    )
    for line, left in (
        ("scaler = GradScaler(enabled=on)\n", ["NPU122"]),
        ("scaler = GradScaler() if OLD else GradScaler(device)\n", []),
        ("scaler = GradScaler(8.0)\n", []),
        ("def f(s: GradScaler): ...\n", []),
    ):
        check_rewrite(head + line, moved + line, open_codes=left)
    check_rewrite(head + "scaler = GradScaler()\n", moved + "scaler = GradScaler()\n", torch_version="2.2")


@pattern("P15")
def test_the_import_that_is_tried_first_decides() -> None:
    before = (
        "try:\n    from torch.cuda.amp import GradScaler\nexcept ImportError:\n    from torch.amp import GradScaler\n"
    )
    after = before.replace("torch.cuda.amp", "torch_npu.npu.amp")
    check_rewrite(f"{before}s = GradScaler()\n", f"import torch_npu  # noqa: F401\n{after}s = GradScaler()\n")
