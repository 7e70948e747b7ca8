"""`import torch.npu` of the first torch_npu: before torch 2.5 nothing loads torch_npu, and there is no such module.

torch_npu registers the module when it is imported (torch._register_device_module); from torch 2.5 on torch does that
by itself (the entry point torch.backends).
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work

fixer = Fixer(__name__, code="NPU514", rank=367, versions="<2.5", needs=(b"torch.npu",), words=("import torch.npu",))


@fixer.on(ast.Import)
def module_of_the_first_plugin(work: Work, statement: ast.Import | ast.ImportFrom) -> Finds:
    """Report an import of torch.npu in a file that does not import torch_npu."""
    if not isinstance(statement, ast.Import) or b"torch_npu" in work.source.utf8:
        return
    for alias in statement.names:
        if alias.name == "torch.npu" or alias.name.startswith("torch.npu."):
            yield work.note(
                alias,
                fixer.code,
                f"{alias.name} does not exist before torch_npu is imported: the import fails",
                api="torch.npu",
                help="import torch and torch_npu instead",
                blocks="import",
            )
