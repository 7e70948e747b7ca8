"""To which action a finding belongs: by the page of its code, or, outside of Python, by what is to be written."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from transplt.base.finding import KERNEL_CODES, Effort, Finding, Level
from transplt.base.language import Sentence, marked
from transplt.engine.actions.kernels import LEADS, Engines, Kernels, Unit
from transplt.engine.files.native_text import SOURCE_SUFFIXES
from transplt.flow.entry_points import named_after
from transplt.flow.entry_text import BETWEEN_STEPS, of_others
from transplt.rules.packages import package_imported_as, what_to_do
from transplt.rules.pages import Diagnostic, DiagnosticError, load
from transplt.rules.support_tables import canonical
from transplt.rules.tables import read_table
from transplt.syntax.modules import named_aside, of_a_job
from transplt.syntax.parse import NEWER_PYTHON, python_of

#: The kind of the one group of edits that --fix makes.
OFFERED = "safe edits"
#: Codes of files that are not Python, as `transplt.engine.files` gives them.
_OTHER_FILES = "NPU80"
_NATIVE, _NOTEBOOK = "NPU806", "NPU803"
_GATE, _STRING, _TOOLKIT, _BUILD, _UNKNOWN = "NPU270", "NPU203", "NPU208", "NPU550", "NPU602"
WRAPPED = "NPU507"
IMAGE, _WITH_THE_IMAGE = "NPU850", ("NPU805", "NPU845", "NPU852", "NPU855")
#: What tells Vulkan and EGL of NVIDIA's driver: an image has it for that.
_OF_A_DRIVER = re.compile(r"(?:^|/)(?:nvidia_(?:icd|layers)|\d+_nvidia)\.json$")
#: Whose releases change a module that no package brings.
_OF_PYTHON = dict.fromkeys(sys.stdlib_module_names, "Python")
_REQUIRED, EXTRA, _TOO_OLD, _PYTHON = "NPU290", "NPU512", "NPU291", "NPU845"
#: Packages that are replaced, by the code of their actions.
_REPLACED = frozenset({"NPU510", "NPU511"})
PACKAGES = _REPLACED | {EXTRA}
_AFTERWARDS = re.compile(BETWEEN_STEPS)
_IN_A_FUNCTION = "; imported when "
#: Codes of requirements in files of dependencies.
_OF_DEPENDENCIES = "NPU84"
_ASKED = re.compile(r"\b(?:hasCUDA|cuda::is_available)\b")
_OWN_DEVICE = "NPU273"
_GATES = (_GATE, "NPU279")
_EXTENSIONS = ("NPU551", _TOOLKIT, *_GATES, LEADS)
_IMPORTED = "NPU553"
#: Codes of kernels that stop the import of a file, where the finding says that it fails: imported, or compiled there.
_STOPPING = (_IMPORTED, "NPU554")
_COMMAND = "NPU865"
_BY_DOCUMENT = marked("Install torch-npu where the README installs torch; `--docs` edits the certain commands")
#: Title and advice for a requirement that nothing imports, by whether CUDA's hosts go on installing it.
_UNASKED = {
    False: (marked("Remove the requirement {name}: no code of the project imports it"),
            marked("remove the line; if a library of the project needs it: {help}")),
    True: (marked("Keep {name} out of what NPU hosts install: no code of the project imports it"),
           marked("the line stays for CUDA; if a library or a setting asks for it on an NPU: {help}")),
}  # fmt: skip
_KERNEL_HOW = marked(
    "first look for an operator of torch, torch_npu, torchvision or mx_driving (for driving, torch 2.6 to 2.8) that "
    "does the same. If there is none, write one in Ascend C or triton-ascend, and build it with "
    "torch_npu.utils.cpp_extension.NpuExtension. Then change the import"
)
_CPU_PATH = marked(
    "the project computes the same on the CPU without it: guard its import or build, and let NPUs go that way where "
    "the code asks for the CPU. If that is too slow: {how}"
)
_NOT_TRAINED = marked("training does not need it: skip it, and leave off what asks for it. Otherwise {how}")
#: Modules and classes whose members are APIs of their own; of others the owner is what is replaced.
_OWNERS = frozenset(
    {
        "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special",
        "torch.cuda", "torch.distributed", "torch.optim", "torch.autograd", "torch.utils.data", "torch.compiler",
        "torch.nn.utils",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Group:
    """What makes one action of findings: their groups are equal.

    `kind` is a code or a word, `name` tells groups of one kind apart and stands at `{name}` in the title. `blocks` is
    what this finding keeps the program from, `how` what to do and `effort` what the first place costs where the finding
    itself does not say it; `parts` is how many such places it is.
    """

    title: Sentence
    kind: str
    name: str = ""
    blocks: str = field(default="later", compare=False)
    how: str = field(default="", compare=False)
    effort: Effort | None = field(default=None, compare=False)
    parts: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row of the table; `page` is the code of the page whose action it is, where no title says it."""

    codes: list[str]
    pattern: str
    blocks: str
    how: str = ""
    title: str = ""
    page: str = ""
    effort: Effort = Effort.LOW
    each: bool = False
    style: str = ""


def _declared(findings: list[Finding]) -> tuple[bool, set[str], set[str]]:
    """Whether files beside Python say what a project needs, the packages that they name for everybody, and those that
    findings in its code are about.
    """
    code = [each for each in findings if each.path.endswith((".py", ".ipynb"))]
    asked = [each for each in findings if each.code == _REQUIRED or not each.path.endswith((".py", ".ipynb"))]
    everybody = (each for each in asked if each.api and not (aside(each) or each.option))
    inside = (each for each in code if not each.path.endswith("setup.py"))
    named, used = ({canonical(each.api).partition(".")[0] for each in found} for found in (everybody, inside))
    return any(each.code.startswith(_OF_DEPENDENCIES) for each in asked), named, used


def _of_kernels(findings: list[Finding]) -> dict[str, set[str]]:
    """By path: the codes of what kernels in Triton say to a GPU, which are one port of the kernels of a file."""
    codes: dict[str, set[str]] = {}
    for each in findings:
        if each.edit is None and each.code.startswith(KERNEL_CODES):
            codes.setdefault(each.path, set()).add(each.code)
    return codes


def _as_a_whole(findings: list[Finding]) -> set[tuple[str, str]]:
    """The codes and packages, or parts of them, that findings speak of as a whole; and, torch apart, those of which
    several parts have the same answer.
    """
    found = {(each.code, package) for each in findings if (package := _whole_package(each))}
    parts: dict[tuple[str, str], dict[str, str]] = {}
    for each in findings:
        part, api = each.api.rpartition(".")[0], canonical(each.api)
        if part and f"package {part} " in each.message:
            found.add((each.code, part))
        parts.setdefault((each.code, api.partition(".")[0]), {})[api] = each.help
    several = {about for about, said in parts.items() if len(said) > len({*said.values()}) == 1}
    return found | {about for about in several if about[1] != "torch"}


def _going(findings: list[Finding]) -> dict[tuple[str, str], Finding]:
    """By file and name: what is replaced there before it runs, and the tests that lead to it with it."""
    replaced = [each for each in findings if each.code in (*_REPLACED, _IMPORTED)]
    early = [each for each in replaced if _blocks(each, _page(each.code)) in ("import", "first step")]
    return {(each.path, canonical(each.api).partition(".")[0]): each for each in early}


_Leading = dict[tuple[str, str, int | str], Finding]


def _leading(findings: list[Finding]) -> _Leading:
    """By code, file and line or API: the finding whose action another one goes with. A gate that stays takes the other
    half of its test, a pin that no wheel of the Python fits the floor of that package, a copy of a package what imports
    it, and the parts of a package that its adapted version has not are one decision each: all of `apex.parallel`.
    """
    found = _beside(findings)
    adapted = {canonical(each.api).partition(".")[0] for each in findings if each.code == "NPU511"}
    copies = {_spelled(posixpath.basename(folder)): each for each in findings if (folder := of_others(each.path))}
    for each in findings:
        if each.code in PACKAGES and (copy := copies.get(_spelled(each.api.partition(".")[0]))) is not None:
            found[each.code, each.path, each.api] = copy
        elif each.code == "NPU510" and each.api.partition(".")[0] in adapted:
            found[each.code, each.path, each.api] = replace(each, api=".".join(each.api.split(".")[:2]))
        if each.code in _GATES:
            found[_STRING, each.path, each.span.line] = each
        for name in each.every_detail("thing") if each.code == _PYTHON else ():
            found[_TOO_OLD, each.path, name] = each
        for name in each.every_detail("name") if each.code == _STRING else ():
            found[_UNKNOWN, each.path, name.removesuffix(".device")] = each
    return found


def _spelled(name: str) -> str:
    """A name as a folder and a package of it have in common: `AutoModel` and `auto_model`."""
    return re.sub(r"[-_.]", "", name).lower()


def _beside(findings: list[Finding]) -> _Leading:
    """What goes with another finding of its file: with a kernel what exchanges between replicas, with TensorRT what
    gives it memory, with the mode of a compiler what the mode needs.
    """
    found: _Leading = {}
    for row in read_table("support/substitutions.json")["beside"]:
        leads = {each.path: each for each in findings if each.code in row["of"] and each.api.startswith(row["other"])}
        same = (each for each in findings if each.code == row["code"] and each.api.startswith(row["api"]))
        found.update(((each.code, each.path, each.api), leads[each.path]) for each in same if each.path in leads)
    return found


def as_their_actions(files: list[tuple[Finding, ...]]) -> list[tuple[Finding, ...]]:
    """The findings of all files: lines of C++ that are no kernel cost what their action does, and have its help."""
    groups = Groups(each for findings in files for each in findings)

    def priced(finding: Finding) -> Finding:
        group = groups.of(finding) if finding.code == _NATIVE and finding.open else None
        if group is None or group.effort in (None, Effort.HIGH):
            return finding
        return replace(finding, effort=group.effort, help=group.how or finding.help)

    return [tuple(map(priced, findings)) for findings in files]


class Groups:
    """The groups of the findings of one project, in the words of its style."""

    def __init__(self, findings: Iterable[Finding], style: str = "npu") -> None:
        self._entries, self._portable = _entries(style), style == "portable"
        known = list(findings)
        open_ = [each for each in known if each.open]
        self._kernels = Kernels(known)
        #: By path: the kernels in a source, in words.
        self.kernels = self._kernels.listed
        self._engines = Engines(known)
        #: Recipes that start from an image of CUDA: what they set and install for it goes with the image.
        self._images = {each.path for each in open_ if each.code == IMAGE}
        self._with_image = (*_WITH_THE_IMAGE, *[_TOO_OLD] * self._portable)  # portable keeps the image of CUDA
        #: C++ that asks whether there is a card, and goes on without one.
        lines = ((each.path, each.api, *each.every_detail("name")) for each in open_ if each.code == _NATIVE)
        self._asking = {path for path, *names in lines if any(map(_ASKED.search, names))}
        #: Folders with an extension that is compiled as it is loaded: whoever builds it does not need to.
        self._loaded = {posixpath.dirname(each.path) for each in open_ if each.code == "NPU554"}
        self._imports = [each for each in open_ if each.code in PACKAGES]
        #: Whether files say what the project needs, the packages that they name, and those that findings in code are
        #: about, remarks included: none where no code was seen.
        self._declares, self._installed, self._named = _declared(known)
        self._whole = _as_a_whole(open_)
        #: Libraries with a device of their own: the tests that lead to them are the same decision.
        self._placed = {_first_word(each.detail("library")) for each in open_ if each.code == _OWN_DEVICE}
        self._going = _going(open_)
        #: By file and option: what an extra of the requirements is called after, and is there for.
        self._named_extras = {(each.path, each.option): each for each in open_ if each.code == _REQUIRED
                              and each.option == f"the extra {each.api}" and _under(each) != EXTRA}  # fmt: skip
        #: The newest Python that the syntax of a file needs which this one does not read.
        self._python = max(filter(None, (each.detail("python") for each in open_)), key=python_of, default="")
        self._triton = _of_kernels(open_)
        self._leading = _leading(open_)

    def of(self, finding: Finding) -> Group:
        """The one group of an open finding."""
        if finding.edit is not None:
            return _offered(finding)
        about = finding.span.line if finding.code == _STRING else finding.api
        finding = self._leading.get((finding.code, finding.path, about), finding)
        if (folder := of_others(finding.path)) is not None:
            return _third_party(finding, folder)
        with_it = finding.path in self._images and finding.code in self._with_image
        if with_it or (self._images and _OF_A_DRIVER.search(finding.path)):
            page = _page(IMAGE)
            of_style = self._substitution(replace(finding, code=IMAGE))
            return of_style or Group(Sentence(page.action), IMAGE, "", _blocks(finding, page))
        if finding.code == LEADS and (needed := finding.detail("needs")) and _first_word(needed) in self._placed:
            page = _page(_OWN_DEVICE)
            return Group(Sentence(page.action), _OWN_DEVICE, "", _blocks(finding, page))
        if re.search(read_table("support/substitutions.json")["locks"], finding.path):
            return _of_a_lock(finding.path, portable=self._portable)
        if finding.code == _NATIVE and (native := self._native(finding)) is not None:
            return native
        if (same := self._substitution(finding)) is not None:
            return same
        if finding.code == _NATIVE:
            title = Sentence("Remove CUDA from the build {name}", name=finding.path)
            return Group(title, "build", finding.path, "later", effort=Effort.MEDIUM)
        if finding.code.startswith(_OTHER_FILES):
            page = _page(finding.code)
            return Group(Sentence(page.action), finding.code, "", page.blocks)
        if len(codes := self._triton.get(finding.path, ())) > 1 and finding.code in codes:
            return _of_triton(finding, codes)
        return self._by_page(finding)

    def _native(self, finding: Finding) -> Group | None:
        """The group of a line of C++, and of its build; None for a build that makes no kernel of the project's."""
        if (folder := self._engines.around(finding.path)) is not None:
            title = Sentence(
                "Skip the C++ program in {name}: it uses NVIDIA's TensorRT or DeepStream, and trains nothing",
                name=folder or Sentence("the top folder"),
            )
            how = marked(
                "TensorRT and DeepStream do not run on an NPU. To serve the model there, convert it with ATC, "
                "CANN's converter, to a .om file, and run that with ACL, CANN's runtime"
            )
            return Group(title, "engine", folder, "tidy", how, Effort.LOW)
        if finding.path.lower().endswith(SOURCE_SUFFIXES):
            return self._source(finding)
        unit = self._kernels.beside(finding.path)
        return self._kernel(unit, finding) if unit is not None else None

    def _source(self, finding: Finding) -> Group:
        unit = self._kernels.of_source(finding.path)
        build = self._kernels.build_above(unit)
        return self._kernel(unit, finding) if build is None else _build(build)

    def _by_page(self, finding: Finding) -> Group:
        if finding.code == _REQUIRED:  # what else such an extra holds goes with it
            finding = self._named_extras.get((finding.path, finding.option), finding)
        if finding.code in (*_GATES, LEADS):
            finding = self._going.get((finding.path, _first_word(finding.detail("needs"))), finding)
        page = _page(_under(finding))
        if finding.code == _COMMAND and finding.blocks == "import":
            return Group(Sentence(_BY_DOCUMENT), finding.code, "torch", finding.blocks)
        if finding.detail("python"):
            title = Sentence("Run transplt under Python {name}: these files are written in it", name=self._python)
            how = NEWER_PYTHON.format(self._python)
            return Group(title, "newer python", "", _blocks(finding, page), how, Effort.LOW)
        if (page.by == "extension" or finding.code in _EXTENSIONS) and (found := self._extension(finding, page)):
            return found
        name = _name_of(finding, page.by)
        if page.by == "package":  # the whole package, or the part of it, that another finding of the code is about
            parts = name.split(".")
            above = (".".join(parts[:end]) for end in range(1, len(parts)))
            name = next((each for each in above if (page.code, each) in self._whole), name)
        by_hand = Sentence("Do by hand: {title}", title=Sentence(page.title))
        package = _OF_PYTHON.get(root := name.partition(".")[0], root)
        title = Sentence(page.action, name=name, package=package) if page.action else by_hand
        blocks = self._asked_for(finding, page)
        unnamed = page.code != EXTRA and self._named and name not in self._named and package_imported_as(name)
        how = ""
        if finding.code == _REQUIRED and (blocks == "tidy" or unnamed):
            said, advice = _UNASKED[self._portable]
            title, how = Sentence(said, name=name), Sentence(advice, help=finding.help.removeprefix("instead: "))
        return Group(title, page.code, name, blocks, how)

    def _substitution(self, finding: Finding) -> Group | None:
        """The group of a name of CUDA that is replaced in the same way wherever it stands."""
        names = [finding.api, *finding.every_detail("name")]
        for entry in self._entries:
            if finding.code not in entry.codes:
                continue
            if match := next(filter(None, (re.search(entry.pattern, name) for name in names)), None):
                name = match[1] if entry.each else ""
                title = Sentence(entry.title or _page(entry.page).action, name=name)
                how, kind = Sentence(entry.how, name=name), entry.page or "substitution"
                return Group(title, kind, name, _blocks(finding, entry), how, entry.effort)
        return None

    def _asked_for(self, finding: Finding, page: Diagnostic) -> str:
        """What a finding blocks; a package that functions import and nothing of the project installs, the program that
        asks for it alone; a requirement that pip can install, or of an image, no more than its imports: one that
        shows what NVIDIA's cards do, and that nothing imports, nothing.
        """
        blocks = _blocks(finding, page)
        package = canonical(finding.api).partition(".")[0]
        if finding.code != _REQUIRED:
            in_function = finding.code in _REPLACED and _IN_A_FUNCTION in finding.message
            optional = in_function and self._declares and package not in self._installed
            return "later" if optional and blocks == "first step" else blocks
        imports = [each for each in self._imports if canonical(each.api).partition(".")[0] == package]
        if not imports and (finding.help.startswith("instead: npu-smi") or finding.path.endswith(".sh")):
            return "tidy"
        installs = page.code == EXTRA or of_a_job(finding.path) or finding.path.endswith(".sh")
        late = imports and all(_blocks(each, page) == "later" for each in imports)
        return "later" if late and installs and blocks in ("import", "first step") else blocks

    def _extension(self, finding: Finding, page: Diagnostic) -> Group | None:
        """The extension that a finding is about, None where a remark on CUDA is about none."""
        kernels, code = self._kernels, finding.code
        if finding.path.lower().endswith(SOURCE_SUFFIXES):
            return self._source(finding)
        if kernels.is_build(finding.path):
            if (unit := kernels.beside(finding.path)) is not None:
                return self._kernel(unit, finding)
            folder = posixpath.dirname(finding.path)
            return _build(folder, "later" if folder in self._loaded else _here("import", finding))
        unit = kernels.named(finding.api, finding.path) if code not in (*_EXTENSIONS, _BUILD) and finding.api else None
        unit = unit or (kernels.led_to(finding) if code in (*_GATES, LEADS) else kernels.beside(finding.path))
        if unit is not None:
            return self._kernel(unit, finding, stops=code in _STOPPING and _blocks(finding, page) == "import")
        if page.by != "extension":
            return None
        name = finding.api if code == _IMPORTED and finding.api else finding.path
        return Group(Sentence(page.action, name=name), code, name, _blocks(finding, page))

    def _kernel(self, unit: Unit, finding: Finding, stops: bool = False) -> Group:
        """A kernel is missing when it is called; where `stops`, the program imports it and does not start."""
        if not unit.kernel or self._kernels.is_program(unit):
            how = marked(
                "torch::kCUDA becomes torch::kPrivateUse1 with torch_npu's C++ library; a demo may stay on the CPU"
            )
            title = Sentence("Port the C++ code in {name}", name=unit.folder or "the top folder")
            blocks = "slow" if finding.path in self._asking else "later"
            return Group(title, "sources", str(unit), blocks, how, Effort.MEDIUM)
        if self._kernels.idle(unit):
            gone = marked("Remove the sources of {name}: npu_port.py replaces the functions that were called")
            title = Sentence(gone, name=str(unit))
            how = marked("delete them, or keep them for CUDA: the project no longer builds or imports them")
            return Group(title, "kernel", str(unit), "tidy", how, Effort.LOW)
        if unit.parts == 1:
            title = Sentence("Replace the CUDA kernel {name}, or rewrite it for the NPU", name=str(unit))
        else:
            title = Sentence("Replace the CUDA kernels of {name}, or rewrite them for the NPU", name=str(unit))
        binds = self._kernels.binds(unit)
        blocks = "slow" if unit in self._kernels.spared else "import" if stops else "first step"
        if blocks != "slow" and (finding.late == "other" or unit in self._kernels.late or aside(finding)):
            blocks = "later"  # one place that training meets says more
        how = Sentence("{how}. {binds}", how=_KERNEL_HOW, binds=binds) if binds else _KERNEL_HOW
        effort = Effort.HIGH
        if unit in self._kernels.on_the_cpu:
            how, effort = Sentence(_CPU_PATH, how=how), Effort.MEDIUM
        elif blocks == "later" and unit in self._kernels.late:
            how = Sentence(_NOT_TRAINED, how=how)
        return Group(title, "kernel", str(unit), blocks, how, effort, unit.parts)


def _third_party(finding: Finding, folder: str) -> Group:
    """The one thing to do about the code of somebody else in a folder."""
    title = Sentence("Use the Ascend version of the third-party code in {name}, or port it", name=folder)
    how = marked("look for a package or fork for Ascend that replaces it; otherwise port it as a separate project")
    row = package_imported_as(posixpath.basename(folder)) or {"status": ""}
    if row["status"] in ("native", "plugin", "ascend_fork"):
        how = marked("{name} as a package, whose interface may differ: {help}. Otherwise port this copy")
        how = Sentence(how, name=row["name"], help=what_to_do(row))
    page = _page(finding.code)
    blocks = _blocks(finding, page)
    built = finding.path.endswith("setup.py") or finding.path.lower().endswith(SOURCE_SUFFIXES)
    if (built or finding.late == "unnamed") and blocks in ("import", "first step"):
        blocks = "later"  # nothing of the project starts it, and an import of what is built says more
    if finding.late == "other" or aside(finding):  # no training loads it
        return Group(title, "third-party", folder, "tidy", how, Effort.LOW)
    return Group(title, "third-party", folder, blocks, how)


def _of_triton(finding: Finding, codes: Iterable[str]) -> Group:
    """The kernels of a file: what its findings ask for is done in one go, and tried by `transplt prove`."""
    actions = [page.action for page in map(_page, sorted(codes)) if page.action]
    how = "; ".join(f"{action[0].lower()}{action[1:]}" for action in actions)
    title = Sentence("Port the Triton kernels in {name}", name=finding.path)
    return Group(title, "triton", finding.path, _blocks(finding, _page(finding.code)), how)


def _build(folder: str, blocks: str = "import") -> Group:
    name = posixpath.join(folder, "setup.py")
    how = marked("NPU hosts have no nvcc: build the rest as CppExtension or NpuExtension, without .cu files")
    title = Sentence("Remove the CUDA build from {name}", name=name)
    return Group(title, "build", name, blocks, how, Effort.MEDIUM)


def _offered(finding: Finding) -> Group:
    if finding.level is Level.SAFE:
        title = Sentence("Apply the safe edits: transplt check --fix")
        how = marked("run `transplt check --fix` in a git repository, or migrate the project")
        return Group(title, OFFERED, "", "first step", how)
    page = _page(finding.code)
    title = Sentence("Decide whether to apply edits of --unsafe-fixes: {title}", title=Sentence(page.title))
    return Group(title, finding.code, "", page.blocks)


def _name_of(finding: Finding, by: str) -> str:
    """What the findings of a code are told apart by."""
    if by == "file":
        return finding.path
    api = canonical(finding.api) if finding.api else ""
    if by == "package":
        return _whole_package(finding) or api
    if by != "api":
        return ""
    if finding.detail("gone"):  # an older release of the package is one answer to all of it
        return api.partition(".")[0]
    owner = api.rpartition(".")[0]
    deep = owner.count(".") > 1 or owner.startswith("torch._")
    inner = owner.startswith("torch.") and owner not in _OWNERS and deep
    return (owner if inner else api) or finding.message


def _whole_package(finding: Finding) -> str:
    """The package that a finding speaks of as a whole; empty for one about a part of it."""
    package = canonical(finding.api).partition(".")[0] if finding.api else ""
    return package if package and re.search(rf"\b{re.escape(package)}\b(?!\.\w)", finding.message) else ""


def _blocks(finding: Finding, page: Diagnostic | _Entry) -> str:
    """What a finding blocks, by where its file is loaded: what functions load does not stop the start."""
    blocks = finding.blocks or page.blocks
    if blocks == "import" and finding.late not in ("", "unnamed"):
        blocks = "first step" if finding.late == "called" else "later"
    late = finding.late == "other" or (finding.late == "branch" and finding.blocks)
    if blocks == "first step" and (late or _AFTERWARDS.match(finding.detail("function"))):
        blocks = "later"  # no step of the training comes to it, or not every one
    return _here(blocks, finding)


def _here(blocks: str, finding: Finding) -> str:
    """What blocks so much, where no training script meets it, or only one that is asked to."""
    folder = posixpath.basename(posixpath.dirname(finding.path))
    names = (f"{folder}.in", finding.path)
    installed_after = not finding.path.endswith(".py") and any(map(named_after, names))  # by an evaluation or a demo
    after = installed_after or (finding.late == "unnamed" and named_after(finding.path))
    not_yet = aside(finding) or finding.option or finding.late in ("handled", "other") or after
    return "later" if blocks in ("import", "first step") and not_yet else blocks


def aside(finding: Finding) -> bool:
    """True for a finding in a file that no training script reaches, or only tests, documentation, a CI service."""
    return finding.aside or named_aside(finding.path)


def _first_word(text: str) -> str:
    """`warp` of `warp.launch, through sim.step`."""
    return re.split(r"\W", text, maxsplit=1)[0]


@cache
def _page(code: str) -> Diagnostic:
    try:
        return load(code)
    except DiagnosticError:
        return Diagnostic(code, f"findings of {code}", Level.MANUAL, None, {}, action=f"Check what {code} reports")


def _under(finding: Finding) -> str:
    """The code whose page says what to do about a finding: mostly its own."""
    for row in read_table("support/substitutions.json")["under"]:
        of_status = row.get("status", "") in ("", finding.detail("status"))
        if finding.code == row["code"] and of_status and finding.api.endswith(row.get("api", "")):
            return str(row["page"])
    return finding.code


@cache
def _of_a_lock(path: str, *, portable: bool) -> Group:
    """What is done about a lock file: in the portable style it is CUDA's."""
    if portable:
        title = Sentence("Keep {name} for CUDA: NPUs have a separate list", name=path)
        return Group(title, "lock", path, "tidy", marked("install that over it"), Effort.LOW)
    title = Sentence("Regenerate the lock file {name} for torch and torch_npu", name=path)
    return Group(title, "lock", path, "import", marked("change the requirements first, then lock again"), Effort.LOW)


def _entries(style: str) -> tuple[_Entry, ...]:
    rows: list[dict[str, Any]] = read_table("support/substitutions.json")["entries"]
    every = (_Entry(**{**row, "effort": Effort(row.get("effort", "low"))}) for row in rows)
    return tuple(each for each in every if each.style in ("", style))


def portable_advice(code: str, api: str) -> str:
    """What a project of the portable style does about a code and an API, where an entry says it."""
    fitting = (each for each in _entries("portable") if code in each.codes and re.search(each.pattern, api))
    return next((each.how for each in fitting), "")
