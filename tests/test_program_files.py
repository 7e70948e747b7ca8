"""Files and programs of a project, each worked out once and for that project only."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace

import pytest

from transplt.base.settings import Settings
from transplt.engine.engine import index_source, join_facts, migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.program.program import Program
from transplt.program.programs import programs_of
from transplt.syntax import files as files_module
from transplt.syntax import parse as parse_module
from transplt.syntax.files import File, Files

FILES = {
    "net.py": b"import torch\nclass Net(torch.nn.Module):\n    pass\n",
    "train.py": b"import torch\nfrom net import Net\nmodel = Net().cuda()\n",
    "other.py": b"from net import Net\n",
}
SETTINGS = Settings(amp="native")


def project(files: dict[str, bytes] = FILES, parsed: Files | None = None) -> ProjectFacts:
    return join_facts((index_source(data, path, SETTINGS, parsed) for path, data in files.items()), SETTINGS, parsed)


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_file_is_read_once_for_each_of_its_contents() -> None:
    files = Files()
    first, second = files.read("a.py", b"x = 1\n"), files.read("a.py", b"x = 22\n")
    assert first is not None and second is not None and first is not second
    assert files.read("a.py", b"x = 1\n") is first and files.read("a.py", b"x = 22\n") is second
    assert files.read("b.py", b"x = 1\n") is not first
    assert second.source.utf8 == b"x = 22\n"


def test_what_cannot_be_read_is_none() -> None:
    assert Files().read("a.py", b"x = (\n") is None
    assert Files().read("a.py", b"\xff") is None


def test_what_was_read_first_goes_where_the_limit_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "_LIMIT", 12)
    text, files = b"x = 1\n", Files()
    for path in ("a.py", "b.py", "c.py"):
        files.read(path, text)
    assert [path for path, _ in files.parsed] == ["b.py", "c.py"]
    files.read("long.py", text * 3)
    assert [path for path, _ in files.parsed] == ["long.py"], "the file at hand is kept in any case"


def test_a_file_waits_for_its_own_turn_up_to_the_limit() -> None:
    text, files = b"x = 1\n", Files(room=12)
    every = [File.of(path, text) for path in ("a.py", "b.py", "c.py")]
    for file in every:
        files.put_by(text, file)
    assert files.take("c.py", text) is None, "it came too late"
    assert files.take("a.py", text) is every[0]
    assert files.take("a.py", text) is None, "its turn is over"
    assert files.take("b.py", b"other") is None, "it is another now"
    files.put_by(text, every[2])
    assert files.take("c.py", text) is every[2], "there is room again"


# --- programs --------------------------------------------------------------------------------------------------------


def test_each_file_of_a_project_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count: Counter[str] = Counter()
    real = parse_module.ast.parse

    def counted(text: str) -> object:
        count[text] += 1
        return real(text)

    monkeypatch.setattr(parse_module.ast, "parse", counted)
    facts = project(parsed=Files())
    for path, data in FILES.items():
        migrate_source(data, path, SETTINGS, facts)
    assert [count[data.decode()] for data in FILES.values()] == [1, 1, 1]


def test_programs_share_their_files() -> None:
    programs = programs_of(project())
    first, second = programs.program("train.py"), programs.program("other.py")
    assert [file.path for file in first.files] == ["train.py", "net.py"]
    assert first.files[1] is second.files[1]
    assert programs.program("train.py") is first
    assert programs.around(first.files[1]) == [programs.program("net.py"), second, first]


def test_a_program_is_read_again_with_other_nodes_of_a_file() -> None:
    programs = programs_of(project())
    first = programs.program("train.py")
    assert programs.program("train.py", programs.own(File.of("net.py", FILES["net.py"]))) is not first
    beside = File.of("beside.py", b"")
    assert programs.program("other.py", beside) is programs.program("other.py"), "the program does not hold the file"


def test_programs_that_were_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transplt.program.programs._MOST_FILES", 4)
    programs = programs_of(project())
    first, second = programs.program("train.py"), programs.program("other.py")
    assert programs.program("train.py") is first
    programs.program("net.py")  # a fifth file
    assert programs.program("train.py") is first and programs.program("other.py") is not second


def test_nothing_goes_from_one_project_to_another() -> None:
    facts = project()
    program = programs_of(facts).program("train.py")
    other = replace(facts, sources={**FILES, "train.py": b"import torch\n"})
    assert programs_of(other).program("train.py").files[0].source.utf8 == b"import torch\n"
    assert programs_of(facts).program("train.py") is program


def test_a_pickled_project_has_nothing_of_what_was_worked_out() -> None:
    facts = project(parsed=Files())
    plain = pickle.dumps(facts)
    programs_of(facts).program("train.py")
    assert pickle.dumps(facts) == plain
    sent = pickle.loads(plain)
    assert sent == facts and not sent.files.parsed
    assert [file.path for file in programs_of(sent).program("train.py").files] == ["train.py", "net.py"]


def _number(program: Program, more: int = 0) -> list[int]:
    return [len(program.files) + more]


def test_what_is_asked_of_a_program_is_worked_out_once() -> None:
    programs = programs_of(project())
    first, second = programs.program("train.py"), programs.program("other.py")
    found = first.once(_number)
    assert found == [2] and first.once(_number) is found
    assert first.once(_number, 3) == [5] and first.once(_number, more=4) == [6]
    assert second.once(_number) is not found


LOADED = {
    "data.py": b"import torch\nfrom torch.utils.data import DataLoader\n\n\ndef loader(d):\n    return DataLoader(d)\n",
    "main.py": b"import torch\nfrom data import loader\n\nmodel = torch.nn.Linear(8, 8).cuda()\n"
    b"optimizer = torch.optim.Adam(model.parameters())\n"
    b"for x in loader(torch.ones(9, 8)):\n    optimizer.zero_grad()\n    model(x.cuda()).sum().backward()\n"
    b"    optimizer.step()\n",
}


@pytest.mark.parametrize(("path", "word"), [("data.py", b"pin_memory=True"), ("main.py", b"NpuFusedAdam")])
def test_a_tuning_finds_its_nodes_where_little_is_kept(
    path: str, word: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(tune=(("data-loader", ""), ("fused-optimizer", "")), unsafe_fixes=True)
    outputs = []
    for limit in (10_000, 1):
        monkeypatch.setattr(files_module, "_LIMIT", limit)
        files = Files()
        told = [index_source(data, each, settings, files) for each, data in LOADED.items()]
        facts = join_facts(told, settings, files)
        # The last comes first: what the program is read from after it takes its place.
        outputs.append({each: migrate_source(LOADED[each], each, settings, facts).data for each in reversed(LOADED)})
    assert outputs[0] == outputs[1]
    assert word in outputs[0][path]
