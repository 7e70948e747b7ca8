"""What a log says: the shapes of the loggers that people use, and what is no value."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest

from transplt.precision.diagnose.log_pieces import PIECE
from transplt.precision.loss.curve import Curves
from transplt.precision.loss.events import BrokenEvents, _masked_crc, scalars_in
from transplt.precision.loss.line import Words
from transplt.precision.loss.log import read_log, read_text

Row = tuple[str, float, float | None, float | None]


def rows(log: str | bytes, name: str | None = None) -> list[Row]:
    """(name, value, step, epoch) of a log's values."""
    curves = read_text(log.encode() if isinstance(log, str) else log, Words(name))
    return rows_of(curves)


def rows_of(curves: Curves) -> list[Row]:
    return [(c.name, *point) for named in curves.by_who.values() for c in named.values() for point in c.points()]


NO = None
SHAPES: dict[str, tuple[str, list[Row]]] = {
    "plain": ("loss: 0.123", [("loss", 0.123, NO, NO)]),
    "equals": ("[12:30:01] step=3, loss=1.5e-3, lr=0.1", [("loss", 0.0015, 3, NO)]),
    "is": ("epoch: 1 step: 10, loss is 2.30", [("loss", 2.3, 10, 1)]),
    "ImageNet example": (
        "Epoch: [0][ 10/391]\tTime  0.1 ( 0.2)\tLoss 6.9e+00 (7.0e+00)\tAcc@1   0.00 (  0.00)",
        [("Loss", 6.9, 10, 0), ("Loss (average)", 7.0, 10, 0)],
    ),
    "its validation": ("Test: [ 10/196]\tLoss 1.5 (1.6)", [("val Loss", 1.5, 10, NO), ("val Loss (average)", 1.6, 10, NO)]),
    "MNIST example": ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.290000", [("Loss", 2.29, 640, 1)]),
    "its test": ("Test set: Average loss: 0.0491, Accuracy: 9850/10000", [("val Average loss", 0.0491, NO, NO)]),
    "Trainer": ("{'loss': 0.69, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.5}", [("loss", 0.69, NO, 0.5)]),
    "Trainer, numbers as texts": ("{'loss': '2.331', 'grad_norm': '4.1', 'epoch': '0.01'}", [("loss", 2.331, NO, 0.01)]),
    "YOLOv5": ("     Epoch   gpu_mem       box       obj       cls    labels  img_size\n  0/299     3.3G    0.09    0.02     0.1   12  640: 100%|", []),
    "JSON line": ('{"step": 7, "epoch": 1, "loss": 0.5, "lr": 1}', [("loss", 0.5, 7, 1)]),
    "nested JSON": ('{"step": 7, "train": {"loss": 0.5}}', [("train/loss", 0.5, 7, NO)]),
    "NaN in JSON": ('{"iter": 7, "loss": Infinity}', [("loss", float("inf"), 7, NO)]),
    "Lightning": (
        "Epoch 0: 100%|████| 938/938 [00:10<00:00, 90.1it/s, v_num=0, train_loss=0.123]",
        [("train_loss", 0.123, 938, 0)],
    ),
    "a bar that is drawn again": (
        "  0%|  | 1/10 [00:00<?, ?it/s, loss=3]\r 10%|#  | 1/10 [00:01<00:09, 1.0it/s, loss=2]\r",
        [("loss", 2, 1, NO)],
    ),
    "Keras": ("Epoch 2/5\n1875/1875 [====] - 5s 3ms/step - loss: 0.29 - acc: 0.91", [("loss", 0.29, 1875, 2)]),
    "mmcv": ("Epoch [1][50/938]\tlr: 1.000e-02, eta: 0:01:02, loss: 0.5", [("loss", 0.5, 50, 1)]),
    "mmengine": (
        "2023/01/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][ 50/938]  lr: 1e-02  loss: 0.5  loss_cls: 0.2",
        [("loss", 0.5, 50, 1), ("loss_cls", 0.2, 50, 1)],
    ),
    "mmengine by iterations": ("x - mmengine - INFO - Iter(train) [ 100/20000]  loss: 0.5", [("loss", 0.5, 100, NO)]),
    "detectron2": (
        "[01/02 03:04:05 d2.utils.events]:  eta: 0:01:00  iter: 19  total_loss: 2.3  loss_cls: 1.3  time: 0.2",
        [("total_loss", 2.3, 19, NO), ("loss_cls", 1.3, 19, NO)],
    ),
    "Megatron": (
        " iteration       10/  500000 | consumed samples: 160 | elapsed time per iteration (ms): 123.4 | learning rate: "
        "1.5E-06 | global batch size: 16 | lm loss: 1.094E+01 | loss scale: 1.0 | grad norm: 2.3 |",
        [("lm loss", 10.94, 10, NO)],
    ),
    "nanoGPT": (
        "step 250: train loss 4.2, val loss 4.3\niter 250: loss 4.1, time 123.10ms, mfu 3.5%",
        [("train loss", 4.2, 250, NO), ("val loss", 4.3, 250, NO), ("loss", 4.1, 250, NO)],
    ),
    "fairseq": (
        "2020-01-01 | INFO | train_inner | epoch 001:    10 / 300 loss=5.3, ppl=39.4, num_updates=10",
        [("loss", 5.3, 10, 1)],
    ),
    "DCGAN": (
        "[0/25][50/1583] Loss_D: 0.5 Loss_G: 3.1 D(x): 0.9", [("Loss_D", 0.5, 0, NO), ("Loss_G", 3.1, 0, NO)]
    ),
    "torchtitan, coloured": ("\x1b[32mstep:  1  \x1b[33mloss:  8.1304  \x1b[0mmemory: 1GiB", [("loss", 8.1304, 1, NO)]),
    "DETR": ("Epoch: [3]  [  10/100]  eta: 0:01:00  lr: 0.0001  loss: 2.3 (2.5)",
             [("loss", 2.3, 10, 3), ("loss (average)", 2.5, 10, 3)]),
    "a tensor": ("loss: tensor(0.5, device='npu:0', grad_fn=<X>)", [("loss", 0.5, NO, NO)]),
    "CSV": ("epoch,step,train_loss,val_loss\n0,49,0.5,\n0,99,,0.4\n",
            [("train_loss", 0.5, 49, 0), ("val_loss", 0.4, 99, 0)]),
    "a table in the shape of Markdown": (
        "| Step | Training Loss |\n|------|------|\n| 10 | 0.5 |\n", [("Training Loss", 0.5, 10, NO)]
    ),
    "the table of a notebook": ("Step\tTraining Loss\n500\t0.6\n", [("Training Loss", 0.6, 500, NO)]),
    "YOLO": (
        "      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n"
        "        1/3      2.36G       1.5      3.25        24        640: 100%|####| 8/8 [00:01<00:00, 5.0it/s]\n",
        [("box_loss", 1.5, NO, 1), ("cls_loss", 3.25, NO, 1)],
    ),
    "fastai": ("epoch     train_loss  valid_loss  accuracy  time\n0         0.5  0.4  0.9  00:10\n",
               [("train_loss", 0.5, NO, 0), ("valid_loss", 0.4, NO, 0)]),
    "not a number": ("step 4 loss nan", [("loss", pytest.approx(float("nan"), nan_ok=True), 4, NO)]),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str) -> None:
    log, expected = SHAPES[shape]
    assert rows(log) == expected


@pytest.mark.parametrize(
    "line",
    ["loss scale: 1024.0", "loss took 3.5s", "closs-country 5km", "saving best loss model", "loss: 30%", "loss at 12:30",
     "lossless 1.0.2", "the loss, as printed, is fine", "loss=1/10", '{"loss": true}', '{"loss": "0.5"}', "x,loss\na,b"],
)  # fmt: skip
def test_no_value(line: str) -> None:
    assert rows(line) == []


def test_a_name_of_ones_own() -> None:
    assert rows("step 1 acc@1 12.5 loss 3", "acc@1") == [("acc@1", 12.5, 1, NO)]
    assert rows('{"step": 1, "eval": {"acc": 0.5}}', "eval/acc") == [("eval/acc", 0.5, 1, NO)]
    assert rows("step 1 val loss: 0.5 loss: 0.4", "val_loss") == [("val loss", 0.5, 1, NO)]


def test_ranks_are_kept_apart_and_the_whole_is_told() -> None:
    curves = read_text(b"[rank1]: iteration 1/ 500 | lm loss: 2\n[rank0]: iteration 1/ 500 | lm loss: 1\n", Words())
    assert {who: named["lm_loss"].values[0] for who, named in curves.by_who.items()} == {"rank 1": 2, "rank 0": 1}
    assert (curves.total_steps, curves.total_epochs) == (500, 0)
    assert read_text(b"Epoch 2/90 loss 1", Words()).total_epochs == 90


@pytest.mark.parametrize(
    "log",
    [b"\xff\xfeloss", b"loss " * 400_000, b"\0" * 10_000 + b"\nloss: 1", b"loss: " + b"9" * 100_000, b"{" * 50_000 + b"loss",
     b"\r" * 100_000, b"loss:" + b" " * 100_000 + b"1", b"|loss|x" * 50_000, b'{"loss": 1' + b"0" * 5_000 + b"}",
     b"epoch " + b"[" * 100_000, b"a." * 100_000 + b"loss"],
    ids=range(11),
)  # fmt: skip
def test_hostile_logs(log: bytes, tmp_path: Path) -> None:
    """Whatever it is, it ends soon, and at most with a sentence."""
    from transplt.base.errors import UsageError

    (tmp_path / "x").write_bytes(log)
    try:
        curves = read_log(str(tmp_path / "x"), Words())
    except UsageError as error:
        assert "UTF-16" in str(error)
    else:
        assert len(rows_of(curves)) <= 2


def test_a_line_at_the_end_of_a_piece_is_read_once() -> None:
    log = b"-" * (PIECE - 8) + b"\nstep 1 loss: 0.5\nstep 2 loss: 0.25"
    assert [row[1] for row in rows(log)] == [0.5, 0.25]


def test_state_of_a_trainer(tmp_path: Path) -> None:
    history = [{"loss": 0.5, "step": 10, "epoch": 0.1}, {"eval_loss": 0.4, "step": 10, "epoch": 0.1}]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history, "x": 1}, indent=2))
    curves = read_log(str(tmp_path / "trainer_state.json"), Words())
    assert rows_of(curves) == [("loss", 0.5, 10, 0.1), ("eval_loss", 0.4, 10, 0.1)]


def record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", _masked_crc(head)) + data + b"\0\0\0\0"


def field(number: int, data: bytes) -> bytes:
    assert len(data) < 128
    return bytes((number << 3 | 2, len(data))) + data


def event(step: int, tag: str, value: bytes) -> bytes:
    return b"\x09" + b"\0" * 8 + bytes((16, step)) + field(5, field(1, field(1, tag.encode()) + value))


def scalar(value: float) -> bytes:
    return b"\x15" + struct.pack("<f", value)


def tensor(value: float) -> bytes:
    """As TensorFlow 2 writes a scalar: a tensor of floats."""
    return field(8, b"\x08\x01" + field(2, b"") + field(4, struct.pack("<f", value)))


def test_event_files(tmp_path: Path) -> None:
    first = record(b"\x09" + b"\0" * 8 + field(3, b"brain.Event:2")) + record(event(1, "train/loss", scalar(0.5)))
    (tmp_path / "events.out.tfevents.1.host").write_bytes(first + record(event(1, "lr", scalar(0.1))))
    cut = record(event(3, "train/loss", scalar(1)))[:-9]
    (tmp_path / "events.out.tfevents.2.host").write_bytes(record(event(2, "train/loss", tensor(0.25))) + cut)
    assert rows_of(read_log(str(tmp_path), Words())) == [("train/loss", 0.5, 1, NO), ("train/loss", 0.25, 2, NO)]
    assert rows_of(read_log(str(tmp_path), Words("lr"))) == [("lr", pytest.approx(0.1), 1, NO)]


def test_event_files_that_are_broken(tmp_path: Path) -> None:
    good = record(event(1, "loss", scalar(0.5)))
    chance = random.Random(1)
    for _ in range(300):
        data = bytearray(good)
        data[chance.randrange(12, len(data))] = chance.randrange(256)
        (tmp_path / "e").write_bytes(data)
        try:
            assert len(list(scalars_in(tmp_path / "e"))) <= 1
        except BrokenEvents as error:
            assert "record 1 of this event file" in str(error)
