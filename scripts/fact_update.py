"""Writes what two wheels say into scripts/facts/: one version of torch and the torch_npu for it, added or read again.

Every file keeps its ranges; a version that brings no news adds its number to the lists of versions and changes nothing
else. Where the sources of a wheel cannot say whether a name is there (it comes from C++, or from torch itself), the
version is taken to be as the one before it. What documents alone tell, the support list, is not published yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import fact_store
from fact_store import Entry, members, ranged
from wheel_names import Names
from wheel_reader import Module, Wheel, module_names

_DOTTED = re.compile(r"torch(_npu)?(\.\w+)+")
_TARGET = re.compile(r"torch_npu(?:\.\w+)+")
#: Modules of torch_npu whose public modules are kept; of `torch_npu.npu` all are.
_KEPT = ("npu", "optim", "contrib", "profiler", "utils", "distributed", "hccl", "multiprocessing", "dynamo", "asd")
#: Modules of torch whose names are compared between versions: what is public, and not for torch's own tests.
_SKIPPED = ("torch.testing", "torch.utils.benchmark", "torch.contrib", "torch.onnx.ops")
_NOT_PUBLISHED = {"source": "", "date": "", "kind": "its support list is not published yet"}


@dataclass(frozen=True, slots=True)
class Step:
    """One version, the one before it (empty: none), and the wheels to read."""

    version: str
    before: str
    torch: Wheel
    npu: Wheel

    def spread(self, text: str, known: Sequence[str], seen: bool | None) -> str:
        """A range over `known`, with this version in it if `seen`; if that is None, as in the version before."""
        held = set(members(text, known))
        if seen is None:
            seen = self.version in held if self.version in known else self.before in held
        held = held | {self.version} if seen else held - {self.version}
        return ranged(held, in_order([*known, self.version]))


def in_order(versions: Iterable[str]) -> tuple[str, ...]:
    """Versions, each once, oldest first."""
    return tuple(sorted(set(versions), key=fact_store.key))


def update(step: Step, python: str) -> None:
    """Write what the wheels of a step say into every file of facts; `python` is the range of Pythons they are for."""
    known = fact_store.wheels()
    operators(step)
    modules(step)
    wheel_lists(step)
    torch_names(step)
    schemas = custom_ops(step, known)
    names = Names(step.npu)
    cuda_names(step, known, names)
    variables(step, known)
    faster_forms(step, known, names, schemas)
    verdicts = fact_store.read("verdicts")
    verdicts["versions"].setdefault(step.version, _NOT_PUBLISHED)
    fact_store.write("verdicts", verdicts)
    table = fact_store.read("versions")
    row = table["torch"].get(step.version) or {
        "torch": re.sub(r"^==|\.\*$", "", step.npu.requires("torch")),
        "torch_npu": step.npu.version,
        "cann": "",
        "python": python,
    }
    table["torch"][step.version] = row | {"wheel": step.npu.version}
    table["torch"] = {version: table["torch"][version] for version in in_order(table["torch"])}
    fact_store.write("versions", table)
    fact_store.versions.cache_clear()


def kept(module: str) -> bool:
    """True for the modules of torch_npu that stand in the facts."""
    parts = module.split(".")
    return (
        module == "torch_npu"
        or module.startswith("torch_npu.npu.")
        or (parts[1] in _KEPT and not any(part.startswith("_") for part in parts))
    )


def modules(step: Step) -> None:
    """torch_npu_api: names and signatures of the modules."""
    table = fact_store.read("torch_npu_api")
    contents = fact_store.wheel_modules()
    exposed = fact_store.wheel_functions()
    read = in_order([*table["read"], step.version])
    found = {name: module_names(step.npu.tree(name)) for name in step.npu.sources if kept(name)}
    contents[step.version] = {name: _content(module) for name, module in found.items()}
    exposed[step.version] = sorted(step.npu.public_functions())
    table["read"] = list(read)
    table["public_functions"] = _grouped_by_version(exposed, read)
    table["modules"] = {
        name: _module_row({version: contents[version][name] for version in read if name in contents[version]}, read)
        for name in sorted({name for version in read for name in contents[version]})
    }
    fact_store.write("torch_npu_api", table)


def _content(module: Module) -> Entry:
    public = None if module.public is None else list(module.public)
    return {"all": public, "toplevel": list(module.bound), "signatures": module.signatures}


def _module_row(contents: dict[str, Entry], read: Sequence[str]) -> Entry:
    public = {version: content["all"] for version, content in contents.items() if content["all"] is not None}
    signatures: Entry = {}
    for name in sorted({name for content in contents.values() for name in content["signatures"]}):
        forms: dict[str, set[str]] = {}
        for version, content in contents.items():
            if name in content["signatures"]:
                forms.setdefault(content["signatures"][name], set()).add(version)
        signatures[name] = {ranged(held, read): text for text, held in forms.items()}
    return {
        "in": ranged(set(contents), read),
        "names": _grouped_by_version({version: content["toplevel"] for version, content in contents.items()}, read),
        "has_all": ranged(set(public), read),
        "all": _grouped_by_version(public, read),
        "signatures": signatures,
    }


def _grouped_by_version(names: dict[str, list[str]], read: Sequence[str]) -> dict[str, list[str]]:
    held: dict[str, set[str]] = {}
    for version, listed in names.items():
        for name in listed:
            held.setdefault(name, set()).add(version)
    return fact_store.grouped(held, read)


def custom_ops(step: Step, known: Sequence[str]) -> dict[str, list[str]]:
    """custom_ops: operators that torch_npu brings, with the schemas of the newest wheel. Gives those it has read."""
    table, found = fact_store.read("custom_ops"), step.npu.schemas()
    newest = step.version == in_order([*known, step.version])[-1]
    for name in sorted({*table["ops"], *found}):
        row = table["ops"].setdefault(name, {"versions": "", "schema": found.get(name)})
        row["versions"] = step.spread(row["versions"], known, name in found)
        if newest and name in found:
            row["schema"] = found[name]
    table["ops"] = dict(sorted(table["ops"].items()))
    fact_store.write("custom_ops", table)
    return found


def cuda_names(step: Step, known: Sequence[str], names: Names) -> None:
    """cuda_to_npu: which names torch_npu has, with which parameters; public names that torch.cuda did not have."""
    table = fact_store.read("cuda_to_npu")
    of_torch = Names(step.torch)
    for module in ("torch.cuda", "torch.cuda.memory"):
        for name in module_names(step.torch.tree(module)).public or ():
            full = f"{module}.{name}"
            if full not in table["names"]:
                target = full.replace("torch.cuda", "torch.npu", 1)
                there = names.has(target)
                table["names"][full] = {
                    "npu": target if there else None,
                    "exists_in": "",
                    "status": "same" if there else "missing",
                    "note": "",
                    "source": f"torch_npu wheels (module source read with ast); in torch from {step.version} on",
                }
    for name, fact in table["names"].items():
        target = fact["npu"] if _DOTTED.fullmatch(fact["npu"] or "") else None
        fact["exists_in"] = step.spread(fact["exists_in"], known, names.has(target) if target else None)
        if "stub_in" in fact:
            fact["stub_in"] = step.spread(fact["stub_in"], known, None)
        if "args" in fact:
            takes, wants = names.parameters(target or ""), of_torch.parameters(name)
            forms = fact["args"]["npu"]
            same = wants is not None and takes == wants
            if takes is not None and not same:
                forms.setdefault(takes, "")
            for form in forms:
                seen = None if takes is None else form == takes and not same
                forms[form] = step.spread(forms[form], known, seen)
            fact["args"]["npu"] = {form: text for form, text in forms.items() if text}
    fact_store.write("cuda_to_npu", table)


def variables(step: Step, known: Sequence[str]) -> None:
    """env_vars: which variables the library or the modules name. Those that CANN reads too are left as they were."""
    table = fact_store.read("env_vars")
    for section in ("cuda_to_npu", "npu_only"):
        for name, row in table[section].items():
            if "found_in" in row:
                seen = None if name in table["by_hand"] else step.npu.names_variable(row.get("npu") or name)
                row["found_in"] = step.spread(row["found_in"], known, seen)
    fact_store.write("env_vars", table)


def operators(step: Step) -> None:
    """operators: those with an NPU kernel. On names in `aside` the lists of op-plugin and of the wheel disagree."""
    table, found = fact_store.read("operators"), step.npu.operators()
    known, aside = table["read"], set(table["aside"])
    of_section = {"official": "supported", "symint": "symint", "quant": "quant", "custom": "custom"}
    for section, rows in table["table"].items():
        has = found[of_section[section]]
        for name in sorted({*rows, *(has - aside)}):
            seen = None if name in aside else name in has
            rows[name] = step.spread(rows.get(name, ""), known, seen)
        table["table"][section] = {name: rows[name] for name in sorted(rows) if rows[name]}
    table["read"] = list(in_order([*known, step.version]))
    fact_store.write("operators", table)


def wheel_lists(step: Step) -> None:
    """wheel_lists: what transfer_to_npu replaces, and environment variables that the modules read."""
    lists = {f"transfer_to_npu: {name}": words for name, words in step.npu.transferred().items()}
    _lists("wheel_lists", step.version, lists | {"environment variables": step.npu.variables()})


def torch_names(step: Step) -> None:
    """torch_names: what the public modules of torch list in `__all__`."""
    found: dict[str, set[str]] = {}
    for module in step.torch.sources:
        if not module.startswith(_SKIPPED) and not any(part.startswith("_") for part in module.split(".")):
            public = module_names(step.torch.tree(module)).public
            if public is not None:
                found[module] = set(public)
    _lists("torch_names", step.version, found)


def _lists(file: str, version: str, found: dict[str, set[str]]) -> None:
    table = fact_store.read(file)
    before = tuple(table["read"])
    read = in_order([*before, version])
    rows: Entry = {}
    for name in sorted({*table["lists"], *found}):
        old = table["lists"].get(name, {})
        held = {each: set(fact_store.in_version(old, each, before)) for each in before if each != version}
        held[version] = found.get(name, set())
        rows[name] = _grouped_by_version({each: sorted(words) for each, words in held.items()}, read)
    table["read"], table["lists"] = list(read), rows
    fact_store.write(file, table)


def faster_forms(step: Step, known: Sequence[str], names: Names, schemas: dict[str, list[str]]) -> None:
    """affinity: in which versions a replacement exists."""
    table = fact_store.read("affinity")
    for row in table["replacements"]:
        if row.get("exists_in") is None:
            continue
        target = _TARGET.match(row["replacement"] or "")
        seen: bool | None = None
        if target is not None:
            operator = target[0].removeprefix("torch_npu.")
            seen = True if operator in schemas else names.has(target[0])
        row["exists_in"] = step.spread(row["exists_in"], known, seen)
    fact_store.write("affinity", table)


def news(step: Step) -> Iterator[str]:
    """What changed in meaning from the version before, from the facts alone: one line a thing."""
    yield from _module_news(step)
    among = fact_store.wheels()
    for title, rows, field in (
        ("operator of torch_npu", fact_store.read("custom_ops")["ops"], "versions"),
        ("name for torch.cuda's", fact_store.read("cuda_to_npu")["names"], "exists_in"),
        ("environment variable", fact_store.read("env_vars")["cuda_to_npu"], "found_in"),
        ("environment variable", fact_store.read("env_vars")["npu_only"], "found_in"),
    ):
        yield from _came(step, title, {name: members(row.get(field) or "", among) for name, row in rows.items()})
    for name, fact in fact_store.read("cuda_to_npu")["names"].items():
        if fact["source"].endswith(f"in torch from {step.version} on"):
            yield f"new name of torch: {name}, on NPU: {fact['npu'] or 'nothing'}"
    for section, operators_ in fact_store.operators().items():
        yield from _came(step, f"kernel ({section})", operators_)
    for file, title in (("wheel_lists", "in"), ("torch_names", "in")):
        table = fact_store.read(file)
        for name, groups in table["lists"].items():
            held = {word: members(text, table["read"]) for text, words in groups.items() for word in words}
            yield from _came(step, f"{title} {name}:", held)


def _module_news(step: Step) -> Iterator[str]:
    contents = fact_store.wheel_modules()
    now, before = contents[step.version], contents.get(step.before, {})
    for module in sorted({*now, *before}):
        if any(part.startswith("_") for part in module.split(".")) or module not in now or module not in before:
            continue
        old, new = before[module], now[module]
        for name in sorted({*(new["all"] or ())} - {*(old["all"] or ())}):
            yield f"new: {module}.{name}"
        for name in sorted({*(old["all"] or ())} - {*(new["all"] or ())}):
            yield f"gone: {module}.{name}"
        for name in sorted({*old["signatures"]} & {*new["signatures"]}):
            if old["signatures"][name] != new["signatures"][name]:
                yield f"{module}.{name}({old['signatures'][name]}) is now ({new['signatures'][name]})"


def _came(step: Step, title: str, held: dict[str, list[str]]) -> Iterator[str]:
    for name, versions in held.items():
        if (step.version in versions) != (step.before in versions):
            yield f"{'new' if step.version in versions else 'gone'}: {title} {name}"
