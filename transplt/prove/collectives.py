"""stub"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transplt.prove.training import Training


def collective_faults(trainings: Sequence[Training], root: Path) -> list[Any]:
    return []
