"""What an interpreter has installed. `transplt run` asks its own in place, and has others run this file: it imports
the standard library alone, and nothing that it reports."""

from __future__ import annotations

import os
import platform
import re
import sys
import sysconfig
from importlib import metadata
from importlib.util import find_spec


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _cuda() -> str:
    """The CUDA that torch was built for, as the file of its version says; "" without."""
    spec = find_spec("torch")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = os.path.join(folder, "version.py")
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                found = re.search(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)", file.read(), re.MULTILINE)
            return found[1] if found is not None else ""
    return ""


def installed() -> list[str]:
    """torch, numpy and PyYAML ("": it is not there), the versions of Python and CUDA, the ABI of compiled modules; then
    the names of all files beside the packages."""
    names = (name for folder in sys.path if os.path.isdir(folder) for name in os.listdir(folder))
    abi = str(sysconfig.get_config_var("SOABI") or "")
    return [*map(_version, ("torch", "numpy", "PyYAML")), platform.python_version(), _cuda(), abi, *names]


if __name__ == "__main__":
    print(*installed(), sep="\n")
