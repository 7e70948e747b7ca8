"""Through which parameters of a kernel memory is read and written, and whether programs read what others write."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.fixers.triton.reader.kernels import Kernel, operation
from transplt.fixers.triton.reader.launches import Launch
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import inner_nodes, keyword_of
from transplt.syntax.scan import parent

#: What a pointer comes from that is read from memory, or cannot be followed.
_AWAY = "*"


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store in a kernel, or a function that it calls; `adds` for an atomic operation without a result."""

    kernel: Kernel
    pointer: ast.expr | None
    writes: bool
    adds: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """A call of a function under `triton.jit` in a kernel."""

    caller: Kernel
    call: ast.Call
    called: Kernel


def conflict_of(accesses: list[Access], kernel: Kernel, sites: list[Site], launches: list[Launch]) -> str:
    """Why programs may read what other programs write; empty where each reads and writes a place of its own.

    A tensor that is written through one parameter and read through none is nobody else's. One that is read and written
    must be read and written at the same offsets, which depend on the program. `sites` are the calls through which a
    kernel reaches functions.
    """
    same = _same_tensors(launches)
    found = [(each, _roots(each.kernel, each.pointer, kernel, sites)) for each in accesses]
    writes = [pair for pair in found if pair[0].writes and not pair[0].adds]
    adds = [pair for pair in found if pair[0].adds]
    reads = [pair for pair in found if not pair[0].writes]
    for written, stored in [*writes, *adds]:
        for read, loaded in reads:
            first = _meet(stored, loaded, same)
            if not first:
                continue
            if first == _AWAY:
                return "its addresses cannot be traced"
            if written.adds:
                return f"programs read {first}, to which others add"
            if written.kernel is not kernel or read.kernel is not kernel or not _is_own(written, read, same):
                return f"programs may read what others write to {first}"
    return ""


def _same_tensors(launches: list[Launch]) -> list[frozenset[str]]:
    """The parameters that are given the same tensor in a launch, or views of it."""
    found = []
    for launch in launches:
        by_text: dict[str, set[str]] = {}
        for name, value in launch.arguments.items():
            base = _viewed(value)
            if isinstance(base, (ast.Name, ast.Attribute)):
                by_text.setdefault(ast.dump(base), set()).add(name)
        found += [frozenset(names) for names in by_text.values() if len(names) > 1]
    return found


def _viewed(node: ast.expr) -> ast.expr:
    """The tensor of which an argument is a view: `x` of `x[0].view(-1)`."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner):
                node = inner
            case ast.Attribute(value=inner, attr="T" | "mT" | "data"):
                node = inner
            case _:
                return node


def _meet(stored: frozenset[str], loaded: frozenset[str], same: list[frozenset[str]]) -> str:
    """The parameter through which two places may be the same memory; empty for none."""
    if _AWAY in stored:
        return _AWAY if loaded else ""
    if _AWAY in loaded:
        return _AWAY
    both = stored & loaded
    if both:
        return min(both)
    return next((min(stored & names) for names in same if stored & names and loaded & names), "")


def _is_own(written: Access, read: Access, same: list[frozenset[str]]) -> bool:
    """True where both are the same place, or lie in the row of one pointer that is moved on by the program."""
    assert written.pointer is not None and read.pointer is not None
    one, other = _through(written), _through(read)
    if not depends_on_program(written.kernel, written.pointer):
        return False
    if _text(one, same) == _text(other, same):
        return True
    base, other_base = _base(one), _base(other)
    return (
        base is not None
        and other_base is not None
        and base.id == other_base.id
        and depends_on_program(written.kernel, base)
    )


def _text(node: ast.expr, same: list[frozenset[str]]) -> str:
    """An address, with one name for all parameters that are the same tensor."""
    text = ast.dump(node)
    for names in same:
        for name in names:
            text = text.replace(f"Name(id={name!r},", f"Name(id={min(names)!r},")
    return text


def _through(access: Access) -> ast.expr:
    """An address with the only value of its name in place of that."""
    node = access.pointer
    assert node is not None
    while isinstance(node, ast.Name):
        values = _values(access.kernel, node.id)
        if len(values) != 1 or values[0] is None or node.id in {each.name for each in access.kernel.parameters}:
            break
        if any(inner.id == node.id for inner in inner_nodes(values[0], ast.Name)):
            break
        node = values[0]
    return node


def _base(node: ast.expr) -> ast.Name | None:
    """The name at the left of an address: `row` of `row + a + b`."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        node = node.left
    return node if isinstance(node, ast.Name) else None


def depends_on_program(kernel: Kernel, node: ast.expr) -> bool:
    """True for a value that is another one in each program."""
    pending: list[ast.AST] = [node]
    seen: set[str] = set()
    while pending:
        for inner in ast.walk(pending.pop()):
            if isinstance(inner, ast.Call) and operation(kernel.file, inner.func) == "program_id":
                return True
            if isinstance(inner, ast.Name) and inner.id not in seen:
                seen.add(inner.id)
                pending += [value for value in _values(kernel, inner.id) if value is not None]
    return False


def _roots(
    holder: Kernel, pointer: ast.expr | None, kernel: Kernel, sites: list[Site], depth: int = 0
) -> frozenset[str]:
    """The parameters of a kernel that an address in it, or in a function that it calls, may begin with."""
    if pointer is None or depth > 10:
        return frozenset({_AWAY})
    own = _roots_in(holder, pointer)
    if holder is kernel:
        return own
    found = own & {_AWAY}
    for name in own - found:
        for site in sites:
            if site.called is holder:
                given = None  # what the call gives the parameter, where that is seen
                if not any(isinstance(each, ast.Starred) for each in site.call.args):
                    index = [each.name for each in site.called.parameters].index(name)
                    given = site.call.args[index] if index < len(site.call.args) else keyword_of(site.call, name)
                found |= _roots(site.caller, given, kernel, sites, depth + 1) if given is not None else {_AWAY}
    return found


def _roots_in(kernel: Kernel, pointer: ast.expr) -> frozenset[str]:
    parameters = {each.name for each in kernel.parameters}
    found: set[str] = set()
    seen: set[str] = set()
    pending: list[ast.expr] = [pointer]
    while pending:
        match node := pending.pop():
            case ast.Name() if node.id not in seen:
                seen.add(node.id)
                values = _values(kernel, node.id)
                if node.id in parameters:
                    if not _is_number(kernel, node.id):
                        found.add(node.id)
                elif None in values:
                    found.add(_AWAY)
                pending += [value for value in values if value is not None]
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                pending += [node.left, node.right]
            case ast.IfExp():
                pending += [node.body, node.orelse]
            case ast.Subscript():
                pending.append(node.value)
            case ast.Call():
                pending += _of_call(kernel, node, found)
    return frozenset(found)


def _of_call(kernel: Kernel, call: ast.Call, found: set[str]) -> list[ast.expr]:
    """The operands of a call in which a pointer may stand."""
    name = operation(kernel.file, call.func)
    if name in ("make_block_ptr", "advance", "make_tensor_descriptor", "multiple_of", "max_contiguous", "cast"):
        return [call.args[0]] if call.args else [each.value for each in call.keywords if each.arg == "base"]
    if name == "where":
        return call.args[1:3]
    if name in ("load", "atomic_add", "atomic_cas"):
        above = parent(parent(call))
        if isinstance(above, ast.Call) and "pointer_type" in ast.unparse(above):
            found.add(_AWAY)  # `tl.load(p).to(tl.pointer_type(...))`: what is read is used as an address
        return []
    if name:
        return []
    if isinstance(call.func, ast.Attribute):
        return [call.func.value]
    return [*call.args, *(each.value for each in call.keywords)]


def _values(kernel: Kernel, name: str) -> list[ast.expr | None]:
    """What a name is given in a kernel; None where that is not seen (a loop's variable counts as a number)."""
    found: list[ast.expr | None] = []
    for node in kernel.names(name):
        if not isinstance(node.ctx, ast.Store):
            continue
        value = assigned_value(node)
        if value is None:
            match above := parent(node):
                case ast.AugAssign():
                    value = above.value
                case ast.For() | ast.AsyncFor():
                    value = above.iter
                case ast.Tuple() | ast.List():
                    value = _unpacked(above, node)
        found.append(value)
    return found


def _unpacked(display: ast.Tuple | ast.List, node: ast.Name) -> ast.expr | None:
    above = parent(display)
    if not isinstance(above, ast.Assign):
        return None
    if isinstance(above.value, (ast.Tuple, ast.List)) and len(above.value.elts) == len(display.elts):
        return above.value.elts[display.elts.index(node)]
    return above.value


def _is_number(kernel: Kernel, name: str) -> bool:
    """True for a parameter that its kernel multiplies, compares or counts with: no pointer."""
    if name in kernel.constexprs:
        return True
    for node in kernel.names(name):
        if not isinstance(node.ctx, ast.Load):
            continue
        match parent(node):
            case ast.BinOp(op=op) if not isinstance(op, (ast.Add, ast.Sub)):
                return True
            case ast.Compare(ops=ops) if not any(isinstance(op, (ast.Is, ast.IsNot)) for op in ops):
                return True
            case ast.Call(func=ast.Name(id="range")):
                return True
    return False
