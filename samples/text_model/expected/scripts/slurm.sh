#!/bin/bash
#SBATCH --job-name=textgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:8
#SBATCH --cpus-per-task=64
#SBATCH --time=12:00:00

module load cuda/12.1
export NCCL_IB_DISABLE=0
export HCCL_SOCKET_IFNAME=ib0
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29511

srun torchrun --nnodes="$SLURM_NNODES" --nproc_per_node=8 --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d \
    --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" train.py --bf16 --output "runs/$SLURM_JOB_ID" "$@"
