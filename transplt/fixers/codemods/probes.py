"""Names of attributes in strings: probed with hasattr and getattr, patched by tests.

`hasattr(torch, "cuda")` decides whether `torch.cuda.x` is called, `patch.object(torch.cuda, "x")` replaces what the
code under test calls: the string has to follow the same rule as the reference it stands for.
"""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Effort
from transplt.base.text.lexer import one_plain_literal
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.work import Work
from transplt.flow.callees import FOREIGN
from transplt.rules.rule import Kind, Rule, needs_torch_npu
from transplt.syntax.nodes import call_of, dotted, last_name, of_kind
from transplt.syntax.scan import STRING_WORDS, parent

fixer = Fixer(__name__, code="NPU232", rank=400)

_FUNCTIONS = ("hasattr", "getattr", "setattr", "delattr")
_METHODS = ("setattr", "delattr", "object")
_PATCHED = re.compile(r"((?:\w+\.)+)(torch\.cuda(?:\.\w+)+)")
_NAME = re.compile(r"(?<![\w.])torch\.cuda(?:\.\w+)+")
_RUNNERS = frozenset({"skipif", "xfail", "eval", "exec", "timeit", "Timer"})
_TENSORS = frozenset({"torch.Tensor", "torch.nn.Module", "torch.nn.Parameter", "torch.nn.modules.module.Module"})
MEMBERS = {"cuda": "npu", "is_cuda": "is_npu"}


@fixer.on(ast.Module)
def asked_or_patched(work: Work, tree: ast.Module) -> Finds:
    """Probes and patches of torch's own modules; before the references themselves are renamed."""
    for call, target, name in probes_of(work):
        base = work.names.qualified(target)
        _, inner, rest = (base or "").partition(".torch.")
        if base is not None and inner and base.split(".")[0] not in FOREIGN:
            base = f"torch.{rest}"  # the name under which a module of the project imported it
        if base is not None and base.split(".")[0] == "torch" and id(name) not in work.taken:
            yield from _torch(work, call, target, name, base)


@fixer.on(ast.Attribute, last="torch")
def through_a_module(work: Work, node: ast.Attribute) -> Finds:
    """`monkeypatch.setattr(utils.torch.cuda, "x", ...)`, `utils.torch.cuda.x`."""
    base = work.names.qualified(node)
    if base is None or base.split(".")[0] in (*FOREIGN, "torch"):
        return
    links = dotted(node)
    attrs = [link.attr for link in of_kind(ast.Attribute, links[1:])]
    full = ".".join(["torch", *attrs])
    if attrs[:1] != ["cuda"] or (matched := work.rules.resolve(full)) is None:
        return
    rule, prefix = matched
    link = links[prefix.count(".")]
    if not rule.renames or (rule.listed and prefix != full) or rule.args is not None:
        if work.take(link):
            yield from work.note_rule(link, rule, full)
    elif rule.new.startswith("torch.") and work.take(link):
        work.take(links[1])
        text = work.source.slice(*work.source.extent(node)) + rule.new[len("torch") :]
        yield Edit(
            link,
            rule.code,
            f"{full} -> {rule.new}",
            text,
            api=full,
            writes_npu=needs_torch_npu(rule.new),
        )


@fixer.on(ast.Constant)
def named_in_a_string(work: Work, node: ast.Constant) -> Finds:
    value = str(node.value)
    if "torch.cuda." not in value:
        return
    if _runs(node):
        yield from _code(work, node, value)
    elif ".torch.cuda." in value and (matched := _PATCHED.fullmatch(value)) is not None:
        yield from _patched(work, node, matched.group(1), matched.group(2))


def probes_of(work: Work) -> list[tuple[ast.Call, ast.expr, ast.Constant]]:
    """(call, object, name) of every call that takes an object and the name of an attribute."""
    nodes: list[ast.expr] = [node for last in _FUNCTIONS for node in work.scan.names.get(last, ())]
    nodes += [node for last in _METHODS for node in work.scan.attributes.get(last, ())]
    found = []
    for node in nodes:
        call = call_of(node)
        if call is not None and len(call.args) >= 2:
            name = call.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                found.append((call, call.args[0], name))
    return sorted(found, key=lambda item: (item[2].lineno, item[2].col_offset))


def _torch(work: Work, call: ast.Call, target: ast.expr, name: ast.Constant, base: str) -> Finds:
    value = str(name.value)
    worded = any(word in value.lower() for word in STRING_WORDS)
    if not worded and not base.startswith("torch.cuda"):
        return
    if base in _TENSORS and value in MEMBERS:
        yield from _rename(work, name, MEMBERS[value], writes_npu=True)
        return
    full = f"{base}.{value}"
    matched = work.rules.resolve(full)
    if matched is None:
        if worded and base == "torch._C" and work.take(name):
            yield work.keep(name, "private-name")
        return
    rule, prefix = matched
    if not rule.renames:
        yield from _unsupported(work, call, target, name, rule, full, worded)
    elif not (rule.listed and prefix != full):
        yield from _rewrite_probe(work, target, name, base, rule.new + full[len(prefix) :])


def _unsupported(
    work: Work, call: ast.Call, target: ast.expr, name: ast.Constant, rule: Rule, full: str, worded: bool
) -> Finds:
    """A name that has no counterpart: a probe of it fails on NPU as it should, a patch stays with what it patches."""
    func = call.func
    probe = isinstance(func, ast.Name) and (func.id == "hasattr" or (func.id == "getattr" and len(call.args) > 2))
    if probe and not worded:
        return
    if rule.kind is Kind.UNSUPPORTED and work.take(name):
        yield from work.note_rule(name, rule, full, "as a string")
        if not probe and work.take(target):
            yield work.keep(target, "reported-beside")


def _rewrite_probe(work: Work, target: ast.expr, name: ast.Constant, base: str, new: str) -> Finds:
    old = str(name.value)
    above, _, last = new.rpartition(".")
    moved = work.rules.resolve(base)
    stays = base
    if moved is not None and moved[0].renames and not (moved[0].listed and moved[1] != base):
        stays = moved[0].new + base[len(moved[1]) :]
    if above == stays:
        if last != old:
            yield from _rename(work, name, last, writes_npu=needs_torch_npu(new))
        return
    text = _written(work, target, above)
    if not text or not work.take(target):
        yield work.note(
            name, "NPU232", f"{base}.{old} becomes {new}, and appears here as a string", help=f"write {new} here"
        )
        work.take(name)
        return
    yield Edit(
        target,
        "NPU232",
        f"{base} -> {above}, which holds {last}",
        text,
        api=f"{base}.{old}",
        writes_npu=needs_torch_npu(above),
    )
    if last != old:
        yield from _rename(work, name, last, writes_npu=needs_torch_npu(new))


def _written(work: Work, target: ast.expr, module: str) -> str:
    """How a module is written where `target` stands; empty when its root has no name there."""
    root, _, rest = module.partition(".")
    if root == "torch_npu":
        return module
    while isinstance(target, ast.Attribute):
        target = target.value
    if isinstance(target, ast.Name) and work.names.qualified(target) == root:
        return f"{target.id}.{rest}" if rest else target.id
    return ""


def _rename(work: Work, node: ast.Constant, new: str, *, writes_npu: bool) -> Finds:
    if not work.take(node):
        return
    old = str(node.value)
    text = work.source.slice(*work.source.extent(node))
    if not one_plain_literal(text, [old]):
        yield work.note(node, "NPU202", f"{old!r} is not a single plain literal", help=f"write {new!r}")
        return
    yield Edit(
        node,
        "NPU232",
        f"the name {old!r} in a string -> {new!r}",
        words_in_literal({old: new}),
        api=old,
        writes_npu=writes_npu,
    )


def _runs(node: ast.Constant) -> bool:
    """True for text that is run as code: conditions of pytest marks, statements to time."""
    above = parent(node)
    if isinstance(above, ast.keyword):
        named, above = above.arg, parent(above)
        if named not in ("condition", "stmt", "setup"):
            return False
    if not isinstance(above, ast.Call):
        return False
    func = above.func
    last = last_name(func)
    return last in _RUNNERS


def _code(work: Work, node: ast.Constant, value: str) -> Finds:
    """`@pytest.mark.skipif("not torch.cuda.is_available()")`."""
    if not work.take(node):
        return
    pairs: dict[str, str] = {}
    for name in set(_NAME.findall(value)):
        matched = work.rules.resolve(name)
        if matched is None or matched[0].args is not None or not matched[0].new.startswith("torch."):
            pairs = {}
            break
        if not (matched[0].listed and matched[1] != name):
            pairs[name] = matched[0].new + name[len(matched[1]) :]
    text = work.source.slice(*work.source.extent(node))
    if len(pairs) != 1 or not one_plain_literal(text, list(pairs)):
        yield work.note(
            node, "NPU204", "code in a string uses CUDA",
            help="use the NPU counterpart", effort=Effort.LOW,
        )  # fmt: skip
        return
    ((old, new),) = pairs.items()
    yield Edit(
        node,
        "NPU232",
        f"{old} in text that is run as code -> {new}",
        words_in_literal({old: new}),
        api=old,
        writes_npu=needs_torch_npu(new),
    )


def _patched(work: Work, node: ast.Constant, module: str, full: str) -> Finds:
    """`@patch("package.module.torch.cuda.is_available")`."""
    if not isinstance(parent(node), (ast.Call, ast.Assign, ast.List, ast.Tuple)) or not work.take(node):
        return
    matched = work.rules.resolve(full)
    if matched is not None and not matched[0].renames:
        yield from work.note_rule(node, matched[0], full, "as a string")
        return
    known = matched is not None and not (matched[0].listed and matched[1] != full)
    text = work.source.slice(*work.source.extent(node))
    if matched is None or not known or not matched[0].new.startswith("torch.") or not one_plain_literal(text, [full]):
        yield work.note(
            node, "NPU204", f"{module + full!r} is a CUDA name in a string",
            help="use the NPU counterpart", effort=Effort.LOW,
        )  # fmt: skip
        return
    new = matched[0].new + full[len(matched[1]) :]
    yield Edit(
        node,
        "NPU232",
        f"{full} in the target of a patch -> {new}",
        words_in_literal({full: new}),
        api=full,
        writes_npu=True,
    )
