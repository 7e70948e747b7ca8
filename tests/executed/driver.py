"""Runs on one host, CUDA's stand-in or the emulated NPU: each snippet in a fork of its own, torch imported once.

    python driver.py JOBS.json RESULTS.json

JOBS: a list of {"name", "path", "ranks", "arguments"}; RESULTS: {name: {"error", "result"}}, of several ranks a list of
the results of all. What a snippet leaves in `result` is told in JSON: tensors by dtype, shape, device and values.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import signal
import socket
import sys
import tempfile
import types
from typing import Any

SECONDS = 60
#: The words of the NPU in names and texts, in those of CUDA.
_WORDS = {"npu": "cuda", "NPU": "CUDA", "hccl": "nccl", "HCCL": "NCCL"}
_WORD = re.compile("|".join(_WORDS))


def words(text: str) -> str:
    return _WORD.sub(lambda found: _WORDS[found[0]], text)


def told(value: Any) -> Any:
    """A value in JSON, the same on both hosts where the values are."""
    import torch

    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, str):
        return words(value)
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (torch.TypedStorage, torch.UntypedStorage)):
        return {"storage": str(getattr(value, "dtype", "bytes")), "device": words(value.device.type),
                "values": [repr(each) for each in value.cpu()]}  # fmt: skip
    if isinstance(value, dict):
        return {"dict": {words(str(key)): told(each) for key, each in value.items()}}
    if isinstance(value, (list, tuple)):
        return [told(each) for each in value]
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return {"name": words(value.__name__)}
    if isinstance(value, types.ModuleType):
        return {"module": words(value.__name__.rpartition(".")[2])}
    if isinstance(value, (torch.dtype, torch.device)):
        return words(str(value))
    return {"object": words(type(value).__name__)}


def _tensor(value: Any) -> dict[str, Any]:
    flat = value.detach().cpu().flatten()
    return {
        "tensor": str(value.dtype), "shape": list(value.shape), "device": words(value.device.type),
        "grad": value.requires_grad, "values": _numbers(flat),
    }  # fmt: skip


def _numbers(flat: Any) -> list[Any]:
    import torch

    if flat.is_complex():
        flat = torch.view_as_real(flat).flatten()
    return [repr(each) if isinstance(each, float) else each for each in flat.tolist()]


def execute(job: dict[str, Any]) -> dict[str, Any]:
    """The snippet as the main program of this process, in an empty folder."""
    import torch

    signal.alarm(SECONDS)
    os.chdir(tempfile.mkdtemp())
    sys.argv = [job["path"], *job["arguments"]]
    torch.manual_seed(0)
    random.seed(0)
    space = {"__name__": "__main__", "__file__": job["path"]}
    try:
        with open(job["path"], encoding="utf-8") as file:
            code = compile(file.read(), job["path"], "exec", dont_inherit=True)
        try:
            exec(code, space)
        except SystemExit as end:
            if end.code:
                raise
        return {"error": "", "result": told(space["result"])}
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"[:600], "result": None}


def forked(job: dict[str, Any], rank: int, port: int) -> tuple[int, int]:
    """A child that executes a job: its id, and where it writes."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    os.close(reading)
    if job["ranks"]:
        os.environ |= {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(job["ranks"]),
            "LOCAL_WORLD_SIZE": str(job["ranks"]), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        }  # fmt: skip
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    outcome = execute(job)
    with os.fdopen(writing, "w") as file:
        json.dump(outcome, file)
    os._exit(0)


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def run(job: dict[str, Any]) -> dict[str, Any]:
    port = free_port() if job["ranks"] else 0
    children = [forked(job, rank, port) for rank in range(max(1, job["ranks"]))]
    outcomes = []
    for child, reading in children:
        with os.fdopen(reading) as file:
            said = file.read()
        _, status = os.waitpid(child, 0)
        outcomes.append(json.loads(said) if said else {"error": f"ended with {status}", "result": None})
    if not job["ranks"]:
        return outcomes[0]
    return {"error": "; ".join(each["error"] for each in outcomes if each["error"]),
            "result": [each["result"] for each in outcomes]}  # fmt: skip


def main() -> None:
    # Once for all children; an optimizer would import the compiler.
    import torch._dynamo
    import torch.distributed.fsdp
    import torch.utils.data  # noqa: F401

    gc.freeze()  # a collection in a child would copy every page
    tempfile.tempdir = os.path.dirname(sys.argv[2])
    with open(sys.argv[1], encoding="utf-8") as file:
        jobs = json.load(file)
    results = {job["name"]: run(job) for job in jobs}
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
