"""Loaders that pin memory, and workers that stay."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_tuned, check_untuned

TUNE = "data-loader"

#: A script silently of CUDA: nothing else is edited in it. The arguments of the loader go in.
SCRIPT = """
import torch
from torch.utils.data import DataLoader
from project import args, dataset, device, model, optimizer{more}

{above}loader = DataLoader(dataset{arguments})
for epoch in range(3):
    for x, y in loader:
        {body}
        loss = model(x, y)
        loss.backward()
        optimizer.step()
"""
COPIES = "x, y = x.to(device), y.to(device)"


def script(arguments: str, body: str = COPIES, above: str = "", more: str = "") -> str:
    return SCRIPT.format(arguments=arguments, body=body, above=above, more=more)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (", batch_size=8", ", batch_size=8, pin_memory=True"),
        (", 8, True", ", 8, True, pin_memory=True"),
        (", num_workers=2", ", num_workers=2, pin_memory=True, persistent_workers=True"),
        (
            ", num_workers=args.workers",
            ", num_workers=args.workers, pin_memory=True, persistent_workers=args.workers > 0",
        ),
        (", pin_memory=False, num_workers=2", ", pin_memory=False, num_workers=2, persistent_workers=True"),
        (", pin_memory=args.pin, num_workers=2", ", pin_memory=args.pin, num_workers=2, persistent_workers=True"),
    ],
)
def test_arguments(before: str, after: str) -> None:
    check_tuned(TUNE, script(before), script(after))


def test_the_device_is_named_where_torch_heeds_it() -> None:
    check_tuned(
        TUNE,
        script(", batch_size=8"),
        script(', batch_size=8, pin_memory=True, pin_memory_device="npu"'),
        torch_version="2.6",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "(\n    dataset,\n    num_workers=4,\n)",
            "(\n    dataset,\n    num_workers=4,\n    pin_memory=True,\n    persistent_workers=True,\n)",
        ),
        (
            "(dataset, batch_size=8,\n                    num_workers=4)",
            "(dataset, batch_size=8,\n                    num_workers=4,\n"
            "                    pin_memory=True,\n                    persistent_workers=True)",
        ),
        (
            "(\n    dataset, batch_size=8,\n    shuffle=True, num_workers=4)",
            "(\n    dataset, batch_size=8,\n    shuffle=True, num_workers=4, pin_memory=True, persistent_workers=True)",
        ),
        (
            "(dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.num_workers, drop_last=True)",
            "(dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.num_workers, drop_last=True,\n"
            "                    pin_memory=True, persistent_workers=args.num_workers > 0)",
        ),
    ],
)
def test_the_layout_of_the_call_stays(before: str, after: str) -> None:
    text = script("").replace("(dataset)", "{}")
    check_tuned(TUNE, text.format(before), text.format(after))


@pytest.mark.parametrize(
    "body",
    [
        "x = x.to(device)",
        "x = x.to('cuda')".replace("cuda", "npu"),
        "x = x.to(torch.device('npu'))",
        "x = x.to(torch.device(type='npu'))",
        "x = x.to(args.device)",
        "x = x.npu()",
        "batch = [x.to(device), y.to(device)]",
    ],
)
def test_copies_that_are_seen(body: str) -> None:
    more = {"open_codes": ()}
    check_tuned(TUNE, script("", body), script(", pin_memory=True", body), **more)


@pytest.mark.parametrize(
    "body",
    [
        "pass",  # nothing is copied
        "x = x.to(torch.float16)",  # that is no device
        "x = x.to('cpu')",
        "x = x.to(torch.device('cpu'))",
        "x = model.prepare(x)",
        "x = model(x); x = x.to(device)",  # no batch any more
        "f = lambda: x.to(device)",
    ],
)
def test_nothing_is_pinned_that_is_not_copied(body: str) -> None:
    check_untuned(TUNE, script("", body))


@pytest.mark.parametrize(
    ("arguments", "above"),
    [
        (", pin_memory=False", ""),
        (", pin_memory=args.pin", ""),
        (", **args.loader", ""),
        (", collate_fn=lambda items: torch.stack(items).to(device)", ""),
        ("", "dataset = torch.utils.data.TensorDataset(torch.ones(8, device=device))\n"),
        ("", "images = torch.ones(8).to(device)\ndataset = torch.utils.data.TensorDataset(images)\n"),
        ("", "class Data:\n    def __getitem__(self, i):\n        return self.x[i].to(device)\n\n\ndataset = Data()\n"),
    ],
)
def test_loaders_that_are_not_pinned(arguments: str, above: str) -> None:
    check_untuned(TUNE, script(arguments, above=above))


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        ", num_workers=0",
        ", num_workers=args.cards * 4",
        ", num_workers=2, persistent_workers=False",
        ", **args.loader",
    ],
)
def test_workers_that_may_not_be_there(arguments: str) -> None:
    check_untuned(TUNE, script(arguments, body="pass"))


ONCE = """
from torch.utils.data import DataLoader
from project import dataset, step

loader = DataLoader(dataset, num_workers=2)
{}
"""


@pytest.mark.parametrize(
    "rest",
    [
        "for x in loader:\n    step(x)",  # read once
        "for epoch in range(3):\n    x = next(iter(loader))\n    step(x)",
        "for epoch in range(3):\n    for x in loader:\n        step(x, next(iter(loader)))",
        "for epoch in range(3):\n    for x in loader:\n        for y in loader:\n            step(x, y)",
        "for epoch in range(3):\n    for x, y in zip(loader, loader):\n        step(x, y)",
        "def check():\n    for y in loader:\n        step(y)\n\n\n"
        "for epoch in range(3):\n    for x in loader:\n        check()",
        "for epoch in range(3):\n    step(loader)\n    for x in loader:\n        step(x)",
        "for epoch in range(3):\n    dataset.set_epoch(epoch)\n    for x in loader:\n        step(x)",
        "for epoch in range(3):\n    dataset.size = epoch\n    for x in loader:\n        step(x)",
        "for epoch in range(3):\n    loader.dataset.shuffle()\n    for x in loader:\n        step(x)",
        "for epoch in range(3):\n    for x in loader:\n        step(x)\n    step(dataset)",
        "for epoch in range(3):\n    for x in DataLoader(dataset, num_workers=2):\n        step(x)",
    ],
)
def test_workers_do_not_stay(rest: str) -> None:
    check_untuned(TUNE, ONCE.format(rest))


@pytest.mark.parametrize(
    "rest",
    [
        "for epoch in range(3):\n    for x in loader:\n        step(x)\n    print(len(loader), len(dataset))",
        "for n in range(3):\n    loader.sampler.set_epoch(n)\n    for i, x in enumerate(loader):\n        step(x)",
        "def train(data):\n    for x in data:\n        step(x)\n\n\nfor epoch in range(3):\n    train(loader)",
        "while True:\n    for x in loader:\n        if step(x):\n            break",
    ],
)
def test_workers_stay(rest: str) -> None:
    before = ONCE.format(rest)
    check_tuned(TUNE, before, before.replace("num_workers=2", "num_workers=2, persistent_workers=True"))


def test_the_loop_is_in_another_file() -> None:
    check_tuned(
        TUNE,
        """
        from torch.utils.data import DataLoader
        from engine import train
        from project import dataset

        loader = DataLoader(dataset, num_workers=2)
        for epoch in range(3):
            train(loader)
        """,
        """
        from torch.utils.data import DataLoader
        from engine import train
        from project import dataset

        loader = DataLoader(dataset, num_workers=2, pin_memory=True, persistent_workers=True)
        for epoch in range(3):
            train(loader)
        """,
        files={"engine.py": "def train(loader):\n    for x in loader:\n        x.to('npu').sum().backward()\n"},
    )


def test_loaders_of_others_stay() -> None:
    check_untuned(
        TUNE,
        """
        from torch_geometric.loader import DataLoader
        from project import dataset, device, step

        for epoch in range(3):
            for x in DataLoader(dataset, num_workers=2):
                step(x.to(device))
        """,
    )


FUNCTION = """
from torch.utils.data import DataLoader
from project import data, prepare, step

def make():
    loader = DataLoader(data, num_workers=2)
    return loader, len(loader)

{}
for epoch in range(3):
    for x in train_loader:
        step(x)
"""


def test_a_loader_that_a_function_returns() -> None:
    before = FUNCTION.format("train_loader, size = make()")
    check_tuned(TUNE, before, before.replace("num_workers=2", "num_workers=2, persistent_workers=True"))


@pytest.mark.parametrize(
    "rest",
    [
        "train_loader, size = make()\ntrain_loader = prepare(train_loader)",
        "made = make()\ntrain_loader = made[0]",
        "loaders = {}\ntrain_loader, size = make()\nloaders['train'] = train_loader",
    ],
)
def test_a_loader_that_goes_out_of_sight(rest: str) -> None:
    check_untuned(TUNE, FUNCTION.format(rest))


REMEMBERS = """
from torch.utils.data import DataLoader, Dataset
from project import step


class Data(Dataset):
    def __init__(self):
        self.epoch = 0

    def {}(self, index=0):
        {}


dataset = Data()
loader = DataLoader(dataset, num_workers=2)
for epoch in range(3):
    for x in loader:
        step(x)
"""


@pytest.mark.parametrize("method", ["__getitem__", "__iter__"])
def test_a_dataset_that_remembers_what_a_fresh_worker_forgets(method: str) -> None:
    check_untuned(TUNE, REMEMBERS.format(method, "self.epoch += 1"))


def test_a_dataset_that_remembers_nothing() -> None:
    before = REMEMBERS.format("__getitem__", "return self.epoch + index")
    check_tuned(TUNE, before, before.replace("num_workers=2", "num_workers=2, persistent_workers=True"))
