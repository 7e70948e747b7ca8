"""`transplt run --setup`: the environment of a project, with a torch for CPUs that a torch_npu was released for.

It lies in the user's cache unless another place is named. Nobody finds it before it is whole (environments.RECORD);
what was stopped goes on where it stood. torch_npu never enters it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from transplt.base.disk.cache_folder import Cache, NoCache
from transplt.base.errors import reason, shown
from transplt.base.render.cell import many
from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.project.environment.installer import Installer
from transplt.project.environment.stand_in import TEXT as STAND_IN
from transplt.project.environment.wanted import Needs, Wanted, needs_of
from transplt.proof.launch import driver, interpreter, torch_npu_wheel
from transplt.proof.launch.environments import RECORD, migrated_from, place_of, record_of
from transplt.proof.launch.options import UsageError
from transplt.proof.launch.pip import Failed
from transplt.proof.launch.runner import ready_stubs
from transplt.proof.launch.torch_npu_wheel import NoWheel
from transplt.rules.distributions import distribution_of
from transplt.rules.package_releases import newest_torch_npu
from transplt.rules.releases import CPU_INDEX, release_of

#: The torch of the newest pair that was tried.
TESTED = "2.13.0"
#: Long to compile; a release that has no wheel for this Python is replaced by one that has.
_WHEELS_ONLY = ("numpy", "scipy", "pandas", "scikit-learn", "matplotlib", "scikit-image", "h5py", "numba", "llvmlite",
                "tokenizers", "opencv-python-headless", "pyarrow", "pillow")  # fmt: skip
#: What scripts import of a package stands behind a module of torch.
_BEHIND = {"tensorboard": "torch.utils.tensorboard"}
#: The folder of the environment, and the file beside it that says that venv or uv came to its end.
_FOLDER, _BEGUN = "environment", "begun"


@dataclass
class SetUp:
    """What came of it: the interpreter, what is in the environment, what is not and why, modules that are stand-ins."""

    python: str
    torch: str
    installed: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    stand_ins: list[str] = field(default_factory=list)
    torch_npu: str = ""
    again: bool = False


def set_up(
    project: Path,
    scripts: Sequence[Path],
    python: str,
    stand_ins: Sequence[str],
    say: Callable[[str], None],
) -> SetUp:
    """Make the environment of a project, or go on with it. `python` names the interpreter that it is made with, or the
    folder in which to make it; `stand_ins` are modules that only have to be imported.

    UsageError, in one sentence, where there can be none.
    """
    if odd := [each for each in stand_ins if not each.isidentifier()]:
        raise UsageError(f"--stub {shown(odd[0])}: give the name of a module, as in its import.")
    place = place_of(project)
    named = Path(python).absolute() if python and not os.path.isfile(python) and shutil.which(python) is None else None
    try:
        Cache.of_user()  # nobody else may write there
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(place) as lock:
            installer = Installer.of(named or place / _FOLDER, lock)
            return _set_up(project, place, installer, python if named is None else "", scripts, stand_ins, say)
    except NoCache as why:
        raise UsageError(f"the environment is kept in the user's cache folder, which cannot be used: {why}.") from why
    except OSError as error:
        where = shown(str(named or place))
        raise UsageError(f"the environment cannot be written to {where}: {reason(error)}.") from error


def _set_up(
    project: Path,
    place: Path,
    installer: Installer,
    base: str,
    scripts: Sequence[Path],
    stand_ins: Sequence[str],
    say: Callable[[str], None],
) -> SetUp:
    needs = needs_of(project, scripts)
    for each in stand_ins:
        needs.wanted = [other for other in needs.wanted if other.name != distribution_of(each).lower()]
    torch = _torch_for(needs.torch)
    base = _base_for(torch, base or sys.executable)
    words, modules = sorted(each.words for each in needs.wanted), sorted(needs.modules)
    text = json.dumps([words, needs.of_torch, torch, sorted(stand_ins), modules, str(installer.folder)])
    asked = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    if (made := _made(place, asked)) is not None:
        return made
    _announce(project, installer, needs, torch, stand_ins, say)
    if not _is_ours(place, installer.folder) and installer.folder.exists() and place not in installer.folder.parents:
        where = shown(str(installer.folder))
        raise UsageError(f"{where} exists, but was not created by --setup: choose another folder.")
    with contextlib.suppress(FileNotFoundError):
        (place / RECORD).unlink()
    if not _is_ours(place, installer.folder):
        shutil.rmtree(installer.folder, ignore_errors=True)
        say(f"making {shown(str(installer.folder))}")
        installer.make(base)
        (place / _BEGUN).write_text(f"{installer.folder}\n", "utf-8")
    installer.mend()
    made = SetUp(installer.python, torch, left_out=dict(needs.left_out), stand_ins=[*stand_ins])
    try:
        _install_torch(installer, torch, say)
    except Failed as why:
        shutil.rmtree(installer.folder, ignore_errors=True)  # nothing is in it yet
        shutil.rmtree(place, ignore_errors=True)
        away = ": pip cannot reach its index" if why.offline else ""
        raise UsageError(f"torch {torch} for CPUs cannot be downloaded{away} ({why}); nothing was left behind") from why
    _Packages(installer, place, torch, made, say).install(needs)
    for site in installer.folder.glob("lib/python*/site-packages"):
        for name in stand_ins:
            (site / name).mkdir(exist_ok=True)
            (site / name / "__init__.py").write_text(STAND_IN.format(name=name), "utf-8")
    _put_torch_npu(made, say)
    record = {
        "project": str(project), "of": migrated_from(project), "environment": str(installer.folder), "asked": asked,
        "python": made.python, "torch": torch, "torch_npu": made.torch_npu, "installed": made.installed,
        "left_out": made.left_out, "stand_ins": made.stand_ins,
    }  # fmt: skip
    written = place / f"{RECORD}.new"
    written.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    os.replace(written, place / RECORD)
    return made


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[int]:
    """Hold the folder of a project's environment, by an open file. UsageError where another process does, or the pip of
    one that was killed."""
    with open(place.parent / f"{place.name}.lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError("another `transplt run --setup` is running for this project.") from error
        yield file.fileno()


def _is_ours(place: Path, folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return read_regular(place / _BEGUN, RECORDS).decode().strip() == str(folder) and folder.is_dir()
    return False


def _made(place: Path, asked: str) -> SetUp | None:
    """What an earlier call made of the same requirements."""
    try:
        record = record_of(place)
        if record["asked"] != asked or not os.path.exists(record["python"]):
            return None
        return SetUp(
            record["python"], record["torch"], record["installed"], record["left_out"], record["stand_ins"],
            record["torch_npu"], again=True,
        )  # fmt: skip
    except (KeyError, TypeError):
        return None


def _torch_for(specifier: str) -> str:
    """The release of torch: the newest pair that was tried, or the newest that the project asks for, from 2.10 on."""
    wanted = [each for each in newest_torch_npu() if tuple(map(int, each.split(".")[:2])) >= interpreter.MINIMUM]
    return next((each for each in (TESTED, *reversed(wanted)) if _fits(each, specifier)), TESTED)


def _fits(torch: str, specifier: str) -> bool:
    """Whether a release is what is asked for, as far as that can be read; `==2.10.0+cu128` is a build of 2.10.0."""
    try:
        return SpecifierSet(re.sub(r"\+\w[\w.]*", "", specifier)).contains(torch)
    except InvalidSpecifier:
        return True


def _base_for(torch: str, base: str) -> str:
    """The interpreter that the environment is made with: one that torch_npu has a wheel for, if there is such a one."""
    found = replace(interpreter.whole_of(base), torch=torch, cuda="")
    try:
        torch_npu_wheel.wheel_for(found)
        return base
    except NoWheel:
        pythons = newest_torch_npu()[torch][1].pythons
        return next(filter(None, (shutil.which(f"python{each}") for each in reversed(pythons))), base)


def _announce(
    project: Path, installer: Installer, needs: Needs, torch: str, stand_ins: Sequence[str], say: Callable[[str], None]
) -> None:
    """What will be fetched, before it is."""
    say(f"an environment for {shown(str(project))} in {shown(str(installer.folder))}, by {installer.name}")
    why = "" if _fits(torch, needs.torch) else f" (the project requires torch{needs.torch})"
    say(f"downloads torch {torch} for CPUs, about 200 MB{why or ', the newest tested one' * (torch == TESTED)}")
    for source in dict.fromkeys(each.source for each in needs.wanted):
        words = ", ".join(each.words for each in needs.wanted if each.source == source)
        say(f"fetches, {'as the scripts import them' if source == 'imports' else f'from {source}'}: {words}")
    if needs.of_torch:
        say(f"downloads, if there is a build for CPUs: {', '.join(needs.of_torch)}")
    for name, because in needs.left_out.items():
        say(f"leaves out {name}: {because}")
    if stand_ins:
        say(f"replaces by a stand-in that can only be imported: {', '.join(stand_ins)}")


def _builds(version: str) -> list[str]:
    """A release as its builds for CPUs are called: PyPI's own for Linux need CUDA's libraries."""
    return [f"=={version}+cpu"] if sys.platform == "linux" else [f"=={version}"]


def _install_torch(installer: Installer, torch: str, say: Callable[[str], None]) -> None:
    """From the user's own index where that has the build, else from PyTorch's. Failed where neither has it."""
    found = interpreter.whole_of(installer.python).torch
    if found.partition("+")[0] == torch:
        return
    say(f"installing torch {torch}")
    words = [f"torch{each}" for each in _builds(torch)]
    try:
        installer.install([*words, "numpy"])
    except Failed as why:
        try:
            installer.install(words, "--index-url", CPU_INDEX)
            installer.install(["numpy"])
        except Failed as other:
            raise (why if why.offline else other) from other


@dataclass
class _Packages:
    """What goes into the environment besides torch, which stays as it is."""

    installer: Installer
    place: Path
    torch: str
    made: SetUp
    say: Callable[[str], None]

    def install(self, needs: Needs) -> None:
        """All at once where that works, else one by one."""
        self._of_torch(needs)
        if needs.wanted:
            self.say(f"installing {many(len(needs.wanted), 'package')}")
            for each in self._together(needs.wanted):
                self.say(f"installing {each.words}")
                self._one(each)
        known = {each.name for each in needs.wanted} | {*self.made.left_out}
        absent = interpreter.lacks(self.installer.python, sorted(needs.modules - {*self.made.stand_ins, "torch_npu"}))
        for module in absent:
            if distribution_of(module) not in known and module not in needs.of_torch:
                self._one(Wanted(distribution_of(module), distribution_of(module), "imports"))
        self._try(needs)

    def _try(self, needs: Needs) -> None:
        """Import what the scripts import: an old release may install, and not go with others of today."""
        for module in sorted(needs.modules - {*self.made.stand_ins, *needs.of_torch, "torch_npu"}):
            name = distribution_of(module)
            why = self.installer.import_error(_BEHIND.get(module, module))
            if why and not interpreter.lacks(self.installer.python, [module]):
                self.say(f"{name} cannot be imported ({why}): installing its newest release")
                with contextlib.suppress(Failed):
                    self._get([name], "--upgrade")
                if why := self.installer.import_error(_BEHIND.get(module, module)):
                    self.made.left_out[name] = f"it is installed, but cannot be imported: {why}"

    def _together(self, wanted: list[Wanted]) -> list[Wanted]:
        """Install what goes together; those that do not, which the installer names one after another."""
        rest, others = [*wanted], list[Wanted]()
        while rest:
            try:
                self._get([each.words for each in rest])
                self.made.installed += [each.name for each in rest]
                break
            except Failed as why:
                blamed = [each for each in rest if why.names(each.name)] or rest
                others += blamed
                rest = [each for each in rest if each not in blamed]
        return others

    def _of_torch(self, needs: Needs) -> None:
        release = release_of(self.torch.rpartition(".")[0])
        for name in needs.of_torch:
            version = getattr(release, name)
            self.say(f"installing {name} {version}")
            words = [f"{name}{each}" for each in _builds(version)]
            for asked, options in (
                (words, ()), (words, ("--index-url", CPU_INDEX, "--no-deps")),
                # Its compiled part is for CUDA, and runs do without it.
                ([f"{name}=={version}"], ("--no-deps",)),
            ):  # fmt: skip
                with contextlib.suppress(Failed):
                    self._get(asked, *options)
                    self._get(["pillow"])
                    self.made.installed.append(name)
                    break
            else:
                self.made.left_out[name] = f"no build of {name} {version} was found"

    def _one(self, each: Wanted) -> None:
        """As it is asked for, in any version, or without what it needs of torch's; else it is left out."""
        try:
            self._get([each.words])
        except Failed as why:
            try:
                if each.words == each.name:
                    raise
                self._get([each.name])
                self.made.left_out[each.words] = f"{why}; another release was installed instead"
            except Failed as other:
                if not self._without_torch(each):
                    self.made.left_out[each.name] = str(other)
                    self.say(f"left out {each.name}: {other}")
                    return
        self.made.installed.append(each.name)

    def _without_torch(self, each: Wanted) -> bool:
        """A package that asks for a build of torch or of its kin that is not here: itself, and what else it needs."""
        try:
            self._get([each.name], "--no-deps")
        except Failed:
            return False
        of_torch = {"torch", "torchvision", "torchaudio", "triton"}
        needs = interpreter.requirements_of(self.installer.python, each.name)
        others = [name for name in needs if name not in of_torch]
        with contextlib.suppress(Failed):
            if others:
                self._get(others)
        return True

    def _get(self, words: Sequence[str], *options: str) -> None:
        # What torch asks for holds too; and nothing else brings another torch.
        torch = [f"torch{each}" for each in _builds(self.torch)]
        constraints = self.place / "constraints.txt"
        constraints.write_text("\n".join([*torch, ""]), "utf-8")
        wheels = [f"--only-binary={','.join(_WHEELS_ONLY)}"] if not self.installer.uv else [
            word for name in _WHEELS_ONLY for word in ("--only-binary", name)
        ]
        self.installer.install([*torch, *words], "-c", str(constraints), *wheels, *options)


def _put_torch_npu(made: SetUp, say: Callable[[str], None]) -> None:
    """The wheel into the cache, as `transplt emulator install` has it; where that fails a run says it again."""
    try:
        wheel = torch_npu_wheel.wheel_for(interpreter.whole_of(made.python))
        cache = torch_npu_wheel.folder_of_wheels()
        if not torch_npu_wheel.is_there(wheel, cache):
            torch_npu_wheel.fetch(wheel, made.python, cache)
        driver.build(cache / wheel.name, cache)
        made.torch_npu = wheel.version
    except (UsageError, NoWheel) as why:
        say(f"without torch_npu: {why}")


def report(made: SetUp) -> Iterator[str]:
    """What was made, for the user."""
    there = "unchanged" if made.again else "is ready"
    beside = f", torch_npu {made.torch_npu} in the cache" if made.torch_npu else ""
    yield f"{there}: torch {made.torch} and {many(len(made.installed), 'package')}{beside}; {shown(made.python)}"
    for name, why in made.left_out.items():
        hint = f"; add --stubs {name} to run and prove" if name in ready_stubs() else ""
        yield f"not installed: {name}: {why}{hint}"
    if made.stand_ins:
        yield f"stand-ins that can only be imported: {', '.join(made.stand_ins)}"
    stubs = "".join(f" --stubs {name}" for name in made.left_out if name in ready_stubs())
    yield f"transplt run, prove and port --prove of this project find it; next: transplt prove{stubs} ORIGINAL OUTPUT"
