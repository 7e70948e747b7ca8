"""`.data[0]` of tensors that a reduction made."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite

_LIST = "losses = [torch.mean(each) for each in model(data)]"


@pytest.mark.parametrize(
    "lines",
    [
        f"{_LIST}\ntotal = losses[0].data[0]",
        f"{_LIST}\nfirst = losses[0]\ntotal = first.data[0]",
        f"{_LIST}\nvalues = [v.data[0] for v in losses]",
        f"{_LIST}\nfor v in losses:\n    print(v.data[0])",
        "total = torch.sum(x).data[0]",
        "m = x.mean()\nprint(m.data[0])",
    ],
)
def test_a_reduction_without_a_dimension(lines: str) -> None:
    source = f"import torch\n{lines}\n"
    check_rewrite(source, source.replace(".data[0]", ".item()"))
    check_rewrite(source, source.replace(".data[0]", ".item()"), style="portable")


@pytest.mark.parametrize(
    "lines",
    [
        "loss = criterion(net(x), y)\nloss.backward()\ntotal += loss.data[0]",
        "def step(self):\n    self.g_loss.backward(retain_graph=True)\n    print(self.g_loss.data[0])",
    ],
)
def test_one_element_with_or_without_a_dimension(lines: str) -> None:
    """A list of such may be stacked, where the loss has a dimension: that edit is asked for."""
    source = f"import torch\n{lines}\n"
    check_noop(source, open_codes=["NPU293"])
    check_rewrite(source, source.replace(".data[0]", ".item()"), unsafe_fixes=True)


@pytest.mark.parametrize(
    "lines",
    [
        "total += loss.data[0]",
        "print(self.g_loss.data[0])",
        "loss.backward(torch.ones(3))\ntotal = loss.data[0]",
        "def f(loss):\n    loss.backward()\ndef g(loss):\n    return loss.data[0]",
    ],
)
def test_a_loss_by_its_name_is_reported(lines: str) -> None:
    check_noop(f"import torch\n{lines}\n", open_codes=["NPU293"])


@pytest.mark.parametrize(
    "lines",
    [
        "losses = [torch.mean(each, 1) for each in x]\ntotal = losses[0].data[0]",
        "losses = [torch.mean(each, dim=0) for each in x]\ntotal = losses[0].data[0]",
        "losses = model(x)\ntotal = losses[0].data[0]\nvalues = [v.data[0] for v in losses]",
        f"{_LIST}\nlosses = stack(losses)\ntotal = losses[0].data[0]",
        f"{_LIST}\ntotal = losses[0].data[1]",
        "m = x.mean(1)\nprint(m.data[0])",
    ],
)
def test_what_may_have_one(lines: str) -> None:
    check_noop(f"import torch\n{lines}\n")
