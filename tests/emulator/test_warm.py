"""Runs that a process forks which has imported torch: they begin, print and end as those that are started."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.forked import torch_npu
from transplt.proof.launch import runner
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.launch.warm import Warm

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("warm")]


def run(text: str, folder: Path, warm: Warm | None, nproc: int = 0, timeout: float = 60.0) -> ScriptRun:
    (folder / "main.py").write_text(text, encoding="utf-8")
    options = RunOptions(
        "main.py", ("--a", "b"), sys.executable, nproc=nproc, folder=str(folder), threads=1, timeout=timeout,
        trace=Trace(), torch_npu=torch_npu(),
    )  # fmt: skip
    return runner.start(options, capture=True, echo=False, host="npu", warm=warm)


BEGUN = """
import os, sys, torch
import helper
from torch import nn
print(sys.argv, __name__, os.path.basename(__file__), os.path.basename(os.getcwd()), helper.here)
print(type(sys.modules["__main__"]).__name__, torch.ones(2).npu().device, torch.rand(1).item(), hash("a"))
class Options:
    epochs: int = 1
print(Options.__annotations__)
"""


def test_a_script_begins_as_if_it_were_started(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "helper.py").write_text("here = True\n", encoding="utf-8")
    forked, started = (run(BEGUN, tmp_path, each) for each in (warm, None))
    assert forked.code == 0
    assert forked.output == started.output
    assert "['main.py', '--a', 'b'] __main__ main.py" in forked.output
    assert [process["status"] for process in forked.processes] == ["ended"]
    assert [process["torch_npu"] for process in forked.processes] == [True]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("import sys\nsys.exit()", 0),
        ("raise SystemExit(3)", 3),
        ("import sys\nsys.exit('no data')", 1),
        ("1 / 0", 1),
        ("def (", 1),
        ("import os\nos._exit(4)", 4),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
    ],
)
def test_how_it_ends(text: str, code: int, tmp_path: Path, warm: Warm) -> None:
    assert run(text, tmp_path, warm).code == code


def test_an_error_has_its_line(tmp_path: Path, warm: Warm) -> None:
    done = run("def fail():\n    return 1 / 0\nfail()\n", tmp_path, warm)
    error = done.processes[0]["exception"]
    assert (error["type"], Path(error["path"]).name, error["line"]) == ("ZeroDivisionError", "main.py", 2)


def test_what_is_left_to_the_end_is_done(tmp_path: Path, warm: Warm) -> None:
    text = "import atexit\natexit.register(print, 'at exit')\nfile = open('log', 'w')\nfile.write('kept')\n"
    assert run(text, tmp_path, warm).output == "at exit\n"
    assert (tmp_path / "log").read_text(encoding="utf-8") == "kept"


def test_runs_share_nothing(tmp_path: Path, warm: Warm) -> None:
    assert run("import os, torch\nos.environ['SEEN'] = '1'\ntorch.seen = 1\n", tmp_path, warm).code == 0
    seen = run("import os, torch\nprint(os.environ.get('SEEN'), hasattr(torch, 'seen'))", tmp_path, warm)
    assert seen.output == "None False\n"


def test_a_script_has_an_absolute_path(tmp_path: Path, warm: Warm) -> None:
    text = "import inspect, sys\nprint(__file__, inspect.currentframe().f_code.co_filename, sys.argv[0])\n"
    for each in (warm, None):
        assert run(text, tmp_path, each).output == f"{tmp_path}/main.py {tmp_path}/main.py main.py\n"


RANKS = """
import os
import torch.distributed as dist

dist.init_process_group("gloo")
os.write(1, f"{dist.get_rank()} {os.environ['LOCAL_RANK']} {dist.get_world_size()}\\n".encode())
dist.destroy_process_group()
"""


def test_ranks_find_each_other(tmp_path: Path, warm: Warm) -> None:
    done = run(RANKS, tmp_path, warm, nproc=2)
    assert (done.code, sorted(done.output.splitlines())) == (0, ["0 0 2", "1 1 2"])
    assert sorted(process["rank"] for process in done.processes) == ["0", "1"]


def test_a_rank_that_fails_ends_the_others(tmp_path: Path, warm: Warm) -> None:
    text = "import os, time\nif os.environ['RANK'] == '1':\n    1 / 0\ntime.sleep(50)\n"
    done = run(text, tmp_path, warm, nproc=2)
    assert (done.code, done.timed_out, done.seconds < 40) == (1, False, True)


def test_what_does_not_end_is_stopped(tmp_path: Path, warm: Warm) -> None:
    done = run("import time\ntime.sleep(50)\n", tmp_path, warm, timeout=6.0)
    assert (done.timed_out, "main.py" in done.processes[0]["stack"]) == (True, True)


def test_an_interpreter_without_torch_forks_nothing(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    bare.chmod(0o755)
    with Warm() as warm, open(os.devnull, "wb") as silent:
        number = silent.fileno()
        assert warm.start([str(bare), "main.py"], 0, str(tmp_path), dict(os.environ), number, number) is None
