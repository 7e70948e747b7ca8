"""What programs are read from: parsed files."""

from __future__ import annotations

import ast

from transplt.syntax.files import File

__all__ = ["File", "names_and_attributes"]


def names_and_attributes(file: File) -> list[ast.Name | ast.Attribute]:
    """All names of a file, and behind them all attributes."""
    scan = file.scan
    return [node for groups in (scan.names, scan.attributes) for group in groups.values() for node in group]
