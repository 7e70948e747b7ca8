"""The settings a process of an emulated run inherits from the command that started it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

#: Names the settings file; without it the defaults below hold.
VARIABLE = "TRANSPLT_EMULATOR"


@dataclass(frozen=True)
class Config:
    """Settings of one emulated run.

    `cuda`: error | record | off | alias (alias, for reference runs: "cuda" means the npu, unreported). `random`: npu |
    cpu (draw from the CPU generator, bit-comparable with a CPU run). `probes` is the level of findings that only ask
    whether CUDA is there. `pictures`: how many each data set of a file in `stubs` has, where that was asked for.
    `cpu_fallback`: warn | error | ignore. `stack_signal` is answered with the stacks of all
    threads (0: never). `watch` maps a source file (real path) to the lines whose execution is recorded.
    `torch_version` is the minor version of the target torch_npu, `card` the card (of the table of limits) whose
    limits hold; `own`, what operators did on such a card of the user's own: operator -> types of its tensors -> the
    error ("": it ran). `trace`, for `transplt prove`: `seed` (None: nothing is held still); `inserted`, the lines,
    by real path, that a port added; `steps` after which the script ends (0: its own end); `replay`, a file of
    indices that loaders give ("" for their own), all of them or, without `replay_all`, those with a
    DistributedSampler; `detail`, the step of which every line is recorded (1 is the first, 0 none); `left_out`,
    pairs of the number of an optimizer and its steps that are not taken; `shake`, the share by which each parameter
    is changed when its optimizer is made and after each step (0: not), and `again`, which draws other changes;
    `lengths`, pairs of the number of a loader in the order of their making and what `len` gives of it in each pass;
    `delays`, the seed of what each rank waits before its files and collectives (None: it does not). `dump`, for
    `--dump` and `--fault`: `folder` ("": record nothing); `task`: statistics | tensor | overflow; `level`: L0 | L1
    | mix; `format` of files of elements: pt | npy; `steps`, those wanted ([]: all); `seed`; `faults`, each
    (operator, kind, value, rank). `driver` is the folder of the libraries that stand for CANN ("": the host is none
    with NPUs), `needs` one of packages that torch_npu imports ("": the environment has them). `redirected`: torch_npu's
    own transfer_to_npu is imported right behind torch. `compile`: launches of Triton's kernels are kept, for the
    compiler of the card. `models`: the backend of torch.compile by which all networks run, eager for none ("": as the
    program has it).
    """

    npus: int = 8
    torch_version: str = "2.13"
    card: str = "910B"
    own: dict[str, dict[str, str]] = field(default_factory=dict)
    cuda: str = "error"
    random: str = "npu"
    probes: str = "warning"
    cpu_fallback: str = "warn"
    shapes: bool = False
    saves: bool = False
    records: str = ""
    stack_signal: int = 0
    stubs: tuple[str, ...] = ()
    pictures: dict[str, int] = field(default_factory=dict)
    watch: dict[str, list[int]] = field(default_factory=dict)
    trace: dict[str, Any] | None = None
    dump: dict[str, Any] | None = None
    driver: str = ""
    needs: str = ""
    redirected: bool = False
    compile: bool = False
    models: str = ""

    @property
    def enforced(self) -> bool:
        """Whether the limits of the card hold; where "cuda" means the npu, the program is one for CUDA."""
        return self.cuda != "alias"


def visible_cards(variable: str) -> int:
    """How many cards there are: as asked for, less those that a variable of the environment hides."""
    visible = os.environ.get(variable)
    if visible is None:
        return config.npus
    shown = 0
    for word in visible.split(","):
        if not word.strip().isdigit() or int(word) >= config.npus:
            break  # as the drivers do: what follows a wrong number is hidden
        shown += 1
    return shown


def _read() -> Config:
    path = os.environ.get(VARIABLE)
    if not path:
        return Config()
    with open(path, encoding="utf-8") as file:
        values: dict[str, Any] = json.load(file)
    values["stubs"] = tuple(values.get("stubs", ()))
    return Config(**values)


config = _read()


def read_again() -> None:
    """Take the settings of the environment as it is now; for a process that was forked for a run."""
    for name, value in vars(_read()).items():
        object.__setattr__(config, name, value)
