"""`lightning`: trainers of Lightning are made through a function of the project's own, which knows NPUs.

Source: Lightning 1.9.5 to 2.6.6: pytorch/trainer/connectors/accelerator_connector.py, fabric/connector.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.new_calls import called_through
from transplt.edits.work import Work
from transplt.fixers.adaptors.writer import AdaptorWriter, writer_for
from transplt.rules.since import only_older
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import by_place, hides_arguments, keyword_of, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

fixer = Fixer(__name__, code="NPU877", rank=-100, theme="adapt:lightning", needs=(b"lightning",))

_ANSWERS = ("NPU145",)
#: Lightning before has other accelerators.
_FIRST = "1.8"
_HELPER = "lightning_on_npu"
_TRAINERS = {
    f"{package}.{name}"
    for package in ("lightning", "lightning.pytorch", "pytorch_lightning")
    for name in ("Trainer", "trainer.Trainer", "trainer.trainer.Trainer")
}
_FABRICS = {
    f"{package}.{name}" for package in ("lightning.fabric", "lightning_fabric") for name in ("Fabric", "fabric.Fabric")
} | {"lightning.Fabric"}
_CLIS = {
    f"{package}.{name}.LightningCLI"
    for package in ("lightning.pytorch", "pytorch_lightning")
    for name in ("cli", "utilities.cli")
}
_MAKERS = _TRAINERS | _FABRICS | _CLIS
_OF_LIGHTNING = ("lightning.", "pytorch_lightning.", "lightning_fabric.")
#: Strategies of one card and of DDP; the others ask for CUDA by themselves.
_STRATEGY = re.compile(r"auto|single_device|ddp(_spawn|_fork|_notebook)?(_find_unused_parameters_(true|false))?")
_STRATEGIES = ("DDPStrategy", "SingleDeviceStrategy", "DDPSpawnStrategy")
_GPUS = ("gpu", "cuda", "auto")


@fixer.on(ast.Module)
def trainers_of_lightning(work: Work, tree: ast.Module) -> Finds:
    """Make what trains through the helper, wherever it would take a GPU."""
    writer = writer_for(work, fixer)
    if writer is None:
        return
    calls = [call for call in _calls(work) if _takes_a_gpu(work, call)]
    why, help_ = "", "give the Trainer or Fabric your own Accelerator and Strategy"
    if only_older(pinned := dict(work.settings.pins).get("pytorch-lightning", ""), _FIRST):
        why = f"pytorch-lightning {pinned} has no accelerator to derive from"
        help_ = f"require pytorch-lightning>={_FIRST} first"
    elif b"torch_xla" in work.source.utf8:
        why = "the file has code for TPUs (torch_xla)"
    if why:
        why = f"--adapt lightning writes nothing here: {why}"
        yield from (work.note(call, fixer.code, why, level=Level.INFO, help=help_) for call in calls[:1])
        return
    written = [call for call in calls if _write(writer, call)]
    for value in _strategies_for_cuda(work, written):
        strategy = work.text(value.func if isinstance(value, ast.Call) else value)
        writer.left(
            value, f"the strategy {strategy} of Lightning stops on an NPU",
            'use strategy="ddp" if the model fits on one card, or train with plain PyTorch or accelerate',
            _ANSWERS[0], Effort.HIGH,
        )  # fmt: skip
    yield from writer.found


def _calls(work: Work) -> Iterator[ast.Call]:
    """The calls that make a Trainer, a Fabric or a command line with a trainer."""
    yield from work.calls_by_name([*_MAKERS, *(f"{name}.from_argparse_args" for name in _TRAINERS)])
    for node in work.scan.classes:
        if not any(work.names.qualified(base) in _MAKERS for base in node.bases):
            continue
        init = next((each for each in node.body if isinstance(each, FUNCTIONS) and each.name == "__init__"), None)
        if init is not None:
            yield from (each for each in ast.walk(init) if isinstance(each, ast.Call) and _is_super_init(each))
        else:
            yield from _calls_of(work, node)


def _calls_of(work: Work, node: ast.ClassDef) -> Iterator[ast.Call]:
    return (call for call in work.scan.calls if isinstance(call.func, ast.Name) and call.func.id == node.name)


def _is_super_init(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
            return True
    return False


def _takes_a_gpu(work: Work, call: ast.Call) -> bool:
    """True for a call that may take a GPU, by a strategy that NPUs have too."""
    full = work.names.qualified(call.func) or ""
    if full in _CLIS or last_name(call.func) == "from_argparse_args":
        return True
    accelerator = keyword_of(call, "accelerator")
    if accelerator is None and full in _FABRICS and call.args and not isinstance(call.args[0], ast.Starred):
        accelerator = call.args[0]
    precision = string_of(keyword_of(call, "precision")) or ""
    if string_of(keyword_of(call, "amp_backend")) == "apex" or precision.startswith("transformer-engine"):
        return False
    strategy = keyword_of(call, "strategy")
    fits = strategy is None or any(_is_for_npus(each) for each in _may_be(work, strategy))
    if accelerator is not None:
        return fits and _may_be_a_gpu(work, accelerator)
    gpus = keyword_of(call, "gpus")
    older = only_older(dict(work.settings.pins).get("pytorch-lightning", ""), "2.0")
    none = older if gpus is None else isinstance(gpus, ast.Constant) and not gpus.value
    return fits and (not none or hides_arguments(call))


def _may_be_a_gpu(work: Work, accelerator: ast.expr) -> bool:
    """True for an accelerator that is or may be a GPU, other than a variable that names CUDA and is read for something
    else too: there it has to name the NPU.
    """
    given = string_of(accelerator)
    if (given is not None and given not in _GPUS) or isinstance(accelerator, ast.Call):
        return False
    if not isinstance(accelerator, ast.Name) or not any(_words(work, arm) for arm in _may_be(work, accelerator)):
        return True
    above = (parent(use) for use in work.scan.names.get(accelerator.id, ()) if isinstance(use.ctx, ast.Load))
    return all(isinstance(each, ast.keyword) and each.arg == "accelerator" for each in above)


def _words(work: Work, value: ast.expr) -> list[ast.Constant]:
    """The strings with a word of CUDA in an expression."""
    return [each for each in ast.walk(value) if isinstance(each, ast.Constant) and each in work.scan.strings]


def _is_for_npus(strategy: ast.expr) -> bool:
    """True for a strategy that NPUs have too, or one that is not seen here."""
    match strategy:
        case ast.Constant(value=str() as name):
            return bool(_STRATEGY.fullmatch(name.lower()))
        case ast.Call(func=func):
            return last_name(func) in _STRATEGIES
    return True


def _may_be(work: Work, value: ast.expr) -> Iterator[ast.expr]:
    """What an expression is, arms of conditional expressions and what variables of the file were given apart."""
    given = [assigned_value(binding.node) for binding in work.names.bindings_of(value) if binding.kind == "assign"]
    stack = [each for each in given if each is not None] or [value]
    while stack:
        each = stack.pop()
        if isinstance(each, ast.IfExp):
            stack += [each.orelse, each.body]
        else:
            yield each


def _write(writer: AdaptorWriter, call: ast.Call) -> bool:
    work = writer.work
    message = f"npu_port.{_HELPER} creates {work.text(call.func)}, on the NPU if there is one"
    if not (text := writer.helper(_HELPER, fixer.code, message, call)):
        return False
    api = work.names.qualified(call.func) or ""
    writer.change(call, fixer.code, message, called_through(text), api=api, beside=True)
    if writer.keeps(call, fixer.code):
        return False
    writer.takes_care(call, _ANSWERS)
    if _is_super_init(call) and (own := next((each for each in chain(call) if isinstance(each, ast.ClassDef)), None)):
        for each in _calls_of(work, own):
            writer.takes_care(each, _ANSWERS)
    for value in (keyword_of(call, "accelerator"), *call.args[:1]):
        for word in () if value is None else (each for arm in _may_be(work, value) for each in _words(work, arm)):
            if work.take(word):
                writer.found.append(work.keep(word, "library-device", "Lightning"))
    for keyword in call.keywords:
        if keyword.arg is None:
            for given in _values_of(work, keyword.value):
                writer.takes_care(given, _ANSWERS)
    return True


def _values_of(work: Work, node: ast.expr) -> Iterator[ast.expr | ast.stmt]:
    """What the dict behind `**name` is given in this file: `name = {...}`, `name["accelerator"] = ...`."""
    yield from _may_be(work, node)
    for use in work.scan.names.get(node.id, ()) if isinstance(node, ast.Name) else ():
        match parent(use), parent(parent(use)):
            case (ast.Subscript(ctx=ast.Store()), _) | (ast.Attribute(), ast.Call()):
                yield statement(use)


def _strategies_for_cuda(work: Work, written: list[ast.Call]) -> list[ast.expr]:
    """The strategies that ask for CUDA by themselves, of trainers that are made through the helper."""
    found: dict[int, ast.expr] = {}
    for call in written:
        if (strategy := keyword_of(call, "strategy")) is not None:
            found |= {id(each): each for each in _may_be(work, strategy) if not _is_for_npus(each)}
    for call in work.scan.calls if written else ():
        full = work.names.qualified(call.func) or ""
        if full.startswith(_OF_LIGHTNING) and full.endswith("Strategy") and not _is_for_npus(call):
            found[id(call)] = call
    return by_place(found.values())
