"""python -m npu_emulator.kernels.replaying CALLS RESULTS FIRST ...: makes recorded calls again, in three orders.

Each result is a file of its own in RESULTS, `N.pt`; `N.begun` is there before, so that a call that ends the process is
known. What the orders of programs make of a call is compared here; what the two programs make of it is not.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import sys
import textwrap
import traceback
from collections.abc import Iterator
from typing import Any

import torch
import triton  # noqa: F401

from npu_emulator.record import record
from npu_emulator.user_code import is_user

from . import programs
from .comparing import apart, equal, within
from .values import Context, Maker, Unrecordable

#: Inputs are off by so many roundings when it is measured what becomes of those.
SHAKE = 2.0
#: The module that the main script is loaded as: its `if __name__ == "__main__"` does not run.
_MAIN = "main_of_the_kernels"


class Enough(BaseException):
    """A launch of which a sample of programs ran: what comes behind it has no right values to work with."""


class Replayer:
    """Makes calls with the kernels of one program."""

    def __init__(self, device: str, most: int, seed: int, script: str) -> None:
        self._device, self._most, self._seed, self._script = device, most, seed, script
        self._launches: list[dict[str, Any]] = []

    def result(self, number: int, call: dict[str, Any]) -> dict[str, Any]:
        """What a call computes, in the orders of its programs."""
        first = self._made(number, call, programs.FORWARD)
        if "error" in first or "skipped" in first:
            return first
        shaken = self._made(number, call, programs.FORWARD, SHAKE)
        for one in first["launches"]:
            one["moved"] = {}  # where the shaken call stops, or launches less
        for one, two in zip(first["launches"], shaken["launches"], strict=False):
            one["moved"] = _moved(one["tensors"], two["tensors"], one["written"])
        first["moved"] = _moved(first["returned"] or {}, shaken["returned"] or {}, {})
        alone = all(each["ran"] < 2 for each in first["launches"])
        first["orders"] = [] if alone else self._orders(number, call, first)
        return first

    def _orders(self, number: int, call: dict[str, Any], first: dict[str, Any]) -> list[dict[str, Any]]:
        """What depends on the order of programs: one entry for an order that makes a difference."""
        found = []
        for order in (programs.REVERSE, programs.INTERLEAVED):
            other = self._made(number, call, order)
            if "error" in other:
                what = f"stops: {other['error']['reason']}"
                found.append({"order": order, "what": what, "kernel": "", "argument": ""})
                continue
            for one, two in zip(first["launches"], other["launches"], strict=False):
                different = next(_different(one, two), None)
                if different is not None:
                    found.append({"order": order, "kernel": one["kernel"]["name"], "path": one["kernel"]["path"],
                                  **different})  # fmt: skip
                    break
        return found

    def _made(self, number: int, call: dict[str, Any], order: str, shake: float = 0.0) -> dict[str, Any]:
        """Make the call once, with floats that are off by `shake` roundings."""
        self._launches = []
        before = {key: each["count"] for key, each in record.findings.items()}
        maker = Maker(self._device, self._seed * 7919 + number, shake)
        begun = torch.is_grad_enabled()
        result: dict[str, Any] = {"launches": self._launches, "returned": None}
        try:
            function = self._function(call)
            arguments = {name: maker.make(each) for name, each in call["arguments"].items()}
            self._launches.clear()  # a script without a main guard launches some where it is imported
        except Unrecordable as error:
            return {**result, "skipped": str(error)}
        except Exception as error:
            return {**result, "skipped": f"its arguments cannot be made again: {type(error).__name__}: {error}"}
        parameters = set(function.arg_names if call["kind"] == "launch" else inspect.signature(function).parameters)
        if not set(arguments) <= parameters:
            gone = ", ".join(sorted(set(arguments) - parameters))
            return {**result, "skipped": f"it has no parameter {gone} any more"}
        torch.manual_seed(self._seed)
        torch.set_grad_enabled(call.get("gradients", False))
        try:
            with programs.planned(order, self._most, self._seed):
                if call["kind"] == "launch":
                    function.run(grid=tuple(call["grid"]), warmup=False, **arguments)
                else:
                    returned = _called(function, arguments)
                    result["returned"] = _flat(returned, arguments)
        except Enough:
            pass
        except Exception as error:
            result["error"] = _told(error)
        finally:
            torch.set_grad_enabled(begun)
        result["findings"] = _findings(before)
        return result

    def _function(self, call: dict[str, Any]) -> Any:
        """What is called: the function, or the kernel under its decorators. Raises Unrecordable."""
        module = self._main() if call["module"] == "__main__" else None
        if module is None:
            try:
                module = importlib.import_module(call["module"])
            except Exception as error:
                raise Unrecordable(f"{call['path']} cannot be imported: {type(error).__name__}: {error}") from error
        found: Any = module
        for part in call["name"].split("."):
            found = getattr(found, part, None)
        if call["kind"] == "launch":
            found = _kernel(found)
            if found is None:
                others = (_kernel(each) for each in vars(module).values())
                found = next((each for each in others if each is not None and each.__name__ == call["name"]), None)
        if found is None:
            raise Unrecordable(f"there is no {call['name']} in {call['path']}")
        return found

    def _main(self) -> Any:
        """The main script as a module; where it ends early, what it defined until then."""
        if _MAIN not in sys.modules:
            from types import ModuleType

            module = ModuleType(_MAIN)
            module.__file__ = self._script
            sys.modules[_MAIN] = module
            with open(self._script, "rb") as file:
                code = compile(file.read(), os.path.abspath(self._script), "exec", dont_inherit=True)
            try:
                exec(code, vars(module))
            except (Exception, SystemExit) as error:
                why = f"{type(error).__name__}: {error}"
                record.note(f"{self._script} ended early when it was loaded without being the main program: {why}")
        return sys.modules[_MAIN]

    def launched(self, ran: programs.Ran) -> None:
        """A launch of the call has ended."""
        launch = ran.started
        values = {**launch.arguments, **launch.constexprs}
        tensors = {name: each for name, each in values.items() if isinstance(each, torch.Tensor)}
        self._launches.append(
            {
                "kernel": {"name": launch.name, "path": os.path.relpath(os.path.realpath(launch.path)),
                           "line": launch.line},
                "body": _body(launch.kernel), "grid": list(launch.grid), "programs": launch.programs, "ran": ran.ran,
                "adds": ran.adds,
                "options": {name: repr(getattr(each, "value", each)) for name, each in values.items()
                            if name not in tensors},
                "tensors": {name: each.detach().cpu().clone() for name, each in tensors.items()},
                "written": {name: programs.written(ran, each) for name, each in tensors.items()},
            }
        )  # fmt: skip
        if ran.sampled:
            raise Enough


def _body(kernel: Any) -> str:
    """What a kernel does, as text without its place, comments and decorators; "" where its source is not there."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kernel)))
    except (OSError, TypeError, SyntaxError):
        return ""
    return "".join(ast.dump(each) for each in getattr(tree.body[0], "body", ()))


def _kernel(found: Any) -> Any:
    """The function of Triton's interpreter behind an autotuner or heuristics; None for anything else."""
    seen = 0
    while found is not None and type(found).__name__ != "InterpretedFunction" and seen < 8:
        found = getattr(found, "fn", None) if type(found).__module__.startswith("triton.") else None
        seen += 1
    return found if type(found).__name__ == "InterpretedFunction" else None


def _called(function: Any, arguments: dict[str, Any]) -> Any:
    """Call with the arguments by their names, those of a `*rest` and the positional ones in their places."""
    signature = inspect.signature(function)
    given = {name: arguments[name] for name in signature.parameters if name in arguments}
    bound = inspect.BoundArguments(signature, given)  # type: ignore[arg-type,unused-ignore]
    return function(*bound.args, **bound.kwargs)


def _flat(returned: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a call gives back: its results, what it wrote into its arguments, and what its context keeps; by name."""
    found: dict[str, Any] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            found[name] = value.detach().cpu().clone()
        elif isinstance(value, (tuple, list)):
            for place, each in enumerate(value):
                add(f"{name}[{place}]", each)
        elif isinstance(value, dict):
            for key, each in value.items():
                add(f"{name}[{key!r}]", each)
        elif isinstance(value, Context):
            add(f"{name}.saved_tensors", value.saved_tensors)
            for key, each in vars(value).items():
                if key not in ("saved_tensors", "needs_input_grad"):
                    add(f"{name}.{key}", each)
        elif isinstance(value, (bool, int, float, str)):
            found[name] = value

    add("the result", returned)
    for name, value in arguments.items():
        add(f"argument {name}", value)
    return found


def _moved(
    plain: dict[str, Any], shaken: dict[str, Any], written: dict[str, torch.Tensor | None]
) -> dict[str, float]:
    """The largest distance that roundings of the inputs move each tensor by."""
    found = {}
    for name, one in plain.items():
        other = shaken.get(name)
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and one.is_floating_point():
            found[name] = apart(one, other, written.get(name))["largest"] or 0.0
    return found


def _different(one: dict[str, Any], two: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tensors that one order makes otherwise than another; floats that atomics add only beyond their roundings."""
    for name, tensor in one["tensors"].items():
        other, mask = two["tensors"].get(name), one["written"][name]
        if other is None or equal(tensor, other, mask):
            continue
        gap = apart(tensor, other, mask)
        if one["adds"] and within(gap, one["moved"].get(name, 0.0)):
            continue
        yield {"argument": name, "what": gap["what"]}


def _findings(before: dict[Any, int]) -> list[dict[str, Any]]:
    """What the emulated card found since, its places relative to the project."""
    new = [each for key, each in record.findings.items() if each["count"] > before.get(key, 0)]
    return [
        {"path": os.path.relpath(os.path.realpath(each["path"])) if each["path"] else "",
         **{name: each[name] for name in ("line", "code", "message", "help", "level")}}
        for each in new
    ]  # fmt: skip


def _told(error: BaseException) -> dict[str, Any]:
    """The error, with the user's line that it came from; an interpreter's error is that of the kernel."""
    inner = error
    while type(inner).__name__ == "InterpreterError" and inner.__cause__ is not None:
        inner = inner.__cause__
    places = [frame for frame in traceback.extract_tb(inner.__traceback__) if is_user(frame.filename)]
    first = next((line for line in str(inner).splitlines() if line.strip()), "")
    last = places[-1] if places else None
    told = first if first.startswith("[emulated npu]") else f"{type(inner).__name__}: {first}".rstrip(": ")
    return {
        "reason": told.removeprefix("[emulated npu] "),
        "path": os.path.relpath(os.path.realpath(last.filename)) if last is not None else "",
        "line": last.lineno if last is not None else 0,
    }


def main() -> None:
    """The command: CALLS RESULTS FIRST DEVICE MOST SEED SCRIPT."""
    calls, results, first, device, most, seed, script = sys.argv[1:]
    sys.dont_write_bytecode = True
    with open(calls, encoding="utf-8") as file:
        told = json.load(file)
    sys.path[:0] = [os.path.abspath(each) for each in told["paths"]]
    torch.use_deterministic_algorithms(True, warn_only=True)  # new tensors are filled, in both alike
    if device == "npu":
        import torch_npu  # noqa: F401
    programs.install()
    replayer = Replayer(device, int(most), int(seed), script)
    programs.behind.append(replayer.launched)
    for number, call in enumerate(told["calls"]):
        if number < int(first):
            continue
        place = os.path.join(results, str(number))
        with open(place + ".begun", "w"):
            pass
        torch.save(replayer.result(number, call), place + ".part")
        os.replace(place + ".part", place + ".pt")


if __name__ == "__main__":
    main()
