"""What kernels in Triton say to a GPU: assembly, other intrinsics of CUDA, tensor descriptors, order of block pointers.

Source: triton-ascend, docs/zh/triton_api: Inline_Assembly/inline_asm_elementwise.md, Memory_Pointer_Ops/
make_tensor_descriptor.md and tl.make_block_ptr.md ("only the order expresses a transposition, not the strides").
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort
from transplt.edits.edit import Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.triton.reader.kernels import LANGUAGE, Kernel, kernels_in
from transplt.flow.gates.optional_imports import can_fail
from transplt.syntax.nodes import keyword_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU564", needs=(b"triton",), words=("triton",))

_POINTERS = "NPU565"
_OF_GPUS = ("triton.language.extra.cuda", "triton.language.extra.hip")
_DESCRIPTORS = ("make_tensor_descriptor", "_experimental_make_tensor_descriptor", "_experimental_descriptor_load",
                "_experimental_descriptor_store")  # fmt: skip
_ON_HOSTS = frozenset({
    "triton.tools.tensor_descriptor.TensorDescriptor", "triton.tools.tensor_descriptor.TensorDescriptor.from_tensor",
    "triton.tools.experimental_descriptor.create_2d_tma_descriptor",
    "triton.tools.experimental_descriptor.create_1d_tma_descriptor",
})  # fmt: skip
_POINTER_HELP = (
    "load and store by tl.make_block_ptr or by pointers with a mask; triton-ascend 3.2.0 has no tensor descriptors; "
    "later releases support them without padding_option, and not together with tl.load of the same tensor"
)


@fixer.on(ast.Module)
def kernels(work: Work, tree: ast.Module) -> Finds:
    """Report what a kernel asks of a GPU alone; descriptors once for a kernel."""
    for kernel in kernels_in(work.file):
        descriptors = []
        for call, operation in kernel.calls():
            if operation == "inline_asm_elementwise":
                if work.take(call):
                    yield work.note(
                        call, fixer.code, f"{kernel.name} has GPU assembly",
                        api="triton.language.inline_asm_elementwise", effort=Effort.MEDIUM,
                        help="compute the same with operations of tl and tl.math; NPUs have a different assembly, "
                             "only for int64 and float32",
                    )  # fmt: skip
            elif operation in _DESCRIPTORS:
                descriptors.append(call)
            elif operation == "make_block_ptr":
                yield from _order(work, kernel, call)
        if descriptors:
            more = f" (in {len(descriptors)} places)" if len(descriptors) > 1 else ""
            yield work.note(
                descriptors[0].func, _POINTERS, f"{kernel.name} loads and stores through tensor descriptors{more}, "
                "which use a GPU's copy engine", api="triton.language.make_tensor_descriptor",
                help=_POINTER_HELP, effort=Effort.MEDIUM, blocks="first step",
            )  # fmt: skip


@fixer.on(ast.Attribute, last=("cuda", "hip"))
def intrinsics(work: Work, node: ast.Attribute) -> Finds:
    """Functions that only the module of a GPU has; those of libdevice are in one of triton-ascend too."""
    above = parent(node)
    if not isinstance(above, ast.Attribute) or above.attr == "libdevice" or work.names.qualified(node) not in _OF_GPUS:
        return
    if work.take(above):
        yield _intrinsic(work, above, f"{work.names.qualified(node)}.{above.attr}")


@fixer.on(ast.Import)
def intrinsics_imported(work: Work, statement: ast.Import | ast.ImportFrom) -> Finds:
    """The same, taken from that module by name."""
    if not isinstance(statement, ast.ImportFrom) or statement.level or statement.module not in _OF_GPUS:
        return
    names = [each.name for each in statement.names if each.name != "libdevice"]
    if names and work.take(statement):
        blocks = "later" if can_fail(statement) else "import"
        yield _intrinsic(work, statement, f"{statement.module}.{names[0]}", blocks)


def _intrinsic(work: Work, node: ast.expr | ast.stmt, full: str, blocks: str = "") -> Note:
    name = full.removeprefix(LANGUAGE)
    return work.note(node, fixer.code, f"tl.{name} is a function for GPUs only", api=full, effort=Effort.MEDIUM,
                     help="remove it, or rewrite it with tl operations", blocks=blocks)  # fmt: skip


@fixer.on(ast.Call, name=_ON_HOSTS)
def descriptors_of_hosts(work: Work, call: ast.Call) -> Finds:
    """Descriptors that a host makes and gives to a launch."""
    yield work.note(
        call.func, _POINTERS, "a tensor descriptor is created on the host, for the copy engine of a GPU",
        api="triton.tools.tensor_descriptor.TensorDescriptor", effort=Effort.MEDIUM, blocks="first step",
        help=f"pass the tensor and its strides to the kernel; {_POINTER_HELP}",
    )  # fmt: skip


def _order(work: Work, kernel: Kernel, call: ast.Call) -> Finds:
    """A block pointer whose innermost dimension by strides is not the first one of its order."""
    names = ("base", "shape", "strides", "offsets", "block_shape", "order")
    given = {name: call.args[index] if index < len(call.args) else keyword_of(call, name)
             for index, name in enumerate(names)}  # fmt: skip
    strides, order = given["strides"], given["order"]
    if not isinstance(strides, (ast.Tuple, ast.List)) or not isinstance(order, (ast.Tuple, ast.List)):
        return
    ones = [index for index, each in enumerate(strides.elts) if getattr(each, "value", None) == 1]
    number = getattr(order.elts[0], "value", None) if order.elts else None
    if len(ones) != 1 or len(order.elts) != len(strides.elts) or len(strides.elts) < 2:
        return
    if isinstance(number, int) and number != ones[0]:
        wanted = (ones[0], *(each for each in reversed(range(len(strides.elts))) if each != ones[0]))
        yield work.note(
            order, _POINTERS, f"the block pointer of {kernel.name} has stride 1 in dimension {ones[0]}, but its order "
                              f"begins with {number}: an NPU only uses the order to see what is transposed",
            api="triton.language.make_block_ptr", help=f"order={wanted}", blocks="first step",
        )  # fmt: skip
