#!/usr/bin/env bash
# Starts train.py on the NPUs of this machine, one process per card, or on several machines.
#
#   bash run_distributed_npu.sh [--nproc N] [--logs DIR] [--dry-run] [--] [arguments of the script]
#
#   --nproc N           processes on this machine; else as many as ASCEND_RT_VISIBLE_DEVICES names, or npu-smi lists
#   --logs DIR          the output of each rank also goes to DIR; default: logs/<date> beside this script
#   --dry-run           print the command, and do not run it
#   --addr ADDRESS      where the processes meet: the address of the first machine (MASTER_ADDR)
#   --device-list 0,1   the cards to use (ASCEND_RT_VISIBLE_DEVICES), one process for each
#   --device npu        accepted, since this script is for NPUs; no other device works
#
# Several machines: run it on each one with NNODES, NODE_RANK (0 on the first), MASTER_ADDR (of the first), MASTER_PORT.
# The exit code is that of the job.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
main="$here"/train.py
nproc=""
logs=""
dry_run=0
addr=""
cards=""
only=0

while [ $# -gt 0 ]; do
    case "$1" in
        --nproc) nproc="${2:?--nproc needs a number}"; shift 2 ;;
        --nproc=*) nproc="${1#*=}"; shift ;;
        --logs) logs="${2:?--logs needs a folder}"; shift 2 ;;
        --logs=*) logs="${1#*=}"; shift ;;
        --dry-run) dry_run=1; shift ;;
        --addr) addr="${2:?--addr needs an address}"; shift 2 ;;
        --addr=*) addr="${1#*=}"; shift ;;
        --device-list) cards="${2:?--device-list needs numbers of cards}"; shift 2 ;;
        --device-list=*) cards="${1#*=}"; shift ;;
        --device=npu) shift ;;
        --device | --device=*)
            if [ "$1" != "--device" ] || [ "${2:-}" != "npu" ]; then
                echo "run_distributed_npu.sh: it runs on NPUs, and has no --device but npu" >&2
                exit 2
            fi
            shift 2
            ;;
        --) shift; only=1; break ;;
        *) break ;;
    esac
done

# The program has none of these: they may stand among its arguments, but for what follows --.
own=()
while [ $# -gt 0 ] && [ "$only" -eq 0 ]; do
    case "$1" in
        --addr) addr="${2:?--addr needs an address}"; shift 2 ;;
        --addr=*) addr="${1#*=}"; shift ;;
        --device-list) cards="${2:?--device-list needs numbers of cards}"; shift 2 ;;
        --device-list=*) cards="${1#*=}"; shift ;;
        --device=npu) shift ;;
        --device | --device=*)
            if [ "$1" != "--device" ] || [ "${2:-}" != "npu" ]; then
                echo "run_distributed_npu.sh: it runs on NPUs, and has no --device but npu" >&2
                exit 2
            fi
            shift 2
            ;;
        --) break ;;
        *) own+=("$1"); shift ;;
    esac
done
set -- ${own[@]+"${own[@]}"} "$@"

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
if [ -z "${ASCEND_HOME_PATH:-}" ]; then
    for setup in /usr/local/Ascend/ascend-toolkit/set_env.sh /usr/local/Ascend/cann/set_env.sh \
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

# seconds to wait until all ranks have connected (default 120)
export HCCL_CONNECT_TIMEOUT=${HCCL_CONNECT_TIMEOUT:-600}
# seconds that a collective may wait for the slowest rank (default 1836)
export HCCL_EXEC_TIMEOUT=${HCCL_EXEC_TIMEOUT:-1836}
# 1: no list of allowed addresses is needed (default 1)
export HCCL_WHITELIST_DISABLE=${HCCL_WHITELIST_DISABLE:-1}

# Take the # away to try one, and measure.
# export TASK_QUEUE_ENABLE=2  # the host queues more of its work (default 1; cost: higher peak memory)
# export COMBINED_ENABLE=1  # pairs of views become one copy (default 0; cost: none is documented)
# export ASCEND_GLOBAL_LOG_LEVEL=1  # CANN logs 0 debug, 1 info, 3 errors (cost: slow steps and a full disk below 3)
# export ASCEND_SLOG_PRINT_TO_STDOUT=1  # CANN's log on the terminal (cost: slow steps, and very long output)
# export ASCEND_GLOBAL_EVENT_ENABLE=1  # CANN logs events (cost: as above)
# export ASCEND_LAUNCH_BLOCKING=1  # errors are raised where they happen (cost: host and card take turns: much slower)
# export DUMP_GE_GRAPH=2  # CANN writes the graphs that it compiles (cost: gigabytes in the working folder)

# Compile options are no variables: torch.npu.set_option({KEY: VALUE}) in the program takes them.
#   ACL_OP_COMPILER_CACHE_DIR: folder of compiled operators; it has to exist
#   ACL_OP_COMPILER_CACHE_MODE: keep compiled operators on the disk (disable, enable, force)
#   ACL_OP_DEBUG_LEVEL: what compiling an operator leaves behind (0, 1, 2, 3, 4)
#   ACL_OP_DEBUG_OPTION: checks of memory accesses in operators; slow

if [ -z "$nproc" ]; then
    if [ -n "${ASCEND_RT_VISIBLE_DEVICES:-}" ]; then
        IFS=, read -r -a visible <<< "$ASCEND_RT_VISIBLE_DEVICES"
        nproc=${#visible[@]}
    elif command -v npu-smi > /dev/null; then
        # One line "Chip Count : N" for each NPU of the machine.
        nproc=$(npu-smi info -l | awk -F: '/Chip Count/ { total += $2 } END { print total + 0 }')
    fi
fi
case "$nproc" in
    "" | 0 | *[!0-9]*)
        echo "run_distributed_npu.sh: no NPU was found (ASCEND_RT_VISIBLE_DEVICES, npu-smi); give --nproc N" >&2
        exit 2
        ;;
esac
logs=${logs:-$here/logs/$(date +%Y%m%d-%H%M%S)}

nnodes=${NNODES:-1}
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

if [ "$dry_run" -eq 1 ]; then
    printf '%q ' "${command[@]}"
    echo
    exit 0
fi

command -v torchrun > /dev/null || { echo "run_distributed_npu.sh: torchrun is not on the PATH" >&2; exit 2; }
mkdir -p "$logs"
status=0
"${command[@]}" || status=$?
if [ "$status" -ne 0 ]; then
    echo "run_distributed_npu.sh: the job ended with $status; the output of each rank is in $logs" >&2
fi
exit "$status"
