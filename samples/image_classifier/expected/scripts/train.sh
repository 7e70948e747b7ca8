#!/usr/bin/env bash
# Trains every model once on the card named by GPU (default 0).
set -euo pipefail
cd "$(dirname "$0")/.."

export ASCEND_RT_VISIBLE_DEVICES="${GPU:-0}"
export ASCEND_LAUNCH_BLOCKING=0

nvidia-smi --query-gpu=name,memory.total --format=csv || true

for config in configs/*.json; do
    name=$(basename "$config" .json)
    python train.py --config "$config" --amp --device npu --output "runs/$name" "$@"
    python evaluate.py --checkpoint "runs/$name/best.pt"
done
