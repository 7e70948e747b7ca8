"""The tables of rules/support/ that the analysis looks things up in; read when they are first asked for.

Their sources are named in the files: the native API support tables of the torch_npu documentation (Ascend/pytorch,
CC BY 4.0), the schemas in the torch_npu wheels, and torch itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial
from itertools import accumulate
from typing import Any

from transplt.base.settings import TORCH_VERSIONS
from transplt.rules.tables import read_table
from transplt.rules.versions import versions_of

_api_table = partial(read_table, "support/api_support.json")

#: Parts of torch that the rules of the migration speak of: their verdicts are findings already.
CONVERTED = ("torch.cuda", "torch.backends", "torch.npu", "torch_npu", "torch.profiler", "torch.version")


@dataclass(frozen=True, slots=True)
class Support:
    """What the documentation of one torch_npu says of one API.

    `status`: yes, no or limited. `limit` is the documented limit as text, `tags` its kinds (dtype, shape, param,
    cpu_fallback, ...), `dtypes` the documented dtypes by parameter, `not_on` the hardware it leaves out.
    """

    status: str
    limit: str = ""
    tags: frozenset[str] = frozenset()
    dtypes: dict[str, list[str]] = field(default_factory=dict, hash=False)
    not_on: frozenset[str] = frozenset()


@cache
def _row(index: int) -> Support | None:
    row = _api_table()["rows"][index]
    if row is None:
        return None
    return Support(
        row["status"],
        row.get("limit", ""),
        frozenset(row.get("tags", ())),
        row.get("dtypes", {}),
        frozenset(row.get("not_on", ())),
    )


@cache
def published() -> tuple[str, ...]:
    """The torch versions whose support verdicts are published, oldest first."""
    rows = read_table("support/versions.json")["verdicts"]
    return tuple(version for version in TORCH_VERSIONS if rows[version]["source"])


@cache
def published_for(version: str) -> str:
    """The torch version whose published verdicts are used for `version`: its own, else the newest before it."""
    return [each for each in published() if TORCH_VERSIONS.index(each) <= TORCH_VERSIONS.index(version)][-1]


def spoken_for(version: str) -> str:
    """That version in a sentence, which says so where it is an older one."""
    published = published_for(version)
    return published if published == version else f"{published} ({version} has no documentation yet)"


def documented(api: str) -> bool:
    """True for an API that some version's documentation has an entry for."""
    owner, _, name = api.rpartition(".")
    return name in _api_table()["names"].get(owner, ())


@cache
def verdict(api: str, version: str) -> Support | None:
    """The entry of an API (its canonical name) for a torch version, None where there is none.

    For a version whose verdicts are not published yet it is that of `spoken_for`.
    """
    owner, _, name = api.rpartition(".")
    history = _api_table()["names"].get(owner, {}).get(name)
    if history is None:
        return None
    position = TORCH_VERSIONS.index(published_for(version))
    found = None
    for first, row in _api_table()["histories"][history]:
        if first > position:
            break
        found = row
    return None if found is None else _row(found)


def supported_in(api: str) -> list[str]:
    """The torch versions whose documentation says that an API works, with or without a limit."""
    return [version for version in published() if (row := verdict(api, version)) is not None and row.status != "no"]


#: Owners whose members are operators of the same name.
_OPERATORS = frozenset({"torch", "torch.Tensor", "torch.nn.functional", "torch.special"})
_PREFIXED = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}


def has_kernel(api: str, version: str) -> bool:
    """True for an API whose operator is in the list of NPU kernels, whatever the documentation says of it."""
    owner, _, name = api.rpartition(".")
    if owner not in _OPERATORS and owner not in _PREFIXED:
        return False
    kernels = _kernels(version)
    return name in kernels or f"{_PREFIXED.get(owner, '')}{name}" in kernels


@cache
def _kernels(version: str) -> frozenset[str]:
    groups = _api_table()["kernels"].items()
    return frozenset(name for text, names in groups if version in versions_of(text) for name in names.split())


@cache
def _is_in_list(key: str, api: str) -> bool:
    found = frozenset(_api_table()[key])
    owners = accumulate(api.split(".")[:-1], "{}.{}".format)
    return api in found or any(f"{owner}." in found for owner in owners)


def runs_on_host(api: str) -> bool:
    """True for what torch does on the host, and for types: it needs nothing of a device."""
    return _is_in_list("host", api) or api.startswith(tuple(_api_table()["other_devices"]))


def is_operator(api: str) -> bool:
    """False for an API that computes nothing: its documented dtypes are those its page was checked with."""
    return not _is_in_list("no_operators", api) and not api.startswith("torch.sym_")


def is_low_effort(api: str) -> bool:
    """True for an API without which a program does the same: a switch or a tool."""
    return _is_in_list("low_effort", api)


def called_by(api: str) -> str:
    """The API that one calls and does nothing else, with the same arguments; itself for any other."""
    return str(_api_table()["calls"].get(api, api))


def sure_limits(api: str) -> list[dict[str, Any]]:
    """Arguments of an API that are certain to meet a limit."""
    return list(_api_table()["sure_limits"].get(api, []))


@cache
def members_of(owner: str) -> frozenset[str]:
    """Last names of the documented members of a class or module of torch."""
    return frozenset(_api_table()["names"].get(owner, ()))


# --- names of torch --------------------------------------------------------------------------------------------------


@cache
def _aliases() -> dict[str, str]:
    found: dict[str, str] = {}
    for module, groups in read_table("support/torch_names.json")["aliases"].items():
        for owner, names in groups.items():
            for name in names:
                local, _, canonical = name.partition("=")
                found[f"{module}.{local}"] = f"{owner}.{canonical or local}"
    return found


@cache
def modules() -> frozenset[str]:
    """The public modules of torch."""
    return frozenset(read_table("support/torch_names.json")["modules"])


@cache
def _values() -> dict[str, frozenset[str]]:
    return {module: frozenset(names) for module, names in read_table("support/torch_names.json")["values"].items()}


@cache
def tensor_results(owner: str) -> frozenset[str]:
    """Names below `owner` (torch, torch.Tensor, torch.nn, torch.nn.functional) whose result is one tensor."""
    return frozenset(read_table("support/torch_names.json")["tensor_results"].get(owner, ()))


@cache
def star_names(module: str) -> frozenset[str]:
    """What `from module import *` brings of a module of torch; empty for modules that are not in the table."""
    return frozenset(read_table("support/torch_names.json")["stars"].get(module, ()))


@cache
def module_members() -> frozenset[str]:
    """The public members of torch.nn.Module."""
    return frozenset(read_table("support/torch_names.json")["module_members"])


@cache
def canonical(name: str) -> str:
    """The documented name of a torch API: `torch.nn.parallel.DataParallel` is `torch.nn.DataParallel`."""
    return name if documented(name) else _aliases().get(name, name)


@cache
def api_of(name: str) -> str:
    """The API that a dotted name of torch stands for, empty for a module, a constant or an attribute of one.

    A name that goes on behind an API (`torch.nn.Linear.forward`) is that member where it has an entry, else the API.
    """
    if name in modules():
        return ""
    head, tail = name, ""
    while head != "torch":
        known = canonical(head)
        if documented(known):
            member = f"{known}.{tail}"
            return member if tail and documented(member) else known
        owner, _, last = head.rpartition(".")
        if owner in modules():
            if last.startswith("__"):
                return ""
            return "" if last in _values().get(owner, ()) else head
        head, tail = owner, f"{last}.{tail}" if tail else last
    return ""
