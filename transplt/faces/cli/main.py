"""The command `transplt`: what it starts, and how it ends. What is slow to import is imported late."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import io
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any, NoReturn

import click

import transplt
from transplt.base.errors import TranspltError, reason, shown
from transplt.base.language import spoken
from transplt.faces.cli.command import (
    DONE,
    INTERRUPTED,
    SPOKEN,
    UNFINISHED,
    USAGE,
    CommandGroup,
    discard_stdout,
    given_options,
    spelled,
    to_stderr,
)
from transplt.faces.cli.migrate import migrate, migrate_options

#: Sub-commands that migrate first, and so take the options of the group.
MIGRATING_COMMANDS = frozenset({"distributed"})

#: What a system refuses to every program: no defect of this one.
_REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ENOMEM})


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    epilog="Exit codes: 0 nothing left to do, 1 something is left to do by hand, 2 wrong usage, input, rules or "
    "settings, 3 could not finish, 130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@migrate_options
@click.version_option(transplt.__version__)
@click.pass_context
def main(ctx: click.Context, /, **options: Any) -> int:
    """Migrate a PyTorch project from CUDA GPUs to Ascend NPUs.

    \b
    1. Check it; no file is changed:
       transplt check PROJECT
    2. Write OUT/NAME_msft, for NPUs:
       transplt -i PROJECT -o OUT
    3. Try the result on an emulated NPU:
       transplt run OUT/NAME_msft/train.py

    PROJECT is a folder or one .py file, and is never changed.
    \f
    The options are those of a migration; each command has its own.
    """
    if ctx.invoked_subcommand is None:
        if not options["source"]:
            ctx.fail("Missing option '-i' / '--input'.")
        with spoken(ctx.meta[SPOKEN]):
            return migrate(**options)
    given = given_options(ctx)
    if given and ctx.invoked_subcommand not in MIGRATING_COMMANDS:
        names = spelled(ctx.command)
        wrong = ", ".join(sorted(names[name] for name in given))
        command = ctx.invoked_subcommand
        ctx.fail(f"{wrong}: not for {command!r}; put its options after its name: transplt {command} --help")
    ctx.obj = {name: options[name] for name in given}
    return DONE


def entry_point() -> int:
    """The command `transplt`: the exit code, whatever happens."""
    _open_what_is_closed()
    _catch_signals()
    atexit.register(gc.freeze)  # or the collector goes through all that was read once more when the interpreter ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # cp1252 cannot show every path and source line: escaped, not lost
            stream.reconfigure(errors="backslashreplace")
    try:
        return main.main(prog_name="transplt", standalone_mode=False) or DONE
    except click.ClickException as error:
        error.show()
        return USAGE
    except TranspltError as error:
        to_stderr(f"Error: {error}")
        return error.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        with contextlib.suppress(OSError):  # the terminal may be what has gone
            to_stderr("interrupted; no partial output is left")
        return INTERRUPTED
    except BrokenPipeError:
        discard_stdout()  # `transplt explain NPU201 | head -1`: who reads has enough
        return DONE
    except MemoryError:
        _close_in_silence()
        to_stderr("Error: not enough memory; no partial output is left")
        return UNFINISHED
    except OSError as error:
        if error.errno == errno.ENOENT and error.filename is None and _is_nowhere():
            to_stderr("Error: the current folder no longer exists; change to another folder")
            return USAGE
        if error.errno not in _REFUSALS:
            return _defect(error)
        if error.filename is None:
            discard_stdout()
        to_stderr(f"Error: cannot write {shown(error.filename or 'standard output')}: {reason(error)}")
        return UNFINISHED
    except Exception as error:
        return _defect(error)


def _open_what_is_closed() -> None:
    """`transplt ... >&-`: what is printed goes nowhere, never into a file that is opened in the place of a stream."""
    while (handle := os.open(os.devnull, os.O_WRONLY)) <= 2:
        pass
    os.close(handle)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BytesIO())
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8"))


def _is_nowhere() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _defect(error: Exception) -> int:
    import traceback

    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("transplt"):
        to_stderr(f"Error: this needs the package {error.name!r}, which is not installed")
        return USAGE
    traceback.print_exc()
    what = "no partial output is left. The fault is not your project's: please report the lines above"
    to_stderr(f"Error: an internal error of transplt ({type(error).__name__}); {what}")
    return UNFINISHED


def _close_in_silence() -> None:
    """Half a workbook cannot be closed in good order: nobody has to know."""
    sys.unraisablehook = lambda _: None


def _catch_signals() -> None:
    """Ctrl-C, SIGTERM and SIGHUP end a run cleanly; a second one does not disturb the cleaning up."""
    ending = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        ending.append(signal.SIGHUP)

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        for each in ending:
            signal.signal(each, signal.SIG_IGN)
        _close_in_silence()
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for each in ending:
            signal.signal(each, interrupt)
