"""`run_distributed_npu.sh`: starts a script on all cards of a machine, or of several."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from transplt.base.finding import LAUNCH_OPTION
from transplt.disk.mirror import write_file
from transplt.report.records import RunResult
from transplt.rules.tables import read_table

LAUNCH = "run_distributed_npu.sh"
#: Settings of HCCL that the script names, with the value that it gives them.
_SETTINGS = (
    ("HCCL_CONNECT_TIMEOUT", "600", "seconds to wait until all ranks are there"),
    ("HCCL_EXEC_TIMEOUT", "1836", "seconds that a collective may wait for the slowest rank"),
    ("HCCL_WHITELIST_DISABLE", "1", "1: no list of allowed addresses is asked for"),
)
#: Settings for speed, memory and looking for errors that stand in a comment: name, value, what it does, what it costs.
#: Sources: rules/support/env_vars.json, and the performance section of the Ascend PyTorch porting guide (CANN).
_CHOICES = (
    ("TASK_QUEUE_ENABLE", "2", "the host queues more of its work", "more memory at the peak"),
    ("COMBINED_ENABLE", "1", "pairs of views become one copy", "none is documented"),
    ("ASCEND_GLOBAL_LOG_LEVEL", "1", "CANN logs 0 debug, 1 info, 3 errors", "slow steps and a full disk below 3"),
    ("ASCEND_SLOG_PRINT_TO_STDOUT", "1", "CANN's log on the terminal", "slow steps, and the output drowns in it"),
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
    whole = any(finding.code == "NPU340" for finding in result.findings)
    given = [finding.message.partition(LAUNCH_OPTION)[2] for finding in result.findings if finding.code == "NPU330"]
    text = launch_script(result.settings.entry, spawns=spawns, whole=whole, option=next(filter(None, given), ""))
    return {name: write_file(str(folder), name, text.encode(), 0o755)}


@lru_cache(maxsize=1)
def _facts() -> dict[str, dict[str, str]]:
    return {name: row for section in read_table("support/env_vars.json").values() for name, row in section.items()}


def launch_script(entry: str, *, spawns: bool = False, whole: bool = False, option: str = "") -> str:
    """The text of the launch script for `entry`, a path relative to the script.

    `spawns`: the program starts its processes itself, so it is started once. `whole`: every rank trains with all of
    the data, so that more cards are no faster. `option` is one that the script cannot do without. Facts:
    rules/support/env_vars.json.
    """
    settings, choices = [], ["# Take the # away to try one, and measure."]
    for name, value, meaning in _SETTINGS:
        default = _facts().get(name, {}).get("default", "")
        default_text = f" (default {default})" if default else ""
        settings.append(f"# {meaning}{default_text}\nexport {name}=${{{name}:-{value}}}")
    for name, value, meaning, cost in _CHOICES:
        default = _facts().get(name, {}).get("default", "")
        default_text = f"default {default}; " if default else ""
        choices.append(f"# export {name}={value}  # {meaning} ({default_text}cost: {cost})")
    start = _SPAWNING if spawns else _TORCHRUN
    if option:
        given = " ".join(map(shlex.quote, option.split(" ")))
        start = start.replace('"$main" "$@"', f'"$main" {given} "$@"')
    return _TEMPLATE.format(
        entry=shlex.quote(posixpath.normpath(entry)),
        whole=_WHOLE if whole else "",
        settings="\n".join([*settings, "", *choices]),
        start=start,
        engine="python" if spawns else "torchrun",
    )


_WHOLE = """\
# Every rank trains with all of the data: more cards do not make it faster (transplt explain NPU340).
"""
_TEMPLATE = """\
#!/usr/bin/env bash
{whole}# Starts {entry} on the NPUs of this machine, one process for each, or on several machines.
#
#   bash run_distributed_npu.sh [--nproc N] [--logs DIR] [--dry-run] [--] [arguments of the script]
#
#   --nproc N    processes on this machine; else as many as ASCEND_RT_VISIBLE_DEVICES names, else as npu-smi lists
#   --logs DIR   the output of each rank also goes to DIR; default: logs/<date> beside this script
#   --dry-run    print the command, and do not run it
#
# Several machines: run it on each one with NNODES, NODE_RANK (0 on the first), MASTER_ADDR (of the first), MASTER_PORT.
# The exit code is that of the job.
set -euo pipefail

here=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)
main="$here"/{entry}
nproc=""
logs=""
dry_run=0

while [ $# -gt 0 ]; do
    case "$1" in
        --nproc) nproc="${{2:?--nproc needs a number}}"; shift 2 ;;
        --nproc=*) nproc="${{1#*=}}"; shift ;;
        --logs) logs="${{2:?--logs needs a folder}}"; shift 2 ;;
        --logs=*) logs="${{1#*=}}"; shift ;;
        --dry-run) dry_run=1; shift ;;
        --) shift; break ;;
        *) break ;;
    esac
done

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
        IFS=, read -r -a cards <<< "$ASCEND_RT_VISIBLE_DEVICES"
        nproc=${{#cards[@]}}
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
"${{command[@]}}" || status=$?
if [ "$status" -ne 0 ]; then
    echo "run_distributed_npu.sh: the job ended with $status; the output of each rank is in $logs" >&2
fi
exit "$status"
"""

_TORCHRUN = """\
command=(torchrun --nnodes "$nnodes" --nproc-per-node "$nproc" --log-dir "$logs" --tee 3)
if [ "$nnodes" -gt 1 ]; then
    command+=(
        --node-rank "${NODE_RANK:?several machines need NODE_RANK}"
        --master-addr "${MASTER_ADDR:?several machines need MASTER_ADDR}"
        --master-port "${MASTER_PORT:-29500}"
    )
elif [ -n "${MASTER_PORT:-}" ]; then
    command+=(--master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "$MASTER_PORT")
else
    command+=(--standalone)
fi
command+=("$main" "$@")
"""

_SPAWNING = """\
# The script starts a process for each card itself, and finds the others by these.
export MASTER_ADDR=${MASTER_ADDR:-127.0.0.1} MASTER_PORT=${MASTER_PORT:-29500} NNODES=$nnodes
if [ -z "${ASCEND_RT_VISIBLE_DEVICES:-}" ]; then
    ASCEND_RT_VISIBLE_DEVICES=$(seq -s, 0 $((nproc - 1)))
    export ASCEND_RT_VISIBLE_DEVICES
fi
command=(python "$main" "$@")
"""
