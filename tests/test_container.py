"""The container of the docs: its Dockerfile is read where nobody can build it, and built by `.ci/run --full`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from transplt.engine.files.dockerfile import instructions
from transplt.faces.cli.command import LAZY_COMMANDS
from transplt.faces.cli.main import main
from transplt.project.environment.setup import TESTED
from transplt.project.port.devcontainer import devcontainer
from transplt.rules.package_releases import newest_torch_npu
from transplt.rules.releases import CPU_INDEX

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = ROOT / "docs" / "container" / "Dockerfile"


def steps() -> Iterator[tuple[str, str]]:
    """(keyword, arguments) of each instruction, on one line."""
    data = DOCKERFILE.read_bytes()
    for each in instructions(data):
        text = "".join(data[start:end].decode() for start, end in each.lines)
        yield each.keyword, re.sub(r"\\\n", " ", text).strip()


def commands(text: str) -> list[list[str]]:
    return [shlex.split(part) for part in re.split(r"&&", text)]


def test_each_instruction_is_one_of_docker() -> None:
    keywords = [keyword for keyword, _ in steps()]
    assert keywords[0] == "FROM" and keywords[-2:] == ["ENTRYPOINT", "CMD"]
    assert {*keywords} <= {"FROM", "RUN", "ARG", "COPY", "ENV", "WORKDIR", "ENTRYPOINT", "CMD"}


def test_each_command_exists_and_has_the_options_it_is_given() -> None:
    found = [words for keyword, text in steps() if keyword == "RUN" for words in commands(text)]
    assert {words[0] for words in found} == {"apt-get", "rm", "pip", "transplt", "git"}
    for words in found:
        if words[0] == "transplt":
            context = main.make_context("transplt", words[1:])
            assert words[1] in LAZY_COMMANDS and context is not None
    entry = dict(step for step in steps() if step[0] in ("ENTRYPOINT", "CMD"))
    assert json.loads(entry["ENTRYPOINT"]) == ["transplt"] and json.loads(entry["CMD"]) == ["--help"]


def test_the_pair_is_the_one_that_was_tried_and_its_python_has_a_wheel() -> None:
    arguments = dict(text.split("=", 1) for keyword, text in steps() if keyword == "ARG")
    assert arguments == {"TORCH": TESTED, "CPU_INDEX": CPU_INDEX}
    (image,) = [text for keyword, text in steps() if keyword == "FROM"]
    python = re.fullmatch(r"python:(3\.\d+)-slim-bookworm", image)  # glibc 2.36; the wheels need 2.28
    assert python is not None and python[1] in newest_torch_npu()[TESTED][1].pythons


def test_what_is_installed_and_copied_is_there() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    pip = [words for keyword, each in steps() if keyword == "RUN" for words in commands(each) if words[0] == "pip"]
    ours = next(word for words in pip for word in words if word.startswith("/opt/transplt"))
    for extra in Requirement(f"transplt{ours.removeprefix('/opt/transplt')}").extras:
        assert re.search(rf"^{extra} = \[", text, re.M)
    copies = [each.split() for keyword, each in steps() if keyword == "COPY"]
    assert copies == [[".", "/opt/transplt"]]
    left = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text("utf-8").split()
    assert not {"transplt", "rules", "pyproject.toml", "README.md", "LICENSE"} & {*left}


def test_the_pages_and_the_continuous_integration_build_this_file() -> None:
    line = "docker build --platform linux/amd64 -t transplt -f docs/container/Dockerfile ."
    for path in (DOCKERFILE, ROOT / "docs" / "emulator.md"):
        assert line in path.read_text("utf-8")
    assert "docs/container/Dockerfile" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize("name", ["net", 'a "b" \\ c'])
def test_the_container_of_a_project(name: str) -> None:
    lines = [line for line in devcontainer(name).splitlines() if not line.startswith("//")]
    found = json.loads("\n".join(lines))
    assert found["name"] == f"{name} on an emulated NPU" and found["image"] == "transplt"
    words = shlex.split(found["postCreateCommand"])
    assert words == ["transplt", "run", "--setup"]
