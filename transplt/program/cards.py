"""Whether code puts anything on a card that an NPU takes the place of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from transplt.program.program import File, Program
from transplt.syntax.asks import call_of, keyword_of, last_name, string_of
from transplt.syntax.names import Names
from transplt.syntax.scan import Scan, chain, parent

#: Words of a program that puts something on a card; DataParallel does so by itself.
_CARD = re.compile(rb"(?i:cuda|\bnpu\b|accelerator|dataparallel)")
#: Something moves to a device or takes another type: not `.to(torch.float32)` and `.to("cpu")`.
_MOVES = re.compile(rb"\.to\((?!\s*(?:torch\.(?:float|half|bfloat|double|u?int|long|short|bool)|[\"']cpu))")
#: The device of a program is the CPU, at least where nothing else is asked for.
_CPU = re.compile(rb"""(?:\bdevice\(\s*|device\w*["']?\s*[=:]\s*|\bdefault\s*=\s*|\belse\s+)["']cpu["']""")
#: Packages of other accelerators, of what compiles and exports for them, and of other runtimes.
_OTHERS = frozenset(
    "intel_extension_for_pytorch ipex intel_npu_acceleration_library tensorrt torch_tensorrt torch2trt torch_xla"
    " habana_frameworks torch_mlu torch_musa horizon_plugin_pytorch horizon_plugin_profiler horizon_tc_ui hbdk"
    " openvino coremltools rknn rknnlite torch_directml qaic poptorch".split()
)


def puts_on_card(texts: Iterable[bytes]) -> bool:
    """True when the files of a program put something on a card.

    What moves to a device that the text does not name counts, unless the program has the CPU for one and names no card.
    """
    texts = list(texts)
    if any(_CARD.search(text) for text in texts):
        return True
    return any(_MOVES.search(text) for text in texts) and not any(_CPU.search(text) for text in texts)


def serves_another(scan: Scan) -> bool:
    """True for a file that is for another accelerator or its exporter: it imports that, or names `xpu` and no card."""
    for node in scan.imports:
        named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        if isinstance(node, ast.ImportFrom) and node.level:
            continue
        own = all(isinstance(above, (ast.Module, ast.Try, ast.If)) for above in chain(node))
        if own and any(name.split(".")[0] in _OTHERS for name in named):
            return True
    text = scan.source.utf8
    return re.search(rb"\bxpu\b", text) is not None and re.search(rb"cuda|\bnpu\b", text) is None


def tries_torch_npu(scan: Scan) -> bool:
    """True for a file that imports torch_npu in a `try`: its project runs without it, too."""
    return b"torch_npu" in scan.source.utf8 and any(
        any(alias.name.split(".")[0] == "torch_npu" for alias in node.names)
        and any(isinstance(above, ast.Try) for above in chain(node))
        for node in scan.imports
        if isinstance(node, ast.Import)
    )


def is_cpu_device(names: Names, node: ast.expr) -> bool:
    """True for `torch.device("cpu")` in each of its spellings: `type=`, `device=`, `"cpu:0"`."""
    if not isinstance(node, ast.Call) or names.qualified(node.func) != "torch.device":
        return False
    given = node.args[0] if node.args else keyword_of(node, "type") or keyword_of(node, "device")
    return (string_of(given) or "").partition(":")[0] == "cpu"


# --- read off the code of a whole program -----------------------------------------------------------------------------

_CARDS = ("cuda", "npu")
#: What is asked or told of cards by programs that use none, too.
_KEEPING = frozenset(
    "manual_seed manual_seed_all seed seed_all is_available device_count empty_cache synchronize get_rng_state "
    "set_rng_state get_rng_state_all set_rng_state_all max_memory_allocated memory_allocated max_memory_reserved "
    "memory_reserved reset_peak_memory_stats get_device_name get_device_properties Event".split()
)
_PLACES = frozenset({"DataParallel", "DistributedDataParallel", "Accelerator", "accelerator", "set_default_device"})


def on_card(program: Program) -> bool:
    """True when a file of the program names a card, moves something to one, or to a device that comes from elsewhere.

    A comment does not, and neither does a seed for all cards, or a question whether there is one.
    """
    return any(_names_card(file) or _moves(program, file) for file in program.files)


def _names_card(file: File) -> bool:
    for node in file.scan.strings:
        text = string_of(node) or ""
        if text.lower().startswith(_CARDS) and not isinstance(parent(node), ast.Expr):
            return True
    for name in _CARDS:
        for attribute in file.scan.attributes.get(name, ()):
            above = parent(attribute)
            if call_of(attribute) is not None or (isinstance(above, ast.Attribute) and above.attr not in _KEEPING):
                return True
    return any(file.scan.attributes.get(name) or file.scan.names.get(name) for name in _PLACES)


def _moves(program: Program, file: File) -> bool:
    """`model.to(args.device)`: the device is an argument, or of a settings file."""
    for attribute in file.scan.attributes.get("to", ()):
        call = call_of(attribute)
        given = call.args[0] if call is not None and call.args else None
        if given is None or "device" not in last_name(given).lower():
            continue
        slot = program.slot(file, given)
        values = program.values.get(slot, ()) if slot is not None else ()
        strings = [string_of(node) or "" for value in values for node in ast.walk(value.node)]
        if not any(text.startswith("cpu") for text in strings):
            return True
    return False
