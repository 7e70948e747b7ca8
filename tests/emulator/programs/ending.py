"""Ranks end with their own exit code, gloo's threads being late; forked here, so that torch is imported once.

Threads other than the main one have a low priority, and get their turn when the interpreter is about to end
(`SlowEnd`): on a busy machine one of them may still hold tensors then.
"""

import atexit
import glob
import hashlib
import os
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from npu_emulator import gloo_threads


class SlowEnd:
    def __del__(self, sleep=time.sleep):
        sleep(0.3)


def let_main_thread_win() -> None:
    for thread in map(int, os.listdir("/proc/self/task")):
        if thread != os.getpid():
            os.setpriority(os.PRIO_PROCESS, thread, 19)


def threads_of_gloo() -> int:
    return sum(open(path).read() == "pt_gloo_runloop\n" for path in glob.glob("/proc/self/task/*/comm"))


def wait_for_both(store: str, rank: int) -> None:
    """Until both ranks have the result: gloo refuses one whose connection the other closes while it still reads.

    A rank that ends takes the folder with it.
    """
    mine, others = f"{store}.{rank}", f"{store}.{1 - rank}"
    open(mine, "w").close()
    until = time.monotonic() + 30
    while os.path.exists(mine) and not os.path.exists(others) and time.monotonic() < until:
        time.sleep(0.002)


def rank_ends(how: str, rank: int, backend: str, store: str) -> None:
    sys.slow_end = SlowEnd()
    atexit.register(os.write, 1, f"at exit {how} {rank}\n".encode())  # at once: the other rank writes too
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=2)
    device = "npu:0" if backend == "hccl" else "cpu"
    dist.all_reduce(torch.ones(1, device=device))
    assert threads_of_gloo() > 0
    if how == "gone":
        if rank == 1:
            os._exit(4)
        dist.all_reduce(torch.ones(1, device=device))
    let_main_thread_win()
    dist.all_reduce(torch.ones(1, device=device))
    wait_for_both(store, rank)
    if how == "held":
        sys.held = dist.group.WORLD
    if how != "left":
        dist.destroy_process_group()
    assert (threads_of_gloo() == 0) == (how == "destroyed")
    sys.exit(3 + rank)


def waits_for_busy_threads_only() -> None:
    """A busy thread and, after it, a sleeping one that have the name of gloo's."""
    busy_until = []

    def work() -> None:
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
            file.write("pt_gloo_runloop")
        named.set()
        hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)  # without the GIL
        busy_until.append(time.monotonic())
        released.wait()

    named, released = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    named.wait()
    gloo_threads.wait_until_idle()
    assert busy_until, "did not wait for the busy thread"
    waited = time.monotonic() - busy_until[0]
    assert waited < gloo_threads._LIMIT / 2, f"waited {waited} s for a sleeping thread"
    released.set()
    thread.join()


for how, backend in (("destroyed", "hccl"), ("held", "hccl"), ("left", "hccl"), ("left", "gloo"), ("gone", "hccl")):
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(2):
            child = os.fork()
            if not child:
                rank_ends(how, rank, backend, os.path.join(folder, "store"))
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    os.write(1, f"{how} {backend} {codes}\n".encode())
waits_for_busy_threads_only()
print("threads: ok")
