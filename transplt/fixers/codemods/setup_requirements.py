"""What a setup.py asks for: packages bound to CUDA, pins and Pythons too old for NPUs, torch without torch-npu.

Read are the lists that `setup(...)` gets as install_requires and its like, in place or through a name of the module.
Other dependency files are read by transplt/engine/files/dependency_files.py. Facts: rules/support/third_party.json.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Collection, Iterator

from transplt.base.finding import Effort
from transplt.base.text.requirement import Requirement, normalised, requirement_in
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.ignores import Ignores
from transplt.edits.trees.displays import with_last_row
from transplt.edits.work import Work
from transplt.flow.chooser_place import LISTS, is_old
from transplt.flow.import_layout import in_folder
from transplt.rules.companions import NEWER, no_wheel, older_pins
from transplt.rules.packages import BOUND, advice_on_requirement, in_its_place, naming
from transplt.rules.releases import AS_EXTRA, fits, of_a_library, release_of, wheels_for
from transplt.syntax.nodes import keyword_of, of_kind, plain_name, string_of

_LISTS = ("install_requires", "extras_require", "setup_requires", "tests_require")
#: The code of torch-npu that nothing asks for, as in transplt/engine/files/dependencies/codes.py.
ASKED_NOWHERE, TORCH_NPU = "NPU844", "torch-npu"
#: As there: torch-npu goes in.
ADDED = "NPU841"
#: As there: a package gets the name of the one that is installed in its place.
REPLACED = "NPU847"

#: As there: a Python without a wheel of torch_npu.
PYTHON = "NPU845"

fixer = Fixer(__name__, code=BOUND, rank=100, needs=(b"setup",), words=(*_LISTS, "python_requires"))


@fixer.on(ast.Call, last="setup")
def asks_for_packages(work: Work, call: ast.Call) -> Finds:
    """One finding for each package of the call that needs something else on Ascend."""
    reported: set[tuple[str, str]] = set()
    yield from _without_torch_npu(work, call)
    yield from _of_no_python(work, call)
    yield from _without_wheels(work, call)
    met = work.project.floors if work.project.known else None
    for node, asked in _requirements(work, call):
        if asked.is_elsewhere:
            if work.take(node):
                yield work.keep(node, "elsewhere")
            continue
        advice = advice_on_requirement(asked.name, asked.versions, met)
        if advice is None or (advice.code, asked.name.lower()) in reported:
            continue
        reported.add((advice.code, asked.name.lower()))
        if (other := in_its_place(asked.name)) and (new := _renamed(work, call, node, asked, other)) is not None:
            yield new
        elif work.take(node):
            yield work.note(
                node, advice.code, advice.message, level=advice.level, api=advice.package or asked.name,
                help=advice.help, blocks=advice.blocks, details=advice.details,
            )  # fmt: skip


def _renamed(work: Work, call: ast.Call, node: ast.Constant, asked: Requirement, other: str) -> Edit | None:
    """A requirement that gets another name, without its version; None where a person does that."""
    text, value = work.text(node), str(node.value)
    named = {normalised(each.name) for _, each in _requirements(work, call)}
    plain = text[1:-1] == value and text[0] == text[-1] and text[0] in "'\""
    if work.settings.style == "portable" or asked.address or "[" in value or other in named or not plain:
        return None
    marker = f"; {asked.marker}" if asked.marker else ""
    message = naming(asked.name, asked.specifier)
    new = f"{text[0]}{other}{marker}{text[0]}"
    return Edit(node, REPLACED, message, new, api=asked.name) if work.take(node) else None


def _without_torch_npu(work: Work, call: ast.Call) -> Finds:
    """One finding where the package needs torch and does not ask for torch-npu; in the portable style an extra."""
    asked = [(node, each) for node, each in _requirements(work, call) if not each.is_elsewhere]
    names = [normalised(each.name) for _, each in asked]
    release = release_of(work.settings.torch_version)
    if TORCH_NPU in names or "torch" not in names or not release.torch_npu:
        return
    node, torch = next((node, each) for node, each in asked if normalised(each.name) == "torch")
    pin, message = f"{TORCH_NPU}=={release.torch_npu}", "the package requires torch but not torch-npu"
    where, api = "the list", TORCH_NPU
    if work.settings.style == "portable":
        if any(in_folder(posixpath.dirname(work.scan.path), each, "") in work.project.placing for each in LISTS):
            return  # the list for NPUs beside that one has it
        where, api = "an extra `npu`", AS_EXTRA
        extras = _extras(work, call)
        if torch.allows(release.torch) is False:
            # pip installs an extra together with what the package requires.
            message = f"{message}, and no extra can: {torch.name}{torch.versions} rules out torch {release.torch}"
        elif extras is not None and not is_old(work.scan.path) and work.take(extras):
            pin = f"{TORCH_NPU}{of_a_library(work.settings)}"
            said, new = f"an extra with {pin}", with_last_row("npu", f'["{pin}"]')
            if work.once(Ignores).reason(ADDED, extras.lineno, extras.end_lineno or extras.lineno):
                yield work.note(extras, ADDED, said, api=TORCH_NPU)
            else:
                yield Edit(extras, ADDED, said, new, api=TORCH_NPU, apart=True, group="extra")
            return
    help_text = f'add "{pin}" to {where}; it goes with torch {release.torch}'
    yield work.note(node, ASKED_NOWHERE, message, api=api, help=help_text)


def _extras(work: Work, call: ast.Call) -> ast.Dict | None:
    """The display that the extras of the call are, in place or in a variable that nothing else reads; None for any
    other, for an empty one, and for one that has an extra for NPUs.
    """
    value = keyword_of(call, "extras_require")
    if isinstance(value, ast.Name) and len(work.scan.names.get(value.id, ())) == 1:
        named = [each for each in work.scan.assigns if plain_name(each.targets[0]) == value.id]
        value = named[0].value if len(named) == 1 else None
    if not isinstance(value, ast.Dict) or not value.keys:
        return None
    keys = [string_of(key) for key in value.keys]
    return value if all(keys) and not {"npu", "ascend", TORCH_NPU} & {*keys} else None


def _of_no_python(work: Work, call: ast.Call) -> Finds:
    """One finding where pip would not install the package beside torch_npu: it refuses the Pythons that that has."""
    versions = string_of(keyword_of(call, "python_requires"))
    release = release_of(work.settings.torch_version)
    if versions and not fits(versions, release.pythons):
        message = f"torch_npu {release.torch_npu} has no wheels for Python {versions}"
        help_text = wheels_for(release.torch_npu, release.pythons)
        node = keyword_of(call, "python_requires")
        assert node is not None
        yield work.note(node, PYTHON, message, api="python", help=help_text, effort=Effort.MEDIUM)


def _without_wheels(work: Work, call: ast.Call) -> Finds:
    """One finding for each package that is needed beside torch in a release without a wheel for its Pythons."""
    release = release_of(work.settings.torch_version)
    needed = [*_requirements(work, call, _LISTS[:1])]
    if all(normalised(each.name) != "torch" for _, each in needed):
        return
    for node, each in needed:
        if older_pins([each], release.pythons) and work.take(node):
            message = no_wheel(each, release.torch, release.pythons[0])
            yield work.note(node, PYTHON, message, api=each.name, help=NEWER, details=(("thing", each.name),))


def _requirements(
    work: Work, call: ast.Call, lists: Collection[str] = _LISTS
) -> Iterator[tuple[ast.Constant, Requirement]]:
    """What the call asks for, with the strings that do."""
    for node in _strings(work, call, lists):
        if (asked := requirement_in(str(node.value).strip())) is not None:
            yield node, asked


def _strings(work: Work, call: ast.Call, lists: Collection[str]) -> Iterator[ast.Constant]:
    """The string constants in the values of keywords; the keys of extras_require are no requirements."""
    for keyword in call.keywords:
        if keyword.arg not in lists:
            continue
        waiting: list[ast.expr] = [keyword.value]
        if isinstance(keyword.value, ast.Name):
            waiting = [
                each.value
                for each in of_kind(ast.Assign, work.scan.tree.body)
                if any(plain_name(at) == keyword.value.id for at in each.targets)
            ]
        while waiting:
            match waiting.pop(0):
                case ast.Constant(value=str()) as text:
                    yield text
                case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                    waiting.extend(parts)
                case ast.BinOp(left=left, right=right):
                    waiting.extend((left, right))
