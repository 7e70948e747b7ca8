"""What comes of an API on an NPU, as all witnesses have it: one answer for all that asks.

Witnesses: the documentation of torch_npu (`support_tables`); the kernels, by the operators that the API reaches when it
is executed; and ports that train on NPUs and use it. rules/support/witnesses.json names their sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache, partial

from transplt.base.settings import TORCH_VERSIONS
from transplt.rules import support_tables as tables
from transplt.rules.support_tables import Support
from transplt.rules.tables import read_table
from transplt.rules.versions import versions_of

_table = partial(read_table, "support/witnesses.json")

#: From so many ports on, their use of an API speaks against a documentation that nothing else confirms. Fewer may be
#: branches that never run: torch.compile stands in four, cpp_extension.load in three, of the ports of 2023.
ENOUGH_PORTS = 5
#: Before an operator that was called with a sparse tensor, and for which torch_npu has none.
_SPARSE = "sparse:"


class Status(Enum):
    """What comes of the use of an API."""

    STOPS = "no"  #: work: documented as unsupported, and nothing speaks for it; or a sparse tensor that is refused
    DOUBTED = "doubted"  #: documented as unsupported, against kernels or ports: a remark
    ON_CPU = "on the CPU"  #: an operator without a kernel: torch_npu computes it on the host, with copies
    LIMITED = "limited"  #: documented with a limit
    WORKS = "yes"
    UNKNOWN = "unverified"  #: no witness


@dataclass(frozen=True, slots=True)
class Weighed:
    """The answer: its status, the entry of the documentation, and what each other witness says.

    `lacks` are operators without a kernel that every call reaches, `may_lack` those that calls with some arguments
    reach. `executed`: what the API comes to is known. `named`: an operator of its name has a kernel. `ports`: how many
    ports that train use it.
    """

    status: Status
    row: Support | None = None
    lacks: tuple[str, ...] = ()
    may_lack: tuple[str, ...] = ()
    executed: bool = False
    named: bool = False
    ports: int = 0

    @property
    def witnesses(self) -> tuple[str, ...]:
        """What speaks besides the documentation, as clauses that begin with a small letter."""
        found = []
        if self.lacks:
            found.append(f"{_operators(self.lacks)} no NPU kernel")
        elif self.may_lack:
            found.append(f"the operators of its plain calls have NPU kernels ({_operators(self.may_lack)} none)")
        elif self.executed:
            found.append("all operators that it reaches have NPU kernels")
        elif self.named:
            found.append("the operator of its name has an NPU kernel")
        if self.ports:
            found.append(
                f"{self.ports} migrated projects that train on NPUs use it"
                if self.ports > 1
                else "a migrated project uses it"
            )
        return tuple(found)


def _operators(names: tuple[str, ...]) -> str:
    """`its operator aten::poisson has`; of a sparse tensor where that is what lacks."""
    shown = [
        f"aten::{name.removeprefix(_SPARSE)}" + (" of sparse tensors" if name.startswith(_SPARSE) else "")
        for name in names
    ]
    return f"its operator {shown[0]} has" if len(shown) == 1 else f"its operators {', '.join(shown)} have"


@cache
def weigh(api: str, version: str) -> Weighed:
    """What comes of an API (its canonical name) with the torch_npu for a torch version."""
    row = tables.verdict(api, version)
    reached = _reached().get(api)
    sure, maybe = reached if reached is not None else ((), ())
    lacks = tuple(name for name in sure if not _has(name, version))
    may_lack = tuple(name for name in maybe if not _has(name, version))
    executed, named, ports = reached is not None, tables.has_kernel(api, version), known_ports(api)
    return Weighed(
        _status(api, row, lacks, executed or named, ports),
        row, lacks, may_lack, executed, named, ports,
    )  # fmt: skip


def _status(api: str, row: Support | None, lacks: tuple[str, ...], kernels: bool, ports: int) -> Status:
    if any(name.startswith(_SPARSE) for name in lacks):
        return Status.STOPS  # torch_npu raises: there is no way to the CPU for a sparse tensor
    if row is not None and row.status == "no":
        if lacks:
            return Status.STOPS
        return Status.DOUBTED if kernels or ports >= ENOUGH_PORTS else Status.STOPS
    if lacks:
        return Status.ON_CPU
    if row is not None:
        return Status.LIMITED if row.status == "limited" else Status.WORKS
    known = kernels or tables.runs_on_host(api) or api.startswith("torch.ops")
    return Status.WORKS if known else Status.UNKNOWN


def reaches(api: str) -> tuple[str, ...]:
    """All operators that an API reached; known for those that the documentation of some version calls unsupported."""
    return tuple(_table()["reaches"].get(api, "").split())


def executed_apis() -> frozenset[str]:
    """The APIs of which it is known what they come to."""
    return frozenset(_reached())


def known_ports(api: str) -> int:
    """In how many ports that train an API is used; counted where some documentation has a no or a limit."""
    return int(_table()["ports"].get(api, 0))


def sources() -> dict[str, str]:
    """Where the witnesses are from: `executed` and `ports`."""
    meta = _table()["_meta"]
    return {key: str(meta[key]) for key in ("executed", "ports")}


@cache
def _reached() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """API -> operators that lack a kernel in some version, reached always, and with some arguments."""
    found = {}
    for owner, groups in _table()["executed"].items():
        for text, names in groups.items():
            sure, _, maybe = text.partition("|")
            for name in names.split():
                found[f"{owner}.{name}"] = (tuple(sure.split()), tuple(maybe.split()))
    return found


@cache
def _has(operator: str, version: str) -> bool:
    held = _table()["lacking"][operator]
    return bool(held) and (version if version in TORCH_VERSIONS else TORCH_VERSIONS[-1]) in versions_of(held)
