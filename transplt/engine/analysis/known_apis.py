"""What the tables in rules/ know of an API: rules, documentation and other witnesses, names of torch_npu, own cards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from transplt.base.settings import TORCH_VERSIONS
from transplt.rules import own_card, weighing
from transplt.rules import support_tables as tables
from transplt.rules.card_types import named_operators, refusals_of
from transplt.rules.rule import Kind, Rule
from transplt.rules.rule_set import Table, builtin_rules, parse_rules
from transplt.rules.silent_errors import CODE, errors_of
from transplt.rules.tables import read_table
from transplt.rules.torch_calls import overloads_of
from transplt.rules.versions import in_order
from transplt.rules.weighing import Status

_VERDICTS = {
    Status.STOPS: ("work to do: not supported, and no other source contradicts this", "NPU520"),
    Status.DOUBTED: ("a remark: only the documentation says that it is not supported", "NPU520"),
    Status.ON_CPU: ("a remark: torch_npu computes it on the CPU", "NPU523"),
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known, who says so, and for which torch versions (empty: for any)."""

    topic: str
    text: str
    source: str = ""
    code: str = ""
    versions: tuple[str, ...] = ()


@cache
def rule_tables() -> tuple[tuple[str, Table], ...]:
    """The built-in rules for each torch, and those of its profiler."""
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
    for version, table in rule_tables():
        for rule, prefix in _speaking(table, name):
            text = rule.message if rule.kind is Kind.UNSUPPORTED or prefix == name else ""
            if rule.renames:
                text = f"becomes {rule.new}{name[len(prefix) :]}" + (f" (with {prefix})" if prefix != name else "")
                if rule.args is not None and rule.args.message:
                    text += f"; not where {rule.args.message}"
            text += f"; {rule.help}" if rule.help else ""
            topic = "Rename" if rule.renames else "Argument" if rule.kind is Kind.ARGS else "Finding"
            held.setdefault(Fact(topic, text, _source(rule), rule.code), []).append(version)
    for fact, versions in held.items():
        yield Fact(fact.topic, fact.text, fact.source, fact.code, tuple(versions))


def _speaking(table: Table, name: str) -> Iterator[tuple[Rule, str]]:
    matched = table.resolve(name)
    if matched is not None and (matched[1] == name or not (matched[0].listed or matched[0].imports_only)):
        yield matched
    every = [*table.args.get(name, ()), *table.last_args.get(name, ()), table.last_names.get(name)]
    yield from ((rule, name) for rule in every if rule is not None)


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
    yield from _weighed(api, any(fact.topic == "Finding" for fact in _rules(name)))


def _weighed(api: str, ruled: bool) -> Iterator[Fact]:
    """What other witnesses say of an API, and what comes of it if no rule, nor the documentation, says the same."""
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
        if status in verdicts and not ruled:
            yield Fact("Verdict", text, code=code, versions=tuple(verdicts[status]))


@cache
def existing() -> dict[str, tuple[str, ...]]:
    """The names of torch_npu, with the torch versions that have them."""
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
    parts += [f"use instead: {', '.join(row['instead'])}"] if "instead" in row else []
    source = f"{table['_meta']['source']} (rules/support/npu_operators.json)"
    yield Fact("Operator of torch_npu", "; ".join(parts), source)
    if name not in existing():
        yield Fact("Operator of torch_npu", "in no torch_npu wheel that was read")


def _names(name: str) -> Iterator[Fact]:
    source = f"{read_table('support/npu_names.json')['source']} (rules/support/npu_names.json)"
    news = [fact.text.removeprefix("becomes ").partition(" ")[0].rstrip(";") for fact in _rules(name)]
    for each in dict.fromkeys([name, *news]):
        if each in existing():
            yield Fact("torch_npu", f"{each} is there", source, versions=existing()[each])


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


#: The readers of these tables, in the order in which they speak, and those of what cards do.
OF_APIS: tuple[Callable[[str], Iterator[Fact]], ...] = (_rules, _support, _operator, _names, _silent, _codemods)
OF_CARDS: tuple[Callable[[str], Iterator[Fact]], ...] = (_own_card, _types)
