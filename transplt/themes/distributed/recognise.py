"""Programs that run in several processes already: their set-up is migrated, and nothing is added to it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.program.program import File, Program

#: Full names (or their first and last parts, around a star) of what sets up several processes, and what it is called.
_SETUPS = {
    "torch.distributed.init_process_group": "torch.distributed.init_process_group",
    "torch.distributed.*.init_process_group": "torch.distributed.init_process_group",
    "torch.nn.parallel.*DistributedDataParallel": "DistributedDataParallel",
    "torch.distributed.*FullyShardedDataParallel": "FullyShardedDataParallel",
    "torch.distributed.*fully_shard": "fully_shard",
    "apex.parallel.*DistributedDataParallel": "apex's DistributedDataParallel",
    "accelerate.*Accelerator": "accelerate",
    "accelerate.*notebook_launcher": "accelerate",
    "pytorch_lightning.*Trainer": "Lightning",
    "lightning.*Trainer": "Lightning",
    "lightning.*Fabric": "Lightning Fabric",
    "deepspeed.*initialize": "DeepSpeed",
    "transformers.*Trainer": "the Trainer of transformers",
    "trl.*Trainer": "a Trainer of trl",
    "horovod.torch.*init": "Horovod",
    "colossalai.*launch_from_torch": "ColossalAI",
    "mmengine.*Runner": "mmengine's Runner",
    "ignite.distributed.*Parallel": "ignite",
}
_SPAWNERS = {
    "torch.multiprocessing.*spawn": "torch.multiprocessing.spawn",
    "torch.multiprocessing.*start_processes": "torch.multiprocessing.start_processes",
}


@dataclass(frozen=True, slots=True)
class Setup:
    """A call that sets up several processes; `spawns` when it starts them itself."""

    file: File
    node: ast.Call
    what: str
    spawns: bool


def setups(program: Program) -> list[Setup]:
    """The calls of the program that set up several processes, by place."""
    found = []
    for file in program.files:
        for call in sorted(file.scan.calls, key=lambda node: (node.lineno, node.col_offset)):
            name = file.names.qualified(call.func)
            if name is None:
                continue
            for table, spawns in ((_SETUPS, False), (_SPAWNERS, True)):
                what = next((said for form, said in table.items() if _fits(name, form)), "")
                if what:
                    found.append(Setup(file, call, what, spawns))
                    break
    return found


def _fits(name: str, form: str) -> bool:
    head, star, last = form.partition("*")
    if not star:
        return name == form
    rest = name[len(head) :]
    return name.startswith(head) and (rest.split(".")[-1] == last.lstrip(".") or _is_trainer(rest, last))


def _is_trainer(rest: str, last: str) -> bool:
    return last == "Trainer" and rest.split(".")[-1].endswith("Trainer")
