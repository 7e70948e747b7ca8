"""Environment variables of CUDA and NCCL: read, set, passed to a child process.

A name is changed where it certainly names a variable of the environment, and where the new name does with the same
value what the old one did (`transplt.rules.environment`). Names that no table knows are the project's own.
"""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Effort, Level
from transplt.base.text.lexer import one_plain_literal
from transplt.edits.edit import Edit, Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import renamed_arguments
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.work import Work
from transplt.fixers.codemods.command_lines import moved_options, runs, swapped
from transplt.flow.destinations import places
from transplt.flow.device_strings import whole_value
from transplt.flow.gates.not_cpu import steers
from transplt.rules.environment import Variable, variables, without_effect
from transplt.rules.environment import objection as refusal
from transplt.syntax.nodes import attribute_of, last_name, plain_name, string_of
from transplt.syntax.scan import FUNCTIONS, chain, parent

fixer = Fixer(__name__, code="NPU220", rank=520)

_ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_HOLDER = re.compile(
    r"(?:^|_)(?:env|environ|environment|envvar)s?(?:\d|$|_(?!info|report|name|str|text|table|data))", re.I
)
#: Variables that mark a dict of upper-case keys as an environment.
_LAUNCHED = frozenset(
    "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK MASTER_ADDR MASTER_PORT OMP_NUM_THREADS "
    "LD_LIBRARY_PATH PYTHONPATH PYTHONHASHSEED SLURM_PROCID SLURM_LOCALID".split()
)
#: The variable that every library which opens CUDA devices reads, by the driver.
_SHARED = "CUDA_VISIBLE_DEVICES"
_ACCESS = frozenset({"get", "pop", "setdefault", "__contains__", "__getitem__"})


@fixer.on(ast.Constant)
def named_in_a_string(work: Work, node: ast.Constant) -> Finds:
    """Decide for a string that is the name of an environment variable, or a command that sets one."""
    value = str(node.value)
    if value.isupper() and _ENVIRONMENT_NAME.fullmatch(value) and not isinstance(parent(node), ast.JoinedStr):
        if id(node) not in work.taken:
            yield from _name(work, node, value, variables().get(value))
    elif _SETS.search(value):
        yield from _command(work, node)


@fixer.on(ast.Module)
def given_by_keyword(work: Work, tree: ast.Module) -> Finds:
    """`dict(os.environ, CUDA_VISIBLE_DEVICES="0")`: names of variables as keywords."""
    known = variables()
    if any(pattern.search(work.source.utf8) for pattern in _KEYWORDS):
        for call in work.scan.calls:
            for keyword in call.keywords:
                if keyword.arg in known and known[keyword.arg].npu:
                    yield from _keyword(work, call, keyword, known[keyword.arg])


@fixer.on(ast.ClassDef)
def given_by_a_field(work: Work, owner: ast.ClassDef) -> Finds:
    """`NCCL_DEBUG: str = "INFO"` of a class of settings, which somebody puts into the environment by its name."""
    for each in owner.body:
        match each:
            case ast.AnnAssign(target=ast.Name(id=name) as field) | ast.Assign(targets=[ast.Name(id=name) as field]):
                variable = variables().get(name)
                if variable is None or variable.npu == name or string_of(each.value) == name:
                    continue
                if not variable.npu:
                    yield _no_effect(work, field, name, variable.note)
                elif variable.carries == "no" and "NCCL" not in name:
                    yield work.keep(field, "idle-variable")
                else:
                    yield _doubted(work, field, variable)


def _doubted(work: Work, node: ast.expr | ast.keyword, variable: Variable) -> Note:
    return work.note(
        node,
        "NPU223",
        f"{variable.name} may be the name of an environment variable here",
        help=f"if so, its counterpart is {variable.npu}: {variable.note}",
        effort=Effort.LOW,
    )


def _no_effect(work: Work, node: ast.expr, name: str, note: str = "") -> Note:
    help_ = note if note not in ("", "no counterpart") else ""
    return work.note(node, "NPU222", f"{name} has no effect on NPU", level=Level.INFO, help=help_)


def _name(work: Work, node: ast.Constant, value: str, variable: Variable | None) -> Finds:
    certain = names_environment(work, node)
    if variable is None:
        if certain and work.take(node):
            nobody = without_effect(value)
            yield _no_effect(work, node, value) if nobody else work.keep(node, "own-variable")
        return
    if not work.take(node):
        return
    if not variable.npu:
        yield _no_effect(work, node, value, variable.note)
    elif any(string_of(each) == variable.npu for each in getattr(parent(node), "elts", ())):
        yield work.keep(node, "row-there")
    elif not certain and variable.carries == "no":
        yield work.keep(node, "idle-variable")
    elif not certain:
        yield _doubted(work, node, variable)
    else:
        yield from _rename(work, node, variable)


def _rename(work: Work, node: ast.Constant, variable: Variable) -> Finds:
    if variable.name == _SHARED and (library := steers(work.slots, work.rules, work.project, node)):
        yield work.note(
            node,
            "NPU222",
            f"{variable.name} is read by {library} under this name: not changed",
            level=Level.INFO,
            help=f"on a host without NVIDIA cards, {library} finds no device; torch_npu reads {variable.npu}",
        )
        return
    reason = objection(work, variable, given_value(node))
    if reason and _is_removed(node):
        message = f"{variable.name} is removed from the environment: it has no effect on NPU"
        yield work.note(node, "NPU222", message, level=Level.INFO)
    elif reason:
        yield from _other_value(work, node, variable, reason)
    elif not one_plain_literal(work.text(node), [variable.name]):
        yield work.note(node, "NPU202", f"{variable.name} is not a single plain literal", help=f"write {variable.npu}")
    else:
        message = f"environment variable {variable.name} -> {variable.npu}"
        new = words_in_literal({variable.name: variable.npu})
        yield Edit(node, "NPU220", message, new, api=variable.name, help=variable.note)


def _other_value(work: Work, node: ast.expr | ast.keyword, variable: Variable, reason: str) -> Finds:
    yield work.note(
        node,
        "NPU221",
        f"{variable.npu}, the counterpart of {variable.name}, does not accept this value unchanged",
        api=variable.name,
        help=f"set {variable.npu} to a value that it takes: "
        + (f"{reason}; {variable.note}" if reason != variable.note else reason),
        effort=Effort.LOW,
        blocks="slow" if variable.name.startswith("NCCL_") else "",  # HCCL does not read it, and takes its default
    )


def objection(work: Work, variable: Variable, value: ast.expr | None) -> str:
    """Why a variable cannot be renamed with this value (None: it is read); empty when it can."""
    version = work.settings.torch_version
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return refusal(variable, version, value.value)
    return refusal(variable, version, computed=value is not None)


# --- where a name of the environment stands --------------------------------------------------------------------------


def names_environment(work: Work, node: ast.expr) -> bool:
    """True when the value of an expression certainly names a variable of the environment."""
    return work.names.ends_only(node, lambda place: _names_here(work, place))


def _names_here(work: Work, node: ast.expr) -> bool | ast.Name:
    """Whether a variable of the environment is named where a value stands; the variable where one is given it."""
    match parent(node):
        case ast.Subscript(value=holder, slice=index) if index is node:
            return is_environment(work, holder)
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn(), *_], comparators=[holder, *_]) if left is node:
            return is_environment(work, holder)
        case ast.Call(func=func, args=[first, *_]) if first is node:
            if work.names.qualified(func) in ("os.getenv", "os.putenv", "os.unsetenv"):
                return True
            if attribute_of(func) in ("setenv", "delenv"):
                return True
            return isinstance(func, ast.Attribute) and func.attr in _ACCESS and is_environment(work, func.value)
        case ast.Dict() as display if any(key is node for key in display.keys):
            return becomes_environment(work, display)
        case ast.Tuple() | ast.List() | ast.Set() as names:
            match parent(names):
                case ast.For(target=ast.Name() as target, iter=each) if each is names:
                    return target
                case ast.comprehension(target=ast.Name() as target, iter=each) if each is names:
                    return target
        case ast.Assign(targets=[ast.Name() as target]):
            return target
    return False


def is_environment(work: Work, node: ast.expr) -> bool:
    """True for `os.environ`, a copy of it, and variables called env."""
    match node:
        case ast.Call(func=ast.Attribute(value=copied, attr="copy" | "keys")):
            return is_environment(work, copied)
        case ast.Call(func=func):
            return plain_name(func) == "dict" and _copies_environment(work, node)
        case ast.Constant(value=value):
            return value == "os.environ"
    return work.names.qualified(node) == "os.environ" or bool(_HOLDER.search(last_name(node)))


def _copies_environment(work: Work, call: ast.Call) -> bool:
    spread = [keyword.value for keyword in call.keywords if keyword.arg is None]
    return any(is_environment(work, item) for item in [*call.args, *spread])


def becomes_environment(work: Work, node: ast.expr) -> bool:
    """True for a dict display (or a call of dict) whose entries end up in an environment."""
    if isinstance(node, ast.Dict) and _shows_an_environment(work, node):
        return True
    match parent(node):
        case ast.keyword(arg=name):
            return bool(name and _HOLDER.search(name))
        case ast.Assign(targets=targets):
            return any(is_environment(work, target) for target in targets)
        case ast.AnnAssign(target=target):
            return is_environment(work, target)
        case ast.Dict(keys=names, values=values) if node in values:
            return bool(_HOLDER.search(string_of(names[values.index(node)]) or ""))
        case ast.Call(func=ast.Attribute(attr="update" | "dict", value=holder), args=args) if node in args:
            return holder is not node and (is_environment(work, holder) or is_environment(work, args[0]))
        case ast.Return() as above:
            owner = next(each for each in chain(above) if isinstance(each, (*FUNCTIONS, ast.Lambda, ast.Module)))
            return isinstance(owner, FUNCTIONS) and bool(_HOLDER.search(owner.name))
    return False


def _shows_an_environment(work: Work, display: ast.Dict) -> bool:
    """True for a dict display with another environment in it, or with the variables of a launcher."""
    rows = zip(display.keys, display.values, strict=True)
    if any(key is None and is_environment(work, value) for key, value in rows):
        return True
    keys = {key for each in display.keys if (key := string_of(each)) is not None}
    return len(keys) == len(display.keys) and bool(keys & _LAUNCHED) and all(key.isupper() for key in keys)


def given_value(node: ast.expr) -> ast.expr | None:
    """The value that the variable named by `node` gets there; None where it is read or removed."""
    match parent(node):
        case ast.Subscript(ctx=ast.Store()) as entry:
            statement = parent(entry)
            return statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
        case ast.Call(func=ast.Attribute(attr="setdefault" | "setenv" | "putenv"), args=[_, value, *_]):
            return value
        case ast.Dict(keys=keys, values=values) if node in keys:
            return values[keys.index(node)]
    return None


def _is_removed(node: ast.expr) -> bool:
    match parent(node):
        case ast.Subscript(ctx=ast.Del()) | ast.Call(func=ast.Attribute(attr="delenv")):
            return True
        case ast.Call(func=ast.Attribute(attr="pop")) as call:
            return isinstance(parent(call), ast.Expr)
    return False


# --- names as keywords, and inside commands --------------------------------------------------------------------------

#: Text for people: a sentence, and the beginning of the next one.
_SENTENCES = re.compile(r"[a-z)`'\"][.!?:]\s+[A-Z][a-z]+ [a-z]")
_SETS = re.compile(r"(?:CUDA|NCCL|NVIDIA|PYTORCH|TORCH)_\w+=")
_ASSIGNMENT = re.compile(r"(?:^|[\s;&])([A-Z][A-Z0-9_]+)=")
#: A name followed by `=`: asked before all keywords are looked at. One literal prefix each, which `re` finds fast.
_KEYWORDS = (re.compile(rb"CUDA_[A-Z0-9_]*\s*=(?!=)"), re.compile(rb"NCCL_[A-Z0-9_]*\s*=(?!=)"))


def _keyword(work: Work, call: ast.Call, keyword: ast.keyword, variable: Variable) -> Finds:
    """`dict(os.environ, CUDA_VISIBLE_DEVICES="0")`, `os.environ.update(...)`."""
    if variable.npu == variable.name:
        return
    func = call.func
    certain = False
    if isinstance(func, ast.Name) and func.id == "dict":
        certain = _copies_environment(work, call) or becomes_environment(work, call)
    elif isinstance(func, ast.Attribute) and func.attr in ("update", "dict"):
        certain = is_environment(work, func.value) or bool(call.args and is_environment(work, call.args[0]))
    if not certain:
        yield _doubted(work, keyword, variable)
        return
    reason = objection(work, variable, keyword.value)
    if reason:
        yield from _other_value(work, keyword, variable, reason)
        return
    yield Edit(
        call,
        "NPU220",
        f"environment variable {variable.name} -> {variable.npu}",
        renamed_arguments({variable.name: variable.npu}, {}),
        api=variable.name,
        help=variable.note,
    )


def _command(work: Work, node: ast.Constant) -> Finds:
    """`os.system("CUDA_VISIBLE_DEVICES=0 python train.py")`: a variable set inside a shell command."""
    above = parent(node)
    outer: ast.expr = above if isinstance(above, ast.JoinedStr) else node
    text = whole_value(outer)
    names = [name for name in _ASSIGNMENT.findall(text) if name in variables() and variables()[name].npu]
    if id(outer) in work.taken or not names or isinstance(parent(outer), ast.Expr):
        return
    is_run = "\n" not in text and runs(work, outer)
    kinds = {place.kind for place in places(work.slots, outer)}
    if not is_run and (kinds <= {"prose", "flag", "help"} or "compare" in kinds or _SENTENCES.search(text)):
        return
    if not work.take(outer):
        return
    variable = variables()[names[0]]
    value = text.partition(f"{variable.name}=")[2].split(" ")[0].strip("\"'")
    reason = "" if "{" in value or "%" in value else objection(work, variable, ast.Constant(value))
    source = work.source.slice(*work.source.extent(outer))
    if not is_run or len(names) > 1 or reason or not one_plain_literal(source, [variable.name]):
        help_ = reason or "; ".join(f"{name} becomes {variables()[name].npu}" for name in names)
        details = tuple(("name", name) for name in names)
        said = f"a command sets {', '.join(names)}"
        yield work.note(outer, "NPU221", said, help=help_, effort=Effort.LOW, details=details)
        return
    yield Edit(
        outer,
        "NPU220",
        f"environment variable {variable.name} in a command -> {variable.npu}",
        swapped([(variable.name, variable.npu), *moved_options(work, outer)]),
        api=variable.name,
        help=variable.note,
    )
