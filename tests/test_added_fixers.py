"""Fixers of another package: the sample, installed into a folder of packages, named by the user."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from transplt import check, migrate_tree
from transplt.base.errors import UsageError
from transplt.edits import added_fixers as added
from transplt.project.own_settings import own_fixers

PACKAGE = Path(__file__).resolve().parent.parent / "samples" / "fixer_package"
TEXT = "import acme\n\nx = acme.to_gpu(batch)\nacme.use_gpu(choose())\n"


def install(site: Path, *, name: str = "acme-fixers", version: str = "1.2", module: str = "acme_fixers") -> Path:
    """What pip would put there: the package, and its metadata."""
    shutil.copytree(PACKAGE / "acme_fixers", site / module)
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[transplt.fixers]\nacme = {module}\n")
    return site


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, while nothing is left of what other tests have loaded."""
    from transplt.edits import fixer
    from transplt.engine import plan, prefilter

    monkeypatch.setattr(added, "_LOADED", {})
    monkeypatch.setattr(fixer, "_REGISTERED", dict(fixer._REGISTERED))
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_fixers"]:
        monkeypatch.delitem(sys.modules, name)
    plan.in_force.cache_clear()
    prefilter._known.cache_clear()
    folder = tmp_path / "work" / "project"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(TEXT)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return folder


def test_the_sample_says_the_same_as_the_test() -> None:
    text = (PACKAGE / "pyproject.toml").read_text()
    assert '[project.entry-points."transplt.fixers"]\nacme = "acme_fixers"\n' in text and 'version = "1.2"' in text


def test_a_fixer_that_is_named_takes_part(project: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(install(tmp_path / "site")))
    result = migrate_tree(project, tmp_path / "out", fixers="acme", jobs=0)
    written = (tmp_path / "out" / "project_msft" / "train.py").read_text()
    assert written == TEXT.replace("to_gpu", "to_npu")
    assert [(each.code, each.span.line) for each in result.open_findings] == [("NPU019", 4)]
    manifest = json.loads((tmp_path / "out/project_msft/.transplt/manifest.json").read_text())
    assert manifest["fixers"] == [{"name": "acme", "distribution": "acme-fixers", "version": "1.2"}]
    assert "fixer: acme of acme-fixers 1.2\n" in (tmp_path / "out/project_msft/msFmkTranspltlog.txt").read_text()


def test_a_fixer_that_nobody_names_does_nothing(project: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(install(tmp_path / "site")))
    (project / "pyproject.toml").write_text("[tool.transplt]\nstyle = 'npu'\n")
    assert check(project, jobs=0).findings == ()
    (project / "pyproject.toml").write_text("[tool.transplt]\nfixers = ['acme']\n")
    with pytest.raises(UsageError, match="unknown key 'fixers'"):
        check(project, jobs=0)


@pytest.mark.parametrize("where", ["input", "below the input", "current folder"])
def test_a_package_of_the_input_is_never_loaded(
    where: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"input": project, "below the input": project / ".venv" / "site", "current folder": tmp_path / "here"}
    site = places[where]
    site.mkdir(parents=True, exist_ok=True)
    install(site)
    (site / "acme_fixers" / "__init__.py").write_text("raise SystemExit('loaded')\n")
    if where == "current folder":
        monkeypatch.chdir(site)
        sys.path.insert(0, "")
    sys.path.insert(0, str(site))
    with pytest.raises(UsageError, match=r"^no installed package has a fixer acme"):
        check(project, fixers="acme", jobs=0)


def test_a_module_of_the_input_takes_no_place_of_another(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is installed; a folder of its name stands first on the path."""
    sys.path.insert(0, str(install(tmp_path / "site")))
    (project / "acme_fixers").mkdir()
    (project / "acme_fixers" / "__init__.py").write_text("raise SystemExit('loaded')\n")
    monkeypatch.chdir(project)
    sys.path.insert(0, str(project))
    assert {each.code for each in check(project / "train.py", fixers="acme", jobs=0).findings} == {"NPU018", "NPU019"}
    assert sys.path[0] == str(project)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "states no Fixer"),
        ("1 / 0\n", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("from transplt.edits.fixer import Fixer\nwrong = Fixer(__name__, code='NPU101')\n", "states NPU101 or a "),
    ],
)
def test_what_is_no_fixer_is_one_sentence(source: str, said: str, project: Path, tmp_path: Path) -> None:
    site = install(tmp_path / "site")
    (site / "acme_fixers" / "placement.py").write_text(source)
    sys.path.insert(0, str(site))
    with pytest.raises(UsageError, match=rf"^the fixer acme of acme-fixers 1\.2 {said}"):
        check(project, fixers="acme", jobs=0)


def test_names_that_nobody_has_or_two_have(project: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(install(tmp_path / "site")))
    with pytest.raises(UsageError, match=r"^no installed package has a fixer acne; installed: acme "):
        check(project, fixers="acne", jobs=0)
    sys.path.insert(0, str(install(tmp_path / "other", name="acme-two")))
    with pytest.raises(UsageError, match=r"^several packages have a fixer acme: acme-fixers, acme-two$"):
        check(project, fixers="acme", jobs=0)


def test_settings_differ_with_the_sources_of_a_fixer(project: Path, tmp_path: Path) -> None:
    """What is in the key of the cache: also of a package in development, whose version stays."""
    site = install(tmp_path / "site")
    sys.path.insert(0, str(site))
    (before,) = added.find_added(["acme"], project)
    with (site / "acme_fixers" / "placement.py").open("a") as file:
        file.write("# changed\n")
    (after,) = added.find_added(["acme"], project)
    assert before[:3] == after[:3] == ("acme", "acme-fixers", "1.2") and before.digest != after.digest


def test_the_users_own_settings(tmp_path: Path) -> None:
    file = tmp_path / "transplt" / "settings.toml"
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert own_fixers(environment) == own_fixers({}) == ()
    file.parent.mkdir()
    file.write_text('fixers = ["acme"]\n')
    assert own_fixers(environment) == ("acme",)
    assert own_fixers({"HOME": "/nowhere", "XDG_CONFIG_HOME": "relative"}) == ()
    for wrong in ("fixers = 3\n", "fixers = [1]\n", "rules = []\n", "fixers = [\n"):
        file.write_text(wrong)
        with pytest.raises(UsageError, match=r"settings\.toml"):
            own_fixers(environment)
