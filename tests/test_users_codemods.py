"""LibCST codemods of the user: of an installed package, named by the user, on the file as it came."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import transplt.codemod
from tests.harness import hold_ledger
from transplt import check, migrate_tree
from transplt.base.errors import UsageError
from transplt.base.finding import FileResult, TokenVerdict
from transplt.base.settings import Settings
from transplt.base.text.source import read_source, splice
from transplt.edits import added_codemods
from transplt.engine import engine, users_codemods
from transplt.flow.facts import ProjectFacts
from transplt.project.own_settings import own_codemods

CODEMODS = '''
import libcst as cst
from libcst.codemod import ContextAwareTransformer, SkipFile, VisitorBasedCodemodCommand
from libcst.codemod.visitors import AddImportsVisitor
from libcst.metadata import FullyQualifiedNameProvider, QualifiedNameProvider


class ToNpu(VisitorBasedCodemodCommand):
    DESCRIPTION = "acme.to_gpu becomes acme.to_npu"
    METADATA_DEPENDENCIES = (QualifiedNameProvider,)

    def visit_Module(self, node):
        if "acme skips" in self.module.code:
            raise SkipFile("asked to")
        if "acme fails" in self.module.code:
            raise ValueError("no such placement")
        if "acme warns" in self.module.code:
            self.warn("look at the placement")

    def leave_Attribute(self, original_node, updated_node):
        names = self.get_metadata(QualifiedNameProvider, original_node, set())
        if any(name.name == "acme.to_gpu" for name in names):
            AddImportsVisitor.add_needed_import(self.context, "acme_npu")
            return updated_node.with_changes(attr=cst.Name("to_npu"))
        return updated_node


class Placed(ContextAwareTransformer):
    """acme.on(x) becomes x.to("cuda:0")."""

    def leave_Call(self, original_node, updated_node):
        if isinstance(updated_node.func, cst.Attribute) and updated_node.func.attr.value == "on":
            return cst.Call(cst.Attribute(updated_node.args[0].value, cst.Name("to")), [
                cst.Arg(cst.SimpleString('"cuda:0"'))])
        return updated_node


class Again(ContextAwareTransformer):
    def leave_Module(self, original_node, updated_node):
        line = cst.EmptyLine(comment=cst.Comment("# " + self.context.full_module_name))
        return updated_node.with_changes(header=[line, *updated_node.header])


class Wrong(ContextAwareTransformer):
    def leave_Module(self, original_node, updated_node):
        return cst.Module([*updated_node.body, cst.parse_statement("return 1")])


class Whole(ToNpu):
    METADATA_DEPENDENCIES = (FullyQualifiedNameProvider,)


class Asking(ContextAwareTransformer):
    def __init__(self, context, place):
        super().__init__(context)


class Nothing:
    pass
'''
TEXT = "import acme\nimport torch\n\nx = acme.to_gpu(batch.cuda())\ntorch.cuda.synchronize()\n"


def install(site: Path, text: str = CODEMODS) -> Path:
    """What pip would put there: the package, and its metadata."""
    (site / "acme_codemods").mkdir(parents=True)
    (site / "acme_codemods" / "__init__.py").write_text("")
    (site / "acme_codemods" / "placement.py").write_text(text)
    info = site / "acme_codemods-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-codemods\nVersion: 1.2\n")
    return site


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, while nothing is left of what other tests have loaded; the package is installed."""
    monkeypatch.setattr(added_codemods, "_LOADED", {})
    users_codemods.run.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_codemods"]:
        monkeypatch.delitem(sys.modules, name)
    folder = tmp_path / "work" / "project"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(TEXT)
    monkeypatch.setattr(sys, "path", [*sys.path, str(install(tmp_path / "site"))])
    return folder


def result_of(project: Path, source: str, *names: str, path: str = "train.py") -> FileResult:
    """One file; its edits done by hand on what came give what the result holds, and the account of tokens adds up."""
    every = added_codemods.find_codemods([f"acme_codemods.placement.{name}" for name in names], project)
    settings, data = Settings(codemods=tuple(every)), source.encode()
    facts = ProjectFacts.join([engine.index_source(data, path, settings)])
    result = engine.migrate_source(data, path, settings, facts)
    edits = [(each.span.start, each.span.end, each.edit.after.encode()) for each in result.findings if each.edit]
    assert splice(read_source(data).utf8, edits) == read_source(result.data).utf8
    assert all(each.edit.before == read_source(data).slice(each.span.start, each.span.end)
               for each in result.findings if each.edit)  # fmt: skip
    hold_ledger(source, result)
    return result


def test_a_codemod_that_is_named_takes_part(project: Path, tmp_path: Path) -> None:
    result = migrate_tree(project, tmp_path / "out", codemods="acme_codemods.placement.ToNpu", jobs=0)
    written = (tmp_path / "out" / "project_msft" / "train.py").read_text()
    assert written == (
        "import acme\nimport torch\nimport torch_npu  # noqa: F401\nimport acme_npu\n\n"
        "x = acme.to_npu(batch.npu())\ntorch.npu.synchronize()\n"
    )
    edits = [(each.code, each.span.line, each.message) for each in result.edits if each.code == "NPU021"]
    assert edits == [(code, line, "by acme_codemods.placement.ToNpu") for code, line in (("NPU021", 3), ("NPU021", 4))]
    assert all(each.code != "NPU022" for each in result.open_findings)
    manifest = json.loads((tmp_path / "out/project_msft/.transplt/manifest.json").read_text())
    assert manifest["codemods"][0]["version"] == "1.2"
    log = (tmp_path / "out/project_msft/msFmkTranspltlog.txt").read_text()
    assert "codemod: acme_codemods.placement.ToNpu of acme-codemods 1.2\n" in log
    changes = (tmp_path / "out/project_msft/change_list.csv").read_text()
    assert "train.py,4,4,MODIFY,by acme_codemods.placement.ToNpu,10,NPU021,to_gpu,to_npu\n" in changes


def test_files_without_a_word_of_cuda_are_looked_at_too(project: Path) -> None:
    result = result_of(project, "import acme\n\ny = acme.to_gpu(z)\n", "ToNpu")
    assert result.data == b"import acme\nimport acme_npu\n\ny = acme.to_npu(z)\n" and result.changed


def test_what_a_codemod_writes_is_migrated(project: Path) -> None:
    source = 'import torch\n\nx = acme.on(torch.zeros(2))  # café\ny = acme.on("cuda")\n'
    result = result_of(project, source, "Placed")
    assert 'x = torch.zeros(2).to("npu:0")  # café\n' in result.data.decode()
    joined = [each for each in result.findings if each.code == "NPU021" and each.span.line == 3]
    assert any("cuda" in each.message and "by acme_codemods.placement.Placed" in each.message for each in joined)


def test_a_token_that_a_codemod_took_away_is_converted_by_it(project: Path) -> None:
    result = result_of(project, 'import torch\n\nx = acme.on(torch.zeros(2, device="cuda"), "nccl")\n', "Placed")
    rows = [(row.token, row.cause.verdict) for row in result.ledger]
    assert rows == [("cuda", TokenVerdict.CONVERTED), ("nccl", TokenVerdict.CONVERTED)]


def test_codemods_run_in_their_order_on_one_another(project: Path) -> None:
    result = result_of(project, TEXT.replace("\n", "\r\n"), "ToNpu", "Again", path="net/train.py")
    assert result.data.startswith(b"# net.train\r\nimport acme\r\n") and b"\r\nimport acme_npu\r\n" in result.data
    assert [each.message for each in result.findings if each.code == "NPU022"] == [
        "Again: a second run would change its own output again"
    ]
    assert not any(each.open for each in result.findings if each.code == "NPU022")


@pytest.mark.parametrize(
    ("comment", "name", "said"),
    [
        ("acme fails", "ToNpu", "ToNpu: could not run here: ValueError: no such placement (visit_Module, "),
        ("", "Wrong", "Wrong: could not run here: its output is not valid Python (SyntaxError: "),
        ("acme skips", "ToNpu", ""),
    ],
)
def test_where_a_codemod_fails_the_migration_does_the_rest(comment: str, name: str, said: str, project: Path) -> None:
    source = f"import acme\n# {comment}\nx = acme.to_gpu(batch.cuda())\n"
    result = result_of(project, source, name)
    assert b"acme.to_gpu(batch.npu())" in result.data
    told = [each.message for each in result.findings if each.code == "NPU022"]
    assert [each.startswith(said) for each in told] == ([True] if said else [])


def test_warnings_are_findings(project: Path) -> None:
    result = result_of(project, "# acme warns\nimport acme\n\ny = acme.to_gpu(z)\n", "ToNpu")
    assert [each.message for each in result.findings if each.open] == ["ToNpu: look at the placement"]
    assert b"acme.to_npu(z)" in result.data


@pytest.mark.parametrize("source", ["x = (\n", "# -*- coding: latin-1 -*-\nx = 'acme'\n", ""])
def test_what_is_no_work_for_a_codemod_stays(source: str, project: Path) -> None:
    users = result_of(project, source, "ToNpu")
    assert users.data == source.encode() and not users.changed


def test_a_second_run_changes_nothing(project: Path) -> None:
    first = result_of(project, TEXT, "ToNpu", "Placed")
    second = result_of(project, first.data.decode(), "ToNpu", "Placed")
    assert second.data == first.data and not second.changed


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("placement.Whole", "asks for FullyQualifiedNameProvider, which needs LibCST's FullRepoManager"),
        ("placement.Asking", "needs more than its context to be created: "),
        ("placement.Nothing", "is no libcst.codemod.Codemod"),
        ("placement.Gone", "is not in acme_codemods.placement"),
        ("gone.Gone", "cannot be loaded: ModuleNotFoundError: "),
    ],
)
def test_what_is_no_codemod_is_one_sentence(name: str, said: str, project: Path) -> None:
    with pytest.raises(UsageError, match=rf"^the codemod acme_codemods\.{name} {said}"):
        check(project, codemods=f"acme_codemods.{name}", jobs=0)
    with pytest.raises(UsageError, match=r"^--codemod takes package\.module\.Class, not ToNpu"):
        check(project, codemods="ToNpu", jobs=0)


@pytest.mark.parametrize("where", ["input", "below the input", "current folder", "not installed"])
def test_a_package_of_the_input_is_never_loaded(
    where: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"input": project, "below the input": project / ".venv" / "site", "current folder": tmp_path / "here"}
    site = places.get(where, tmp_path / "loose")
    install(site, "raise SystemExit('loaded')\n")
    if where == "not installed":
        (site / "acme_codemods-1.2.dist-info" / "METADATA").unlink()
    if where == "current folder":
        monkeypatch.chdir(site)
        sys.path.insert(0, "")
    sys.path[:] = [str(site), *(entry for entry in sys.path if entry != str(tmp_path / "site"))]
    with pytest.raises(UsageError, match=r"^the codemod acme_codemods\.placement\.ToNpu is of no installed package"):
        check(project, codemods="acme_codemods.placement.ToNpu", jobs=0)


_PARTS = ["x", "cuda", " ", ".", "\n", "\r\n", "é", "a_b", "(", ")"]
_TEXTS = st.lists(st.sampled_from(_PARTS), max_size=40).map("".join)


@given(_TEXTS, _TEXTS)
def test_the_stretches_that_differ_make_one_text_of_the_other(old: str, new: str) -> None:
    before, after = old.encode(), new.encode()
    hunks = [*users_codemods._hunks(before, after)]
    assert splice(before, [(each.start, each.end, after[each.new_start : each.new_end]) for each in hunks]) == after
    assert all(one.end < other.start for one, other in pairwise(hunks))
    kept = [at for at in range(len(after)) if not any(each.new_start <= at < each.new_end for each in hunks)]
    assert all(before[users_codemods._old(hunks, at)] == after[at] for at in kept)


def test_a_long_table_of_equal_lines_costs_little() -> None:
    before = b"0,\n" * 30_000
    (hunk,) = users_codemods._hunks(before, b"import acme\n" + before)
    assert (hunk.start, hunk.end, hunk.new_end - hunk.new_start) == (0, 0, 12)


def test_settings_of_a_project_name_no_codemod(project: Path, tmp_path: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.transplt]\ncodemods = ['acme_codemods.placement.ToNpu']\n")
    with pytest.raises(UsageError, match="unknown key 'codemods'"):
        check(project, jobs=0)
    (tmp_path / "transplt").mkdir()
    (tmp_path / "transplt" / "settings.toml").write_text('codemods = ["acme_codemods.placement.ToNpu"]\n')
    assert own_codemods({"XDG_CONFIG_HOME": str(tmp_path)}) == ("acme_codemods.placement.ToNpu",)


def test_libcsts_tool_without_black_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    line = ["/site/libcst/tool.py", "codemod", "-x", "transplt.codemod.Migrate", "train.py"]
    assert transplt.codemod._lacks_black(line)
    for more in (["--no-format"], ["--help"]):
        assert not transplt.codemod._lacks_black([*line, *more])
    assert not transplt.codemod._lacks_black(["pytest", "codemod"])
    (tmp_path / ".libcst.codemod.yaml").write_text("formatter: ['ruff', 'format', '-']\n")
    assert not transplt.codemod._lacks_black(line)
