"""Which calls go back through a loss, and what trains."""

from __future__ import annotations

import pytest

from tests.test_program_values import program_of
from transplt.program.ranks import divided
from transplt.program.steps import backward_passes, runs_backward
from transplt.program.training import find_training
from transplt.syntax.files import File


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
    assert [file.source.slice(*file.source.extent(call)) for call in backward_passes(file.scan)] == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("loss.backward()", True),
        ("loss_scaler(loss, optimizer)", True),
        ("self.manual_backward(loss)", True),
        ("accelerator.backward(loss)", True),
        ("ctx.backward(g)", False),
        ("scaler.step(optimizer)", False),
        ("scaler(loss)", False),
        ("optimizer.step()", False),
    ],
)
def test_what_runs_a_backward_pass(source: str, expected: bool) -> None:
    file = File.of("m.py", f"{source}\n".encode())
    assert [runs_backward(file, call) for call in file.scan.calls] == [expected]


TRAINER = "class Trainer:\n    def go(self):\n        self.loss.backward()\n\n\n"


@pytest.mark.parametrize(
    ("source", "first"),
    [
        ("a = 1\nloss.backward()\n", 1),
        ("def f():\n    loss.backward()\n\n\nb = 1\nf()\n", 2),
        ("def f(self):\n    self.manual_backward(loss)\n\n\nf(x)\n", 1),
        (f"{TRAINER}t = Trainer()\nb = 1\nt.go()\n", 3),  # making it is not training
        (f"{TRAINER}t = other()\nif t:\n    t.go()\n", 2),
        ("def f():\n    pass\n\n\nf()\n", 2),
    ],
)
def test_the_first_statement_that_trains(source: str, first: int) -> None:
    program = program_of(source)
    file = program.files[0]
    assert find_training(program).first_in(file, file.scan.tree.body) == first


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("solver.step()", ["step"]),
        ("loss.backward()", ["backward"]),
        ("opt_policy.step()", []),  # a scheduler
        ("env.step(action)", []),
    ],
)
def test_what_only_some_ranks_do_in_training(step: str, found: list[str]) -> None:
    made = "solver = torch.optim.SGD(p, lr=0.1)\nopt_policy = torch.optim.lr_scheduler.StepLR(solver, 1)\n"
    program = program_of(f"import torch\n{made}if rank == 0:\n    {step}\n")
    assert [each.what for each in divided(program, training=True)] == found
