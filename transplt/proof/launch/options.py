"""What a run was asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: What an emulated run cannot show; printed by the help and listed in docs/emulator.md.
LIMITS = (
    "the NPU's numerics and precision (results equal the CPU's)",
    "limits of operators that no published table lists",
    "speed, and memory beyond the tensors (workspaces, fragmentation)",
    "real HCCL (gloo carries the collectives) and races between streams",
    "graph capture, inductor, sparse tensors other than COO",
    "npu_* operators without a reference implementation",
    "lines that never ran: the report lists them",
)


class UsageError(Exception):
    """The run cannot start: one sentence that says what to do (exit code 2)."""


@dataclass(frozen=True)
class Trace:
    """What processes record of their training. `steps` is where the script ends (0: its own end); `replay` maps
    "loader.epoch" to the batches of indices to give, without `replay_all` only where the sampler is a
    DistributedSampler; `detail` is the step of which every line is recorded (0: none); `left_out` are steps not
    taken, by the number of the optimizer, as a scaler leaves them out; `shake` is the share by which parameters are
    changed at random after every step (0: not), otherwise in each run that is made `again`; `lengths` is what `len`
    gives of loaders in each pass, by the order in which they are made; `inserted` are the lines, by path, that the
    original does not have. A run that is not `seeded` is as the user's own: nothing is held still but the order of
    hashes. `delayed` ranks wait before each file and collective, as their seed says."""

    seed: int = 1234
    steps: int = 20
    replay: dict[str, list[list[int]]] | None = None
    replay_all: bool = True
    detail: int = 0
    left_out: dict[int, list[int]] = field(default_factory=dict)
    shake: float = 0.0
    again: int = 0
    lengths: dict[int, list[int]] = field(default_factory=dict)
    inserted: dict[str, list[int]] = field(default_factory=dict)
    seeded: bool = True
    delayed: bool = False


@dataclass(frozen=True)
class Dump:
    """What a run records, and computes wrongly. `folder` is None where only faults are asked for; `steps` are those
    that are recorded, all without any; `faults` are (operator, kind, value or "", rank or None)."""

    folder: Path | None = None
    task: str = "statistics"
    level: str = "mix"
    form: str = "pt"
    steps: tuple[int, ...] = ()
    seed: int = 1234
    faults: tuple[tuple[str, str, str, int | None], ...] = ()

    def as_config(self) -> dict[str, Any]:
        """The field `dump` of npu_emulator.config.Config."""
        folder = str(self.folder.resolve()) if self.folder is not None else ""
        return {
            "folder": folder, "task": self.task, "level": self.level, "format": self.form, "steps": list(self.steps),
            "seed": self.seed, "faults": [list(fault) for fault in self.faults],
        }  # fmt: skip


@dataclass(frozen=True)
class TorchNpu:
    """The vendor's own torch_npu, and the folders that a process needs for it: of the unpacked wheel, of the libraries
    that stand for CANN, and of packages that it imports ("": the interpreter has them)."""

    version: str
    wheel: str
    driver: str
    needs: str = ""


@dataclass(frozen=True)
class RunOptions:
    """One `transplt run`. `script` is a path or, with `module`, a dotted name; `python` the interpreter of the
    script. `portable`: the project goes on running on CUDA, so asking whether CUDA is there is part of it. `folder` is
    the script's working folder ("": this one), `threads` those that it computes with (0: as the machine has them),
    `card` one of the table of limits; `host` is one of runner.SITES, `dump` what is recorded and computed wrongly;
    `torch_npu` is None on another host; `redirected`: a script for CUDA runs below torch_npu's own transfer_to_npu;
    `compiled`: the launches of Triton's kernels are kept, for the compiler of the card; `models`: the backend by which
    torch.compile runs all networks, eager for none ("": as the program has it)."""

    script: str
    arguments: tuple[str, ...]
    python: str
    module: bool = False
    torch_version: str = "2.13"
    npus: int = 8
    nproc: int = 0
    cuda: str = "error"
    cpu_fallback: str = "warn"
    random: str = "npu"
    stubs: tuple[str, ...] = ()
    shapes: bool = False
    reference: Path | None = None
    timeout: float | None = None
    portable: bool = False
    trace: Trace | None = None
    folder: str = ""
    threads: int = 0
    card: str = "910B"
    host: str = "npu"
    dump: Dump | None = None
    torch_npu: TorchNpu | None = None
    redirected: bool = False
    compiled: bool = False
    models: str = ""

    @property
    def shell(self) -> bool:
        """Whether the script is a launch script rather than Python."""
        return not self.module and self.script.endswith((".sh", ".bash"))
