"""An optimizer that is handed to an object of the project that is called, such as a scaler that also clips."""

from __future__ import annotations

import pytest

from tests.harness import codes, migrate

TRAIN = """
    import torch
    from misc import NativeScaler{imported}


    def one_pass(model, optimizer, loss_scaler):
        for batch in batches:
            optimizer.zero_grad()
            loss_scaler(model(batch.cuda()).sum(), optimizer, parameters=model.parameters())


    def main():
        model = torch.nn.Linear(2, 2).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        loss_scaler = {made}
        one_pass(model, optimizer, loss_scaler)


    if __name__ == "__main__":
        main()
    """
MISC = """
    import torch


    class {name}:
        def __init__(self):
            self._scaler = torch.cuda.amp.GradScaler()

        def __call__(self, loss, optimizer, parameters=None):
            self._scaler.scale(loss).backward()
            {step}
            self._scaler.update()
    """
STEP = "self._scaler.step(optimizer)"


@pytest.mark.parametrize(
    ("imported", "made", "name", "step", "fused"),
    [
        ("", "NativeScaler()", "NativeScaler", STEP, True),
        (" as Scaler", "Scaler()", "NativeScaler", STEP, True),
        ("", "NativeScaler()", "NativeScaler", "optimizer.step(lambda: loss)", False),
        ("", "NativeScaler()", "NativeScaler", "other(optimizer)", False),
        ("", "NativeScaler() if torch else other()", "NativeScaler", STEP, False),
        ("", "NativeScaler()", "AnotherScaler", STEP, False),
        ("", "None", "NativeScaler", STEP, False),
    ],
)
def test_what_is_called_is_looked_at(imported: str, made: str, name: str, step: str, fused: bool) -> None:
    result = migrate(
        TRAIN.format(imported=imported, made=made),
        files={"misc.py": MISC.format(name=name, step=step)},
        tune=(("fused-optimizer", ""),),
    )
    assert (b"NpuFusedAdamW(model.parameters()" in result.data) is fused
    assert ("NPU750" in codes(result, applied=False)) is not fused
