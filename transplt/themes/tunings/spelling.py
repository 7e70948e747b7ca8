"""How torch is called in a file."""

from __future__ import annotations

from transplt.edits.writing import Writer


def torch_name(writer: Writer) -> str:
    """The name of torch: an alias too, where it means nothing else in any scope; imported when it was not."""
    scan = writer.work.scan
    for name, bindings in sorted(scan.root.bindings.items()):
        if name != "torch" and all(each.kind == "import" and each.target == "torch" for each in bindings):
            inside = any(name in scope.bindings for scope in scan.scopes.values() if scope is not scan.root)
            if not inside and "torch" not in scan.root.bindings:
                return name
    return writer.torch
