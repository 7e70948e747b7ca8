"""The scaler of CUDA becomes torch's own, told the NPU, where every use of its name in the file allows it."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern
from transplt.base.settings import Settings
from transplt.engine.engine import migrate_source


def rewritten(before: str, after: str, head: str = "import torch", **more: object) -> None:
    """Lines below the imports of torch."""
    check_rewrite(f"{head}\n{before}\n", f"{head}\nimport torch_npu  # noqa: F401\n{after}\n", **more)  # type: ignore[arg-type]


@pattern("P13")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler("npu")'),
        ("torch.cuda.amp.GradScaler(2.**16)", 'torch.amp.GradScaler("npu", 2.**16)'),
        ("torch.cuda.amp.GradScaler(1, 2, 0.5, 100, on)", 'torch.amp.GradScaler("npu", 1, 2, 0.5, 100, on)'),
        ("torch.cuda.amp.GradScaler(enabled=on)", 'torch.amp.GradScaler("npu", enabled=on)'),
        ("torch.cuda.amp.GradScaler(*a, **k)", 'torch.amp.GradScaler("npu", *a, **k)'),
        ("torch.cuda.amp.GradScaler(\n    init_scale=8,\n)", 'torch.amp.GradScaler(\n    "npu", init_scale=8,\n)'),
        ("torch.cuda.amp.grad_scaler.GradScaler()", 'torch.amp.GradScaler("npu")'),
        (
            "s = torch.cuda.amp.GradScaler() if on else None\nisinstance(s, (torch.cuda.amp.GradScaler, int))",
            's = torch.amp.GradScaler("npu") if on else None\nisinstance(s, (torch.amp.GradScaler, int))',
        ),
        (
            "def f(s: torch.cuda.amp.GradScaler | None = torch.cuda.amp.GradScaler()): ...",
            'def f(s: torch.amp.GradScaler | None = torch.amp.GradScaler("npu")): ...',
        ),
        (
            'model.cuda(); s = torch.cuda.amp.GradScaler(enabled=device == "cuda")\ndevice = torch.device("cuda")',
            'model.npu(); s = torch.amp.GradScaler("npu", enabled=device == "npu")\ndevice = torch.device("npu")',
        ),
    ],
)
def test_a_call_is_told_the_device(before: str, after: str) -> None:
    rewritten(before, after)


@pattern("P13")
@pytest.mark.parametrize(
    ("head", "before", "after"),
    [
        ("import torch as t", "t.cuda.amp.GradScaler()", 't.amp.GradScaler("npu")'),
        ("import torch\namp = torch.cuda.amp", "amp.GradScaler()", 'torch.amp.GradScaler("npu")'),
    ],
)
def test_torch_goes_by_its_name_in_the_file(head: str, before: str, after: str) -> None:
    assert after in migrate(f"{head}\n{before}\n").data.decode()


@pattern("P13", "P17")
def test_a_module_that_is_imported_stays_for_what_else_it_has() -> None:
    check_rewrite(
        """
        import torch
        from torch.cuda import amp
        scaler = amp.GradScaler(enabled=on)
        with amp.autocast(enabled=on): ...
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from torch.npu import amp
        scaler = torch.amp.GradScaler("npu", enabled=on)
        with amp.autocast(enabled=on): ...
        """,
    )


@pattern("P13", "P17")
@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("from torch.cuda.amp import GradScaler", "from torch.amp import GradScaler"),
        ("from torch.cuda.amp import GradScaler as S", "from torch.amp import GradScaler as S"),
        (
            "from torch.cuda.amp import autocast, GradScaler",
            "from torch_npu.npu.amp import autocast\nfrom torch.amp import GradScaler",
        ),
        (
            "from torch.cuda.amp import (\n    GradScaler as S,\n    autocast,\n)",
            "from torch.amp import GradScaler as S\nfrom torch_npu.npu.amp import autocast",
        ),
    ],
)
def test_an_import_moves_with_its_calls(line: str, new: str) -> None:
    name = "S" if " as S" in line else "GradScaler"
    rest = f"def f(s: {name}, t: '{name}' = None): return isinstance(s, {name})"
    check_rewrite(
        f"import torch\n{line}\nscaler = {name}(8.0, enabled=on)\n{rest}\n",
        f'import torch\nimport torch_npu  # noqa: F401\n{new}\nscaler = {name}("npu", 8.0, enabled=on)\n{rest}\n',
    )


@pattern("P13")
def test_an_import_in_a_function_moves_too() -> None:
    check_rewrite(
        """
        def make():
            from torch.cuda.amp import GradScaler
            return GradScaler()
        """,
        """
        import torch_npu  # noqa: F401
        def make():
            from torch.amp import GradScaler
            return GradScaler("npu")
        """,
    )


@pattern("P13")
def test_an_import_for_types_alone_needs_no_npu() -> None:
    before = "from torch.cuda.amp import GradScaler\ndef f(s: GradScaler) -> bool: return isinstance(s, GradScaler)\n"
    check_rewrite(before, before.replace("torch.cuda.amp", "torch.amp"))


@pattern("P13")
def test_a_class_for_a_torch_without_amp_is_never_made() -> None:
    check_rewrite(
        """
        try:
            from torch.cuda.amp import GradScaler
        except ImportError:
            class GradScaler:
                def __init__(self, enabled=False): ...
        scaler = GradScaler(enabled=on)
        """,
        """
        try:
            from torch.amp import GradScaler
        except ImportError:
            class GradScaler:
                def __init__(self, enabled=False): ...
        import torch_npu  # noqa: F401
        scaler = GradScaler("npu", enabled=on)
        """,
    )


USES = [
    "make = GradScaler",
    "make = functools.partial(GradScaler, enabled=on)",
    "class Scaler(GradScaler): ...",
    "type(s) is GradScaler",
    "step = GradScaler.step",
    "f(GradScaler)",
    "kinds = {'amp': GradScaler}",
]


@pattern("P13")
@pytest.mark.parametrize("use", USES)
def test_a_use_as_a_value_keeps_all_others_with_torch_npu(use: str) -> None:
    """The scaler of torch would switch itself off where somebody calls it without the device."""
    head = "import functools, torch\nfrom torch.cuda.amp import GradScaler\ns = GradScaler(1, 2, 0.5, 100, on)\n"
    named = "torch.cuda.amp.GradScaler"
    check_rewrite(
        head + use + "\n",
        "import functools, torch\nimport torch_npu  # noqa: F401\nfrom torch_npu.npu.amp import GradScaler\n"
        f"s = GradScaler(1, 2, 0.5, 100, enabled=on)\n{use}\n",
    )
    use = use.replace("GradScaler", named)
    rewritten(f"{use}\n{named}(8.0)", f"{use}\n{named}(8.0)".replace("cuda", "npu"), head="import functools, torch")


@pattern("P13")
def test_a_type_check_holds_for_scalers_of_both() -> None:
    """That of torch_npu is a subclass of torch's, which another file may make."""
    check_rewrite(
        """
        import torch
        from torch.cuda.amp import GradScaler
        kinds = [GradScaler]
        def f(s: GradScaler): return isinstance(s, GradScaler), isinstance(s, torch.cuda.amp.GradScaler)
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from torch_npu.npu.amp import GradScaler
        kinds = [GradScaler]
        def f(s: GradScaler): return isinstance(s, torch.amp.GradScaler), isinstance(s, torch.amp.GradScaler)
        """,
    )


STAYS = "import torch_npu  # noqa: F401\nfrom torch_npu.npu.amp import GradScaler\nscaler = GradScaler()\n"
CALLS = "from torch.cuda.amp import GradScaler\nscaler = GradScaler()\n"


@pattern("P13")
@pytest.mark.parametrize(
    "other",
    [
        "from train import GradScaler\nGradScaler()\n",
        "from train import GradScaler as S\nmake = S\n",
        "from train import *\nGradScaler()\n",
        "import train\ntrain.GradScaler(1, 2, 0.5, 100)\n",
    ],
)
def test_a_name_that_another_file_takes_from_here_stays(other: str) -> None:
    check_rewrite(CALLS, STAYS, files={"other.py": other})
    check_noop(other, path="other.py", files={"train.py": CALLS})


@pattern("P13")
def test_a_file_without_its_project_may_be_one_from_which_others_take_the_name() -> None:
    result = migrate_source(CALLS.encode(), "train.py", Settings())
    assert result.data.decode() == STAYS
    attribute = migrate_source(b"import torch\ns = torch.cuda.amp.GradScaler()\n", "train.py", Settings())
    assert b's = torch.amp.GradScaler("npu")\n' in attribute.data


@pattern("P13")
@pytest.mark.parametrize("path", ["train.py", "package/__init__.py"])
def test_a_name_that_is_offered_to_others_stays(path: str) -> None:
    listed = "" if path.endswith("__init__.py") else '__all__ = ["GradScaler"]\n'
    check_rewrite(CALLS + listed, STAYS + listed, path=path)


@pattern("P13")
def test_another_file_changes_nothing_here() -> None:
    files = {"other.py": "from torch.cuda.amp import GradScaler\nmake = GradScaler\n"}
    after = 'from torch.amp import GradScaler\nimport torch_npu  # noqa: F401\nscaler = GradScaler("npu")\n'
    check_rewrite(CALLS, after, files=files)


@pattern("P13")
@pytest.mark.parametrize(
    "line",
    [
        'torch.amp.GradScaler("npu")',
        "torch.npu.amp.GradScaler()",
        "isinstance(s, torch.amp.GradScaler)",
        "isinstance(s, torch.npu.amp.GradScaler)",
        "self.GradScaler()",
        "from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler as GradScaler; GradScaler()",
    ],
)
def test_other_scalers_stay(line: str) -> None:
    codes = ["NPU508"] if "Sharded" in line else []
    check_noop(f"import torch, torch_npu\n{line}\n", open_codes=codes)


@pattern("P13")
def test_a_comment_that_leaves_a_call_leaves_it_a_scaler_that_can_do_without() -> None:
    result = migrate("from torch.cuda.amp import GradScaler\na = GradScaler()  # transplt: ignore\nb = GradScaler()\n")
    assert b"from torch_npu.npu.amp import GradScaler\n" in result.data and b'"npu"' not in result.data


@pattern("P13")
def test_a_name_of_two_imports_stays() -> None:
    check_rewrite(
        """
        try:
            from torch.cuda.amp import GradScaler
        except ImportError:
            from fairscale.amp import GradScaler
        scaler = GradScaler()
        """,
        """
        import torch_npu  # noqa: F401
        try:
            from torch_npu.npu.amp import GradScaler
        except ImportError:
            from fairscale.amp import GradScaler
        scaler = GradScaler()
        """,
    )


def test_a_rule_of_the_user_comes_first() -> None:
    rules = '{"rules": {"FuncNameModifyRule": [{"old_name": "torch.cuda.amp.GradScaler", "new_name": "own.Scaler"}]}}'
    result = migrate("import torch\ns = torch.cuda.amp.GradScaler()\n", user_rules=(("mine.json", rules),))
    assert b"s = own.Scaler()\n" in result.data
