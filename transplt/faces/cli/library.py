"""The functions that other programs call; `from transplt import migrate_source, migrate_tree, check` gives them.

They raise `transplt.UsageError` for wrong input, rules or settings and `transplt.CannotFinish` when the system refuses
to write; they print nothing. Where several values are wanted, one that stands alone is a list of one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from transplt.base.errors import possible_path
from transplt.base.finding import FileResult
from transplt.project.options import Options
from transplt.project.report.check_results import CheckResult
from transplt.project.report.migration_record import RunResult

_Path = str | os.PathLike[str]
_T = TypeVar("_T", str, _Path)


def _several(given: _T | Sequence[_T]) -> tuple[_T, ...]:
    """Values of which one may stand alone: a text is not the list of its letters. TypeError for bytes."""
    if isinstance(given, (bytes, bytearray)):
        raise TypeError(f"a text is needed, or several, not {given!r}")
    return (given,) if isinstance(given, (str, os.PathLike)) else tuple(given)


def _version(given: object) -> None:
    if not isinstance(given, (str, type(None))):  # 2.10 is 2.1 to Python
        raise TypeError(f"torch_version is a text such as '2.8', not {given!r}")


def migrate_source(
    source: str | bytes,
    path: str = "module.py",
    *,
    torch_version: str | None = None,
    style: str = "npu",
    rules: _Path | Sequence[_Path] = (),
    specify_device: bool = False,
    similar: bool = False,
    unsafe_fixes: bool = False,
) -> FileResult:
    """Migrate one file that is seen without its project; `path` is what findings call it. Nothing is read but `rules`.

    `data` of the result holds the new bytes, for a text as UTF-8. Without its project a file may be edited less. What
    Python does not read is a finding (NPU901 to NPU903).
    """
    from transplt.base.settings import DEFAULT_TORCH_VERSION, TorchTarget
    from transplt.base.text.source import UnreadableSource
    from transplt.engine import engine
    from transplt.engine.silent import unreadable_result
    from transplt.project.config import Config
    from transplt.project.options import settings_of
    from transplt.project.torch_version import check_version

    if not isinstance(source, (str, bytes)):
        raise TypeError(f"source is str or bytes, not {type(source).__name__}")
    _version(torch_version)
    options = Options(
        style=style, rules=_several(rules), specify_device=specify_device, similar=similar, unsafe_fixes=unsafe_fixes
    )
    version = check_version(torch_version) if torch_version is not None else DEFAULT_TORCH_VERSION
    settings = settings_of(options, Config(), TorchTarget(version, "asked for"), None)
    try:
        data = source if isinstance(source, bytes) else source.encode("utf-8")
    except UnicodeEncodeError as error:
        assert isinstance(source, str)
        what = f"the text contains half of a surrogate pair (U+{ord(source[error.start]):04X}), which no file can store"
        why = UnreadableSource("NPU902", source.count("\n", 0, error.start) + 1, what)
        return unreadable_result(source.encode("utf-8", "surrogatepass"), path, why)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler, about what it reads
        return engine.migrate_source(data, path, settings)


def migrate_tree(
    source: _Path,
    out: _Path | None = None,
    *,
    torch_version: str | None = None,
    style: str | None = None,
    rules: _Path | Sequence[_Path] = (),
    fixers: str | Sequence[str] = (),
    codemods: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    specify_device: bool | None = None,
    similar: bool | None = None,
    unsafe_fixes: bool | None = None,
    amp: str | None = None,
    amp_dtype: str | None = None,
    opt_level: str | None = None,
    loss_scale: str | None = None,
    combine_ddp: bool = False,
    amp_flag: bool = False,
    tune: str | None = None,
    adapt: str | None = None,
    isolated: bool = False,
    force: bool = False,
    report_only: bool = False,
    jobs: int | None = None,
) -> RunResult:
    """Migrate a folder or one file into `<out>/<name>_msft`, as `transplt -i SOURCE -o OUT` does.

    What is None is decided by the project's own settings, with `isolated` by the defaults. `amp` (native or apex),
    `tune` and `adapt` (names of tunings and adaptors, or all) and what belongs to them mean what they mean on the
    command line. The input is never changed; the output is there and complete at the end, or it is not there.
    """
    rules, fixers, codemods, exclude = _several(rules), _several(fixers), _several(codemods), _several(exclude)
    options = Options(**locals(), analysis=True)  # the arguments are options, by their names
    _version(torch_version)
    possible_path(os.fspath(source))
    possible_path(os.fspath(out or source))
    from transplt.project import tree
    from transplt.project.options import make_plan

    return tree.migrate_tree(make_plan(options))


def check(
    *paths: _Path,
    torch_version: str | None = None,
    style: str | None = None,
    rules: _Path | Sequence[_Path] = (),
    fixers: str | Sequence[str] = (),
    codemods: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    isolated: bool = False,
    jobs: int | None = None,
) -> CheckResult:
    """Look at files and folders, as `transplt check` does: nothing is written, `findings` are those that are open."""
    from transplt.project.checking.check_run import check_paths
    from transplt.project.checking.codes import parse_codes, switched_off

    _version(torch_version)
    for path in paths:
        possible_path(os.fspath(path))
    rules, fixers, codemods, exclude = _several(rules), _several(fixers), _several(codemods), _several(exclude)
    options = Options(
        torch_version=torch_version, style=style, rules=rules, fixers=fixers, codemods=codemods,
        exclude=exclude, isolated=isolated, jobs=jobs,
    )  # fmt: skip
    ignores = switched_off(parse_codes(_several(select), "select"), parse_codes(_several(ignore), "ignore"))
    return check_paths([Path(path) for path in paths], options, ignores=ignores)
