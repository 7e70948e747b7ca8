"""Commands and code in documents: with `--docs` they are edited as scripts and modules are, else each is reported. In
the portable style none is edited: those for an NPU come beside them.

Text outside of blocks is for people, and stays. A block that the shell's grammar does not read as a whole (it holds
`<your data>`, or two ways to do the same) is read command by command.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from transplt.base.finding import Effort, Level
from transplt.base.text.cuda_words import mentions_cuda
from transplt.base.text.requirement import Requirement, normalised
from transplt.edits.edit import Edit, Extent, Finds, Found, Kept, Note, extent_of
from transplt.engine.files.dependencies.codes import PYTHON as OLDER_PYTHON
from transplt.engine.files.dependencies.codes import in_bytes, of_older_pin, without_python
from transplt.engine.files.dependencies.versions import TORCH, TORCH_NPU, Releases
from transplt.engine.files.document import Document
from transplt.engine.files.documents.blocks import PYTHON, Block, blocks
from transplt.engine.files.embedded_pieces import in_lines, reads
from transplt.engine.files.install_commands import InstallCommand, install_commands
from transplt.engine.files.kind import FileKind
from transplt.engine.files.shell.arguments import MOVED
from transplt.rules.companions import older_pins
from transplt.rules.packages import TOO_OLD, advice_on_requirement, is_bound, package_installed_as
from transplt.rules.releases import fits

COMMAND = "NPU865"
_SUFFIXES = (".md", ".rst", ".markdown", ".rest", ".mdx", ".rmd")
#: What a user of the project reads first.
_README = re.compile(r"readme(?:\.\w+)?")
_GOES_ON = re.compile(rb"\\[ \t]*\r?\n?\Z")
#: What is installed or started for CUDA: wheels, images, cards of containers. The shell's editor does not speak of it.
_FOR_CUDA = re.compile(
    rb"/whl/cu\d+\S*|\+cu\d{2,3}\b|\bpytorch-cuda[=<> ]*[\d.]*|\bcudatoolkit[=<> ]*[\d.]*|\bnvcr\.io/\S+"
    rb"|\bnvidia/cuda:\S+|--gpus[= ](?=\"?(?:all|device)\b)|--runtime[= ]nvidia|\bnvidia-docker\b"
    rb"|--nproc[-_]per[-_]node[= ]gpu\b|--(?:trainer\.)?accelerator[= ](?:gpu|cuda)\b|\btiny-cuda-nn\b"
)
#: By whether --docs was given, and whether it edits some of a command.
_OF_DOCS = {(False, True): "; --docs makes the edits that are certain", (False, False): "; --docs does not edit this"}
#: By what begins such a word: what does the same for NPUs. Of wheels and packages another finding may say it.
_FOR_NPUS = (
    (re.compile(rb"--gpus|--runtime|nvidia-docker"), "write instead: --device /dev/davinci0 --device "
     "/dev/davinci_manager --device /dev/devmm_svm --device /dev/hisi_hdc"),
    (re.compile(rb"nvcr|nvidia/cuda"), "use a CANN image"),
    (re.compile(rb"--nproc"), "torchrun counts CUDA's cards by this: write the number of NPUs"),
    (re.compile(rb"--\S*accelerator"), "where Lightning reads it, it takes no NPU by a name: leave it out, with an "
     "Accelerator class of your own in the code"),
    (re.compile(rb"tiny-cuda-nn"), "nvcc builds it: leave it out, and write its networks with the layers of torch"),
)  # fmt: skip
_PLAIN = "install torch and torch-npu"
#: Of such words those with which a command stops, as it starts or builds.
_STOPS = re.compile(rb"--|nvidia-docker|tiny")
#: A server of models that no port of the project concerns.
_SERVER = re.compile(rb"\bnvcr\.io/nvidia/(?:tritonserver|deepstream|tensorrt)")
_SERVES = "it serves models on NVIDIA's cards: on NPUs, MindIE or a program over ACL does"
_INSTALLS = re.compile(rb"\binstall\b[^\n]*\btorch\b")
#: A word of a command that may switch something on: `--enable_xformers`, `enable_flash-attn`.
_SWITCH = re.compile(r"(?<!\S)((?:--(?:enable|use|with)[-_]|enable_)[\w-]+)")
#: What installs the project itself, or what it lists.
_INSTALLS_IT = re.compile(r"\binstall\b[^\n]*[ \t](?:\.(?!\S)|-[er]\b)")


def changes(document: Document) -> Finds:
    """What becomes of the blocks of a document."""
    if not document.name.endswith(_SUFFIXES):
        return
    if document.settings.style == "portable":
        for_npus = replace(document, settings=replace(document.settings, style="npu"))
        for each in changes(for_npus):
            if isinstance(each, Note) and each.message.endswith(": CUDA_VISIBLE_DEVICES"):
                yield Kept(each.extent, "both")  # the module hands it on
            elif isinstance(each, Note) and each.code == COMMAND:
                beside = f"{each.help.partition('; --docs ')[0]}; add the command for NPUs"
                yield replace(each, help=beside, api="", blocks="tidy")  # what is read stops nothing
            else:
                yield each
        return
    found = list(blocks(document.utf8, document.name))
    if is_first := _README.fullmatch(document.path.lower()) is not None:
        yield from _environment(document, found)
    for block in found:
        if not _names_cuda(document, block.lines):
            continue
        if block.language == PYTHON:
            edits = [each for each in in_lines(document, block.lines, FileKind.PYTHON) if isinstance(each, Edit)]
            if document.settings.docs:
                # The import as a reader needs it, without its comments for a linter.
                yield from (replace(each, new=str(each.new).replace("  # noqa: F401", "")) for each in edits)
            elif is_first:
                named = [each for each in edits if mentions_cuda(document.utf8[slice(*extent_of(each))].lower())]
                yield from _reported(document, block.lines, named, (), "code")
        else:
            yield from _commands(document, block)


def _environment(document: Document, parts: Sequence[Block]) -> Finds:
    """What the commands that install torch install with it that is too old for an NPU, or for the Pythons of torch_npu:
    nothing else asks for it, or it asks for the same. Of those that install the project itself, the Python alone.
    """
    releases, text = Releases.of(document), document.utf8.decode()
    met = document.project.floors if document.project.known else None
    if releases is None or not releases.pythons:
        return
    commands = list(_installed_in(parts, text))
    every = [each for command in commands for each in command.requirements]
    installs = any(normalised(each.name) in TORCH for each in every)
    if not installs and _INSTALLS_IT.search(text) is None:
        return
    found: list[Found] = [
        without_python(each.whole, f"the environment has python{each.versions}", releases)
        for each in every
        if each.name == "python" and not fits(each.versions, releases.pythons)
    ]
    of_pip = (command for command in commands if installs and not command.is_conda)
    pinned = [each for command in of_pip for each in command.requirements]
    found += (of_older_pin(each, releases) for each in older_pins(pinned, releases.pythons))
    found += _too_old(pinned, met)
    yield from in_bytes(text, found)


def _installed_in(parts: Sequence[Block], text: str) -> Iterator[InstallCommand]:
    """The commands of a text that stand in blocks, which follow each other."""
    starts = [block.lines[0][0] for block in parts]
    at = passed = 0
    for command in install_commands(text):
        at, passed = at + len(text[passed : command.start].encode()), command.start
        index = bisect_right(starts, at) - 1
        if index >= 0 and at < parts[index].lines[-1][1]:
            yield command


def _too_old(pinned: list[Requirement], met: Collection[tuple[str, str]] | None) -> Iterator[Note]:
    """What is pinned to a release that knows no NPU."""
    for each in pinned:
        advice = None if normalised(each.name) in TORCH else advice_on_requirement(each.name, each.versions, met)
        if advice is not None and advice.code == TOO_OLD and advice.level is Level.MANUAL:
            yield Note(
                (each.start, each.end), TOO_OLD, advice.level, advice.message, advice.package, advice.help, Effort.LOW,
                blocks=advice.blocks, details=advice.details,
            )  # fmt: skip


def _names_cuda(document: Document, lines: Sequence[Extent]) -> bool:
    text = b"".join(document.utf8[start:end] for start, end in lines)
    installs = document.settings.docs and _INSTALLS.search(text) is not None
    return installs or mentions_cuda(text.lower()) or _FOR_CUDA.search(text) is not None


def _commands(document: Document, block: Block) -> Finds:
    commands = list(_logical(document, block.lines))
    whole = reads(document, block.lines, FileKind.SHELL)
    parts = [block.lines] if whole else [lines for lines in commands if _names_cuda(document, lines)]
    found = [each for lines in parts for each in in_lines(document, lines, FileKind.SHELL)]
    made: list[Extent] = []
    if document.settings.docs:
        edits = [each for each in found if isinstance(each, Edit)]
        yield from edits
        made = [extent_of(each) for each in edits]
        found = [each for each in found if not isinstance(each, Edit)]
    # A Python is none of CUDA's.
    left = [each for each in found if isinstance(each, (Edit, Note)) and each.code != OLDER_PYTHON]
    left = [each for each in left if isinstance(each, Edit) or each.level is Level.MANUAL]
    for lines in commands:
        yield from _reported(document, lines, left, made)


def _logical(document: Document, lines: Sequence[Extent]) -> Iterator[list[Extent]]:
    """Lines that go on behind a backslash together."""
    group: list[Extent] = []
    for start, end in lines:
        group.append((start, end))
        if not _GOES_ON.search(document.utf8[start:end]):
            yield group
            group = []
    if group:
        yield group


def _told(found: Edit | Note) -> tuple[str, str]:
    """What a finding of a command is about, and what it says to do."""
    whole = found.api == TORCH_NPU  # the command is about torch, and its help says what installs it
    said = f"{found.message}; {found.help}" if whole else f"{found.api}: {found.help}" if found.help else found.message
    if isinstance(found, Edit):
        said = f"{found.api or 'here'}: write {found.new}" if found.new else f"{found.api or 'here'}: remove it"
    return "torch" if whole else found.api or found.message, said


def _bound(document: Document, lines: Sequence[Extent]) -> Iterator[str]:
    """What is left out of a command: words that switch on a package without a version for NPUs."""
    for start, end in lines:
        for match in _SWITCH.finditer(document.utf8[start:end].decode()):
            for part in re.split(r"[-_]", match[1]):
                row = package_installed_as(part) if part else None
                if row is not None and any(map(is_bound, row["import"])):
                    yield f"leave out {match[1]}: {row['name']} has no version for NPUs"


def _reported(
    document: Document, lines: Sequence[Extent], found: Sequence[Edit | Note], made: Sequence[Extent],
    what: str = "a command",
) -> Iterator[Note]:
    """One finding for a command, or code: what of it means nothing beside an NPU, but for what is edited (`made`)."""
    told: list[tuple[int, str, str]] = []  # where, about what, and what to do
    edited, stops, serves = False, what == "code", False
    for each in found:
        start = extent_of(each)[0]
        if any(a <= start < b for a, b in lines):
            edited |= isinstance(each, Edit)
            stops |= (each.code, str(getattr(each, "new", ""))[:3]) == (MOVED, "npu")
            told.append((start, *_told(each)))
    for a, b in lines:
        for match in _FOR_CUDA.finditer(document.utf8, a, b):
            if any(start <= match.start() < end for start, end in made):
                continue
            serves |= _SERVER.match(match.group()) is not None
            stops |= _STOPS.match(match.group()) is not None
            plain = _PLAIN * all(name != "torch" for _, name, _ in told)
            by_word = (said for word, said in _FOR_NPUS if word.match(match.group()))
            told.append((match.start(), match.group().decode().strip(), next(by_word, plain)))
    if not told:
        return
    at, first, _ = min(told, key=itemgetter(0))
    end = next(b for a, b in lines if a <= at < b)
    extent = (at, at + len(re.split(rb"[\s=]", document.utf8[at:end], maxsplit=1)[0]))
    names = dict.fromkeys(name for _, name, _ in told)
    help_ = "; ".join(dict.fromkeys([*(said for *_, said in told if said), *_bound(document, lines)]))
    help_ += _OF_DOCS.get((document.settings.docs, edited), "")
    message, blocks = f"this document has {what} for CUDA: {', '.join(names)}", "later" * stops
    if counted := [*filter(document.project.reads.counts, names)]:
        message, blocks = f"{message}; the project counts its cards by {', '.join(counted)}", blocks or "slow"
    level, help_ = (Level.INFO, _SERVES) if serves else (Level.MANUAL, help_)
    yield Note(extent, COMMAND, level, message, first, help_, Effort.LOW, blocks=blocks)
