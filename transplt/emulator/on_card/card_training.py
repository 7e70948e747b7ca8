"""Runs the program of a card pack, and records its first steps: losses, norms of gradients and of parameters.

    python card_training.py PACK OUT [--calls]

in a copy of the program's folder. Each step is a line of JSON in OUT, the last line says how the program ended. The
same file made the recording on the emulated card; there `--calls` adds what each operator was given.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import sys
import time
import traceback
import types
from collections.abc import Iterator
from typing import IO, Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

HERE = os.path.dirname(os.path.abspath(__file__))
#: Distinct calls that are kept, of all operators and of one with one set of types.
MOST_CALLS, MOST_OF_ONE = 3000, 20
#: Above 0 while figures are taken: what that computes is not the program's.
_busy = 0


@contextlib.contextmanager
def _own_work() -> Iterator[None]:
    global _busy
    _busy += 1
    try:
        yield
    finally:
        _busy -= 1


class _Recorder:
    """Writes a line for each step of an optimizer, and ends the program behind the last one that is wanted."""

    def __init__(self, out: IO[str], steps: int) -> None:
        self.out, self.steps = out, steps
        self.losses: list[Any] = []
        self.optimizers: list[Any] = []
        self.done: dict[int, int] = {}
        self.gradients: dict[int, list[Any]] = {}
        self.begun = time.perf_counter()

    def install(self) -> None:
        original = torch.autograd.backward

        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            for each in [tensors] if isinstance(tensors, torch.Tensor) else tensors:
                with _own_work():
                    self.losses.append(float(each.detach().cpu()) if each.numel() == 1 else _norm(each))
            return original(tensors, *args, **kwargs)

        torch.autograd.backward = backward
        register_optimizer_step_pre_hook(self.before)
        register_optimizer_step_post_hook(self.after)

    def number(self, optimizer: Any) -> int:
        known = [number for number, each in enumerate(self.optimizers) if each is optimizer]
        if not known:
            self.optimizers.append(optimizer)
        return known[0] if known else len(self.optimizers) - 1

    def before(self, optimizer: Any, *_: Any) -> None:
        which = self.number(optimizer)
        if self.done.get(which, 0) >= self.steps:
            raise SystemExit(0)
        self.gradients[which] = [_norm(each.grad) for each in _parameters(optimizer)]

    def after(self, optimizer: Any, *_: Any) -> None:
        which = self.number(optimizer)
        number = self.done[which] = self.done.get(which, 0) + 1
        row = {
            "optimizer": which, "step": number, "losses": self.losses, "gradients": self.gradients.pop(which, []),
            "parameters": [_norm(each) for each in _parameters(optimizer)],
            "seconds": round(time.perf_counter() - self.begun, 3),
        }  # fmt: skip
        self.losses, self.begun = [], time.perf_counter()
        write(self.out, row)


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _norm(tensor: Any) -> float | None:
    if tensor is None or tensor.layout is not torch.strided:
        return None
    with torch.no_grad(), _own_work():
        host = tensor.detach().cpu()
        return float((torch.view_as_real(host) if host.is_complex() else host).double().norm())


class _Calls(TorchDispatchMode):
    """Notes each call of an operator that a card gets, below autograd, and lets it go on."""

    def __init__(self) -> None:
        super().__init__()
        self.form: Any = importlib.import_module("card_calls")
        self.calls: dict[str, dict[str, Any]] = {}
        self.of_one: dict[tuple[str, ...], int] = {}
        self.left: dict[tuple[str, str], int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _busy and _on_card([*args, *kwargs.values()]) and not self.form.starts_no_kernel(func):
            self._note(func, args, kwargs)
        return func(*args, **kwargs)

    def _note(self, func: Any, args: Any, kwargs: Any) -> None:
        form, name = self.form, self.form.name_of(func)
        try:
            if not name.startswith("aten::"):
                raise form.Unsayable("it is no operator of PyTorch")
            call = {
                "op": name, "args": form.encode(args),
                "kwargs": {key: form.encode(value) for key, value in kwargs.items()},
            }  # fmt: skip
            key = form.key_of(call)
            if key in self.calls:
                self.calls[key]["times"] += 1
                return
            tensors = form.tensors_of(call)
            types, shapes = [each["T"] for each in tensors], [each["s"] for each in tensors]
            kind = (name, *types)
            if len(self.calls) >= MOST_CALLS or self.of_one.get(kind, 0) >= MOST_OF_ONE:
                raise form.Unsayable("more shapes of it than a pack keeps")
            form.note_values(call["args"], args)
            for each in kwargs:
                form.note_values(call["kwargs"][each], kwargs[each])
            self.calls[key] = {**call, "types": types, "shapes": shapes, "times": 1}
            self.of_one[kind] = self.of_one.get(kind, 0) + 1
        except form.Unsayable as why:
            self.left[name, str(why)] = self.left.get((name, str(why)), 0) + 1

    def found(self) -> dict[str, Any]:
        left = [{"op": op, "why": why, "times": times} for (op, why), times in sorted(self.left.items())]
        return {"calls": list(self.calls.values()), "left": left}


def _on_card(values: Any) -> bool:
    for each in values:
        if isinstance(each, (list, tuple)):
            if _on_card(each):
                return True
        elif isinstance(each, torch.device):
            if each.type not in ("cpu", "meta"):
                return True
        elif isinstance(each, torch.Tensor) and each.device.type not in ("cpu", "meta"):
            return True
    return False


def write(out: IO[str], row: dict[str, Any]) -> None:
    print(json.dumps(row), file=out, flush=True)


def _stand_ins(settings: dict[str, Any]) -> None:
    """What stood for data sets and packages in the recording; the emulated card has loaded them by itself."""
    if not settings["stubs"] or "npu_emulator" in sys.modules:
        return
    sys.path.insert(0, os.path.join(HERE, "stubs"))
    for name in settings["stubs"]:
        path = os.path.join(HERE, "stand_ins", name)
        module = types.ModuleType("transplt_stub_" + os.path.splitext(name)[0])
        module.__file__ = path
        sys.modules[module.__name__] = module
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec", dont_inherit=True), module.__dict__)


def _run(main: str, arguments: list[str]) -> str:
    """Run the program as `python main ...` does: why it stopped, empty where it came to its end."""
    path = os.path.abspath(main)
    module = types.ModuleType("__main__")
    module.__file__, module.__builtins__ = path, __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    sys.argv, sys.path[0] = [main, *arguments], os.path.dirname(path)
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, module.__dict__)
    except SystemExit as error:
        return "" if error.code in (None, 0) else f"it ended with {error.code!r}"
    except BaseException as error:
        traceback.print_exc()
        frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename.startswith(os.getcwd())]
        place = f"{os.path.relpath(frames[-1].filename)}:{frames[-1].lineno}: " if frames else ""
        return f"{place}{type(error).__name__}: {' '.join(str(error).split())[:400]}"
    return ""


def main(pack: str, out: str, record_calls: bool) -> None:
    """Run the program of `pack` in this folder."""
    with open(os.path.join(pack, "pack.json"), encoding="utf-8") as file:
        settings = json.load(file)
    for module in ("numpy", "torch_npu"):  # numpy draws, too: it is seeded where it is there
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    sys.path.insert(1, HERE)
    importlib.import_module("transplt_probe").hold_still(settings["seed"])
    _stand_ins(settings)
    with open(out, "a", encoding="utf-8") as told:
        _Recorder(told, settings["steps"]).install()
        seen = _Calls() if record_calls else None
        with seen if seen is not None else contextlib.nullcontext():
            stopped = _run(settings["main"], settings["arguments"])
        npu = getattr(torch, "npu", None)
        peak = int(npu.max_memory_allocated()) if npu is not None and npu.is_available() else 0
        write(told, {"stopped": stopped, "bytes": peak, **(seen.found() if seen is not None else {})})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--calls" in sys.argv[3:])
