"""The tools: what each takes, and what it answers. Each is a command of transplt, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transplt.base.disk.git_index import find_repository
from transplt.base.errors import CannotFinish, TranspltError, UsageError
from transplt.base.settings import STYLES, TORCH_VERSIONS
from transplt.base.text.regular_file import PLANS, read_regular
from transplt.faces.mcp.answers import cut, page
from transplt.faces.mcp.bench import MOST_LINES, WRITE, Answer, Arguments, Bench, first_lines, short
from transplt.faces.mcp.portfolio import LISTS, SURVEY, survey_portfolio
from transplt.faces.mcp.programs import prove_port, run_script, stub_of
from transplt.faces.mcp.work_orders import found, work_orders

#: Seconds that the person's programs may take at most.
_MOST_RUN = 3600.0
_FIRST_ORDERS = 3

Handler = Callable[[Bench, Arguments], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, what it is for, the JSON Schemas of its arguments; `runs`: it starts programs; `runs_with`:
    it does where it is given this argument."""

    name: str
    text: str
    takes: dict[str, Any]
    needs: tuple[str, ...]
    work: Handler = field(repr=False)
    runs: bool = False
    runs_with: str = ""
    writes: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of all arguments."""
        shape = {"type": "object", "properties": self.takes, "additionalProperties": False}
        return {**shape, "required": [*self.needs]} if self.needs else shape


_PATH = {"type": "string", "minLength": 1, "maxLength": 4000}
_TEXTS = {"type": "array", "items": {"type": "string", "maxLength": 4000}, "maxItems": 100}
_PATHS = {"type": "array", "items": _PATH, "minItems": 1, "maxItems": 1000}
_CODES = {"type": "array", "items": {"type": "string", "pattern": "^NPU[0-9]{0,3}$"}, "maxItems": 20}
_CURSOR = {"type": "string", "maxLength": 40, "description": "`next_cursor` of the page before"}
_VERSION = {"type": "string", "enum": [*TORCH_VERSIONS]}


# --- check and explain -----------------------------------------------------------------------------------------------


async def _check(bench: Bench, given: Arguments) -> Answer:
    path = bench.folders.inside(given.get("path", "."))
    options = [part for code in given.get("codes", ()) for part in ("--select", code)]
    checked = await bench.check(path, *options)
    orders = work_orders(checked, bench.folders.display(path))
    summary = {
        "path": bench.folders.display(path),
        "files": checked["summary"]["files"],
        "findings": checked["summary"]["findings"],
        "blocking_actions": sum(order["blocking"] for order in orders),
        "torch": sorted({each["version"] for each in checked["summary"]["torch"]}),
    }
    if given.get("show", "actions") == "findings":
        rows = [found(each) for each in checked["findings"] if each["level"] != "info" and not each["known"]]
        return {**summary, **page("findings", rows, given.get("cursor"), given.get("most", 20))}
    return {**summary, **page("actions", orders, given.get("cursor"), given.get("most", 5))}


async def _explain(bench: Bench, given: Arguments) -> Answer:
    ended = await bench.run(["explain", "--", given["name"]])
    parts = [{"text": part} for part in _pieces(ended.out.decode("utf-8", "replace"))]
    return {"name": given["name"], **page("parts", parts, given.get("cursor"), 3)}


def _pieces(text: str, most: int = 2000) -> list[str]:
    """A text in pieces that end where a line ends, if there are lines."""
    pieces = [""]
    for line in text.splitlines(keepends=True):
        for at in range(0, len(line), most):
            part = line[at : at + most]
            if len(pieces[-1]) + len(part) > most:
                pieces.append("")
            pieces[-1] += part
    return pieces


# --- plan and judge --------------------------------------------------------------------------------------------------


async def _plan(bench: Bench, given: Arguments) -> Answer:
    """Writes the plan where there is none, and gives it as it is: somebody may have decided in it."""
    source = bench.folders.inside(given.get("path", "."))
    place = given.get("file") or str(bench.folders.place_for(source) / f"{source.name}_plan.md")
    file = bench.folders.inside(place)
    if file.suffix != ".md":
        raise UsageError("a plan is a Markdown file: its name ends with .md")
    if given.get("replace") or not file.exists():
        options = [f"--torch-version={given['torch_version']}"] if "torch_version" in given else []
        await bench.run(["plan", "--force", "-o", str(file), *options, "--", str(source)])
    text = read_regular(file, PLANS).decode("utf-8", "replace")
    parts = [{"text": part} for part in _pieces(text)]
    told = {"file": bench.folders.display(file), "next": "edit the marks in the file; migrate with `plan` follows it"}
    return {**told, **page("parts", parts, given.get("cursor"), 1)}


async def _judge(bench: Bench, given: Arguments) -> Answer:
    original, port = (bench.folders.inside(given[name]) for name in ("original", "port"))
    options = [f"--allow={each}" for each in given.get("allow", ())]
    options += [f"--prove={given['prove']}"] if "prove" in given else []
    options += [f"--stubs={stub_of(bench, each)}" for each in given.get("stubs", ())]
    ended = await bench.run(["judge", "--format=json", *options, "--", str(original), str(port)], WRITE)
    table = json.loads(ended.out)
    rows = [found(each) for part in table["parts"] for each in part["findings"]]
    return {
        "accepted": table["accepted"],
        "sentence": cut(table["sentence"]),
        "parts": [{name: short(part[name]) for name in ("title", "mark", "sentence")} for part in table["parts"]],
        "also_changed": len(table["also"]),
        "unknown": short(table["unknown"]),
        **page("findings", rows, given.get("cursor"), given.get("most", 10)),
    }


# --- migrate ---------------------------------------------------------------------------------------------------------


async def _migrate(bench: Bench, given: Arguments) -> Answer:
    source = bench.folders.inside(given.get("path", "."))
    options = [f"--torch-version={given['torch_version']}"] if "torch_version" in given else []
    options += [f"--style={given['style']}"] if "style" in given else []
    options += ["--unsafe-fixes"] if given.get("unsafe_fixes") else []
    if given.get("in_place"):
        return await _in_place(bench, source, options, given)
    out = bench.folders.inside(given["output"]) if "output" in given else bench.folders.place_for(source)
    options += ["-sim"] if given.get("similar") else []
    options += ["--force"] if given.get("replace") else []
    options += [f"--adapt={given['adapt']}"] if "adapt" in given else []
    options += [f"--plan={bench.folders.inside(given['plan'])}"] if "plan" in given else []
    ended = await bench.run(["-i", str(source), "-o", str(out), *options], WRITE)
    written = out / f"{source.stem if source.is_file() else source.name}_msft"
    left = work_orders(await bench.check(written), bench.folders.display(written), bench.folders.display(source))
    return {
        "written": bench.folders.display(written),
        "original": bench.folders.display(source),
        "summary": first_lines(ended.stderr),
        "reports": [name for name in ("report.html", "change_list.csv", "unsupported_op.xlsx")
                    if (written / name).is_file()],
        "actions": left[:_FIRST_ORDERS],
        "actions_in_all": len(left),
        "blocking_actions": sum(order["blocking"] for order in left),
        "next": "take the first action; `check` with this path gives the others",
    }  # fmt: skip


async def _in_place(bench: Bench, source: Path, options: list[str], given: Arguments) -> Answer:
    wrong = [name for name in ("output", "similar", "replace", "adapt", "plan") if given.get(name)]
    if wrong:
        raise UsageError(f"in_place goes without {' and '.join(wrong)}")
    if find_repository(source if source.is_dir() else source.parent) is None:
        raise UsageError(f"{bench.folders.display(source)} lies in no git repository, which could take the edits back")
    style = [] if "style" in given else ["--style=npu"]
    before = await bench.check(source, *options, *style)
    fixes = ("safe", "unsafe") if given.get("unsafe_fixes") else ("safe",)
    files = sorted({each["path"] for each in before["findings"] if each["fix"] in fixes and each["edit"]})
    after = await bench.run(["check", "--fix", "--format", "json", *options, *style, "--", str(source)], WRITE)
    table = json.loads(after.out)
    left = work_orders(table, bench.folders.display(source))
    return {
        "changed_in_place": files[:MOST_LINES],
        "changed_in_all": len(files),
        "edits": table["summary"]["fixed"],
        "summary": first_lines(after.stderr),
        "actions": left[:_FIRST_ORDERS],
        "actions_in_all": len(left),
    }


# --- diagnose --------------------------------------------------------------------------------------------------------


async def _diagnose(bench: Bench, given: Arguments) -> Answer:
    logs = [str(bench.folders.inside(name)) for name in given["logs"]]
    project = ["--project", str(bench.folders.inside(given["project"]))] if "project" in given else []
    ended = await bench.run(["diagnose", "--format=json", *project, "--", *logs])
    table = json.loads(ended.out)
    kept = ("title", "code", "log", "line", "who", "time", "times", "text", "means", "cause", "do", "own_source",
            "foretold_by")  # fmt: skip
    rows = [{name: short(each[name]) for name in kept if each[name]} for each in table["errors"]]
    errors = page("errors", rows, given.get("cursor"), given.get("most", 5))
    return {"lines": sum(each["lines"] for each in table["sources"]), **errors}


_SECONDS = {"type": "number", "exclusiveMinimum": 0, "maximum": _MOST_RUN, "description": "limit of one run (600)"}
_MOST = {"type": "integer", "minimum": 1, "maximum": 50, "description": "entries of a page"}

TOOLS = (
    Tool(
        "survey",
        "Estimates the work to port projects: the automatic share, hours and blockers of each; or the packages, "
        "kernels and APIs that block most (show=unblocking); or what third-party packages need (show=packages). Does "
        "not change the projects; keeps its results in a separate folder, where a later call continues.",
        {
            "paths": {**_PATHS, "description": "folders (that of this server, or those in it where it is no project)"},
            "show": {"enum": [*LISTS]},
            "output": {**_PATH, "description": f"the folder of the survey ({SURVEY})"},
            "torch_version": {**_VERSION, "description": "target version of torch"},
            "most": _MOST,
            "cursor": _CURSOR,
        },
        (),
        survey_portfolio,
        writes=True,
    ),
    Tool(
        "check",
        "Lists the CUDA code of a project, a folder or a file, also what is left in a migrated one: as work orders, "
        "the most urgent first (show=actions), or as single findings by place (show=findings). Writes nothing.",
        {
            "path": {**_PATH, "description": "relative to the folder of this server (.)"},
            "show": {"enum": ["actions", "findings"]},
            "codes": {**_CODES, "description": "only these codes, or prefixes of codes"},
            "most": _MOST,
            "cursor": _CURSOR,
        },
        (),
        _check,
    ),
    Tool(
        "explain",
        "What is known of a code (NPU201), of an error of the card (EZ9999, ERR00100), of an API "
        "(torch.cuda.amp.autocast), of a package or of an environment variable.",
        {"name": {"type": "string", "minLength": 1, "maxLength": 200}, "cursor": _CURSOR},
        ("name",),
        _explain,
    ),
    Tool(
        "plan",
        "Writes the decisions of a migration into a Markdown file, or returns the existing one: edits that need a "
        "decision, tunings, training scripts. An unedited plan changes nothing.",
        {
            "path": {**_PATH, "description": "a folder or a .py file (.)"},
            "file": {**_PATH, "description": "path of the plan (<name>_plan.md next to the project)"},
            "replace": {"type": "boolean", "description": "write a new plan"},
            "torch_version": {**_VERSION, "description": "target version of torch"},
            "cursor": _CURSOR,
        },
        (),
        _plan,
        writes=True,
    ),
    Tool(
        "migrate",
        "Writes the migrated copy of a project or of a .py file into <output>/<name>_msft, next to the project "
        "unless `output` names a folder; reports what was written and what is left to do. With in_place it edits the "
        "project's own files, which git must be able to restore.",
        {
            "path": {**_PATH, "description": "a folder or a .py file (.)"},
            "output": {**_PATH, "description": "the folder in which the copy is made"},
            "in_place": {"type": "boolean"},
            "replace": {"type": "boolean", "description": "replace a copy that transplt wrote and that was not edited"},
            "torch_version": {**_VERSION, "description": "target version of torch"},
            "style": {"enum": [*STYLES], "description": "edit for NPUs only, or keep CUDA working too"},
            "adapt": {
                "type": "string", "pattern": "^[a-z0-9_,-]{1,200}$", "description": "names of adaptors, or all"
            },
            "plan": {**_PATH, "description": "a plan, written by the tool plan"},
            "similar": {"type": "boolean", "description": "replace some unsupported APIs with similar ones"},
            "unsafe_fixes": {
                "type": "boolean", "description": "also apply edits that may change what the program does"
            },
        },
        (),
        _migrate,
        writes=True,
    ),
    Tool(
        "judge",
        "Compares any port with its original: uses of CUDA that are left, changes beyond the device, attempts to "
        "mislead the check; with `prove` also whether it trains the same. Settings and comments of the port turn "
        "nothing off.",
        {
            "original": _PATH,
            "port": _PATH,
            "prove": {"type": "string", "maxLength": 4000, "description": "runs both: train.py --epochs 1"},
            "stubs": {**_TEXTS, "description": "files run before, or torchvision, or torchvision=256"},
            "allow": {**_TEXTS, "description": "themes of changes that are meant: batch size"},
            "most": _MOST,
            "cursor": _CURSOR,
        },
        ("original", "port"),
        _judge,
        runs_with="prove",
        writes=True,
    ),
    Tool(
        "diagnose",
        "Finds the errors of a training on NPUs in its logs, in order, with causes and what to do. Begin with the "
        "first.",
        {
            "logs": {**_TEXTS, "minItems": 1, "description": "files and folders"},
            "project": {**_PATH, "description": "the sources that ran"},
            "most": _MOST,
            "cursor": _CURSOR,
        },
        ("logs",),
        _diagnose,
    ),
    Tool(
        "run",
        "Runs a migrated script on an NPU emulated on the CPU: the verdict (runs, stops, ...) with file, line, reason.",
        {
            "script": _PATH,
            "args": _TEXTS,
            "nproc": {"type": "integer", "minimum": 0, "maximum": 64},
            "stubs": {**_TEXTS, "description": "files run before, or torchvision, or torchvision=256"},
            "seconds": _SECONDS,
        },
        ("script",),
        run_script,
        runs=True,
        writes=True,
    ),
    Tool(
        "prove",
        "Runs the original and the migrated program and compares how they train, step by step. Only the "
        "verdict `equal` means that a port is done.",
        {
            "original": _PATH,
            "migrated": _PATH,
            "main": {**_PATH, "description": "the script in both folders (main.py)"},
            "args": _TEXTS,
            "nproc": {"type": "string", "pattern": "^[0-9]{1,2}(,[0-9]{1,2}){0,4}$", "description": "1,2"},
            "steps": {"type": "integer", "minimum": 0, "maximum": 100000, "description": "steps of an optimizer (20)"},
            "stubs": {**_TEXTS, "description": "files run before, or torchvision, or torchvision=256"},
            "compile_mode": {"type": "boolean", "description": "also by torch.compile: where the graph breaks"},
            "data": {**_TEXTS, "description": "paths in the project that are linked, not copied"},
            "seconds": _SECONDS,
        },
        ("original", "migrated"),
        prove_port,
        runs=True,
        writes=True,
    ),
)  # fmt: skip
_BY_NAME = {tool.name: tool for tool in TOOLS}


def offered(allow_run: bool) -> tuple[Tool, ...]:
    """The tools that the person allows."""
    return tuple(tool for tool in TOOLS if allow_run or not tool.runs)


async def call(bench: Bench, allow_run: bool, name: str, arguments: Arguments) -> Answer:
    """What a tool answers. TranspltError, with one sentence, where it cannot."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    tool = _BY_NAME.get(name)
    if tool is None:
        raise UsageError(f"there is no tool {cut(name)!r}: {', '.join(each.name for each in offered(allow_run))}")
    if (tool.runs or tool.runs_with in arguments) and not allow_run:
        raise UsageError(f"{name} starts programs of the project: the person has to start this server with --allow-run")
    wrong = best_match(Draft202012Validator(tool.schema).iter_errors(arguments))
    if wrong is not None:
        place = ".".join(map(str, wrong.absolute_path))
        raise UsageError(cut(f"{name}: {place + ': ' if place else ''}{wrong.message}"))
    try:
        return await tool.work(bench, arguments)
    except TranspltError:
        raise
    except OSError as error:
        raise CannotFinish(f"{name}: {error.strerror or type(error).__name__}") from error


