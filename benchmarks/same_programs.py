"""Writes right ports by program, each in another way, and tells what `transplt judge` accuses: nothing would be right.

usage: python benchmarks/same_programs.py FOLDER... [--only WAY]

Each folder is a program in Python. A way rewrites each of its files so that it computes the same; what judge then says
against it is a false accusal, and what it leaves open could be told.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from transplt.project.judging.differences import Differences, differences
from transplt.project.judging.sides import Side, read_side

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NESTED = (*_FUNCTIONS, ast.ClassDef, ast.Lambda, ast.Global, ast.Nonlocal)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions of a file with no other function inside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and sum(isinstance(each, _NESTED) for each in ast.walk(node)) == 1:
            yield node


def _renamed(tree: ast.Module) -> None:
    for function in _functions(tree):
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        given = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
        own = {node.id for node in names if isinstance(node.ctx, ast.Store)} - given
        for node in names:
            if node.id in own:
                node.id += "_here"


def _reordered(tree: ast.Module) -> None:
    """Plain functions that follow each other stand in the opposite order, also methods."""
    for owner in [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef))]:
        run: list[ast.stmt] = []
        body: list[ast.stmt] = []
        for node in [*owner.body, ast.Pass()]:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                run.append(node)
            else:
                body, run = [*body, *reversed(run), node], []
        owner.body = body[:-1]


def _named(tree: ast.Module) -> None:
    """The first number that each function gives to a call has a name."""
    for function in _functions(tree):
        for number, node in enumerate(function.body):
            calls = (each for each in ast.walk(node) if isinstance(each, ast.Call)) if _is_plain(node) else ()
            for call in calls:
                numbers = (isinstance(getattr(each, "value", None), int | float) for each in call.args)
                places = [at for at, found in enumerate(numbers) if found]
                if places:
                    kept = ast.Assign([ast.Name("a_number", ast.Store())], call.args[places[0]], lineno=node.lineno)
                    call.args[places[0]] = ast.Name("a_number", ast.Load())
                    function.body.insert(number, kept)
                    break
            else:
                continue
            break


def _is_plain(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Assign, ast.Expr, ast.Return))


class _Conditional(ast.NodeTransformer):
    """Two branches that set or give back one thing -> a conditional expression, and the other way round."""

    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        match node.body, node.orelse:
            case [ast.Assign(targets=[one], value=value)], [ast.Assign(targets=[two], value=other)] if (
                ast.dump(one) == ast.dump(two)
            ):
                return ast.Assign([one], ast.IfExp(node.test, value, other), lineno=node.lineno)
            case [ast.Return(value=ast.expr() as value)], [ast.Return(value=ast.expr() as other)]:
                return ast.Return(ast.IfExp(node.test, value, other))
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        if not isinstance(node.value, ast.IfExp):
            return node
        sides = ([ast.Assign(node.targets, each, lineno=node.lineno)] for each in (node.value.body, node.value.orelse))
        return ast.If(node.value.test, *sides)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if not isinstance(node.value, ast.IfExp):
            return node
        return ast.If(node.value.test, *([ast.Return(each)] for each in (node.value.body, node.value.orelse)))


class _Format(ast.NodeTransformer):
    """f"{x:.2f}" -> "{:.2f}".format(x)"""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        text, values = "", []
        for each in node.values:
            match each:
                case ast.Constant(value=str() as value):
                    text += value.replace("{", "{{").replace("}", "}}")
                case ast.FormattedValue(value=value, conversion=-1, format_spec=None | ast.JoinedStr() as spec) if (
                    all(isinstance(part, ast.Constant) for part in getattr(spec, "values", ()))
                ):
                    said = "".join(part.value for part in spec.values) if spec else ""
                    text += f"{{:{said}}}" if said else "{}"
                    values.append(value)
                case _:
                    return node
        return ast.Call(ast.Attribute(ast.Constant(text), "format", ast.Load()), values, [])


class _Logged(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Call(func=ast.Name(id="print"), args=[one], keywords=[]):
                return ast.Expr(ast.Call(ast.Attribute(ast.Name("logger"), "info"), [one], []))
        return node


def _logged(tree: ast.Module) -> None:
    _Logged().visit(tree)
    _at_top(tree, "import logging\nlogger = logging.getLogger(__name__)")


def _at_top(tree: ast.Module, text: str) -> None:
    after = [at for at, node in enumerate(tree.body) if getattr(node, "module", "") == "__future__"]
    start = after[-1] + 1 if after else bool(tree.body and isinstance(tree.body[0], ast.Expr))
    tree.body[start:start] = ast.parse(text).body


def _hinted(tree: ast.Module) -> None:
    for function in _functions(tree):
        function.returns = ast.Name("object")
        for each in function.args.args:
            each.annotation = None if each.arg == "self" else ast.Name("object")


def _guarded(tree: ast.Module) -> None:
    """`if x: ...` at the end of a loop or a function -> `if not x: continue` or `return` before the rest."""
    for owner in [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.FunctionDef))]:
        match owner.body[-1]:
            case ast.If(test=test, body=[_, _, *_] as body, orelse=[]):
                leaves = ast.Continue() if isinstance(owner, ast.For) else ast.Return()
                owner.body[-1:] = [ast.If(ast.UnaryOp(ast.Not(), test), [leaves], []), *body]


def _finally(tree: ast.Module) -> None:
    """What is opened is closed at the end, whatever happens."""
    for function in _functions(tree):
        for at, node in enumerate(function.body):
            if isinstance(node, ast.For):
                close = ast.parse("torch.npu.empty_cache()").body
                function.body[at] = ast.Try([node], [], [], close)


def _barred(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and "loader" in ast.unparse(node.iter):
            node.iter = ast.Call(ast.Name("tqdm"), [node.iter], [ast.keyword("desc", ast.Constant("train"))])
    _at_top(tree, "from tqdm import tqdm")


def _extracted(tree: ast.Module) -> None:
    """The last statements of a plain function that give something back are a function of their own."""
    for owner in [node for node in ast.walk(tree) if isinstance(node, ast.Module)]:
        for function in [node for node in owner.body if node in {*_functions(tree)}]:
            *first, last = function.body
            if len(first) < _LONG or not isinstance(last, ast.Return) or last.value is None:
                continue
            tail, function.body = function.body[-_TAIL:], function.body[:-_TAIL]
            read = {node.id for each in tail for node in ast.walk(each) if isinstance(node, ast.Name)}
            known = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
            known |= {node.id for each in function.body for node in ast.walk(each)
                      if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip
            names = sorted(read & known)
            call = ast.Call(ast.Name(f"_rest_of_{function.name}"), [ast.Name(each) for each in names], [])
            function.body.append(ast.Return(call))
            given = ast.arguments([], [ast.arg(each) for each in names], None, [], [], None, [])
            made = ast.FunctionDef(f"_rest_of_{function.name}", given, tail, [])
            owner.body.insert(owner.body.index(function), made)


def _looped(tree: ast.Module) -> None:
    """x = [f(y) for y in z] -> a loop that appends"""
    for owner in [node for node in ast.walk(tree) if hasattr(node, "body") and isinstance(node.body, list)]:
        for at, node in reversed([*enumerate(owner.body)]):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp(elt, [one])) if not one.ifs:
                    append = ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [elt], []))
                    loop = ast.For(one.target, one.iter, [append], [], lineno=node.lineno)
                    if name not in ast.unparse(one):
                        owner.body[at : at + 1] = [ast.Assign(node.targets, ast.List([]), lineno=node.lineno), loop]


#: Functions of so many statements lose so many of them to another one.
_LONG, _TAIL = 4, 3
WAYS: dict[str, Callable[[ast.Module], object]] = {
    "comment": lambda tree: None,
    "unparse": lambda tree: None,
    "renamed": _renamed,
    "reordered": _reordered,
    "named": _named,
    "conditional": lambda tree: _Conditional().visit(tree),
    "logged": _logged,
    "hinted": _hinted,
    "guarded": _guarded,
    "finally": _finally,
    "barred": _barred,
    "extracted": _extracted,
    "looped": _looped,
    "format": lambda tree: _Format().visit(tree),
}


def same(original: Side, way: str) -> Differences:
    """What judge says of a program that was written in another way."""
    port = Side(original.root, {**original.files})
    for path in port.python:
        try:
            tree = ast.parse(port.files[path])
        except SyntaxError:
            continue
        WAYS[way](tree)
        text = b"" if way == "comment" else ast.unparse(ast.fix_missing_locations(tree)).encode()
        port.files[path] = text or port.files[path] + b"\n# a comment\n"
    return differences(original, port)


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", choices=WAYS, action="append")
    args = parser.parse_args()
    for folder in args.folders:
        for way in args.only or WAYS:
            found = same(read_side(folder), way)
            print(f"{folder.name} {way}: {len(found.against)} accused, {len(found.open)} open {found.drift}")
            for mark, told in (("accused", found.against), ("open", found.open)):
                for each in told:
                    print(f"  {mark} {each.path}:{each.span.line}: {each.message[:200]}")


if __name__ == "__main__":
    main()
