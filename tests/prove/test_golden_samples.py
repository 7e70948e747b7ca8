"""The samples prove themselves: what was written trains as the original does, with one process and with two.

All of them with the same two processes that have imported torch (`proof/launch/warm.py`), as one command has them.
"""

from __future__ import annotations

import sys

import pytest

from scripts.regen_samples import ADAPTED, AMP, APEX, DISTRIBUTED, NAMES, PORTABLE, SAMPLES, TUNED
from tests.planted.right import RIGHT
from transplt.base.render.verdict import Word
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.warm import Warm
from transplt.proof.prove.command import for_output
from transplt.proof.prove.projects import find_project
from transplt.proof.prove.proof import Proof, between
from transplt.proof.prove.proof_text import as_text
from transplt.proof.prove.unseeded import TITLE

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("golden_samples")]

#: Steps of each program: enough for accumulated gradients, a second epoch and a schedule.
STEPS = 6
#: Sample -> script, numbers of processes, arguments; "train.py" alone with one process where nothing stands here.
ASKED: dict[str, tuple[str, tuple[int, ...], tuple[str, ...]]] = {
    **{name: (main, (1, 2), ()) for name, main in DISTRIBUTED.items()},
    **{right.program.name: ("train.py", (1, 2), right.arguments) for right in RIGHT if right.port == "sample"},
    "image_classifier": ("train.py", (1,), next(each.arguments for each in RIGHT if each.program.name[0] == "i")),
    "amp/gan": ("gan.py", (1,), ()),
    "amp_apex/gan": ("gan.py", (1,), ()),
    "amp/trainer": ("main.py", (1,), ()),
    # With DataParallel: both sides have one card, or batch norms would see an eighth of the original's batch each.
    "quick_start": ("main.py", (1,), ()),
    **dict.fromkeys(PORTABLE, ("train.py", (1, 2), ())),
}
#: Their originals import NVIDIA's apex, which is not here: they stop, and there is nothing to compare with.
APEX_ITSELF = ("amp_apex/flat", "amp_apex/project")

#: The original imports an extension that is not compiled here.
COMPILED = ("adaptors/points",)


def proven(sample: str, warm: Warm | None) -> Proof:
    main, worlds, arguments = ASKED.get(sample, ("train.py", (1,), ()))
    options = RunOptions(
        main, arguments, sys.executable, random="cpu", timeout=120.0, trace=Trace(steps=STEPS), threads=1,
        portable=sample in PORTABLE,
    )  # fmt: skip
    before, after = (find_project(SAMPLES / sample / name, main, ()) for name in ("cuda", "expected"))
    options, _ = for_output(options, after.root, before.root)
    return between(before, after, options, lambda text: None, warm).prove(worlds)


#: What these show is also in the others, or in programs of the tests: they run with the long checks.
_LONG = ("text_model", "distributed/function", "distributed/gan", "distributed/trainer", "amp/flat", "amp/function")


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(each, marks=pytest.mark.slow) if each in _LONG else each
        for each in (*NAMES, *DISTRIBUTED, *AMP, *APEX, *TUNED, *ADAPTED, *PORTABLE)
        if each not in (*APEX_ITSELF, *COMPILED)
    ],
)
def test_golden_tree_is_equal(sample: str, warm: Warm) -> None:
    proof = proven(sample, warm)
    assert proof.verdict.word is Word.EQUAL, as_text(proof)
    *compared, started = proof.parts
    assert started.title == TITLE
    assert all(part.findings.steps > 0 or part.left for part in compared), as_text(proof)
    assert sum("both on a stand-in for CUDA" in part.title for part in compared) == 2 * (sample in PORTABLE)
