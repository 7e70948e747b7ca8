"""Files that stand on a package bound to CUDA stay: without TensorRT nothing in them runs, whatever else is edited.

So do those of another framework, a Paddle program beside one of torch.
Only where the import stands at the top of the module and cannot fail, and nothing is trained: of a training script the
package is a part that goes. What the file says of CUDA belongs to the finding of the import.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Level
from transplt.edits.edit import Finds, Kept
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.rules.packages import holds_whole_files
from transplt.syntax.scan import parent

#: As `whole_file` in rules/support/third_party.json.
_NAMES = (b"tensorrt", b"torch2trt", b"pycuda", b"cudart", b"cuda.bindings")
fixer = Fixer(__name__, code="NPU510", rank=620)


@fixer.on(ast.Module)
def files_of_the_package(work: Work, tree: ast.Module) -> Finds:
    """Take back all edits of such a file, and all findings but those of its imports; of one whose classes derive from
    those of such a file too, and of one that computes with another framework than torch.
    """
    framework = work.project.aside.untorched.get(work.scan.path)
    if framework is not None or work.scan.path in work.project.bound:
        work.withdraw_edits(lambda edit: not edit.user)
        work.withdraw_notes(lambda note: note.level is not Level.INFO)
        reason = ("other-framework", framework) if framework is not None else ("bound-base",)
        yield Kept((0, len(work.source.utf8)), *reason)
        return
    if not any(name in work.source.utf8 for name in _NAMES):
        return
    held = []  # imports at the top, and the names that they bring
    for node, _, api in work.packages:
        above = parent(node)
        outer = parent(above) if isinstance(above, (ast.Import, ast.ImportFrom)) else above
        if isinstance(outer, ast.Module) and holds_whole_files(api):
            held.append(node)
    reported = {note.extent for note in work.notes if note.level is Level.MANUAL}
    if not any(work.source.extent(node) in reported for node in held) or work.scan.calls_by_last_name(("backward",)):
        return
    imports = [work.source.extent(node) for node in work.scan.imports]
    work.withdraw_edits(lambda edit: not edit.user)
    work.withdraw_notes(lambda note: not any(start <= note.extent[0] < end for start, end in imports))
    yield Kept((0, len(work.source.utf8)), "reported-package")
