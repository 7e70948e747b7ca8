"""OneCardDataParallel: what DataParallel does on its first card."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.torch
Pair = namedtuple("Pair", "first second")


def scattered(*inputs: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What goes to the one card, which is torch's device `meta` here."""
    import torch

    from transplt.helper.data_parallel import OneCardDataParallel

    self: Any = SimpleNamespace(src_device_obj=torch.device("meta"))
    (moved,), (named,) = OneCardDataParallel.scatter(self, inputs, kwargs, [0])
    return moved, named


def test_tensors_go_to_the_card_wherever_they_are() -> None:
    import torch

    x = torch.ones(2)
    (one, pair, many, table), named = scattered(x, Pair(x, 1), [x, (x, "a")], OrderedDict(a=x, b=None), mask=x)
    assert one.device.type == pair.first.device.type == many[0].device.type == many[1][0].device.type == "meta"
    assert table["a"].device.type == named["mask"].device.type == "meta"
    assert type(pair) is Pair and pair.second == 1 and many[1][1] == "a"
    assert type(table) is OrderedDict and table["b"] is None


def test_the_whole_batch_goes_to_one_card() -> None:
    import torch

    (batch,), named = scattered(torch.ones(7, 3))
    assert batch.shape == (7, 3) and named == {}


def test_what_is_no_tensor_stays() -> None:
    thing = object()
    assert scattered(thing, 1, "a", None) == ((thing, 1, "a", None), {})


def test_names_of_the_state_and_the_module_are_those_of_data_parallel() -> None:
    import torch

    from transplt.helper.data_parallel import OneCardDataParallel

    inner = torch.nn.Linear(2, 1)
    model = OneCardDataParallel(inner, device_ids=[0, 1])
    assert isinstance(model, torch.nn.DataParallel) and model.module is inner
    assert [*model.state_dict()] == ["module.weight", "module.bias"]
    assert model(torch.ones(3, 2)).shape == (3, 1)


@pytest.mark.parametrize(("npu", "given"), [(True, ([2], None)), (False, ([2, 3], 3))])
def test_cards_are_those_that_were_given_where_there_is_no_npu(
    npu: bool, given: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from transplt.helper.data_parallel import OneCardDataParallel

    got: list[Any] = []
    monkeypatch.setattr(torch.nn.DataParallel, "__init__", lambda self, *args: got.extend(args))
    monkeypatch.setattr(torch, "npu", SimpleNamespace(is_available=lambda: npu), raising=False)
    OneCardDataParallel(torch.nn.Linear(2, 1), [2, 3], 3)
    assert tuple(got[1:3]) == given


def test_a_batch_is_divided_among_several_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from transplt.helper.data_parallel import OneCardDataParallel

    monkeypatch.setattr(torch.nn.DataParallel, "scatter", lambda self, inputs, kwargs, ids: ("divided", ids))
    model: Any = OneCardDataParallel.__new__(OneCardDataParallel)
    assert model.scatter((torch.ones(4),), {}, [0, 1]) == ("divided", [0, 1])
