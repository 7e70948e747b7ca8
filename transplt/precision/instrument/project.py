"""The folder of a probe copy: the program, edited where it trains, with the probe and a launch script beside it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from transplt.base.disk.publish import check_output, publish, set_folder_modes, staging
from transplt.base.errors import UsageError
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.precision.instrument.launch import LAUNCH, environment_lines, launch_script, starts, with_environment
from transplt.precision.instrument.script import Probed, Probing, instrument
from transplt.proof.launch.options import UsageError as RunUsageError
from transplt.proof.prove.projects import find_project

#: What lies beside the script of a copy.
_NAMES = ("transplt_probe.py", "transplt_optimizers.py", "transplt_configuration.py")
PROBES = tuple(map(Path(__file__).with_name, _NAMES))
#: Bytes of a shell script.
_LARGEST = 200_000
#: Where a migration keeps its record.
_NOTES = ".transplt"
#: A folder in the staged one that no project has, for the time of copying.
_APART = ".transplt_copy"


@dataclass(frozen=True)
class Copy:
    """What was written: the folder, the script in it, and how it was instrumented."""

    folder: Path
    main: str
    probed: Probed
    environment: tuple[str, ...]
    launchers: tuple[str, ...]  #: shell scripts of the program's own that set it, by path


def write_copy(source: Path, out: Path, main: str, probing: Probing) -> Copy:
    """Write the probe copy of the script `source`, or of `main` in the folder `source`, to the new folder `out`.

    UsageError where there is no such script, or `out` cannot be written.
    """
    try:
        project = find_project(source, main, ())
    except RunUsageError as error:
        raise UsageError(str(error)) from error
    target = Path(os.path.realpath(out))
    check_output(project.root, target, force=False, discard_edits=False)
    with staging(target) as stage:
        apart = stage.folder / _APART
        apart.mkdir()
        try:
            copied = project.copy_to(apart)
        except RunUsageError as error:
            raise UsageError(str(error)) from error
        for path in copied.iterdir():
            if path.name != _NOTES:  # the copy is no migration's output
                path.rename(stage.folder / path.name)
        shutil.rmtree(apart)
        files = {path.relative_to(stage.folder).as_posix(): path for path in sorted(stage.folder.rglob("*.py"))}
        own = {name: path for name, path in files.items() if path.is_file() and not path.is_symlink()}
        probed = instrument({name: read_regular(path, SOURCE) for name, path in own.items()}, project.main, probing)
        for name, data in probed.files.items():
            (stage.folder / name).write_bytes(data)
        beside = (stage.folder / project.main).parent
        for probe in PROBES:
            shutil.copyfile(probe, beside / probe.name)
        environment = environment_lines(probing, probed.seed)
        launchers = _prepared(stage.folder, project.main, environment)
        launch = stage.folder / LAUNCH
        launch.write_text(launch_script(project.main, environment), encoding="utf-8")
        launch.chmod(0o755)
        set_folder_modes(stage, (), project.root.stat().st_mode)
        publish(stage, replace=False)
    return Copy(target, project.main, probed, environment, launchers)


def _prepared(folder: Path, main: str, environment: tuple[str, ...]) -> tuple[str, ...]:
    """The shell scripts of a copy that start its script, by path, which set the environment now."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
            continue
        name, data = path.relative_to(folder).as_posix(), read_regular(path, SOURCE)
        if starts(name, data, main):
            path.write_bytes(with_environment(data, environment))
            found.append(name)
    return tuple(found)
