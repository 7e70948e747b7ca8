"""`transplt convert`: parses options, converts file by file, returns the exit code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.render.options import argument, flag, option, taking
from transplt.faces.cli.command import DONE, Command
from transplt.faces.cli.completing import FILE, FOLDER
from transplt.precision.convert.acl_json import MODES, acl_json
from transplt.precision.convert.layout import FORMATS, Layout, read_shape

_MOST_FILES = 100_000
#: What lies beside tensors in a dump.
_NO_TENSORS = (".json", ".csv", ".log", ".md", ".html", ".xlsx")


@dataclass(frozen=True)
class Convert:
    """What is converted, and how."""

    files: tuple[str, ...] = argument(nargs=-1, type=FILE, metavar="FILE...")
    output: str | None = option("Write the files to this folder.", "-o", "--output", type=FOLDER, metavar="DIR")
    to: str | None = option("What to write (npy; for .npy files: txt).", type=click.Choice(["npy", "txt"]))
    tensor_format: str | None = option(
        "The layout of a device's tensors.", "-f", "--tensor-format", type=click.Choice(FORMATS)
    )
    shape: str | None = option(
        "With -f: the shape in the network, without padding.", "-s", "--shape", metavar="1,3,224,224"
    )
    force: bool = flag("Replace existing files.")
    acl: str | None = option("Write the configuration of an ACL dump instead.", type=FILE, metavar="acl.json")
    dump_path: str | None = option("With --acl: where the device writes; must exist there.", metavar="DIR")
    model: str | None = option("With --acl: the model.", metavar="NAME")
    layers: tuple[str, ...] = option(
        "With --acl: operators of the model (all).", "--layer", metavar="OP", multiple=True
    )
    mode: str = option(
        "With --acl: which of their tensors.", type=click.Choice(MODES), default="output", show_default=True
    )
    operators: bool = flag("With --acl: single operators, without a model.")


@click.command(cls=Command)
@taking(Convert)
def convert(given: Convert) -> int:
    """Convert dumped tensors: device files, .h5, .pt and .npy to .npy, and .npy to text.

    FILE may also be a folder, read with its subfolders; other files (.json, .csv) are skipped. A device file such as
    Pooling.pool1.1147.1589195081588018 becomes that name with .output.0.npy, for each input and output. Text has
    one element per line, without shape and dtype.
    """
    if given.acl is not None:
        if not given.dump_path or given.files:
            raise UsageError("--acl needs --dump-path, and no FILE")
        text = acl_json(given.dump_path, given.model, given.layers, given.mode, operators=given.operators)
        _write(Path(given.acl), text.encode(), force=given.force)
        click.echo(f"{shown(given.acl)} written: acl.init({given.acl!r}) dumps to {given.dump_path}")
        return DONE
    if not given.files or given.output is None:
        raise UsageError("give FILEs to convert and a folder for the results: transplt convert FILE... -o DIR")
    from transplt.base.render.cell import many, visible
    from transplt.precision.convert.files import arrays_in, as_npy, as_text

    written = 0
    if given.shape is not None and given.tensor_format is None:
        raise UsageError("--shape needs --tensor-format")
    wanted = None
    if given.tensor_format is not None:
        wanted = Layout(given.tensor_format, read_shape(given.shape) if given.shape else ())
    for path, below in _files_in(given.files):
        kind = given.to or ("txt" if path.endswith(".npy") else "npy")
        for name, what, array in arrays_in(path, wanted):
            target = Path(given.output, below, f"{name}.{kind}")
            made = as_text(array) if kind == "txt" else as_npy(array)
            _write(target, made, force=given.force, at=os.stat(path).st_mtime_ns)
            click.echo(f"{visible(str(target))}  {what}")
            written += 1
    click.echo(f"{many(written, 'tensor')} written to {shown(given.output)}", err=True)
    return DONE


def _files_in(files: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(file, folder below the one that was named) of the files, and of those in folders, which are walked."""
    for name in files:
        if not os.path.lexists(name):
            raise UsageError(f"{shown(name)} does not exist")
        if not os.path.isdir(name):
            yield name, ""
            continue
        entries: list[tuple[str, str]] = []
        for folder, inner, names in os.walk(name):
            inner.sort()
            paths = (os.path.join(folder, each) for each in sorted(names) if not each.endswith(_NO_TENSORS))
            below = os.path.relpath(folder, name)
            entries += [(path, "" if below == "." else below) for path in paths if not os.path.islink(path)]
            if len(entries) > _MOST_FILES:
                break
        if not entries or len(entries) > _MOST_FILES:
            raise UsageError(f"{shown(name)} holds {len(entries)} files; a folder of 1 to {_MOST_FILES} is converted")
        yield from entries


def _write(path: Path, data: bytes, *, force: bool, at: int | None = None) -> None:
    """The whole file or nothing, with the time `at` that it was dumped, which tells the order of operators. UsageError
    where it is there already."""
    unfinished = path.with_name(f".{path.name[:200]}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path) and not force:
            raise UsageError(f"{shown(path)} exists; --force replaces it")
        unfinished.write_bytes(data)
        if at is not None:
            os.utime(unfinished, ns=(at, at))
        os.replace(unfinished, path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise CannotFinish(f"cannot write {shown(path)}: {reason(error)}") from error
