"""Which operators CANN, torch_npu and torch name beside an error.

The name is what a reader looks for first: an error is reported at a later call, and the stack may be of another line.
"""

from __future__ import annotations

import re

#: So many are kept of one failure.
MOST = 4
_NAME = r"(\w{2,80}?)"
#: A literal for the search, and the expression that has the name. In the order in which they are believed: torch_npu's
#: own sentence, the call of aclnn, then lines of CANN.
_FORMS = (
    ("working operator name is ", r"working operator name is (\w{2,80})"),
    ("call aclnn", r"call (aclnn\w{2,80}) failed"),
    ("failed, error code", r"(?<!call )\b(aclnn\w{2,80}) failed, error code"),
    ("GetWorkspaceSize failed", r"(aclnn\w{2,80}?)GetWorkspaceSize failed"),
    ("OPS function error: ", r"OPS function error: (?!Hccl)(\w{2,80}), error code"),
    ("Operation setup failed", r"(\w{2,80}Operation) setup failed"),
    ("Operation CreateOperation", r"(\w{2,80}Operation) CreateOperation failed"),
    ("does not has any binary", r"Op (\w{2,80}) does not has any binary"),
    ("Cannot find bin", r"Cannot find bin(?:ary)? (?:of|for) op (\w{2,80})"),
    ("Kernel Run failed", r"opType: \d{1,9}, (\w{2,80})"),
    ("launch failed for ", r"launch failed for (\w{2,80})"),
    ("This is an error in ", r"This is an error in (\w{2,80}) launch"),
    ("kernel_name=", rf"kernel_name={_NAME}(?:_[0-9a-f]{{32}}\w*|_tvmbin)?(?=[,.\s]|$)"),
    ("op_name=", r"op_name=(\w{2,80})"),
    ("kernel=", r"kernel=\d+/(\w{2,80}?)(?:_tvmbin)?(?=[,.\s])"),
    ("for [", r"[Oo]ptype \[(\w{2,80})\]"),
    ("ps kernel", r"[Oo]ptype \[(\w{2,80})\]"),
    ("ps kernel", r"Op type (\w{2,80}) of ops kernel"),
    ("compile Op [", r"Failed to compile Op \[(\w{2,80})"),
    ("Execute op failed", r"op type = (\w{2,80})"),
    ("Failed to execute operator ", rf"Failed to execute operator {_NAME}(?:_\d+)?\."),
    ("Could not run '", r"Could not run '([\w:.]{2,80})' with"),
    ("[ERROR][", r"^\s*\[ERROR\]\[(\w{2,80})\] (?=.*(?:[Tt]iling|[Aa]ttr|[Ii]nput))"),
)
#: What the lines with names hold.
BEFORE_OPERATORS = tuple(literal for literal, _ in _FORMS)
_EXPRESSIONS = tuple((literal, re.compile(expression)) for literal, expression in _FORMS)


def operators_in(text: str) -> list[str]:
    """The operators that a line names, the most trusted first."""
    found = [match[1] for literal, expression in _EXPRESSIONS if literal in text for match in expression.finditer(text)]
    return list(dict.fromkeys(found))


def with_operators(known: tuple[str, ...], more: list[str]) -> tuple[str, ...]:
    """Names that are known and new ones, each once and not too many."""
    return tuple(dict.fromkeys((*known, *more)))[:MOST]
