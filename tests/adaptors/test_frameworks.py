"""Options of trainers with the value that computes the same on an NPU."""

from __future__ import annotations

from tests.adaptors.adapted import check_adapted, check_not_adapted, offered

HEAD = "from transformers import TrainingArguments\n\n"


def test_the_optimizer_of_apex() -> None:
    check_adapted(
        "frameworks",
        f"{HEAD}arguments = TrainingArguments('out', optim='adamw_apex_fused')\n",
        f"{HEAD}arguments = TrainingArguments('out', optim='adamw_torch')\n",
    )


def test_it_is_offered() -> None:
    source = f'{HEAD}arguments = TrainingArguments("out", optim="adamw_apex_fused")\n'
    assert offered(source) == [("NPU144", 3, "frameworks")]


def test_other_optimizers_stay() -> None:
    check_not_adapted("frameworks", f'{HEAD}arguments = TrainingArguments("out", optim="adamw_torch")\n')
    check_not_adapted(
        "frameworks", f'{HEAD}arguments = TrainingArguments("out", optim="adamw_bnb_8bit")\n', open_codes=["NPU144"]
    )
    check_not_adapted(
        "frameworks",
        f'{HEAD}arguments = TrainingArguments("out", optim="adamw_apex_fused")  # transplt: ignore[NPU879]\n',
        open_codes=["NPU144"],
    )
