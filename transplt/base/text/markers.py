"""The condition behind a requirement (PEP 508): whether it can hold on a host with NPUs.

Such a host runs Linux on x86_64 or aarch64: torch_npu has no wheels for another system.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import product

#: The Pythons that some torch_npu has wheels for, and Linux as hosts with NPUs have it, old and new.
_PYTHONS = tuple(f"3.{minor}" for minor in range(8, 15))
_PATCHES = ("0", "20")
_MACHINES = ("x86_64", "aarch64")
_KERNELS = ("4.19.90", "6.6.0")
_SYSTEM = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "platform_version": "",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}
_TEXT = re.compile(r"[\"']([^\"']*)[\"']")


@cache
def holds_on_linux(marker: str) -> bool | None:
    """Whether a condition holds on a host with NPUs: always (True), never (False), or with some Pythons, machines or
    extras only (None, also for what cannot be read).
    """
    if not marker:
        return True
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

    marker = marker.replace("\\", "")
    try:
        condition = Marker(marker)
        found = {condition.evaluate(environment) for environment in _environments(marker)}
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName):
        return None
    return found.pop() if len(found) == 1 else None


def _environments(marker: str) -> Iterator[dict[str, str]]:
    extras = ("", *_TEXT.findall(marker)) if "extra" in marker else ("",)
    for python, patch, machine, kernel, extra in product(_PYTHONS, _PATCHES, _MACHINES, _KERNELS, extras):
        yield {
            **_SYSTEM,
            "python_version": python,
            "python_full_version": f"{python}.{patch}",
            "implementation_version": f"{python}.{patch}",
            "platform_machine": machine,
            "platform_release": kernel,
            "extra": extra,
        }
