"""Annotations in quotes: `"Optional[torch.cuda.Stream]"`, also in `cast`, `TypeVar` and type comments of names.

Annotations without quotes are expressions like any other and belong to `references`.
"""

from __future__ import annotations

import ast
import re

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import in_literals
from transplt.edits.work import Work
from transplt.fixers.codemods.module import local_target
from transplt.rules.rule import needs_torch_npu
from transplt.syntax.annotations import is_annotation

fixer = Fixer(__name__, code="NPU404", rank=220)

_MENTION = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\.\w+")


@fixer.on(ast.Constant)
def type_in_a_string(work: Work, node: ast.Constant) -> Finds:
    """Rename what the rules know in a string that stands for a type."""
    value = str(node.value)
    if "." in value and "cuda" in value and id(node) not in work.taken and is_annotation(node):
        yield from _annotation(work, node, value)


def _annotation(work: Work, node: ast.Constant, value: str) -> Finds:
    pairs: dict[str, str] = {}
    writes = False
    for match in _MENTION.finditer(value):
        first, _, rest = match.group().partition(".")
        base = work.names.resolve(first, work.scan.scope_of(node))
        full = f"{base}.{rest}" if base is not None else None
        matched = work.rules.resolve(full) if full else None
        if full is None or matched is None:
            continue
        rule, prefix = matched
        if not rule.renames:
            work.take(node)
            yield from work.note_rule(node, rule, full, "named in an annotation")
            return
        new = None
        if not rule.listed or prefix == full:
            new = _new_name(work, node, match.group(), rule.new + full[len(prefix) :])
        if new is None:
            work.take(node)
            help_ = "use the NPU counterpart"
            yield work.note(node, "NPU405", f"the annotation names {full}", api=full, help=help_)
            return
        if new != match.group():
            pairs[match.group()] = new
            writes = writes or needs_torch_npu(new)
    yield work.keep(node, "local-type")
    if not pairs or not work.take(node):
        return
    text = work.source.slice(*work.source.extent(node))
    if any(text.count(old) != value.count(old) for old in pairs):
        yield work.note(node, "NPU202", f"{value!r} is not a single plain literal", help="rename the type by hand")
        return
    for old, new in pairs.items():
        text = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", new, text)
    yield Edit(
        node,
        "NPU404",
        "annotation: " + ", ".join(f"{old} -> {new}" for old, new in pairs.items()),
        in_literals(lambda _: text, several=False),
        api=next(iter(pairs)),
        writes_npu=writes,
    )


def _new_name(work: Work, node: ast.Constant, mention: str, target: str) -> str | None:
    """How the file writes `target` where it wrote `mention`, following what its import has become."""
    first = mention.split(".")[0]
    found = work.names.lookup(first, work.scan.scope_of(node))
    imports = [binding for binding in found[1] if binding.kind == "import"] if found is not None else []
    if not imports:
        return None
    base = work.names.resolve(first, work.scan.scope_of(node)) or first
    held = local_target(work, imports[0], base)
    local = work.renamed.get(imports[0], first)
    return local + target[len(held) :] if target.startswith(f"{held}.") else None
