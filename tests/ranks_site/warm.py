"""Imports torch and the emulated NPU once, and forks a process for each rank that is asked for.

Reads JSON lines from its standard input, {"place", "folder", "script", "arguments", "environment"}, and writes the exit
code of each process to `<place>/code`; ends with its input. Importing is most of what a small script costs.
"""

import atexit
import importlib.util
import json
import os
import random
import select
import sys
import threading
import time
import traceback
import types

import torch
import torch._dynamo  # the first optimizer imports it, which costs as much as torch itself
import torch.distributed
import torch_npu  # noqa: F401


def _site():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sitecustomize.py")
    spec = importlib.util.spec_from_file_location("_ranks_site", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _end_with(server):
    """A rank that nobody waits for any more does not go on forever."""
    while os.getppid() == server:
        time.sleep(1)
    os._exit(1)


def _child(task):
    """Become the script, as an interpreter that was started with it."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(os.path.join(task["place"], "output"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(task["folder"])
    os.environ.update(task["environment"])
    script = os.path.join(task["folder"], task["script"])
    sys.argv = [task["script"], *task["arguments"]]
    sys.path[0] = os.path.dirname(script)
    main = types.ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    code = 1
    try:
        SITE._FOLDER = task["environment"]["RANKS_RECORDS"]
        random.seed(int(os.environ.get("RANK", "0")))
        SITE._begin(torch)
        with open(script, encoding="utf-8") as file:
            text = file.read()
        exec(compile(text, script, "exec"), main.__dict__)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _serve():
    places, waiting = {}, b""
    while True:
        ready, _, _ = select.select([0], [], [], 0.02)
        if ready:
            read = os.read(0, 65536)
            if not read:
                return
            *lines, waiting = (waiting + read).split(b"\n")
            for line in lines:
                task = json.loads(line)
                child = os.fork()
                if child == 0:
                    _child(task)
                places[child] = task["place"]
                _put(task["place"], "pid", child)
        while places:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                break
            if child in places:
                _put(places.pop(child), "code", os.waitstatus_to_exitcode(status))


def _put(place, name, value):
    """Whole or not at all: the reader may look at any time. The folder may be gone when a run was given up."""
    path = os.path.join(place, name)
    if os.path.isdir(place):
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(str(value))
        os.replace(path + ".new", path)


if __name__ == "__main__":
    SITE = _site()
    _serve()
