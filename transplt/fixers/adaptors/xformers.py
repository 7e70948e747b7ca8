"""`attention`: the attention of xformers and what public code uses beside it come from the project's own functions.

Which names those are says rules/support/taken_over.json.
"""

from __future__ import annotations

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import on_file
from transplt.fixers.adaptors.package import turn_package
from transplt.fixers.adaptors.package_probes import turn_probes
from transplt.fixers.adaptors.writer import AdaptorWriter, writer_for
from transplt.rules.taken_over import packages

fixer = Fixer(__name__, code="NPU873", rank=-89, theme="adapt:attention", needs=(b"xformers",), value="(?:package)?",
              example="package")  # fmt: skip


@on_file(fixer, writer_for)
def attention_of_xformers(work: Work, writer: AdaptorWriter) -> None:
    """Take from the helper what a file takes from xformers."""
    package = packages()["xformers"]
    turned = turn_package(writer, package, fixer.code)
    turn_probes(writer, package, fixer.code, turned=turned)
