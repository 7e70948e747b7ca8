"""The backends of torch.compile: `cudagraphs` is `npugraphs` on the NPU; inductor, the default, needs triton-ascend.

torch_npu registers it from its 2.6 on (torch_npu/dynamo/__init__.py; facts: torch.compile in the native API list).
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.work import Work
from transplt.rules.torch_callables import full_names
from transplt.rules.versions import versions_of
from transplt.syntax.nodes import hides_arguments, keyword_of, shape, string_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU150", rank=330, needs=(b"torch", b"compile"), words=("cudagraphs", "compile("))


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


@fixer.on(ast.Call, name=("torch.compile",))
def compiled_by_inductor(work: Work, call: ast.Call) -> Finds:
    """Report what inductor compiles; one with CUDA graphs has a finding of its own (NPU281)."""
    backend = keyword_of(call, "backend")
    plain = backend is None or string_of(backend) == "inductor"
    if not plain or hides_arguments(call) or not {"mode", "options", "disable"}.isdisjoint(shape(call)[1]):
        return
    yield work.note(
        call.func,
        "NPU512",
        "torch.compile compiles with inductor, which needs triton-ascend on an NPU",
        api="torch.compile",
        help="pip install triton-ascend (without triton), or remove the call; TORCHINDUCTOR_NPU_BACKEND chooses other "
        "kernels for torch_npu's inductor",
    )
