"""Which calls go back through a loss."""

from __future__ import annotations

import pytest

from transplt.program.files import File
from transplt.program.steps import backward_passes


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("loss.backward()\n", ["loss.backward()"]),
        ("for x in y:\n    (a + b).backward(retain_graph=True)\n    c.backward()\n",
         ["(a + b).backward(retain_graph=True)", "c.backward()"]),
        ("torch.autograd.backward([a, b])\n", ["torch.autograd.backward([a, b])"]),
        ("def backward(loss):\n    loss.backward()\n", ["loss.backward()"]),
        ("class T:\n    def backward_G(self):\n        self.loss.backward()\n", ["self.loss.backward()"]),
        # what a class hands on: the pass is where that is called
        ("class T:\n    def backward(self, loss):\n        loss.backward()\n", []),
        ("class F(torch.autograd.Function):\n    def jvp(ctx, x):\n        return x.backward()\n", []),
        ("class T(B):\n    def go(self):\n        super().backward()\n", []),
        ("def f(ctx, g):\n    return ctx.inner.backward(g)\n", []),
        ("run(loss.backward)\nbackward()\nloss.backward\n", []),
    ],
)  # fmt: skip
def test_backward_passes(source: str, expected: list[str]) -> None:
    file = File.of("m.py", source.encode())
    assert [file.source.slice(*file.source.extent(call)) for call in backward_passes(file)] == expected
