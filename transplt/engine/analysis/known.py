"""What the tables in rules/ know of a name: an API, an environment variable, a package, a tuning, a word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from transplt.base.grouped import grouped
from transplt.base.settings import TORCH_VERSIONS
from transplt.base.text.cuda_words import WORDS
from transplt.base.text.requirement import normalised
from transplt.edits.helper_source import first_sentence, public_names
from transplt.engine.analysis.advice import advice_on
from transplt.engine.analysis.affinity import form_of
from transplt.engine.analysis.known_apis import OF_APIS, OF_CARDS, Fact, existing, rule_tables
from transplt.fixers.adaptors.table import adaptors
from transplt.fixers.tunings.table import tunings
from transplt.rules import support_tables as tables
from transplt.rules import weighing
from transplt.rules.fault_finding import guidance_on, names_with_guidance
from transplt.rules.host_settings import host_settings
from transplt.rules.kernels import kernel_called, kernel_in_module, kernels
from transplt.rules.package_releases import asked_for, freshest, needs_of, sets_of, stand_ins, torch_of
from transplt.rules.packages import function_notes, package_holding, package_installed_as, packages, what_to_do
from transplt.rules.pages import all_codes, class_page, load
from transplt.rules.releases import CPU_INDEX, release_of
from transplt.rules.silent_errors import silent_errors
from transplt.rules.since import rows_of_gone
from transplt.rules.tables import read_table
from transplt.rules.versions import in_order

_OPTIONS = "support/npu_options.json"
_CARRIES = {"yes": "with the same values", "partly": "partly with the same values", "no": "with different values"}
_TUNING = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_INDEX = "the package index that pip asks (scripts/releases.py, transplt facts update)"
#: What goes with each minor version of torch, by the names under which people ask for it.
_RELEASED = ("torch-npu", "torch_npu", "cann")
_MOST_PAGES = 8
_MOST_BELOW = 12


def facts_of(name: str) -> list[Fact]:
    """All that is known of a name as it is spelled in the tables; empty for one that none of them holds."""
    readers: tuple[Callable[[str], Iterator[Fact]], ...] = (
        *OF_APIS, _gone, _variable, _option, _package, _release, _companions, _kernel, _guidance, _tuning,
        _of_the_port, _word, _module, *OF_CARDS,
    )  # fmt: skip
    found = [fact for reader in readers for fact in reader(name)]
    if not found:
        return []
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w])")
    codes = [code for code in all_codes() if word.search(load(code).text())]  # whose pages name it
    found += [Fact("Page", f"its replacement, by torch and style: {page}")] if (page := class_page(name)) else []
    return [*found, *(Fact("Codes that mention it", load(code).title, "", code) for code in codes[:_MOST_PAGES])]


def resolved(name: str) -> str:
    """The name in the tables that is meant: also without `torch.` or another case, or the last part of just one API.

    Empty where none is.
    """
    wanted = name.strip().removesuffix("()")
    if wanted and facts_of(wanted):
        return wanted
    names = known_names()
    triton = f"triton.language.{wanted[3:]}" if wanted.startswith("tl.") else ""
    for each in (f"torch.{wanted}", triton, wanted.upper(), wanted.lower()):
        if each in names or each in tables.modules():
            return each
    same = [each for each in names if each.rpartition(".")[2] == wanted]
    return same[0] if len(same) == 1 else ""


def nearest(name: str, most: int = 5) -> list[str]:
    """Names in the tables that are like `name`; those with the same last part first, then those with one like it."""
    last = name.rpartition(".")[2]
    names = known_names()
    by_last = grouped((each.rpartition(".")[2], each) for each in names)
    same = by_last.get(last, [])
    like = difflib.get_close_matches(name[:100], names, n=most, cutoff=0.7)
    like += difflib.get_close_matches(name[:100].upper(), _variables(), n=most, cutoff=0.7)
    lasts = difflib.get_close_matches(last[:100], by_last, n=2, cutoff=0.75)
    like += [each for found in lasts for each in by_last[found]]
    return list(dict.fromkeys([*same[:most], *like]))[:most]


@cache
def known_names() -> tuple[str, ...]:
    """All names that something is known of, sorted."""
    documented = read_table("support/api_support.json")["names"].items()
    found = {f"{owner}.{name}" for owner, names in documented for name in names}
    found |= {rule.old for _, table in rule_tables() for rule in table} | weighing.executed_apis()
    found |= {each for setting in host_settings() for each in (setting.name, *setting.variables)}
    found |= {*_variables(), *tunings(), *read_table("support/tunings.json")["targets"], *existing()}
    found |= {key for row in packages() for key in _keys_of(row)} | {*function_notes()}
    found |= {*read_table(_OPTIONS)["options"]} | {name for row in rows_of_gone() for name in row["names"]}
    found |= {*read_table("support/npu_operators.json")["operators"], *names_with_guidance(), *_RELEASED, *asked_for()}
    found |= {name for row in silent_errors() for name in row.operators}
    found |= {name for row in kernels() for name in (row["name"], *row["operators"], *row["modules"])}
    return tuple(sorted(found))


# --- readers, one a table --------------------------------------------------------------------------------------------


@cache
def _variables() -> dict[str, dict[str, Any]]:
    table = read_table("support/env_vars.json")
    targets: dict[str, dict[str, Any]] = {
        row["npu"]: {} for row in table["cuda_to_npu"].values() if row.get("npu", "").isidentifier()
    }
    return {**targets, **table["npu_only"], **table["cuda_to_npu"]}


def _variable(name: str) -> Iterator[Fact]:
    row = _variables().get(name)
    if row is None:
        return
    parts = ["an environment variable of CANN or torch_npu"]
    if name in read_table("support/env_vars.json")["cuda_to_npu"]:
        parts = ["an environment variable without a counterpart on NPU"]
        if row.get("npu"):
            parts = [f"an environment variable that becomes {row['npu']}"]
            parts += [_CARRIES[each] for each in [row.get("value_carries_over")] if each in _CARRIES]
    parts += [f"default {row['default']}"] if row.get("default") else []
    parts += [row["note"]] if row.get("note") else []
    versions = in_order(row["versions"]) if "versions" in row else ()
    yield Fact("Variable", "; ".join(parts), row.get("source", "rules/support/env_vars.json"), versions=versions)
    used = [old for old, other in _variables().items() if other.get("npu") == name and old != name]
    if used:
        yield Fact("Variable", f"takes the place of {', '.join(sorted(used))}", "rules/support/env_vars.json")


def _gone(name: str) -> Iterator[Fact]:
    """A call that a release of torch refuses, a name that a package gave up, or a module of it that had such names."""
    found: dict[tuple[str, str], list[str]] = {}
    rows = [(row["name"], row) for row in read_table("support/refused_calls.json")["calls"]]
    counting = {(each, row.get("keyword")): row for row in rows_of_gone() for each in row["names"]}  # the last of them
    for each, row in (*rows, *((each, row) for (each, _), row in counting.items())):
        owner, _, last = each.rpartition(".")
        if name and name in (each, owner):
            text = f"{row['message'].replace('{name}', last if name == each else 'it')}; {row['help']}"
            found.setdefault((text, row["source"]), []).append("" if name == each else last)
    for (text, source), names in found.items():
        listed = ", ".join(filter(None, names[:_MOST_BELOW])) + (" ..." if names[_MOST_BELOW:] else "")
        yield Fact("Finding", f"{listed}: {text}" if listed else text, source, "NPU293")


def _option(name: str) -> Iterator[Fact]:
    row = read_table(_OPTIONS)["options"].get(name)
    if row is None:
        return
    parts = [f"an option of torch.npu.set_option ({row['about']})"]
    if "values" in row:
        parts.append(f"it takes {', '.join(row['values'])}")
    if "range" in row:
        parts.append(f"its value is a number from {row['range'][0]} to {row['range'][1]}")
    parts += ["deprecated in torch_npu"] if row.get("deprecated") else []
    yield Fact("Option", "; ".join(parts), read_table("support/npu_options.json")["_meta"]["source"], "NPU558")


def _keys_of(row: dict[str, Any]) -> set[str]:
    title = row["name"].partition(" (")[0]
    return {*row["import"], *row["pip"], *([title] if " " not in title else [])}


def _package(name: str) -> Iterator[Fact]:
    wanted = name.lower().replace("_", "-")
    found = [row for row in packages() if wanted in {key.lower().replace("_", "-") for key in _keys_of(row)}]
    by_wheel = package_installed_as(name)  # cupy-cuda12x
    yield from map(_row_fact, found or filter(None, [by_wheel]))
    held = package_holding(name)
    if held is not None:
        note = function_notes().get(name, "")
        yield Fact("Package", note or f"{name} is part of {held[1]}: see transplt explain {held[1]}")
        yield _row_fact(held[0])


def _row_fact(row: dict[str, Any]) -> Fact:
    meanings = read_table("support/third_party.json")["_meta"]["status"]
    imports = f" (import {', '.join(row['import'])})" if row["import"] else ""
    parts = [f"{row['name']}{imports}: {row['status'].replace('_', ' ')}, {meanings[row['status']]}"]
    parts += [f"since {row['since']}"] if row.get("since") else []
    parts += [f"from version {row['first']} on"] if row.get("first") and not row.get("since") else []
    parts += [what_to_do(row)] if what_to_do(row) else []
    checked = f"confidence: {row['confidence']}, checked in {row['checked']}"
    return Fact("Package", f"{'; '.join(parts)}; {checked}", row["source"])


def _kernel(name: str) -> Iterator[Fact]:
    last = name.rpartition(".")[2] if package_holding(name) is not None else name
    row = kernel_called(last) or kernel_in_module(name)
    if row is None:
        return
    source = f"{row['source']} (rules/support/kernels.json)"
    yield Fact("Kernel", f"{row['name']}, on CUDA {row['cuda']}", source)
    for call in row["npu"]:
        yield Fact("Kernel", f"on NPU {call}")
    yield Fact("Kernel", row["differs"] if row["npu"] else f"no kernel for NPUs is published; {row['differs']}")


def _release(name: str) -> Iterator[Fact]:
    if name not in _RELEASED:
        return
    yield Fact("Releases", "torch and torch-npu have the same minor version; CANN is installed on the host")
    for version in TORCH_VERSIONS:
        row = release_of(version)
        cann = f"CANN {row.cann}" if row.cann else "CANN: not documented yet"
        build = f"; on x86_64 torch=={row.x86_64} from {CPU_INDEX}" if row.x86_64 else ""
        text = f"torch=={row.torch} with torch-npu=={row.torch_npu}, {cann}, Python {row.python}{build}"
        yield Fact("Releases", text, versions=(version,))
    pairs = read_table("support/release_pairs.json")
    found = freshest()
    for each, of_it in found.builds["torch-npu"].items():
        cann = f"CANN {pairs['torch_npu'][each]}" if each in pairs["torch_npu"] else "CANN: not documented"
        yield Fact("Every release", f"torch-npu {each}, for torch {torch_of(each)}: {of_it.described}; {cann}")
    yield Fact("Every release", f"read on {found.read}", f"{_INDEX}; CANN: {pairs['sources']['torch_npu']}")


def _companions(name: str) -> Iterator[Fact]:
    """The releases of what stands for a package on NPUs, or of one that does, with what they go with."""
    found = freshest()
    for package in stand_ins(name) if name not in _RELEASED else ():
        builds = found.builds.get(package, {})
        stands_for = asked_for()[package]
        if not builds:
            yield Fact("Releases", f"the index has no release of {package}", _INDEX)
            continue
        newest = found.newest(package)
        later = [each for each in builds if each != newest and builds[each].day > builds[newest].day]
        place = f", for {stands_for}" if stands_for and normalised(name) == package else ""
        yield Fact("Releases", f"{package} {newest}{place}: {builds[newest].described}")
        if later:
            yield Fact("Releases", f"{package} {later[-1]}, a pre-release: {builds[later[-1]].described}")
        first = min(each.day for each in builds.values())
        count = f"{len(builds)} releases, the first of {first}; " if len(builds) > 1 else ""
        yield Fact("Releases", f"{count}read on {found.read}", _INDEX)
        needs, source = needs_of(package)
        if needs:
            yield Fact("Releases", f"{package} needs {needs}", source)
        for each in sets_of(package) if package != "torch-npu" else ():
            yield Fact("Goes together", each.described)


def _guidance(name: str) -> Iterator[Fact]:
    if (form := form_of(name)) is not None:
        yield Fact("Faster on NPU", f"{form['replacement']}; {form['caveats']}", form["source"], "NPU701")
    for setting in host_settings():
        if name in (setting.name, *setting.variables):
            yield Fact("Host", f"`{'; '.join(setting.lines)}`: {setting.what}; cost: {setting.cost}", setting.source)
    for each in guidance_on(name):
        yield Fact("Finding faults", each.text, each.source)
    for row in advice_on(tables.canonical(name)):
        yield Fact("Advice", f"{row['message']}; {row['help']}", row.get("source", ""), row["code"])


def _tuning(name: str) -> Iterator[Fact]:
    for topic, option, known in (("Tuning", "--tune", tunings), ("Adaptor", "--adapt", adaptors)):
        own = known().get(name) if _TUNING.fullmatch(name) else None  # the table imports every one
        if own is not None:
            yield Fact(topic, f"{option} {name}: {load(own.code).title}", "", own.code, tuple(own.versions))
    target = read_table("support/tunings.json")["targets"].get(name)
    if target is not None:
        yield Fact("Tuning", "written by a tuning", target["source"], versions=in_order(target["versions"]))


def _of_the_port(name: str) -> Iterator[Fact]:
    if (function := re.sub(r"^(?:npu_port|device)\.", "", name)) != name and function in public_names():
        yield Fact("Function of the port", first_sentence(function), "", "NPU156")


def _word(name: str) -> Iterator[Fact]:
    if name.lower().encode() in WORDS:
        yield Fact("Word", "a CUDA word: the report accounts for each place with it", "", "NPU602")
    for hint in read_table("support/files.json")["hints"]:
        if "{" not in hint["hint"] and re.fullmatch(hint["pattern"], name, re.IGNORECASE):
            kinds = ", ".join(hint["kinds"])
            yield Fact("Other files", f"in {kinds}: {hint['hint']}", "rules/support/files.json")


def _module(name: str) -> Iterator[Fact]:
    if name not in tables.modules():
        return
    below = [each for each in known_names() if each.startswith(f"{name}.")]
    listed = ", ".join(each[len(name) + 1 :] for each in below[:_MOST_BELOW])
    more = f": {listed}" + (" ..." if below[_MOST_BELOW:] else "") if below else ""
    yield Fact("Module", f"a module of torch; known names in it: {len(below)}{more}")
