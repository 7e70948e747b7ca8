"""What is known of a number or code that has no row of its own: rules/support/error_numbers.json.

CANN's codes by the part that says them, return codes of acl, HCCL and the driver by their definitions, and lines of the
plog by the module that wrote them.
"""

from __future__ import annotations

import re
from functools import cache, partial

from transplt.rules.errors import Kind, KnownError, family_of
from transplt.rules.tables import read_table

_table = partial(read_table, "support/error_numbers.json")

#: `[ERROR] HCCL(60570,python):2025-12-04-14:46:07.911.312 [hccl_socket.cc:106] ...`
PLOG = re.compile(r"\[(?:ERROR|FATAL)\] ([A-Z][A-Z_]{1,11})\(\d+,[^)]*\): ?\d{4}-")
_LOG = "~/ascend/log/debug/plog (ASCEND_PROCESS_LOG_PATH)"
#: Numbers beside which no name says whose they are: in which lines they count.
_HCCL = re.compile(
    r"(?:HCCL function error.*error code is |function error: Hccl\w+, error code is |hcclRet ?-> ?|"
    r"\bHCCL\(.*\bret(?:urn)?(?:Code)?:? ?\[|HCCL (?:[Ee]rror )?[Cc]ode:? |hccl module\. ret = )"
    r"(\d{1,2})(?![\dxa-fA-F])"
)
_ERR_NO = re.compile(r"errNo\[0x[0-9a-f]*?5([0-9a-f]{6})\]", re.IGNORECASE)
_DCMI = re.compile(
    r"(?:dcmi|npu-smi|\bcard\b|\bnpu\b|device).*\b(?:err(?:or)?|ret|code|fail\w*)\b.{0,24}?(?<![\d.-])(-8(?:0[012]\d|255))\b",
    re.IGNORECASE,
)
_HIXL = re.compile(
    r"(?:status|ret(?:urn)?(?:Code)?|error code|err(?:or)?)\W{1,4}(10390[0-5]|[25]03900)(?!\d)", re.IGNORECASE
)
_DATADIST = re.compile(r"\b0x(5010B0[01][0-9A-F])\b", re.IGNORECASE)
_DRIVER = re.compile(r"(?:drvRetCode ?= ?|drv ?ret(?:Code)?[=:] ?|DRV\(.*\bret=)(\d{1,5})\b")


@cache
def general_error(code: str) -> KnownError | None:
    """The reading of a code of CANN (EH0006) or number of acl (507027) by what part says it; None for no such code."""
    return _of_acl(code) if code.isdigit() else _of_cann(code)


@cache
def error_of_module(module: str) -> KnownError:
    """An error that a module of CANN wrote into its log, without a code."""
    family = next((family_of(code) for code, name in _table()["logs"].items() if name == module), "")
    # The words of a family may begin with the name of the module itself.
    family = family.removeprefix(f"{module}, ")
    part = f"{module}, {family}," if family else f"The module {module} of CANN"
    return _general(
        f"plog-{module.lower()}", "", f"{part} reports an error", Kind.WRAPPER,
        "A line of CANN's log without a code. The first ERROR of the process in time is nearest to the cause.",
        "The text of the line says it, or what the other modules logged just before it.",
        ("Read the first ERROR lines of this process in all modules: later ones usually follow from them.",
         "Search for the text of the line, without numbers."),
    )  # fmt: skip


def readings(text: str) -> list[str]:
    """What the return codes of HCCL and of the driver in a line mean."""
    table = _table()
    numbers = [("HCCL", match[1]) for match in _HCCL.finditer(text)]
    numbers += [("HCCL", str(int(match[1], 16))) for match in _ERR_NO.finditer(text)]
    numbers += [("driver", match[1]) for match in _DRIVER.finditer(text)]
    numbers += [("DCMI", match[1]) for match in _DCMI.finditer(text)]
    numbers += [("HIXL", match[1]) for match in _HIXL.finditer(text)]
    numbers += [("DataDist", match[1].upper()) for match in _DATADIST.finditer(text)]
    found = [(part, number, table[part.lower()].get(number, "")) for part, number in numbers]
    said = [f"{part} {number}: {means}" for part, number, means in found if means]
    return list(dict.fromkeys([*said, *_memory(text), *_symbol(text), *_core(text), *_versions(text), *_faults(text)]))


_MEMORY = re.compile(
    r"NPU out of memory\. Tried to allocate (?P<asked>(?P<size>[\d.]+) (?P<size_unit>\w)\w+).*?"
    r"(?P<total>[\d.]+) GiB total capacity; "
    r"(?P<used>[\d.]+) (?P<unit>\w)iB already allocated;.*?(?P<free>[\d.]+) (?P<free_unit>\w)iB free; "
    r"(?P<reserved>[\d.]+) (?P<reserved_unit>\w)iB reserved"
)
#: What takes more than this share of the card at once is one tensor that should not be made.
_ONE_TENSOR = 0.4
_UNITS = {"G": 1.0, "M": 1 / 1024, "K": 1 / 1024**2, "T": 1024.0}


def _memory(text: str) -> list[str]:
    """Who holds the card's memory, by the numbers that torch_npu gives where it runs out."""
    match = _MEMORY.search(text)
    if match is None:
        return []
    total, used = float(match["total"]), float(match["used"]) * _UNITS.get(match["unit"], 1.0)
    free = float(match["free"]) * _UNITS.get(match["free_unit"], 1.0)
    reserved = float(match["reserved"]) * _UNITS.get(match["reserved_unit"], 1.0)
    size = float(match["size"]) * _UNITS.get(match["size_unit"], 1.0)
    others, lost = total - reserved - free, reserved - used
    said = f"memory: {match['asked']} were asked for; of {total:.2f} GiB this process holds {used:.2f} GiB in tensors"
    if others > 0.25 * total:
        return [f"{said}; some {others:.1f} GiB are neither its own nor free: another process is on the card"]
    if size > _ONE_TENSOR * total:
        return [
            f"{said}; a single tensor of that size is mostly the scores of attention that is computed whole (eager), "
            "logits of a vocabulary in float32, or an index or mask that was expanded"
        ]
    if lost > 0.2 * total or (lost > 0.1 * total and lost + free > size):
        return [f"{said} and {lost:.2f} GiB more in pieces that it cannot use: fragmented"]
    return [f"{said}: it fills the card itself, so that it has to want less"]


_TORCH = re.compile(r"(?<![\w-])(?:py)?torch(?: version)?(?:==| is|:)? ?v?(\d+\.\d+\.\d+)", re.IGNORECASE)
_TORCH_NPU = re.compile(
    r"torch[-_]npu(?: version)?(?:==| is|:)? ?v?((\d+\.\d+\.\d+)(?:\.?(?:post|rc|dev)\d+)?)", re.IGNORECASE
)


def _versions(text: str) -> list[str]:
    """What goes with the torch and torch_npu that a line names, where they are no pair."""
    ours, theirs = _TORCH.search(text), _TORCH_NPU.search(text)
    if ours is None or theirs is None or ours[1] == theirs[2]:
        return []
    rows: dict[str, dict[str, str]] = read_table("support/versions.json")["torch"]
    said = f"versions: torch_npu {theirs[1]} goes with torch {theirs[2]}, not with {ours[1]}"
    row = rows.get(ours[1].rsplit(".", 1)[0], {})
    return [f"{said}; for torch {ours[1]} take torch_npu {row['torch_npu']} with CANN {row['cann']}" if row else said]


_FAULT = re.compile(r"\b(?:0x)?(8[01cC][0-9a-fA-F]{6})\b")


def _faults(text: str) -> list[str]:
    """What a card reports on itself, by the fields of its codes: 0x80E01801 is the HBM, several bits lost."""
    table: dict[str, dict[str, str]] = _table()["faults"]
    found = []
    for match in _FAULT.finditer(text):
        code = int(match[1], 16)
        part = table["parts"].get(f"{code >> 17 & 0x3FFF:#04x}", "")
        kind = table["kinds"].get(f"{code >> 9 & 0xFF:#04x}")
        if part and kind is not None:
            said = kind or table["states"].get(str(code & 0x1FF), "a fault")
            found.append(f"card 0x{code:08X}: {part}: {said}")
    return found


_CORE = re.compile(
    r"there is an? (?:exception of )?(?:fftsplus )?(?P<core>aivec|aivector|aiv|aicore|aic)\w* (?:error|exception)",
    re.IGNORECASE,
)


def _core(text: str) -> list[str]:
    """Which kind of core stopped, and its code."""
    match = _CORE.search(text)
    if match is None:
        return []
    kind = "a vector core" if match["core"].lower().startswith("aiv") else "a cube (AI) core"
    code = re.search(r"error code = (0x[0-9a-fA-F]+)", text)
    return [f"core: {kind} stopped ({match['core']} error{f', error code {code[1]}' if code else ''})"]


_SYMBOL = re.compile(r"undefined symbol:? (_Z\w+)")


def _symbol(text: str) -> list[str]:
    """Which C++ ABI a symbol is of that was not found."""
    match = _SYMBOL.search(text)
    if match is None:
        return []
    own = "torch's own: torch._C._GLIBCXX_USE_CXX11_ABI"
    if "__cxx11" in match[1]:
        return [f"symbol: it takes strings of the new C++ ABI (__cxx11); {own}"]
    if re.search(r"(?<=[A-Za-z\d])Ss(?=[A-Z]|$)|RKSs", match[1]):
        return [f"symbol: it takes strings of the old C++ ABI (Ss); {own}"]
    return []


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
    documented: dict[str, tuple[str, str, list[str]]] = table["documented"]
    if key := next((code[:length] for length in (6, 5, 4, 3) if code[:length] in documented), ""):
        title, cause, do = documented[key]
        meant = f"{code[:2]}: {family}. The text behind the code says what it was, and where."
        return _general(f"code-{code.lower()}", code, title, Kind.FAULT, meant, cause, tuple(do))
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
    cause, ways = table["acl_documented"].get(
        code,
        ("The lines of CANN beside the number say which call it was, and why.", [f"{do[0].upper()}{do[1:]}."]),
    )
    return _general(
        f"acl-{code}", code, title, kind, f"{code[:3]}xxx: {what}." + (f" {code}: {means}." if means else ""),
        cause, (*ways, f"Read the first ERROR in {_LOG}."),
    )  # fmt: skip


def _general(
    name: str, code: str, title: str, kind: Kind, means: str, cause: str, do: tuple[str, ...]
) -> KnownError:  # fmt: skip
    source = "; ".join(_table()["sources"].values())
    return KnownError(name, title, kind, code, (), None, means, cause, do, (), source, (), "", False, "general")
