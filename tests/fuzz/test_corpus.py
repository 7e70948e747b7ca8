"""Every target over what once failed, and over a few inputs that are the same in each run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import corpora
from tests.fuzz.search import attempt, examples
from tests.fuzz.targets import TARGETS, Target

#: More is for `python -m tests.fuzz run`.
_EXAMPLES = 12


def _known(name: str) -> list[pytest.MarkDecorator]:
    reason = corpora.STILL_FAILING.get(name)
    return [pytest.mark.xfail(strict=False, reason=reason)] if reason else []


every_target = pytest.mark.parametrize(
    "target", [pytest.param(target, id=name, marks=_known(name)) for name, target in TARGETS.items()]
)


def _stored() -> list[object]:
    stored = [(target, path) for target in TARGETS.values() for path in corpora.entries(target.name)]
    names = [f"{target}/{path.name}" for target, path in stored]
    return [pytest.param(*each, id=name, marks=_known(name)) for name, each in zip(names, stored, strict=True)]


@pytest.mark.parametrize(("target", "path"), _stored())
def test_what_once_failed(target: Target, path: Path) -> None:
    attempt(target, path.read_bytes())


@every_target
def test_some_inputs(target: Target) -> None:
    examples(target, _EXAMPLES)


def test_the_corpus_is_of_targets_and_small() -> None:
    assert {path.name for path in corpora.FOLDER.iterdir()} <= set(TARGETS)
    stored = {f"{target}/{path.name}" for target in TARGETS for path in corpora.entries(target)}
    assert set(corpora.STILL_FAILING) <= stored | set(TARGETS)
    assert all(path.stat().st_size <= corpora.MAX_BYTES for name in TARGETS for path in corpora.entries(name))


def test_a_failure_is_found_made_small_and_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hypothesis import strategies as st

    from tests.fuzz.search import search

    def fails(data: bytes) -> None:
        assert b"x" not in data

    found = search(Target("broken", st.binary(), fails), 20, 1, tmp_path / "scratch")
    assert found is not None and found[0] == b"x" and "AssertionError" in found[1]
    monkeypatch.setattr(corpora, "FOLDER", tmp_path)
    path = corpora.store("broken", found[0])
    assert corpora.entries("broken") == [path] and path.read_bytes() == b"x"
    with pytest.raises(ValueError, match="holds something else"):
        corpora.store("broken", b"y", path.name)
