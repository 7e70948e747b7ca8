"""Records programs with msprobe, and compares dumps with it, for `planted_faults.py`.

usage: PYTHON planted_msprobe.py JOBS.json

PYTHON has a version of msprobe, and JOBS is {"record": [...], "compare": [...]}. What came of each is a line of
JOBS.json.done.

Each job runs in a fork of this process, so that torch and msprobe are imported once.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import json
import os
import re
import runpy
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

FAULTS = Path(__file__).resolve().parent.parent / "transplt/emulator/site/npu_emulator/dump/faults.py"


def plant(fault: list[Any], rank: int) -> None:
    """Put a fault of `transplt run --fault` under the functions of torch, before msprobe wraps them."""
    import torch

    spec = importlib.util.spec_from_file_location("faults", FAULTS)
    assert spec is not None and spec.loader is not None
    faults = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(faults)
    op, kind, value, only = fault
    if only is not None and only != rank:
        return
    name, _, call = op.partition(".")
    planted = faults.Fault(op, kind, value, None)
    seen = [0]
    inside = [False]

    def wrong(original: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            if inside[0]:
                return original(*args, **kwargs)
            inside[0] = True
            try:
                seen[0] += 1
                if call and seen[0] - 1 != int(call):
                    return original(*args, **kwargs)
                return planted.call(original, args, kwargs)
            finally:
                inside[0] = False

        called.__name__ = name
        return called

    owners: list[Any] = [torch.nn.functional, torch, torch.Tensor, torch._VF]
    for owner in owners:
        if hasattr(owner, name):
            setattr(owner, name, wrong(getattr(owner, name)))


def run(job: dict[str, Any], rank: int, port: int) -> None:
    """One rank of a recorded run."""
    folder = Path(job["folder"])
    os.chdir(folder)
    if job.get("threads", 1) > 1:
        import torch

        torch.set_num_threads(job["threads"])
    os.environ["TRANSPLT_PROBE_DUMP"] = str(folder / "dump")
    if job["nproc"]:
        world = str(job["nproc"])
        os.environ.update(
            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=world, LOCAL_WORLD_SIZE=world, MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
        )  # fmt: skip
    if job["fault"]:
        plant(job["fault"], rank)
    sys.argv = [job["script"]]
    sys.path[0] = str(folder)
    runpy.run_path(str(folder / job["script"]), run_name="__main__")


def forked(jobs: list[Any], log: Path) -> list[int]:
    """Fork a process for each callable, and wait; what they print goes into `log`."""
    children = []
    for job in jobs:
        pid = os.fork()
        if not pid:
            code = 1
            with open(log, "a") as out:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
            try:
                job()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            except BaseException:
                traceback.print_exc()
            import atexit

            with contextlib.suppress(BaseException):
                atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        children.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]


def compare(job: dict[str, Any]) -> None:
    """Compare two dumps, rank by rank, by the function that the command of the version calls."""
    npu, bench = (sorted(Path(job[side]).glob(f"step{job['step']}/*")) for side in ("npu", "bench"))
    try:
        from msprobe.pytorch.compare.pt_compare import pt_compare as function
    except ImportError:
        from msprobe.pytorch import compare as function
    for ours, theirs in zip(npu, bench, strict=True):
        dump, stack = str(ours / "dump.json"), str(ours / "stack.json")
        # 8.3 has one word for each of them, 26.2 another.
        given = {
            "npu_path": dump, "bench_path": str(theirs / "dump.json"), "stack_path": stack, "npu_json_path": dump,
            "bench_json_path": str(theirs / "dump.json"), "stack_json_path": stack, "is_print_compare_log": False,
        }  # fmt: skip
        out = Path(job["out"]) / ours.name
        out.mkdir(parents=True, exist_ok=True)
        function(given, str(out))


def search(job: dict[str, Any]) -> None:
    """`msprobe compare --diff_analyze`: the first operator that differs."""
    try:
        from msprobe.core.compare.find_first.analyzer import DiffAnalyzer
    except ImportError:
        raise SystemExit(3) from None
    DiffAnalyzer(f"{job['npu']}/step{job['step']}", f"{job['bench']}/step{job['step']}", job["out"]).analyze()


def blamed(out: Path) -> list[tuple[str, str]]:
    """(row, what it is called) of the rows that a comparison calls wrong, and of those that one side lacks (`N/A`), in
    the order of its tables; the names that a search has found."""
    import pandas

    found: list[tuple[str, str]] = []
    for path in sorted(out.rglob("diff_analyze_*.json")):
        for name, nodes in json.loads(path.read_text()).items():
            found += [(f"{name} {key}", "first") for key in re.findall(r'"op_name": "([^"]+)"', json.dumps(nodes))]
    for path in sorted([*out.rglob("*compare_result*.csv"), *out.rglob("*compare_result*.xlsx")]):
        table = pandas.read_excel(path) if path.suffix == ".xlsx" else pandas.read_csv(path)
        table = table.fillna("").astype(str)
        columns = [name for name in ("Accuracy Reached or Not", "Result") if name in table.columns]
        for _, row in table.iterrows():
            names = [row["NPU Name"], row["Bench Name"]]
            verdict = " ".join(row[name] for name in columns).strip().lower()
            if any(name in ("N/A", "") for name in names):
                found.append((next(name for name in names if name not in ("N/A", "")), "N/A"))
            elif verdict in ("no", "warning", "error", "diff"):
                found.append((names[0], verdict))
    return found


def same_name(dump: Path) -> None:
    """The folder of a single process gets the name that both versions, and the search, can read."""
    for path in [*dump.glob("step*/proc*"), *dump.glob("step*/rank")]:
        place = path.rename(path.with_name("rank0"))
        text = (place / "dump.json").read_text()
        (place / "dump.json").write_text(text.replace(str(path), str(place)))


def main() -> None:
    jobs = json.loads(Path(sys.argv[1]).read_text())
    import torch
    import torch.distributed

    with contextlib.redirect_stdout(sys.stderr):
        import msprobe.pytorch  # noqa: F401
    torch.set_num_threads(1)
    # 8.3.3 asks for the module of every frame of every call, which takes 10 s a step; nobody reads the answer.
    inspect.getmodule = lambda *args, **kwargs: None
    done = open(sys.argv[1] + ".done", "w", encoding="utf-8")  # noqa: SIM115

    def tell(told: dict[str, Any]) -> None:
        """What is done stays done when the rest takes too long."""
        done.write(json.dumps(told) + "\n")
        done.flush()

    for job in jobs["record"]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ranks = range(job["nproc"] or 1)
        codes = forked([functools.partial(run, job, rank, port) for rank in ranks], Path(job["folder"]) / "log")
        same_name(Path(job["folder"]) / "dump")
        tell({**job, "codes": codes})
    for job in jobs["compare"]:
        Path(job["out"]).mkdir(parents=True, exist_ok=True)
        log = Path(job["out"]) / "log"
        codes = forked([functools.partial(search if job["search"] else compare, job)], log)
        text = re.sub(r"\x1b\[[0-9;]*m", "", log.read_text(errors="replace"))
        tell({**job, "codes": codes, "log": text[-3000:], "blamed": blamed(Path(job["out"]))[:400]})


if __name__ == "__main__":
    main()
