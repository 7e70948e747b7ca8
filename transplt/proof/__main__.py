"""python -m transplt.proof: the same as `transplt run`."""

import sys

from transplt.base.disk.search_path import leave_current_folder

leave_current_folder()

import traceback  # noqa: E402

import click  # noqa: E402

from transplt.proof.launch.command import run_command  # noqa: E402


def main() -> int:
    """Run the command; 3 for an internal error, 130 when interrupted."""
    try:
        return run_command.main(prog_name="python -m transplt.proof", standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        return 2
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except Exception:
        traceback.print_exc()
        return 3


if __name__ == "__main__":
    sys.exit(main())
