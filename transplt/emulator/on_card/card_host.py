"""What this host has, and whether it belongs together: the checks of `transplt doctor`, from copies of its modules.

    python card_host.py OUT

The modules lie in `lib` beside this file, and need nothing but Python.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any


def main(out: str) -> None:
    """Print the checks, and write them with the versions as one line of JSON."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
    host_of: Any = importlib.import_module("transplt.precision.diagnose.host")
    advice: Any = importlib.import_module("transplt.precision.diagnose.advice")
    npu_smi: Any = importlib.import_module("transplt.precision.diagnose.npu_smi")
    host = host_of.examine(Path("/"), os.environ, smi=npu_smi.npu_smi)
    checks = [{**dataclasses.asdict(check), "state": check.state.value} for check in advice.checks_of(host)]
    for check in checks:
        print(f"{check['state']:<8}{check['what']:<24}{check['text']}".rstrip())
        if check["do"] and check["state"] != "fine":
            print(f"{'':<32}-> {check['do']}")
    versions = {name: getattr(host, name) for name in ("python", "torch", "torch_npu", "cann", "driver", "firmware")}
    with open(out, "a", encoding="utf-8") as file:
        file.write(json.dumps({"versions": versions, "cards": host.cards, "checks": checks}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
