"""Options and addresses that take torch from PyTorch's builds for CUDA: they become those of the builds for the CPU.

torch_npu is installed beside a build for the CPU: https://github.com/Ascend/pytorch,
docs/zh/installation_guide/references/installation_via_pip.md. That index has no torch_npu, so it is never the only one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from transplt.base.text.markers import holds_on_linux
from transplt.base.text.toml import parse_toml
from transplt.engine.files.dependency_files import condition_of
from transplt.rules.releases import CPU_INDEX

_HOST = r"https?://download\.pytorch\.org/whl/"
#: What names builds for CUDA; of torch_stable.html pip takes the build whose suffix sorts last, which is one for CUDA.
_CUDA_ADDRESS = re.compile(rf"{_HOST}(?:cu\d+(?:/torch_stable\.html)?|torch_stable\.html)/?")
#: Of AMD's builds, where no requirement asks for one of them by its suffix.
_ROCM_ADDRESS = re.compile(rf"{_HOST}rocm[\d.]+/?")
_CPU_ADDRESS = re.compile(rf"{_HOST}cpu(?:/torch_stable\.html)?/?")
_OPTION = re.compile(
    r"(?<![\w-])(?P<option>--extra-index-url|--index-url|--find-links|-i|-f)(?P<between>[= \t]+)"
    rf"(?P<quote>[\"']?)(?P<address>{_HOST}[^\s\"'\\]*)(?P=quote)"
)
_OTHER_INDEX = re.compile(r"--extra-index-url[= \t]+[\"']?https?://(?!download\.pytorch\.org)")


def is_cuda_index(address: str) -> bool:
    """True for an address of PyTorch's that brings builds for CUDA."""
    return _CUDA_ADDRESS.fullmatch(address) is not None


def has_cpu_index(text: str) -> bool:
    """True where the builds for the CPU can be found."""
    return re.search(rf"{_HOST}(?:nightly/|test/)?cpu\b", text) is not None


def has_index(text: str) -> bool:
    """True where the builds for the CPU are found, or those for GPUs, whose address becomes theirs."""
    changed = any(True for _ in index_changes(text, needs_pypi=False))
    return has_cpu_index(text) or _CUDA_ADDRESS.search(text) is not None or changed


def index_changes(text: str, needs_pypi: bool) -> Iterator[tuple[int, int, str]]:
    """(start, end, new text) of the options of a piece of text that name builds for CUDA, or for AMD's GPUs.

    `needs_pypi`: something is asked for that PyTorch's index does not have. Then that of the builds for the CPU is
    no longer the only one either.
    """
    alone = needs_pypi and _OTHER_INDEX.search(text) is None
    for match in _OPTION.finditer(text):
        rocm = _ROCM_ADDRESS.fullmatch(match["address"]) is not None and "+rocm" not in text
        cuda = rocm or is_cuda_index(match["address"])
        option = match["option"]
        cpu = _CPU_ADDRESS.fullmatch(match["address"]) is not None
        if (cuda and option in ("-f", "--find-links")) or (alone and (cuda or cpu) and option in ("-i", "--index-url")):
            option = "--extra-index-url"
        address = CPU_INDEX if cuda else match["address"]
        new = f"{option}{match['between']}{match['quote']}{address}{match['quote']}"
        if new != match.group():
            yield match.start(), match.end(), new


def elsewhere_indexes(text: str) -> set[str]:
    """The addresses of a pyproject.toml from which no host with NPUs installs: all that names such an index, uv's
    `{ index = "cu124", marker = "sys_platform == 'win32'" }` or Poetry's `source`, has a condition that leaves it out.
    """
    addresses: dict[str, str] = {}
    used: dict[str, list[bool]] = {}
    try:
        waiting: list[Any] = [parse_toml(text)]
    except ValueError:
        return set()
    for value in waiting:  # grows
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            name = value.get("index", value.get("source"))
            if isinstance(name, str):
                used.setdefault(name, []).append(holds_on_linux(condition_of(value)) is False)
            if isinstance(value.get("name"), str) and isinstance(value.get("url"), str):
                addresses[value["name"]] = value["url"]
    return {addresses[name] for name, away in used.items() if name in addresses and all(away)}
