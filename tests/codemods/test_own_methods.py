"""Classes of the project with a `cuda` or `is_cuda` of their own."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern


@pattern("T8")
def test_an_override_of_nn_module_gains_the_npu_path() -> None:
    check_rewrite(
        """
        from torch import nn
        class Net(nn.Module):
            def cuda(self, device=None):
                super().cuda(device)
                self.grid = self.grid.cuda(device)
                return self

            def forward(self, x):
                return x
        """,
        """
        from torch import nn
        import torch_npu  # noqa: F401
        class Net(nn.Module):
            def cuda(self, device=None):
                super().npu(device)
                self.grid = self.grid.npu(device)
                return self

            npu = cuda

            def forward(self, x):
                return x
        """,
        codes_applied=["NPU210", "NPU214", "NPU403"],
        open_codes=["NPU234"],  # a caller may give a device
    )


@pattern("T8")
def test_definition_and_uses_over_files() -> None:
    data = "class Batch:\n    def cuda(self):\n        self.x = self.x.cuda()\n        return self\n"
    use = "from data import Batch\nb = Batch().cuda()\n"
    assert b"    npu = cuda\n" in migrate(data, path="data.py", files={"train.py": use}).data
    assert b"b = Batch().npu()" in migrate(use, files={"data.py": data}).data
    child = "from data import Batch\nclass Pair(Batch):\n    def cuda(self):\n        return super().cuda()\n"
    written = migrate(child, path="pair.py", files={"data.py": data}).data
    assert b"return super().npu()" in written and b"    npu = cuda" in written


def test_a_property_is_cuda_gains_is_npu() -> None:
    check_rewrite(
        """
        class Batch:
            @property
            def is_cuda(self):
                return self.x.is_cuda
            @is_cuda.setter
            def is_cuda(self, value):
                pass
            y = 1
        """,
        """
        import torch_npu  # noqa: F401
        class Batch:
            @property
            def is_cuda(self):
                return self.x.is_npu
            @is_cuda.setter
            def is_cuda(self, value):
                pass

            is_npu = is_cuda
            y = 1
        """,
    )


def test_assigned_methods() -> None:
    result = migrate("class A:\n    cuda = lambda self: self.to('cuda')\n")
    assert result.data.decode().endswith("    cuda = lambda self: self.to('npu')\n\n    npu = cuda\n")


@pytest.mark.parametrize("value", ["partialmethod(move, 0)", "functools.partialmethod(move, 0)", "staticmethod(move)"])
def test_methods_made_of_other_functions(value: str) -> None:
    source = f"class A:\n    cuda = {value}\n"
    check_rewrite(source, f"{source}\n    npu = cuda\n", codes_applied=["NPU214"])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_indentation_and_newlines_are_kept(newline: str) -> None:
    source = newline.join(["class A:", "\tdef cuda(self):", "\t\treturn self"])
    result = migrate(source)
    assert result.data.decode() == newline.join([source, "", "\tnpu = cuda", ""])


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def cuda(self):\n        return self\n    npu = cuda\n",
        "class A:\n    def cuda(self):\n        return self\n    def npu(self):\n        return self\n",
        "class A:\n    cuda = True\n",
        "class A:\n    cuda: bool\n",
        "class A:\n    cuda = property(move)\n",
        "class A:\n    cuda = available()\n",
        "class A:\n    @property\n    def cuda(self):\n        return True\n",
        "class A:\n    @functools.cached_property\n    def cuda(self):\n        return True\n",
        "class A:\n    def to_cuda(self):\n        return self\n",
        "def cuda(x):\n    return x\n",
        "class A:\n    def f(self):\n        def cuda():\n            pass\n        return cuda\n",
    ],
)
def test_classes_that_need_nothing(source: str) -> None:
    check_noop(source)


def test_a_conditional_definition_is_reported() -> None:
    check_noop(
        """
        class A:
            if WINDOWS:
                def cuda(self):
                    return self
        """,
        open_codes=["NPU215"],
    )


def test_a_class_on_one_line_is_reported() -> None:
    check_noop("class A: cuda = lambda self: self\n", open_codes=["NPU215"])


def test_super_of_another_library_is_reported() -> None:
    check_noop(
        """
        from lib import Data
        class Batch(Data):
            def move(self):
                return super().cuda()
        """,
        open_codes=["NPU216"],
    )


def test_super_of_a_module_of_another_library() -> None:
    result = migrate(
        """
        import torch
        from lightning import LightningModule
        class Net(LightningModule):
            def move(self):
                return super().cuda()
        """
    )
    assert b"return super().npu()" in result.data


def test_switched_off() -> None:
    check_noop(
        """
        class A:
            def cuda(self):  # transplt: ignore[NPU214]
                return self
        """
    )


def test_a_class_without_torch_is_left_alone() -> None:
    check_noop(
        """
        class Versions:
            def cuda(self):
                return "11.8"

            def line(self):
                return f"on {self.cuda()}"

        print(Versions().cuda())
        found = Versions()
        print(found.cuda())
        """
    )


def test_such_a_class_of_another_file() -> None:
    check_noop(
        """
        import torch
        from versions import Versions

        print(Versions().cuda())
        """,
        files={"versions.py": "class Versions:\n    def cuda(self):\n        return '11.8'\n"},
    )


@pattern("P2")
@pytest.mark.parametrize("body", ["self.x = self.x.cuda()", "return self", "return self.to(device)"])
def test_a_class_that_moves_what_it_holds(body: str) -> None:
    result = migrate(f"class Batch:\n    def cuda(self):\n        {body}\n")
    assert b"npu = cuda" in result.data
