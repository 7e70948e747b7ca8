"""`run_distributed_npu.sh`: starts a script on all cards of a machine, or of several."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path

from transplt.base.disk.mirror import write_file
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.project.report.migration_record import RunResult
from transplt.rules.tables import read_table

LAUNCH = "run_distributed_npu.sh"
#: Settings of HCCL that the script names, with the value that it gives them.
_SETTINGS = (
    ("HCCL_CONNECT_TIMEOUT", "600", "seconds to wait until all ranks have connected"),
    ("HCCL_EXEC_TIMEOUT", "1836", "seconds that a collective may wait for the slowest rank"),
    ("HCCL_WHITELIST_DISABLE", "1", "1: no list of allowed addresses is needed"),
)
#: Settings for speed, memory and looking for errors that stand in a comment: name, value, what it does, what it costs.
#: Sources: rules/support/env_vars.json, and the performance section of the Ascend PyTorch porting guide (CANN).
_CHOICES = (
    ("TASK_QUEUE_ENABLE", "2", "the host queues more of its work", "higher peak memory"),
    ("COMBINED_ENABLE", "1", "pairs of views become one copy", "none is documented"),
    ("ASCEND_GLOBAL_LOG_LEVEL", "1", "CANN logs 0 debug, 1 info, 3 errors", "slow steps and a full disk below 3"),
    ("ASCEND_SLOG_PRINT_TO_STDOUT", "1", "CANN's log on the terminal", "slow steps, and very long output"),
    ("ASCEND_GLOBAL_EVENT_ENABLE", "1", "CANN logs events", "as above"),
    ("ASCEND_LAUNCH_BLOCKING", "1", "errors are raised where they happen", "host and card take turns: much slower"),
    ("DUMP_GE_GRAPH", "2", "CANN writes the graphs that it compiles", "gigabytes in the working folder"),
)


def write_launch(result: RunResult, folder: Path, taken: Collection[str]) -> dict[str, str]:
    """Writes the launch script to the top of `folder`; its sha256 by its name. WriteError or OSError when refused.

    A name that is taken by a file of the project is left to it, as with the reports.
    """
    name = LAUNCH
    while name in taken:
        name = f"transplt_{name}"
    spawns = any(finding.code == "NPU331" for finding in result.findings)
    given = [finding.detail("option") for finding in result.findings if finding.code == "NPU330"]
    entry, option = result.settings.entry, next(filter(None, given), "")
    options = options_of(folder, [entry, *(record.path for record in result.files if record.path.endswith(".py"))])
    text = launch_script(entry, spawns=spawns, whole=result.whole, option=option, options=options)
    return {name: write_file(str(folder), name, text.encode(), 0o755)}


#: Options that the script takes where the program has none of that name, as the commands of the Ascend porting guide
#: give them; and that of a program for the address of its process group.
_OFFERED, _DIST_URL = ("--addr", "--device-list", "--device"), "--dist-url"
#: Those without which a program of the kind of torch's ImageNet example starts one process.
_OF_MANY = frozenset({"--multiprocessing-distributed", "--world-size", "--rank"})
_OPTION = re.compile(rb"""["'](--[\w-]+)["']""")
_PARSES = re.compile(rb"\.add_argument\(")


def options_of(folder: Path, paths: Sequence[str]) -> frozenset[str] | None:
    """The options of a program by the text of its files below `folder`, of which the first is the main file: those of
    that file where it has a parser, else those of all. None where no parser is in sight, which tells nothing.
    """
    found: set[str] = set()
    for at, path in enumerate(dict.fromkeys(paths)):
        try:
            data = read_regular(os.path.join(folder, path), SOURCE)
        except OSError:
            continue
        if _PARSES.search(data):
            found.update(option.decode() for option in _OPTION.findall(data))
            if at == 0:
                break
    return frozenset(found) if found else None


@lru_cache(maxsize=1)
def _facts() -> dict[str, dict[str, str]]:
    return {name: row for section in read_table("support/env_vars.json").values() for name, row in section.items()}


def _compile_options() -> list[str]:
    """Comments on what people look for among the variables, and what a program sets instead."""
    lines = ["# Compile options are no variables: torch.npu.set_option({KEY: VALUE}) in the program takes them."]
    for name, row in read_table("support/npu_options.json")["options"].items():
        if name.startswith("ACL_OP_") and not row.get("deprecated"):
            lines.append(f"#   {name}: {row['about']}" + f" ({', '.join(row.get('values', ()))})" * ("values" in row))
    return lines


def _settings() -> list[str]:
    """The lines of the environment: what is set, and what may be tried."""
    settings, choices = list[str](), ["# Take the # away to try one, and measure."]
    for name, value, meaning in _SETTINGS:
        default = _facts().get(name, {}).get("default", "")
        default_text = f" (default {default})" if default else ""
        settings.append(f"# {meaning}{default_text}\nexport {name}=${{{name}:-{value}}}")
    for name, value, meaning, cost in _CHOICES:
        default = _facts().get(name, {}).get("default", "")
        default_text = f"default {default}; " if default else ""
        choices.append(f"# export {name}={value}  # {meaning} ({default_text}cost: {cost})")
    return [*settings, "", *choices, "", *_compile_options()]


def launch_script(
    entry: str,
    *,
    spawns: bool = False,
    whole: bool = False,
    option: str = "",
    options: frozenset[str] | None = None,
) -> str:
    """The text of the launch script for `entry`, a path relative to the script.

    `spawns`: the program starts its processes itself, so it is started once. `whole`: every rank trains with all of
    the data, so that more cards are no faster. `option` is one that the script cannot do without; `options` are those
    that it has (see `options_of`): it gets these, the launch script takes --addr, --device-list and --device where the
    program has none, anywhere in the command; where nothing is known only in front of the program's arguments. Facts:
    rules/support/env_vars.json; the options are those of the Ascend PyTorch porting guide (multi-card training).
    """
    spawning = (_SPAWNING, "python", ' 2>&1 | tee "$logs/output.log"')
    start, engine, kept = spawning if spawns else (_TORCHRUN, "torchrun", "")
    if option:
        given = " ".join(map(shlex.quote, option.split(" ")))
        start = start.replace('"$main" "$@"', f'"$main" {given} "$@"')
    known = options or frozenset()
    offered = [each for each in _OFFERED if each not in known]
    cases = "\n".join(_CASES[each] for each in offered)
    anywhere = options is not None and bool(offered)
    if spawns and _DIST_URL in known:
        start = (_MANY if known >= _OF_MANY else _TCP) + start
    return _TEMPLATE.format(
        help="\n".join(_HELP[each] for each in offered),
        cases=cases,
        anywhere=_ANYWHERE.format(cases=cases) if anywhere else "",
        only="only=0\n" if anywhere else "",
        alone="only=1; " if anywhere else "",
        entry=shlex.quote(posixpath.normpath(entry)),
        whole=_WHOLE if whole else "",
        alone_there=_ALONE_THERE if spawns and _DIST_URL not in known else "",
        settings="\n".join(_settings()),
        start=start,
        engine=engine,
        kept=kept,
    )


_WHOLE = """\
# Every rank trains with all of the data: more cards do not make it faster (transplt explain NPU340).
"""
_ALONE_THERE = """\
# A script that reads none of these from the environment trains on each machine alone: it has an address of its own.
"""
_TEMPLATE = """\
#!/usr/bin/env bash
{whole}# Starts {entry} on the NPUs of this machine, one process per card, or on several machines.
#
#   bash run_distributed_npu.sh [--nproc N] [--logs DIR] [--dry-run] [--] [arguments of the script]
#
#   --nproc N           processes on this machine; else as many as ASCEND_RT_VISIBLE_DEVICES names, or npu-smi lists
#   --logs DIR          the output of each rank also goes to DIR; default: logs/<date> beside this script
#   --dry-run           print the command, and do not run it
{help}
#
# Several machines: run it on each one with NNODES, NODE_RANK (0 on the first), MASTER_ADDR (of the first), MASTER_PORT.
{alone_there}# The exit code is that of the job.
set -euo pipefail

here=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)
main="$here"/{entry}
nproc=""
logs=""
dry_run=0
addr=""
cards=""
{only}
while [ $# -gt 0 ]; do
    case "$1" in
        --nproc) nproc="${{2:?--nproc needs a number}}"; shift 2 ;;
        --nproc=*) nproc="${{1#*=}}"; shift ;;
        --logs) logs="${{2:?--logs needs a folder}}"; shift 2 ;;
        --logs=*) logs="${{1#*=}}"; shift ;;
        --dry-run) dry_run=1; shift ;;
{cases}
        --) shift; {alone}break ;;
        *) break ;;
    esac
done
{anywhere}
case "$cards" in
    *[!0-9,]* | ,* | *, | *,,*)
        echo "run_distributed_npu.sh: --device-list needs numbers of cards such as 0,1,2, not $cards" >&2
        exit 2
        ;;
    ?*) export ASCEND_RT_VISIBLE_DEVICES="$cards" ;;
esac
if [ -n "$addr" ]; then
    export MASTER_ADDR="$addr"
fi

# CANN's environment, where it is installed and not yet set; its script uses variables that may be unset.
if [ -z "${{ASCEND_HOME_PATH:-}}" ]; then
    for setup in /usr/local/Ascend/ascend-toolkit/set_env.sh /usr/local/Ascend/cann/set_env.sh \\
        "$HOME/Ascend/ascend-toolkit/set_env.sh" "$HOME/Ascend/cann/set_env.sh"; do
        if [ -f "$setup" ]; then
            set +u
            # shellcheck disable=SC1090
            source "$setup"
            set -u
            break
        fi
    done
fi

{settings}

if [ -z "$nproc" ]; then
    if [ -n "${{ASCEND_RT_VISIBLE_DEVICES:-}}" ]; then
        IFS=, read -r -a visible <<< "$ASCEND_RT_VISIBLE_DEVICES"
        nproc=${{#visible[@]}}
    elif command -v npu-smi > /dev/null; then
        # One line "Chip Count : N" for each NPU of the machine.
        nproc=$(npu-smi info -l | awk -F: '/Chip Count/ {{ total += $2 }} END {{ print total + 0 }}')
    fi
fi
case "$nproc" in
    "" | 0 | *[!0-9]*)
        echo "run_distributed_npu.sh: no NPU was found (ASCEND_RT_VISIBLE_DEVICES, npu-smi); give --nproc N" >&2
        exit 2
        ;;
esac
logs=${{logs:-$here/logs/$(date +%Y%m%d-%H%M%S)}}

nnodes=${{NNODES:-1}}
{start}
if [ "$dry_run" -eq 1 ]; then
    printf '%q ' "${{command[@]}}"
    echo
    exit 0
fi

command -v {engine} > /dev/null || {{ echo "run_distributed_npu.sh: {engine} is not on the PATH" >&2; exit 2; }}
mkdir -p "$logs"
status=0
"${{command[@]}}"{kept} || status=$?
if [ "$status" -ne 0 ]; then
    echo "run_distributed_npu.sh: the job ended with $status; the output of each rank is in $logs" >&2
fi
exit "$status"
"""

_HELP = {
    "--addr": "#   --addr ADDRESS      where the processes meet: the address of the first machine (MASTER_ADDR)",
    "--device-list": "#   --device-list 0,1   the cards to use (ASCEND_RT_VISIBLE_DEVICES), one process for each",
    "--device": "#   --device npu        accepted, since this script is for NPUs; no other device works",
}
_CASES = {
    "--addr": """\
        --addr) addr="${2:?--addr needs an address}"; shift 2 ;;
        --addr=*) addr="${1#*=}"; shift ;;""",
    "--device-list": """\
        --device-list) cards="${2:?--device-list needs numbers of cards}"; shift 2 ;;
        --device-list=*) cards="${1#*=}"; shift ;;""",
    "--device": """\
        --device=npu) shift ;;
        --device | --device=*)
            if [ "$1" != "--device" ] || [ "${2:-}" != "npu" ]; then
                echo "run_distributed_npu.sh: it runs on NPUs, and has no --device but npu" >&2
                exit 2
            fi
            shift 2
            ;;""",
}
_ANYWHERE = """
# The program has none of these: they may stand among its arguments, but for what follows --.
own=()
while [ $# -gt 0 ] && [ "$only" -eq 0 ]; do
    case "$1" in
{cases}
        --) break ;;
        *) own+=("$1"); shift ;;
    esac
done
set -- ${{own[@]+"${{own[@]}}"}} "$@"
"""
_TCP = """\
# The script gets the address where its processes meet.
case " $* " in
    *" --dist-url"*) ;;
    *) [ -z "$addr" ] || set -- "$@" --dist-url "tcp://$addr:${MASTER_PORT:-29500}" ;;
esac
"""
_MANY = """\
# Give the script the number of machines, and the address where its processes meet.
given() { case " $words " in *" $1 "* | *" $1="*) ;; *) return 1 ;; esac; }
words="$*"
given --multiprocessing-distributed || set -- "$@" --multiprocessing-distributed
given --world-size || set -- "$@" --world-size "$nnodes"
given --rank || set -- "$@" --rank "${NODE_RANK:-0}"
given --dist-url || set -- "$@" --dist-url "tcp://${addr:-${MASTER_ADDR:-127.0.0.1}}:${MASTER_PORT:-29500}"
"""
_TORCHRUN = """\
command=(torchrun --nnodes "$nnodes" --nproc-per-node "$nproc" --log-dir "$logs" --tee 3)
if [ "$nnodes" -gt 1 ]; then
    command+=(
        --node-rank "${NODE_RANK:?several machines need NODE_RANK}"
        --master-addr "${MASTER_ADDR:?several machines need MASTER_ADDR}"
        --master-port "${MASTER_PORT:-29500}"
    )
elif [ -n "${MASTER_PORT:-}$addr" ]; then
    command+=(--master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${MASTER_PORT:-29500}")
else
    command+=(--standalone)
fi
command+=("$main" "$@")
"""

_SPAWNING = """\
# The script starts a process for each card itself; these are for its process group, where it reads them.
export MASTER_ADDR=${MASTER_ADDR:-127.0.0.1} MASTER_PORT=${MASTER_PORT:-29500} NNODES=$nnodes
if [ -z "${ASCEND_RT_VISIBLE_DEVICES:-}" ]; then
    ASCEND_RT_VISIBLE_DEVICES=$(seq -s, 0 $((nproc - 1)))
    export ASCEND_RT_VISIBLE_DEVICES
fi
command=(python "$main" "$@")
"""
