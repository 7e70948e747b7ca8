"""The account of a file: every CUDA-bound token is converted, manual, unknown, or ignored with a reason."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

from transplt.edits.edit import Note
from transplt.edits.work import Work
from transplt.finding import Effort, Finding, Level, TokenCount
from transplt.syntax.modules import import_base
from transplt.syntax.scopes import Binding
from transplt.text.cuda_words import WORDS, Token, find_tokens, mentions_cuda
from transplt.text.source import Source
from transplt.values.callees import FOREIGN

#: Words that are whole identifiers as often as parts of one.
_ALIAS = "an alias: what it stands for has moved"
_WORDS = tuple(form for word in WORDS for form in (word.decode(), word.decode().upper(), word.decode().capitalize()))
_NAME = re.compile(rb"[A-Za-z0-9_\x80-\xff]*")
_NAME_END = re.compile(rb"[A-Za-z0-9_\x80-\xff]*\Z")
_INFO = "a remark, no work left"

Range = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Account:
    """The sums of one file, what is said of the tokens nobody accounts for, and the ignored tokens by reason."""

    tokens: TokenCount
    unknown: list[Note]
    reasons: tuple[tuple[str, int], ...]


class _Cover:
    """Ranges with a reason each; asks for tokens in any order cost a binary search.

    Of the ranges that hold a token the one that begins last gives the reason: it is the most specific.
    """

    def __init__(self, ranges: Iterable[Range]) -> None:
        self.ranges = sorted(ranges, key=lambda item: (item[0], -item[1]))
        self.starts = [item[0] for item in self.ranges]
        # reach[i]: the range among the first i + 1 that ends last.
        self.reach: list[int] = []
        for index, item in enumerate(self.ranges):
            best = self.reach[-1] if self.reach else index
            self.reach.append(index if item[1] >= self.ranges[best][1] else best)

    def reason(self, token: Token) -> str | None:
        """The reason of a range that holds the token, None when there is none."""
        index = bisect_right(self.starts, token.start) - 1
        if index < 0:
            return None
        for near in (index, self.reach[index]):
            if self.ranges[near][1] >= token.end:
                return self.ranges[near][2]
        return None


def settle(
    work: Work,
    applied: Sequence[tuple[int, int, bytes]],
    findings: Iterable[Finding],
    switched_off: Callable[[str, int, int], str],
) -> Account:
    """Count the tokens of a file and say of those that nothing accounts for that they are unknown.

    `applied` are the edits of the output (start, end, new bytes), sorted; `findings` is what is said without an edit;
    `switched_off` gives the reason why a code is not wanted from one line to another, empty when it is.
    """
    source = work.source
    tokens = find_tokens(source.utf8)
    live = [token for token in tokens if token.where != "comment"]
    if not live:
        return Account(TokenCount(comments=len(tokens)), [], ())
    manual: list[Range] = []
    unknown: list[Range] = []
    ignored: list[Range] = [*((*each.extent, each.reason) for each in work.kept), *own_names(work, applied)]
    for finding in findings:
        extent = (finding.span.start, finding.span.end)
        if finding.ignored or finding.level is Level.INFO:
            ignored.append((*extent, finding.ignored or _INFO))
        else:
            (unknown if finding.level is Level.UNKNOWN else manual).append((*extent, ""))
    converted = _converted(source, live, applied)
    by_hand, open_, stays = _Cover(manual), _Cover(unknown), _Cover(ignored)
    longer = _LongerNames(work)
    counts = dict.fromkeys(("converted", "manual", "unknown", "ignored"), 0)
    reasons: Counter[str] = Counter()
    left: list[Note] = []
    for token in live:
        if token.start in converted:
            counts["converted"] += 1
        elif by_hand.reason(token) is not None:
            counts["manual"] += 1
        elif open_.reason(token) is not None:
            counts["unknown"] += 1
        elif (reason := stays.reason(token) or longer.reason(token)) is not None:
            counts["ignored"] += 1
            reasons[reason] += 1
        else:
            note = _unknown(source, token)
            line = source.position(token.start)[0]
            reason = switched_off(note.code, line, line)
            counts["ignored" if reason else "unknown"] += 1
            if reason:
                reasons[reason] += 1
            left.append(note)
    count = TokenCount(len(live), comments=len(tokens) - len(live), **counts)
    return Account(count, _one_a_line(source, left), tuple(sorted(reasons.items())))


def _converted(source: Source, live: list[Token], applied: Sequence[tuple[int, int, bytes]]) -> set[int]:
    """Starts of the tokens that an edit took away: of each word as many as the new text has less of it."""
    gone: set[int] = set()
    index = 0
    for start, end, new in applied:
        while index < len(live) and live[index].start < start:
            index += 1
        inside = []
        while index < len(live) and live[index].end <= end:
            inside.append(live[index])
            index += 1
        if not inside:
            continue
        lowered = new.lower()
        words = Counter(source.utf8[token.start : token.end].lower() for token in inside)
        allowed = {word: count - lowered.count(word) for word, count in words.items()}
        for token in inside:
            word = source.utf8[token.start : token.end].lower()
            if allowed[word] > 0:
                allowed[word] -= 1
                gone.add(token.start)
    return gone


def _unknown(source: Source, token: Token) -> Note:
    text = source.slice(token.start, token.end)
    return Note(
        (token.start, token.end),
        "NPU602",
        Level.UNKNOWN,
        f"{text!r} stands here and no rule knows what it is",
        help="see whether it binds the program to CUDA; if not, add `# transplt: ignore[NPU602]` with the reason",
        effort=Effort.LOW,
    )


def _one_a_line(source: Source, notes: list[Note]) -> list[Note]:
    """At most one note for each line and word: the reader looks at lines."""
    seen: set[tuple[int, str]] = set()
    kept = []
    for note in notes:
        key = (source.position(note.extent[0])[0], note.message)
        if key not in seen:
            seen.add(key)
            kept.append(note)
    return kept


# --- longer identifiers ----------------------------------------------------------------------------------------------


class _LongerNames:
    """Why an identifier that merely holds a CUDA word (`use_cuda`, `CudaModule`, `is_nccl_ok`) stays."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.known: dict[tuple[str, bool], str | None] = {}
        self.keywords: set[str] | None = None
        self.bound: dict[str, list[Binding]] | None = None

    def reason(self, token: Token) -> str | None:
        if token.where != "code":
            return None
        utf8 = self.work.source.utf8
        head = _NAME_END.search(utf8, max(0, token.start - 200), token.start)
        tail = _NAME.match(utf8, token.end)
        assert head is not None and tail is not None
        if not head.group() and not tail.group():
            return None
        name = utf8[head.start() : tail.end()].decode()
        dotted = utf8[head.start() - 1 : head.start()] == b"."
        key = (name, dotted)
        if key not in self.known:
            self.known[key] = self._why(name, dotted)
        return self.known[key]

    def _why(self, name: str, dotted: bool) -> str | None:
        bindings = self._bindings().get(name)
        if bindings:
            imported = [binding.target for binding in bindings if binding.kind == "import"]
            if not imported:
                return "a name of the project's own"
            return self._imported(imported[0])
        scan = self.work.scan
        if name in self._keywords() and not dotted:
            return "a keyword: its name is the callee's"
        if name in scan.attributes:
            return "an attribute: its name stays"
        if name in scan.names:
            return "a name that another file brings"
        for node in scan.imports:
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if any(name in part.split(".") for part in (module, *(alias.name for alias in node.names))):
                return self._imported(module or next(alias.name for alias in node.names if name in alias.name))
        return "a name of the project's own"

    def _imported(self, target: str) -> str:
        root = target.split(".")[0]
        if root == "torch":
            return "a name of torch that stays"
        if self.work.slots.own.project_name(target) is not None:
            return "a name of the project's own"
        return f"a name of the package {root}"

    def _bindings(self) -> dict[str, list[Binding]]:
        if self.bound is None:
            self.bound = {}
            for scope in self.work.scan.scopes.values():
                for name, bindings in scope.bindings.items():
                    self.bound.setdefault(name, bindings)
        return self.bound

    def _keywords(self) -> set[str]:
        if self.keywords is None:
            self.keywords = {word.arg for call in self.work.scan.calls for word in call.keywords if word.arg}
        return self.keywords


# --- identifiers that are the word itself ----------------------------------------------------------------------------


def own_names(work: Work, applied: Sequence[tuple[int, int, bytes]]) -> list[Range]:
    """Identifiers that are exactly `cuda`, `nccl`, ...: variables, parameters, keywords, other libraries' modules."""
    scan, source = work.scan, work.source
    kept: list[Range] = []
    words = [word for word in _WORDS if word.encode() in source.utf8]
    known: dict[int, str | None] = {}  # by what binds a name, else by the scope in which it stands
    moved = _moved_now(work, applied)
    for word in words:
        known.clear()
        for node in scan.names.get(word, ()):
            scope = scan.scope_of(node)
            found = work.names.lookup(word, scope)
            key = id(scope) if found is None else id(found[1])
            if key not in known:
                known[key] = _why_name(work, node, moved)
            reason = known[key]
            if reason is not None:
                kept.append((*source.extent(node), reason))
        if not word.islower():
            for attribute in scan.attributes.get(word, ()):
                root = (work.names.qualified(attribute) or "").partition(".")[0]
                if root in FOREIGN:
                    kept.append((*source.extent(attribute), f"{root}'s own {word}"))
                elif _is_member(work, attribute):
                    kept.append((*source.extent(attribute), "a member of the project's own"))
    for scope in scan.scopes.values():
        for word in words:
            for binding in scope.bindings.get(word, ()):
                at = _name_of_binding(source, binding, word)
                if at is not None:
                    kept.append((at, at + len(word), "a name of the project's own"))
                elif (alias := _moved_alias(work, binding, word)) is not None:
                    end = source.offset(alias.end_lineno or alias.lineno, alias.end_col_offset or 0)
                    kept.append((end - len(word), end, _ALIAS))
    kept += _imported_names(work)
    for call in scan.calls:
        for keyword in call.keywords:
            if keyword.arg in words:
                start = source.extent(keyword)[0]
                kept.append((start, start + len(keyword.arg), "a keyword: its name is the callee's"))
    return kept


def _moved_now(work: Work, applied: Sequence[tuple[int, int, bytes]]) -> set[Binding]:
    """Imports that bring something new under the name that they had."""
    kept = [binding for binding, name in work.renamed.items() if name in _WORDS]
    starts = [start for start, _, _ in applied]
    found: set[Binding] = set()
    for binding in kept:
        assert isinstance(binding.node, ast.stmt)
        start, end = work.source.extent(binding.node)
        if bisect_right(starts, end) > bisect_left(starts, start):
            found.add(binding)
    return found


def _why_name(work: Work, node: ast.Name, moved: Set[Binding]) -> str | None:
    """Why a Name stays; None for one that torch gave its meaning, or that cannot be decided."""
    found = work.names.lookup(node.id, work.scan.scope_of(node))
    if found is None:
        passed_on = work.names.resolve(node.id, work.scan.scope_of(node))
        return _ALIAS if passed_on is not None else None
    roots = {binding.target.split(".")[0] for binding in found[1] if binding.kind == "import"}
    if "torch" in roots:
        held = any(binding in moved or _moved_alias(work, binding, node.id) for binding in found[1])
        return _ALIAS if held else None
    for root in sorted(roots):
        return f"{root}'s own {node.id}" if root in FOREIGN else f"a name that {root} gives"
    if work.names.resolve(node.id, work.scan.scope_of(node)) is not None:
        return _ALIAS
    return "a name of the project's own"


def _moved_alias(work: Work, binding: Binding, name: str) -> ast.alias | None:
    """The `x as name` of an import of which x has moved, now or in an earlier run, while the name stays."""
    if not isinstance(binding.node, (ast.Import, ast.ImportFrom)):
        return None
    if not binding.target.startswith(("torch.npu", "torch_npu")):
        matched = work.rules.resolve(binding.target)
        if matched is None or not matched[0].renames:
            return None
    return next((alias for alias in binding.node.names if alias.asname == name), None)


def _is_member(work: Work, node: ast.Attribute) -> bool:
    """True for a member of a class that the project defines (`Device.CUDA`)."""
    full = work.names.qualified(node)
    if full is not None:
        return work.slots.own.project_name(full) is not None
    base = node.value
    if not isinstance(base, ast.Name):
        return False
    found = work.names.lookup(base.id, work.scan.scope_of(base))
    return found is not None and all(binding.kind in ("class", "param") for binding in found[1])


def _imported_names(work: Work) -> list[Range]:
    """The import statements that do not reach into torch, where they hold a CUDA word."""
    kept: list[Range] = []
    for node in work.scan.imports:
        extent = work.source.extent(node)
        if not mentions_cuda(work.source.utf8[slice(*extent)].lower()):
            continue
        if isinstance(node, ast.ImportFrom):
            base = import_base(work.scan.path, node)
            if base.split(".")[0] != "torch" or node.level:
                kept.append((*extent, _gives(work, base, bool(node.level))))
        else:
            for alias in node.names:
                if alias.name.split(".")[0] != "torch":
                    kept.append((*work.source.extent(alias), _gives(work, alias.name, False)))
    return kept


def _gives(work: Work, module: str, relative: bool) -> str:
    if relative or work.slots.own.project_name(module) is not None:
        return "a name of the project's own"
    root = module.split(".")[0]
    return f"{root}'s own cuda" if root in FOREIGN else f"a name that {root} gives"


def _name_of_binding(source: Source, binding: Binding, word: str) -> int | None:
    """Where the name stands in what binds it."""
    node = binding.node
    if isinstance(node, (ast.Name, ast.arg)):
        return source.extent(node)[0]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.ExceptHandler)):
        at = source.offset(node.lineno, node.col_offset)
        match = re.compile(rb"\b" + word.encode() + rb"\b").search(source.utf8, at)
        return match.start() if match else None
    return None
