"""Records the training steps of a script with msprobe (or ptdbg_ascend), and makes its runs repeat themselves.

This file was put beside a probe copy of the script by `transplt instrument`. It is the same for the GPU original and
for the script for NPUs. `TRANSPLT_PROBE_DUMP` names the folder of the dump; with `TRANSPLT_PROBE_END=1` the script ends
behind the last step that was asked for.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import inspect
import os
import random
import sys
import weakref
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Any, TypeVar

import torch
import transplt_configuration
import transplt_optimizers

_T = TypeVar("_T")
_DROPOUTS = (
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout",
)  # fmt: skip
#: What draws: with a device of its own or of the tensors that it is given, and into a tensor.
_DRAWS = (
    "rand", "randn", "randint", "randperm", "normal", "rand_like", "randn_like", "randint_like", "bernoulli",
    "multinomial", "poisson",
)  # fmt: skip
_FILLS = (
    "normal_", "uniform_", "bernoulli_", "exponential_", "random_", "geometric_", "cauchy_", "log_normal_",
)  # fmt: skip
_recorder: Any = None
_running = False
_done = 0
_last = -1
_seed = 1234
_models: list[Any] = []
_every: dict[int, Any] = {}
_optimizers: Any = None
_configuration: Any = None
_begun = False
_host_generators: dict[int, tuple[int, Any]] = {}


def begin(
    *,
    seed: int = 1234,
    task: str = "statistics",
    level: str = "mix",
    steps: Iterable[int] = (),
    deterministic: bool = False,
    api: str = "msprobe",
) -> None:
    """Seed what draws, let it draw on the host, turn dropout off, and set up the recorder. A seed that the script sets
    later wins. `steps` are those to record, all without any.
    """
    global _recorder, _seed, _last, _optimizers, _begun
    _begun = True
    _seed, steps = seed, [*steps]
    transplt_optimizers.note_made()
    transplt_configuration.note_loaders()
    _optimizers = transplt_optimizers.Optimizers(lambda: _running and (not steps or _done in steps), _names)
    transplt_optimizers.watch(_optimizers)
    _last = max(steps, default=-1) if os.environ.get("TRANSPLT_PROBE_END") == "1" else -1
    _drop_nothing()
    _draw_on_the_host()
    _stay_on_one_card()
    _note_models()
    _copy_without_hooks()
    folder = _folder()
    try:
        make = _Msprobe if api == "msprobe" else _Ptdbg
        _recorder = make(folder, task, level, steps, seed, deterministic)
    except ImportError as error:
        _seed_all(seed, deterministic)
        _say(f"nothing is recorded: {error}")
    atexit.register(_stop)


def hold_still(seed: int) -> None:
    """Seed what draws, let it draw on the host, and turn dropout off; nothing is recorded."""
    global _seed
    _seed = seed
    _drop_nothing()
    _draw_on_the_host()
    _seed_all(seed, False)


def generator() -> Any:
    """A generator of the host with the seed of the probe, for what shuffles."""
    return torch.Generator().manual_seed(_seed)


def steps(iterable: Iterable[_T]) -> Iterator[_T]:
    """What `iterable` gives; between one and the next lies a recorded step, however the loop's body leaves it.

    Inside a step of another loop there are no steps of this one.
    """
    for value in iterable:
        inside = _running
        _start()
        batches = _configuration["batches"] if _configuration is not None and not inside else None
        if batches is not None and len(batches) < transplt_configuration.MOST_BATCHES:
            batches.append(transplt_configuration.checksum(value))
            transplt_configuration.write(_folder(), _configuration)
        try:
            yield value
        finally:
            if not inside:
                _stop()


def _folder() -> str:
    return os.environ.get("TRANSPLT_PROBE_DUMP", "probe_dump")


def _note_set_up() -> None:
    """Before the first step: how the training is set up; with `TRANSPLT_PROBE_CONFIG=1` nothing else is recorded."""
    global _configuration
    if _configuration is None:
        weights = dict(_named_parameters())
        _configuration = transplt_configuration.configuration(transplt_optimizers.all_made(), weights, _rank())
        transplt_configuration.write(_folder(), _configuration)


def step() -> None:
    """A step begins here, and the one before it ends: the first line of the body of a `while`."""
    _stop()
    _start()


def _start() -> None:
    global _running
    if 0 <= _last < _done:
        _say("the steps that were asked for are recorded")
        raise SystemExit(0)
    if _begun:
        _note_set_up()
        if os.environ.get("TRANSPLT_PROBE_CONFIG") == "1":
            _say(f"how the training is set up lies in {os.path.join(_folder(), transplt_configuration.FOLDER)}")
            raise SystemExit(0)
    if _recorder is not None and not _running:
        _running = True
        _recorder.start(_outermost())


def _stop() -> None:
    global _running, _done
    if _running:
        _running = False
        number = _done
        _done += 1
        rows = _optimizers.take()
        _recorder.stop()
        folder = _recorder.folder_of(number) if rows else ""
        if folder:
            transplt_optimizers.write(folder, rows)


def _names() -> dict[int, str]:
    """The names of parameters by their ids; those of several networks have the number of theirs in front."""
    found: dict[int, str] = {}
    for name, parameter in _named_parameters():
        found.setdefault(id(parameter), name)
    return found


def _named_parameters() -> Iterator[tuple[str, Any]]:
    models = _outermost()
    for number, model in enumerate(models):
        for name, parameter in model.named_parameters():
            name = name.removeprefix("module.")
            yield (f"{number}.{name}" if len(models) > 1 else name), parameter


class _Msprobe:
    def __init__(self, folder: str, task: str, level: str, steps: list[int], seed: int, deterministic: bool) -> None:
        msprobe: Any = importlib.import_module("msprobe.pytorch")
        # Its parameters differ between versions.
        wanted = {"seed": seed, "mode": deterministic, "rm_dropout": False}
        known = inspect.signature(msprobe.seed_all).parameters
        msprobe.seed_all(**{name: value for name, value in wanted.items() if name in known})
        _seed_all(seed, deterministic)
        self.level, self.folder = level, folder
        if task == "overflow":
            task = self._overflow()
        self.debugger = msprobe.PrecisionDebugger(task=task, dump_path=folder, level=level, step=steps)

    def _overflow(self) -> str:
        """What the installed version calls the check for overflow, which those from 26.0 on have no more."""
        version = metadata.version("mindstudio-probe")
        if int(version.partition(".")[0]) < 26:
            return "overflow_check"
        _say(f"msprobe {version} has no overflow_check: statistics are recorded, of which transplt anomalies tells it")
        return "statistics"

    def start(self, models: list[Any]) -> None:
        if models:
            self.debugger.start(model=models[0] if len(models) == 1 else models)
        elif self.level == "L1":
            self.debugger.start()
        else:
            raise SystemExit("transplt_probe: no network was found for this level: instrument with --level L1")

    def stop(self) -> None:
        self.debugger.stop()
        self.debugger.step()

    def folder_of(self, number: int) -> str:
        """Where the recorder has put this process's part of a step; "" where it is not to be found."""
        step = os.path.join(self.folder, f"step{number}")
        for name in (f"rank{_rank()}", f"proc{os.getpid()}", "rank"):
            if os.path.isdir(os.path.join(step, name)):
                return os.path.join(step, name)
        return ""


class _Ptdbg:
    """The debugger of 2023: it records the functions of torch, and knows neither steps nor modules."""

    def __init__(self, folder: str, task: str, level: str, steps: list[int], seed: int, deterministic: bool) -> None:
        self.api: Any = importlib.import_module("ptdbg_ascend")
        self.version = _version(self.api, "ptdbg_ascend")
        self.steps, self.number, self.folder, self.checks = steps, 0, os.path.realpath(folder), task == "overflow"
        self.api.seed_all(seed=seed, mode=deterministic)
        _seed_all(seed, deterministic)
        if level == "L0":
            _say("ptdbg_ascend records functions, not modules: --level L0 is taken for L1")
        self.api.set_dump_path(os.path.join(self.folder, "dump.pkl"), dump_tag="step0")
        # Functions are wrapped once, and now: what is bound before is never recorded. It asks the model for no more.
        hook = self.api.overflow_check if self.checks else self.api.acc_cmp_dump
        self.api.register_hook(torch.nn.Module(), hook, rank=_rank())
        self._switch("OFF")

    def _switch(self, switch: str) -> None:
        if self.checks:
            self.api.set_overflow_check_switch(switch)
        else:
            self.api.set_dump_switch(switch, mode="api_stack")

    def start(self, models: list[Any]) -> None:
        if not self.steps or self.number in self.steps:
            folder = self._folder(self.number)
            os.makedirs(folder, exist_ok=True)
            self.api.set_dump_path(os.path.join(folder, "dump.pkl"))
            self._switch("ON")

    def stop(self) -> None:
        if not self.steps or self.number in self.steps:
            self._switch("OFF")
        self.number += 1

    def folder_of(self, number: int) -> str:
        return self._folder(number) if not self.steps or number in self.steps else ""

    def _folder(self, number: int) -> str:
        return os.path.join(self.folder, f"step{number}_v{self.version}", f"rank{_rank()}")


def _version(module: Any, name: str) -> str:
    """A version for the name of a folder, also where the module does not say its own."""
    try:
        return str(getattr(module, "__version__", "") or metadata.version(name))
    except metadata.PackageNotFoundError:
        return "0"


def _say(sentence: str) -> None:
    print(f"transplt_probe: {sentence}", file=sys.stderr)


def _rank() -> int:
    """The number of this process, also before the process group is there."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return int(os.environ.get("RANK", "0"))


def _seed_all(seed: int, deterministic: bool) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    if deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)


def _note_models() -> None:
    """Know the networks that somebody asked for their parameters: an optimizer's, a wrapper's, a program's own; and
    those that they are parts of."""
    module: Any = torch.nn.Module
    made = module.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        _every[id(self)] = weakref.ref(self)

    module.__init__ = __init__

    def noting(original: Any) -> Any:
        @functools.wraps(original)
        def asked(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not any(known() is self for known in _models):
                _models.append(weakref.ref(self))
            return original(self, *args, **kwargs)

        return asked

    module.parameters = noting(module.parameters)
    module.named_parameters = noting(module.named_parameters)


def _copy_without_hooks() -> None:
    """A network that is saved, sent to a process or copied goes without the recorder's hooks, which no pickle takes."""
    module: Any = torch.nn.Module

    def state(self: Any) -> dict[str, Any]:
        found = dict(self.__dict__)
        for name, hooks in found.items():
            if name.endswith("_hooks") and isinstance(hooks, dict):
                found[name] = type(hooks)((key, hook) for key, hook in hooks.items() if not _is_recorders(hook))
        if _is_recorders(found.get("forward")):
            del found["forward"]
        return found

    module.__getstate__ = state


def _is_recorders(function: Any) -> bool:
    inner = getattr(function, "func", function)
    return (getattr(inner, "__module__", None) or "").partition(".")[0] in ("msprobe", "ptdbg_ascend")


def _stay_on_one_card() -> None:
    """DataParallel computes on its first card: its replicas on others have the recorder's hooks of the first."""
    kind: Any = torch.nn.DataParallel
    made = kind.__init__

    @functools.wraps(made)
    def __init__(self: Any, module: Any, device_ids: Any = None, *args: Any, **kwargs: Any) -> None:
        made(self, module, [0] if device_ids is None else list(device_ids)[:1], *args, **kwargs)

    kind.__init__ = __init__


def _outermost() -> list[Any]:
    every = [model for known in [*_every.values()] if (model := known()) is not None]
    holds = {id(part): model for model in every for part in model.__dict__.get("_modules", {}).values()}
    alive: list[Any] = []
    for known in _models:
        model = known()
        if model is None or not (model._modules or model._parameters):
            continue
        seen = {id(model)}
        while id(model) in holds and id(holds[id(model)]) not in seen:
            model = holds[id(model)]
            seen.add(id(model))
        if not any(other is model for other in alive):
            alive.append(model)
    inner = {id(part) for model in alive for part in model.modules() if part is not model}
    return [model for model in alive if id(model) not in inner]


def _drop_nothing() -> None:
    """Dropout keeps everything, in the forms that `rm_dropout` of msprobe leaves random too."""
    functional: Any = torch.nn.functional
    for owner in (functional, torch, torch._VF):
        for name in _DROPOUTS:
            if hasattr(owner, name):
                setattr(owner, name, _without_dropout(getattr(owner, name)))
    attention, heads = functional.scaled_dot_product_attention, functional.multi_head_attention_forward

    @functools.wraps(attention)
    def attend(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: Any = 0.0, *a: Any, **k: Any) -> Any:
        return attention(query, key, value, attn_mask, 0.0, *a, **k)

    @functools.wraps(heads)
    def attend_by_heads(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(heads).bind(*args, **kwargs)
        bound.arguments["dropout_p"] = 0.0
        return heads(*bound.args, **bound.kwargs)

    functional.scaled_dot_product_attention, functional.multi_head_attention_forward = attend, attend_by_heads
    kind: Any = torch.nn.RNNBase
    made = kind.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self.dropout = 0.0

    kind.__init__ = __init__


def _without_dropout(original: Any) -> Any:
    @functools.wraps(original)
    def kept(input: Any, *args: Any, **kwargs: Any) -> Any:
        return input

    return kept


def _draw_on_the_host() -> None:
    """Random tensors come from the generator of the host, whose numbers are those of every host, and move then."""
    for name in _DRAWS:
        if hasattr(torch, name):
            setattr(torch, name, _drawn_on_the_host(getattr(torch, name)))
    for name in _FILLS:
        setattr(torch.Tensor, name, _filled_on_the_host(getattr(torch.Tensor, name)))


def _drawn_on_the_host(original: Any) -> Any:
    @functools.wraps(original)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, torch.Tensor)]
        device = kwargs.get("device")
        if device is None:
            device = tensors[0].device if tensors else _default_device()
        device = torch.device(device)
        if device.type in ("cpu", "meta"):
            return original(*args, **kwargs)
        out = kwargs.pop("out", None)
        if "device" in kwargs or not tensors:
            kwargs["device"] = "cpu"
        needs_gradient = kwargs.pop("requires_grad", False)
        args = tuple(map(_on_host, args))
        kwargs = {name: _on_host(value) for name, value in kwargs.items()}
        if kwargs.get("pin_memory"):
            del kwargs["pin_memory"]
        found = original(*args, **kwargs).to(device)
        if out is not None:
            return out.resize_(found.shape).copy_(found)
        return found.requires_grad_() if needs_gradient else found

    return drawn


def _filled_on_the_host(original: Any) -> Any:
    @functools.wraps(original)
    def fill(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type in ("cpu", "meta"):
            return original(self, *args, **kwargs)
        on_host = torch.empty(self.shape, dtype=self.dtype, device="cpu")
        original(on_host, *map(_on_host, args), **{name: _on_host(value) for name, value in kwargs.items()})
        return self.copy_(on_host)

    return fill


def _on_host(value: Any) -> Any:
    """A tensor on the host; for a generator of a device one of the host with the same seed."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, torch.Generator) and value.device.type != "cpu":
        seed = value.initial_seed()
        known = _host_generators.get(id(value))
        if known is None or known[0] != seed:
            known = _host_generators[id(value)] = (seed, torch.Generator().manual_seed(seed))
        return known[1]
    return value


def _default_device() -> Any:
    asked = getattr(torch, "get_default_device", None)
    return asked() if asked is not None else "cpu"


def recorded(trainer: _T) -> _T:
    """A trainer of transformers, trl or Lightning, with a callback that records each step."""
    asked: Any = trainer
    packages = {each.__module__.partition(".")[0] for each in type(trainer).__mro__}
    if hasattr(asked, "add_callback"):
        asked.add_callback(_callback("transformers", "TrainerCallback", "on_step_begin", "on_step_end"))
    elif isinstance(getattr(asked, "callbacks", None), list):
        package = "pytorch_lightning" if "pytorch_lightning" in packages else "lightning.pytorch"
        asked.callbacks.append(_callback(package, "Callback", "on_train_batch_start", "on_train_batch_end"))
    else:
        _say(f"nothing is recorded of {type(trainer).__name__}, which takes no callbacks")
    return trainer


def _callback(package: str, base: str, begin: str, end: str) -> Any:
    def started(self: Any, *args: Any, **kwargs: Any) -> None:
        _start()

    def stopped(self: Any, *args: Any, **kwargs: Any) -> None:
        _stop()

    return type("Probe", (getattr(importlib.import_module(package), base),), {begin: started, end: stopped})()
