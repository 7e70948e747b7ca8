"""NPU752 and NPU753: lines below the imports of the main file, once for a program."""

from __future__ import annotations

import pytest

from tests.harness import migrate
from tests.tunings.tuned import check_tuned, check_untuned

BOTH = "compile-mode,internal-format"
MODE = b"torch.npu.set_compile_mode(jit_compile=False)\n"


def test_both_below_the_last_import() -> None:
    check_tuned(
        BOTH,
        '''
        """A script."""
        from __future__ import annotations
        import os
        import torch
        try:
            import tensorboard
        except ImportError:
            tensorboard = None
        from mine import Net


        def main():
            Net().cuda()


        if __name__ == "__main__":
            main()
        ''',
        '''
        """A script."""
        from __future__ import annotations
        import os
        import torch
        import torch_npu  # noqa: F401
        try:
            import tensorboard
        except ImportError:
            tensorboard = None
        from mine import Net

        torch.npu.set_compile_mode(jit_compile=False)
        torch.npu.config.allow_internal_format = False


        def main():
            Net().npu()


        if __name__ == "__main__":
            main()
        ''',
    )


def test_a_script_without_a_guard() -> None:
    check_tuned(
        "compile-mode",
        """
        import torch as t

        net = t.nn.Linear(2, 2).cuda()
        net(t.ones(2).cuda()).sum().backward()
        """,
        """
        import torch as t
        import torch_npu  # noqa: F401

        t.npu.set_compile_mode(jit_compile=False)

        net = t.nn.Linear(2, 2).npu()
        net(t.ones(2).npu()).sum().backward()
        """,
    )


def test_torch_under_both_of_its_names() -> None:
    check_tuned(
        "compile-mode",
        """
        import torch
        import torch as t

        t.ones(2, requires_grad=True).cuda().sum().backward()
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        import torch as t

        torch.npu.set_compile_mode(jit_compile=False)

        t.ones(2, requires_grad=True).npu().sum().backward()
        """,
    )


def test_a_script_that_trains_in_a_loop_or_a_try() -> None:
    check_tuned(
        "compile-mode",
        """
        import torch

        net = torch.nn.Linear(2, 2).cuda()


        def train():
            net(torch.ones(2).cuda()).sum().backward()


        try:
            for epoch in range(3):
                train()
        except KeyboardInterrupt:
            print("stopped")
        """,
        """
        import torch
        import torch_npu  # noqa: F401

        torch.npu.set_compile_mode(jit_compile=False)

        net = torch.nn.Linear(2, 2).npu()


        def train():
            net(torch.ones(2).npu()).sum().backward()


        try:
            for epoch in range(3):
                train()
        except KeyboardInterrupt:
            print("stopped")
        """,
    )


GUARDED = '\nif __name__ == "__main__":\n    main()\n'


@pytest.mark.parametrize("tune", ["compile-mode", "internal-format"])
@pytest.mark.parametrize(
    "source",
    [
        "import torch\n\ntorch.npu.set_compile_mode(jit_compile=True)\n"
        f"torch.npu.config.allow_internal_format = True\n{GUARDED}",
        f"import torch\n\ntorch.npu.set_option({{'jitCompile': 'x', 'ALLOW_INTERNAL_FORMAT': 'y'}})\n{GUARDED}",
        f"import torch\n{GUARDED}",  # nothing is on a card
        f"import numpy\n\nwhere = 'npu'\n{GUARDED}",  # no torch
        "import torch\n\n\nclass Net(torch.nn.Module):\n    where = 'npu'\n",  # nothing runs
        "import torch; where = 'npu'\n",
        "import torch\n\n\ndef look():\n    return 'npu'\n\n\ntry:\n    look()\nexcept OSError:\n    pass\n",
    ],
)
def test_nothing_to_do(tune: str, source: str) -> None:
    check_untuned(tune, source)


@pytest.mark.parametrize("path", ["test_train.py", "tests/train.py", "setup.py", "pkg/__init__.py"])
def test_files_that_are_no_programs(path: str) -> None:
    check_untuned("compile-mode", f"import torch\n\nwhere = 'npu'\n{GUARDED}", path=path)


def test_a_module_with_a_self_test_is_no_main_file() -> None:
    source = f"import torch\n\n\ndef main():\n    torch.ones(2).to('npu')\n{GUARDED}"
    files = {"train.py": "from model import main\n\nmain()\n"}
    assert MODE not in migrate(source, path="model.py", files=files, tune=(("compile-mode", ""),)).data
    assert MODE in migrate(source, path="model.py", tune=(("compile-mode", ""),)).data


def test_once_for_a_program() -> None:
    source = f"import torch\nimport model\n\nwhere = 'npu'\n{GUARDED}"
    files = {"model.py": "import torch\n\ntorch.npu.set_compile_mode(jit_compile=False)\nx = torch.optim\n"}
    assert MODE not in migrate(source, files=files, tune=(("compile-mode", ""),)).data
