"""Methods and attributes of tensors and modules: `.cuda(...)`, `.is_cuda`, also when they are named in a string."""

from __future__ import annotations

import ast

from transplt.base.finding import Effort
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees import names
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.work import Work
from transplt.fixers.codemods.module_moves import method_of_move
from transplt.flow.callees import FOREIGN, FRAMEWORKS
from transplt.flow.own_cuda import own_cuda
from transplt.rules.packages import bound_classes
from transplt.syntax.names import SELF, assigned_value
from transplt.syntax.nodes import call_of, called_name, inner_nodes, last_name, of_kind, plain_name
from transplt.syntax.scan import FUNCTIONS, chain, parent

fixer = Fixer(__name__, code="NPU210", rank=420)

_NEW = {"cuda": "npu", "is_cuda": "is_npu"}
#: Names under which programs keep their settings.
_SETTINGS = ("args", "opt", "opts", "cfg", "config", "hparams", "params", "FLAGS", "flags", "conf", "options")
#: How many links of `a.b().c[0]...` are followed to what made the value.
_LONGEST_CHAIN = 50
_OWN_DATA = "own-data"


@fixer.on(ast.Module)
def what_hangs_on_a_value(work: Work, tree: ast.Module) -> Finds:
    """Rename what hangs on a value; names that resolve to a module are the business of `rename`."""
    if not any(old in work.scan.attributes for old in _NEW) and not any(s.value in _NEW for s in work.scan.strings):
        return
    other = _other_framework(work)
    for old, new in _NEW.items():
        for node in work.scan.attributes.get(old, ()):
            if other and work.names.qualified(node) is None:
                yield work.keep(node, "library-name", other)
            else:
                yield from _attribute(work, node, old, new)
    for string in work.scan.strings:
        if string.value in _NEW:
            yield from _name_in_string(work, string, str(string.value))


def _attribute(work: Work, node: ast.Attribute, old: str, new: str) -> Finds:
    full = work.names.qualified(node)
    if id(node) in work.taken or (full is not None and full.startswith("torch.") and work.rules.resolve(full)):
        return  # what torch has of this name is written by its full name
    if (reason := _reason_to_stay(work, node, old, full)) is not None:
        yield work.keep(node, *reason)
    elif old == "cuda" and not _is_called(node):
        yield from _uncalled(work, node)
    elif _own_data(work, node, old):
        yield work.keep(node, _OWN_DATA)
    elif old == "is_cuda" and _may_be_stored(work, node):
        if work.take(node):
            yield work.note(
                node,
                "NPU217",
                "`.is_cuda` may be that of a tensor, or an attribute of a class of the project",
                api="torch.Tensor.is_cuda",
                help="write `.is_npu` for a tensor; do not change a flag of the project",
            )
    elif base := _foreign_base(work, node):
        if work.take(node):
            yield work.note(
                node,
                "NPU216",
                f"super().{old} calls the method of {base}, which may have no .{new}",
                api=f"{base}.{old}",
                help=f"check whether {base} has .{new}() or .to('npu'), and call it here",
            )
    elif work.take(node):
        if old == "cuda":
            new = yield from method_of_move(work, node)
        if new:
            yield _renamed(node, old, new)


def _reason_to_stay(work: Work, node: ast.Attribute, old: str, full: str | None) -> tuple[str, ...] | None:
    """Why an attribute belongs to something else than a tensor or module of torch."""
    root = full.split(".")[0] if full is not None else ""
    if root in FOREIGN:
        return "library-name", root
    known = work.project.canonical(full.rpartition(".")[0]) if full is not None else ""
    module, _, last = known.rpartition(".")
    modules = work.project.modules
    of_project = known not in modules and module in modules and last not in FOREIGN  # an object in one of its modules
    if full is not None and root != "torch" and not of_project:
        used = isinstance(parent(node), (ast.Attribute, ast.Call)) and _receiver(node) not in _SETTINGS
        project = work.slots.own.project_name(full) is not None
        return ("package-name", root) if used and not project else ("no-method",)
    if maker := _foreign_receiver(work, node.value):
        return "library-name", maker
    if not isinstance(node.ctx, ast.Load):
        return (_OWN_DATA,)
    if work.packages and _is_of_bound_class(work, node):
        return ("reported-package",)
    return ("own-member",) if _own_class(work, node, old) else None


def _renamed(node: ast.Attribute, old: str, new: str) -> Edit:
    brackets = "" if old == "is_cuda" else "()" if new == "npu" else "(device)"
    return Edit(
        node,
        "NPU210" if old == "cuda" else "NPU211",
        f".{old}{brackets} -> .{new}{brackets}",
        names.attribute_named(new),
        api=f"torch.Tensor.{old}",
        writes_npu=True,
    )


# --- whose attribute it is -------------------------------------------------------------------------------------------


def _other_framework(work: Work) -> str:
    """The framework of a file that uses another one than torch, else empty."""
    if work.scan.root.stars:
        return ""
    roots = {
        binding.target.split(".")[0]
        for scope in work.scan.scopes.values()
        for bindings in scope.bindings.values()
        for binding in bindings
        if binding.kind == "import"
    }
    if any(root == "torch" or root.startswith(("torch_", "torchvision")) for root in roots):
        return ""
    return min(roots & FRAMEWORKS, default="")


def _foreign_receiver(work: Work, node: ast.expr) -> str:
    """The library that made the value whose attribute is read, when its file shows it and it is not torch."""
    for _ in range(_LONGEST_CHAIN):
        if not isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            break
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        return ""
    bindings = work.names.bindings_of(node)
    if not bindings:
        return node.id if node.id in FOREIGN else ""
    makers: set[str] = set()
    for binding in bindings:
        if binding.kind == "import":
            makers.add(binding.target.split(".")[0])
        elif binding.kind == "assign":
            made = assigned_value(binding.node)
            full = work.names.qualified(made.func) if isinstance(made, ast.Call) else None
            makers.add(full.split(".")[0] if full else "")
        else:
            makers.add("")
        if not makers <= FOREIGN or len(makers) > 1:  # a name that is assigned thousands of times is read as often
            return ""
    return makers.pop() if makers else ""


def _names_bound_classes(work: Work) -> bool:
    held = {*work.scan.attributes, *work.scan.names}
    return any(full.rpartition(".")[2] in held for full in bound_classes())


def _is_of_bound_class(work: Work, node: ast.Attribute) -> bool:
    """True for an object of a class such as bitsandbytes' Params4bit, whose `.cuda()` quantises, in the function that
    makes it.
    """
    if not work.once(_names_bound_classes):
        return False
    made = node.value
    if not isinstance(made, ast.Call):
        text = ast.unparse(made)
        function = next(each for each in chain(node) if isinstance(each, (ast.Module, *FUNCTIONS)))
        values = [
            each.value
            for each in inner_nodes(function, ast.Assign)
            if each.lineno <= node.lineno and text in map(ast.unparse, each.targets)
        ]
        if not values or not isinstance(made := values[-1], ast.Call):
            return False
    return work.names.qualified(made.func) in bound_classes()


def _foreign_base(work: Work, node: ast.Attribute) -> str:
    """The class that `super()` reaches, when another library defines it and it does not look like an nn.Module."""
    call = node.value
    if not (isinstance(call, ast.Call) and plain_name(call.func) == "super"):
        return ""
    owner = next(of_kind(ast.ClassDef, chain(node)), None)
    for base in owner.bases if owner is not None else ():
        full = work.names.qualified(base)
        if full is None or full.split(".")[0] == "torch" or work.slots.own.project_name(full) is not None:
            continue
        last = full.rpartition(".")[2]
        if not last.endswith(("Module", "Model", "Net", "Layer", "Tensor", "Mixin", "Base", "Head")):
            return full
    return ""


def _own_class(work: Work, node: ast.Attribute, old: str) -> str:
    """The class of the project whose own `cuda` or `is_cuda` is read, where the object is known to be one."""
    value = node.value
    if isinstance(value, ast.Call):
        owner = work.slots.own.definition(value.func)
    elif isinstance(value, ast.Name):
        known = work.slots.own.class_named(value)
        owner = work.slots.own.class_around(node) if value.id in SELF else known
    else:
        owner = None
    if owner is None:
        return ""
    owner = work.project.canonical(owner)
    family, own = (owner, *work.project.reach.graph.above(owner)), work.once(_own_cuda)
    found = next((each for each in family if f"{each}.{old}" in own), "")
    return found.rpartition(".")[2]


def _own_cuda(work: Work) -> frozenset[str]:
    """The classes with a `cuda` of their own."""
    return work.project.own_cuda | own_cuda(work.slots)


def _may_be_stored(work: Work, node: ast.Attribute) -> bool:
    """True where an object may be of a class that stores `is_cuda`: the file defines or names such a class."""
    if work.once(_stored_on, "is_cuda"):
        return True
    classes = {each.rpartition(".")[0] for each in work.once(_own_cuda) if each.endswith(".is_cuda")}
    if not classes:
        return False
    bindings = (binding for found in work.scan.root.bindings.values() for binding in found if binding.kind == "import")
    named = {work.project.canonical(binding.target) for binding in bindings}
    return any(each in named or each.rpartition(".")[0] == work.slots.own.module for each in classes)


def _is_called(node: ast.Attribute) -> bool:
    """True for a method that is called, also as one of two: `(a.cuda if gpu else a.cpu)()`."""
    current: ast.AST = node
    above = parent(current)
    while isinstance(above, ast.IfExp) and above.test is not current:
        current, above = above, parent(above)
    return isinstance(above, ast.Call) and above.func is current


def _own_data(work: Work, node: ast.Attribute, old: str) -> bool:
    """`self.cuda(...)` or `self.is_cuda` where the class itself stores that attribute, or a flag of that name."""
    value = node.value
    own = plain_name(value) in SELF
    if old == "is_cuda":
        flag = "is_cuda" in work.project.flags or bool(work.once(_stored_on, old))
        return flag and (_receiver(node) in _SETTINGS or (own and bool(work.once(_stored_on, old))))
    return own and any(plain_name(target) in SELF for target in work.once(_stored_on, old))


def _stored(work: Work, name: str) -> bool:
    """True when the project keeps data under an attribute of that name."""
    if name in work.project.flags or name in work.project.cuda_data:
        return True
    return bool(work.once(_stored_on, name))


def _stored_on(work: Work, name: str) -> list[ast.expr]:
    """The objects whose attribute of that name the file writes or deletes."""
    return [each.value for each in work.scan.attributes.get(name, ()) if not isinstance(each.ctx, ast.Load)]


def _receiver(node: ast.Attribute) -> str:
    value = node.value
    return value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""


# --- without a call --------------------------------------------------------------------------------------------------


def _uncalled(work: Work, node: ast.Attribute) -> Finds:
    """`x.cuda` without a call: mostly a flag of the project (`args.cuda`), sometimes a bound method."""
    if _stored(work, "cuda") or _is_condition(node) or _receiver(node) in _SETTINGS:
        yield work.keep(node, _OWN_DATA)
    elif work.take(node):
        yield work.note(
            node,
            "NPU212",
            "`.cuda` is used here without a call",
            api="torch.Tensor.cuda",
            help="write `.npu` for the method of a tensor or module; otherwise do not change it",
            effort=Effort.LOW,
        )


def _is_condition(node: ast.AST) -> bool:
    """True where only a truth value makes sense."""
    match parent(node):
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
            return test is node
        case ast.UnaryOp(op=ast.Not()) | ast.Compare() | ast.BoolOp():
            return True
    return False


# --- getattr(x, "cuda")() --------------------------------------------------------------------------------------------


def _name_in_string(work: Work, node: ast.Constant, old: str) -> Finds:
    """`getattr(x, 'cuda')()`, `hasattr(x, 'cuda')`, `operator.methodcaller('cuda')` follow the attribute they name."""
    if id(node) in work.taken:
        return
    match parent(node):
        case ast.Call(func=func, args=[first, *_]) as call if last_name(func) == "methodcaller":
            moves = first is node
        case ast.Call(func=func, args=[receiver, second, *_]) as call if second is node and last_name(func) in (
            "getattr",
            "hasattr",
        ):
            if work.settings.style == "portable" and last_name(func) == "hasattr":
                yield work.keep(node, "library-name", "torch")  # a tensor has it on every device
                return
            full = work.names.qualified(receiver)
            if full is not None and full.split(".")[0] == "torch":
                moves = last_name(func) == "getattr" and full == "torch"
            elif root := _foreign_receiver(work, receiver):
                yield work.keep(node, "library-name", root)
                return
            elif _stored(work, old) or last_name(receiver) in _SETTINGS:
                yield work.keep(node, _OWN_DATA)
                return
            else:
                asks = last_name(func) == "hasattr" or called_name(parent(call)) == "callable"
                moves = old == "is_cuda" or (_called_on(work, receiver) if asks else call_of(call) is not None)
        case _:
            return
    text = work.text(node)
    if not moves or text.count(old) != 1 or not work.take(node):
        return
    new = _NEW[old]
    yield Edit(
        node,
        "NPU218",
        f"the method named in {last_name(func)}: {old} -> {new}",
        words_in_literal({old: new}),
        api=f"torch.Tensor.{old}",
        writes_npu=True,
    )


def _called_on(work: Work, receiver: ast.expr) -> bool:
    """True when the file calls `.cuda()` on the same expression."""
    wanted = ast.dump(receiver)
    calls = (node for node in work.scan.attributes.get("cuda", ()) if call_of(node) is not None)
    return any(ast.dump(node.value) == wanted for node in calls)
