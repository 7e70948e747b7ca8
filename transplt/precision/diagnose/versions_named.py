"""Versions that a log names (an environment that was pasted, pip list, paths of CANN), held to one another."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import Any

from transplt.precision.diagnose.advice import older_cann
from transplt.rules.tables import read_table

#: What stands between a name and its version.
_BETWEEN = r"(?:[ _]version)?(?:\s*(?:==?|:)\s*|[ \t]+)v?"
_TORCH = re.compile(rf"(?<![\w-])(?:py)?torch{_BETWEEN}(\d\.\d{{1,2}}\.\d)(?!\d)", re.IGNORECASE)
_TORCH_NPU = re.compile(
    rf"(?<![\w-])torch[-_]npu{_BETWEEN}(\d\.\d{{1,2}}\.\d(?:\.post\d+|\.?rc\d+)?)(?![.\d])", re.IGNORECASE
)
_VLLM = re.compile(
    rf"(?<![\w-])vllm(?:{_BETWEEN}| API server version |[^\n]{{0,20}} LLM engine \(v?)(\d\.\d{{1,2}}\.\d)(?![\d.]*rc)",
    re.IGNORECASE,
)
_VLLM_ASCEND = re.compile(
    rf"vllm[-_ ]ascend(?:{_BETWEEN}|:v)(\d\.\d{{1,2}}\.\d(?:\.?rc\d+|\.post\d+)?)(?![.\d])", re.IGNORECASE
)
_CANN_NUMBER = r"(\d\.\d\.(?:RC)?\d)(?![\d.])"
_CANN = re.compile(
    rf"(?<![\w-])CANN(?:{_BETWEEN}|-){_CANN_NUMBER}|ascend-toolkit/{_CANN_NUMBER}/|/cann-{_CANN_NUMBER}/|"
    rf"package_name=Ascend-cann-toolkit\s+version={_CANN_NUMBER}",
    re.IGNORECASE,
)

#: A list of visible cards, as a shell or a program sets it.
_CARDS = re.compile(r"\bASCEND_RT_VISIBLE_DEVICES['\"]?\]? ?[=:] ?['\"]?(\d+(?:, ?\d+)+)(?![\d,])")
#: The folder of a release of CANN, in a path.
_CANN_FOLDER = re.compile(rf"/(?:cann-|ascend-toolkit/|nnrt/){_CANN_NUMBER}/", re.IGNORECASE)

_NAMED = {
    "torch": _TORCH, "torch_npu": _TORCH_NPU, "vllm": _VLLM, "vllm_ascend": _VLLM_ASCEND, "cann": _CANN,
    "cann_folders": _CANN_FOLDER, "cards": _CARDS,
}  # fmt: skip
_OF_CANN = ("cann", "cann_folders")
#: What older releases of vllm write at each start, with the names of models that are not used.
_REGISTERED = re.compile(r"[^\n]*is already registered, and will be overwritten[^\n]*")


class VersionsNamed:
    """The versions of torch, torch_npu, CANN, vllm and vllm-ascend that pieces of logs name."""

    def __init__(self) -> None:
        self._named: defaultdict[str, set[str]] = defaultdict(set)
        self._words: set[str] = set()

    def look(self, piece: bytes) -> None:
        """Looks for versions in a piece."""
        text = piece.decode("utf-8", "replace")
        for name, pattern in _NAMED.items():
            found = ("".join(filter(None, match.groups())) for match in pattern.finditer(text))
            self._named[name] |= {each.upper() if name in _OF_CANN else each.replace(".rc", "rc") for each in found}
        if b"vllm" in piece:
            low = _REGISTERED.sub("", text).lower()
            self._words |= {word for word in _words() if word in low}

    def notes(self) -> list[str]:
        """What vllm-ascend's notes say of its release, where that is named alone and the log has the words of it."""
        release = _only(self._named["vllm_ascend"])
        notes: dict[str, list[Any]] = read_table("support/release_notes.json")
        said = [
            f"vllm-ascend {release}: its notes list a defect that the log's words fit: {defect}. {do}"
            for releases, words, defect, do in notes["defects"]
            if release in releases and all(self._words.intersection(each) for each in words)
        ]
        said += [
            f"The log sets ASCEND_RT_VISIBLE_DEVICES={cards}, which is not in ascending order: CANN then finds no "
            f"card (torch.npu.is_available() is False). In order, each once: {','.join(map(str, ordered))}."
            for cards in sorted(self._named["cards"])
            if (ordered := sorted({*map(int, cards.split(","))})) != [*map(int, cards.split(","))]
        ]
        said += [
            f"vllm-ascend {release} is older than its support for {model}: from {first} on. Take that release or a "
            f"newer one, with its vllm, transformers, torch_npu and CANN (its image)."
            for model, first, words in notes["models"]
            if release and _order(release) < _order(first) and self._words.intersection(words)
        ]
        return said

    def mismatch(self) -> str:
        """What does not go together, in sentences; empty for what does, and where something is named with two versions.

        A release of torch_npu is built for the torch of the same first three numbers (README of Ascend/pytorch), and
        for one CANN; vllm-ascend for one vllm: rules/support/release_pairs.json.
        """
        torch_npu, torch = _only({_three(each) for each in self._named["torch_npu"]}), _only(self._named["torch"])
        if torch and torch_npu and torch != torch_npu:
            return (
                f"The log names torch {torch} and torch_npu {torch_npu}: these do not match, which may be the cause "
                "of anything below. Install a matching pair: transplt doctor, docs/diagnose.md."
            )
        return self._two_canns() or self._of_the_server() or self._of_cann()

    def _two_canns(self) -> str:
        """Files of two releases of CANN in one log, each by its folder."""
        if len(self._named["cann_folders"]) != 2:
            return ""
        one, other = sorted(self._named["cann_folders"])
        return (
            f"The log names files of CANN {one} and of CANN {other}: where one run or build uses both, headers, "
            f"libraries and kernels of two releases are mixed, which may be the cause of anything below. One "
            f"set_env.sh in a fresh shell (env | grep -i ascend), no old build folder; scripts that source another "
            f"by themselves (/etc/Ascend/ascend_cann_install.info, ~/.bashrc): grep set_env.sh in them."
        )

    def _of_the_server(self) -> str:
        """What does not go with vllm-ascend."""
        release, vllm = _only(self._named["vllm_ascend"]), _only(self._named["vllm"])
        row: dict[str, str] = _pairs()["vllm_ascend"].get(release, {})
        other = []
        if release and vllm and _three(row.get("vllm", release)) != vllm:
            other.append(f"vllm {vllm}")
        torch_npu, cann = _only({_three(each) for each in self._named["torch_npu"]}), _only(self._named["cann"])
        if row and torch_npu and torch_npu != _three(row["torch_npu"]):
            other.append(f"torch_npu {torch_npu}")
        if row and cann and older_cann(cann, row["cann"]):
            other.append(f"CANN {cann}")
        if not other:
            return ""
        wanted = f"vllm {row.get('vllm', _three(release))}"
        if row:
            wanted += f", torch {row['torch']}, torch_npu {row['torch_npu']} and CANN {row['cann']}"
        return (
            f"The log names vllm-ascend {release} with {' and '.join(other)}: it goes with {wanted}, which may be the "
            f"cause of anything below. Install these, or take its image."
        )

    def _of_cann(self) -> str:
        """A CANN that is older than torch_npu asks for."""
        torch_npu, cann = _only(self._named["torch_npu"]), _only(self._named["cann"])
        wanted: str = _pairs()["torch_npu"].get(torch_npu, "")
        if not (cann and wanted and older_cann(cann, wanted)):
            return ""
        return (
            f"The log names torch_npu {torch_npu} with CANN {cann}: it goes with CANN {wanted}, and an older one may "
            f"lack functions and operators that it calls. Install CANN {wanted}, toolkit and kernels, or the "
            f"torch_npu of CANN {cann}."
        )


@cache
def _words() -> frozenset[str]:
    """The words that notes on releases ask for."""
    notes: dict[str, list[Any]] = read_table("support/release_notes.json")
    asked = [each for row in notes["defects"] for each in row[1]] + [row[2] for row in notes["models"]]
    return frozenset(word for words in asked for word in words)


def _order(release: str) -> tuple[list[int], int]:
    """What releases of vllm-ascend are ordered by: 0.11.0rc1, 0.11.0, 0.11.0.post1."""
    match = re.match(r"([\d.]+?)(?:\.?rc(\d+)|\.post\d+)?$", release)
    numbers, candidate = (match[1], match[2]) if match else (release, None)
    return [int(each) for each in re.findall(r"\d+", numbers)], int(candidate) if candidate else 99


@cache
def _pairs() -> dict[str, Any]:
    found: dict[str, Any] = read_table("support/release_pairs.json")
    return found


def _only(found: set[str]) -> str:
    """The version that is named alone; empty for none, and for several."""
    return next(iter(found)) if len(found) == 1 else ""


def _three(version: str) -> str:
    """The first three numbers of a version."""
    match = re.match(r"\d+\.\d+\.\d+", version)
    return match[0] if match else version
