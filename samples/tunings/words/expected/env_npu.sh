# Settings of the host that may make the training faster, written for a migration that asked for --tune.
#
#   source env_npu.sh
#
# Nothing here is active: remove the # before a line, one line at a time, and measure (--tune step-time prints the time
# of a step). Lines with two # explain a setting or undo it. The gain depends on the machine and on
# the model: no figure is promised.

## --- Variables of torch_npu and CANN ---------------------------------------------------------------------------------

## TASK_QUEUE_ENABLE: the host hands operators over in two stages; the default is 1
## cost: more memory at the peak; the line of an error is further away than with 0
## source: Ascend/pytorch@master:docs/zh/api/environment_variable/op_execution/TASK_QUEUE_ENABLE.md
# export TASK_QUEUE_ENABLE=2
## undo: unset TASK_QUEUE_ENABLE

## CPU_AFFINITY_CONF: binds each process to cores of its own, 2 also its threads
## cost: other programs on those cores get slower; workers of a DataLoader share the cores of their process
## source: Ascend/pytorch@master:docs/zh/api/environment_variable/performance_tuning/CPU_AFFINITY_CONF.md
# export CPU_AFFINITY_CONF=1
## undo: unset CPU_AFFINITY_CONF

## COMBINED_ENABLE: pairs of views that are not contiguous become one copy; the default is 0 (NPU726)
## cost: none is documented
## source: Ascend/pytorch@master:docs/zh/api/environment_variable/op_execution/COMBINED_ENABLE.md
# export COMBINED_ENABLE=1
## undo: unset COMBINED_ENABLE

## ACL_OP_COMPILER_CACHE_DIR: operators that were compiled stay on a disk of the machine; the default is
##   $HOME/atc_data, which may lie in the network
## cost: room on the disk; after a change of CANN once with the mode force
## source: Ascend/pytorch@master:docs/zh/api/environment_variable/op_compilation/ACL_OP_COMPILER_CACHE_DIR.md
# mkdir -p /tmp/npu_kernels
# export ACL_OP_COMPILER_CACHE_MODE=enable ACL_OP_COMPILER_CACHE_DIR=/tmp/npu_kernels
## undo: unset ACL_OP_COMPILER_CACHE_MODE ACL_OP_COMPILER_CACHE_DIR
## undo: rm -r /tmp/npu_kernels

## ASCEND_GLOBAL_LOG_LEVEL: CANN logs errors alone, and not to the terminal
## cost: what came before an error is not in the log
## source: Ascend PyTorch porting guide (CANN), environment variables
# export ASCEND_GLOBAL_LOG_LEVEL=3 ASCEND_GLOBAL_EVENT_ENABLE=0 ASCEND_SLOG_PRINT_TO_STDOUT=0
## undo: unset ASCEND_GLOBAL_LOG_LEVEL ASCEND_GLOBAL_EVENT_ENABLE ASCEND_SLOG_PRINT_TO_STDOUT

## --- Memory of the host and of the card ------------------------------------------------------------------------------

## PYTORCH_NPU_ALLOC_CONF: blocks of the card's memory grow instead of lying in pieces
## cost: not together with PYTORCH_ALLOC_CONF, which torch_npu reads from torch 2.10 on
## source: Ascend/pytorch@master:docs/zh/api/environment_variable/memory_management/PYTORCH_NPU_ALLOC_CONF.md
# export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True
## undo: unset PYTORCH_NPU_ALLOC_CONF

## tcmalloc: another allocator of the host's memory; Debian and Ubuntu: apt install libgoogle-perftools4
## cost: memory is given back later; every program started here gets it
## source: vllm-project/vllm-ascend:docs/source/developer_guide/performance/optimization_and_tuning.md; PyTorch,
##   Performance Tuning Guide
# export LD_PRELOAD="$(find /usr/lib* -name 'libtcmalloc.so*' -print -quit)${LD_PRELOAD:+:$LD_PRELOAD}"
## undo: unset LD_PRELOAD

## jemalloc: the other one; not both. Debian and Ubuntu: apt install libjemalloc2
## cost: more memory for threads that rest
## source: PyTorch, Performance Tuning Guide
# export LD_PRELOAD="$(find /usr/lib* -name 'libjemalloc.so*' -print -quit)${LD_PRELOAD:+:$LD_PRELOAD}"
# export MALLOC_CONF=background_thread:true,metadata_thp:auto
## undo: unset LD_PRELOAD MALLOC_CONF

## --- Threads of the host ---------------------------------------------------------------------------------------------

## OMP_NUM_THREADS: threads of each process for work on the host: cores of the machine divided by processes; torchrun
##   sets 1 where several processes find nothing
## cost: more threads than cores make every process slower
## source: PyTorch, torch/distributed/run.py (OMP_NUM_THREADS)
# export OMP_NUM_THREADS=8
## undo: unset OMP_NUM_THREADS

## OPENCV_FOR_THREADS_NUM: OpenCV starts no threads of its own in the workers of a DataLoader, as cv2.setNumThreads(0)
##   in worker_init_fn
## cost: a script that uses OpenCV without workers gets slower; gained 8 % of a step with 16 threads before
##   (open-mmlab/mmdetection#6867)
## source: OpenCV, environment variables reference; https://github.com/open-mmlab/mmdetection/pull/6867
# export OPENCV_FOR_THREADS_NUM=1
## undo: unset OPENCV_FOR_THREADS_NUM

## --- The machine: as root, for all who use it ------------------------------------------------------------------------

## CPU governor: the cores run at their highest frequency; cpupower is in linux-tools-$(uname -r) (Debian, Ubuntu) or
##   kernel-tools (openEuler, CentOS)
## cost: power and heat, also while nothing runs
## source: Ascend PyTorch porting guide (CANN), host performance
# cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor  # remember it
# cpupower frequency-set -g performance
## undo: cpupower frequency-set -g ondemand  # or what it was

## power policy: the firmware does not slow the cores down
## cost: power and heat; the machine starts again
## source: Ascend PyTorch porting guide (CANN), host performance
## BIOS: Advanced > Performance Config (Arm) or Advanced Power Mgmt. Configuration (x86) > Power Policy: Performance
## undo: # the same entry, as it was

## --- Packages that read images ---------------------------------------------------------------------------------------

## Pillow-SIMD: a Pillow that resizes and converts images with vector instructions; x86 alone, built here
## cost: it is built from source and behind Pillow by releases: packages that ask for a newer pillow break
## source: Ascend PyTorch porting guide (CANN), host performance; https://pypi.org/project/pillow-simd
# pip uninstall -y pillow
# CC="cc -mavx2" pip install --force-reinstall pillow-simd
## undo: pip uninstall -y pillow-simd
## undo: pip install pillow

## --- Operators tuned by AOE: prepared, run and undone ----------------------------------------------------------------

## AOE: the card tries ways of computing the operators of one step and keeps the fastest; name the script and its
##   arguments for train.py, and end it after a step, as `--tune max-steps=1` into another folder does
## cost: hours of a card; operators of fixed shapes alone; some fail to be tuned, which is known; again for each
##   version of CANN
## source: Ascend PyTorch porting guide (CANN), AOE; torch_npu.npu.set_aoe
## 1. One step on one card writes down its operators, without a profiler; nothing of the script is changed.
# python -c 'import runpy, sys, torch, torch_npu; torch.npu.set_aoe("aoe_operators"); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name="__main__")' train.py
## 2. AOE times variants of them on the card, for hours where there are many.
# export TUNE_BANK_PATH=$PWD/aoe_bank; mkdir -p "$TUNE_BANK_PATH"
# aoe --job_type=2 --model_path=aoe_operators
## 3. Runs with TUNE_BANK_PATH take what was found.
## undo: unset TUNE_BANK_PATH
## undo: rm -r aoe_operators aoe_bank

