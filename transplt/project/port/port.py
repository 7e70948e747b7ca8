"""A migration as a branch of small commits: one for each decision, what is left as a checklist on top.

The branch is made beside the working tree, from what is committed: no checked out file, no index and no other branch is
touched, nothing is pushed. Deleting the branch undoes all of it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from transplt.base.disk.git_command import status
from transplt.base.disk.git_index import find_repository
from transplt.base.disk.git_objects import (
    Held,
    checked_out,
    commit_of,
    common_commit,
    contents,
    is_branch_name,
    move_branch,
    new_commit,
    subjects,
    tree_of,
    who_commits,
)
from transplt.base.disk.walk import LARGE_FILE_BYTES
from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.finding import Finding, Level
from transplt.base.grouped import grouped
from transplt.base.render.cell import many
from transplt.base.render.verdict import Verdict, Word
from transplt.base.text.frames import decoded
from transplt.base.text.regular_file import OTHER, read_regular
from transplt.base.text.requirement import normalised
from transplt.edits.helper_file import has_choice
from transplt.engine.actions.action import Action
from transplt.engine.actions.actions import actions_of
from transplt.engine.files.dependencies.codes import ADDED
from transplt.engine.files.dependency_files import requirements_of
from transplt.engine.files.kind import FileKind
from transplt.engine.files.python_in import python_of_cells
from transplt.flow.chooser_place import STOPS
from transplt.flow.import_layout import layout_of, reached_from
from transplt.project.checking.checked_file import moved
from transplt.project.options import Options, find_source, make_plan
from transplt.project.pins import LIST_FOR_NPUS
from transplt.project.port import checklist, devcontainer
from transplt.project.port.body import NOT_READY, body
from transplt.project.port.decisions import ON_REQUEST
from transplt.project.port.own_tools import OwnTools
from transplt.project.port.steps import Changed, PortStep, replays, steps_of
from transplt.project.proving import pack_of, proof_between, run_of
from transplt.project.report.migration_record import HELPER, RunResult
from transplt.project.tree import diff_tree, migrate_tree
from transplt.proof.prove.card_pack import check_pack
from transplt.rules.packages import TOO_OLD

_MESSAGE_WIDTH = 72
#: What a project that supports NPUs keeps for CUDA.
_BESIDE = ("NPU140", "NPU200")
_LINK, _MODULE = "120000", "160000"
_FAILED = (Word.DIFFERS, Word.STOPS)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of the branch: its object, its subject, and the verdict of its proof where one was asked for."""

    name: str
    subject: str
    proof: Verdict | None = None


@dataclass(slots=True)
class Port:
    """What was committed on a branch on top of `base`; `left_out` are decisions that a proof speaks against."""

    branch: str
    base: str
    result: RunResult
    commits: list[Commit] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    #: What is left for a person.
    left: Sequence[Action] = ()
    #: The text of a pull request, of a branch in the portable style.
    body: str = ""
    #: Of a branch on which nothing was left to commit.
    as_it_is: Verdict | None = None

    @property
    def proof(self) -> Verdict | None:
        """The proof of the last commit that has one, or of the branch as it is."""
        return next((each.proof for each in reversed(self.commits) if each.proof is not None), self.as_it_is)


@dataclass(slots=True)
class _Branch:
    """The branch as it grows: its tip, and the project on the disk as it stands there."""

    top: Path
    tip: str
    modes: dict[str, str]
    prefix: str
    folder: Path
    scratch: Path

    def write(self, files: Mapping[str, bytes]) -> None:
        """New contents of files (paths in the project) into the folder."""
        for path, data in files.items():
            if (self.folder / path).is_symlink():
                raise CannotFinish(f"{shown(path)} is a link; nothing is written through it")
            (self.folder / path).write_bytes(data)

    def commit(self, paths: Iterable[str], message: str) -> str:
        """Commits files as they are in the folder; the name of the commit."""
        files = {self.prefix + path: (self.modes.get(path, "100644"), self.folder / path) for path in paths}
        self.tip = new_commit(self.top, self.tip, files, message, self.scratch)
        return self.tip


@contextmanager
def _telling_what_failed() -> Iterator[None]:
    """Errors of git and of the disk say that the branch was not changed."""
    try:
        yield
    except FileNotFoundError as error:
        if shutil.which("git") is not None:  # such as no folder for temporary files
            raise CannotFinish(f"{reason(error)}; the branch was not changed") from error
        raise UsageError(str(error)) from error
    except OSError as error:
        raise CannotFinish(f"git failed: {error}; the branch was not changed") from error


@_telling_what_failed()
def port(
    options: Options,
    branch: str,
    command: str,
    progress: Callable[[str], None],
    card_pack: str | None = None,
    stubs: tuple[str, ...] = (),
    data: tuple[str, ...] = (),
    python: str = "",
    *,
    with_container: bool = False,
) -> Port:
    """Makes the branch, or goes on with it; `card_pack` names a folder, into which the tip is packed for the card;
    `stubs`, `data` and `python` are those of `transplt prove`, where data may lie in the working tree, not committed;
    `with_container` commits a devcontainer.json as well.

    UsageError where there is no repository or no branch can be made.
    """
    project = find_source(Path(options.source))
    top = find_repository(project) if project.is_dir() else None
    if top is None:
        raise UsageError(f"{shown(project)} is no folder of a git repository; `transplt -i` migrates any folder")
    pack = check_pack(Path(card_pack), project) if card_pack is not None else None
    run = run_of(command, stubs, python, project, progress) if command else None
    top = Path(os.path.realpath(top))
    tip, head = _begin(top, branch)
    prefix = "" if project == top else project.relative_to(top).as_posix() + "/"
    with tempfile.TemporaryDirectory(prefix="transplt-port-") as name:
        scratch = Path(name)
        before, after, out = scratch / "before", scratch / "after", scratch / "out"
        progress("reading what is committed")
        held, lacking = export(top, tip or head, (before, after))
        if not (before / prefix).is_dir():
            raise UsageError(f"{shown(project)} is not committed; commit it, and port again")
        reference = before / prefix
        if run is not None and tip and head:
            # A port that goes on is held against the program before its first commit.
            export(top, common_commit(top, tip, head), (scratch / "reference",))
            reference = scratch / "reference" / prefix
        given = replace(options, source=before / prefix, out=out, page=False, analysis=True, force=False)
        progress("migrating")
        plan = make_plan(given)
        if plan.settings.entry:
            raise UsageError(
                "the plan names a main file, and `transplt port` makes no program distributed; take the line out, or "
                "give the plan to `transplt -i`"
            )
        result = migrate_tree(plan)
        portable = result.settings.style == "portable"
        run = run and replace(run, portable=portable)
        files = _changed(result, before / prefix)
        modes = {each.path.removeprefix(prefix): each.mode for each in held if each.path.startswith(prefix)}
        grown = _Branch(top, tip or head, modes, prefix, after / prefix, scratch)
        done = Port(branch, tip or head, result)
        proofs: dict[frozenset[tuple[str, int]], Verdict] = {}
        idle: list[Verdict] = []  # of an original that does not train: it does not at the next commit either

        def proof_of(what: str) -> Verdict | None:
            if run is None:
                return None
            if idle:
                return idle[0]
            state = frozenset((file.path, hash(read_regular(grown.folder / file.path, OTHER))) for file in files)
            if state not in proofs:
                progress(f"proving: {what}")
                proof = proof_between(reference, after / prefix, run, (1,), progress, data, project)
                assert proof is not None
                done.notes += [line for line in proof.advice if line not in done.notes]
                proofs[state] = proof.verdict
                idle.extend([proof.verdict] * proof.idle)
            return proofs[state]

        tools = OwnTools(before / prefix, (each.path for each in files), run.python if run else "")
        tools.look(result.output)
        while not _commit_all(grown, done, files, tools, proof_of):
            grown.write({file.path: file.before for file in files})
            grown.tip, done.commits = tip or head, []
        if with_container:
            _commit_container(grown, done, project.name)
        begun = common_commit(top, grown.tip, head or tip)
        own = {each.path for each in tree_of(top, grown.tip)} - {each.path for each in tree_of(top, begun or head)}
        done.left = _commit_checklist(grown, done, given, scratch, [path.removeprefix(prefix) for path in own])
        if tip and done.proof is None:
            done.as_it_is = proof_of("the branch as it is")
        checks = [*tools.differences(grown.folder)]
        done.notes += checks
        if portable:
            lists = _lists(result.edits, own)
            done.body = body(
                _choosing(grown.folder, {*modes, *(each.path for each in files)}), subjects(top, begun, grown.tip),
                checklist.target(result), run, done.proof, checks, done.left, lists, _stopped(result),
                _asked_for(grown.folder, own), _programs(result),
            )  # fmt: skip
            if NOT_READY in done.body:
                done.notes.append("not ready for a pull request: on an NPU no program trains yet; the text says why")
        if run is not None and pack is not None:
            done.notes.append(f"card pack: {pack_of(reference, grown.folder, run, pack, progress, data)}")
        if done.commits:
            move_branch(top, branch, grown.tip, tip)
    done.notes += [*result.planned, *_not_included(top, tip, head, branch, lacking)]
    return done


def _not_included(top: Path, tip: str, head: str, branch: str, lacking: Sequence[str]) -> Iterator[str]:
    """What the branch is without, as sentences."""
    if lacking:
        yield f"{many(len(lacking), 'file')} that this partial clone lacks: not changed; the first: {lacking[0]}"
    if status(top):
        yield "uncommitted changes are not included"
    if tip and head and common_commit(top, tip, head) != head:
        yield f"HEAD has commits that {branch} lacks; merge them into it, and port again"


def _begin(top: Path, branch: str) -> tuple[str, str]:
    """The commits of the branch, if there is one, and of HEAD. UsageError where nothing can be committed on it."""
    if not is_branch_name(top, branch):
        raise UsageError(f"--branch {shown(branch)}: git does not accept this branch name")
    tip, head = commit_of(top, f"refs/heads/{branch}"), commit_of(top, "HEAD")
    if not tip and not head:
        raise UsageError(f"the repository {shown(top)} has no commit yet")
    if f"refs/heads/{branch}" in checked_out(top):
        raise UsageError(f"{branch} is checked out; run `git switch -` first")
    if not who_commits(top):
        raise UsageError("git needs an author: set user.name and user.email")
    return tip, head


def export(top: Path, commit: str, folders: tuple[Path, ...]) -> tuple[list[Held], list[str]]:
    """Writes the files of a commit into folders: links as links, no submodules, nothing that is large.

    The files that were written, and the paths of those that a partial clone lacks.
    """
    held = [each for each in tree_of(top, commit) if each.mode != _MODULE and each.size <= LARGE_FILE_BYTES]
    for folder in folders:
        folder.mkdir()
    for each in held:
        if {"", ".", "..", ".git"} & {*each.path.lower().split("/")}:
            raise CannotFinish(f"the commit has a file {shown(each.path)}, which no git writes")
    held.sort(key=lambda each: each.mode == _LINK)  # nothing is written through a link
    lacking = []
    for each, data in contents(top, held):
        if data is None:
            lacking.append(each.path)
            continue
        for folder in folders:
            target = folder / each.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if each.mode == _LINK:
                os.symlink(os.fsdecode(data), target)
            else:
                target.write_bytes(data)
                target.chmod(0o755 if each.mode.endswith("755") else 0o644)
    return [each for each in held if each.path not in lacking], lacking


def _changed(result: RunResult, source: Path) -> list[Changed]:
    found = []
    for record in (*result.changed, *result.helpers):
        edits = tuple(each for each in record.findings if each.applied and each.edit is not None)
        after = read_regular(result.output / record.path, OTHER)
        before = b"" if record.kind == HELPER else read_regular(source / record.path, OTHER)
        file = Changed(record.path, before, after, edits)
        if not replays(file):
            raise CannotFinish(f"the edits of {shown(record.path)} are not its whole difference; this is a defect")
        found.append(file)
    return found


def _commit_all(
    grown: _Branch, done: Port, files: list[Changed], tools: OwnTools, proof_of: Callable[[str], Verdict | None]
) -> bool:
    """Commits the decisions. False where a proof speaks against one that may be left out: then all begin anew."""
    portable = done.result.settings.style == "portable"
    steps = [*steps_of(files, done.left_out, done.result.settings.style)]
    for step in steps:
        grown.write(step.files)
        tools.mend(grown.folder, step.files)
        # A portable commit leaves CUDA as it is; an NPU runs the last of them.
        asked = not portable or step is steps[-1] or step.decision.name in ON_REQUEST
        proof = proof_of(step.decision.subject.lower()) if asked else None
        if proof is not None and proof.word in _FAILED and step.decision.name in ON_REQUEST:
            done.left_out[step.decision.name] = str(proof)
            return False
        choosing = _choosing(grown.folder, step.files) if portable else []
        subject = _subject(step, files, choosing)
        name = grown.commit(step.files, _message(subject, step, proof, portable=portable))
        done.commits.append(Commit(name, subject, proof))
    return True


def _subject(step: PortStep, files: Iterable[Changed], choosing: Sequence[str]) -> str:
    """The subject of the commit of a step; with the module that chooses the accelerator, or how many do."""
    if not choosing or step.decision.name != "helper":
        return step.decision.subject
    if len(choosing) > 1:
        return step.decision.subject.replace("one module", many(len(choosing), "file"))
    (path,) = choosing
    if any(file.path == path and has_choice(file.before) for file in files):
        return f"Add to {path} what is called now"
    return step.decision.subject.replace("one module", path)


def _message(subject: str, step: PortStep, proof: Verdict | None, *, portable: bool) -> str:
    codes = sorted({edit.code for edit in step.edits})
    parts = [" ".join((step.decision.why, *(said for code, said in step.decision.did if code in codes)))]
    if codes and not portable:
        files = many(len({edit.path for edit in step.edits}), "file")
        parts.append(f"{many(len(step.edits), 'edit')} in {files}: {', '.join(codes)}")
    if proof is not None:
        parts.append(f"transplt prove, against the program before the port: {proof}")
    wrapped = (textwrap.fill(text, _MESSAGE_WIDTH, break_long_words=False, break_on_hyphens=False) for text in parts)
    return "\n\n".join((subject, *wrapped)) + "\n"


def _only_in_edits(grown: _Branch, done: Port, again: Sequence[Finding]) -> list[Finding]:
    """What the migration left for a person and nobody finds `again` in its output, since it goes with an edit: at its
    places there.
    """
    found = []
    still = [each for each in again if each.open]
    places = {(each.path, each.code, each.span.line) for each in still}
    counts = Counter((each.path, each.code, each.message) for each in still)
    for record in done.result.files:
        # What a package has no more is measured by the releases that the branch asks for.
        its = Counter((each.code, each.message) for each in record.findings if each.open and not each.detail("gone"))
        if fewer := {(code, said) for (code, said), count in its.items() if count > counts[record.path, code, said]}:
            new = decoded(read_regular(grown.folder / record.path, OTHER))
            left = (each for each in moved(record.findings, new) if each.open and (each.code, each.message) in fewer)
            found += [each for each in left if (each.path, each.code, each.span.line) not in places]
    return found


def _stopped(result: RunResult) -> dict[str, str]:
    """What programs do on an NPU before they come to a file, by the path of that."""
    return {each.path: why for record in result.files for each in record.findings if (why := each.detail(STOPS))}


def _programs(result: RunResult) -> dict[str, set[str]]:
    """The files that each program comes to that is started to train, by its path."""
    facts = result.facts
    if facts is None:
        return {}
    layout, programs = facts.once(layout_of), facts.aside.programs
    loaded = layout.edges.keys() - programs.keys()
    return {path: {*reached_from(layout, path), *(loaded if loads else ())} for path, loads in programs.items()}


def _lists(edits: Iterable[Finding], own: Iterable[str]) -> list[str]:
    """What lists the packages for NPUs: an extra, or files of the branch's `own`; those below are for an example."""
    extra = {".[npu]" for each in edits if each.code == ADDED and not LIST_FOR_NPUS.search(each.path)}
    listed = extra.union(filter(LIST_FOR_NPUS.search, own))
    return sorted(each for each in listed if "/" not in each) or sorted(listed)


def _asked_for(folder: Path, own: Iterable[str]) -> dict[str, str]:
    """The releases of packages that the branch's `own` lists for NPUs ask for, by name."""
    texts = ((path, read_regular(folder / path, OTHER).decode()) for path in own if LIST_FOR_NPUS.search(path))
    listed = (each for path, text in texts for each in requirements_of(text, path, FileKind.REQUIREMENTS))
    asked = grouped((normalised(each.name), each.versions) for each in listed if each.versions)
    return {name: ",".join(versions) for name, versions in asked.items()}


def _to_be_done(
    again: Iterable[Finding], told: Sequence[Finding], own: Iterable[str], stopped: Collection[str], setup: Path
) -> Iterator[Finding]:
    """Both, without lists of packages which the branch has settled, of its `own` files, but for bounds that `setup`
    takes from one. Where the migration has told what to do, or what is `stopped`, the branch read again has CUDA's code
    beside what is for NPUs.
    """
    asked = read_regular(setup, OTHER) if setup.is_file() and not setup.is_symlink() else b""
    lists = {each for path in own for each in (path, LIST_FOR_NPUS.sub("", path)) if LIST_FOR_NPUS.search(path)}
    there = {(each.path, each.span.start) for each in told}
    rest = (each for each in again if each.code not in _BESIDE
            or (each.path not in stopped and (each.path, each.span.start) not in there))  # fmt: skip
    yield from (each for each in chain(rest, told) if each.path not in (checklist.NAME, *lists)
                or (each.code == TOO_OLD and each.path.encode() in asked))  # fmt: skip


def _commit_container(grown: _Branch, done: Port, name: str) -> None:
    """Commits a devcontainer.json, where the project has none of its own."""
    path = grown.folder / devcontainer.NAME
    text = devcontainer.devcontainer(name)
    if os.path.lexists(path) or path.parent.is_symlink():
        if read_regular(path, OTHER) != text.encode():
            done.notes.append(f"{devcontainer.NAME} is the project's own, and is not changed")
        return
    path.parent.mkdir(exist_ok=True)
    grown.write({devcontainer.NAME: text.encode()})
    subject = "Describe a container with an emulated NPU"
    done.commits.append(Commit(grown.commit([devcontainer.NAME], f"{subject}\n"), subject))


def _choosing(folder: Path, paths: Collection[str]) -> list[str]:
    """The modules, scripts and notebooks of a project that choose its accelerator."""
    files = (path for path in sorted(paths) if path.endswith((".py", ".ipynb")) and (folder / path).is_file())
    read = ((path, read_regular(folder / path, OTHER)) for path in files)
    return [path for path, data in read if has_choice(data if path.endswith(".py") else python_of_cells(data) or b"")]


def _commit_checklist(
    grown: _Branch, done: Port, options: Options, scratch: Path, own: Collection[str]
) -> Sequence[Action]:
    """What is left, none of it in lists of packages which the branch has settled (`own` are the files that it adds); it
    is committed where it is not what the file holds already, but for a branch in the portable style that has no such
    file.
    """
    path = grown.folder / checklist.NAME
    old = read_regular(path, OTHER).decode("utf-8", "replace") if path.is_file() and not path.is_symlink() else ""
    # Read again: the places of what is left are those in the files of the branch.
    given = replace(options, source=grown.folder, out=scratch / "left")
    left = diff_tree(make_plan(replace(given, unsafe_fixes=None)))
    # What it blocks is known of the program as it was: a branch has no word of CUDA that tells what trains.
    met = grouped(((each.path, each.code, each.message), each) for each in reversed(done.result.open_findings))
    rows = [(each, met.get((each.path, each.code, each.message), [each])) for each in left.findings]
    found = [(each, same.pop() if len(same) > 1 else same[0]) for each, same in rows]  # in the order of the file
    again = [replace(each.as_far_as(was), option=was.option, blocks=was.blocks) for each, was in found]
    told, stopped = _only_in_edits(grown, done, again), _stopped(done.result)
    findings = [*_to_be_done(again, told, own, stopped, grown.folder / "setup.py")]
    offered = any(each.level is Level.UNSAFE and not each.applied for each in findings)
    drafted = diff_tree(make_plan(replace(given, unsafe_fixes=True))) if offered else left
    drafts = b"".join(record.patch for record in drafted.files if record.path != checklist.NAME)
    # What the branch has settled is no work, and still says what the project needs and installs.
    actions = actions_of([*findings, *done.result.edits], done.result.settings.style)
    text = checklist.checklist(done.result, actions, drafts, done.left_out, old)
    if text != old and (done.commits or old) and (old or done.result.settings.style != "portable"):
        grown.write({checklist.NAME: text.encode()})
        name = grown.commit([checklist.NAME], "List what is left of the port\n")
        done.commits.append(Commit(name, "List what is left of the port"))
    return actions
