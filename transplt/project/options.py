"""What was asked for (`Options`), and what that comes to over the project's own settings: `Settings`, and a `Plan`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from keyword import iskeyword
from pathlib import Path
from typing import Any

from transplt.base.budget import Budget
from transplt.base.disk.publish import output_folder
from transplt.base.errors import UsageError, reason, shown
from transplt.base.plan_decisions import Decided
from transplt.base.settings import IMPORTS, STYLES, Settings, TorchTarget
from transplt.fixers.adaptors.table import parse_adaptors
from transplt.fixers.tunings.table import parse_tunings
from transplt.project.config import Config, find_config
from transplt.project.line_length import line_length
from transplt.project.own_settings import budget_for
from transplt.project.part_requirements import asked_in_parts
from transplt.project.pins import asked_versions
from transplt.project.torch_version import choose_target
from transplt.rules import adaptors, default_devices, gpu_words
from transplt.rules.card_limits import card_named
from transplt.rules.own_card import ran_on_own_card
from transplt.rules.since import packages_gone

_Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for: the parameters of the command line, by their names there; what goes to the engine has the
    name that it has in `Settings`.

    None (and an empty text) where the project's settings or the defaults decide; with `isolated` the defaults do.
    `jobs` is the number of worker processes, 0 for none, None for a number that fits; `executor` names others. `plan`
    is a file of decisions (`transplt plan`), `decided` what it came to when it was read.
    """

    source: _Path = "."
    out: _Path | None = None
    rules: Sequence[_Path] = ()
    fixers: Sequence[str] = ()
    codemods: Sequence[str] = ()
    exclude: Sequence[str] = ()
    isolated: bool = False
    torch_version: str | None = None
    style: str | None = None
    helper: str | None = None
    torch_npu_import: str | None = None
    specify_device: bool | None = None
    similar: bool | None = None
    unsafe_fixes: bool | None = None
    annotate: bool | None = None
    annotate_edits: bool | None = None
    texts: bool | None = None
    docs: bool | None = None
    copy_all: bool | None = None
    inline: bool = False
    force: bool = False
    discard_edits: bool = False
    jobs: int | None = None
    executor: str | None = None
    report_only: bool = False
    page: bool = True
    analysis: bool = False
    hardware: str | None = None
    library: tuple[tuple[str, str], ...] = ()
    entry: str = ""
    targets: tuple[str, ...] = ()
    check_ranks: int = 0
    amp: str | None = None
    amp_dtype: str | None = None
    opt_level: str | None = None
    loss_scale: str | None = None
    combine_ddp: bool = False
    amp_flag: bool = False
    tune: str | None = None
    adapt: str | None = None
    taken_back: tuple[tuple[str, str, str], ...] = ()
    plan: _Path | None = None
    decided: Decided | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done: `source` is a real, absolute path of a folder or one .py file, `target` the folder to make."""

    source: Path
    target: Path
    torch: TorchTarget
    settings: Settings
    options: Options
    config: Config
    budget: Budget  # of each file

    @property
    def single(self) -> bool:
        return self.source.is_file()

    @property
    def folder(self) -> Path:
        """The folder that paths are relative to."""
        return self.source.parent if self.single else self.source

    @property
    def copy_all(self) -> bool:
        """True when files over the size limit are copied too."""
        return bool(self.config.copy_all if self.options.copy_all is None else self.options.copy_all)


def make_plan(options: Options) -> Plan:
    """UsageError when something about the input, the rules or the settings is wrong; nothing is written."""
    source = find_source(Path(options.source))
    folder = source.parent if source.is_file() else source
    config = find_config(folder, isolated=options.isolated)
    if options.plan is not None:
        options = _planned(options, config, source, folder)
    torch = choose_target(source, options.torch_version, config.torch_version)
    if options.decided is not None and "torch-version" in dict(options.decided.keys):
        torch = replace(torch, why=options.decided.plan)
    target = output_folder(source, Path(options.out) if options.out is not None else None)
    settings = settings_of(options, config, torch, folder)
    # A file that is migrated alone stays one file.
    settings = replace(settings, helper_file=not options.inline and not source.is_file())
    return Plan(source, target, torch, settings, options, config, budget_for(config.file_budget, os.environ))


def _planned(options: Options, config: Config, source: Path, folder: Path) -> Options:
    """The options with what the plan decides, and without its name. UsageError for a plan that is wrong."""
    from transplt.project.plan_file.apply import apply_plan

    assert options.plan is not None
    plain = replace(options, plan=None)

    def settled(more: dict[str, Any]) -> Settings:
        given = replace(plain, **more)
        torch = choose_target(source, given.torch_version, config.torch_version)
        return settings_of(given, config, torch, folder)

    def asked(name: str) -> bool:
        return getattr(plain, name) not in (None, "", False)

    planned = apply_plan(os.fspath(options.plan), folder, settled({}), asked, settled)
    return replace(plain, **planned.options, decided=planned.decided)


def find_source(path: Path) -> Path:
    """The real, absolute path of an input: a folder or one .py file. UsageError when it is neither."""
    try:
        os.stat(path)
    except FileNotFoundError as error:
        broken = " (a broken link)" if path.is_symlink() else ""
        raise UsageError(f"no such file or folder: {shown(path)}{broken}") from error
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


def settings_of(options: Options, config: Config, torch: TorchTarget, folder: Path | None) -> Settings:
    """The settings of a run over `folder`, where it is read: the command line over its own settings over defaults."""
    version = torch.version
    base = config.base(folder) if folder else ""
    values = {**_settings_in(config), **_settings_in(options), "torch_version": version, "oldest_torch": torch.oldest,
            "base": base, "tune": (), "adapt": (), "fixers": (), "codemods": ()}  # fmt: skip
    if folder is not None:
        listed = {*gpu_words.packages(), *default_devices.packages(), *adaptors.packages(), *packages_gone()}
        values["pins"] = (*asked_versions(folder, {"torch", *listed}), *asked_in_parts(folder, packages_gone()))
    settings = Settings(**values)
    if options.style is not None and options.style not in STYLES:
        raise UsageError(f"style must be npu or portable, not {options.style!r}")
    if settings.torch_npu_import not in IMPORTS:
        raise UsageError(f"torch_npu_import must be one of {', '.join(IMPORTS)}, not {settings.torch_npu_import!r}")
    _refuse_amp(options, settings)
    tune = parse_tunings(options.tune or "", version)
    adapt = parse_adaptors(options.adapt or "", version)
    if settings.style == "portable":
        _refuse_for_npus_alone(settings)
        if folder is not None:
            settings = replace(settings, line_length=line_length(folder))
    elif options.helper:
        raise UsageError("--helper names the module that the style portable writes; use --style portable")
    return replace(
        settings,
        # Each rank sets its own device.
        specify_device=settings.specify_device and not settings.entry,
        tune=tune,
        adapt=adapt,
        own_card=() if options.isolated else ran_on_own_card(card_named(settings.hardware), version),
        **_added(options, folder),
        user_rules=(*_rules_of(config), *read_rules([*map(Path, options.rules)])),
    )


def _added(options: Options, folder: Path | None) -> dict[str, Any]:
    """The fixers of other packages and the LibCST codemods that were named."""
    here, found = Path(os.path.realpath(folder or Path())), {}
    if options.fixers:
        from transplt.edits.added_fixers import find_added

        found["fixers"] = find_added(options.fixers, here)
    if options.codemods:
        from transplt.edits.added_codemods import find_codemods

        found["codemods"] = find_codemods(options.codemods, here)
    return found


def _rules_of(config: Config) -> tuple[tuple[str, str], ...]:
    """The rule files that the settings of the input name."""
    try:
        return read_rules(config.rules)
    except UsageError as error:
        from transplt.project.excluded_files import settings_file

        raise UsageError(f"{error} (named by {settings_file(config)}; --isolated ignores it)") from error


def _refuse_for_npus_alone(settings: Settings) -> None:
    """UsageError for what does not go with the style portable."""
    for asked, what in (
        (settings.texts, "--texts only writes"), (settings.docs, "--docs only writes"),
        (settings.amp == "apex", "--amp apex only writes"),
    ):  # fmt: skip
        if asked:
            raise UsageError(f"{what} for NPUs, but the style is portable; use --style npu")
    name = settings.helper
    taken = {*sys.stdlib_module_names, "torch", "torch_npu"}
    if name and (not name.isidentifier() or not name.isascii() or iskeyword(name) or name in taken):
        raise UsageError(f"--helper must be a valid module name that Python does not use itself, not {name!r}")


_SETTINGS = tuple(field.name for field in fields(Settings))


def _settings_in(record: Options | Config) -> dict[str, Any]:
    """The settings that a record has, by their names."""
    values = {name: getattr(record, name, None) for name in _SETTINGS}
    return {name: value for name, value in values.items() if value not in (None, "")}


def _refuse_amp(options: Options, settings: Settings) -> None:
    """UsageError for options of mixed precision that do not exist or do not go together."""
    for option, chosen, known in (
        ("--amp", settings.amp, ("native", "apex", "off")),
        ("--amp-dtype", settings.amp_dtype, ("float16", "bfloat16")),
        ("--opt-level", settings.opt_level or "O2", ("O1", "O2")),
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
        if given and settings.amp not in kinds:
            raise UsageError(f"{option} needs --amp {' or '.join(kinds)}")
    scale = settings.loss_scale
    if scale != "dynamic" and not (re.fullmatch(r"\d+(\.\d*)?", scale) and float(scale) > 0):
        raise UsageError(f"--loss-scale {scale!r} is neither dynamic nor a positive number")
    if options.loss_scale and settings.amp_dtype == "bfloat16":
        raise UsageError("--loss-scale: bfloat16 needs no loss scaling")


def read_rules(paths: Sequence[Path]) -> tuple[tuple[str, str], ...]:
    """The rule files as (file name, text), all of them valid. UsageError names the place of what is wrong."""
    if not paths:
        return ()
    from transplt.rules.rule_file import RuleFileError, load_user_rules

    try:
        loaded = load_user_rules(paths)
    except RuleFileError as error:
        raise UsageError(str(error)) from error
    return tuple((Path(name).name, text) for name, text in loaded)
