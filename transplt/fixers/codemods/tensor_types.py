"""Default tensor types and 64-bit floats.

`torch.set_default_tensor_type` refuses the NPU's tensor types (Ascend/pytorch, docs/zh/api/native_api, torch.md). What
it does for a CUDA type is done by set_default_dtype and set_default_device, which torch has since 2.0. The type names
themselves (`torch.cuda.FloatTensor`, as a name or in a string) are renamed by rules/tensor_types.json and `strings`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.shared_lines import statement_separator
from transplt.edits.trees.transform import refusing
from transplt.edits.work import Work
from transplt.rules.card_limits import limit_text
from transplt.rules.torch_callables import TENSOR, full_names, names_of
from transplt.syntax.nodes import attribute_of, call_of, hides_arguments, keyword_of, last_name, string_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU125", rank=250)

_DTYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
}
_SET = "torch.set_default_tensor_type"
_DOUBLE = frozenset({"torch.float64", "torch.double"})


@dataclass(frozen=True, slots=True)
class _Default:
    """What a default tensor type means: a device and a floating-point type."""

    device: str
    dtype: str


@fixer.on(ast.Module)
def types_of_tensors(work: Work, tree: ast.Module) -> Finds:
    """Rewrite default tensor types; report where 64-bit floats go to the device."""
    yield from _default_types(work)
    yield from _doubles(work)


def _default_types(work: Work) -> Finds:
    if b"set_default_tensor_type" not in work.source.utf8:
        return
    calls = [call for call in work.scan.calls if work.names.qualified(call.func) == _SET]
    meant = [(call, _meaning(work, call)) for call in calls]
    if not any(_on_device(work, call, what) for call, what in meant):
        return
    certain = all(
        what is not None and isinstance(parent(call), ast.Expr) and isinstance(call.func, ast.Attribute)
        for call, what in meant
    )
    for call, what in meant:
        if certain and what is not None:
            yield from _rewrite(work, call, what)
            if any(default.device == "npu" for default in what):
                yield from _legacy_constructors(work)
        elif _on_device(work, call, what):
            yield from _leave(work, call)
    if certain:
        yield from _shuffling_loaders(work)


def _on_device(work: Work, call: ast.Call, what: list[_Default] | None) -> bool:
    """True for a call that may set a CUDA type; types that cannot be read count in a file that names CUDA."""
    if what is not None:
        return any(default.device == "npu" for default in what)
    return b"cuda" in work.source.utf8


def _meaning(work: Work, call: ast.Call) -> list[_Default] | None:
    """The default that a call sets, or the two between which it chooses; None when that cannot be read."""
    value = call.args[0] if len(call.args) == 1 and not call.keywords else keyword_of(call, "t")
    if value is None or len(call.args) + len(call.keywords) != 1:
        return None
    if not isinstance(value, ast.IfExp):
        one = _type(work, value)
        return None if one is None else [one]
    both = [_type(work, value.body), _type(work, value.orelse)]
    found = [one for one in both if one is not None]
    simple = isinstance(value.test, (ast.Name, ast.Attribute)) and work.names.qualified(value.test) is None
    if len(found) == 2 and found[0].dtype == found[1].dtype and simple:
        return found
    return None


def _type(work: Work, node: ast.expr) -> _Default | None:
    text = node.value if isinstance(node, ast.Constant) else work.names.qualified(node)
    if not isinstance(text, str):
        return None
    prefix, _, last = text.rpartition(".")
    if last not in _DTYPES or prefix not in ("torch", "torch.cuda", "torch.npu"):
        return None
    return _Default("cpu" if prefix == "torch" else "npu", _DTYPES[last])


def _claim(work: Work, call: ast.Call) -> None:
    """The type names inside stay as they are: no other codemod may rename them."""
    for node in ast.walk(call):
        work.take(node)


def _rewrite(work: Work, call: ast.Call, what: list[_Default]) -> Finds:
    statement = parent(call)
    assert isinstance(statement, ast.Expr) and isinstance(call.func, ast.Attribute)
    value = call.args[0] if call.args else call.keywords[0].value
    module = work.source.slice(*work.source.extent(call.func.value))
    device = f'"{what[0].device}"'
    if isinstance(value, ast.IfExp):
        test = work.source.slice(*work.source.extent(value.test))
        device = f'"{what[0].device}" if {test} else "{what[1].device}"'
    lines = [f"{module}.set_default_dtype({module}.{what[0].dtype})", f"{module}.set_default_device({device})"]
    text = statement_separator(work.source, statement).join(lines)
    _claim(work, call)
    yield Edit(
        statement,
        "NPU125",
        f"{_SET} refuses NPU types -> set_default_dtype and set_default_device",
        refusing("there is a comment inside the statement") if "#" in work.text(statement) else text,
        api=_SET,
        writes_npu="npu" in device,
    )


def _legacy_constructors(work: Work) -> Finds:
    """`torch.Tensor(...)` made tensors of the default type; it does not follow set_default_device."""
    for node in work.scan.attributes.get("Tensor", ()):
        call = parent(node)
        if not isinstance(call, ast.Call) or call.func is not node or work.names.qualified(node) != "torch.Tensor":
            continue
        after = parent(call)
        if attribute_of(after) in names_of(TENSOR, "to_card", "to_host", "reads"):
            continue
        if work.take(node):
            yield work.note(
                node,
                "NPU134",
                "torch.Tensor(...) ignores set_default_device: this tensor is on the CPU now",
                api="torch.Tensor",
                help="write torch.tensor(...), torch.empty(...) or add .to(device)",
                effort=Effort.LOW,
            )


def _shuffling_loaders(work: Work) -> Finds:
    """A sampler draws by `torch.randperm(n, generator=torch.Generator())`: on the default device, by one of the CPU.

    Source: torch/utils/data/sampler.py of torch 2.1 to 2.13; torch.Generator is none of the functions that take it.
    """
    for call in work.scan.calls:
        if work.names.qualified(call.func) not in full_names("loads", "orders"):
            continue
        shuffle = keyword_of(call, "shuffle") or (call.args[2] if len(call.args) > 2 else None)
        shuffles = shuffle is not None and not (isinstance(shuffle, ast.Constant) and not shuffle.value)
        draws = last_name(call.func) == "RandomSampler" or shuffles
        if draws and keyword_of(call, "generator") is None and not hides_arguments(call):
            yield work.note(
                call,
                "NPU134",
                "shuffling uses the default device with a CPU generator: RuntimeError at the first batch",
                api=work.names.qualified(call.func) or "",
                help='pass generator=torch.Generator(device="npu")',
                effort=Effort.LOW,
            )


def _leave(work: Work, call: ast.Call) -> Finds:
    _claim(work, call)
    yield work.note(
        call,
        "NPU126",
        f"{_SET} refuses NPU types",
        api=_SET,
        help='call torch.set_default_dtype(...) and torch.set_default_device("npu") if the type is for CUDA',
    )


# --- 64-bit floats ---------------------------------------------------------------------------------------------------


def _doubles(work: Work) -> Finds:
    """Say where 64-bit floats are made on the device: few NPU operators take them."""
    for node in work.scan.attributes.get("DoubleTensor", ()):
        if work.names.qualified(node) == "torch.cuda.DoubleTensor" and id(node) not in work.taken:
            yield from _double(work, node)
    for node in work.scan.attributes.get("double", ()):
        doubling, made = call_of(node), node.value
        on_cuda = isinstance(made, ast.Call) and attribute_of(made.func) == "cuda"
        if doubling is not None and (on_cuda or _goes_on(doubling)):
            yield from _double(work, node)
    for name in ("float64", "double"):
        for node in work.scan.attributes.get(name, ()):
            keyword, call = parent(node), parent(parent(node))
            if isinstance(keyword, ast.keyword) and keyword.arg == "dtype" and isinstance(call, ast.Call):
                on_device = (string_of(keyword_of(call, "device")) or "").startswith("cuda")
                if work.names.qualified(node) in _DOUBLE and (on_device or _goes_on(call)):
                    yield from _double(work, node)


def _goes_on(call: ast.Call) -> bool:
    """True for `x.double().cuda()`."""
    above = parent(call)
    return attribute_of(above) == "cuda" and isinstance(parent(above), ast.Call)


def _double(work: Work, node: ast.Attribute) -> Finds:
    end = work.source.extent(node)[1]
    extent = (end - len(node.attr), end)
    limit = limit_text("cast")
    yield Note(extent, "NPU127", Level.INFO, limit.message, help=limit.help)
