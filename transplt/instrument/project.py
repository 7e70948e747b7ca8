"""The folder of a probe copy: the program, edited where it trains, with the probe and a launch script beside it."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from transplt.disk.publish import check_output, publish, set_folder_modes, staging
from transplt.emulator.options import UsageError as RunUsageError
from transplt.errors import UsageError
from transplt.instrument.script import Probed, Probing, instrument
from transplt.prove.projects import find_project
from transplt.text.regular_file import SOURCE, read_regular

_PROBE = Path(__file__).with_name("transplt_probe.py")
_LAUNCH = "run_probe.sh"
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
        texts = {name: read_regular(path, SOURCE) for name, path in own.items()}
        probed = instrument(texts, project.main, probing)
        for name, data in probed.files.items():
            (stage.folder / name).write_bytes(data)
        beside = (stage.folder / project.main).parent
        shutil.copyfile(_PROBE, beside / _PROBE.name)
        environment = environment_lines(probing, probed.seed)
        launch = stage.folder / _LAUNCH
        launch.write_text(_launch_script(project.main, environment), encoding="utf-8")
        launch.chmod(0o755)
        set_folder_modes(stage, (), project.root.stat().st_mode)
        publish(stage, replace=False)
    return Copy(target, project.main, probed, environment)


def environment_lines(probing: Probing, seed: int) -> tuple[str, ...]:
    """What a launch script sets before it starts the probe copy.

    Source: mindstudio-probe 26.2.0 (its seed_all, and its refusal of TorchDynamo), the CUDA documentation of
    CUBLAS_WORKSPACE_CONFIG.
    """
    lines = [f"PYTHONHASHSEED={seed}", "HCCL_DETERMINISTIC=true", "TORCHDYNAMO_DISABLE=1"]
    return (*lines, "CUBLAS_WORKSPACE_CONFIG=:4096:8") if probing.deterministic else tuple(lines)


def _launch_script(main: str, environment: tuple[str, ...]) -> str:
    exports = "".join(f"export {line}\n" for line in environment)
    return (
        "#!/bin/sh\n# Starts the probe copy; the dump goes to $TRANSPLT_PROBE_DUMP (probe_dump).\n"
        f'{exports}cd "$(dirname "$0")" && exec ${{PYTHON:-python}} {shlex.quote(main)} "$@"\n'
    )


