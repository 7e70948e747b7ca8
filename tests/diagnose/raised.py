"""Runs programs one after the other in one process, and writes what each printed: of a traceback, the whole of it.

raised.py PROGRAMS.json OUTPUT.json: names with their sources, and names with what was printed.
"""

import json
import os
import sys
import tempfile
import traceback
import warnings

import torch
import torch_npu


def printed(source: str) -> str:
    """What a program writes to both of its streams, compiled code and its children too."""
    kept, environment = [os.dup(stream) for stream in (1, 2)], {**os.environ}
    with tempfile.TemporaryFile() as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        try:
            exec(
                compile(source, "/job/train.py", "exec"),
                {"__name__": "__main__", "torch": torch, "torch_npu": torch_npu},
            )
            torch.npu.synchronize()
        except BaseException:
            traceback.print_exc()
        finally:
            if torch.distributed.is_initialized():
                torch.distributed.destroy_process_group()
            os.environ.clear()
            os.environ.update(environment)
            for stream, was in zip((1, 2), kept, strict=True):
                (sys.stdout, sys.stderr)[stream - 1].flush()
                os.dup2(was, stream)
                os.close(was)
        file.seek(0)
        return file.read().decode("utf-8", "replace")


if __name__ == "__main__":
    torch.set_warn_always(True)
    warnings.simplefilter("always")
    with open(sys.argv[1], encoding="utf-8") as given:
        programs = json.load(given)
    told = {name: printed(source) for name, source in programs.items()}
    with open(sys.argv[2], "w", encoding="utf-8") as output:
        json.dump(told, output)
