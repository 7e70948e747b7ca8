"""An argument of a function of CANN, and the letters that say how it is passed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from keyword import iskeyword

#: Types of CANN's prototypes as letters.
PROTOTYPE = {
    "aclTensor*": "t", "aclTensorList*": "T", "aclScalar*": "s", "aclScalarList*": "S", "aclIntArray*": "a",
    "aclFloatArray*": "F", "aclBoolArray*": "B", "int64_t": "i", "uint64_t": "i", "size_t": "i", "int32_t": "h",
    "uint32_t": "h", "int": "h", "int8_t": "c", "uint8_t": "c", "bool": "b", "double": "d", "float": "f",
    "aclDataType": "k", "char*": "z",
}  # fmt: skip
KINDS = "".join(sorted({*PROTOTYPE.values()}))
#: What an argument is besides: filled by the function, read and written, or possibly a null pointer.
FILLED, CHANGED, OPTIONAL = ">", "&", "?"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its name, its letter (empty where the source does not tell) and its marks."""

    name: str
    kind: str
    marks: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.kind}{self.marks}"

#: What op-plugin's variables are called besides the argument that they hold.
_FORM = re.compile(r"^format_|(_(value|val|real|wrapper|ptr|attr|const|opt|optional|char|cp|cast|copy|clone|ref))+$")


def of_variable(name: str) -> str:
    """The argument that a variable holds: `format_query` is `query`, `scales_h_attr` is `scales_h`."""
    name = snake(name)
    bare = _FORM.sub("", name)
    return name if iskeyword(bare) else bare


def snake(name: str) -> str:
    """`gradOutput` as `grad_output`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
