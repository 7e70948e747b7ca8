"""The command that installs an extra names where this copy came from."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from transplt.base import extras

TORCH = ['torch<2.14,>=2.10; extra == "emulator"', 'numpy>=1.26; extra == "emulator"']
NEEDS = ["click>=8.1", *TORCH, 'pygls<3; extra == "lsp"']


class Installed:
    """A distribution whose direct_url.json is `origin`."""

    def __init__(self, origin: object) -> None:
        self.requires = NEEDS
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


def said(monkeypatch: pytest.MonkeyPatch, origin: object) -> str:
    monkeypatch.setattr(extras.metadata, "distribution", lambda name: Installed(origin))
    monkeypatch.setattr(extras, "_installer", lambda: "pip install")
    return extras.install_command("emulator")


def test_a_checkout_is_named_by_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "a checkout"
    folder.mkdir()
    origin = {"url": folder.as_uri(), "dir_info": {}}
    assert said(monkeypatch, origin) == f"pip install '{folder}[emulator]'"
    origin["dir_info"] = {"editable": True}
    assert said(monkeypatch, origin) == f"pip install -e '{folder}[emulator]'"


def test_a_url_of_git_is_named_with_its_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    info = {"vcs": "git", "commit_id": "b5c5c54d", "requested_revision": "v0.1.0"}
    origin = {"url": "https://host/group/transplt.git", "vcs_info": info}
    assert said(monkeypatch, origin) == "pip install 'transplt[emulator] @ git+https://host/group/transplt.git@v0.1.0'"
    del info["requested_revision"]
    assert said(monkeypatch, origin).endswith("transplt.git@b5c5c54d'")


@pytest.mark.parametrize(
    "origin", [None, {"url": "file:///gone", "dir_info": {}}, {"url": "file:///a.whl", "archive_info": {}}]
)
def test_else_the_packages_are_named(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    assert said(monkeypatch, origin) == "pip install 'torch<2.14,>=2.10' 'numpy>=1.26'"


def test_without_metadata_it_is_the_checkout_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise extras.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras.metadata, "distribution", absent)
    assert extras.install_command("lsp").endswith(f" '{Path(__file__).resolve().parents[1]}[lsp]'")


def test_the_installer_is_that_of_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = os.path.join(os.path.dirname(sys.executable), "pip")
    monkeypatch.setattr(shutil, "which", lambda name: beside)
    assert extras.install_command("lsp").startswith("pip install ")
    monkeypatch.setattr(shutil, "which", lambda name: "/elsewhere/bin/pip")
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: object())
    assert extras.install_command("lsp").startswith(f"{sys.executable} -m pip install ")
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    assert extras.install_command("lsp").startswith(f"uv pip install --python {sys.executable} ")
