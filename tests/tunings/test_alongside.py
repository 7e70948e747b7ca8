"""What another script of the project does is no reason for the optimizer of this one."""

from __future__ import annotations

import pytest

from tests.harness import codes, migrate

TRAIN = """
    import torch
    from engine import one_pass


    def main():
        model = torch.nn.Linear(2, 2).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        one_pass(model, optimizer)


    if __name__ == "__main__":
        main()
    """
ENGINE = """
    def one_pass(model, optimizer):
        for batch in batches:
            optimizer.zero_grad()
            model(batch.cuda()).sum().backward()
            optimizer.step()
    """
FREEZES = """
    import torch
    from engine import one_pass
    {more}

    def freeze(model):
        for param in model.parameters():
            param.requires_grad = True


    {guard}
    """
GUARD = 'if __name__ == "__main__":\n        freeze(1)'


def fused(files: dict[str, str]) -> bool:
    """True when the optimizer of the training becomes a fused one, False when a finding says why it stays."""
    result = migrate(TRAIN, files={"engine.py": ENGINE, **files}, tune=(("fused-optimizer", ""),))
    done = b"NpuFusedAdamW(model.parameters()" in result.data
    assert done != ("NPU750" in codes(result, applied=False))
    return done


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, True),
        ({"probe.py": FREEZES.format(more="", guard=GUARD)}, True),
        ({"probe.py": FREEZES.format(more="import helper", guard=GUARD), "helper.py": "import optim\\n"}, True),
        ({"probe.py": FREEZES.format(more="from train import main", guard=GUARD)}, False),
        ({"plugin.py": FREEZES.format(more="", guard="")}, False),
        ({"engine.py": ENGINE + "\n\n    def freeze(p):\n        p.grad = None\n"}, False),
    ],
)
def test_which_files_count(files: dict[str, str], expected: bool) -> None:
    assert fused(files) is expected
