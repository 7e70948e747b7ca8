"""Sites to edits, on the smallest piece of source in which something changes.

A change belongs to one syntax node. Its source text becomes a *skeleton*: operands that hold changes of their own, or
that are long, are replaced by placeholder names (holes). The changes of that node run on the skeleton: those that
`transplt.trees.swaps` can say on its text, the others on the root of what LibCST parses it to. The result is compared with
the skeleton segment by segment, so that an edit is the smallest span that differs. Inner sites are rewritten first;
their text goes back into the holes.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from itertools import groupby

from transplt.finding import Edit, Effort, Finding, Level, Operation
from transplt.syntax.scan import parent
from transplt.text.source import Source
from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite, Swap, Transform

#: Operands longer than this many bytes are holes: no codemod looks into them.
HOLE_BYTES = 60
#: Sites with more sites around them than this are left to a person; each costs a frame and a copy of its text.
DEEPEST = 100
_WORD = re.compile(r"\w")
_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(slots=True)
class Change:
    """One rule that applies to one node. `asked` says that an option of its own (-sim) asked for an unsafe change.

    `writes_npu` says that the output needs `import torch_npu`; `imports` are further modules it needs, `lines` are
    statements it needs below the imports.
    """

    node: ast.expr | ast.stmt
    code: str
    message: str
    transform: Transform
    level: Level = Level.SAFE
    api: str = ""
    help: str = ""
    effort: Effort | None = None
    writes_npu: bool = False
    user: bool = False
    asked: bool = False
    imports: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(slots=True)
class Site:
    """All changes of one node, in the order in which they run."""

    node: ast.expr | ast.stmt
    start: int
    end: int
    changes: list[Change]
    children: list[Site] = field(default_factory=list)


@dataclass(slots=True)
class SiteEdit:
    """A minimal replacement of bytes `start`..`end` by `after`, with the changes that made it."""

    start: int
    end: int
    after: str
    changes: list[Change]
    site: Site


@dataclass(slots=True)
class Failure:
    """A site whose changes could not be carried out."""

    site: Site
    reason: str


def build_sites(source: Source, changes: list[Change]) -> list[Site]:
    """Outermost sites, sorted, each with the sites nested in it. Changes of one node share a site."""
    by_node: dict[int, Site] = {}
    for change in changes:
        start, end = source.extent(change.node)
        site = by_node.setdefault(id(change.node), Site(change.node, start, end, []))
        site.changes.append(change)
    ordered: list[Site] = []
    for _, same in groupby(sorted(by_node.values(), key=_extent), key=_extent):
        group = list(same)
        ordered += group if len(group) == 1 else sorted(group, key=lambda site: _depth(site.node))
    roots: list[Site] = []
    open_sites: list[Site] = []
    for site in ordered:
        while open_sites and open_sites[-1].end <= site.start:
            open_sites.pop()
        (open_sites[-1].children if open_sites else roots).append(site)
        open_sites.append(site)
    return roots


def _extent(site: Site) -> tuple[int, int]:
    return site.start, -site.end


def _depth(node: ast.AST) -> int:
    depth = 0
    while not isinstance(node, ast.Module):
        node = parent(node)
        depth += 1
    return depth


def rewrite_site(source: Source, site: Site, depth: int = 0) -> tuple[str, list[SiteEdit], list[Failure]]:
    """New text of a site with its nested sites, the minimal edits (absolute offsets), and what failed.

    `depth` is the number of sites around this one.
    """
    if depth > DEEPEST:
        return source.slice(site.start, site.end), [], [Failure(site, "nested too deeply")]
    edits: list[SiteEdit] = []
    failures: list[Failure] = []
    inner_text: dict[int, str] = {}
    inner_edits: dict[int, list[SiteEdit]] = {}
    for child in site.children:
        text, child_edits, child_failures = rewrite_site(source, child, depth + 1)
        inner_text[id(child)] = text
        inner_edits[id(child)] = child_edits
        failures += child_failures
    holes = _holes(source, site)
    old_parts, spans = _segments(source, site, holes)
    fills = [_fill(source, hole, site.children, inner_text) for hole in holes]
    names = [f"_hole{index}_" for index in range(len(holes))]
    skeleton = _join(old_parts, names)
    try:
        changed = _transform(site, skeleton)
    except CannotRewrite as error:
        failures.append(Failure(site, str(error)))
        changed = skeleton
    except Exception as error:  # a codemod must never cost more than its site
        failures.append(Failure(site, f"{type(error).__name__}: {error}".splitlines()[0]))
        changed = skeleton
    every_inner = [edit for child in site.children for edit in inner_edits[id(child)]]
    if changed == skeleton:
        return _join(old_parts, fills), every_inner, failures
    new_parts = _split(changed, names)
    if new_parts is not None:
        edits = _segment_edits(site, old_parts, new_parts, spans)
        edits += every_inner
        edits.sort(key=lambda edit: edit.start)
        return _join(new_parts, fills), edits, failures
    new_text = changed
    for name, fill in zip(names, fills, strict=True):
        new_text = new_text.replace(name, fill)
    old_text = source.slice(site.start, site.end)
    edits = _one_edit(site, old_text, new_text, [c for edit in every_inner for c in edit.changes])
    return new_text, edits, failures


def _holes(source: Source, site: Site) -> list[ast.expr]:
    """The operands of a site that its changes do not get to see, in source order."""
    child_spans = [(child.start, child.end) for child in site.children]
    holes: list[ast.expr] = []
    stack: list[ast.AST] = list(ast.iter_child_nodes(site.node)) if isinstance(site.node, ast.expr) else []
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.keyword, ast.Starred, ast.Slice, ast.GeneratorExp, ast.comprehension, ast.arguments)):
            # No expressions, or spans that hold the brackets of the call: go on to what is inside.
            stack.extend(ast.iter_child_nodes(node))
            continue
        if not isinstance(node, ast.expr) or isinstance(node, ast.FormattedValue):
            if isinstance(node, ast.FormattedValue):
                stack.append(node.value)
            continue
        if isinstance(site.node, ast.JoinedStr) and isinstance(node, ast.Constant):
            continue
        start, end = source.extent(node)
        if start < site.start or end > site.end or start >= end:
            continue
        holds_site = any(start <= a and b <= end for a, b in child_spans)
        if holds_site or end - start > HOLE_BYTES or isinstance(node, (ast.Lambda, ast.IfExp)):
            holes.append(node)
    holes.sort(key=lambda node: source.extent(node)[0])
    return holes


def _segments(source: Source, site: Site, holes: list[ast.expr]) -> tuple[list[str], list[tuple[int, int]]]:
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    at = site.start
    for hole in holes:
        start, end = source.extent(hole)
        parts.append(source.slice(at, start))
        spans.append((at, start))
        at = end
    parts.append(source.slice(at, site.end))
    spans.append((at, site.end))
    return parts, spans


def _fill(source: Source, hole: ast.expr, children: list[Site], inner: dict[int, str]) -> str:
    """Source text of a hole with the sites in it rewritten."""
    start, end = source.extent(hole)
    parts: list[str] = []
    at = start
    for child in children:
        if start <= child.start and child.end <= end:
            parts.append(source.slice(at, child.start))
            parts.append(inner[id(child)])
            at = child.end
    parts.append(source.slice(at, end))
    return "".join(parts)


def _join(parts: list[str], between: list[str]) -> str:
    out = [parts[0]]
    for name, part in zip(between, parts[1:], strict=True):
        out.append(name)
        out.append(part)
    return "".join(out)


def _split(text: str, names: list[str]) -> list[str] | None:
    """The segments between the holes, None when the holes do not stand there once each in their old order."""
    parts: list[str] = []
    at = 0
    for name in names:
        found = text.find(name, at)
        if found < 0 or text.count(name) != 1:
            return None
        parts.append(text[at:found])
        at = found + len(name)
    parts.append(text[at:])
    return parts


def _transform(site: Site, skeleton: str) -> str:
    is_statement = isinstance(site.node, ast.stmt)
    current: cst.CSTNode | str = skeleton
    for change in site.changes:
        transform = change.transform
        if isinstance(transform, Swap):
            current = transform.apply(_text(current, skeleton))
            continue
        if isinstance(current, str):
            current = cst.parse_statement(current + "\n") if is_statement else _parse_expression(current)
        current = transform(current)
    text = _text(current, skeleton)
    if not is_statement:
        _check_expression(text)
    return text.rstrip("\r\n") if is_statement else text


def _text(current: cst.CSTNode | str, skeleton: str) -> str:
    """The source of what a skeleton has become, with its line ends."""
    if isinstance(current, str):
        return current
    found = _NEWLINE.search(skeleton)
    return cst.Module([], default_newline=found.group() if found else "\n").code_for_node(current)


def _check_expression(text: str) -> None:
    """An edit that only together with another one makes sense to the parser would get past the check of the file."""
    try:
        parsed = ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CannotRewrite(f"the new text is no expression: {error}") from None
    if isinstance(parsed, ast.Tuple) and not parsed.elts and "(" not in text:
        raise CannotRewrite("the new text is empty")


def _parse_expression(text: str) -> cst.BaseExpression:
    node = cst.parse_expression(f"({text})")
    return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])


def _segment_edits(
    site: Site, old: list[str], new: list[str], spans: list[tuple[int, int]]
) -> list[SiteEdit]:
    """One edit for each segment that differs."""
    edits = []
    for before, after, (start, _) in zip(old, new, spans, strict=True):
        if before == after:
            continue
        head, tail = _trim(before, after)
        begin = start + len(before[:head].encode())
        end = start + len(before[: len(before) - tail].encode())
        edits.append(SiteEdit(begin, end, after[head : len(after) - tail], site.changes, site))
    return edits


def _one_edit(site: Site, before: str, after: str, inner: list[Change]) -> list[SiteEdit]:
    head, tail = _trim(before, after)
    begin = site.start + len(before[:head].encode())
    end = site.start + len(before[: len(before) - tail].encode())
    return [SiteEdit(begin, end, after[head : len(after) - tail], [*site.changes, *inner], site)]


def _trim(before: str, after: str) -> tuple[int, int]:
    """Lengths of the common head and tail, pulled back to whole words."""
    limit = min(len(before), len(after))
    head = 0
    while head < limit and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < limit - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    while head and _WORD.match(before[head - 1]) and _splits_word(before, after, head):
        head -= 1
    while tail and _WORD.match(before[len(before) - tail]) and _splits_word_end(before, after, tail):
        tail -= 1
    return head, tail


def _splits_word(before: str, after: str, head: int) -> bool:
    return any(head < len(text) and _WORD.match(text[head]) for text in (before, after))


def _splits_word_end(before: str, after: str, tail: int) -> bool:
    return any(tail < len(text) and _WORD.match(text[len(text) - tail - 1]) for text in (before, after))


def findings_of(source: Source, path: str, edits: list[SiteEdit]) -> list[Finding]:
    """One record per edit; several changes of one edit give it their codes' first and all messages."""
    records = []
    for edit in edits:
        first = edit.changes[0]
        messages = list(dict.fromkeys(change.message for change in edit.changes))
        before = source.slice(edit.start, edit.end)
        operation = Operation.MODIFY
        if not before:
            operation = Operation.INSERT
        elif not edit.after:
            operation = Operation.DELETE
        records.append(
            Finding(
                path=path,
                span=source.span(edit.start, edit.end),
                code=first.code,
                level=first.level,
                message="; ".join(messages),
                api=first.api,
                help=first.help,
                edit=Edit(operation, before, edit.after),
                applied=True,
            )
        )
    return records
