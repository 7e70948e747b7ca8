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
from transplt.edits.work import Work
from transplt.fixers.codemods.command_lines import moved_options, runs, swapped
from transplt.flow.device_strings import whole_value
from transplt.flow.off_the_cpu import steers
from transplt.flow.reached import places
from transplt.rules.environment import Variable, variables, without_effect
from transplt.rules.environment import objection as refusal
from transplt.syntax.asks import last_name, string_of
from transplt.syntax.scan import FUNCTIONS, parent
from transplt.trees.calls import renamed_arguments
from transplt.trees.literals import words_in_literal

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


def _no_effect(work: Work, node: ast.Constant, name: str, note: str = "") -> Note:
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
        yield work.note(
            node,
            "NPU223",
            f"{value} may be the name of an environment variable here",
            help=f"if so, its counterpart is {variable.npu}: {variable.note}",
            effort=Effort.LOW,
        )
    else:
        yield from _rename(work, node, variable)


def _rename(work: Work, node: ast.Constant, variable: Variable) -> Finds:
    if variable.name == _SHARED and (library := steers(work.slots, work.rules, work.project, node)):
        yield work.note(
            node,
            "NPU222",
            f"{variable.name} steers {library} here, which reads it by this name: it stays",
            level=Level.INFO,
            help=f"a host without cards of NVIDIA shows {library} no device whatever it holds; torch_npu reads "
            f"{variable.npu}",
        )
        return
    reason = objection(work, variable, given_value(node))
    if reason and _is_removed(node):
        message = f"{variable.name} is removed from the environment, where it means nothing on NPU"
        yield work.note(node, "NPU222", message, level=Level.INFO)
        return
    if reason:
        yield from _other_value(work, node, variable, reason)
        return
    text = work.source.slice(*work.source.extent(node))
    if not one_plain_literal(text, [variable.name]):
        yield work.note(
            node, "NPU202", f"{variable.name} is not a single plain literal", help=f"write {variable.npu}"
        )
        return
    yield Edit(
        node,
        "NPU220",
        f"environment variable {variable.name} -> {variable.npu}",
        words_in_literal({variable.name: variable.npu}),
        api=variable.name,
        help=variable.note,
    )


def _other_value(work: Work, node: ast.expr | ast.keyword, variable: Variable, reason: str) -> Finds:
    yield work.note(
        node,
        "NPU221",
        f"{variable.npu}, the counterpart of {variable.name}, does not accept this value unchanged",
        api=variable.name,
        help=f"{reason}; {variable.note}" if reason != variable.note else reason,
        effort=Effort.LOW,
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
    above = parent(node)
    if isinstance(above, ast.Subscript) and above.slice is node:
        return is_environment(work, above.value)
    if isinstance(above, ast.Compare) and above.left is node and isinstance(above.ops[0], (ast.In, ast.NotIn)):
        return is_environment(work, above.comparators[0])
    if isinstance(above, ast.Call) and above.args and above.args[0] is node:
        func = above.func
        full = work.names.qualified(func)
        if full in ("os.getenv", "os.putenv", "os.unsetenv"):
            return True
        if isinstance(func, ast.Attribute):
            return func.attr in ("setenv", "delenv") or (func.attr in _ACCESS and is_environment(work, func.value))
        return False
    if isinstance(above, ast.Dict) and any(key is node for key in above.keys):
        return becomes_environment(work, above)
    if isinstance(above, (ast.Tuple, ast.List, ast.Set)):
        loop = parent(above)
        if isinstance(loop, (ast.For, ast.comprehension)) and loop.iter is above and isinstance(loop.target, ast.Name):
            return loop.target
        return False
    if isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(above.targets[0], ast.Name):
        return above.targets[0]
    return False


def is_environment(work: Work, node: ast.expr) -> bool:
    """True for `os.environ`, a copy of it, and variables called env."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("copy", "keys"):
            return is_environment(work, node.func.value)
        return isinstance(node.func, ast.Name) and node.func.id == "dict" and _copies_environment(work, node)
    if isinstance(node, ast.Constant):
        return node.value == "os.environ"
    if work.names.qualified(node) == "os.environ":
        return True
    last = last_name(node)
    return bool(_HOLDER.search(last))


def _copies_environment(work: Work, call: ast.Call) -> bool:
    spread = [keyword.value for keyword in call.keywords if keyword.arg is None]
    return any(is_environment(work, item) for item in [*call.args, *spread])


def becomes_environment(work: Work, node: ast.expr) -> bool:
    """True for a dict display (or a call of dict) whose entries end up in an environment."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None and is_environment(work, value):
                return True
        keys = {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
        if len(keys) == len(node.keys) and keys & _LAUNCHED and all(key.isupper() for key in keys):
            return True
    above = parent(node)
    if isinstance(above, ast.keyword):
        return bool(above.arg and _HOLDER.search(above.arg))
    if isinstance(above, ast.Assign):
        return any(is_environment(work, target) for target in above.targets)
    if isinstance(above, ast.AnnAssign):
        return is_environment(work, above.target)
    if isinstance(above, ast.Dict):
        for key, value in zip(above.keys, above.values, strict=True):
            if value is node:
                return isinstance(key, ast.Constant) and isinstance(key.value, str) and bool(_HOLDER.search(key.value))
    if isinstance(above, ast.Call) and node in above.args:
        func = above.func
        if isinstance(func, ast.Attribute) and func.attr in ("update", "dict") and func.value is not node:
            return is_environment(work, func.value) or is_environment(work, above.args[0])
    if isinstance(above, ast.Return):
        owner: ast.AST = above
        while not isinstance(owner, (*FUNCTIONS, ast.Lambda, ast.Module)):
            owner = parent(owner)
        return isinstance(owner, FUNCTIONS) and bool(_HOLDER.search(owner.name))
    return False


def given_value(node: ast.expr) -> ast.expr | None:
    """The value that the variable named by `node` gets there; None where it is read or removed."""
    above = parent(node)
    if isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Store):
        statement = parent(above)
        return statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
    if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and len(above.args) > 1:
        return above.args[1] if above.func.attr in ("setdefault", "setenv", "putenv") else None
    if isinstance(above, ast.Dict):
        for key, value in zip(above.keys, above.values, strict=True):
            if key is node:
                return value
    return None


def _is_removed(node: ast.expr) -> bool:
    above = parent(node)
    if isinstance(above, ast.Subscript):
        return isinstance(above.ctx, ast.Del)
    if not (isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute)):
        return False
    return above.func.attr == "delenv" or (above.func.attr == "pop" and isinstance(parent(above), ast.Expr))


# --- names as keywords, and inside commands --------------------------------------------------------------------------

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
        yield work.note(
            keyword,
            "NPU223",
            f"{variable.name} may be the name of an environment variable here",
            help=f"if so, its counterpart is {variable.npu}: {variable.note}",
            effort=Effort.LOW,
        )
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
    if not is_run and (kinds <= {"prose", "flag"} or "compare" in kinds):
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
