"""Commands that Python starts, and lists of arguments: their devices and backends follow the options of the script.

`subprocess.run("python train.py --device cuda", shell=True)`, `Popen(["python", "train.py", "--device", "cuda"])`,
`sys.argv = [...]`, `parser.parse_args([...])`. What the options mean is what they mean in a shell script.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transplt.base.finding import Effort
from transplt.base.text.cuda_words import mentions_cuda
from transplt.base.text.lexer import one_plain_literal
from transplt.edits.edit import Edit, Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import in_literals, words_in_literal
from transplt.edits.trees.transform import OfText
from transplt.edits.work import Work
from transplt.flow.command_options import NEW, mark_of, options, path_of, reading_of
from transplt.flow.command_words import Word, started
from transplt.flow.device_strings import whole_value
from transplt.flow.read_as import Reading
from transplt.rules.communication_backends import own_names_below, without_own_names
from transplt.syntax.nodes import attribute_of, last_name, of_kind
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU813", rank=525)

PERHAPS = "NPU814"
_PROCESS = frozenset({
    "os.system", "os.popen", "os.execvp", "subprocess.run", "subprocess.call", "subprocess.Popen",
    "subprocess.check_call", "subprocess.check_output", "subprocess.getoutput", "subprocess.getstatusoutput",
    "asyncio.create_subprocess_shell",
})  # fmt: skip
#: Calls and methods that part a text into words.
_SPLITS = ("split",)
_TOKEN = re.compile(r"\\\r?\n|(?P<ends>[;&|()<>\n]+)|(?P<word>(?:[^\s\"'`;&|()<>\\]|\"[^\"]*\"|'[^']*'|\\(?!\r?\n).)+)")
#: A field of an f-string, as `whole_value` writes it, and what the shell would work out in its place: as long.
_FIELD, _WORKED_OUT = "{}", "$_"
_VALUE = re.compile("cuda|nccl|NCCL")
_WORTH = re.compile(r"(?:^|[\s=\"'])(?:cuda|nccl)(?:$|[\s:\"',])", re.I)
#: Calls that read the arguments in a list.
_READS = frozenset({"parse_args", "parse_known_args", "parse_args_into_dataclasses", "parse_intermixed_args", "invoke"})


@dataclass(frozen=True, slots=True)
class _Given:
    """A value of CUDA's that an option is given: both as written, and what takes it."""

    option: str
    value: str
    phrase: str
    start: int  # of the value, in bytes of the text
    reading: Reading

    @property
    def takes(self) -> bool:
        return mark_of(self.value) in self.reading.marks

    @property
    def new(self) -> str:
        """What stands there on an NPU."""
        return _VALUE.sub(lambda match: NEW[match.group()], self.phrase)


@fixer.on(ast.Module)
def commands_of_the_file(work: Work, tree: ast.Module) -> Finds:
    """Decide for commands in strings, and for values in lists of words."""
    if work.settings.style != "npu":
        return
    seen: set[int] = set()
    for outer in work.strings_left():
        if not _WORTH.search(text := whole_value(outer)):
            continue
        holder = parent(outer)
        if isinstance(holder, (ast.List, ast.Tuple)) and " " not in text.strip():
            if id(holder) not in seen:
                seen.add(id(holder))
                yield from _list(work, holder)
        elif " " in text.strip() and "-" in text:
            parted = _parted(outer)
            certain = runs(work, outer) or (parted is not None and _is_arguments(work, parted))
            if certain or parted is not None:
                yield from _text(work, outer, certain)


# --- commands in strings ---------------------------------------------------------------------------------------------


def runs(work: Work, node: ast.expr) -> bool:
    """True for (a part of) the command that a call of os or subprocess runs."""
    return work.names.ends_only(node, lambda place: _runs_here(work, place))


def _runs_here(work: Work, node: ast.expr) -> bool | ast.Name | None:
    """Whether a call runs the command that a value becomes part of; the variable where one is given it."""
    current: ast.AST = node
    if isinstance(node, ast.Name) and isinstance(parent(node), ast.AugAssign):
        return None
    above = parent(current)
    while (
        isinstance(above, (ast.BinOp, ast.JoinedStr, ast.FormattedValue, ast.List, ast.Tuple))
        or attribute_of(above) in ("format", *_SPLITS)
        or (isinstance(above, ast.Call) and (above.func is current or last_name(above.func) in _SPLITS))
    ):
        current, above = above, parent(above)
    match above:
        case ast.Assign(targets=[ast.Name() as target]) | ast.AugAssign(target=ast.Name() as target):
            return target
    if not isinstance(above, ast.Call) or current not in above.args[:1]:
        return False
    return (work.names.qualified(above.func) or "") in _PROCESS


def moved_options(work: Work, outer: ast.expr) -> list[tuple[str, str]]:
    """What is replaced in a command that is run (old, new); nothing where not all of it can be said for certain."""
    given = list(_given_in(work, whole_value(outer)))
    source = work.text(outer)
    parts = outer.values if isinstance(outer, ast.JoinedStr) else [outer]
    for each in given:
        same = sum(other.phrase == each.phrase for other in given)
        in_one_part = any(each.phrase in str(part.value) for part in of_kind(ast.Constant, parts))
        if not each.takes or len(_whole_word(each.phrase).findall(source)) != same or not in_one_part:
            return []
    return list(dict.fromkeys((each.phrase, each.new) for each in given))


def swapped(pairs: Sequence[tuple[str, str]]) -> OfText:
    """The change of a string that replaces these texts where they stand for themselves."""

    def swap(text: str) -> str:
        for old, new in pairs:
            text = _whole_word(old).sub(new.replace("\\", r"\\"), text)
        return text

    return in_literals(swap)


def _parted(outer: ast.expr) -> ast.Call | None:
    """The call that parts a text into words: `"...".split()`, `shlex.split("...")`."""
    above = parent(outer)
    call = parent(above) if isinstance(above, ast.Attribute) else above
    return call if isinstance(call, ast.Call) and last_name(call.func) in _SPLITS else None


def _text(work: Work, outer: ast.expr, certain: bool) -> Finds:
    given = list(_given_in(work, whole_value(outer)))
    if not given or (not certain and not all(each.takes and each.option.startswith("--") for each in given)):
        return
    if not work.take(outer):
        return
    pairs = moved_options(work, outer)
    if not pairs:
        yield _note_option(work, outer, next((each for each in given if not each.takes), given[0]))
        return
    named = ", ".join(f"{old} -> {new}" for old, new in pairs)
    left, library = without_own_names(whole_value(outer))
    for old, new in pairs:
        left = _whole_word(old).sub(new.replace("\\", r"\\"), left)
    if library and not mentions_cuda(left.lower().encode()):
        yield work.keep(outer, "own-registry", library)
    yield Edit(outer, fixer.code, f"a command gives its program a device or a backend: {named}", swapped(pairs),
               api=given[0].option, writes_npu=_parted(outer) is not None and not runs(work, outer))  # fmt: skip


def _whole_word(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(phrase)}(?![\w.-])")


def _given_in(work: Work, text: str) -> Iterator[_Given]:
    """The values of CUDA in the commands of a text."""
    shell = text.replace(_FIELD, _WORKED_OUT)
    for words in _commands(shell):
        program = started(words)
        if program is None and not words[0].source.startswith("-"):
            continue
        path = work.scan.path if program is None else path_of(work.project, work.scan.path, program)
        utf8 = shell.encode()
        for option, word, value, start in options(words if program is None else program.arguments):
            if option is None or not mark_of(value) or own_names_below([option]) is not None:
                continue
            before = [each.extent[0] for each in words if each.source == option and each.extent[1] <= word.extent[0]]
            begin = word.extent[0] if "=" in word.source else before[-1] if before else start
            # The number of a device in a field is no part of the phrase.
            phrase = utf8[begin : start + len(value.encode())].decode().partition(_WORKED_OUT)[0].rstrip(":")
            yield _Given(option, value, phrase, start, reading_of(work.project, option, path))


def _commands(text: str) -> Iterator[list[Word]]:
    words: list[Word] = []
    for match in _TOKEN.finditer(text):
        if match["word"] is not None:
            source, start = match["word"], len(text[: match.start()].encode())
            quoted = len(source) > 1 and source[0] == source[-1] and source[0] in "\"'"
            inner = source[1:-1] if quoted else source
            plain = not any(sign in inner for sign in "$`\"'\\")
            words.append(Word((start, start + len(source.encode())), source, inner if plain else None))
        elif match["ends"] is not None and words:
            yield words
            words = []
    if words:
        yield words


# --- lists of words --------------------------------------------------------------------------------------------------


def _list(work: Work, display: ast.List | ast.Tuple) -> Finds:
    """The values in a list of words: a command, or arguments that somebody reads."""
    words = [_element(work, each) for each in display.elts]
    program = started(words)
    own = work.scan.path
    path = own if program is None else path_of(work.project, own, program)
    here = program is None or _is_arguments(work, display)
    run = runs(work, display)
    certain = bool(program is not None and path) or _is_arguments(work, display) or run
    for option, word, value, _ in options(words if program is None else program.arguments):
        if option is None or not mark_of(value) or own_names_below([option]) is not None:
            continue
        node = word.node
        reading = Reading() if run and program is None else reading_of(work.project, option, path)
        given = _Given(option, value, value, 0, reading)
        if not isinstance(node, (ast.Constant, ast.JoinedStr)) or id(node) in work.taken:
            continue
        if not given.takes and not (certain and option.startswith("-")):
            continue
        if not (certain or option.startswith("--")) or not work.take(node):
            continue
        old = _VALUE.findall(value)
        if not given.takes or not one_plain_literal(work.text(node), old):
            yield _note_option(work, node, given)
            continue
        kinds = "a device" if mark_of(value) == "device" else "a backend"
        shown = value.replace(_WORKED_OUT, _FIELD)
        message = f"{option} takes {kinds}: {shown} -> {_VALUE.sub(lambda match: NEW[match.group()], shown)}"
        change = words_in_literal({each: NEW[each] for each in old})
        if (match := re.match(r"--?[\w.-]+=", word.source)) is not None:
            change = swapped([(match.group() + old[0], match.group() + NEW[old[0]])])
        yield Edit(node, fixer.code, message, change, api=option, writes_npu=here)


def _element(work: Work, node: ast.expr) -> Word:
    """A word of a list; its node is the string that it is written as."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return Word((0, 0), node.value, node.value, node)
    if isinstance(node, ast.JoinedStr):
        return Word((0, 0), whole_value(node).replace(_FIELD, _WORKED_OUT), None, node)
    if work.names.qualified(node) == "sys.executable":
        return Word((0, 0), "python", "python")
    return Word((0, 0), _WORKED_OUT, None)


def _is_arguments(work: Work, display: ast.expr) -> bool:
    """True for a list that is read as the arguments of the program itself."""
    match parent(display):
        case ast.Assign(targets=targets):
            return any(work.names.qualified(target) == "sys.argv" for target in targets)
        case ast.AugAssign(target=target):
            return work.names.qualified(target) == "sys.argv"
        case ast.Call(func=func, args=args) if last_name(func) in _READS:
            return display in args
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if work.names.qualified(value) == "sys.argv":
            return method in ("extend", "append")
        case ast.Call(func=func, args=args):
            named = {str(each.value) for each in of_kind(ast.Constant, args[:2])}
            return not named.isdisjoint(("argv", "sys.argv")) and last_name(func) in ("setattr", "object", "patch")
    return False


def _note_option(work: Work, node: ast.expr, given: _Given) -> Note:
    why = given.reading.why or "no code of the project is known to use it as a device or backend"
    if given.takes:
        why = "it is not a single plain literal"
    value = given.value.replace(_WORKED_OUT, _FIELD)
    new = _VALUE.sub(lambda match: NEW[match.group()], value)
    help_ = f"write {new} if the program uses it as a device or backend; {why}"
    message = f"{given.option} is given {value}"
    return work.note(node, PERHAPS, message, api=given.option, help=help_, effort=Effort.LOW)
