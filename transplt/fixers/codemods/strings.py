"""Strings that name a device or a backend become NPU strings where they reach such a place; the rest stay."""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Effort, Level
from transplt.base.plan_decisions import IN_QUESTION
from transplt.base.text.lexer import one_plain_literal
from transplt.edits.edit import Edit, Finds, Kept, Note
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.work import Work
from transplt.fixers.codemods.cuda_text import explain
from transplt.flow.backend_takers import looked_up_by, owner_reached, taker_of
from transplt.flow.callees import NEEDS_A_CARD, OTHER_DEVICES, SIMULATORS
from transplt.flow.destinations import places
from transplt.flow.device_or_backend import verdict
from transplt.flow.device_strings import BACKEND_STRINGS, BACKENDS_STRING, DEVICE_STRING, whole_value
from transplt.flow.marks import BACKEND, DEVICE
from transplt.flow.only_shown import only_shown
from transplt.flow.other_devices import Taken, target_of
from transplt.flow.reached_place import ReachedPlace, Taker
from transplt.flow.slots import Slots
from transplt.rules.communication_backends import own_names_of
from transplt.rules.rule import Kind
from transplt.rules.since import only_older
from transplt.syntax.nodes import has_key, is_dotted, last_name, string_of
from transplt.syntax.scan import outermost, parent

fixer = Fixer(__name__, code="NPU201", rank=550)

DOTTED = re.compile(r"torch\.(?:\w+\.)*\w+")

#: What a list of devices or backends has beside "cuda".
#: What compilers compile for, beside which "cuda" is such a target and no device of torch.
_TARGETS = frozenset({"hip", "rocm", "llvm", "opencl", "metal", "nvptx", "spirv", "amdgcn", "webgpu", "hexagon"})
#: What kernels are written in, none of which is the name of a device.
_COMPILERS = ("triton", "tilelang", "cutlass")
_DEVICE_WORD = re.compile(r"(?:cpu|[a-z]?gpu|[mtxhn]p[su]|hip|rocm|xla|mlu|musa|meta|nccl|gloo|cuda)(?::\d+)?", re.I)
_NONE: frozenset[str] = frozenset()
_BEGINS = re.compile(r"cuda(?:$|[:,; ])", re.I)


@fixer.on(ast.Module)
def strings_of_the_file(work: Work, tree: ast.Module) -> Finds:
    """Decide for each string that holds a CUDA word and that no other fixer has claimed."""
    if not work.scan.strings:
        return
    slots = work.slots
    for outer in work.strings_left():
        value = whole_value(outer)
        if _beside_the_accelerator(work, outer):
            yield work.keep(outer, "both")
        elif "nccl" in value and (library := looked_up_by(outer, value)):
            yield work.keep(outer, "own-registry", library)
        elif DEVICE_STRING.fullmatch(value):
            yield from _decide(work, slots, outer, value, DEVICE)
        elif value in BACKEND_STRINGS or (BACKENDS_STRING.fullmatch(value) and "nccl" in value):
            yield from _decide(work, slots, outer, value, BACKEND)
        elif DOTTED.fullmatch(value):
            yield from _dotted(work, outer, value)
        else:
            yield from _other(work, slots, outer, value)


def _beside_the_accelerator(work: Work, node: ast.expr) -> bool:
    """True for what stands in for `torch.accelerator.current_accelerator()` where there is none: getattr's default."""
    above = parent(node)
    if not isinstance(above, ast.Call) or last_name(above.func) != "getattr" or len(above.args) != 3:
        return False
    asked = above.args[0]
    full = work.names.qualified(asked.func) if isinstance(asked, ast.Call) else None
    return above.args[2] is node and full == "torch.accelerator.current_accelerator"


def _decide(work: Work, slots: Slots, node: ast.expr, value: str, wanted: str) -> Finds:
    if wanted == BACKEND and (taker := taker_of(slots, node)) is not None:
        yield from _of_another_package(work, node, value, taker)
        return
    found = places(slots, node)
    if wanted == BACKEND and (library := owner_reached(slots, found)):
        yield from _of_an_owner(work, node, value, library, found)
        return
    meant = verdict(slots, found, wanted)
    if meant == wanted == DEVICE and _is_no_device(work, node):
        meant = ""
    if meant != wanted and value.isupper() and wanted == BACKEND:
        yield from _other(work, slots, node, value)  # a label or a name as a rule
    elif meant != wanted:
        yield from _stays(work, node, value, meant, found, wanted)
    elif wanted == DEVICE and _asks_cuda(work, node):
        yield work.keep(node, "reported-beside")
    elif wanted == DEVICE and (taken := target_of(slots, node)) is not None:
        yield _of_a_compiler(work, node, value, taken)
    elif wanted == DEVICE:
        word = value[:4]
        new = "NPU" if word.isupper() else "Npu" if word[0].isupper() else "npu"
        yield from _replace(work, node, "NPU201", f"device string {value!r}", ((word, new),))
    else:
        word, new = ("NCCL", "HCCL") if value.isupper() else ("nccl", "hccl")
        pairs = ((word, new), ("cuda", "npu")) if "cuda" in value else ((word, new),)
        yield from _replace(work, node, "NPU301", f"backend {value!r}", pairs)


def _is_no_device(work: Work, node: ast.expr) -> bool:
    """True for what a file without torch only shows, and for one of the implementations that a variable chooses, of
    which the file names a compiler as another: `if backend == "cuda": ... elif backend == "triton":`.
    """
    if b"torch" not in work.source.utf8 and _is_never_read(work, node):
        return True
    chosen = _variable_of(node)
    return bool(chosen) and chosen in work.once(_chosen_compilers)


def _chosen_compilers(work: Work) -> set[str]:
    """The variables of a file that may be the name of a compiler."""
    return {_variable_of(each) for each in work.scan.texts if string_of(each) in _COMPILERS}


def _variable_of(node: ast.expr) -> str:
    """The last name of what is set to a string, is compared with it, or is looked for in its list."""
    above = parent(node)
    while isinstance(above, (ast.List, ast.Tuple, ast.Set)):
        above = parent(above)
    match above:
        case ast.Compare(left=variable) | ast.Assign(targets=[variable]) if variable is not node:
            return last_name(variable)
    return ""


def _replace(
    work: Work, node: ast.expr, code: str, what: str, pairs: tuple[tuple[str, str], ...], plan: str = ""
) -> Finds:
    """The string with other words; `plan` is the file that asks for it, where no value says that it is right."""
    if not work.take(node):
        return
    text = work.source.slice(*work.source.extent(node))
    if not one_plain_literal(text, [old for old, _ in pairs]):
        yield work.note(
            node,
            "NPU202",
            f"{what} is not a single plain literal",
            help=f"write it as one literal with {pairs[0][1]} instead of {pairs[0][0]}",
        )
        return
    swapped = what.split(" ", 1)[1]
    for old, new in pairs:
        swapped = swapped.replace(old, new)
    yield Edit(
        node,
        code,
        f"{what} -> {swapped}" + (f", as {plan} says" if plan else ""),
        words_in_literal(dict(pairs)),
        level=Level.UNSAFE if plan else Level.SAFE,
        api=what,
        asked=bool(plan),
        writes_npu=True,
    )


def _asks_cuda(work: Work, node: ast.expr) -> bool:
    """True for the argument of a call that stays with CUDA: `torch.cuda.get_device_capability("cuda")[0] >= 8`."""
    inner: ast.AST = node
    call = parent(node)
    while isinstance(call, ast.keyword) or (
        isinstance(call, ast.Call) and work.names.qualified(call.func) == "torch.device"
    ):
        inner, call = call, parent(call)
    if not isinstance(call, ast.Call) or inner is call.func or only_shown(call):
        return False
    full = work.names.qualified(call.func) or ""
    found = work.rules.resolve(full) if full.startswith("torch.cuda.") else None
    return found is not None and found[0].kind is Kind.UNSUPPORTED


def _note_of_library(work: Work, node: ast.expr, value: str, library: str) -> Note:
    return work.note(
        node,
        "NPU273",
        f"{value!r} is the device of {library or 'a simulator or a renderer'}, not of torch",
        help=f"{library or 'a simulator that needs a card of NVIDIA'} finds none on an NPU host: let it run on the "
             "CPU, and move its results to the NPU",
        effort=Effort.MEDIUM,
        details=(("library", library),) if library else (),
    )


def _of_another_package(work: Work, node: ast.expr, value: str, taker: Taker) -> Finds:
    """A backend that something else than torch.distributed takes: right as it is, or a matter for people."""
    names = taker.names
    if names is not None and names.kept:
        yield work.keep(node, "own-registry", names.library)
    elif _is_asked_for(work, "NPU302", node):
        yield from _replace_as_planned(work, node, value, BACKEND)
    else:
        said = names.message if names is not None else f"{taker.called} may not pass it to torch.distributed"
        help_ = "write hccl if it does; do not change the package's own names, and check what that means on NPUs"
        yield work.note(
            node,
            "NPU302",
            f"the string {value!r} goes to another package: {said}",
            details=(("in question", "backend"),),
            help=names.help if names is not None else help_,
        )


def _of_an_owner(work: Work, node: ast.expr, value: str, library: str, found: list[ReachedPlace]) -> Finds:
    """A backend that reaches a library which looks it up among its own names: what it is compared with stays beside
    it, and what an adaptor writes at the call is all.
    """
    names = own_names_of(library)
    older = bool(names.since) and only_older(dict(work.settings.pins).get(names.adaptor, ""), names.since)
    adapted = work.settings.asks_for(f"adapt:{names.adaptor}") and not older
    if adapted or any(place.kind == "compare" for place in found):
        yield work.keep(node, "reported-beside")
    else:
        yield from _of_another_package(work, node, value, Taker(library, names))


def _of_a_library(work: Work, node: ast.expr, code: str, value: str, found: list[ReachedPlace]) -> Note | Kept:
    """A device that another library than torch takes, alone or beside other code."""
    root = next(place.detail for place in found if place.kind == "foreign")
    if any(place.kind != "foreign" for place in found):
        help_ = f"give {root} a device that it supports, and torch 'npu'"
        message = f"the string {value!r} reaches {root} and other code"
        return work.note(node, code, message, help=help_, details=(("name", f"{root}.device"),))
    if root in NEEDS_A_CARD:
        return _note_of_library(work, node, value, root)
    return work.keep(node, "library-device", root)


def _is_asked_for(work: Work, code: str, node: ast.expr) -> bool:
    """True for a string in question that a plan says is the NPU's."""
    return work.settings.decided is not None and work.choice(code, node) == IN_QUESTION[code]


def _replace_as_planned(work: Work, node: ast.expr, value: str, wanted: str) -> Finds:
    decided = work.settings.decided
    assert decided is not None
    pairs = (("cuda", "npu"),) if wanted == DEVICE else (("nccl", "hccl"), ("cuda", "npu"))
    what = "device" if wanted == DEVICE else "backend"
    kept = tuple(pair for pair in pairs if pair[0] in value)
    yield from _replace(work, node, "NPU203" if wanted == DEVICE else "NPU302", f"{what} {value!r}", kept, decided.plan)


def _of_a_compiler(work: Work, node: ast.expr, value: str, taken: Taken) -> Note:
    library = taken.library
    if taken.alone:
        message, more = f"{value!r} is a target of {library} here", ""
    else:
        message, more = f"{value!r} is a target of {library} here, and has other uses", "; give torch 'npu'"
    help_ = f"{library} cannot compile for NPUs: give it another target, such as the CPU{more}"
    of_it = (("name", f"{library}.device"),)
    return work.note(node, "NPU203", message, help=help_, details=of_it, effort=Effort.MEDIUM)


_REASONS = {"prose": "text", "key": "key", "flag": "flag", "exported": "own-string", "path": "own-string"}


def _stays(work: Work, node: ast.expr, value: str, meant: str, found: list[ReachedPlace], wanted: str) -> Finds:
    """A string that spells a device or a backend and is not rewritten: kept for a reason, or a finding."""
    what, code, new = ("device", "NPU203", "npu") if wanted == DEVICE else ("backend", "NPU302", "hccl")
    if meant in _REASONS:
        yield work.keep(node, _REASONS[meant])
    elif meant == "row":
        yield from _row(work, node, value, next(place.other for place in found if place.kind == "row"))
    elif meant == "foreign":
        yield _of_a_library(work, node, code, value, found)
    elif meant == "simulator":
        named = {place.detail for place in found if place.kind == "simulator"}
        yield _note_of_library(work, node, value, min(named & OTHER_DEVICES - SIMULATORS, default=""))
    elif meant == "kernel":
        yield work.note(
            node,
            "NPU208",
            f"{value!r} names the device of an operator's kernel",
            help="register a kernel for the NPU ('npu', dispatch key PrivateUse1); renaming does not create one",
            effort=Effort.HIGH,
        )
    elif wanted == DEVICE and not value.islower():
        yield work.keep(node, "no-device")
    elif _is_asked_for(work, code, node):
        yield from _replace_as_planned(work, node, value, wanted)
    elif _is_searched(node):
        yield work.keep(node, "pattern")
    elif _is_never_read(work, node) or _is_of_a_class(work, node):
        yield work.keep(node, "own-string")
    elif wanted == DEVICE and _numbers_a_card(work, node):
        yield from _replace(work, node, "NPU201", f"device string {value!r}", (("cuda", "npu"),))
    else:
        yield work.note(
            node,
            code,
            f"the string {value!r} may be a {what}; transplt found no use of it as one",
            details=(("in question", what),),
            help=f"if it names a {what}, write {new}; otherwise do not change it",
        )


def _numbers_a_card(work: Work, node: ast.expr) -> bool:
    """True for `f"cuda:{torch.cuda.current_device()}"`: the number becomes that of an NPU, and so does its name."""
    if not isinstance(node, ast.JoinedStr) or len(node.values) != 2:
        return False
    numbers = ast.walk(node.values[1])
    return any((work.names.qualified(each) or "").startswith("torch.cuda.") for each in numbers if is_dotted(each))


def _is_searched(node: ast.expr) -> bool:
    """True for one of several words that a comprehension looks for in a text: `any(w in str(e) for w in [...])`.

    One of the others has to be no device: `any(name in str(device) for name in ("cuda", "mps"))` asks for devices.
    """
    words, loop = parent(node), parent(parent(node))
    if not isinstance(words, (ast.List, ast.Tuple, ast.Set)) or not isinstance(loop, ast.comprehension):
        return False
    match getattr(parent(loop), "elt", None), loop.target:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.In() | ast.NotIn()]), ast.Name(id=word) if name == word:
            others = [string_of(each) for each in words.elts if each is not node]
            return any(each is not None and not _DEVICE_WORD.fullmatch(each) for each in others)
    return False


def _is_never_read(work: Work, node: ast.expr) -> bool:
    """True for what a local variable is given that nobody reads, but to show it to people."""
    match parent(outermost(node, lambda above, _: isinstance(above, ast.IfExp), "_conditional")):
        case ast.Assign(targets=[ast.Name(id=name) as target]):
            scope = work.scan.scope_of(target)
            if scope.kind != "function" or name not in scope.bindings:
                return False
            if any(each.kind in ("global", "nonlocal") for each in scope.bindings[name]):
                return False
            uses = (each for each in work.scan.names.get(name, ()) if isinstance(each.ctx, ast.Load))
            return all(map(only_shown, uses))
    return False


def _is_of_a_class(work: Work, node: ast.expr) -> bool:
    """True for a constant of a class that its file does not read, and no file as a device: `KIND = "cuda"`."""
    match parent(node), parent(parent(node)):
        case ast.Assign(targets=[ast.Name(id=name)]), ast.ClassDef(bases=bases) if name.isupper():
            listed = any(last_name(each).endswith("Enum") for each in bases)
            return work.project.known and not listed and name not in work.scan.attributes
    return False


def _holds_options(display: ast.Dict) -> bool:
    """True for options by the name of what takes them: `f(engine_kwargs={"nccl": {...}})`, where the name is another
    argument of the call.
    """
    above = parent(display)
    named = isinstance(above, ast.keyword) and (above.arg or "").endswith(("kwargs", "options"))
    if not named or not all(isinstance(value, ast.Dict) for value in display.values):
        return False
    call = parent(above)
    keys = {string_of(key) for key in display.keys if key is not None}
    return isinstance(call, ast.Call) and any(string_of(each.value) in keys for each in call.keywords)


def _keys_of(work: Work, display: ast.Dict) -> tuple[bool, frozenset[str], frozenset[str]]:
    """Whether a display has several strings for keys, those that are targets of a compiler, and those of devices."""
    keys = frozenset(name for key in display.keys if key is not None and (name := string_of(key)))
    devices = frozenset(key for key in keys if _DEVICE_WORD.fullmatch(key) or key == "default")
    return len(keys) > 1, keys & _TARGETS, devices


def _row(work: Work, node: ast.expr, value: str, holder: ast.AST | None) -> Finds:
    display = holder if isinstance(holder, ast.Dict) else None
    several, targets, devices = work.once(_keys_of, display) if display is not None else (False, _NONE, _NONE)
    if display is not None and has_key(display, "npu"):
        yield work.keep(node, "row-there")
    elif targets - {value} or (work.project.portable and display is not None and _holds_options(display)):
        yield work.keep(node, "own-string")
    elif several and devices <= {value}:
        yield work.keep(node, _REASONS["key"])
    else:
        message = f"a table has an entry for {value!r} but none for the NPU"
        help_ = "if its keys are device types, add an entry for 'npu'; otherwise do not change it"
        yield work.note(node, "NPU213", message, help=help_)


def _dotted(work: Work, node: ast.expr, value: str) -> Finds:
    """A full name in a string: mock targets, import_module, type names."""
    matched = work.rules.resolve(value)
    if isinstance(parent(node), ast.Expr):
        yield work.keep(node, "text")
    elif matched is not None and matched[0].kind is Kind.MODULE and matched[1] == value and _is_own_key(work, node):
        yield work.keep(node, _REASONS["key"])
    elif matched is not None and not matched[0].renames:
        yield from work.note_rule(node, matched[0], value, "as a string")
    elif matched is None or (matched[0].listed and matched[1] != value):
        message = f"{value!r} is a CUDA name in a string"
        yield work.note(node, "NPU204", message, help="use the NPU counterpart", effort=Effort.LOW)
    elif work.take(node):
        new = matched[0].new + value[len(matched[1]) :]
        if one_plain_literal(work.text(node), [value]):
            message = f"{value!r} in a string -> {new!r}"
            yield Edit(node, "NPU205", message, words_in_literal({value: new}), api=value, writes_npu=True)
        else:
            yield work.note(node, "NPU202", f"{value!r} is not a single plain literal", help=f"write {new!r}")


def _is_own_key(work: Work, node: ast.expr) -> bool:
    """True for the key of an entry (`states["torch.cuda"]`): checkpoints are read by it; `sys.modules` is Python's."""
    match parent(node):
        case ast.Subscript(value=holder, slice=index):
            return index is node and work.names.qualified(holder) != "sys.modules"
        case ast.Dict(keys=keys):
            return node in keys
        case ast.Call(func=ast.Attribute(attr="get" | "pop" | "setdefault"), args=[first, *_]):
            return first is node
    return False


def _other(work: Work, slots: Slots, node: ast.expr, value: str) -> Finds:
    """Strings that hold a CUDA word among other text."""
    found = places(slots, node)
    short = len(value) < 40 and " " not in value and "cuda" in value
    if short and any(place.kind == "compare" and place.detail == "regex" for place in found):
        if verdict(slots, found, DEVICE) == DEVICE:
            yield from _replace(work, node, "NPU201", f"pattern of device strings {value!r}", (("cuda", "npu"),))
            return
    elif (
        short
        and _BEGINS.match(value)
        and found
        and all(place.kind in (DEVICE, "compare", "slot", "named") for place in found)
        and verdict(slots, found, DEVICE) == DEVICE
    ):
        yield work.note(
            node,
            "NPU202",
            f"the string {value!r} is used as a device, but its text is not a device name",
            help="write the NPU device instead",
        )
        return
    yield from explain(work, node, value, found)
