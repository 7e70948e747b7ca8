"""The names of torch.accelerator by version: rules/support/accelerator.json."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from transplt.rules.tables import read_table
from transplt.rules.versions import version_key


@dataclass(frozen=True, slots=True)
class AcceleratorName:
    """A name below torch.accelerator. `torch`: the first version that has it; `npu`: the first whose torch_npu supports
    it, empty for none; `cuda`: the full name of torch.cuda that becomes it, empty for none. `quiet`: where there is no
    device, that one answers and this one raises."""

    name: str
    torch: str
    npu: str
    cuda: str = ""
    quiet: bool = False
    note: str = ""

    def replaces_cuda(self, version: str) -> bool:
        """True where the name of torch.cuda can become this one, on NPUs too."""
        both = (self.torch, self.npu)
        return bool(self.cuda and self.npu) and all(version_key(version) >= version_key(each) for each in both)


@cache
def accelerator_names() -> tuple[AcceleratorName, ...]:
    """The whole table."""
    return tuple(AcceleratorName(**row) for row in read_table("support/accelerator.json")["names"])


@cache
def accelerator_for() -> dict[str, AcceleratorName]:
    """Full names of torch.cuda -> the name of torch.accelerator that they become."""
    return {each.cuda: each for each in accelerator_names() if each.cuda}
