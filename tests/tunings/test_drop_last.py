"""The last batch of training is left out, that of a validation never."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_tuned, check_untuned

TUNE = "drop-last"
SCRIPT = """
from torch.utils.data import DataLoader, Subset
from project import dataset, model, optimizer, evaluate

loader = DataLoader(dataset, {arguments})
for epoch in range(3):
    for x, y in loader:
        loss = model(x.npu(), y)
        loss.backward()
        optimizer.step()
    {after}
"""


def script(arguments: str, after: str = "pass") -> str:
    return SCRIPT.format(arguments=arguments, after=after)


@pytest.mark.parametrize("arguments", ["batch_size=8", "8, True", "batch_size=8, batch_sampler=None, num_workers=2"])
def test_a_loader_that_trains(arguments: str) -> None:
    check_tuned(TUNE, script(arguments), script(f"{arguments}, drop_last=True"))


@pytest.mark.parametrize(
    "arguments",
    [
        "batch_size=8, drop_last=False",
        "batch_size=1",
        "shuffle=True",
        "batch_size=None",
        "batch_sampler=sampler",
        "8, True, None, sampler",
        "batch_size=8, **more",
        "8, True, None, None, 0, None, False, False",
    ],
)
def test_loaders_that_stay(arguments: str) -> None:
    check_untuned(TUNE, script(arguments))


def test_a_few_samples_to_try_something() -> None:
    check_untuned(TUNE, script("batch_size=8").replace("(dataset,", "(Subset(dataset, range(10)),"))


@pytest.mark.parametrize(
    "after",
    [
        "for x, y in loader:\n        print(model(x, y))",  # the same data is evaluated
        "scores = [model(x, y) for x, y in loader]",
        "evaluate(model, loader)",  # code that is not in sight
        "evaluate(model, data=loader)",
    ],
)
def test_what_else_reads_it_needs_all_of_the_data(after: str) -> None:
    check_untuned(TUNE, script("batch_size=8", after))


def test_a_validation_keeps_its_data() -> None:
    after = "for x, y in DataLoader(dataset, batch_size=8):\n        print(model(x, y))"
    check_tuned(TUNE, script("batch_size=8", after), script("batch_size=8, drop_last=True", after))


@pytest.mark.parametrize(
    "mean",
    [
        "loss / len(dataset)",
        "loss / len(loader.dataset)",
        "loss / len(loader.batch_sampler.sampler)",
        "loss / len(loader.sampler.data_source)",
    ],
)
def test_a_mean_over_the_dataset_is_left_to_a_person(mean: str) -> None:
    check_untuned(TUNE, script("batch_size=8", f"print({mean})"), open_codes=["NPU757"])


def test_the_number_of_batches_is_no_size_of_the_dataset() -> None:
    after = "print(loss / len(loader), loss / len(loader.batch_sampler), len(dataset))"
    check_tuned(TUNE, script("batch_size=8", after), script("batch_size=8, drop_last=True", after))


def test_a_function_makes_loaders_for_both() -> None:
    check_untuned(
        TUNE,
        """
        from torch.utils.data import DataLoader
        from project import model, train_set, valid_set

        def make(data):
            return DataLoader(data, batch_size=8)

        def run(loader, train):
            for x, y in loader:
                loss = model(x.npu(), y)
                if train:
                    loss.backward()

        train_loader, valid_loader = make(train_set), make(valid_set)
        for epoch in range(3):
            run(train_loader, True)
            run(valid_loader, False)
        """,
    )


def test_one_loop_trains_and_validates() -> None:
    check_untuned(
        TUNE,
        """
        from torch.utils.data import DataLoader
        from project import model, train_set, valid_set

        loaders = {"train": DataLoader(train_set, batch_size=8), "valid": DataLoader(valid_set, batch_size=8)}
        for phase in ["train", "valid"]:
            for x, y in loaders[phase]:
                loss = model(x.npu(), y)
                if phase == "train":
                    loss.backward()
        """,
    )


def test_a_loop_without_a_backward_pass() -> None:
    check_untuned(
        TUNE,
        """
        from torch.utils.data import DataLoader
        from project import dataset, model

        for x in DataLoader(dataset, batch_size=8):
            print(model(x))
        """,
    )


def test_the_loop_is_in_another_file() -> None:
    check_tuned(
        TUNE,
        """
        from torch.utils.data import DataLoader
        from engine import test, train
        from project import dataset, testset

        train_loader = DataLoader(dataset, batch_size=8)
        test_loader = DataLoader(testset, batch_size=8)
        train(train_loader)
        test(test_loader)
        """,
        """
        from torch.utils.data import DataLoader
        from engine import test, train
        from project import dataset, testset

        train_loader = DataLoader(dataset, batch_size=8, drop_last=True)
        test_loader = DataLoader(testset, batch_size=8)
        train(train_loader)
        test(test_loader)
        """,
        files={
            "engine.py": "def train(loader):\n    for x in loader:\n        x.npu().sum().backward()\n\n\n"
            "def test(loader):\n    for x in loader:\n        print(x)\n"
        },
    )


CALLED = """
from torch.utils.data import DataLoader
from project import dataset, model


class Trainer:
    def run(self, batch):
        model(batch.npu()).backward()


def work(runner):
    for batch in DataLoader(dataset, batch_size=8):
        {}.run(batch)


work(Trainer())
"""


def test_a_method_in_sight_trains() -> None:
    before = (
        CALLED.format("Trainer()")
        .replace("Trainer().run", "made.run")
        .replace("for batch", "made = Trainer()\n    for batch")
    )
    check_tuned(TUNE, before, before.replace("batch_size=8", "batch_size=8, drop_last=True"))


def test_the_name_of_a_method_is_not_enough() -> None:
    check_untuned(TUNE, CALLED.format("model"))
