"""What the user can do where a script stopped for what is missing around it: a package, data, a working folder, an
option at the wrong place. Each line has the command to type."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from transplt.base.disk.manifest import PAGE, read_manifest
from transplt.base.render.proofs import Seen, proofs
from transplt.program.outside_packages import options_of, outside_packages
from transplt.proof.launch.interpreter import install_with, lacks
from transplt.proof.launch.options import RunOptions
from transplt.proof.launch.runner import emulated_packages, ready_stubs, stub_of
from transplt.proof.launch.shared_options import typed_again
from transplt.proof.launch.stacks import below
from transplt.rules.distributions import distribution_of
from transplt.rules.packages import fails_to_load

_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'")
_FILE = re.compile(r"^(?:FileNotFoundError|NotADirectoryError): .*?: (?:b)?'([^'\n]+)'$")
#: What torch, pandas and h5py say of a folder or a file that they were to write.
_FOLDER = re.compile(
    r"^RuntimeError: Parent directory (?P<folder>.+) does not exist\.$|"
    r"^OSError: Cannot save file into a non-existent directory: '(?P<directory>.+)'$|"
    r"^\w+Error: .*[Uu]nable to (?:synchronously )?create file \(.*?name = '(?P<file>[^']+)', errno = 2\b"
)
#: What urllib, requests, httpx and huggingface_hub say where nobody answers.
_DOWNLOAD = re.compile(
    r"^(?:ConnectionError|Connect(?:ion)?Timeout|ConnectError|MaxRetryError|NewConnectionError|ProxyError|SSLError|URLError"
    r"|HTTPError|gaierror|LocalEntryNotFoundError|OfflineModeIsEnabled|OSError: We couldn't connect)\b"
)
#: The folder of the copy in which a run of a proof starts.
_COPY = re.compile(r"^.*/transplt-prove-[^/]+/[^/]+/")
#: What argparse says of a command line.
_SAID = re.compile(r"^[^\n]*?: error: ([^\n]+)", re.M)
#: What NumPy says of a name that it no longer has.
_REMOVED = re.compile(r"was removed in the NumPy 2\.0 release|^AttributeError: module 'numpy' has no attribute")
#: What may be the path of data in a sentence of the project's own.
_PATH = re.compile(r"(?<![\w:/.-])(?P<path>(?:\.{0,2}/)?(?P<first>[A-Za-z_][\w.-]*)/(?:[\w.-]+/)*[\w.-]*\w)")
_PICTURES = re.compile(r"^\w+ of (\w+) was (\d+) random pictures")
#: How many pictures are enough for one batch of most examples.
_ENOUGH = 256
#: How far below the folder of a project, and in how many folders, a module of its own is looked for.
_DEEPEST, _MOST_FOLDERS = 3, 500
#: Files that name what a project requires, perhaps from a repository and not from an index.
_REQUIRED = ("requirements.txt", "conda*.y*ml", "env*.y*ml", "pyproject.toml", "setup.py")
_OTHER_PATH = (
    "give the script an absolute path that exists, if it has an option for this, or replace the code that reads the "
    "data with --stubs FILE.py"
)
#: The exit code for a command line that a program does not understand, and of a Python that finds no script.
_USAGE = 2
#: Those of a process that the system ended, as it does where memory is short.
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
#: Options with which scripts do less, by what they are called, and the value that does for a look at some steps.
_SMALLER = (
    (re.compile(r"(?:n_?|num_?|max_?|train_?)*epochs?"), 1),
    (re.compile(r"(?:per_device_|train_|mini_?|global_)*(?:batch_?size|bs)"), 4),
    (re.compile(r"(?:n_?|num_?|max_?|total_?|train_?)*(?:iters?|iterations|steps)"), 20),
    (re.compile(r"(?:n_?|num_?|max_?|limit_?|train_?)*(?:samples|examples|subset(?:_size)?)"), 64),
)


@dataclass(frozen=True)
class Asked:
    """What was started: `command` is `run` or `prove`, `own` are its options, `root` the folder of the project, and
    `folder` the one in which the script started (for a proof, the original, of which each run gets a copy)."""

    command: str
    options: RunOptions
    root: Path
    folder: Path
    own: Collection[str] = ()

    @property
    def copied(self) -> bool:
        return self.command == "prove"


def advice(
    asked: Asked, code: int, processes: Sequence[dict[str, Any]], known: Iterable[str] = (), *, too_long: bool = False,
    errors: str = "",
) -> list[str]:  # fmt: skip
    """What helps a run that ended with `code`, or took `too_long`, from the records of its processes, and the `errors`
    that nobody saw; nothing for one that ended well. What is `known` of the lines at which it stopped (`foretold`)
    comes first."""
    if too_long or code in _KILLED:
        return [*known, *cut_down(asked)]
    if not code:
        return []
    raised = [each["exception"] for each in processes if each["exception"] and not each.get("launcher")]
    raised.sort(key=lambda each: each.get("time", 0.0))
    lines = [*known, *(line for each in raised for line in _of_reason(asked, each))]
    if code == _USAGE and not raised:
        lines += _of_usage(asked, processes, errors)
    if raised and not lines:
        lines += _of_pictures(asked, processes)
    return [*dict.fromkeys(lines)]


def cut_down(asked: Asked) -> list[str]:
    """The command with which the script does less, by the options that it has for that; nothing without any."""
    words = smaller_words(asked)
    if not words:
        return []
    context = click.get_current_context(silent=True)
    if context is not None and context.command.name == asked.command:
        command = typed_again(context, *words)
    else:
        command = f"--prove {shlex.quote(shlex.join([asked.options.script, *asked.options.arguments, *words]))}"
    return [f"cut it down with the options that the script has: {command}"]


def smaller_words(asked: Asked) -> list[str]:
    """`--epochs 1 --batch-size 4`: the first option of each kind that the script has, and is not given."""
    options = asked.options
    if options.shell or options.module:
        return []
    script = Path(options.script)
    declared = options_of(script if script.is_absolute() or not asked.copied else asked.folder / script, asked.root)
    given = {word.partition("=")[0] for word in options.arguments}
    words = []
    for pattern, value in _SMALLER:
        found = [each for name, each in sorted(declared.items()) if pattern.fullmatch(name.lower())]
        counts = [each for each in found if not any(type(default) in (bool, str) for default in each.default)]
        if counts and not given & {each.words for each in found}:
            words += [counts[0].words, str(value)]
    return words


def foretold(root: Path, stops: Iterable[Seen]) -> Iterator[str]:
    """The actions of a migration that are about the lines at which a program of its output stopped."""
    for number, title, lines in proofs(read_manifest(root) or {}, stops):
        places = ", ".join(dict.fromkeys(":".join(line.split(":", 2)[:2]) for line in lines))
        yield f"see action {number} of the migration in {PAGE}, about {places}: {title}"


def _of_reason(asked: Asked, error: dict[str, Any]) -> Iterator[str]:
    reason, writes = str(error["reason"]), bool(error.get("writes"))
    module, file, folder = (each.match(reason) for each in (_MODULE, _FILE, _FOLDER))
    if module is not None:
        yield from _of_module(asked, module[1].partition(".")[0])
    elif folder is not None:
        made = folder["folder"] or folder["directory"] or os.path.dirname(folder["file"])
        yield _of_folder(asked, folder["file"] or "", made)
    elif file is not None and writes:
        yield _of_folder(asked, file[1], os.path.dirname(file[1]))
    elif file is not None:
        yield _of_file(asked, file[1])
    elif _REMOVED.search(reason) is not None:
        of_own = error.get("called", "numpy") in ("", "numpy")
        older = f"{'the script' if of_own else error['called']} needs NumPy 1 (np.int and np.float: before 1.24)"
        listed = _requirements(asked) or "a new requirements.txt, with all that the project imports"
        other = "; or replace the name in the original, and migrate again" if of_own else ""
        yield f"{older}: write numpy<2 into {listed}, and {_setup(asked)}{other}"
    elif "wandb login" in reason:
        yield f"Weights & Biases needs a key; without one: WANDB_MODE=offline transplt {asked.command} ..."
    elif _DOWNLOAD.match(reason):
        data = "and name it with --data, " if asked.copied else ""
        yield (
            "the script downloads something, and the server did not answer: download it elsewhere, put it where the "
            f"script looks for it, {data}or replace the download with --stubs FILE.py"
        )
    else:
        yield from _of_a_path(asked, _in_project(asked, reason))


def _of_a_path(asked: Asked, sentence: str) -> Iterator[str]:
    """What helps where a sentence names a path in the project at which there is nothing."""
    root = asked.root if asked.copied else asked.folder
    for match in _PATH.finditer(sentence):
        place = root / match["path"]
        # Else it may be words with a stroke between them: input/output.
        is_one = place.suffix or (root / match["first"]).is_dir()
        there = any(place.glob("[!.]*")) if place.is_dir() else place.exists()
        if is_one and not there and not os.path.isabs(match["path"]):
            yield _of_file(asked, match["path"])
            return


def _of_module(asked: Asked, name: str) -> Iterator[str]:
    """What helps where a module is missing, and the others that would be missing next."""
    folders = _folders(asked.root)
    own = next((each for each in folders if (each / f"{name}.py").is_file() or (each / name).is_dir()), None)
    if own is not None:
        called = name if (own / name).exists() else f"{name}.py"
        if own == asked.root:
            yield f"{called} is a module of the project, in its top folder: {_from_the_top(asked)}"
        else:
            place = below(str(own.resolve()), asked.root)
            path = shlex.quote(place if asked.copied else _short(own))
            yield f"{called} is a module of the project, in {place}: PYTHONPATH={path} transplt {asked.command} ..."
        return
    given = {stub_of(each)[0] for each in asked.options.stubs}
    yield from _of_packages(asked, [name, *(each for each in _others(asked, given) if each != name)], given)


def missing_packages(asked: Asked) -> list[str]:
    """What helps a script that cannot be loaded, before it is started; nothing where it may be, or where a stub file of
    the user's may stand for what is missing."""
    given = {stub_of(each)[0] for each in asked.options.stubs}
    if given - {stub_of(each)[0] for each in ready_stubs()}:
        return []
    wanted = _others(asked, given)
    return [*_of_packages(asked, wanted, given)] if wanted else []


def _of_packages(asked: Asked, wanted: list[str], given: Collection[str]) -> Iterator[str]:
    ready = {each for each in ready_stubs() if stub_of(each)[0] not in given}
    install = install_with(asked.options.python)
    where = " before SCRIPT" if asked.command == "run" else ""
    for each in sorted(ready.intersection(wanted)):
        yield (
            f"add --stubs {each}{where} to use random pictures and untrained models ({each}={_ENOUGH} for {_ENOUGH} "
            f"pictures in each data set), or install {each}: {install} {distribution_of(each)}"
        )
    for each in wanted:
        if fails_to_load(each):
            yield (
                f"{each} is built for CUDA, and cannot be loaded here: write stand-ins for what the script uses of it, "
                f"and name their file with --stubs{where}"
            )
    missing = [each for each in wanted if each not in ready and not fails_to_load(each)]
    if missing:
        other = ", or use --python with an environment that has PyTorch as well" if "--python" in asked.own else ""
        lines = f", by its line in {file} where it has one" if (file := _requirements(asked)) else ""
        what = " ".join(dict.fromkeys(map(distribution_of, missing)))
        names = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        yield f"{_setup(asked)}; or install {names}{lines}: {install} {what}{other}"


def _requirements(asked: Asked) -> str:
    return next((each.name for pattern in _REQUIRED for each in sorted(asked.root.glob(pattern))), "")


def _setup(asked: Asked) -> str:
    """The command that makes an environment of all that a project asks for."""
    place = "" if asked.root.resolve() == Path.cwd() else f" {shlex.quote(_short(asked.root))}"
    return f"install all that the project requires: transplt run --setup{place}"


def _folders(root: Path) -> Iterator[Path]:
    """The folder of a project and those below it, the nearest first, as far as a module of it may be looked for."""
    waiting = deque([(root, 0)])
    for _ in range(_MOST_FOLDERS):
        if not waiting:
            return
        folder, depth = waiting.popleft()
        yield folder
        if depth < _DEEPEST:
            with contextlib.suppress(OSError):
                below = sorted(each for each in folder.iterdir() if each.is_dir() and each.name.isidentifier())
                waiting.extend((each, depth + 1) for each in below)


def _others(asked: Asked, given: Collection[str]) -> list[str]:
    """What else is missing for the script to load, as far as its files say it."""
    if asked.options.shell or asked.options.module:
        return []
    script = Path(asked.options.script)
    script = script if script.is_absolute() or not asked.copied else asked.folder / script
    emulated = {"torch_npu", *emulated_packages(), *(Path(each).stem for each in given)}
    return lacks(asked.options.python, sorted(outside_packages(script, asked.root) - emulated))


def _from_the_top(asked: Asked) -> str:
    """How a script in a sub-folder is started so that it finds the modules at the top of its project."""
    if asked.copied:
        return "PYTHONPATH=. transplt prove ..., since each run starts there"
    script = below(str(Path(asked.options.script).resolve()), asked.root)
    module = script.removesuffix(".py").split("/")
    start = f"cd {shlex.quote(_short(asked.root))} && transplt run"
    if all(part.isidentifier() for part in module):
        return f"{start} ... -m {'.'.join(module)} ..."
    return f"{start} ... {shlex.quote(script)} ..., with PYTHONPATH=. before transplt"


def _of_file(asked: Asked, path: str) -> str:
    """Where a file was looked for, and how the script finds it."""
    path = _in_project(asked, path)
    if path.startswith(("/", "~")):
        return f"there is no {path} on this machine: {_OTHER_PATH}"
    if asked.copied:
        here, shortest = Path.cwd() / path, Path(path).as_posix()
        if here.exists():
            return f"each run starts in a copy of its project: give {path} as an absolute path, {here.resolve()}"
        if path.startswith(".."):
            return f"each run starts in a copy of its project, and {path} leads out of it: {_OTHER_PATH}"
        return (
            f"put the data, a link to it or a small sample at {_short(asked.root / shortest)} and add "
            f"--data {shlex.quote(shortest.partition('/')[0])}, for both programs; or replace the code that reads it "
            "with --stubs FILE.py"
        )
    first = Path(path).parts[0]
    found = next((each for each in _above(asked) if (each / first).exists()), None)
    if found is not None and not (asked.folder / first).exists():
        return _started_elsewhere(asked, first, found)
    return (
        f"the script started in {asked.folder} and looked for {path} there: put the data, a link to it or a small "
        "sample there; start the script in the folder that has the data; or replace the code that reads it with "
        "data with --stubs FILE.py"
    )


def _of_folder(asked: Asked, path: str, folder: str) -> str:
    """How the script gets a folder that it writes into, the file `path` (or something, where that is not known)."""
    path, folder = _in_project(asked, path), _in_project(asked, folder)
    inside = not folder.startswith(("/", ".."))
    found = next((each for each in _above(asked) if (each / folder).is_dir()), None) if inside else None
    if found is not None and not asked.copied and not (asked.folder / folder).is_dir():
        return _started_elsewhere(asked, folder, found)
    what = f"the script writes {path or 'a file'} into {folder}, a folder that does not exist"
    made = _short(asked.root / folder) if asked.copied and inside else folder
    other = ", in the other project too, since each run starts in a copy" if asked.copied and inside else ""
    return f"{what}: mkdir -p {shlex.quote(made)}{other}; or create it in the script: os.makedirs(..., exist_ok=True)"


def _started_elsewhere(asked: Asked, name: str, found: Path) -> str:
    inside = replace(asked.options, script=below(str(Path(asked.options.script).resolve()), found))
    return (
        f"{name} is in {_short(found)}, and the script started in the current folder: "
        f"cd {shlex.quote(_short(found))} && {_again(inside, asked.command)}"
    )


def _in_project(asked: Asked, path: str) -> str:
    """A path as it is in the project, where it lies in the copy in which a run started."""
    return _COPY.sub("", path) if asked.copied else path


def _of_usage(asked: Asked, processes: Sequence[dict[str, Any]], errors: str) -> Iterator[str]:
    """Why a command line was not understood, or no script found."""
    words = [word.partition("=")[0] for word in asked.options.arguments]
    own = [word for word in dict.fromkeys(words) if word in asked.own]
    if own:
        what = f"{', '.join(own)} {'is an option' if len(own) == 1 else 'are options'} of transplt {asked.command}"
        where = "before SCRIPT" if asked.command == "run" else "before the --"
        yield f"{what}: write {'it' if len(own) == 1 else 'them'} {where}; what follows is for the script"
    if asked.copied and not own:
        words = [asked.options.python, asked.options.script, *asked.options.arguments]
        command = f"cd {shlex.quote(_short(asked.root))} && {shlex.join(words)}"
        said = _SAID.findall(errors)
        why = f"it says: {said[-1]}" if said else f"why: {command}"
        yield f"the script does not accept the arguments after --: {why}"
    started = any(each.get("torch") for each in processes)
    if asked.options.shell and not started and not asked.copied and asked.folder.resolve() != asked.root.resolve():
        inside = replace(asked.options, script=below(str(Path(asked.options.script).resolve()), asked.root))
        yield (
            f"launch scripts start in the current folder: cd {shlex.quote(_short(asked.root))} && "
            f"{_again(inside, asked.command)}"
        )


def _of_pictures(asked: Asked, processes: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A batch that is larger than a data set of random pictures is a usual cause of any error behind it."""
    asked_for = {Path(path).stem for path, count in map(stub_of, asked.options.stubs) if count}
    for note in dict.fromkeys(note for each in processes for note in each["notes"]):
        found = _PICTURES.match(note)
        if found is not None and found[1] not in asked_for and int(found[2]) < _ENOUGH:
            smaller = "".join(f"{line}; or " for line in cut_down(asked))
            more = f"--stubs {found[1]}={_ENOUGH} makes more"
            yield f"data sets had {found[2]} pictures, fewer than a batch may need: {smaller}{more}"


def _above(asked: Asked) -> Iterator[Path]:
    """The folders in which a script may want to be started: its project's and its own."""
    if asked.options.module:
        return
    yield asked.root.resolve()
    yield Path(asked.options.script).resolve().parent


def _again(options: RunOptions, command: str) -> str:
    """The command once more, as far as it matters here."""
    stubs = [word for each in options.stubs for word in ("--stubs", each)]
    return " ".join(["transplt", command, *map(shlex.quote, stubs), "...", shlex.quote(options.script), "..."])


def _short(path: Path) -> str:
    """A path relative to the current folder where it lies below it."""
    return below(str(path.resolve()), Path.cwd())
