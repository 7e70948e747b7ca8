"""The tools of `transplt mcp`, called by the client of the official SDK."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.processes import unmeasured
from transplt.base.errors import CannotFinish, UsageError
from transplt.faces.mcp.answers import PAGE_CHARACTERS, page
from transplt.faces.mcp.child import Ended, start
from transplt.faces.mcp.folders import Folders

ROOT = Path(__file__).resolve().parents[2]
APEX = "import torch\nimport apex\n\nmodel = torch.nn.Linear(2, 2).cuda()\nhandle = torch.cuda.nvtx.range_push('x')\n"

pytestmark = pytest.mark.extra
mcp = pytest.importorskip("mcp", reason="needs the extra: pip install '.[mcp]'")
from tests.agents.calls import Call, Refused, use  # noqa: E402
from transplt.faces.mcp.bench import Bench  # noqa: E402
from transplt.faces.mcp.server import make_server  # noqa: E402


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    project = tmp_path / "work" / "project"
    project.mkdir(parents=True)
    (project / "train.py").write_text(APEX)
    (tmp_path / "outside.py").write_text("import torch\ntorch.cuda.init()\n")
    return Folders(tmp_path / "work")


def one(folders: Folders, name: str, /, **arguments: Any) -> Any:
    async def work(call: Call) -> Any:
        return await call(name, **arguments)

    return use(folders, work)


def test_a_server_offers_to_run_only_if_the_person_said_so(folders: Folders) -> None:
    async def work(call: Call) -> Any:
        tools = await call("tools")
        assert all(tool.input_schema["type"] == "object" for tool in tools.values())
        return [*tools]

    assert use(folders, work) == ["survey", "check", "explain", "plan", "migrate", "judge", "diagnose"]
    assert use(folders, work, allow_run=True)[-2:] == ["run", "prove"]


@pytest.mark.parametrize("name", ["run", "prove"])
def test_nothing_is_run_without_leave(name: str, folders: Folders) -> None:
    with pytest.raises(Refused, match="start this server with --allow-run"):
        one(folders, name, script="project/train.py", original="project", migrated="project")


def test_a_work_order_says_what_where_and_what_shows_that_it_is_done(folders: Folders) -> None:
    answer = one(folders, "check", path="project")
    assert (answer["path"], answer["files"], answer["actions_in_all"]) == ("project", 1, 2)
    order = answer["actions"][0]
    assert order["do"] == "Use the version of apex that is adapted to Ascend" and order["blocks"] == "stops at import"
    assert order["blocking"] and order["codes"] == ["NPU511"]
    assert order["places"] == [
        {"file": "project/train.py", "line": 2, "known": ["NPU511: the package apex needs an Ascend version"]}
    ]
    assert order["done_when"] == [
        "`transplt check project --select NPU511` names none of these places",
        "`transplt prove ORIGINAL MIGRATED` says equal",
    ]
    assert answer["actions"][1]["how"] == "call migrate: transplt makes these edits"


def test_findings_come_in_pages(folders: Folders) -> None:
    async def work(call: Call) -> Any:
        first = await call("check", path="project", show="findings", most=2)
        rest = await call("check", path="project", show="findings", most=50, cursor=first["next_cursor"])
        (folders.root / "project" / "train.py").write_text("import torch\ntorch.cuda.init()\n")
        with pytest.raises(Refused, match="the result has changed"):
            await call("check", path="project", show="findings", cursor=first["next_cursor"])
        return first, rest

    first, rest = use(folders, work)
    assert len(first["findings"]) == 2 and "next_cursor" not in rest
    assert first["findings_in_all"] == 2 + len(rest["findings"])
    lines = [each["line"] for each in (*first["findings"], *rest["findings"])]
    assert lines == sorted(lines)


def test_a_page_is_bounded_and_never_empty() -> None:
    entries = [{"text": "x" * (PAGE_CHARACTERS // 2 + 1)}, {"text": "y" * PAGE_CHARACTERS * 2}, {"text": "z"}]
    first = page("entries", entries, None, 50)
    second = page("entries", entries, first["next_cursor"], 50)
    third = page("entries", entries, second["next_cursor"], 50)
    assert [len(each["entries"]) for each in (first, second, third)] == [1, 1, 1] and "next_cursor" not in third


@pytest.mark.parametrize("cursor", ["", "x", "1", "-1.abc", "99999999999.abc", "\u0661.abc"])
def test_what_is_no_cursor(cursor: str) -> None:
    with pytest.raises(UsageError, match="not a cursor"):
        page("entries", [{}], cursor, 5)


def test_explain(folders: Folders) -> None:
    assert one(folders, "explain", name="NPU511")["parts"][0]["text"].startswith("# NPU511: ")
    assert "NPU103" in json.dumps(one(folders, "explain", name="torch.cuda.amp.autocast"))
    with pytest.raises(Refused, match=r"^nothing is known about no\.such\.name"):
        one(folders, "explain", name="no.such.name")


def test_a_long_page_goes_on(folders: Folders) -> None:
    async def work(call: Call) -> str:
        answer = await call("explain", name="torch")
        text = "".join(part["text"] for part in answer["parts"])
        while "next_cursor" in answer:
            answer = await call("explain", name="torch", cursor=answer["next_cursor"])
            text += "".join(part["text"] for part in answer["parts"])
        return text

    from click.testing import CliRunner

    from transplt.faces.cli.explain import explain

    assert use(folders, work) == CliRunner().invoke(explain, ["torch"]).output


def test_survey_says_what_each_project_takes_and_what_unblocks(folders: Folders) -> None:
    for name, text in (("free", "import torch\nx = torch.ones(1).cuda()\n"), ("project_msft", ""), (".hidden", "")):
        (folders.root / name).mkdir()
        (folders.root / name / "main.py").write_text(text)

    async def work(call: Call) -> Any:
        first = await call("survey", most=1)
        rest = await call("survey", cursor=first["next_cursor"])
        named = await call("survey", paths=["free", "gone"], output="other")
        return first, rest, named, await call("survey", show="unblocking"), await call("survey", show="packages")

    first, rest, named, unblocking, packages = use(folders, work, by=start)
    assert first["written"] == "transplt-survey" and (folders.root / "transplt-survey" / first["reports"][0]).is_file()
    portfolio = first["portfolio"]
    assert (portfolio["repositories"], portfolio["failed"], portfolio["nothing_stops"]) == (2, 0, 1)
    assert first["repositories"] == [
        {"name": "free", "path": "free", "share_automatic": 1.0, "left": 0, "hours": [0.0, 0.0], "actions": 0,
         "first": "", "stopped_by": [], "stopped_by_in_all": 0}
    ]  # fmt: skip
    (project,) = rest["repositories"]
    assert project["path"] == "project" and project["first"] == "Use the version of apex that is adapted to Ascend"
    assert project["stopped_by"][0] == project["first"] and "next_cursor" not in rest
    assert [each.get("failed") for each in named["repositories"]] == [None, "no such folder"]
    assert unblocking["unblocking"][0]["repositories"] == ["project"] and unblocking["unblocking"][0]["last_in"] == 1
    assert packages["packages"][0]["package"] == "apex" and packages["packages"][0]["instead"]
    assert (folders.root / "project/train.py").read_text() == APEX


def test_a_survey_does_not_lie_in_a_project_and_says_that_it_goes_on(folders: Folders) -> None:
    for paths in ({"paths": ["."]}, {"paths": ["project"], "output": "project/there"}):
        with pytest.raises(Refused, match="the survey itself would lie in a project"):
            one(folders, "survey", **paths)
    with pytest.raises(Refused, match="transplt-survey: give `output`"):
        (folders.root / "project" / "setup.py").write_text("")
        one(Folders(folders.root / "project"), "survey")

    async def late(arguments: Sequence[str], folder: Path, seconds: float) -> Ended:
        return Ended(1, b"", "", late=True)

    async def work(call: Call) -> Any:
        return await call("survey")

    with pytest.raises(Refused, match="was stopped: call it again, what is done is kept"):
        use(folders, work, by=late)


def test_migrate_writes_a_copy_and_says_so(folders: Folders) -> None:
    answer = one(folders, "migrate", path="project", output="out")
    assert answer["written"] == "out/project_msft" and answer["reports"][0] == "report.html"
    assert ".npu()" in (folders.root / "out/project_msft/train.py").read_text()
    assert (folders.root / "project/train.py").read_text() == APEX
    order = answer["actions"][0]
    assert order["places"][0]["file"] == "out/project_msft/train.py"
    assert order["done_when"][1] == "`transplt prove project out/project_msft` says equal"
    with pytest.raises(Refused, match="exists"):
        one(folders, "migrate", path="project", output="out")


def test_the_whole_folder_has_no_place_for_its_copy(folders: Folders, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="--output DIR"):
        one(folders, "migrate")
    (tmp_path / "copies").mkdir()
    answer = one(Folders(folders.root, tmp_path / "copies"), "migrate")
    assert answer["written"] == str(tmp_path / "copies" / "work_msft")


def test_in_place_only_when_asked_and_where_git_can_restore(folders: Folders) -> None:
    from tests.checking.conftest import commit_all

    with pytest.raises(Refused, match="no git repository"):
        one(folders, "migrate", path="project", in_place=True)
    commit_all(folders.root)
    answer = one(folders, "migrate", path="project", in_place=True)
    assert answer["changed_in_place"] == ["project/train.py"] and answer["edits"] > 0
    assert "torch.cuda" not in (folders.root / "project/train.py").read_text()


def test_a_plan_is_written_once_and_followed(folders: Folders) -> None:
    async def work(call: Call) -> Any:
        first = await call("plan", path="project")
        (folders.root / first["file"]).write_text(first["parts"][0]["text"].replace("Lines that", "Mine: lines that"))
        again = await call("plan", path="project")
        done = await call("migrate", path="project", plan=first["file"], adapt="all")
        with pytest.raises(Refused, match=r"its name ends with \.md"):
            await call("plan", path="project", file="project/train.py", replace=True)
        return first, again, done

    first, again, done = use(folders, work)
    assert first["file"] == "project_plan.md" and first["parts"][0]["text"].startswith("#")
    assert "Mine: lines that" in again["parts"][0]["text"] and done["written"] == "project_msft"


def test_judge_reads_and_runs_only_with_leave(folders: Folders) -> None:
    port = folders.root / "port"
    port.mkdir()
    (port / "train.py").write_text(
        APEX.replace("Linear(2, 2).cuda()", "Linear(2, 3).npu()").replace("import apex\n", "")
    )

    async def work(call: Call) -> Any:
        with pytest.raises(Refused, match="start this server with --allow-run"):
            await call("judge", original="project", port="port", prove="train.py")
        return await call("judge", original="project", port="port"), await call(
            "judge", original="project", port="port", allow=["model"], most=1
        )

    found, allowed = use(folders, work)
    assert not found["accepted"] and "model" in found["sentence"]
    assert ("train.py", "NPU881") in [(each["file"], each["code"]) for each in found["findings"]]
    assert len(found["parts"]) == 5 and "model" not in allowed["sentence"]


def test_what_a_command_says_is_progress(folders: Folders) -> None:
    (folders.root / "port").mkdir()
    (folders.root / "port" / "train.py").write_text(APEX.replace(".cuda()", ".npu()"))
    told: list[str] = []

    async def work() -> None:
        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(message or "")

        async with mcp.Client(make_server(Bench(folders), allow_run=False)) as client:
            await client.call_tool("judge", {"original": "project", "port": "port"}, progress_callback=progress)

    asyncio.run(work())
    assert told[0] == "transplt judge"


def test_the_command_serves_http_to_those_who_have_the_token(folders: Folders) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transplt", "mcp", "--allow-run", "--http", str(port), str(folders.root)]
    environment = {**unmeasured(), "PYTHONPATH": str(ROOT), "TRANSPLT_MCP_TOKEN": ""}
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "set TRANSPLT_MCP_TOKEN" in refused.stderr
    server = subprocess.Popen(command, env={**environment, "TRANSPLT_MCP_TOKEN": "secret"})
    url = f"http://127.0.0.1:{port}/mcp"

    async def work() -> Any:
        from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

        async with create_mcp_http_client(headers={"Authorization": "Bearer secret"}) as own:
            for _ in range(300):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                await asyncio.sleep(0.1)
            assert (await own.post(url, headers={"Authorization": "Bearer no"})).status_code == 401
            async with mcp.Client(streamable_http_client(url, http_client=own)) as client:
                tools = [tool.name for tool in (await client.list_tools()).tools]
                return tools, json.loads((await client.call_tool("check", {"path": "project"})).content[0].text)

    try:
        tools, answer = asyncio.run(work())
    finally:
        server.terminate()
        server.wait(20)
    assert tools[-2:] == ["run", "prove"] and answer["path"] == "project"


def test_diagnose(folders: Folders) -> None:
    (folders.root / "train.log").write_text("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB\n")
    answer = one(folders, "diagnose", logs=["train.log"])
    first = answer["errors"][0]
    assert answer["errors_in_all"] == 1 and first["log"].endswith("train.log") and first["do"]


@pytest.mark.parametrize(
    "path",
    ["../outside.py", "/etc/passwd", "project/../../outside.py", "link", "link/outside.py", "project/up.py", "a\0b"],
)
def test_what_lies_outside_is_refused(path: str, folders: Folders, tmp_path: Path) -> None:
    (folders.root / "link").symlink_to(tmp_path)
    (folders.root / "project" / "up.py").symlink_to(tmp_path / "outside.py")
    for name, arguments in (
        ("survey", {"paths": ["project", path]}),
        ("survey", {"output": path}),
        ("check", {"path": path}),
        ("migrate", {"path": path}),
        ("migrate", {"path": "project", "output": path}),
        ("diagnose", {"logs": [path]}),
        ("diagnose", {"logs": ["project/train.py"], "project": path}),
    ):
        with pytest.raises(Refused, match=r"is outside|zero bytes"):
            one(folders, name, **arguments)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["outside.py", "work"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("check", {"path": 3}, "check: path: 3 is not of type 'string'"),
        ("check", {"paths": "."}, "check: Additional properties are not allowed ('paths' was unexpected)"),
        ("check", {"path": "nowhere"}, "no such file or folder: "),
        ("check", {"path": "--fix"}, "no such file or folder: "),
        ("explain", {}, "explain: 'name' is a required property"),
        ("explain", {"name": "--help"}, "nothing is known about --help"),
        ("look", {}, "there is no tool 'look': survey, check, explain, plan, migrate, judge, diagnose"),
        ("migrate", {"in_place": True, "output": "x"}, "in_place goes without output"),
    ],
)
def test_errors_are_one_sentence(name: str, arguments: dict[str, Any], said: str, folders: Folders) -> None:
    with pytest.raises(Refused) as refused:
        one(folders, name, **arguments)
    assert str(refused.value).startswith(said) and "\n" not in str(refused.value)


def test_run_and_prove_answer_with_a_verdict_and_take_no_paths_outside(folders: Folders) -> None:
    """What the commands write; tests/agents/test_ports.py lets them run programs."""
    started: list[list[str]] = []
    reports = {
        "run": {"verdict": "stops", "sentence": "train.py:3 " + "x" * 1000, "reasons": [], "findings": [{"a": 1}] * 30},
        "prove": {"verdict": "equal", "sentence": "3 steps agree", "comparisons": [
            {"steps": 3, "differences": [], "remarks": [], "not_compared": ["buffers"]}]},
    }  # fmt: skip

    async def written(arguments: Sequence[str], folder: Path, seconds: float) -> Ended:
        started.append([*arguments])
        path = next(each.partition("=")[2] for each in arguments if each.startswith("--report="))
        Path(path).write_text(json.dumps(reports[arguments[0]]))
        return Ended(0, b"loss 1\nloss 2\n", "")

    async def work(call: Call) -> Any:
        with pytest.raises(Refused, match="is outside"):
            await call("run", script="../outside.py")
        with pytest.raises(Refused, match="data must be paths inside the project"):
            await call("prove", original="project", migrated="project", data=["../.."])
        ran = await call("run", script="project/train.py", args=["--epochs", "1"], nproc=2)
        return ran, await call("prove", original="project", migrated="project", main="train.py", nproc="1,2")

    ran, proof = use(folders, work, allow_run=True, by=written)
    assert (ran["verdict"], ran["findings_in_all"], len(ran["findings"])) == ("stops", 30, 10)
    assert len(ran["sentence"]) == 500 and ran["printed"] == ["loss 1", "loss 2"]
    assert proof["equal"] and proof["steps"] == 3 and proof["not_compared"] == ["buffers"]
    assert started[0][-4:] == ["--", str(folders.root / "project" / "train.py"), "--epochs", "1"]
    assert {"--main=train.py", "--nproc=1,2"} < {*started[1]}


def test_a_command_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    ended = asyncio.run(start(["explain", "NPU201"], tmp_path, 0.01))
    assert ended.late
    from transplt.faces.mcp.bench import Bench

    with pytest.raises(CannotFinish, match=r"^transplt explain took longer than 0\.01 seconds and was stopped$"):
        asyncio.run(Bench(Folders(tmp_path)).run(["explain", "NPU201"], 0.01))


def test_a_call_that_is_taken_back_ends_its_command(tmp_path: Path) -> None:
    import anyio

    from transplt.faces.mcp import child

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start, ["check", "-"], tmp_path, 60.0)
            while not child._RUNNING:
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    anyio.run(work)
    assert not child._RUNNING


def test_the_command_serves_standard_input_and_imports_nothing_of_the_folder(folders: Folders) -> None:
    (folders.root / "click.py").write_text("raise SystemExit('imported')\n")

    async def work() -> Any:
        started = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "transplt", "mcp", str(folders.root)],
            env={**unmeasured(), "PYTHONPATH": str(ROOT)}, cwd=ROOT,
        )  # fmt: skip
        async with mcp.Client(started) as client:
            result = await client.call_tool("check", {"path": "project"})
            return json.loads(result.content[0].text)

    assert asyncio.run(work())["path"] == "project"
