"""What is known of a number or code that has no row of its own: rules/support/error_numbers.json.

CANN's codes by the part that says them, return codes of acl, HCCL and the driver by their definitions, and lines of the
plog by the module that wrote them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from transplt.rules.errors import Kind, KnownError, family_of
from transplt.rules.tables import read_table

#: `[ERROR] HCCL(60570,python):2025-12-04-14:46:07.911.312 [hccl_socket.cc:106] ...`
PLOG = re.compile(r"\[(?:ERROR|FATAL)\] ([A-Z][A-Z_]{1,11})\(\d+,[^)]*\): ?\d{4}-")
_LOG = "~/ascend/log/debug/plog (ASCEND_PROCESS_LOG_PATH)"
#: Numbers beside which no name says whose they are: in which lines they count.
_HCCL = re.compile(
    r"(?:HCCL function error.*error code is |function error: Hccl\w+, error code is |hcclRet ?-> ?|"
    r"\bHCCL\(.*\bret(?:urn)?(?:Code)?:? ?\[|errNo\[0x0{0,9}5[0-9a-f]{6})0{0,6}(\d{1,2})(?![\dxa-fA-F])"
)
_ERR_NO = re.compile(r"errNo\[0x[0-9a-f]*?5([0-9a-f]{6})\]", re.IGNORECASE)
_DRIVER = re.compile(r"(?:drvRetCode ?= ?|drv ?ret(?:Code)?[=:] ?|DRV\(.*\bret=)(\d{1,5})\b")


@cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = read_table("support/error_numbers.json")
    return found


@cache
def general_error(code: str) -> KnownError | None:
    """The reading of a code of CANN (EH0006) or number of acl (507027) by what part says it; None for no such code."""
    return _of_acl(code) if code.isdigit() else _of_cann(code)


@cache
def error_of_module(module: str) -> KnownError:
    """An error that a module of CANN wrote into its log, without a code."""
    family = next((family_of(code) for code, name in _table()["logs"].items() if name == module), "")
    part = f"{module}, {family}," if family else f"The module {module} of CANN"
    return _general(
        f"plog-{module.lower()}", "", f"{part} reports an error", Kind.WRAPPER,
        "A line of CANN's log without a code. The first ERROR of the process in time is nearest to the cause.",
        "The text of the line says it, or what the other modules logged just before it.",
        ("Read the first ERROR lines of this process, of all modules: later ones mostly follow from them.",
         "Search for the text of the line, without numbers."),
    )  # fmt: skip


def readings(text: str) -> list[str]:
    """What the return codes of HCCL and of the driver in a line mean."""
    table = _table()
    numbers = [("HCCL", match[1]) for match in _HCCL.finditer(text)]
    numbers += [("HCCL", str(int(match[1], 16))) for match in _ERR_NO.finditer(text)]
    numbers += [("driver", match[1]) for match in _DRIVER.finditer(text)]
    found = [(part, number, table[part.lower()].get(number, "")) for part, number in numbers]
    return list(dict.fromkeys(f"{part} {number}: {means}" for part, number, means in found if means))


def _of_cann(code: str) -> KnownError | None:
    family = family_of(code)
    if not family:
        return None
    table = _table()
    means = next((means for start, means in table["numbers"] if code[2:].startswith(start)), "the text says what it is")
    if code in table["codes"]:
        means = f"an operator refused its arguments: {table['codes'][code]}"
    module = table["logs"].get(code[:2], "")
    kind = Kind.WRAPPER if code[2:] in ("9999", "8888") else Kind.FAULT
    where = f" of {module}" if module else ""
    return _general(
        f"code-{code.lower()}", code, f"{family[0].upper()}{family[1:]} reports {code}", kind,
        f"{code[:2]}: {family}. {code[2:]}: {means}.",
        "The text behind the code says it, and the lines Reason, Possible Cause and Solution where they follow.",
        (f"Read the lines{where} in {_LOG}: the first ERROR is nearest to the cause.",
         f"hiascend.com, troubleshooting, has a page for {code}."),
    )  # fmt: skip


def _of_acl(code: str) -> KnownError | None:
    table = _table()
    row = next(((what, do) for start, what, do in table["acl_ranges"] if code.startswith(start)), None)
    if row is None:
        return None
    what, do = row
    means = table["acl"].get(code, "")
    kind = Kind.WRAPPER if code[0] == "5" or not means else Kind.FAULT
    title = f"{means[0].upper()}{means[1:]} ({code})" if means else f"{what[0].upper()}{what[1:]} ({code})"
    return _general(
        f"acl-{code}", code, title, kind, f"{code[:3]}xxx: {what}." + (f" {code}: {means}." if means else ""),
        "The lines of CANN beside the number say which call it was, and why.",
        (f"{do[0].upper()}{do[1:]}.", f"Read the first ERROR in {_LOG}."),
    )  # fmt: skip


def _general(
    name: str, code: str, title: str, kind: Kind, means: str, cause: str, do: tuple[str, ...]
) -> KnownError:  # fmt: skip
    source = "; ".join(_table()["sources"].values())
    return KnownError(name, title, kind, code, (), None, means, cause, do, (), source, (), "", False, "general")
