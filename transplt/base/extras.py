"""How an extra of this package is installed: by the command that works for the way in which this copy came here."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any


def install_command(extra: str) -> str:
    """The command that installs an extra (`emulator`) where transplt itself is installed.

    It names the checkout or the git URL that pip noted (`direct_url.json`, PEP 610), never the bare name `transplt`,
    which nobody has published. Where neither is there any more, it names the packages of the extra.
    """
    return f"{_installer()} {_what(extra)}"


def _installer() -> str:
    """pip of the environment that runs us, which need not be the first on the path; uv makes some without one."""
    found = shutil.which("pip")
    if found is not None and os.path.dirname(os.path.abspath(found)) == os.path.dirname(sys.executable):
        return "pip install"
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {shlex.quote(sys.executable)}"
    return f"{shlex.quote(sys.executable)} -m pip install"


def _what(extra: str) -> str:
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        found = metadata.distribution("transplt")
        origin: dict[str, Any] = json.loads(found.read_text("direct_url.json") or "{}")
        needs = found.requires or []
    except (metadata.PackageNotFoundError, ValueError):
        origin, needs = {}, []
    url = str(origin.get("url", ""))
    match origin:
        case {"vcs_info": {"vcs": str(vcs), **info}}:
            revision = info.get("requested_revision") or info.get("commit_id", "")
            return shlex.quote(f"transplt[{extra}] @ {vcs}+{url}" + (f"@{revision}" if revision else ""))
        case {"dir_info": dict(kind)} if os.path.isdir(path := url2pathname(urlsplit(url).path)):
            return ("-e " if kind.get("editable") else "") + shlex.quote(f"{path}[{extra}]")
    checkout = Path(__file__).resolve().parents[2]
    if not needs and (checkout / "pyproject.toml").is_file():  # run where it lies, without an installation
        return shlex.quote(f"{checkout}[{extra}]")
    return " ".join(shlex.quote(need) for need in _packages(needs, extra))


def _packages(needs: list[str], extra: str) -> list[str]:
    """The requirements of an extra, among those that the metadata name."""
    from packaging.requirements import Requirement

    found = []
    for need in map(Requirement, needs):
        marker, need.marker = need.marker, None
        if marker is not None and not marker.evaluate({"extra": ""}) and marker.evaluate({"extra": extra}):
            found.append(str(need))
    return found
