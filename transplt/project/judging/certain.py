"""Which differences reading alone is certain of: numbers of a training that are others, and what the whole port does no
longer. Of the others a run decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from transplt.project.judging.forms import Form, apart, operations
from transplt.project.judging.otherwise import Otherwise
from transplt.project.judging.reading import Reading
from transplt.project.judging.statements import TABLE, Statement, neutral
from transplt.project.judging.themes import name_of, theme_of_call
from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name

#: Themes that have most to do with what a model learns, the gravest first.
GRAVEST = (
    "loss", "optimizer", "training steps", "learning rate", "data", "batch size", "length", "seed", "model",
    "precision",
)  # fmt: skip
#: Of these a text is no path and no word for people.
_QUANTITIES = frozenset(GRAVEST) - {"precision"}
#: How often something is logged, measured or kept, and where it runs.
_OF_HOST = re.compile(
    r"log|print|eval|valid|test|save|checkpoint|ckpt|display|show|interval|freq|every|vis|worker|device|rank|npu|prefetch"
    r"|path|dir\b|file|name|port|version|verbose|profil|metric|score",
    re.IGNORECASE,
)
#: Calls that a training cannot do without, under each name that they have.
_CALLS = {
    "backward": r"backward\(", "zero_grad": r"zero_grad\(|\.grad = None", "set_epoch": r"set_epoch\(",
    "schedule": r"(?:sched\w*|lr\w*)\.step", "step": r"\.step\(", "clip": r"clip_grad|gradient_clip|max_grad_norm",
    "all_reduce": r"all_reduce|all_gather|reduce_scatter|\.reduce\(", "scale": r"scaler\w*\.(?:update|step)",
    "train": r"\.train\(", "eval": r"\.eval\(|train\(False",
    "ema": r"ema\w*(?:\.\w+)*\(|update_ema",
}  # fmt: skip
_CLASSES, _SAMPLES = ("loss", "optimizer", "learning rate", "data"), re.compile(r"\w*Sampler")
#: What stands before or behind the name of what does the same.
_SWITCH = re.compile(r"=(?:True|False)\b")
_FORMS = re.compile(r"^(?:npu|fused|apex)+|loss$")


class Certain:
    """What reading is certain of, by both programs as they are read; `kept`: the text of files that are the same."""

    def __init__(self, theirs: Reading, mine: Reading, kept: str) -> None:
        self.theirs, self.mine = theirs, mine
        own = (each.text for each in mine.statements if not isinstance(each.node, (ast.Import, ast.ImportFrom)))
        texts = "\n".join([kept, *own])
        self.lost = {name for name, form in _CALLS.items() if not re.search(form, texts)}
        if texts.count(".step(") >= sum(".step(" in each.text for each in theirs.statements):
            self.lost.discard("schedule")
        self.has = {*map(_plain, {*re.findall(r"\w+", texts)})}

    def of(self, told: Otherwise, beside: Iterable[Otherwise], theme: str) -> bool:
        """Whether one of the things told of a function is certain; `beside`: what is told of that function."""
        before, after = told.before, told.after
        if before is None or before.said:
            return False
        if after is None:
            return all(each.before for each in beside) and any(self._lost_in(before))
        forms = self.theirs.form(before), self.mine.form(after)
        turned = [neutral(_SWITCH.sub("=", each.shown)) for each in (before, after)]
        switched = theme in _QUANTITIES and turned[0] == turned[1] and before.shown != after.shown
        return switched or self._is_number(before, after, forms, theme) or self._is_class(forms)

    def _lost_in(self, each: Statement) -> Iterator[str]:
        yield from (name for name in self.lost if re.search(_CALLS[name], each.text))
        for node in each.inside():
            name = last_name(node.func) if isinstance(node, ast.Call) else ""
            if (theme_of_call(name) in _CLASSES or _SAMPLES.fullmatch(name)) and _plain(name) not in self.has:
                yield name

    @staticmethod
    def _is_number(before: Statement, after: Statement, forms: tuple[Form, Form], theme: str) -> bool:
        """Whether two statements differ, but for names, in numbers of a training alone."""
        parts = [*apart(*forms)]
        kinds = {(len(one), len(other), one[0][:1] + other[0][:1]) for one, other in parts}
        words = {each for one, other in parts if one[0][:1] == "#" for each in (one[0], other[0])}
        targets = (name_of(each) for each in getattr(after.node, "targets", ()))
        host = any(map(_OF_HOST.search, (*targets, *_holders(*forms), *words)))
        return theme in _QUANTITIES and bool(words) and kinds <= {(1, 1, "##"), (1, 1, "$$")} and not host

    def _is_class(self, forms: tuple[Form, Form]) -> bool:
        """Whether one optimizer, loss or schedule stands for another that is given the same."""
        for one, other in (parts := [*apart(*forms)]):
            themes = {theme_of_call(each[0]) for each in (one, other)}
            spelled = any({one[0], other[0]} <= {*heads, *rest} for heads, rest in read_table(TABLE)["spellings"])
            made = len(themes) == len(parts) == 1 and themes <= {*_CLASSES} and not spelled
            return made and bool(operations(one)) and _plain(one[0]) not in self.has
        return False


def _holders(one: Form, other: Form) -> Iterator[str]:
    """The keywords under which two forms differ."""
    if one == other:
        return
    if one[0] == other[0] and len(one) == len(other) > 1:
        if one[0].endswith("="):
            yield one[0]
        for left, right in zip(one[1:], other[1:], strict=True):
            yield from _holders(left, right)


def _plain(name: str) -> str:
    """The name of a loss, an optimizer or a schedule without what its forms differ in."""
    return _FORMS.sub("", name.lower().replace("_", ""))
