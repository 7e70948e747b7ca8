"""The verdict of an execution: five words, the worth of each, and its one sentence.

Every command that runs a script says what came of it in these words and in no others: in its text, its JSON, its page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Word(str, Enum):
    """The five words of a verdict, in the order of every report: the best first."""

    EQUAL = "equal"
    RUNS = "runs"
    DIFFERS = "differs"
    STOPS = "stops"
    NOT_RUN = "not run"

    def __str__(self) -> str:
        return self.value

    @property
    def meaning(self) -> str:
        """What the word promises, in half a sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    Word.EQUAL: "everything compared with the original agrees; the sentence says how much was compared",
    Word.RUNS: "it ran on the NPU; it was not compared with the original, or not fully, or only the original stops",
    Word.DIFFERS: "something differs from the original; the sentence names the first difference and its line",
    Word.STOPS: "the program stops, or would stop on a card; the sentence names file, line and reason",
    Word.NOT_RUN: "could not start, lacks a package, computed nothing on the NPU, or stops like the original",
}

#: The words as a report lists them.
WORDS = tuple(word.value for word in Word)


@dataclass(frozen=True)
class Verdict:
    """One word and its sentence: one line, without a capital letter at its start or a full stop at its end."""

    word: Word
    sentence: str

    def __str__(self) -> str:
        """`word: sentence`, as every text begins."""
        return f"{self.word}: {self.sentence}"


def gravest(verdicts: list[Verdict]) -> Verdict:
    """The verdict of a whole from those of its parts: the first with the last word in the order above.

    Raises ValueError when there is none.
    """
    if not verdicts:
        raise ValueError("no verdicts, so none is the gravest")
    order = list(Word)
    return max(verdicts, key=lambda each: order.index(each.word))
