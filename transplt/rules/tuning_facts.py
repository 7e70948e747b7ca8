"""What the tunings write and where it exists: rules/support/tunings.json, built by scripts/tuning_facts.py."""

from __future__ import annotations

from transplt.rules.tables import read_table
from transplt.rules.versions import in_order, versions_of


def exists(target: str, torch_version: str) -> bool:
    """True when the torch_npu of a torch version has a target such as `torch_npu.npu_rms_norm`."""
    fact = read_table("support/tunings.json")["targets"].get(target)
    return fact is not None and torch_version in versions_of(fact["versions"])


def versions(target: str) -> tuple[str, ...]:
    """The torch versions whose torch_npu has a target; KeyError for one that the table does not know."""
    return in_order(read_table("support/tunings.json")["targets"][target]["versions"])


def schemas(target: str) -> tuple[str, ...]:
    """The schemas or the signature of a target; KeyError for one that the table does not know."""
    return tuple(read_table("support/tunings.json")["targets"][target]["schemas"])
