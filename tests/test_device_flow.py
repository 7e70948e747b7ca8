"""A device string moves entirely or not at all, whatever way it takes through a program."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.harness import migrate, pattern
from transplt.base.finding import Finding
from transplt.base.settings import Settings
from transplt.engine.engine import migrate_source

#: One step on the way of a value: (statements, the expression that reads it afterwards).
_STEPS = {
    "variable": ("v{i} = {src}", "v{i}"),
    "call": ("def f{i}(p{i}):\n    return p{i}\nv{i} = f{i}({src})", "v{i}"),
    "keyword": ("def f{i}(a, p{i}={src}):\n    global v{i}\n    v{i} = p{i}", "v{i}"),
    "instance": ("class C{i}:\n    def __init__(self):\n        self.a{i} = {src}\no{i} = C{i}()", "o{i}.a{i}"),
    "class": ("class C{i}:\n    a{i} = {src}", "C{i}.a{i}"),
    "table": ("d{i} = {{'k{i}': {src}}}", "d{i}['k{i}']"),
    "loop": ("for v{i} in ['cpu', {src}]:\n    pass", "v{i}"),
    "pair": ("n{i}, v{i} = 'x', {src}", "v{i}"),
    "returned pair": ("def f{i}():\n    return 1, {src}\nn{i}, v{i} = f{i}()", "v{i}"),
    "condition": ("v{i} = {src} if n else 'cpu'", "v{i}"),
    "or": ("v{i} = n or {src}", "v{i}"),
    "text": ("v{i} = str({src}).lower()", "v{i}"),
    "flag": ("parser.add_argument('--w{i}', default={src})", "args.w{i}"),
    "walrus": ("if (v{i} := {src}):\n    pass", "v{i}"),
    "concatenation": ("v{i} = {src} + ':0'", "v{i}"),
}
_TESTS = (
    "if {read} == 'cuda': pass",
    "if {read} in ('cuda', 'cpu'): pass",
    "if 'cuda' in {read}: pass",
    "if {read}.startswith('cuda'): pass",
    "assert {read}.split(':')[0] != 'cuda'",
)
_SINKS = (
    "torch.zeros(1).to({read})",
    "torch.zeros(1, device={read})",
    "torch.device({read})",
    "torch.load('x', {read})",
)


Steps = list[tuple[str, set[str]]]
STEPS = st.lists(
    st.tuples(st.sampled_from(sorted(_STEPS)), st.sets(st.sampled_from(_TESTS), max_size=2)), min_size=1, max_size=6
)
SINKS = st.sampled_from(_SINKS) | st.none()


def program(steps: Steps, sink: str | None, split: int) -> dict[str, str]:
    """Modules that hand one value from step to step; from step `split` on they stand in a module of their own."""
    head = [
        "import argparse",
        "import torch",
        "n = None",
        "parser = argparse.ArgumentParser()",
        "args = parser.parse_args()",
    ]
    files = {"first.py": list(head), "train.py": list(head)}
    read, name = "'cuda'", "first.py" if 0 < split < len(steps) else "train.py"
    for i, (kind, tests) in enumerate(steps):
        if i == split and name == "first.py":
            name = "train.py"
            files[name].append(f"from first import {re.split(r'[.[]', read)[0]}")
        statement, after = _STEPS[kind]
        files[name] += statement.format(i=i, src=read).splitlines()
        read = after.format(i=i)
        files[name] += [test.format(read=read) for test in sorted(tests)]
    if sink is not None:
        files["train.py"].append(sink.format(read=read))
    texts = {path: "\n".join(lines) + "\n" for path, lines in files.items() if lines != head}
    return texts


@pattern("T3", "T4")
@given(steps=STEPS, sink=SINKS, split=st.integers(0, 5))
def test_all_or_nothing(steps: Steps, sink: str | None, split: int) -> None:
    texts = program(steps, sink, split)
    for path in texts:
        others = {other: text for other, text in texts.items() if other != path}
        result = migrate(texts[path], path=path, files=others)
        words = re.findall(r"'(cuda|npu)'", result.data.decode())
        expected = "cuda" if sink is None else "npu"
        assert set(words) <= {expected}, f"{path}:\n{result.data.decode()}"
        if sink is None:
            assert not result.changed
            assert result.tokens.manual == result.tokens.found


@given(steps=STEPS, sink=SINKS, split=st.integers(0, 5))
def test_a_file_without_its_project_is_edited_less(steps: Steps, sink: str | None, split: int) -> None:
    texts = program(steps, sink, split)
    for path in texts:
        whole = migrate(texts[path], path=path, files={other: text for other, text in texts.items() if other != path})
        alone = migrate_source(texts[path].encode(), path, Settings())
        assert {edit_of(f) for f in alone.findings if f.applied} <= {edit_of(f) for f in whole.findings if f.applied}


def edit_of(finding: Finding) -> tuple[int, int, str]:
    assert finding.edit is not None
    return finding.span.start, finding.span.end, finding.edit.after
