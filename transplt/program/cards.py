"""Whether code puts anything on a card that an NPU takes the place of."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection

from transplt.program.frameworks import PROCESSES, taken_over
from transplt.program.program import File, Program
from transplt.program.variable_values import values_of
from transplt.rules.torch_callables import TENSOR, last_names, names_of
from transplt.syntax.modules import modules_of
from transplt.syntax.names import Names
from transplt.syntax.nodes import argument_at, call_of, hides_arguments, keyword_of, last_name, string_of
from transplt.syntax.scan import Scan, chain, parent

#: Packages of other accelerators, of what compiles and exports for them, and of other runtimes.
_OTHERS = frozenset(
    "intel_extension_for_pytorch ipex intel_npu_acceleration_library tensorrt torch_tensorrt torch2trt torch_xla"
    " habana_frameworks torch_mlu torch_musa horizon_plugin_pytorch horizon_plugin_profiler horizon_tc_ui hbdk"
    " openvino coremltools rknn rknnlite torch_directml qaic poptorch".split()
)
#: The methods that move what they belong to; `to` does other things, too.
MOVES = names_of(TENSOR, "to_card")
_DEVICE_WORDS = ("device", "gpu", "cuda", "npu", "rank")


def serves_another(scan: Scan) -> bool:
    """True for a file that is for another accelerator or its exporter: it imports that, or names `xpu` and no card."""
    for node in scan.imports:
        if isinstance(node, ast.ImportFrom) and node.level:
            continue
        own = all(isinstance(above, (ast.Module, ast.Try, ast.If)) for above in chain(node))
        if own and any(name.split(".")[0] in _OTHERS for name in modules_of(node)):
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


def goes_to_card(names: Names, call: ast.Call) -> bool:
    """True for `x.cuda()` and `x.to(device)`, where the device is not the CPU for certain; `x.to(dtype)` is no move."""
    match call.func:
        case ast.Attribute(attr=name) if name in MOVES and not hides_arguments(call):
            given = argument_at(call, 0, "device")
            return name != "to" or (given is not None and is_device(names, given))
    return False


def is_device(names: Names, given: ast.expr) -> bool:
    """True for an expression that is a device, and not the CPU as far as it shows."""
    match given:
        case ast.Constant():
            return (string_of(given) or "").partition(":")[0] in ("cuda", "npu")
        case ast.Call():
            return names.qualified(given.func) == "torch.device" and not is_cpu_device(names, given)
    last = last_name(given).lower()
    return any(word in last for word in _DEVICE_WORDS)


# --- read off the code of a whole program -----------------------------------------------------------------------------

_CARDS = ("cuda", "npu")
#: Questions to and settings of cards in programs that use none, too.
_KEEPING = frozenset(
    "manual_seed manual_seed_all seed seed_all is_available device_count empty_cache synchronize get_rng_state "
    "set_rng_state get_rng_state_all set_rng_state_all max_memory_allocated memory_allocated max_memory_reserved "
    "memory_reserved reset_peak_memory_stats get_device_name get_device_properties Event".split()
)
_PLACES = last_names("replicates", "distributes") | {"Accelerator", "accelerator", "set_default_device"}
#: Variables that name a device.
_DEVICE = re.compile(r"device|gpu|card|rank|^dev$|_dev$", re.I)


def on_card(program: Program, paths: Collection[str] | None = None) -> bool:
    """True when a file of the program (one of `paths`) names a card, or moves something to one or to an unknown device.

    A comment does not, and neither does a seed for all cards, or a question whether there is one.
    """
    files = [file for file in program.files if paths is None or file.path in paths]
    return any(_names_card(file) or _moves(program, file) for file in files)


def _names_card(file: File) -> bool:
    every = ast.walk(file.scan.tree) if b"npu" in file.source.utf8.lower() else file.scan.strings
    for node in every:
        text = string_of(node) or ""
        if text.lower().startswith(_CARDS) and not isinstance(parent(node), ast.Expr):
            return True
    for name in _CARDS:
        for attribute in file.scan.attributes.get(name, ()):
            above = parent(attribute)
            if call_of(attribute) is not None or (isinstance(above, ast.Attribute) and above.attr not in _KEEPING):
                return True
    called = [file.names.qualified(call.func) or "" for call in file.scan.calls]
    if any(taken_over(PROCESSES, name) for name in called if not name.startswith("torch.")):
        return True  # a Trainer of Lightning or transformers puts its model there
    if "torch.cuda.amp.GradScaler" in called:
        return True
    return any(file.scan.attributes.get(name) or file.scan.names.get(name) for name in _PLACES)


def _moves(program: Program, file: File) -> bool:
    """`model.to(args.device)`: the device is an argument, or of a settings file, that does not say the CPU."""
    for attribute in file.scan.attributes.get("to", ()):
        call = call_of(attribute)
        given = argument_at(call, 0, "device") if call is not None else None
        if isinstance(given, ast.Constant) and type(given.value) is int:
            return True
        if given is None or not _DEVICE.search(last_name(given)):
            continue
        values = [(file, given), *values_of(program, file, given)]
        places = [(at, node) for at, value in values for node in ast.walk(value)]
        settings = [stated(program, at, node) for at, node in places if isinstance(node, ast.Attribute)]
        strings = {string_of(node) for node in (*(node for _, node in places), *itertools.chain(*settings))}
        if not any(text.startswith("cpu") for text in strings if text):
            return True
    return False


def stated(program: Program, file: File, node: ast.Attribute) -> list[ast.expr | None]:
    """What a setting is where it is stated: `add_argument("--device", default="cpu")`, `config = {"device": "cpu"}`."""
    flag = f"--{node.attr}"
    calls = [call for at in program.files for call in at.scan.calls if last_name(call.func) == "add_argument"]
    found = [keyword_of(call, "default") for call in calls if any(string_of(each) == flag for each in call.args)]
    for _, value in values_of(program, file, node.value):
        if isinstance(value, ast.Dict):
            found += [item for key, item in zip(value.keys, value.values, strict=True) if string_of(key) == node.attr]
    return found


def chosen_card(file: File, call: ast.Call) -> ast.expr | None:
    """The argument with which a call chooses a card by its number, or by a variable that may hold one."""
    name = file.names.qualified(call.func) or ""
    method = call.func.attr if isinstance(call.func, ast.Attribute) and not name.startswith("torch.") else ""
    first = call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None
    if name == "torch.cuda.device":
        given = first or keyword_of(call, "device")
        return given if _is_number(given) or isinstance(given, (ast.Name, ast.Attribute, ast.Subscript)) else None
    if method == "cuda":  # the first argument is taken out with its place
        return keyword_of(call, "device")
    if name == "torch.device":
        given = None if is_cpu_device(file.names, call) else keyword_of(call, "index")
        return given or (first if _is_number(first) else None)
    given = keyword_of(call, "device") if method == "to" or name.startswith("torch.") else None
    given = given or (first if method == "to" else None)
    return given if _is_number(given) else None


def _is_number(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def text_with_number(node: ast.JoinedStr | ast.BinOp | ast.Call) -> ast.expr | None:
    """The text of `f"cuda:{n}"`, `"cuda:" + str(n)`, `"cuda:%d" % n` and `"cuda:{}".format(n)`."""
    match node:
        case (
            ast.JoinedStr(values=[text, _])
            | ast.BinOp(left=text, op=ast.Add() | ast.Mod())
            | ast.Call(func=ast.Attribute(value=text, attr="format"))
        ):
            known = ("cuda:", "cuda:%d", "cuda:%s", "cuda:{}", "cuda:{:d}")
            return text if string_of(text) in known else None
    return None
