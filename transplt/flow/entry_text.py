"""What a Python file says of what runs, read from its bytes: what it imports and when, and whether it trains.

Lines of imports, and words that training has: for files that nobody parses as well.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, product
from typing import NamedTuple

from transplt.base.text.text_search import Texts, on_lines_with
from transplt.flow.asked_names import Asked, asked_in, end_of_block
from transplt.flow.callees import FRAMEWORKS
from transplt.flow.option_defaults import Option, options_in
from transplt.flow.torch_branches import line_fails
from transplt.rules.packages import floors_met, holds_whole_files
from transplt.rules.tables import read_table
from transplt.syntax.modules import absolute, named_aside

#: Folders in which a project has its own package.
_LAYOUTS = ("src", "python", "lib", "packages")
_IMPORT = re.compile(
    rb"^(?P<indent>[ \t]*)(?:from[ \t]+(?P<base>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#(;]*)"
    rb"|import[ \t]+(?P<whole>[^\n#;]+))",
    re.M,
)
_NAME = re.compile(rb"(?:^|[,(])\s*([.\w]+)")
#: A line that holds something, with its indentation and its first word.
_LINE = re.compile(rb"([ \t]*)([a-z]+)\b")
_BRANCHES = (b"if", b"elif", b"else", b"try", b"except", b"finally", b"case", b"for", b"while", b"with")
#: A question whether a package is there, or whether the card is another than the NPU; not whether there is a GPU.
_ASKED = re.compile(
    rb"(?:if|elif)\b[ \t(]*(?!not\b)(?:[\w.]+(?<!\.is)_(?:available|installed)\b|(?:[\w.]*\.)?find_spec\("
    rb"|_?(?:HAS|HAVE)_\w+|_?(?:has|have)_\w+)",
)
_ASKED_FOR_A_CARD = re.compile(rb"cuda|gpu|npu|mps|xpu", re.I)
_ASKED_FOR_AN_NPU = re.compile(
    rb"if\b[ \t(]*(?!not\b)[\w.]*npu_(?:is_)?available|if\b[ \t(]*(?:torch\.)?npu\.is_available"
)
#: What a line imports, without the dots before it: a module, and the first name of it.
_MODULE = re.compile(rb"^[ \t]*(?:from|import)[ \t]+\.*(\w[\w.]*)(?:[ \t]+import[ \t(]+(\w+|\*))?", re.M)
_CATCHES = re.compile(rb"except\b(?:[ \t]*:|[^:\n]*\b(?:ImportError|ModuleNotFoundError|(?:Base)?Exception)\b)")
_SUPPRESSES = re.compile(rb"with\b[^\n]*\bsuppress\([^)\n]*\b(?:ImportError|ModuleNotFoundError|(?:Base)?Exception)\b")
_GIVES_UP = re.compile(rb"^[ \t]+(?:raise\b|(?:sys\.|os\.)?_?exit\()", re.M)
#: A branch of an entry of settings that is off where nobody sets it.
_OFF = re.compile(rb"(?:el)?if[ \t]+[\w.]+\.get\([ \t]*([\"'])(\w+)\1,[ \t]*False[ \t]*\)[ \t]*:")
#: A branch of an option that has one text: `elif opt.backbone == "grid_tcnn":`.
_IS_TEXT = re.compile(rb"(?:el)?if[ \t]+(?:\w+\.)+(\w+)[ \t]*==[ \t]*([\"'])([\w.-]+)\2[ \t]*:")
#: A branch that is taken unless somebody asks for it not to be.
_UNLESS = re.compile(rb"if[ \t]+not[ \t]+(?:[\w.]+\.)?(?:no|skip|disable|without)_\w+[ \t]*:")
#: A branch of a function that builds one of several, by the text that it is given first, and what others give it.
_SELECTS = re.compile(rb"(?:el)?if[ \t]+(\w+)[ \t]*==[ \t]*([\"'])([\w.-]+)\2[ \t]*:")
_BUILDS = re.compile(rb"def[ \t]+((?:get|build|make|create)_[A-Za-z]\w*)\([ \t\r\n]*(\w+)")
_GIVEN = re.compile(
    rb"[gbmc](?<!\w.)(?<!def .)(?:(?<!import .)|(?=\w+[ \t]+as\b))(?:et|uild|ake|reate)_[A-Za-z]\w*"
    rb"(?:\(\s*(?:[\"']([\w.-]+)[\"']|(\w+))\s*[,)])?"
)
_DEFAULT = (b"='", b'="', b" = '", b' = "', b": str = '", b': str = "')
#: A table, and its rows of a text and a name.
_TABLE = re.compile(rb"^(\w+)[ \t]*=[ \t]*\{([^{}]*)\}", re.M)
_ROW = re.compile(rb"[\"']([\w.-]+)[\"'][ \t]*:[ \t]*(\w+)[ \t]*(?=[,#\n]|$)")
_COMMENT = re.compile(rb"#[^\n]*")
_BOUND_NAMES = Texts(b"tensorrt", b"torch2trt", b"pycuda", b"cudart", b"cuda.bindings")
_BOUND = re.compile(rb"^(?:import|from)[ \t]+((?:tensorrt|torch2trt|pycuda|cuda|cudart)\b[.\w]*)", re.M)
#: A device that a program works out, or an NPU, which it sets in its settings: `config.trainer.device = get_name()`.
_SETS = re.compile(
    rb"^[ \t]*(?:config|cfg|conf|args|opt)\.([\w.]*\bdevice)[ \t]*=[ \t]*(?:[\w.]+\(|[\"']npu[\"'])", re.M
)
#: What a file does as it is loaded: a call, a loop, what no Python 3 reads; not what it defines.
_ACTS = re.compile(
    rb"^(?:(?:for|while|with)\b|[A-Za-z_][\w.]*\(|[A-Za-z_]\w*[ \t]*=[^=\n]*\(\)|if[ \t]+(?!TYPE_CHECKING)"
    rb"|(?:print|exec)[ \t]+[\w\"'%]|def[ \t]*\()",
    re.M,
)
_STARTS = Texts(b"__main__", b"parse_args(")
_TRAINS = Texts(b"Trainer(", b".fit(", b"deepspeed.initialize(", b"manual_backward(")
_INFERS = Texts(b"no_grad(", b"inference_mode(", b".eval()")
#: What makes a trainer of a library that takes CUDA or the CPU, by the roots of its packages: the NPU it never takes.
_WITHOUT_NPUS = (
    (frozenset({"lightning", "pytorch_lightning", "lightning_fabric"}), "Lightning",
     re.compile(rb"\b(?:Trainer|Fabric|LightningCLI)(?:\.from_argparse_args)?\(")),
    (frozenset({"audiotools"}), "audiotools", re.compile(rb"\bml\.Accelerator\b")),
    # Its setup_distribution takes the backend nccl and the device cuda:N (collie/utils/dist_utils.py).
    (frozenset({"collie"}), "CoLLiE", re.compile(rb"\bTrainer\(")),
)  # fmt: skip
#: What a file calls as it is loaded where it asks NVIDIA's library for its cards, and what stands for that.
_ASKS_NVML = re.compile(rb"^(?:\w+\.)?nvmlInit\(", re.M)
NVML = "pynvml.nvmlInit"
#: What loads a module of mmcv that is compiled, as every copy of its operators does.
_COMPILED = re.compile(rb"^\w+ *= *(?:\w+\.)*load_ext\(\s*['\"](\w+)['\"]", re.M)
COMPILED = "mmcv._"
#: What builds such modules.
BUILDS = "torch.utils.cpp_extension"
#: A call that trains, or may, by its name.
_MAY_TRAIN = re.compile(rb"(?i:train|fit|launch|learn|finetune)\w*\(")
_GOES_BACK = Texts(b".backward(")
#: In code: not in a comment, a text, or an example of a docstring.
_BACKWARD = re.compile(
    rb"^(?![ \t]*>>>)(?:[^'\"#\n]|'[^'\n]*'|\"[^\"\n]*\")*?(?<![\w.])(?P<whose>[\w.]*(?:super\(\))?)\.backward\(", re.M
)
_STEPS = re.compile(rb"opt(?:im(?:izer)?s?)?\w*(?:\[[^\]\n]*\])?\.step\(", re.IGNORECASE)
#: What hands a gradient on, a compiled module by its name: its `backward` is no pass through a loss.
_HANDS_ON = re.compile(
    rb"super\(\)|ctx(?:\.\w+)*|[\w.]*(?:\b_\w*(?:C|backend)|\bbackend|_(?:C|cuda|ext|cpp|backend|kernels?))"
)
_INDENT = re.compile(rb"[ \t]*")
#: Functions that run between steps, by their names, and a line that calls one.
BETWEEN_STEPS = r"_?(?:dump|eval|evaluate|export|plot|save|test|validate|visuali[sz]e)(?:_\w+)?\("
_BETWEEN = re.compile(
    rb"^(?P<indent>[ \t]+)(?:\w[\w, \t]*=[ \t]*)?(?:\w+\.)*(?P<call>%b)" % BETWEEN_STEPS.encode(), re.M
)
#: What is true as a counter begins, and loops whose counter begins at 0.
_OF_ZERO = re.compile(rb"if[ \t]+(\w+)[ \t]*%[ \t]*(?:\([^()\n]*\)|[\w.]+)[ \t]*==[ \t]*0[ \t]*:")
_FROM_ZERO = re.compile(
    rb"for[ \t]+\(?(\w+)\b[^\n]*[ \t]in[ \t][^\n]*"
    rb"(?:enumerate\((?![^\n]*(?:start|,[ \t]*\d))|range\([^,\n]*\))"
)
_DIFFERENTIATES = re.compile(rb"[ \t]+(?:async[ \t]+)?def[ \t]+(?:backward|jvp|vjp)\b")
#: What loads modules by names that are worked out.
_LOADS_BY_NAME = Texts(
    b"importlib", b"import_module", b"__import__(", b"instantiate(", b"LightningCLI(", b"jsonargparse",
    rb"\b_target_\b",
)  # fmt: skip
#: What knows by a name what other modules hold.
_REGISTERS = Texts(b"registry", b"Registry", b"REGISTRY")
_LIBRARIES = frozenset({*sys.stdlib_module_names, "torch", "numpy"})


#: A program that a command starts: by its file, or as a module.
_STARTED = re.compile(
    rb"(?:python[\d.]*|pypy3?|torchrun|deepspeed|accelerate[ \t]+launch|(?:lightning|fabric)[ \t]+run|srun"
    rb"|torch\.distributed\.(?:launch|run)|\$\{?PY\w*\}?)\b"
    rb"(?:[^\n;&|]|\\\r?\n){0,300}?(?:[ \t\"'/=]|\\\r?\n)(?:(?P<file>(?:[\w.-]+/)*\w[\w.-]*\.py)\b"
    rb"|-m[ \t]+(?P<module>(?!torch\b|pip\b|venv\b|pytest\b|accelerate\b|deepspeed\b)\w[\w.]*))"
    rb"|(?:(?<![\w/.-])\./|\b(?:ba)?sh[ \t]+(?:\./)?)(?P<script>(?:[\w-]+/)*[\w.-]+\.sh)\b"
)
#: A class that settings name for a program to load.
_NAMED = re.compile(rb"^[ \t-]*(?:_target_|target|class_path)[ \t]*:[ \t]*[\"']?([A-Za-z_]\w*(?:\.\w+)+)", re.M)
#: The rest of a command.
_REST = re.compile(rb"(?:[^\n\r;&|`#\\]|\\\r?\n){0,2000}")
#: Files whose commands are what people and services start: by their names in small letters.
_STARTING = re.compile(
    r"^[^/]*\.md$|(?:^|/)(?:readme[^/]*|[^/]*\.(?:sh|bash|slurm|sbatch|pbs|lsf)|[^/]*dockerfile[^/]*|makefile|cog\.ya?ml"
    r"|(?:docker-)?compose[^/]*\.ya?ml)$|^\.github/workflows/[^/]+$"
)


class Entry(NamedTuple):
    """What a Python file says of what runs: full names that it imports as it is loaded, when a function of it runs
    (`called`), in a branch or a try statement (`branched`), and where the program also runs without it (`guarded`);
    whether it trains, loads modules by name, is written to be started, and stands on a package without which nothing
    of it runs (bound_files.py); the `options` that it defines, the keys of its settings that it `sets` to a device, the
    versions of packages that what it uses of them needs (`floors`), whether it does something as it is loaded, and
    whether it imports `torch`, or another framework, by its name; `unasked` is what it imports where an entry of
    settings is set that is off by default, with that entry, or an option has a text, `option=text`;
    `infers`: it only takes a trained model. `never` is what it imports with another torch; `selected`: where a
    function is given a text, `(name, function, parameter=text)`;
    `given`: the texts that functions which build something are given first, `?` for what is not in sight; `asked`: what
    it uses of what it imports where an option is set; `loads_by_name`: it is no registry alone that loads modules.
    `tabled`: what a table of it takes from another file: `(name, option that is the key, its text)`. `trainer`: the
    library without NPUs through which it trains, where it is written to be started. `first`: the functions that run
    between steps by their names, and that its first step calls all the same, `plot(`.
    """

    imports: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    branched: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    trains: bool = False
    loads: bool = False
    starts: bool = False
    bound: bool = False
    options: tuple[Option, ...] = ()
    sets: tuple[str, ...] = ()
    floors: tuple[tuple[str, str], ...] = ()
    acts: bool = False
    framework: str = ""
    unasked: tuple[tuple[str, str], ...] = ()
    infers: bool = False
    never: tuple[str, ...] = ()
    selected: tuple[tuple[str, str, str], ...] = ()
    given: tuple[tuple[str, str], ...] = ()
    asked: Asked = ()
    loads_by_name: bool = False
    tabled: tuple[tuple[str, str, str], ...] = ()
    trainer: str = ""
    first: tuple[str, ...] = ()

    @property
    def taken(self) -> tuple[str, ...]:
        """All that it may import."""
        return (*self.imports, *self.called, *self.branched, *self.guarded, *(name for name, _ in self.unasked))


@cache
def _folder(kind: str) -> re.Pattern[str]:
    """The folders of code of somebody else, by their names or by what they hold."""
    return re.compile(read_table("support/substitutions.json")[kind])


def third_party(path: str) -> str | None:
    """The folder of the third-party project that a path lies in, None for the project's own code."""
    match = _folder("third_party").match(path)
    return match[0] if match is not None else None


def of_others(path: str) -> str | None:
    """The folder of code of somebody else around a file: named so, or a copied library, where its name is not that of
    the project's own package (`src/diffusers`).
    """
    match = None if third_party(path) is not None else _folder("copied").match(path)
    if match is None:
        return third_party(path)
    return None if posixpath.basename(match["above"]) in _LAYOUTS else match[0].rstrip("/")


def scripts_started(data: bytes, path: str) -> tuple[tuple[str, str], ...]:
    """The Python files and launch scripts that commands of a README, a launch script, a container or a workflow start,
    as they say it, and what stands behind each in its command; of settings the full names of what they name.
    """
    if path.endswith((".yaml", ".yml")) and (b"target" in data or b"class_path" in data):
        return tuple((name.decode(), "") for name in dict.fromkeys(_NAMED.findall(data)))
    of_a_service = path.startswith(".github/workflows/")
    if not _STARTING.search(path.lower()) or third_party(path) or (named_aside(path) and not of_a_service):
        return ()
    found: dict[tuple[str, str], None] = {}
    for match in _STARTED.finditer(data):
        name = match["file"] or match["script"] or match["module"].replace(b".", b"/") + b".py"
        rest = _REST.match(data, match.end())
        words = rest[0].replace(b"\\\n", b" ").decode("utf-8", "replace") if rest is not None else ""
        found[name.decode("ascii", "replace").removeprefix("./"), " ".join(words.split())] = None
    return tuple(found)


def _imports(data: bytes, path: str) -> Iterator[tuple[re.Match[bytes], list[str]]]:
    """The lines that import, with the full names that they do."""
    for match in on_lines_with(b"import", _IMPORT, data):
        if (base := match["base"]) is None:
            yield match, _names(match["whole"])
        else:
            named = base.decode("ascii", "replace")
            module = named.lstrip(".")
            full = absolute(path, len(named) - len(module), module)
            yield match, [full, *(f"{full}.{name}" if full else name for name in _names(match["names"]))]


def entry_of(data: bytes, path: str, torch: str = "") -> Entry:
    """What a Python file says; comments and strings may be taken for imports, which puts less aside. `torch` is the
    release that is meant, where tests of it are to be answered.
    """
    found: tuple[set[str], ...] = (set(), set(), set(), set(), set(), set())
    selected: set[tuple[str, str, str]] = set()
    unasked: set[tuple[str, str]] = set()
    imported: set[str] = set()
    own: dict[bytes, str] = {}  # what the lines import last, by the name that it has here
    lines: list[tuple[int, int]] = []
    for match, names in _imports(data, path):
        imported.update(names)
        lines.append(match.span())
        own[match[0].split()[-1]] = ["", *names][-1]
        names = [name for name in names if name and name.partition(".")[0] not in _LIBRARIES]
        if names and (choice := _selecting(data, match)) is not None:
            selected.update((name, *choice) for name in names)
        elif names:
            when, switches = _when(data, match.start(), len(match["indent"]), torch)
            found[when].update(names)
            unasked.update(product(names, switches))
    if b"nvmlInit" in data and _ASKS_NVML.search(data) is not None:
        found[0].add(NVML)
    if b"load_ext" in data:
        found[0].update(f"mmcv.{name.decode()}" for name in _COMPILED.findall(data))
    if path.endswith("setup.py") and b"cpp_extension" in data:
        found[0].add(BUILDS)
    at_once, called, branched, guarded, _, never = (tuple(sorted(names)) for names in found)
    by_name, starts = _LOADS_BY_NAME.in_(data), _STARTS.in_(data)
    loads = by_name | _REGISTERS.in_(data)
    trains = _trains(data)
    aside = named_aside(path)  # nobody asks such a file for what a program says
    options = () if aside else options_in(data)
    sets = _SETS.findall(data) if b".device" in data and not aside else []
    keys = tuple(sorted({each.decode() for each in sets}))
    # TensorRT or CUDA's own interface at its top, and no training
    stands = _BOUND.finditer(data) if _BOUND_NAMES.in_(data) and not _GOES_BACK.in_(data) else ()
    bound = any(holds_whole_files(match[1].decode()) for match in stands)
    floors = () if aside else floors_met({*at_once, *called, *branched, *guarded}, data)
    asked = () if aside else asked_in(data, lines, chain.from_iterable(found))
    infers = _INFERS.in_(data) and _MAY_TRAIN.search(data) is None  # it computes without gradients alone
    roots = {name.partition(".")[0] for name in imported}
    framework = "torch" if "torch" in roots else min(FRAMEWORKS & roots, default="")
    acts = "/" not in path and _ACTS.search(data) is not None
    made = (name for of, name, makes in _WITHOUT_NPUS if of & roots and makes.search(data)) if starts else ()
    trainer = next(iter(made), "") if b"npu" not in data.lower() else ""
    return Entry(
        at_once, called, branched, guarded, trains, loads, starts, bound, options, keys, floors, acts,
        framework, tuple(sorted(unasked)), infers, never, tuple(sorted(selected)), _given(data),
        asked, by_name, tuple(_tabled(data, own)), trainer, () if aside else _in_first_step(data),
    )  # fmt: skip


def _tabled(data: bytes, imported: Mapping[bytes, str]) -> Iterator[tuple[str, str, str]]:
    """What tables of a file hold of what it imports, where one is asked with an option: `models[args.arch](...)`."""
    for table in _TABLE.finditer(data) if b"{" in data and imported else ():
        held = [(imported[name], key.decode()) for key, name in _ROW.findall(table[2]) if name in imported]
        asked = re.search(rb"\b%s\[(?:\w+\.)*(\w+)\]" % table[1], data) if held else None
        yield from ((name, asked[1].decode(), key) for name, key in held) if asked is not None else ()


def _trains(data: bytes) -> bool:
    """True for a file that calls a trainer, or goes back through a loss: not where a class differentiates, or binds
    compiled code, alone. Beside a step of an optimizer a method `backward` is the pass itself.
    """
    if _TRAINS.in_(data) or not _GOES_BACK.in_(data):
        return _TRAINS.in_(data)
    passes = (each for each in on_lines_with(b".backward(", _BACKWARD, data) if not _HANDS_ON.fullmatch(each["whose"]))
    return any(not _differentiates(data, match.start("whose")) or _STEPS.search(data) for match in passes)


def _differentiates(data: bytes, at: int) -> bool:
    """True for what stands in a method `backward`, `jvp` or `vjp`."""
    at = data.rfind(b"\n", 0, at) + 1
    depth = len(_INDENT.match(data, at)[0])  # type: ignore[index]  # it matches anywhere
    while depth and (header := _above(data, at, depth)) is not None:
        if header[2] in (b"def", b"async"):
            return _DIFFERENTIATES.match(data, header.start()) is not None
        at, depth = header.start(), len(header[1])
    return False


def _in_first_step(data: bytes) -> tuple[str, ...]:
    """The functions that run between steps by their names which a loop that goes back calls in its first round."""
    found = set()
    for match in _BETWEEN.finditer(data) if _GOES_BACK.in_(data) else ():
        loop, counter = _above(data, match.start(), len(match["indent"])), None
        if loop is not None and (asked := _OF_ZERO.match(data, loop.start(2))) is not None:
            loop, counter = _above(data, loop.start(), len(loop[1])), asked[1]
        counts = _FROM_ZERO.match(data, loop.start(2)) if loop is not None else None
        if loop is None or loop[2] != b"for" or counter not in (None, counts and counts[1]):
            continue
        at = data.rfind(b".backward(", loop.end(), match.start())
        around = _LINE.match(data, data.rfind(b"\n", 0, at) + 1) if at >= 0 else None
        while around is not None and around[2] not in (b"for", b"while"):
            around = _above(data, around.start(), len(around[1]))
        if around is not None and around.start() == loop.start():
            found.add(match["call"].decode())
    return tuple(sorted(found))


def _when(data: bytes, at: int, depth: int, torch: str) -> tuple[int, tuple[str, ...]]:
    """0 for a line that runs as the file is loaded, 1 in a function, 2 in a branch or a try statement, 3 where the
    program goes on without it, 4 where nobody asks for it, with the entry that asks, 5 with another torch; `depth` is
    how far it is indented.
    """
    when, line = 0, at
    while depth and (header := _above(data, at, depth)) is not None:
        if header[2] in (b"def", b"async"):
            return when or 1, ()
        if _is_for_another(data, header, torch):
            return 5, ()
        if (off := _OFF.match(data, header.start(2))) is not None:
            return 4, (off[2].decode(),)
        if (asked := _IS_TEXT.match(data, header.start(2))) is not None:
            return 4, (f"{asked[1].decode()}={asked[3].decode()}",)
        again = header[2] == b"try" and _is_imported_again(data, line, len(header[1]))
        if header[2] in _BRANCHES and not again and _is_guard(data, header, line):
            return 3, ()
        if header[2] in _BRANCHES and not again and header[2] != b"with" and not _UNLESS.match(data, header.start(2)):
            when = 2
        at, depth = header.start(), len(header[1])
    return when, ()


def _is_for_another(data: bytes, header: re.Match[bytes], torch: str) -> bool:
    """True for a branch that this torch never comes to."""
    if header[2] in (b"if", b"elif"):
        return line_fails(data[header.start() :].partition(b"\n")[0], torch)
    tested = _beside(data, header) if header[2] == b"else" and torch else None
    return tested is not None and line_fails(tested, torch, holds=True)


def _selecting(data: bytes, line: re.Match[bytes]) -> tuple[str, str] | None:
    """The function that comes to an import where its first argument is a text, and `parameter=text`."""
    near = data[max(line.start() - 500, 0) : line.start()] if line["indent"] else b""
    header = _above(data, line.start(), len(line["indent"])) if b"==" in near else None
    chosen = _SELECTS.match(data, header.start(2)) if header is not None else None
    function = _BUILDS.match(data, data.rfind(b"def ", 0, chosen.start())) if chosen is not None else None
    if chosen is None or function is None or function[2] != chosen[1]:
        return None
    return function[1].decode(), f"{chosen[1].decode()}={chosen[3].decode()}"


def _given(data: bytes) -> tuple[tuple[str, str], ...]:
    """What functions that build something are given first: a text, those that a variable has by default, or `?`."""
    found: set[tuple[str, str]] = set()
    for use in {use[0]: use for use in _GIVEN.finditer(data)}.values():
        text, variable = use.groups(b"")
        ways = [variable + sign for sign in _DEFAULT if variable and variable + sign in data]
        texts = [text] if text else [each[1] for way in ways for each in re.finditer(way + rb"([\w.-]+)", data)]
        found.update((use[0].partition(b"(")[0].decode(), each.decode()) for each in texts or [b"?"])
    return tuple(sorted(found))


def _is_guard(data: bytes, header: re.Match[bytes], line: int) -> bool:
    """True for a header below which an import that fails, or a package that is missing, does not stop the program."""
    start, word = header.start() + len(header[1]), header[2]
    text = data[start : max(data.find(b":\n", start, line), start)] or data[start:line].partition(b"\n")[0]
    if word == b"with":
        return _SUPPRESSES.match(text) is not None
    if word in (b"if", b"elif"):
        asked = _ASKED.match(text)
        return asked is not None and not _ASKED_FOR_A_CARD.search(text) and b" or " not in text
    if word == b"else":
        above = _beside(data, header)
        return above is not None and _ASKED_FOR_AN_NPU.match(above) is not None
    handler = _handler(data, line, len(header[1])) if word == b"try" else None
    return handler is not None and _GIVES_UP.search(handler) is None  # what an import raises goes on


def _beside(data: bytes, header: re.Match[bytes]) -> bytes | None:
    """The `if` that an `else` belongs to, with its first line; None where there is more between them."""
    depth = len(header[1])
    match = _above(data, header.start(), depth + 1)
    return data[match.start() + depth :].partition(b"\n")[0] if match is not None and match[2] == b"if" else None


def _is_imported_again(data: bytes, line: int, depth: int) -> bool:
    """True for an import whose handler imports the same module in another way: `from nets import x`, else `.nets`."""
    module, handler = _MODULE.match(data, line), _handler(data, line, depth)
    if module is None or handler is None:
        return False
    name = b"." + module[1]
    ways = (b"." + each[1] for each in _MODULE.finditer(handler) if each[2] == module[2])
    return any(name.endswith(way) or way.endswith(name) for way in ways)


def _handler(data: bytes, line: int, depth: int) -> bytes | None:
    """The block that goes on after what an import raises in a line of a `try` statement that is indented that far."""
    at = data.find(b"\n", line) + 1
    while at:
        match = _LINE.match(data, at)
        end = data.find(b"\n", at) + 1
        if match is not None and len(match[1]) <= depth:
            if len(match[1]) < depth or match[2] != b"except":
                return None
            if _CATCHES.match(data, at + depth):
                return data[at : end_of_block(data, end, depth)] if end else data[at:]
        at = end
    return None


def _above(data: bytes, at: int, depth: int) -> re.Match[bytes] | None:
    """The nearest line above that is indented less."""
    while at > 0:
        at = data.rfind(b"\n", 0, at - 1) + 1
        match = _LINE.match(data, at)
        if match is not None and len(match[1]) < depth:
            return match
    return None


def _names(text: bytes) -> list[str]:
    return [match[1].decode("ascii", "replace") for match in _NAME.finditer(_COMMENT.sub(b"", text))]
