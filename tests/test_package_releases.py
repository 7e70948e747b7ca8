"""What is read of a package index by pip's own settings, and what the table of releases says."""

from __future__ import annotations

import http.server
import json
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.version import Version

from scripts.releases import text_of
from transplt.faces.cli.facts import facts
from transplt.proof.launch import pip
from transplt.proof.launch.package_index import as_rows, builds_of
from transplt.rules import package_releases
from transplt.rules.companions import torch_beside
from transplt.rules.package_releases import (
    Build,
    Releases,
    freshest,
    keep,
    newest_torch_npu,
    set_for,
    sets_of,
    shipped,
)

_FILES = {
    "a_npu-1.0-cp310-cp310-manylinux_2_28_aarch64.whl": ("2026-01-02T03:04:05Z", ">=3.9", False),
    "a_npu-1.0-cp311-cp311-manylinux_2_28_aarch64.whl": ("2026-01-02T03:04:05Z", ">=3.9", False),
    "a_npu-1.0-cp311-cp311-manylinux_2_28_x86_64.whl": ("2026-01-01T03:04:05Z", ">=3.9", False),
    "a_npu-1.0-cp312-cp312-win_amd64.whl": ("2026-01-02T03:04:05Z", ">=3.9", False),
    "a_npu-1.0.post1.tar.gz": ("2026-02-02T03:04:05Z", ">=3.10", False),
    "a_npu-1.1-cp311-cp311-manylinux_2_28_aarch64.whl": ("2026-03-02T03:04:05Z", ">=3.9", "broken"),
    "a_npu-2.0rc1-py3-none-any.whl": ("2026-04-02T03:04:05Z", ">=3.10", False),
    "not a release.txt": ("2026-04-02T03:04:05Z", None, False),
}
_METADATA = (
    "Metadata-Version: 2.1\nName: a-npu\nVersion: 1.0\nRequires-Dist: torch==2.8.0\nRequires-Dist: six\n"
    'Requires-Dist: torch_npu>=2.8; extra == "test"\n'
    'Requires-Dist: triton-ascend==3.2.0; platform_machine == "aarch64"\n'
)


class _Index(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/simple/a-npu/":
            rows = [
                {"filename": name, "url": f"/files/{name}", "hashes": {}, "upload-time": day, "requires-python": python,
                 "yanked": yanked} for name, (day, python, yanked) in _FILES.items()
            ]  # fmt: skip
            self._answer(json.dumps({"meta": {"api-version": "1.1"}, "name": "a-npu", "files": rows}).encode())
        elif self.path.startswith("/files/a_npu-1.0-") and self.path.endswith(".metadata"):
            self._answer(_METADATA.encode())
        else:
            self.send_error(404)

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """An index by PEP 691 in pip's settings, and beside it one of files, by PEP 503."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = tmp_path / "simple" / "b-npu"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text('<a href="b_npu-0.1-py3-none-any.whl" data-requires-python="&gt;=3.8">b</a>')
    with zipfile.ZipFile(folder / "b_npu-0.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("b_npu-0.1.dist-info/METADATA", _METADATA)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file://{tmp_path}/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    yield "index"
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("index")
def test_releases_are_read_from_every_index_of_pips_settings() -> None:
    found = builds_of(["a-npu", "b-npu", "c-npu"], {"torch", "torch-npu", "triton-ascend"}.__contains__)
    asked = ("torch==2.8.0", 'triton-ascend==3.2.0; platform_machine == "aarch64"')
    assert found == {
        "a-npu": {
            "1.0": Build("2026-01-01", ">=3.9", ("3.11",), ("aarch64", "x86_64"), False, asked),
            "1.0.post1": Build("2026-02-02", ">=3.10", sources=True),
            "2.0rc1": Build("2026-04-02", ">=3.10"),
        },
        "b-npu": {"0.1": Build(python=">=3.8")},
    }
    table = {"read": "2026-11-29", "releases": as_rows(found)}
    assert Releases.of(json.loads(text_of(table))) == Releases("2026-11-29", found)


@pytest.mark.usefixtures("index")
def test_an_index_that_cannot_be_asked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_SUCH_OPTION", "1")
    assert builds_of([], bool) == {}
    with pytest.raises(pip.Failed):
        builds_of(["a-npu"], bool, python="/no/such/python")


@pytest.mark.parametrize(
    ("name", "clauses"), [("torch", "==2.8.0"), ("torch-npu", ">=2.8"), ("triton-ascend", ""), ("six", "")]
)
def test_what_is_required_everywhere(name: str, clauses: str) -> None:
    build = Build(requires=("torch==2.8.0", "torch_npu>=2.8", 'triton-ascend==3.2; platform_machine == "aarch64"'))
    assert build.required(name) == clauses


def test_the_table_has_a_day_for_each_release_and_the_newest_is_final_where_one_is() -> None:
    table = shipped()
    assert set(table.builds) == set(package_releases.asked_for())
    assert all(build.day for builds in table.builds.values() for build in builds.values())
    assert all([*builds] == sorted(builds, key=Version) for builds in table.builds.values())
    assert table.newest("vllm-ascend") == "0.23.0.post1" and table.newest("no-such") == ""
    assert newest_torch_npu()["2.8.0"][0] == "2.8.0.post5"
    assert not any("rc" in version for version, _ in newest_torch_npu().values())


def test_what_the_user_read_is_told_only_where_it_is_newer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert freshest() is shipped()
    rows = {"torch-npu": {"9.9.0": {"day": "2029-01-01"}}}
    keep("2020-01-01", rows)
    assert freshest() is shipped()
    keep("2029-01-02", rows)
    assert freshest().newest("torch-npu") == "9.9.0"
    assert shipped().newest("torch-npu") != "9.9.0"
    keep("2029-01-02", {"torch-npu": {"9.9.0": {"of another form": 1}}})
    assert freshest() is shipped()


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ("==0.18.0", "vllm-ascend 0.18.0: vllm 0.18.0, triton-ascend 3.2.0.dev20260322, torch 2.9.0, torch-npu 2.9.0"),
        ("~=0.13.0", "vllm-ascend 0.13.0: vllm 0.13.0"),
        ("==0.12.1", "none for vllm ==0.12.1: the next final one is vllm-ascend 0.13.0: vllm 0.13.0"),
        (">=0.6,<0.7", "none for vllm >=0.6,<0.7: the next final one is vllm-ascend 0.7.3: vllm 0.7.3, torch 2.5.1"),
        ("", ""),
        ("0.18 or so", ""),
    ],
)
def test_the_set_of_a_pinned_framework(versions: str, said: str) -> None:
    found = set_for("vllm", versions)
    assert found.startswith(said) if said else found == ""


def test_releases_before_the_next_say_which_torch_goes_with_them_but_are_advised_by_nobody() -> None:
    assert torch_beside("vllm-ascend", "0.19.1rc1".__eq__) == {"2.9"}
    assert torch_beside("vllm", "0.19.1".__eq__) == {"2.9"}
    assert not any("rc" in each.version for each in sets_of("vllm-ascend"))


def test_the_readings_of_the_user_are_asked_for_by_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = {"dgl-ascend": {"9.0": Build("2030-01-02")}}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("transplt.proof.launch.package_index.builds_of", lambda names, wants: rows)
    done = CliRunner().invoke(facts, ["update"], standalone_mode=False)
    assert done.exception is None
    assert done.output.startswith("dgl-ascend 9.0 2030-01-02\n1 release newer than the list of ")

    def refused(names: object, wants: object) -> object:
        raise pip.Failed("no route")

    monkeypatch.setattr("transplt.proof.launch.package_index.builds_of", refused)
    done = CliRunner().invoke(facts, ["update"], standalone_mode=False)
    assert "the index of pip's settings cannot be read: no route" in str(done.exception)
