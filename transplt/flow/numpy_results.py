"""Functions whose result is a scalar or an array of NumPy, read from the bytes: what scores names no CUDA, and is not
parsed.
"""

from __future__ import annotations

import re

_HEADER = re.compile(rb"^(?P<indent>[ \t]*)(?P<kind>class|def)[ \t]+(?P<name>\w+)", re.M)
_RETURN = re.compile(rb"^[ \t]+return\b[ \t]*(.*)$", re.M)
#: Reductions, whose result is NumPy's own whatever they are given (NumPy's reference, "Statistics").
_REDUCED = re.compile(rb"(?:np|numpy)\.(?:average|mean|median|nanmean|nanmedian|percentile|quantile|std|var)\((.*)\Z")
_PLAIN_AGAIN = re.compile(rb"\.(?:item|tolist)\(|\bif\b")


def numpy_results(data: bytes) -> tuple[str, ...]:
    """`Class.method` and `function` for each whose one `return` gives what a reduction of NumPy made in it."""
    if b"numpy" not in data or b"return" not in data:
        return ()
    found, owner = [], b""
    headers = [*_HEADER.finditer(data)]
    for header, end in zip(headers, (*(each.start() for each in headers), len(data))[1:], strict=True):
        owner = owner if header["indent"] else header["name"] if header["kind"] == b"class" else b""
        body = data[header.end() : end]
        returned = _RETURN.findall(body) if header["kind"] == b"def" else ()
        if len(returned) == 1 and _is_reduced(returned[0].strip(), body):
            found.append(b".".join(filter(None, (owner, header["name"]))).decode())
    return tuple(found)


def _is_reduced(value: bytes, body: bytes) -> bool:
    if re.fullmatch(rb"[A-Za-z_]\w*", value):
        assigned = re.findall(rb"^[ \t]+%s[ \t]*=[ \t]*(.*)$" % value, body, re.M)
        value = assigned[-1] if assigned else b""
    made = _REDUCED.match(value)
    return made is not None and _PLAIN_AGAIN.search(made[1]) is None
