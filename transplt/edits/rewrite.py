"""Edits of existing code, each on the smallest piece of source in which something changes.

An edit belongs to one syntax node. Its source text becomes a *skeleton*: operands that hold edits of their own, or
that are long, are replaced by placeholder names (holes). The edits of that node run on the skeleton
(transplt.edits.trees). The result is compared with the skeleton segment by segment, so that a piece is the smallest
span that differs. Inner sites are rewritten first; their text goes back into the holes.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import attrgetter

from transplt.base.finding import Finding, Operation, Replacement
from transplt.base.text.source import Source, splice
from transplt.edits.edit import Edit, Extent
from transplt.edits.trees.transform import CannotRewrite, rewritten
from transplt.syntax.scan import chain

#: Operands longer than this many bytes are holes: no transform looks into them.
HOLE_BYTES = 60
_WORD = re.compile(r"\w")
#: The names of holes; the second also where one begins inside of what looks like another.
_HOLE = re.compile(r"_hole\d+_")
_PLACEHOLDER = re.compile(r"(?=(_hole\d+_))")

_Node = ast.expr | ast.stmt | ast.arg


@dataclass(slots=True, eq=False)
class Site:
    """All edits of one node, in the order in which they run."""

    node: _Node
    start: int
    end: int
    edits: list[Edit]
    children: list[Site] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Piece:
    """A minimal replacement of bytes `start`..`end` by `after`, with the edits that made it."""

    start: int
    end: int
    after: str
    edits: list[Edit]
    site: Site


@dataclass(slots=True, eq=False)
class Failure:
    """A site whose edits could not be carried out."""

    site: Site
    reason: str


_Rewritten = tuple[str, list[Piece], list[Failure]]


def build_sites(source: Source, edits: Sequence[Edit]) -> list[Site]:
    """Outermost sites, sorted, each with the sites nested in it. Edits of one node share a site."""
    by_node: dict[int, Site] = {}
    for edit in edits:
        start, end = source.extent(edit.node)
        site = by_node.setdefault(id(edit.node), Site(edit.node, start, end, []))
        site.edits.append(edit)
    for site in by_node.values():
        site.edits.sort(key=lambda edit: edit.around)
    ordered: list[Site] = []
    for _, same in groupby(sorted(by_node.values(), key=_extent), key=_extent):
        group = list(same)
        ordered += group if len(group) == 1 else sorted(group, key=lambda site: len(chain(site.node)))
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


def rewrite_site(source: Source, site: Site) -> _Rewritten:
    """New text of a site with its nested sites, the minimal pieces (absolute offsets), and what failed.

    Sites may nest by the hundred (`x.cuda().cuda()...`): what is left out at a depth would be no deeper in a second
    run, which would change it.
    """
    done: dict[int, _Rewritten] = {}
    stack = [(site, False)]
    while stack:
        each, inner_done = stack.pop()
        if inner_done:
            done[id(each)] = _rewrite_around(source, each, [done.pop(id(child)) for child in each.children])
        else:
            stack.append((each, True))
            stack.extend((child, False) for child in each.children)
    return done[id(site)]


def _rewrite_around(source: Source, site: Site, inner: Sequence[_Rewritten]) -> _Rewritten:
    """The same for a site whose nested sites, in their order, are done."""
    failures = [failure for _, _, failures in inner for failure in failures]
    every_inner = [piece for _, pieces, _ in inner for piece in pieces]
    inner_text = {id(child): text for child, (text, _, _) in zip(site.children, inner, strict=True)}
    holes = _holes(source, site)
    old_parts, spans = _segments(source, site, holes)
    inside = _Inner(site.children)
    fills = [_fill(source, hole, inside, inner_text) for hole in holes]
    names = [f"_hole{index}_" for index in range(len(holes))]
    skeleton = _join(old_parts, names)
    news = [edit.new for edit in site.edits]
    apart = any(edit.apart for edit in site.edits)
    steps = [skeleton]
    try:
        for some in [[new] for new in news] if apart else [news]:
            steps.append(rewritten(steps[-1], some, type(site.node)))
    except CannotRewrite as error:
        failures.append(Failure(site, str(error)))
        steps = [skeleton]
    except Exception as error:  # a transform must never cost more than its site
        failures.append(Failure(site, f"{type(error).__name__}: {error}".splitlines()[0]))
        steps = [skeleton]
    changed = steps[-1]
    if changed == skeleton:
        return _join(old_parts, fills), every_inner, failures
    parts = [_split(step, names) for step in steps]
    new_parts = parts[-1]
    if new_parts is not None:
        pieces = _segment_pieces(site, parts, spans) + every_inner
        pieces.sort(key=attrgetter("start"))
        return _join(new_parts, fills), pieces, failures
    filled = dict(zip(names, fills, strict=True))
    new_text = _HOLE.sub(lambda found: filled.get(found[0], found[0]), changed)
    old_text = source.slice(site.start, site.end)
    edits = [*site.edits, *(edit for piece in every_inner for edit in piece.edits)]
    return new_text, [_piece(site, site.start, old_text, new_text, edits)], failures


def _piece(site: Site, start: int, before: str, after: str, edits: list[Edit]) -> Piece:
    """The piece for what differs between two texts, the first of which begins at an offset."""
    head, tail = _trim(before, after)
    end = start + len(before[: len(before) - tail].encode())
    return Piece(start + len(before[:head].encode()), end, after[head : len(after) - tail], edits, site)


def rendered(source: Source, node: ast.expr | ast.stmt | ast.arg, edits: Sequence[Edit]) -> str:
    """The text of a node with those of some edits that lie inside of it."""
    start, end = source.extent(node)
    inside = [edit for edit in edits if start <= source.extent(edit.node)[0] and source.extent(edit.node)[1] <= end]
    pieces = [piece for site in build_sites(source, inside) for piece in rewrite_site(source, site)[1]]
    spliced = sorted((piece.start - start, piece.end - start, piece.after.encode()) for piece in pieces)
    return splice(source.utf8[start:end], spliced).decode()


class _Inner:
    """The sites right inside of another one, of which there may be thousands: they stand in order, and apart."""

    def __init__(self, children: list[Site]) -> None:
        self._children = children
        self._starts = [child.start for child in children]
        self._ends = [child.end for child in children]

    def within(self, start: int, end: int) -> list[Site]:
        """Those between two offsets."""
        return self._children[bisect_left(self._starts, start) : bisect_right(self._ends, end)]


def _holes(source: Source, site: Site) -> list[ast.expr]:
    """The operands of a site that its changes do not get to see, in source order; where edits name them, no others."""
    child_spans = {(child.start, child.end) for child in site.children}
    inner = _Inner(site.children)
    wanted = set[Extent]().union(*(map(source.extent, edit.holes) for edit in site.edits))
    holes: list[ast.expr] = []
    simple = isinstance(site.node, (ast.expr, ast.Expr, ast.Assign, ast.Return))
    of_strings = isinstance(site.node, ast.JoinedStr)
    called = getattr(site.node, "func", None)
    stack: list[ast.AST] = list(ast.iter_child_nodes(site.node)) if simple else []
    while stack:
        node = _operand(stack.pop(), of_strings)
        if isinstance(node, list):
            stack.extend(node)
            continue
        start, end = source.extent(node)
        if not site.start <= start < end <= site.end:
            continue
        long = not wanted and (end - start > HOLE_BYTES or isinstance(node, (ast.Lambda, ast.IfExp)))
        hole = long or bool(inner.within(start, end))
        if (start, end) not in wanted and any(start <= a and b <= end for a, b in wanted):
            stack.extend(ast.iter_child_nodes(node))
        elif hole and node is called and isinstance(node, ast.Attribute) and (start, end) not in child_spans:
            stack.extend(ast.iter_child_nodes(node))  # a transform of a call may need its method, not what it is of
        elif hole or (start, end) in wanted:
            holes.append(node)
    return sorted(holes, key=source.extent)


def _operand(node: ast.AST, of_strings: bool) -> ast.expr | list[ast.AST]:
    """A node that can be an operand; what is looked at in place of one that cannot."""
    match node:
        case ast.keyword() | ast.Starred() | ast.Slice() | ast.GeneratorExp() | ast.comprehension() | ast.arguments():
            return [*ast.iter_child_nodes(node)]  # no expression, or a span that holds the brackets of the call
        case ast.FormattedValue(value=value):
            return [value]
        case ast.expr() if not (of_strings and isinstance(node, ast.Constant)):
            return node
    return []


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


def _fill(source: Source, hole: ast.expr, inside: _Inner, inner: dict[int, str]) -> str:
    """Source text of a hole with the sites in it rewritten."""
    start, end = source.extent(hole)
    parts: list[str] = []
    at = start
    for child in inside.within(start, end):
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
    known = set(names)
    found = [each for each in _PLACEHOLDER.finditer(text) if each[1] in known]
    if [each[1] for each in found] != names:
        return None
    ends = [0, *(each.end(1) for each in found)]
    return [text[end:start] for end, start in zip(ends, [*(each.start(1) for each in found), len(text)], strict=True)]


def _segment_pieces(site: Site, parts: Sequence[list[str] | None], spans: list[tuple[int, int]]) -> list[Piece]:
    """One piece for each segment that differs. `parts` are the segments after each step, the old ones first."""
    old, new = parts[0], parts[-1]
    assert old is not None and new is not None
    pieces = []
    for index, (start, _) in enumerate(spans):
        if old[index] != new[index]:
            pieces.append(_piece(site, start, old[index], new[index], _edits_of(site, parts, index)))
    return pieces


def _edits_of(site: Site, parts: Sequence[list[str] | None], index: int) -> list[Edit]:
    """The edits that a piece is recorded with: all of its node, but those apart only where they changed it.

    What an edit did to a piece of which a later one leaves nothing does not show.
    """
    if len(parts) != len(site.edits) + 1:
        return site.edits
    texts = [part and part[index] for part in parts]
    steps = list(pairwise(texts))
    first = max((at for at, (before, after) in enumerate(steps) if before and after == ""), default=0)
    changed = {
        at for at, (before, after) in enumerate(steps) if at >= first and (None in (before, after) or before != after)
    }
    together = any(not site.edits[at].apart for at in changed)
    return [edit for at, edit in enumerate(site.edits) if (at in changed if edit.apart else together)]


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
    while tail and _WORD.match(before[len(before) - tail]) and _splits_word(before[::-1], after[::-1], tail):
        tail -= 1
    return head, tail


def _splits_word(before: str, after: str, head: int) -> bool:
    return any(head < len(text) and _WORD.match(text[head]) for text in (before, after))


def findings_of(source: Source, path: str, pieces: Sequence[Piece]) -> list[Finding]:
    """One record for each piece; several edits of one piece give it the first one's code and all messages."""
    records = []
    counted: set[int] = set()
    for piece in pieces:
        first = piece.edits[0]
        new = {id(edit) for edit in piece.edits} - counted
        counted |= new
        messages = dict.fromkeys(edit.message for edit in piece.edits)
        before = source.slice(piece.start, piece.end)
        operation = Operation.MODIFY
        if not before:
            operation = Operation.INSERT
        elif not piece.after:
            operation = Operation.DELETE
        records.append(
            Finding(
                path=path,
                span=source.span(piece.start, piece.end),
                code=first.code,
                level=first.level,
                message="; ".join(messages),
                api=first.api,
                help=first.help,
                edit=Replacement(operation, before, piece.after),
                applied=True,
                places=len(new),
            )
        )
    return records
