"""The portable style: files for NPUs beside those for CUDA, which stay byte for byte: `requirements-npu.txt` beside a
list of packages that asks for torch, and `run_npu.sh` beside a script that starts a program by words of CUDA.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import filterfalse
from typing import Any

from transplt.base.disk.walk import Entry
from transplt.base.finding import FileResult, Finding, Level
from transplt.base.language import Sentence, marked
from transplt.base.text.requirement import Requirement, normalised
from transplt.base.text.source import Source
from transplt.engine.actions.actions import lowest
from transplt.engine.actions.groups import aside
from transplt.engine.files.dependencies.codes import ADDED, BOUND_BY, INDEX, NOT_ADDED, PYTHON
from transplt.engine.files.dependencies.others import OF_CANN, floors, is_for_others, needed_by_cann, without_elsewhere
from transplt.engine.files.dependencies.places import line_of, newline_of
from transplt.engine.files.dependencies.pythons import pythons_asked_for
from transplt.engine.files.dependencies.versions import TORCH, TORCH_NPU, Releases
from transplt.engine.files.dependency_files import CONDA, requirements_of
from transplt.engine.files.document import Document, text_of
from transplt.engine.files.kind import COG, FileKind
from transplt.engine.files.other_file import migrate_other
from transplt.engine.files.shell.editor import needs_a_twin
from transplt.engine.files.shell.launches import JOB, starts
from transplt.engine.files.shell.script import read_script
from transplt.engine.files.twin_names import twin_of, twins
from transplt.flow.chooser_place import is_old
from transplt.project.helper_files import new_file
from transplt.project.report.migration_record import FileRecord
from transplt.project.unread_files import TOP
from transplt.project.worker import FileWorker
from transplt.rules.companions import below, companions
from transplt.rules.packages import BOUND, BROUGHT, TOO_OLD
from transplt.rules.pages import load
from transplt.rules.releases import CPU_INDEX, fits
from transplt.rules.since import only_newer, only_older

#: A launch script for NPUs.
CODE = "NPU817"
_FORMS = re.compile(r"\.(?:txt|ya?ml)$")
_PACKAGES = marked("the packages of {name} for NPUs; the file is now part of the project")
_SCRIPT = marked("starts the program of {name} on NPUs; the file is now part of the project")
#: The comment above bounds, in a list of lines.
_BOUNDS = "# Without these, what is listed above cannot be imported"
_OLDER = "# The code uses what newer releases of these do not have"
_RAISED = marked("{twin} requires newer ones: test the project with them")
_TOO_OLD, _TOO_WIDE = "too old for torch-npu or what goes with it", "not all of which torch-npu has wheels for"
#: The comment above a list in which more than those that are too old became floors.
_FLOORS = "# Exact versions are floors here: some of them are too old for torch-npu or what goes with it"
#: One version, as pip has it and as conda does, of which it may name the build.
_EXACT = re.compile(r"==?[ \t]*(\d[\d.]*(?:post\d+)?)(?:=\w+|\.\*)?")
#: A Python that no newer one takes the place of.
_BOUNDED = re.compile(r"<|^={1,2}[ \t]*3\.\d")
#: What requests drags in, and nobody asks for by name.
_DRAGGED_IN = frozenset({"certifi", "idna"})
#: The channel of conda's builds of torch among those of a list, and the packages that are there alone.
_CHANNEL = re.compile(r"^(channels:\s*\n(?:[ \t]*-[^\n]*\n)*?)([ \t]*-[ \t]+)pytorch[ \t]*(\r?\n)([ \t]*-)?", re.M)
_OF_CHANNEL = re.compile("captum|faiss|ignite|magma|(?:py)?torch")
#: A comment on what CUDA's users install, and a page of wheels for a build of torch for CUDA.
_OF_CUDA = re.compile(
    r"^[ \t]*(?:#[^\n]*(?:cuda|nvidia)|(?:-[ \t]+)?[\"']?(?:--find-links|-f)[= \t]+[^\s#]*(?:\+|%2B)cu\d)[^\n]*\n",
    re.I | re.M,
)
#: What is commented out in a list of conda's.
_COMMENTS = re.compile(r"^[ \t]*#[^\n]*\n", re.M)
#: A list for pip in one of conda's, with nothing in it: no installer reads that.
_EMPTY = re.compile(r"^([ \t]*)-[ \t]+pip:[ \t]*(?:\r?\n|\Z)(?!(?:[ \t]*\r?\n)*\1[ \t]+\S)", re.M)
_LEFT_OUT, _NOT_OF_PIP = "# Left out, without NPU support:", "# Left out, not for pip:"
#: What conda alone has, or what pip has for x86 alone.
_OF_CONDA = re.compile(
    r"python|pip|.*-mutex|blas|bzip2|ca-certificates|intel-openmp|ld-impl-.*|lib(?:gcc|gfortran|gomp|stdcxx).*|"
    r"mkl(?:-.*)?|ncurses|openssl|sqlite|xz|zlib"
)
#: A line with a requirement of pip, but for comment and options, and what is no requirement by name.
_LINE = re.compile(r"^[ \t]*((?!-|\S*[/\\]|\.)[^\s#](?:(?!\s#|\s--|\\\r?\n)[^\r\n])*)", re.M)
#: The comment behind a version: of another one it may be wrong.
_REMARK = re.compile(r"\A[ \t]+#[^\r\n]*")
#: What a script must not be written with.
_STARTS = ("import", "first step")
_BEGINS = re.compile(r"[ \t]*")
_NAME = re.compile(r"^name:[ \t]*[\"']?[\w.-]+", re.M)
_LINE_OF_TORCH_NPU = re.compile(rf"^(?P<dash>[ \t]*(?:-[ \t]+)?){TORCH_NPU}\b[^\r\n]*", re.M)
#: Why there is no twin of a script.
_JOB = marked("no {twin} is written: the script is for one cluster, which may have its own names for its cards")
_MANY = marked("no {twin} is written: {count} scripts would get a copy")
_STOPS = marked("no {twin} is written: the arguments in line {line} stop the program on an NPU")
_FOLDERS = marked("no {twin} is written: lists in {count} folders would get a copy")
#: So many scripts are written twice, and lists in so many folders; what is said of more.
_MOST = {CODE: (8, _MANY), ADDED: (2, _FOLDERS)}
_COMPILED = marked("no {twin} is written: {source} is what this list is compiled from; compile one for NPUs, too")
_SPACE = marked("no {twin} is written: the programs in {folder} run on cards of Hugging Face Spaces, which has no NPUs")
#: An import of what gives a card to a function of a Space.
_OF_A_SPACE = re.compile(rb"^[ \t]*(?:import|from)[ \t]+spaces\b", re.M)
_TAKEN = marked("no {twin} is written: another script already has it")
_LOCAL = marked("no {twin} is written: line {line} names a folder of one machine")
_UNREAD = marked('no {twin} is written: pip does not read "{line}"')
_PRINTED = marked("no {twin} is written: conda printed this list on one machine, builds included; write a short one")
#: A build of conda's, and so many of them at least has what `conda env export` printed.
_BUILD, _BUILDS = re.compile(r"^[ \t]*(?:-[ \t]+)?[\w.-]+=[\w.!]+=\w+", re.M), 12
#: A package that lies in a folder of the machine on which somebody printed a list.
_ON_A_MACHINE = re.compile(r"^[^#\n]*?(?:(?:-e|--editable)[= \t]+/|file:///|@[ \t]*/)", re.M)


@dataclass(frozen=True, slots=True)
class _Twin:
    """A file for NPUs, and the record that its original has beside it; `why` there is none after all, in words that
    name it. `left`: what is still to be done in it. Without text it is of a list that another one replaces.
    """

    path: str
    text: str
    code: str
    message: str
    original: FileRecord
    left: tuple[Finding, ...] = ()
    why: str = ""


def with_twins(
    worker: FileWorker[Any], entries: Sequence[Entry], records: list[FileRecord], out: str, *, patches: bool
) -> list[FileRecord]:
    """The records of a run, and those of the files for NPUs, written into the folder `out` unless it is empty. OSError
    when an original cannot be read, WriteError when a file cannot be written.
    """
    found = {entry.path: entry for entry in entries}
    made: dict[str, FileRecord] = {}
    wanted = _wanted(worker, found, records)
    # A list keeps the name that the twin of a pyproject.toml would have, too.
    count = Counter(each.path for each in wanted.values())
    for at in [at for at, each in wanted.items() if count[each.path] > 1 and records[at].path.endswith(".toml")]:
        records[at] = wanted.pop(at).original
    there = {(each.code, (str if each.code == CODE else posixpath.dirname)(each.path))
             for each in wanted.values() if not each.why}  # fmt: skip
    counts = Counter(code for code, _ in there)
    listed = _is_listed(found, records, wanted.values())
    for at, twin in wanted.items():
        why = twin.why or _why_none(worker, twin, counts[twin.code], f"{records[at].path.rpartition('.')[0]}.in", found)
        if not why and twin.path in made:
            why = Sentence(_TAKEN, twin=twin.path)
        record = records[at]
        if why:
            said = Finding(record.path, TOP, twin.code, Level.INFO, why)
            found_there = record.findings if twin.text or not listed else twin.original.findings
            told = (replace(each, help=why) if each.code == NOT_ADDED else each for each in found_there)
            records[at] = replace(record, findings=(said, *told))
            continue
        mode = found[record.path].mode
        new = new_file(twin.path, twin.text, twin.code, twin.message, out, patches=patches, mode=mode)
        made[twin.path] = replace(new, findings=(*new.findings, *_as_far(record, twin.left)))
        records[at] = replace(twin.original, findings=_as_far(record, twin.original.findings))
    return [*records, *made.values()]


def _wanted(worker: FileWorker[Any], found: Mapping[str, Entry], records: Sequence[FileRecord]) -> dict[int, _Twin]:
    """The twin of each record that gets one, by its place, for files that are not old and have none yet."""
    wanted: dict[int, _Twin] = {}
    uses = [each for record in records if record.path.endswith(".py") for each in record.findings
            if each.open and not aside(each)]  # fmt: skip
    for at, record in enumerate(records):
        none = is_old(record.path) or any(each in found for each in twins(record.path))
        maker = None if none else _MAKERS.get(record.kind)
        if maker is not None and (twin := maker(worker, found[record.path], record, uses)) is not None:
            wanted[at] = twin
    return wanted


def _is_listed(found: Collection[str], records: Sequence[FileRecord], wanted: Iterable[_Twin]) -> bool:
    """Whether there is a list of packages for NPUs, or will be."""
    there = (twin for each in records if each.kind == FileKind.REQUIREMENTS.value for twin in twins(each.path))
    return any(each.code == ADDED and not each.why for each in wanted) or any(each in found for each in there)


def _why_none(worker: FileWorker[Any], twin: _Twin, count: int, source: str, found: Mapping[str, Entry]) -> str:
    """Why one of `count` twins that can be written is not; empty where it is. A list may be compiled from `source`."""
    if twin.code == ADDED and source in found:
        return Sentence(_COMPILED, twin=twin.path, source=source)
    if twin.code == ADDED and (folder := posixpath.dirname(source)):
        beside = (each for path, each in found.items() if posixpath.dirname(path) == folder and path.endswith(".py"))
        if any(_OF_A_SPACE.search(worker.read(each)) for each in beside):
            return Sentence(_SPACE, twin=twin.path, folder=folder)
    most, said = _MOST[twin.code]
    return Sentence(said, twin=twin.path, count=count) if count > most else ""


def _as_far(record: FileRecord, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings as far from the training as those of a record were."""
    first = record.findings[:1]
    return tuple(each.as_far_as(one) for one in first for each in findings) or (*findings,)


def _migrated(worker: FileWorker[Any], path: str, kind: FileKind, data: bytes, style: str, twin: bool) -> FileResult:
    """A file, or its twin, in a style."""
    settings = replace(worker.settings, style=style)
    return migrate_other(data, path, kind, settings, worker.target, worker.project, twin=twin)[0]


# --- scripts ---------------------------------------------------------------------------------------------------------


def _of_a_script(worker: FileWorker[Any], entry: Entry, record: FileRecord, _: Sequence[Finding]) -> _Twin | None:
    """The twin of a script that starts a program, with all that the style npu edits in it."""
    path, kind = record.path, FileKind.SHELL
    if not record.tokens.found or is_for_others(path) or f"/{path}".count("/."):
        return None
    data = worker.read(entry)
    source = text_of(data)
    if source is None:
        return None
    script = read_script(Document(source, path, kind, worker.settings, worker.target, worker.project))
    started = starts(script) if script is not None and needs_a_twin(script) else ""
    result = _migrated(worker, path, kind, data, "npu", twin=False) if started else None
    if result is None or not result.changed:
        return None
    twin = twin_of(path)
    left = [each for each in _migrated(worker, twin, kind, result.data, "npu", twin=False).findings if not each.applied]
    stays = _migrated(worker, path, kind, data, "portable", twin=True)
    original = replace(record, findings=stays.findings, ledger=stays.ledger, tokens=stays.tokens)
    stop = next((each for each in left if each.open and (each.blocks or load(each.code).blocks) in _STARTS), None)
    why = Sentence(_JOB, twin=twin) if started == JOB else ""
    why = why or (Sentence(_STOPS, twin=twin, line=stop.span.line) if stop is not None else "")
    message = Sentence(_SCRIPT, name=posixpath.basename(path))
    return _Twin(twin, result.data.decode(), CODE, message, original, tuple(left), why)


# --- lists of packages -----------------------------------------------------------------------------------------------


def _of_any_list(
    worker: FileWorker[Any], entry: Entry, record: FileRecord, uses: Sequence[Finding]
) -> _Twin | None:
    """The twin of a list that asks for torch; of what conda has printed, why there is none."""
    locks = [each.detail("lock") for each in record.findings if each.code == NOT_ADDED and each.open]
    data = worker.read(entry) if locks else b""
    source = text_of(data)
    if not locks or source is None:
        return None
    if lock := next(filter(None, locks), ""):
        return _beside_a_lock(worker, source, record, lock)
    if len(_BUILD.findall(source.text)) < _BUILDS:
        return _of_a_list(worker, data, source, record, uses)
    twin = _FORMS.sub(r"-npu\g<0>", record.path)
    as_info = replace(record, findings=tuple(replace(each, level=Level.INFO) for each in record.findings))
    return _Twin(twin, "", ADDED, "", as_info, why=Sentence(_PRINTED, twin=twin))


def _beside_a_lock(worker: FileWorker[Any], source: Source, record: FileRecord, lock: str) -> _Twin | None:
    """The list of what NPUs need beside a pyproject.toml, which stays as its lock file knows it."""
    document = Document(source, record.path, FileKind.REQUIREMENTS, worker.settings, worker.target, worker.project)
    listed = requirements_of(source.text, record.path, FileKind.REQUIREMENTS)
    if (releases := Releases.of_part(document, listed) or Releases.of(document)) is None:
        return None
    left = [each for each in record.findings if each.code != NOT_ADDED]
    needs = _with_bounds(needed_by_cann(listed, releases.cann), left, ())
    pins = releases.pins({normalised(each.name) for each in listed})
    text = "\n".join((f"# For NPUs, over what {lock} has", *pins, *needs, ""))
    message = Sentence(_PACKAGES, name=document.name)
    twin = record.path.replace("pyproject.toml", "requirements-npu.txt")
    return _Twin(twin, text, ADDED, message, replace(record, findings=tuple(left)))


def _of_a_list(
    worker: FileWorker[Any], data: bytes, source: Source, record: FileRecord, uses: Sequence[Finding]
) -> _Twin | None:
    """The twin of a list that asks for torch: one set that pip can install and the code below `uses`, with what CANN
    needs.
    """
    path, kind = record.path, FileKind.REQUIREMENTS
    name, twin = posixpath.basename(path), _FORMS.sub(r"-npu\g<0>", path)
    if twin == path or name in COG:
        return None
    result = _migrated(worker, path, kind, data, "npu", twin=False)
    if not any(each.code == ADDED and each.applied and each.edit for each in result.findings):
        return None
    document = Document(source, path, kind, worker.settings, worker.target, worker.project)
    listed = requirements_of(document.utf8.decode(), path, kind)
    releases = Releases.of_part(document, listed) or Releases.of(document)
    if releases is None:
        return None
    imported = {each.partition(".")[0] for each in worker.project.imported} if "/" not in path else ()
    # The releases that have all that the code beside it uses.
    older = lowest({each.detail("back") for each in uses if each.path.startswith(path[: -len(name)])} - {""})
    text, raised = _packages(name, result, releases, imported, older)
    done = (INDEX,) if name.endswith(".txt") else ()  # which pip reads from there
    of_raised = Sentence(_RAISED, twin=posixpath.basename(twin))
    left = [each for each in result.findings if not each.applied and each.code not in done]
    left = [replace(each, level=Level.INFO, help=of_raised) if _is_settled(each, raised) else each for each in left]
    original = replace(record, findings=tuple(left), ledger=result.ledger, tokens=result.tokens)
    read = result.data.decode() if f"-r {name}\n" in text else text
    why = _why_not_installed(source.text, read, twin)
    return _Twin(twin, text, ADDED, Sentence(_PACKAGES, name=name), original, why=why)


def _why_not_installed(original: str, read: str, twin: str) -> str:
    """Why another machine does not install a list; empty where it does."""
    if unread := next(filterfalse(_is_read, _LINE.findall(read)), "") if twin.endswith(".txt") else "":
        return Sentence(_UNREAD, twin=twin, line=unread)
    local = _ON_A_MACHINE.search(original)  # as pip freeze has printed it
    return Sentence(_LOCAL, twin=twin, line=original.count("\n", 0, local.end()) + 1) if local is not None else ""


def _is_read(line: str) -> bool:
    """Whether pip reads a line as a requirement."""
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as OfPip

    try:
        return bool(OfPip(line.strip()))
    except InvalidRequirement:
        return False


def _is_settled(finding: Finding, raised: Collection[str]) -> bool:
    """True for a finding on versions that a twin with other ones answers."""
    bounded = finding.code == PYTHON and bool(finding.detail(BOUND_BY))
    return bounded or (finding.code in (PYTHON, TOO_OLD) and normalised(finding.api) in raised)


def _packages(
    name: str, result: FileResult, releases: Releases, imported: Collection[str] = (), older: Sequence[str] = ()
) -> tuple[str, set[str]]:
    """The text of a twin, and what has another release in it: on top of the list itself where nothing has to go from
    it, else the list as the style npu has it, without what pip cannot install where there is no CUDA.
    """
    text, plain = result.data.decode(), name.endswith(".txt")
    newline = newline_of(text)
    of_cuda = (BOUND, True, "")
    left_out = {normalised(each.api) for each in result.findings if (each.code, each.open, each.blocks) == of_cuda}
    kept = _OF_CUDA.sub("", text if plain else _COMMENTS.sub("", text))
    text, raised = _raised(_once(kept, name), name, releases, result)
    listed = requirements_of(text, name, FileKind.REQUIREMENTS)
    names = {normalised(each.name) for each in without_elsewhere(listed)}
    left = {_LEFT_OUT: left_out & names, _NOT_OF_PIP: {each for each in names if plain and _OF_CONDA.fullmatch(each)}}
    gone = left_out.union(*left.values())
    on_top = _on_top(name, result, releases, names) if plain and not (raised or gone & names) else []
    text = newline.join((*on_top, "")) if on_top else _pinned(text, name, releases.torch, gone)
    if plain and any(each.code == INDEX and (on_top or not each.applied) for each in result.findings):
        text = f"--extra-index-url {CPU_INDEX}{newline}{text}"
    needs = [" ".join((said, *sorted(each))) for said, each in left.items() if each]
    needs += _brought(result, raised, names)
    needs += releases.pins({*imported} - names)[2:]  # which CUDA's users install with torch, as a README says
    needs += _with_bounds(needed_by_cann(listed, releases.cann), result.findings, raised)
    needs += _held_back(older, listed)
    if plain:
        return newline.join((text.removesuffix(newline), *needs, "")), raised
    return _of_conda(text, needs, listed), raised


def _brought(result: FileResult, raised: Collection[str], names: Collection[str]) -> Iterable[str]:
    """What older releases of raised packages brought themselves, but for what is listed."""
    bounds = (bound for each in result.findings if each.api in raised for bound in each.every_detail(BROUGHT))
    return (bound for bound in bounds if re.split("[<>=]", bound)[0] not in names)


def _of_conda(text: str, needs: Sequence[str], listed: Sequence[Requirement]) -> str:
    """A list of conda's with what it `needs` behind torch-npu, under a name of its own."""
    last = [*_LINE_OF_TORCH_NPU.finditer(text)][-1]
    lead = {"#": last["dash"].partition("-")[0]}  # of a comment
    rows = (f"{lead.get(each[0], last['dash'])}{each}" for each in needs)
    text = newline_of(text).join((text[: last.end()], *rows)) + text[last.end() :]
    return _NAME.sub(r"\g<0>-npu", _without_channel(_EMPTY.sub("", text), listed), count=1)


def _held_back(bounds: Sequence[str], listed: Sequence[Requirement]) -> list[str]:
    """Those of bounds such as `timm<0.9`, under a comment, that rule out some of what is listed, and leave some."""
    free = (each for each in listed if each.section != CONDA and each.name not in {*companions(), *TORCH})
    asked = {normalised(each.name): each.versions for each in free}
    parts = ((bound, *re.split("<=?", bound)) for bound in bounds)
    known = ((bound, asked[normalised(name)], limit) for bound, name, limit in parts if normalised(name) in asked)
    back = [bound for bound, has, limit in known if not (only_newer(has, limit) or only_older(has, limit))]
    return [_OLDER, *back] if back else []


def _once(text: str, name: str) -> str:
    """A list without the lines that it has twice."""
    lines: dict[tuple[str, str], tuple[int, int]] = {}
    again = []
    for each in sorted(requirements_of(text, name, FileKind.REQUIREMENTS), key=lambda each: each.start):
        start, end = line_of(text, each.start)
        line = text[start:end].strip()  # one of YAML may begin a list
        if line[-1:] != ":" and lines.setdefault((each.section, line), (start, end)) != (start, end):
            again.append((start, end))
    for start, end in reversed(again):
        text = text[:start] + text[end:].removeprefix("\r").removeprefix("\n")
    return text


def _without_channel(text: str, listed: Sequence[Requirement]) -> str:
    """A list of conda's without the channel of torch, where nothing else of it is from there."""
    if any(each.section == CONDA and _OF_CHANNEL.match(normalised(each.name)) for each in listed):
        return text
    return _CHANNEL.sub(lambda the: f"{the[1]}{the[4] or ''}" if the[4] or "-" in the[1]
                        else f"{the[1]}{the[2]}defaults{the[3]}", text)  # fmt: skip


def _with_bounds(needs: Sequence[str], found: Sequence[Finding], raised: Collection[str]) -> list[str]:
    """The bounds that CANN, or the import of what is older, needs; and a comment with what else CANN needs."""
    stays = (each for each in found if normalised(each.api) not in raised)
    bounds = [*dict.fromkeys(bound for each in stays for bound in each.detail(BOUND_BY).split(" and ") if bound)]
    bounded = {re.split("[<>=]", each)[0] for each in bounds}
    left = [each for each in needs if each.partition("<")[0] not in bounded]
    # A name alone is no line: it is CANN's matter, and most lists that maintainers have name none or two of them.
    unbound, bound = ([each for each in left if ("<" in each) == has] for has in (False, True))
    return [*bound, f"{OF_CANN} {' '.join(unbound)}", *([_BOUNDS, *bounds] if bounds else [])]


def _raised(text: str, name: str, releases: Releases, result: FileResult) -> tuple[str, set[str]]:
    """A list in which what is older is a floor, under a comment that says what it was. And the names of those."""
    listed = without_elsewhere(requirements_of(text, name, FileKind.REQUIREMENTS))
    names, new = {normalised(each.name) for each in listed}, {}
    for each, floor in floors(listed, result.findings, releases.torch, releases.pythons):
        bound = floor and below(normalised(each.name), floor, releases.pythons[0], names)
        new[each.clauses] = (each.name, floor and f">={floor}{bound}", _TOO_OLD)
    for versions, start, end in pythons_asked_for(text, name.lower()):
        if not (fit := fits(versions, releases.pythons)) or not _BOUNDED.search(versions):
            new[start, end] = ("python", f"={releases.pythons[0]}", _TOO_WIDE if fit else _TOO_OLD)
            # which conda's builds of an old pip are not for
            new |= {each.clauses: (each.name, "", _TOO_OLD) for each in listed if each.name == "pip" and each.versions}
    for each in _floors(listed, {package for package, _, _ in new.values()}):
        new.setdefault(each.clauses, (each.name, _EXACT.sub(r">=\1", each.versions.strip()), ""))
    return _replaced(text, new), {normalised(package) for package, _, _ in new.values()}


def _replaced(text: str, new: dict[tuple[int, int], tuple[str, str, str]]) -> str:
    """A list with other versions at some places (package, versions, reason), each reason in a comment above."""
    newline, whole = newline_of(text), "" in {reason for _, _, reason in new.values()}  # one comment says it for all
    for (start, end), (package, versions, reason) in sorted(new.items(), reverse=True):
        at = _BEGINS.match(text, line_of(text, start)[0])
        assert at is not None
        why = "" if whole or package == "pip" else f"# was {package}{text[start:end].strip()}, {reason}{newline}{at[0]}"
        rest = _REMARK.sub("", text[end:]) if reason else text[end:]
        text = f"{text[: at.end()]}{why}{text[at.end() : start]}{versions}{rest}"
    return f"{_FLOORS}{newline}{text}" if whole else text


def _floors(listed: Sequence[Requirement], raised: Collection[str]) -> list[Requirement]:
    """The exact pins that go with what is `raised`: all where pip freeze has printed the list, as it has those of what
    packages drag in, and what is newer now asks for newer ones; and conda's beside another Python.
    """
    pinned = [each for each in listed if _EXACT.fullmatch(each.versions.strip()) and not each.address]
    frozen = bool(raised) and {normalised(each.name) for each in pinned} >= _DRAGGED_IN
    free = (each for each in pinned if normalised(each.name) not in {*companions(), *TORCH, TORCH_NPU, "python"})
    return [each for each in free if frozen or ("python" in raised and each.section == CONDA)]


def _on_top(name: str, result: FileResult, releases: Releases, names: Collection[str]) -> list[str]:
    """The lines of a twin that begins with its list; none where the style npu does more than to add some to that."""
    edits = [(each.code, each.edit) for each in result.findings if each.applied and each.edit]
    if any(edit.before for _, edit in edits):
        return []
    added = [edit.after.strip() for code, edit in edits if code == ADDED]
    condition = added[0].partition(releases.torch_npu)[2]
    pins = [f"{pin}{condition}" for pin in releases.pins(names)] if len(added) == 1 else added
    return [f"-r {name}", *pins]


def _pinned(text: str, name: str, torch: str, left_out: Collection[str]) -> str:
    """A list that asks for the one torch that its torch-npu is for, where it allowed others too, without the lines of
    some packages.
    """
    for each in reversed(requirements_of(text, name, FileKind.REQUIREMENTS)):
        of_cuda = normalised(each.name) in left_out or each.name.startswith("nvidia-")
        if of_cuda:
            start, end = line_of(text, each.start)
            text = text[:start] + text[end:].removeprefix("\r").removeprefix("\n")
        elif normalised(each.name) in TORCH and not each.address and each.versions != f"=={torch}":
            gap = " " if text[each.clauses[0] : each.clauses[1]].endswith(" ") else ""
            text = f"{text[: each.clauses[0]]}=={torch}{gap}{text[each.clauses[1] :]}"
    return text


_MAKERS: dict[str, Callable[[FileWorker[Any], Entry, FileRecord, Sequence[Finding]], _Twin | None]] = {
    FileKind.SHELL.value: _of_a_script,
    FileKind.REQUIREMENTS.value: _of_any_list,
}
