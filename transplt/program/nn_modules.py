"""Which expressions of a program certainly are modules of torch (`torch.nn.Module`)."""

from __future__ import annotations

import ast

from transplt.flow.gates.graph import ancestors
from transplt.program.appended_items import appended
from transplt.program.followed_values import Traced
from transplt.program.program import SAME_MODULE, File, enclosing_function
from transplt.rules.torch_callables import MODULE, full_names, names_of
from transplt.syntax.names import SELF
from transplt.syntax.nodes import arguments_of, call_of, last_name
from transplt.syntax.scan import ancestor, parent

#: What a module has and a tensor has not. Optimizers have other names of these, and no `.to`.
_OF_MODULES = sorted(names_of(MODULE, "module_only"))
#: What gives back the module that it is given first, or another around it.
_AROUND = full_names("converts", "compiles") | {"copy.deepcopy", "copy.copy", "torch.jit.script", "torch.jit.trace"}
_MAKERS = ("torchvision.models.", "torch.hub.load", "timm.create_model")
_CONTAINERS = frozenset({"torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.Sequential"})
#: Classes of torch.nn that are no modules.
_NO_MODULES = ("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.utils.", "torch.nn.parameter.", "torch.nn.attention.")


class NnModules(Traced):
    """The modules of a program: made by a class of modules, or used as one."""

    def _is(self, file: File, node: ast.expr) -> bool:
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME_MODULE:
            if node.func.attr in _OF_MODULES:
                return True
            node = node.func.value  # the model in `Net().cuda().half()`
        if isinstance(node, ast.Name) and node.id in SELF:
            return self.is_class(ancestor(node, ast.ClassDef, "_class"))
        return super()._is(file, node) or self._is_used_as_one(file, node) or self._is_of_several(file, node)

    def made(self, file: File, node: ast.expr) -> bool:
        """True for a call of a class of modules, and of what gives back the module that it is given."""
        if not isinstance(node, ast.Call):
            return False
        full = file.names.qualified(node.func) or ""
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self.is_class(ancestor(node, ast.ClassDef, "_class"))
        if full in _AROUND and node.args:
            return self.is_one(file, node.args[0])
        if full.startswith(_MAKERS):
            return True
        if full.startswith("torch.nn."):
            return last_name(node.func)[:1].isupper() and not full.startswith(_NO_MODULES)
        made = self.program.named(file, node.func)
        return made is not None and self.is_class(made)

    def is_class(self, node: ast.AST) -> bool:
        """True for a class below one of modules, by what it derives from in its program."""
        program = self.program

        def own_bases(cls: ast.ClassDef) -> list[ast.ClassDef]:
            named = (program.named(program.owner[cls], base) for base in cls.bases)
            return [each for each in named if isinstance(each, ast.ClassDef)]

        for cls in (node, *ancestors(node, own_bases)) if isinstance(node, ast.ClassDef) else ():
            for base in cls.bases:  # those of torch or another library, by their names
                full = program.owner[cls].names.qualified(base) or ""
                of_torch = full.startswith("torch.nn.") and not full.startswith(_NO_MODULES)
                if of_torch or last_name(base).endswith(("Module", "PreTrainedModel")):
                    return True
        return False

    def _is_used_as_one(self, file: File, node: ast.expr) -> bool:
        """True for a variable of which the file calls what modules alone have: `model.parameters()`."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return False
        slot, text = self.program.slot(file, node), ast.unparse(node)
        for each in (each for name in _OF_MODULES for each in file.scan.attributes.get(name, ())):
            if call_of(each) is None or ast.unparse(each.value) != text:
                continue
            if self.program.slot(file, each.value) == slot and (
                slot is not None or enclosing_function(each) is enclosing_function(node)
            ):
                return True
        return False

    def _is_of_several(self, file: File, node: ast.expr) -> bool:
        """True for the variable of a loop over modules: `for net in (a, b):`."""
        found = file.names.lookup(node.id, file.scan.scope_of(node)) if isinstance(node, ast.Name) else None
        above = parent(found[1][0].node) if found is not None and len(found[1]) == 1 else None
        if not isinstance(above, (ast.For, ast.comprehension)) or above.target is not found[1][0].node:  # type: ignore[index]
            return False
        return self._are(file, above.iter)

    def _are(self, file: File, node: ast.expr) -> bool:
        """True for a list of modules."""
        match node:
            case ast.List(elts=every) | ast.Tuple(elts=every) | ast.Dict(values=every):
                return bool(every) and all(self.is_one(file, each) for each in every)
            case ast.ListComp():
                return self.is_one(file, node.elt)
            case ast.Call(func=ast.Attribute(attr="modules" | "children")):
                return True
            case ast.Call(func=ast.Attribute(value=table, attr="values")):
                return self._are(file, table)
            case ast.Call():
                return file.names.qualified(node.func) in _CONTAINERS and bool(arguments_of(node))
            case ast.Name() if items := appended(file, node):
                return all(self.is_one(file, each) for each in items)
        values = self._held(file, node)
        return bool(values) and all(each.index is None and self._are(each.file, each.node) for each in values)
