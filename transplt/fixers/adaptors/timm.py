"""`timm`: the loss scaler, the loaders and the Mixup of timm, which are CUDA's, come by the project's own functions.

Where the versions that a project asks for make it certain that timm takes a device, the migration writes that
(transplt/fixers/codemods/default_devices.py), and this does nothing.

Source: timm 1.0, timm/utils/cuda.py and timm/data/loader.py.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.new_calls import called_through
from transplt.edits.work import Work
from transplt.edits.writer import on_file
from transplt.fixers.adaptors.writer import AdaptorWriter, turn_names, writer_for
from transplt.rules.default_devices import default_devices
from transplt.rules.since import only_older
from transplt.syntax.nodes import hides_arguments, keyword_of, lacks

fixer = Fixer(__name__, code="NPU871", rank=-100, theme="adapt:timm", needs=(b"timm",))

_ANSWERS = ("NPU148", "NPU149")
_SCALERS = {f"{module}.NativeScaler": "NativeScaler" for module in ("timm.utils", "timm.utils.cuda")}
_LOADERS = ("timm.data.create_loader", "timm.data.loader.create_loader")
_LOADER, _MIXUP = "timm_loader_on_npu", "timm_mixup_on_npu"
_MIXUPS = ("timm.data.Mixup", "timm.data.mixup.Mixup")


@on_file(fixer, writer_for)
def scalers_of_timm(work: Work, writer: AdaptorWriter) -> None:
    """Take the scaler from the helper."""
    scaler = next(iter(_SCALERS))
    row, calls = default_devices()[scaler], work.calls_by_name(_SCALERS)
    # each may be told its device: it is the card's as it stands, by a timm that takes one
    told = calls and all(lacks(call, row.argument, row.position) is False for call in calls)
    if not told and not _takes_a_device(work, scaler):
        turn_names(writer, _SCALERS, fixer.code, _ANSWERS)


@fixer.on(ast.Call, name=_LOADERS)
def loaders_of_timm(work: Work, call: ast.Call) -> Finds:
    """Make the loader through the helper, which gives it the card."""
    full = work.names.qualified(call.func) or ""
    row = default_devices()[full]
    prefetches = keyword_of(call, "use_prefetcher")
    off = isinstance(prefetches, ast.Constant) and not prefetches.value
    if off or not lacks(call, row.argument, row.position) or hides_arguments(call) or _takes_a_device(work, full):
        return
    writer = writer_for(work, fixer)
    if writer is not None:
        _through(writer, call, _LOADER, "passes the card")
        yield from writer.found


@fixer.on(ast.Call, name=_MIXUPS)
def targets_of_mixup(work: Work, call: ast.Call) -> Finds:
    """Make a Mixup of a timm before 0.5.4 through the helper, which has its targets made on the card."""
    older = only_older(dict(work.settings.pins).get("timm", ""), "0.5.4")
    writer = writer_for(work, fixer) if older else None
    if writer is not None:
        _through(writer, call, _MIXUP, "creates its targets on the card")
        yield from writer.found


def _through(writer: AdaptorWriter, call: ast.Call, helper: str, what: str) -> None:
    """Call a function of timm through one of the helper."""
    full = writer.work.names.qualified(call.func) or ""
    message = f"{full} is called by npu_port.{helper}, which {what}"
    text = writer.helper(helper, fixer.code, message, call)
    if text:
        writer.change(call, fixer.code, message, called_through(text), api=full, beside=True)
        if not writer.keeps(call, fixer.code):
            writer.takes_care(call, _ANSWERS)


def _takes_a_device(work: Work, full: str) -> bool:
    return default_devices()[full].taken_by(work.settings.pins)
