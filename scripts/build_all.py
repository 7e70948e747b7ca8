"""Builds every table that comes from scripts/facts/: `python scripts/build_all.py`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import build_api_support  # noqa: E402
import build_card_types  # noqa: E402
import build_emulator_tables  # noqa: E402
import build_packages  # noqa: E402
import build_tables  # noqa: E402
import build_triton  # noqa: E402
import build_witnesses  # noqa: E402
import npu_operators  # noqa: E402
import torch_modules  # noqa: E402
import tuning_facts  # noqa: E402


def main(root: Path = ROOT) -> None:
    """Write all tables below `root` where they lie in the checkout."""
    for builder in (
        build_tables, build_api_support, build_witnesses, build_card_types, tuning_facts, build_packages,
        npu_operators, build_triton,
    ):  # fmt: skip
        builder.main(root / "rules")
    torch_modules.main(root)
    build_emulator_tables.main(root / build_emulator_tables.TABLES.relative_to(ROOT), root / "rules")


if __name__ == "__main__":
    main()
