"""Tests for "not the CPU", which an NPU passes as a card of NVIDIA does, and code that computes without torch there."""

from __future__ import annotations

import ast
import sys

from transplt.flow.callees import NEEDS_A_CARD, OTHER_DEVICES, SIMULATORS
from transplt.flow.device_or_backend import holds
from transplt.flow.facts import ProjectFacts
from transplt.flow.gates.code_facts import function_around
from transplt.flow.gates.conditions import is_gate
from transplt.flow.gates.cuda_side import CudaSide
from transplt.flow.marks import DEVICE
from transplt.flow.slots import Slots
from transplt.rules.rule_set import RuleSet
from transplt.syntax.conditions import implied, leaves, sides_of
from transplt.syntax.modules import import_base
from transplt.syntax.nodes import inner_nodes, last_name
from transplt.syntax.scan import FUNCTIONS, parent, statement

#: Packages that open CUDA devices by themselves, and go by CUDA_VISIBLE_DEVICES: not the simulators, which run beside
#: torch as a rule, and no package whose values are those of torch.
_FRAMEWORKS = (NEEDS_A_CARD | OTHER_DEVICES | {"onnxruntime"}) - SIMULATORS - {"cuda", "nvidia", "pykeops"}
#: Packages of numbers, tables and pictures that have no device.
_WITHOUT_DEVICES = frozenset("numpy scipy pandas matplotlib sklearn PIL cv2 tqdm absl yaml h5py seaborn".split())


def truth_off_the_cpu(slots: Slots, node: ast.Compare) -> bool | None:
    """The truth value of a comparison of a device with the CPU alone for any card; None for other comparisons."""
    if len(node.ops) != 1:
        return None
    for side, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        match side:
            case ast.Constant(value="cpu"):
                pass
            case ast.Call(func=func, args=[ast.Constant(value="cpu"), *_]) if last_name(func) == "device":
                pass
            case _:
                continue
        if holds(slots, other, DEVICE):
            return isinstance(node.ops[0], (ast.NotEq, ast.IsNot))
    return None


def asked_beside_cuda(slots: Slots, node: ast.expr) -> bool:
    """True for a part of a condition that is asked together with a test for CUDA, or behind one: that decides."""
    inner: ast.AST = node
    while not isinstance(inner, (*FUNCTIONS, ast.Module)):
        above = parent(inner)
        tests: list[ast.expr] = []
        if isinstance(above, ast.BoolOp):
            tests = [each for each in above.values if each is not inner]
        elif isinstance(above, (ast.If, ast.IfExp, ast.While)) and inner is not above.test:
            tests = [above.test]
        if any(is_gate(slots, atom.node) for test in tests for atom in implied(test, True) if atom.truth):
            return True
        inner = above
    return False


def refuses_the_cpu(node: ast.expr, truth: bool) -> bool:
    """True where the program stops if a test has another answer: all the rest lies behind it, and no other path."""
    if isinstance(statement(node), ast.Assert):
        return True
    other = sides_of(node, truth).other
    last = other[-1] if other else None
    return isinstance(last, ast.Raise) or (isinstance(last, ast.Expr) and leaves([last]))


def steers(slots: Slots, rules: RuleSet, project: ProjectFacts, node: ast.AST) -> str:
    """The library that a variable of the environment steers where its name stands; empty where torch may be meant.

    Certain is a function that names nothing of torch, and uses such a library, or asks for "not the CPU" in front of
    its CUDA side; and a file that imports one, and besides that nothing which could lead to torch.
    """
    function = function_around(node)
    if function is None:
        return _of_the_file(slots)
    found = ""
    for inner in inner_nodes(function, ast.Name):
        if isinstance(inner.ctx, ast.Load):
            root = (slots.names.qualified(inner) or "").partition(".")[0]
            if root == "torch":
                return ""
            found = found or (root if root in _FRAMEWORKS else "")
    if found or "cpu" not in ast.unparse(function):
        return found or _of_the_file(slots)
    asked = [
        (each, truth)
        for each in slots.scan.compares
        if function_around(each) is function and (truth := truth_off_the_cpu(slots, each)) is not None
    ]
    side = CudaSide(slots, rules, project) if asked else None
    for each, truth in asked if side is not None else ():
        answer = side.of(each, truth, of_a_tensor=True) if side is not None else None
        library = answer.why.partition(",")[0].partition(".")[0] if answer is not None else ""
        if library in _FRAMEWORKS:
            return library
    return _of_the_file(slots)


def _of_the_file(slots: Slots) -> str:
    roots: set[str] = set()
    for node in slots.scan.imports:
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        else:
            roots.add(import_base(slots.scan.path, node).partition(".")[0])
    named = roots & _FRAMEWORKS
    if roots - named - _WITHOUT_DEVICES - sys.stdlib_module_names:
        return ""
    if any(getattr(parent(each), "func", None) is each for each in slots.scan.attributes.get("cuda", ())):
        return ""  # `x.cuda()` moves a tensor, wherever torch was imported
    return min(named, default="")
