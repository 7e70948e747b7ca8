"""The backends of torch.compile: `cudagraphs` is `npugraphs` on the NPU; inductor, the default, needs triton-ascend.

torch_npu registers it from its 2.6 on (torch_npu/dynamo/__init__.py; facts: torch.compile in the native API list).
"""

from __future__ import annotations

import ast
from dataclasses import replace

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.work import Work
from transplt.flow.last_value import last_value
from transplt.flow.program_switches import SUPPRESSES, is_set
from transplt.program.nn_modules import NnModules
from transplt.program.program import program_of
from transplt.rules.torch_callables import full_names
from transplt.rules.versions import versions_of
from transplt.syntax.conditions import implied
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import keyword_of, last_name, string_of
from transplt.syntax.scan import chain, parent

_WORDS = ("cudagraphs", "compile(", "torch.compile", "aoti_compile")
fixer = Fixer(__name__, code="NPU150", rank=330, needs=(b"torch", b"compile"), words=_WORDS)


@fixer.on(ast.Constant)
def argument_of_compile(work: Work, node: ast.Constant) -> Finds:
    if node.value != "cudagraphs":
        return
    above = parent(node)
    call = parent(above) if isinstance(above, ast.keyword) and above.arg == "backend" else above
    full = work.names.qualified(call.func) if isinstance(call, ast.Call) else None
    if full is None or full not in full_names("compiles") or not work.take(node):
        return
    if work.settings.torch_version in versions_of(">=2.6"):
        new = words_in_literal({"cudagraphs": "npugraphs"})
        yield Edit(node, "NPU150", "backend 'cudagraphs' -> 'npugraphs'", new, api=full, writes_npu=True)
    else:
        yield work.note(
            node,
            "NPU151",
            "this version of torch_npu has no backend that captures graphs",
            api=full,
            help="remove the backend, or use torch_npu for torch 2.6 or newer, which has 'npugraphs'",
        )


#: It compiles what torch.export.export, which runs on the host, has traced: KeyError: 'npu' without triton-ascend.
_AHEAD = "torch._inductor.aoti_compile_and_package"
#: What torch.compile, and the method of a module that hands them on, takes by name.
_SWITCHES = frozenset({"fullgraph", "dynamic", "backend", "mode", "options", "disable"})
#: Those that no other `compile` has.
_OWN_SWITCHES = frozenset({"fullgraph", "dynamic"})
#: So many values are gone back for what a backend may be.
_LONGEST_WAY = 4


@fixer.on(ast.Call, name=("torch.compile", _AHEAD))
def compiled_by_inductor(work: Work, call: ast.Call) -> Finds:
    """Report what inductor compiles, which it does with and without CUDA graphs (NPU281), and ahead of time."""
    yield from _note(work, call.func, call)


@fixer.on(ast.Call, last="compile")
def compiles_itself(work: Work, call: ast.Call) -> Finds:
    """Report `model.compile(mode=...)`, which torch's modules have since torch 2.1."""
    if call.args or not isinstance(call.func, ast.Attribute) or work.names.qualified(call.func) is not None:
        return
    given = {each.arg for each in call.keywords if each.arg is not None}
    if not given <= _SWITCHES:
        return
    settings = any(each.arg is None and "compile" in work.text(each.value) for each in call.keywords)
    if settings or not given.isdisjoint(_OWN_SWITCHES) or work.once(_modules).is_one(work.file, call.func.value):
        yield from _note(work, call.func, call)


def _modules(work: Work) -> NnModules:
    return NnModules(program_of([work.file], work.project))


@fixer.on(ast.Attribute, last="compile")
def handed_on(work: Work, node: ast.Attribute) -> Finds:
    """Report `@torch.compile`, and torch.compile where it is given to a name or to functools.partial."""
    above = parent(node)
    match above:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Assign(value=ast.Attribute()):
            call = None
        case ast.IfExp(test=test) if test is not node:
            call = None
        case ast.Call(func=func, args=[first, *_]) if first is node and last_name(func) == "partial":
            call = above
        case _:
            return
    if isinstance(node.ctx, ast.Load) and work.names.qualified(node) == "torch.compile":
        yield from _note(work, node, call)


def _note(work: Work, at: ast.expr, call: ast.Call | None) -> Finds:
    """Report what inductor compiles as a call says, where it can be; without one all is left as it is by default."""
    backend, chosen = _backend(work, call) if call is not None else (None, "")
    if not _may_be_inductor(work, backend, _LONGEST_WAY):
        return
    if call is not None:
        off = keyword_of(call, "disable")
        if isinstance(off, ast.Constant) and off.value:
            return
    # What a function hands on (`*args`), others decide to compile.
    handed_on = call is not None and any(isinstance(each, ast.Starred) for each in call.args)
    if chosen:
        message = f"torch.compile({chosen}) compiles with inductor unless another backend is chosen, and needs "
        message += "triton-ascend on an NPU"
    else:
        name = _AHEAD if work.names.qualified(at) == _AHEAD else "torch.compile"
        message = f"{name} uses inductor, which needs triton-ascend on an NPU"
    note = work.note(
        at,
        "NPU512",
        message,
        api="torch.compile",
        help="pip install triton-ascend instead of triton, or remove the call. From torch_npu 2.7 on "
        "TORCHINDUCTOR_NPU_BACKEND=mlir (or dvm) does without Triton",
        blocks="slow" if is_set(work.project.switches, SUPPRESSES) else "later" if handed_on else "",
    )
    switch = _switch(at)
    yield replace(note, help=f"switch {switch} off, or {note.help}") if switch else note


def _switch(at: ast.expr) -> str:
    """What a program asks itself before it compiles: `if cfg.compile:`."""
    for above in chain(at):
        for atom in implied(above.test, True) if isinstance(above, ast.If) else ():
            if atom.truth and "compile" in last_name(atom.node):  # of a call there is none
                return ast.unparse(atom.node)
    return ""


def _backend(work: Work, call: ast.Call) -> tuple[ast.expr | None, str]:
    """The backend that a call asks for, and the argument that says which, where it is not written out."""
    for each in call.keywords:
        given = last_value(work.scan, each.value) if isinstance(each.value, ast.Name) else each.value
        if each.arg == "backend":
            return each.value, "" if isinstance(given, ast.Constant) else f"backend={work.text(each.value)}"
        if each.arg is None and isinstance(given, ast.Dict):
            for key, value in zip(given.keys, given.values, strict=True):
                if string_of(key) == "backend":
                    return value, "" if isinstance(value, ast.Constant) else f"**{work.text(each.value)}"
        elif each.arg is None:
            return None, f"**{work.text(each.value)}"
    return None, ""


def _may_be_inductor(work: Work, backend: ast.expr | None, steps: int) -> bool:
    """False for another backend that is named, and for one that is a function."""
    match backend:
        case None:
            return True
        case ast.Constant(value=value):
            return value in (None, "inductor")
        case ast.IfExp(body=one, orelse=other) if steps:
            return any(_may_be_inductor(work, each, steps - 1) for each in (one, other))
        case ast.BoolOp(values=values) if steps:
            return any(_may_be_inductor(work, each, steps - 1) for each in values)
        case ast.Name() if steps:
            bound = work.names.bindings_of(backend)
            given = [assigned_value(each.node) for each in bound if each.kind == "assign"]
            return any(each.kind == "param" for each in bound) or any(
                value is not None and _may_be_inductor(work, value, steps - 1) for value in given
            )
        case ast.Call(func=func):
            return last_name(func) in ("get", "getattr")
    return isinstance(backend, (ast.Attribute, ast.Subscript)) and work.names.qualified(backend) is None
