"""What frameworks take over, by the names that say so."""

from __future__ import annotations

import pytest

from transplt.program.frameworks import OPTIMIZER, PRECISION, PROCESSES, taken_over
from transplt.rules.tables import read_table

PARTS = (PROCESSES, PRECISION, OPTIMIZER)


@pytest.mark.parametrize(
    ("name", "called", "parts"),
    [
        ("accelerate.Accelerator", "accelerate", PARTS),
        ("accelerate", "accelerate", (OPTIMIZER,)),
        ("accelerate.utils.set_seed", "accelerate", (OPTIMIZER,)),
        ("transformers.Seq2SeqTrainer", "the Trainer of transformers", PARTS),
        ("transformers.trainer.Trainer", "the Trainer of transformers", PARTS),
        ("transformers.TrainingArguments", "the Trainer of transformers", (PRECISION,)),
        ("transformers.AutoTokenizer", "", ()),
        ("transformers.TrainerCallback", "", ()),
        ("transformers", "", ()),
        ("lightning.pytorch.Trainer", "Lightning", PARTS),
        ("mine.LightningModule", "Lightning", (PRECISION,)),
        ("mine.Trainer", "", ()),
        ("acceleration.Accelerator", "", ()),
        ("torch.autocast", "torch's autocast", (PRECISION,)),
        ("torch.cuda.amp.autocast", "torch's autocast", (PRECISION,)),
        ("torch.is_autocast", "", ()),
        ("torch.nn.parallel.DistributedDataParallel", "DistributedDataParallel", (PROCESSES,)),
        ("torch.nn.DataParallel", "", ()),
        ("torch.multiprocessing.spawn", "torch.multiprocessing.spawn", (PROCESSES,)),
        ("", "", ()),
    ],
)
def test_what_is_taken_over(name: str, called: str, parts: tuple[str, ...]) -> None:
    found = {part: framework.called for part in PARTS if (framework := taken_over(part, name)) is not None}
    assert found == dict.fromkeys(parts, called)


def test_only_what_starts_processes_spawns() -> None:
    spawned = taken_over(PROCESSES, "torch.multiprocessing.spawn")
    launched = taken_over(PROCESSES, "accelerate.Accelerator")
    assert spawned is not None and launched is not None
    assert spawned.spawns and not launched.spawns


def test_every_row_names_its_source_and_takes_something_over() -> None:
    for row in read_table("support/frameworks.json")["frameworks"]:
        assert row["source"] and any(row.get(part) for part in PARTS)
        assert set(row) <= {"called", "source", "spawns", "precision_set_by", *PARTS}
