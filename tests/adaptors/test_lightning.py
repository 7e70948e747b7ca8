"""The adaptor of Lightning: who makes a trainer makes it through npu_port."""

from __future__ import annotations

import pytest

from tests.adaptors.adapted import check_adapted, check_not_adapted, offered
from tests.harness import codes, migrate


def test_a_trainer() -> None:
    check_adapted(
        "lightning",
        """
        import lightning as L

        trainer = L.Trainer(accelerator="gpu", devices=2)
        trainer.fit(model)
        """,
        """
        import lightning as L

        import npu_port

        trainer = npu_port.lightning_on_npu(L.Trainer, accelerator="gpu", devices=2)
        trainer.fit(model)
        """,
    )


def test_lines_and_comments_of_the_call_stay() -> None:
    check_adapted(
        "lightning",
        """
        import torch
        from pytorch_lightning import Trainer
        from pytorch_lightning.strategies import DDPStrategy


        def main(options):
            trainer: Trainer = Trainer(
                accelerator="cuda",  # the card
                devices=torch.cuda.device_count(),
                strategy=DDPStrategy(find_unused_parameters=False),
                **options,
            )
            return trainer
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from pytorch_lightning import Trainer
        from pytorch_lightning.strategies import DDPStrategy

        import npu_port


        def main(options):
            trainer: Trainer = npu_port.lightning_on_npu(
                Trainer,
                accelerator="cuda",  # the card
                devices=torch.npu.device_count(),
                strategy=DDPStrategy(find_unused_parameters=False),
                **options,
            )
            return trainer
        """,
    )


@pytest.mark.parametrize(
    ("imported", "call", "after"),
    [
        ("import pytorch_lightning as pl", "pl.Trainer(max_epochs=3)", "(pl.Trainer, max_epochs=3)"),
        ("import pytorch_lightning as pl", "pl.Trainer()", "(pl.Trainer)"),
        ("import pytorch_lightning as pl", "pl.Trainer(gpus=args.gpus)", "(pl.Trainer, gpus=args.gpus)"),
        ("import pytorch_lightning as pl", "pl.Trainer(accelerator=args.a)", "(pl.Trainer, accelerator=args.a)"),
        (
            "import pytorch_lightning as pl",
            "pl.Trainer.from_argparse_args(args, logger=log)",
            "(pl.Trainer.from_argparse_args, args, logger=log)",
        ),
        ("from lightning.fabric import Fabric", 'Fabric("cuda", devices=1)', '(Fabric, "cuda", devices=1)'),
        ("import lightning as L", "L.Fabric(devices=2)", "(L.Fabric, devices=2)"),
        ("from lightning.pytorch.cli import LightningCLI", "LightningCLI(Model, Data)", "(LightningCLI, Model, Data)"),
    ],
)
def test_forms(imported: str, call: str, after: str) -> None:
    check_adapted(
        "lightning",
        f"{imported}\n\nmade = {call}\n",
        f"{imported}\n\nimport npu_port\n\nmade = npu_port.lightning_on_npu{after}\n",
    )


def test_classes_that_derive_from_a_trainer() -> None:
    check_adapted(
        "lightning",
        """
        import pytorch_lightning as pl


        class Mine(pl.Trainer):
            def __init__(self, epochs):
                super().__init__(max_epochs=epochs, accelerator="gpu")


        class Plain(pl.Trainer):
            pass


        print(Mine(3), Plain(accelerator="gpu"))
        """,
        """
        import pytorch_lightning as pl

        import npu_port


        class Mine(pl.Trainer):
            def __init__(self, epochs):
                npu_port.lightning_on_npu(super().__init__, max_epochs=epochs, accelerator="gpu")


        class Plain(pl.Trainer):
            pass


        print(Mine(3), npu_port.lightning_on_npu(Plain, accelerator="gpu"))
        """,
    )


def test_options_of_a_dict_are_taken_care_of() -> None:
    check_adapted(
        "lightning",
        """
        import pytorch_lightning as pl

        options = {"max_epochs": 3, "accelerator": "gpu"}
        options["accelerator"] = "auto"
        options.update(dict(accelerator="gpu"))
        trainer = pl.Trainer(**options)
        """,
        """
        import pytorch_lightning as pl

        import npu_port

        options = {"max_epochs": 3, "accelerator": "gpu"}
        options["accelerator"] = "auto"
        options.update(dict(accelerator="gpu"))
        trainer = npu_port.lightning_on_npu(pl.Trainer, **options)
        """,
    )


def test_the_gate_of_an_accelerator_asks_for_the_npu() -> None:
    check_adapted(
        "lightning",
        """
        import lightning as L
        import torch

        if torch.cuda.is_available():
            accelerator = "cuda"
        else:
            accelerator = "cpu"
        fabric = L.Fabric(accelerator=accelerator, devices=1)
        """,
        """
        import lightning as L
        import torch
        import torch_npu  # noqa: F401

        import npu_port

        if torch.npu.is_available():
            accelerator = "cuda"
        else:
            accelerator = "cpu"
        fabric = npu_port.lightning_on_npu(L.Fabric, accelerator=accelerator, devices=1)
        """,
    )


def test_an_accelerator_that_is_a_device_too_keeps_its_finding() -> None:
    source = """
        import lightning as L
        from mine import build

        kind = "cuda"
        fabric = L.Fabric(accelerator=kind, devices=1)
        model = build().to(kind)
    """
    plain = migrate(source, helper_file=True)
    adapted = migrate(source, helper_file=True, adapt=(("lightning", ""),))
    assert adapted.data == plain.data and "NPU145" in codes(adapted, applied=False)


def test_a_strategy_for_cuda_alone_is_still_told() -> None:
    check_adapted(
        "lightning",
        """
        import lightning as L
        from lightning.fabric.strategies import FSDPStrategy

        strategy = FSDPStrategy() if cards > 1 else "auto"
        fabric = L.Fabric(devices=cards, strategy=strategy)
        """,
        """
        import lightning as L
        from lightning.fabric.strategies import FSDPStrategy

        import npu_port

        strategy = FSDPStrategy() if cards > 1 else "auto"
        fabric = npu_port.lightning_on_npu(L.Fabric, devices=cards, strategy=strategy)
        """,
        open_codes=["NPU145"],
    )


def test_it_is_offered() -> None:
    assert offered("import lightning as L\n\ntrainer = L.Trainer()\n") == [("NPU145", 3, "lightning")]
    assert offered('import lightning as L\n\ntrainer = L.Trainer(accelerator="gpu", strategy="fsdp")\n') == []


@pytest.mark.parametrize(
    "call",
    ['Trainer(accelerator="cpu")', 'Trainer(accelerator="tpu", devices=8)', "Trainer(accelerator=MyAccelerator())"],
)
def test_trainers_for_something_else_stay(call: str) -> None:
    check_not_adapted("lightning", f"from pytorch_lightning import Trainer\n\ntrainer = {call}\n")


@pytest.mark.parametrize(
    "options",
    [
        'accelerator="gpu", strategy="deepspeed_stage_2"',
        'accelerator="gpu", strategy=FSDPStrategy()',
        'accelerator="gpu", strategy="dp"',
        'accelerator="gpu", amp_backend="apex"',
        'accelerator="gpu", precision="transformer-engine"',
        'accelerator="gpu")  # transplt: ignore[NPU877',
    ],
)
def test_what_it_cannot_bring_there_keeps_its_finding(options: str) -> None:
    end = "]" if "ignore" in options else ")"
    check_not_adapted(
        "lightning",
        f"import pytorch_lightning as pl\nfrom mine import FSDPStrategy\n\ntrainer = pl.Trainer({options}{end}\n",
        open_codes=["NPU145"],
    )


def test_lightning_before_1_8_stays() -> None:
    source = "from pytorch_lightning import Trainer\n\ntrainer = Trainer(gpus=1)\n"
    pins = (("pytorch-lightning", "==1.4.2"),)
    check_not_adapted("lightning", source, open_codes=["NPU145", "NPU877"], pins=pins)
    found = migrate(source, adapt=(("lightning", ""),), pins=pins).findings
    (remark,) = [each for each in found if each.code == "NPU877"]
    assert remark.message == (
        "--adapt lightning writes nothing here: pytorch-lightning ==1.4.2 has no accelerator to derive from"
    )
    assert remark.help == "require pytorch-lightning>=1.8 first"


def test_programs_for_tpus_stay_and_say_so() -> None:
    source = "import lightning as L\nimport torch_xla\n\nfabric = L.Fabric(devices=8)\nprint(torch_xla)\n"
    check_not_adapted("lightning", source, open_codes=[*codes(migrate(source), applied=False), "NPU877"])
    found = migrate(source, adapt=(("lightning", ""),)).findings
    (remark,) = [each for each in found if each.code == "NPU877"]
    assert remark.message == "--adapt lightning writes nothing here: the file has code for TPUs (torch_xla)"


def test_others_trainers_stay() -> None:
    check_not_adapted("lightning", 'from mine.lightning import Trainer\n\ntrainer = Trainer(accelerator="cpu")\n')
    check_not_adapted("lightning", "from lightning import LightningModule\n\n\nclass M(LightningModule):\n    pass\n")
    check_not_adapted(
        "lightning",
        "from pytorch_lightning import Trainer\n\ntrainer = Trainer(max_epochs=3)\n",
        pins=(("pytorch-lightning", "==1.9.5"),),
    )
