"""Asks the compiler of the card about kernels: a process for each, with limits; answers are kept in the cache."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from transplt.base.disk.cache_folder import Cache, NoCache
from transplt.proof.compiler.answers import NO, UNJUDGED, Answer, read
from transplt.proof.compiler.place import Place, needed
from transplt.proof.compiler.process import NoAnswer, ask
from transplt.proof.launch.options import UsageError
from transplt.rules.card_limits import card_title
from transplt.rules.tables import read_table

#: Seconds for one kernel.
LONGEST = 60.0
#: The chip that stands for a card whose name the compiler does not have.
_CHIPS = {"950": "Ascend950PR_9589"}
#: Processes at a time.
_MOST = 4


def chips() -> dict[str, str]:
    """The chip that a kernel is compiled for, by card."""
    rows = read_table("support/triton_types.json")["cards"]
    return {card: _CHIPS.get(card, row["arch"]) for card, row in rows.items()}


@dataclass(frozen=True)
class Compiler:
    """The compiler, for one card."""

    place: Place
    card: str
    chip: str
    cores: int
    cache: Cache | None = field(default=None, compare=False)

    @classmethod
    def of(cls, card: str) -> Compiler:
        """UsageError where it is not there, or compiles for no such card."""
        row = read_table("support/triton_types.json")["cards"].get(card)
        if row is None:
            raise UsageError(f"--compile: {card} is no card that the compiler is for: {', '.join(chips())}.")
        try:
            cache = Cache.of_user()
        except NoCache:
            cache = None
        return cls(needed(), card, chips()[card], int(row["cube_cores"]) or 24, cache)

    @property
    def title(self) -> str:
        """`Ascend 910B (Atlas A2) by triton-ascend 3.2.0, ascendnpu-ir 1.2.0`."""
        return f"{card_title(self.card)} by {self.place.title}"

    def answers(self, kernels: Sequence[dict[str, Any]], say: Callable[[str], None]) -> list[Answer]:
        """What it says of each, in order; of those that do not fit, with a size that does."""
        if kernels:
            say(f"compiling {len(kernels)} kernels as they are launched")
        with ThreadPoolExecutor(min(_MOST, os.cpu_count() or 1)) as pool:
            return [*pool.map(self._answer, kernels)]

    def _answer(self, kernel: dict[str, Any]) -> Answer:
        if "why" in kernel:
            return Answer(UNJUDGED, kernel["why"], kernel["path"], kernel["line"])
        answer = self._read(kernel)
        answer.assumed = kernel.get("assumed", "")
        if answer.overflow is not None:
            answer.fits = self._largest(kernel, answer.overflow)
        return answer

    def _read(self, kernel: dict[str, Any]) -> Answer:
        told = self._told(kernel)
        if "why" in told:
            return Answer(UNJUDGED, f"the compiler: {told['why']}", kernel["path"], kernel["line"])
        return read(told, kernel, self.place.front_end, self.chip)

    def _largest(self, kernel: dict[str, Any], overflow: tuple[str, int, int]) -> str:
        """A constexpr with the largest power of two that fits, the others as they are: `BLOCK = 8192 fits`."""
        for name in _sizes(kernel):
            most = kernel["constexprs"][name]["value"]
            low, high = -1, most.bit_length() - 2
            guess = (most * overflow[2] // overflow[1]).bit_length() - 1  # what is needed grows as the tile mostly
            while low < high:  # 2**low fits, or is -1; what is above 2**high does not
                guess = min(max(guess, low + 1), high)
                made = {**kernel, "constexprs": {**kernel["constexprs"], name: {"value": 1 << guess}}}
                low, high = (low, guess - 1) if self._read(made).word == NO else (guess, high)
                guess += 1 if low == guess else -1
            if low >= 0:
                return f"{name} = {1 << low} fits"
        return ""

    def _told(self, kernel: dict[str, Any]) -> dict[str, Any]:
        """The child's own answer for a kernel, from the cache where it was asked before."""
        functions = [{name: each[name] for name in each if name != "path"} for each in kernel["functions"]]
        asked = {"chip": self.chip, "cores": self.cores, "functions": functions}
        asked |= {name: kernel[name] for name in ("arguments", "constexprs", "options")}
        text = json.dumps(asked, sort_keys=True)
        key = "\0".join(("compiled", text, json.dumps(self.place.versions, sort_keys=True), self.place.digest))
        name = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        kept = self.cache.read(name) if self.cache is not None else None
        if kept is not None:
            found: dict[str, Any] = json.loads(kept)
            return found
        late = False
        try:
            told: dict[str, Any] = json.loads(ask(self.place.python, text, LONGEST))
        except NoAnswer as why:
            told, late = {"why": str(why)}, why.late
        except ValueError:
            told = {"why": "it gave no result"}
        if self.cache is not None and not late:
            self.cache.write(name, json.dumps(told))
        return told


def _sizes(kernel: dict[str, Any]) -> list[str]:
    """The constexprs that size its tiles, the most likely first: those of `tl.arange`, then other powers of two."""
    text = "\n".join(each["source"] for each in kernel["functions"])
    values = {
        name: told["value"] for name, told in kernel["constexprs"].items()
        if type(told.get("value")) is int and told["value"] > 1 and not told["value"] & (told["value"] - 1)
    }  # fmt: skip
    ranged = {name for name in values if re.search(rf"arange\(\s*0\s*,\s*{re.escape(name)}\s*\)", text)}
    return sorted(values, key=lambda name: (name not in ranged, -values[name], name))
