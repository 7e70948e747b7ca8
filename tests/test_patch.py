"""Patches: `git apply` makes the new file of the old one, byte for byte."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness import migrate
from transplt.engine.patch import unified_diff

LINES = st.lists(st.sampled_from([b"a\n", b"b\r\n", b"\n", b"c\r", b"\xe9 \xff\n", b"-x\n", b"no end"]), max_size=12)


def apply(folder: Path, path: str, old: bytes, patch: bytes) -> bytes:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(old)
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(folder)}
    done = subprocess.run(["git", "apply"], cwd=folder, input=patch, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode() + patch.decode("utf-8", "replace")
    return file.read_bytes()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=LINES.map(b"".join), new=LINES.map(b"".join))
def test_any_two_texts(old: bytes, new: bytes, tmp_path: Path) -> None:
    patch = unified_diff("a.py", old, new)
    if old == new:
        assert patch == b""
    else:
        assert apply(tmp_path, "a.py", old, patch) == new


@pytest.mark.parametrize("path", ["with space.py", 'quote".py', "tab\t.py", "back\\slash.py", "übung/ä.py", "b'.py"])
def test_odd_names(path: str, tmp_path: Path) -> None:
    assert apply(tmp_path, path, b"a\n", unified_diff(path, b"a\n", b"b\n")) == b"b\n"


SOURCE = """import os
import torch
import torch.nn as nn

x = torch.zeros(1).cuda(); y = torch.ones(2).cuda()
z = (
    torch.zeros(3)
    .cuda()
)
a = 1
b = 2
c = 3
d = 4
e = 5
f = 6
g = 7
h = torch.cuda.is_available()
i = torch.cuda.is_available()"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_recorded_edits_give_the_same_patch_as_the_texts(newline: str, tmp_path: Path) -> None:
    source = SOURCE.replace("\n", newline)
    from transplt.base.settings import Settings
    from transplt.engine.engine import migrate_source

    result = migrate_source(source.encode(), "a.py", Settings())
    patch = unified_diff("a.py", source.encode(), result.data, result.findings)
    assert patch.count(b"\n@@ ") == 2
    assert patch == unified_diff("a.py", source.encode(), result.data)
    assert apply(tmp_path, "a.py", source.encode(), patch) == result.data


def test_records_that_do_not_tell_all_are_not_believed() -> None:
    result = migrate("import torch\nx = torch.zeros(1).cuda()\n")
    old, new = b"import torch\nx = torch.zeros(1).cuda()\n", result.data + b"# more\n"
    assert unified_diff("a.py", old, new, result.findings) == unified_diff("a.py", old, new)
