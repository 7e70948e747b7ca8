"""python -m npu_emulator.kernels.recording CALLS SCRIPT ARGS: runs a script, and writes the calls of its kernels.

A call is that of the Python function that launches, with its arguments; or, where those are no plain values (a method,
a script's own lines), the launch itself. A script whose name is one of pytest's (`test_*.py`, `*_test.py`) is run by
pytest. The file is written even where the script stops.
"""

from __future__ import annotations

import fnmatch
import json
import os
import sys
import types
from typing import Any

import torch
import triton  # noqa: F401

from npu_emulator.triton.launch import Launch

from . import hosts, programs
from .values import Describer, Unrecordable

FORMAT = 1
#: So many different calls of a function or kernel are kept; more say little more.
MOST = 8
_TESTS = ("test_*.py", "*_test.py")


class Recorder:
    """The calls by what they are called with, and what was launched and could not be kept."""

    def __init__(self, root: str, most: int) -> None:
        self._root, self._most = os.path.realpath(root), most
        self.calls: dict[str, dict[str, Any]] = {}
        self.left: dict[str, dict[str, Any]] = {}
        self.others: set[str] = set()
        self.counts: dict[tuple[str, str], int] = {}
        self._inputs: dict[int, Any] = {}

    def inside(self, path: str) -> str:
        """The path below the folder of the project; "" for a library's."""
        real = os.path.realpath(path)
        return os.path.relpath(real, self._root).replace(os.sep, "/") if real.startswith(self._root + os.sep) else ""

    def begins(self, call: hosts.Call) -> None:
        """A function that launches is called."""
        if not self.inside(call.function.__code__.co_filename):
            return
        try:
            if "<locals>" in call.function.__qualname__:
                raise Unrecordable("a function within another")
            describer = Describer()
            call.data = {name: describer.describe(value) for name, value in call.arguments.items()}
        except Unrecordable as error:
            call.data = str(error)

    def launched(self, ran: programs.Ran) -> None:
        """A kernel is about to run: what it gets is told before it writes."""
        kernel = self.kernel_of(ran.started)
        if kernel is None:
            self.others.add(ran.started.name)
            return
        describer = Describer()
        try:
            values = {**ran.started.arguments, **ran.started.constexprs}
            self._inputs[id(ran)] = {name: describer.describe(value) for name, value in values.items()}
        except Unrecordable as error:
            self._inputs[id(ran)] = str(error)

    def has_run(self, ran: programs.Ran) -> None:
        """All programs of a launch ran."""
        told, kernel = self._inputs.pop(id(ran), None), self.kernel_of(ran.started)
        if kernel is None or told is None:
            return
        call = hosts.innermost()
        if call is not None:
            call.launches.append((ran.started, kernel, told))
        else:
            self._alone(ran.started, kernel, told, "")

    def ends(self, call: hosts.Call) -> None:
        """It has ended: a call if it launched anything."""
        if not call.launches:
            return
        kernels = [kernel for _, kernel, _ in call.launches]
        if isinstance(call.data, dict):
            code = call.function.__code__
            self._keep(
                {
                    "kind": "function", "module": call.function.__module__, "name": call.function.__qualname__,
                    "path": self.inside(code.co_filename), "line": code.co_firstlineno, "arguments": call.data,
                    "kernels": kernels, "gradients": torch.is_grad_enabled(),
                }
            )  # fmt: skip
        many = [launch.programs > self._most > 0 for launch, _, _ in call.launches]
        for place, (launch, kernel, told) in enumerate(call.launches):
            if not isinstance(call.data, dict) or any(many[:place]):
                self._alone(launch, kernel, told, call.data if isinstance(call.data, str) else "many programs")

    def _alone(self, launch: Launch, kernel: dict[str, Any], told: Any, why: str) -> None:
        if not isinstance(told, dict) or "<locals>" in kernel["name"]:
            kept = self.left.setdefault(f"{kernel['path']}:{kernel['name']}", {**kernel, "why": ""})
            kept["why"] = told if isinstance(told, str) else "a kernel within a function"
            return
        self._keep({"kind": "launch", **kernel, "arguments": told, "grid": list(launch.grid), "why": why,
                    "kernels": [kernel]})  # fmt: skip

    def _keep(self, call: dict[str, Any]) -> None:
        key = json.dumps([call["module"], call["name"], _shape(call["arguments"]), call.get("grid")])
        whose = (call["module"], call["name"])
        if key in self.calls:
            self.calls[key]["count"] += 1
        else:
            self.counts[whose] = self.counts.get(whose, 0) + 1
            if self.counts[whose] <= MOST:
                self.calls[key] = {**call, "count": 1}

    def kernel_of(self, launch: Launch) -> dict[str, Any] | None:
        """Where a kernel stands; None for one of a library."""
        path = self.inside(launch.path)
        if not path:
            return None
        return {"module": launch.kernel.__module__, "name": launch.kernel.__qualname__, "path": path,
                "line": launch.line}  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        below = [each for each in sys.path if self._is_below(each)]
        paths = [os.path.relpath(os.path.realpath(each or "."), self._root) for each in below]
        more = [{"module": m, "name": n, "different": c} for (m, n), c in self.counts.items() if c > MOST]
        return {
            "format": FORMAT, "paths": [*dict.fromkeys(paths)], "calls": list(self.calls.values()), "more": more,
            "left": list(self.left.values()), "libraries": sorted(self.others),
        }  # fmt: skip

    def _is_below(self, path: str) -> bool:
        real = os.path.realpath(path or ".")
        return real == self._root or real.startswith(self._root + os.sep)


def _shape(told: Any) -> Any:
    """The arguments without the values of tensors."""
    if isinstance(told, dict):
        if "tensor" in told and isinstance(told["tensor"], dict):
            return [told["tensor"][name] for name in ("dtype", "shape", "stride", "offset", "storage")]
        return {name: _shape(value) for name, value in told.items()}
    return [_shape(each) for each in told] if isinstance(told, list) else told


def run(script: str, arguments: list[str]) -> int:
    """Run it as the main program, or its tests; the exit status."""
    folder = os.path.dirname(os.path.abspath(script))
    sys.path[0] = folder
    name = os.path.basename(script)
    if any(fnmatch.fnmatch(name, pattern) for pattern in _TESTS):
        import pytest

        return int(pytest.main([script, *arguments, "-p", "no:cacheprovider"]))
    sys.argv = [script, *arguments]
    main = types.ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    with open(script, "rb") as file:
        exec(hosts.compiled(file.read(), os.path.abspath(script)), vars(main))
    return 0


def main() -> None:
    """The command."""
    target, most, seed, script, *arguments = sys.argv[1:]
    sys.dont_write_bytecode = True
    torch.manual_seed(int(seed))
    torch.use_deterministic_algorithms(True, warn_only=True)  # new tensors are filled: what is drawn later is as they
    root = os.getcwd()
    recorder = Recorder(root, int(most))
    hosts.install(root)
    programs.install()
    hosts.begins.append(recorder.begins)
    hosts.ends.append(recorder.ends)
    programs.before.append(recorder.launched)
    programs.behind.append(recorder.has_run)
    try:
        status = run(script, arguments)
    finally:
        with open(target, "w", encoding="utf-8") as file:
            json.dump(recorder.as_json(), file)
    sys.exit(status)


if __name__ == "__main__":
    main()
