"""The import of what writes workbooks, for programs of our own."""

from __future__ import annotations

import sys


def import_writer() -> None:
    """Imports openpyxl without numpy, which it would import to know its numbers by: 0.09 s of CPU for none of ours.

    Only in a process that nobody else has code in: a caller of the library may write numbers of numpy with openpyxl.
    """
    if "numpy" in sys.modules or "openpyxl" in sys.modules:
        return
    sys.modules["numpy"] = None  # type: ignore[assignment]
    try:
        import openpyxl  # noqa: F401
    finally:
        del sys.modules["numpy"]
