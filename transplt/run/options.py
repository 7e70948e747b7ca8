"""From what the user asked for, and what the project says about itself, to a plan that can be carried out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from transplt.disk.publish import output_folder
from transplt.errors import UsageError, reason, shown
from transplt.run.config import Config, find_config
from transplt.run.torch_version import choose_target
from transplt.settings import Settings, TorchTarget
from transplt.themes.tunings.table import parse_tunings

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a migration as given; None where the project's settings or the defaults decide.

    `jobs` is the number of worker processes, 0 for none, None for a number that fits.
    """

    source: Path
    out: Path | None = None
    rules: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = ()
    torch_version: str | None = None
    style: str | None = None
    specify_device: bool | None = None
    similar: bool | None = None
    unsafe_fixes: bool | None = None
    annotate: bool | None = None
    copy_all: bool | None = None
    force: bool = False
    discard_edits: bool = False
    jobs: int | None = None
    report_only: bool = False
    page: bool = True
    analysis: bool = False
    hardware: str = "A2"
    library: tuple[tuple[str, str], ...] = ()
    entry: str = ""
    targets: tuple[str, ...] = ()
    amp: str | None = None
    amp_dtype: str | None = None
    opt_level: str | None = None
    loss_scale: str | None = None
    combine_ddp: bool = False
    amp_flag: bool = False
    tune: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done: `source` is a real, absolute path of a folder or one .py file, `target` the folder to make.

    `exclude` are patterns of paths relative to the input, `project_exclude` to the folder of the settings.
    """

    source: Path
    target: Path
    settings: Settings
    torch: TorchTarget
    exclude: tuple[str, ...]
    project_exclude: tuple[str, ...]
    copy_all: bool
    force: bool
    discard_edits: bool
    jobs: int | None
    report_only: bool = False
    page: bool = True

    @property
    def single(self) -> bool:
        return self.source.is_file()

    @property
    def folder(self) -> Path:
        """The folder that paths are relative to."""
        return self.source.parent if self.single else self.source


def make_plan(options: Options) -> Plan:
    """UsageError when something about the input, the rules or the settings is wrong; nothing is written."""
    source = find_source(options.source)
    folder = source.parent if source.is_file() else source
    config = find_config(folder)
    version = options.torch_version if options.torch_version is not None else config.torch_version
    torch = choose_target(source, version)
    if options.torch_version is None and config.torch_version is not None:
        torch = replace(torch, why="[tool.transplt] in pyproject.toml")
    return Plan(
        source=source,
        target=output_folder(source, options.out),
        settings=settings_of(options, config, torch.version, folder),
        torch=torch,
        exclude=options.exclude,
        project_exclude=config.exclude,
        copy_all=_first(options.copy_all, config.copy_all, False),
        force=options.force,
        discard_edits=options.discard_edits,
        jobs=options.jobs,
        report_only=options.report_only,
        page=options.page,
    )


def find_source(path: Path) -> Path:
    """The real, absolute path of an input: a folder or one .py file. UsageError when it is neither."""
    try:
        os.stat(path)
    except FileNotFoundError as error:
        broken = " (a broken link)" if path.is_symlink() else ""
        raise UsageError(f"there is no {shown(path)}{broken}") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}") from error
    source = Path(os.path.realpath(path))
    if source.is_file() and path.suffix != ".py":
        raise UsageError(f"{shown(path)} is not a .py file; give a folder or one .py file")
    if not source.is_file() and not source.is_dir():
        raise UsageError(f"{shown(path)} is neither a folder nor a file")
    if source.is_file() and source.suffix != ".py":
        # A link with a name of its own: the name that the user gave counts.
        source = Path(os.path.abspath(path))
    return source


def settings_of(options: Options, config: Config, version: str, folder: Path) -> Settings:
    """The settings of a run over `folder`: the command line over the project's own settings over the defaults."""
    style = _first(options.style, config.style, "npu")
    if options.entry and style == "portable":
        raise UsageError("what `distributed` writes is for NPUs alone, and the style is portable; give --style npu")
    amp, loss_scale = _amp(options)
    tune = parse_tunings(options.tune or "", version)
    if style == "portable" and (amp != "off" or tune):
        raise UsageError("--amp and --tune write for NPUs alone, and the style is portable; give --style npu")
    return Settings(
        torch_version=version,
        # Each rank sets its own device.
        specify_device=not options.entry and _first(options.specify_device, config.specify_device, False),
        similar=_first(options.similar, config.similar, False),
        unsafe_fixes=_first(options.unsafe_fixes, config.unsafe_fixes, False),
        annotate=_first(options.annotate, config.annotate, False),
        style=style,
        user_rules=read_rules((*config.rules, *options.rules)),
        per_file_ignores=config.per_file_ignores,
        base=config.base(folder),
        analysis=options.analysis,
        hardware=options.hardware,
        library=options.library,
        entry=options.entry,
        targets=options.targets,
        amp=amp,
        amp_dtype=options.amp_dtype or "float16",
        opt_level=options.opt_level or "O2",
        loss_scale=loss_scale,
        amp_flag=options.amp_flag,
        combine_ddp=options.combine_ddp,
        tune=tune,
    )


def _amp(options: Options) -> tuple[str, str]:
    """The kind of mixed precision and the loss scale. UsageError for options that do not go together."""
    amp = options.amp or "off"
    for option, chosen, known in (
        ("--amp", amp, ("native", "apex", "off")),
        ("--amp-dtype", options.amp_dtype or "float16", ("float16", "bfloat16")),
        ("--opt-level", options.opt_level or "O2", ("O1", "O2")),
    ):
        if chosen not in known:
            raise UsageError(f"{option} must be one of {', '.join(known)}, not {chosen!r}")
    for option, given, kinds in (  # given: a text or a flag
        ("--amp-dtype", options.amp_dtype, ("native",)),
        ("--opt-level", options.opt_level, ("apex",)),
        ("--combine-ddp", options.combine_ddp, ("apex",)),
        ("--loss-scale", options.loss_scale, ("native", "apex")),
        ("--amp-flag", options.amp_flag, ("native", "apex")),
    ):
        if given and amp not in kinds:
            raise UsageError(f"{option} needs --amp {' or '.join(kinds)}")
    scale = options.loss_scale or "dynamic"
    if scale != "dynamic" and not (re.fullmatch(r"\d+(\.\d*)?", scale) and float(scale) > 0):
        raise UsageError(f"--loss-scale {scale!r} is neither dynamic nor a positive number")
    if options.loss_scale and options.amp_dtype == "bfloat16":
        raise UsageError("--loss-scale: bfloat16 needs no loss scaling")
    return amp, scale


def read_rules(paths: tuple[Path, ...]) -> tuple[tuple[str, str], ...]:
    """The rule files as (file name, text), all of them valid. UsageError names the place of what is wrong."""
    if not paths:
        return ()
    from transplt.rules.rule_file import RuleFileError, load_user_rules

    try:
        loaded = load_user_rules(paths)
    except RuleFileError as error:
        raise UsageError(str(error)) from error
    return tuple((Path(name).name, text) for name, text in loaded)


def _first(given: _T | None, configured: _T | None, default: _T) -> _T:
    if given is not None:
        return given
    return default if configured is None else configured
