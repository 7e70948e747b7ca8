"""What the tables in rules/ know of a name: an API, an environment variable, a package, a tuning, a word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from transplt.base.settings import TORCH_VERSIONS
from transplt.base.text.cuda_words import WORDS
from transplt.engine.analysis.advice import advice_on
from transplt.engine.analysis.affinity import form_of
from transplt.fixers.tunings.table import tunings
from transplt.rules import own_card, weighing
from transplt.rules import support_tables as tables
from transplt.rules.card_types import named_operators, refusals_of
from transplt.rules.fault_finding import guidance_on, names_with_guidance
from transplt.rules.host_settings import host_settings
from transplt.rules.kernels import kernel_called, kernel_in_module, kernels
from transplt.rules.packages import function_notes, package_holding, packages, what_to_do
from transplt.rules.pages import all_codes, load
from transplt.rules.rule import Kind, Rule
from transplt.rules.rule_set import Table, builtin_rules, parse_rules
from transplt.rules.silent_errors import CODE, errors_of, silent_errors
from transplt.rules.tables import read_table
from transplt.rules.torch_calls import overloads_of
from transplt.rules.versions import in_order
from transplt.rules.weighing import Status

_CARRIES = {"yes": "with the same values", "partly": "partly with the same values", "no": "with different values"}
_TUNING = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MOST_PAGES = 8
_VERDICTS = {
    Status.STOPS: ("work: nothing speaks against that it is not supported", "NPU520"),
    Status.DOUBTED: ("a remark: nothing but the documentation speaks against it", "NPU520"),
    Status.ON_CPU: ("a remark: torch_npu computes it on the CPU", "NPU523"),
}
_MOST_BELOW = 12


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known, who says so, and for which torch versions (empty: for any)."""

    topic: str
    text: str
    source: str = ""
    code: str = ""
    versions: tuple[str, ...] = ()


def facts_of(name: str) -> list[Fact]:
    """All that is known of a name as it is spelled in the tables; empty for one that none of them holds."""
    readers: tuple[Callable[[str], Iterator[Fact]], ...] = (
        _rules, _support, _operator, _names, _silent, _codemods, _variable, _option, _host, _package, _kernel, _faster,
        _guidance, _advice, _tuning, _word, _module, _own_card, _types,
    )  # fmt: skip
    found = [fact for reader in readers for fact in reader(name)]
    return [*found, *_pages(name)] if found else []


def _own_card(name: str) -> Iterator[Fact]:
    """What an operator of PyTorch, with its overload or without, did on the user's own card."""
    if "::" in name:
        for each in own_card.outcomes():
            if name in (each.operator, each.operator.partition(".")[0]):
                origin = each.origin
                where = f"{origin.card}, torch {origin.torch}, CANN {origin.cann or 'not known'}, {origin.date}"
                yield Fact("On your own card", f"{each.operator} {each} ({where})", f"card-read {origin.file}")


def _types(name: str) -> Iterator[Fact]:
    """Types of tensors that the operators of a name (`aten::index`, `torch.gather`) refuse, by CANN's sources."""
    base = name.removeprefix("aten::")
    operators = named_operators(base) if base != name else [each.operator for each in overloads_of(name)]
    for what, where in refusals_of(operators).items():
        yield Fact("Types refused", f"{what} ({', '.join(where)})", f"{what.source} (rules/support/card_types.json)")


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
    by_last: dict[str, list[str]] = {}
    for each in names:
        by_last.setdefault(each.rpartition(".")[2], []).append(each)
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
    found |= {rule.old for _, table in _rule_tables() for rule in table} | weighing.executed_apis()
    found |= {*_options(), *(each for setting in host_settings() for each in (setting.name, *setting.variables))}
    found |= {*_variables(), *tunings(), *read_table("support/tunings.json")["targets"], *_exists()}
    found |= {key for row in packages() for key in _keys_of(row)} | {*function_notes()}
    found |= {*read_table("support/npu_operators.json")["operators"], *names_with_guidance()}
    found |= {name for row in silent_errors() for name in row.operators}
    found |= {name for row in kernels() for name in (row["name"], *row["operators"], *row["modules"])}
    return tuple(sorted(found))


# --- readers, one a table --------------------------------------------------------------------------------------------


@cache
def _rule_tables() -> tuple[tuple[str, Table], ...]:
    found = []
    for version in TORCH_VERSIONS:
        found.append((version, builtin_rules(version)))
        profiler = Table()
        for rule in parse_rules(read_table("support/profiler.json"), "support/profiler.json", version, user=False):
            profiler.add(rule)
        found.append((version, profiler))
    return tuple(found)


def _rules(name: str) -> Iterator[Fact]:
    held: dict[Fact, list[str]] = {}
    for version, table in _rule_tables():
        for rule, prefix in _speaking(table, name):
            text = rule.message if rule.kind is Kind.UNSUPPORTED or prefix == name else ""
            if rule.renames:
                text = f"becomes {rule.new}{name[len(prefix) :]}" + (f" (with {prefix})" if prefix != name else "")
                if rule.args is not None and rule.args.message:
                    text += f"; not where {rule.args.message}"
            text += f"; {rule.help}" if rule.help else ""
            held.setdefault(Fact(_topic(rule), text, _source(rule), rule.code), []).append(version)
    for fact, versions in held.items():
        yield Fact(fact.topic, fact.text, fact.source, fact.code, tuple(versions))


def _speaking(table: Table, name: str) -> Iterator[tuple[Rule, str]]:
    matched = table.resolve(name)
    if matched is not None and (matched[1] == name or not (matched[0].listed or matched[0].imports_only)):
        yield matched
    every = [*table.args.get(name, ()), *table.last_args.get(name, ()), table.last_names.get(name)]
    yield from ((rule, name) for rule in every if rule is not None)


def _topic(rule: Rule) -> str:
    return "Rename" if rule.renames else "Argument" if rule.kind is Kind.ARGS else "Finding"


def _source(rule: Rule) -> str:
    origin = rule.origin or "similar.json"
    document = read_table(origin)
    for entry in document["rules"].get(rule.kind.value, ()):
        if rule.old in (entry.get("name"), entry.get("old_name"), entry.get("func_name")) and entry.get("source"):
            return f"{entry['source']} (rules/{origin})"
    own = document.get("source")
    return f"{own} (rules/{origin})" if own else f"rules/{origin}"


def _support(name: str) -> Iterator[Fact]:
    api = tables.canonical(name)
    held: dict[str, list[str]] = {}
    for version in tables.published():
        row = tables.verdict(api, version)
        if row is None:
            continue
        text = {"yes": "documented as supported", "no": "documented as not supported"}.get(row.status, "")
        text = text or f"documented with a limit: {row.limit}"
        text += f"; not on {', '.join(sorted(row.not_on))}" if row.not_on else ""
        held.setdefault(text if api == name else f"{text} (as {api})", []).append(version)
    source = f"{read_table('support/api_support.json')['source']} (rules/support/api_support.json)"
    for text, versions in held.items():
        yield Fact("Support", text, source, versions=tuple(versions))
    yield from _weighed(api)


def _weighed(api: str) -> Iterator[Fact]:
    """What the other witnesses say of an API, and what comes of it where that is not what the documentation says."""
    origin = "rules/support/witnesses.json"
    executed, ports = (f"{text} ({origin})" for text in (weighing.sources()["executed"], weighing.sources()["ports"]))
    kernels: dict[str, list[str]] = {}
    verdicts: dict[Status, list[str]] = {}
    for version in TORCH_VERSIONS:
        weighed = weighing.weigh(api, version)
        if weighed.executed or weighed.named:
            kernels.setdefault(replace(weighed, ports=0).witnesses[0], []).append(version)
        verdicts.setdefault(weighed.status, []).append(version)
    for text, versions in kernels.items():
        yield Fact("Kernels", text, executed, versions=tuple(versions))
    if reached := weighing.reaches(api):
        yield Fact("Kernels", f"it reaches {', '.join(f'aten::{name}' for name in reached)}", executed)
    if count := weighing.known_ports(api):
        used = f"{count} migrated projects that train on NPUs use it" if count > 1 else "a migrated project uses it"
        yield Fact("Ports", used, ports)
    for status, (text, code) in _VERDICTS.items():
        if status in verdicts:
            yield Fact("Verdict", text, code=code, versions=tuple(verdicts[status]))


@cache
def _exists() -> dict[str, tuple[str, ...]]:
    table = read_table("support/npu_names.json")
    found: dict[str, tuple[str, ...]] = {}
    for text, names in table["names"].items():
        found.update(dict.fromkeys(names, in_order(text)))
    return found


def _operator(name: str) -> Iterator[Fact]:
    table = read_table("support/npu_operators.json")
    row = table["operators"].get(name)
    if row is None:
        return
    parts = [row["for"], f"documented for {', '.join(row['cards'])}"]
    parts += ["its interface may change (beta)"] if row.get("beta") and not row.get("deprecated") else []
    parts += ["to be removed, its kernel is no longer maintained"] if row.get("deprecated") else []
    parts += [f"named in its place: {', '.join(row['instead'])}"] if "instead" in row else []
    source = f"{table['_meta']['source']} (rules/support/npu_operators.json)"
    yield Fact("Operator of torch_npu", "; ".join(parts), source)
    if name not in _exists():
        yield Fact("Operator of torch_npu", "in none of the wheels of torch_npu that were read")


def _names(name: str) -> Iterator[Fact]:
    source = f"{read_table('support/npu_names.json')['source']} (rules/support/npu_names.json)"
    news = [fact.text.removeprefix("becomes ").partition(" ")[0].rstrip(";") for fact in _rules(name)]
    for each in dict.fromkeys([name, *news]):
        if each in _exists():
            yield Fact("torch_npu", f"{each} is there", source, versions=_exists()[each])


def _silent(name: str) -> Iterator[Fact]:
    for row in errors_of(name):
        text = f"{row.text()}; {row.do}" + (f"; {row.more()}" if row.more() else "")
        yield Fact("Wrong without an error", text, row.source, CODE)


def _codemods(name: str) -> Iterator[Fact]:
    for key, row in read_table("support/codemod_facts.json").items():
        if key == name or key.startswith(f"{name}(") or key == f'string "{name}"':
            text = f"{key} becomes {row['npu']}" if row.get("npu") else f"{key} has no counterpart on NPU"
            more = row.get("note") or row.get("why")
            yield Fact("Form", text + (f"; {more}" if more else ""), "rules/support/codemod_facts.json")


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


@cache
def _options() -> dict[str, dict[str, Any]]:
    options: dict[str, dict[str, Any]] = read_table("support/npu_options.json")["options"]
    return options


def _option(name: str) -> Iterator[Fact]:
    row = _options().get(name)
    if row is None:
        return
    parts = [f"an option of torch.npu.set_option ({row['about']})"]
    if "values" in row:
        parts.append(f"it takes {', '.join(row['values'])}")
    if "range" in row:
        parts.append(f"it takes a number from {row['range'][0]} to {row['range'][1]}")
    parts += ["torch_npu warns that it goes"] if row.get("deprecated") else []
    yield Fact("Option", "; ".join(parts), read_table("support/npu_options.json")["_meta"]["source"], "NPU558")


def _host(name: str) -> Iterator[Fact]:
    for setting in host_settings():
        if name in (setting.name, *setting.variables):
            yield Fact("Host", f"`{'; '.join(setting.lines)}`: {setting.what}; cost: {setting.cost}", setting.source)


def _keys_of(row: dict[str, Any]) -> set[str]:
    title = row["name"].partition(" (")[0]
    return {*row["import"], *row["pip"], *([title] if " " not in title else [])}


def _package(name: str) -> Iterator[Fact]:
    wanted = name.lower().replace("_", "-")
    for row in packages():
        if wanted in {key.lower().replace("_", "-") for key in _keys_of(row)}:
            yield _row_fact(row)
    held = package_holding(name)
    if held is not None:
        note = function_notes().get(name, "")
        yield Fact("Package", note or f"{name} is part of {held[1]}, which has a row")
        yield _row_fact(held[0])


def _row_fact(row: dict[str, Any]) -> Fact:
    meanings = read_table("support/third_party.json")["_meta"]["status"]
    imports = f" (import {', '.join(row['import'])})" if row["import"] else ""
    parts = [f"{row['name']}{imports}: {row['status'].replace('_', ' ')}, {meanings[row['status']]}"]
    parts += [f"since {row['since']}"] if row.get("since") else []
    parts += [what_to_do(row)] if what_to_do(row) else []
    checked = f"confidence: {row['confidence']}, read in {row['checked']}"
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


def _faster(name: str) -> Iterator[Fact]:
    form = form_of(name)
    if form is not None:
        yield Fact("Faster on NPU", f"{form['replacement']}; {form['caveats']}", form["source"], "NPU701")


def _guidance(name: str) -> Iterator[Fact]:
    for each in guidance_on(name):
        yield Fact("Finding faults", each.text, each.source)


def _advice(name: str) -> Iterator[Fact]:
    for row in advice_on(tables.canonical(name)):
        yield Fact("Advice", f"{row['message']}; {row['help']}", row.get("source", ""), row["code"])


def _tuning(name: str) -> Iterator[Fact]:
    own = tunings().get(name) if _TUNING.fullmatch(name) else None  # the table imports every tuning
    if own is not None:
        yield Fact("Tuning", f"--tune {name}: {load(own.code).title}", "", own.code, tuple(own.versions))
    target = read_table("support/tunings.json")["targets"].get(name)
    if target is not None:
        yield Fact("Tuning", "what a tuning writes", target["source"], versions=in_order(target["versions"]))


def _word(name: str) -> Iterator[Fact]:
    if name.lower().encode() in WORDS:
        yield Fact("Word", "a word of CUDA: each place that holds it is accounted for", "", "NPU602")
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
    yield Fact("Module", f"a module of torch; names below it that something is known of: {len(below)}{more}")


def _pages(name: str) -> Iterator[Fact]:
    """Codes whose pages name it."""
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w])")
    found = [code for code in all_codes() if word.search(load(code).text())]
    for code in found[:_MOST_PAGES]:
        yield Fact("Codes that speak of it", load(code).title, "", code)
