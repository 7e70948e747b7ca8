"""Actors, engines and a placement group of a real Ray, migrated, on the emulated card.

Source: ray 2.60, ray/_private/accelerators/npu.py: Ray sets ASCEND_RT_VISIBLE_DEVICES of a process to the cards that it
gave, unless RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES is set.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.forked import transplt_run
from tests.harness import migrate

pytest.importorskip("ray", reason="needs the extra: pip install '.[ray]'")
pytestmark = [pytest.mark.torch, pytest.mark.card, pytest.mark.slow]

PROGRAM = """
import json
import os

import ray
import torch
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_gpus=1)
class Trainer:
    def __init__(self, number):
        self.number = number
        self.ids = ray.get_gpu_ids()

    def step(self):
        x = torch.full((3,), float(self.number), device="cuda")
        return os.environ["CUDA_VISIBLE_DEVICES"], self.ids, x.sum().item(), torch.cuda.device_count()


@ray.remote
class Engine:
    def generate(self):
        return os.environ.get("CUDA_VISIBLE_DEVICES"), torch.ones(2).cuda().sum().item()


def placed(at, group):
    return PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=at)


def main(share=0.5):
    ray.init(num_cpus=4, num_gpus=3, include_dashboard=False, log_to_driver=False)
    group = placement_group([{"GPU": 1, "CPU": 1} for _ in range(2)], strategy="PACK")
    ray.get(group.ready())
    trainers = [
        Trainer.options(num_cpus=0.4, num_gpus=0.4, scheduling_strategy=placed(at, group)).remote(at) for at in range(2)
    ]
    engines = [
        Engine.options(num_cpus=0.2, num_gpus=share, scheduling_strategy=placed(at, group)).remote() for at in range(2)
    ]
    alone = Trainer.remote(7)
    found = ray.get([each.step.remote() for each in trainers]), ray.get([each.generate.remote() for each in engines])
    found += (ray.get(alone.step.remote()), ray.cluster_resources()["GPU"])
    ray.shutdown()
    print("found", json.dumps(found))


if __name__ == "__main__":
    main()
"""


def test_each_actor_has_the_card_of_its_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer and an engine share the card of a bundle; who asks for a whole card gets the third."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # else Ray writes a token into the home
    written = migrate(PROGRAM, adapt=(("ray", ""),), torch_version="2.13").data.decode()
    assert "(num_gpus=" not in written and ", num_gpus=" not in written and '"GPU"' not in written
    (tmp_path / "actors.py").write_text(written)
    _, output, errors = transplt_run(["--npus", "4", "actors.py"], tmp_path)
    (line,) = (each for each in output.splitlines() if each.startswith("found ")) if "found" in output else (errors,)
    trainers, engines, alone, cards = json.loads(line.removeprefix("found "))
    assert trainers == [["0", [0], 0.0, 1], ["1", [1], 3.0, 1]]
    assert engines == [["0", 2.0], ["1", 2.0]] and alone == ["2", [2], 21.0, 1] and cards == 3
