#!/bin/bash
# scripts/run.sh [number of GPUs] [arguments of train.py]
set -e
cd "$(dirname "$0")/.."
NPROC=${1:-$(nvidia-smi -L | wc -l)}
shift || true
export OMP_NUM_THREADS=4
export NCCL_DEBUG=WARN
export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True
torchrun --standalone --nproc_per_node="$NPROC" train.py --backend hccl --bf16 --output runs/text "$@"
