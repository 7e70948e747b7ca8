"""Where the data files of transplt lie: rules, fact tables and diagnostics pages."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def rules_dir() -> Path:
    """The folder of the built-in rules: `transplt/_rules` in a wheel, `rules/` beside the package in a checkout.

    Raises FileNotFoundError when neither is there (a broken installation).
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_rules", package.parent / "rules"):
        if (folder / "schema.json").is_file():
            return folder
    raise FileNotFoundError(f"the built-in rules of transplt are missing beside {package}: install it again")


@cache
def read_table(name: str) -> Any:
    """The parsed JSON table `name`, a path below the rules folder such as `support/versions.json`.

    The value is shared between callers and must not be changed.
    """
    return json.loads((rules_dir() / name).read_bytes())
