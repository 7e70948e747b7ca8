"""Put on the path of a script: writes down what each optimizer of each process does, whatever the script itself says.

Every process that imports torch appends JSON lines to a file of its own in $RANKS_RECORDS:

    {"event": "step", "rank": 0, "optimizer": 0, "sums": [[sum, weighted sum, sum of absolute values], ...]}
    {"event": "skipped", "rank": 0, "optimizer": 0}      a GradScaler left the step out
    {"event": "group", "rank": 0}                        a process group began
    {"event": "wrote", "rank": 0, "path": "log.txt"}     a file of the current folder was opened anew for writing
    {"event": "end", "rank": 0, "alive": [...]}          the interpreter ends; sums of the parameters that still live

It knows nothing of the emulated device; torch's hook on optimizer steps is all it needs. $RANKS_PLAIN takes away what
keeps one process and several from being comparable: dropout, shuffling, and, by $RANKS_BATCH_TIMES, the batch size.
$RANKS_EVEN takes away more: batch norms use their running figures, what is drawn while an optimizer is there is the
same for each sample, and optimizers with an `eps` get one of 1e-3, so that a gradient which is nothing but rounding (of
a bias in front of a norm) moves no parameter, and one of the wrong size moves it otherwise.
Each rank's generators begin at $RANKS_SEED (0) and its number, as if nobody seeded them.
After $RANKS_SECONDS a process writes where it is to `<pid>.stack` and ends.
"""

import atexit
import contextlib
import faulthandler
import importlib.abc
import json
import os
import random
import sys
import weakref

_FOLDER = os.environ.get("RANKS_RECORDS", "")


class _WithTorch(importlib.abc.MetaPathFinder):
    """Calls `_begin` right after torch was executed."""

    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        for finder in sys.meta_path:
            # Not through the finders of others that look at all the rest, as this one does.
            if finder is self or type(finder).__module__.startswith("npu_emulator"):
                continue
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None and spec.loader is not None:
                execute = spec.loader.exec_module

                def exec_module(module, execute=execute):
                    execute(module)
                    _begin(module)

                spec.loader.exec_module = exec_module
                return spec
        return None


class _Record:
    def __init__(self, torch):
        self.torch = torch
        self.path = os.path.join(_FOLDER, f"{os.getpid()}.jsonl")
        self.numbers = weakref.WeakKeyDictionary()
        self.made = 0

    def rank(self):
        distributed = self.torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank()
        return int(os.environ.get("RANK", "0"))

    def write(self, event, **more):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, "rank": self.rank(), **more}) + "\n")

    def number(self, optimizer):
        if optimizer not in self.numbers:
            self.numbers[optimizer] = self.made
            self.made += 1
        return self.numbers[optimizer]

    def sums(self, parameters):
        with self.torch.no_grad():
            found = []
            for parameter in parameters:
                flat = parameter.detach().to("cpu", copy=True).double().flatten()
                ramp = self.torch.arange(1, flat.numel() + 1, dtype=flat.dtype) / max(flat.numel(), 1)
                found.append([float(flat.sum()), float((flat * ramp).sum()), float(flat.abs().sum())])
            return found


def _begin(torch):
    record = _Record(torch)
    if "RANKS_SECONDS" in os.environ:
        # Stays open: the watchdog writes into it when the time is over.
        stack = open(os.path.join(_FOLDER, f"{os.getpid()}.stack"), "w", encoding="utf-8")  # noqa: SIM115
        faulthandler.dump_traceback_later(float(os.environ["RANKS_SECONDS"]), exit=True, file=stack)
    _watch_steps(torch, record)
    _watch_groups(torch, record)
    _watch_files(torch, record)
    if os.environ.get("RANKS_PLAIN"):
        _make_plain(torch)
    if os.environ.get("RANKS_EVEN"):
        _make_even(torch, record)
    # Another one on each rank, as where nobody seeds.
    seed = int(os.environ.get("RANKS_SEED", "0")) + int(os.environ.get("RANK", "0"))
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    atexit.register(_end, torch, record)


def _watch_steps(torch, record):
    optimizer_class = torch.optim.Optimizer
    made = optimizer_class.__init__

    def __init__(self, *args, **kwargs):
        made(self, *args, **kwargs)
        record.number(self)

    optimizer_class.__init__ = __init__

    def stepped(optimizer, args, kwargs):
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        record.write("step", optimizer=record.number(optimizer), sums=record.sums(parameters))
        optimizer_class._ranks_steps = getattr(optimizer_class, "_ranks_steps", 0) + 1

    from torch.amp import grad_scaler
    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(stepped)

    maybe = grad_scaler.GradScaler._maybe_opt_step

    def _maybe_opt_step(self, optimizer, *args, **kwargs):
        before = getattr(optimizer_class, "_ranks_steps", 0)
        result = maybe(self, optimizer, *args, **kwargs)
        if getattr(optimizer_class, "_ranks_steps", 0) == before:
            record.write("skipped", optimizer=record.number(optimizer))
        return result

    grad_scaler.GradScaler._maybe_opt_step = _maybe_opt_step


def _watch_groups(torch, record):
    if not torch.distributed.is_available():
        return
    begin = torch.distributed.init_process_group

    def init_process_group(*args, **kwargs):
        begin(*args, **kwargs)
        record.write("group")

    for module in (torch.distributed, torch.distributed.distributed_c10d):
        module.init_process_group = init_process_group


def _watch_files(torch, record):
    folder = os.path.realpath(os.getcwd()) + os.sep
    known = set()

    def wrote(path):
        path = os.path.realpath(path)
        if path.startswith(folder) and "__pycache__" not in path and path not in known:
            known.add(path)
            record.write("wrote", path=path[len(folder) :])

    def opened(event, args):
        if event == "open" and isinstance(args[0], str) and isinstance(args[1], str) and set(args[1]) & set("wx"):
            wrote(args[0])

    sys.addaudithook(opened)
    save = torch.save

    def saved(obj, f, *args, **kwargs):
        # It opens the file in C++, where no hook sees it.
        if isinstance(f, (str, os.PathLike)):
            wrote(os.fspath(f))
        return save(obj, f, *args, **kwargs)

    torch.save = saved


def _make_plain(torch):
    functional, data = torch.nn.functional, torch.utils.data

    def kept(input, *args, **kwargs):
        return input

    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        setattr(functional, name, kept)
    data.RandomSampler.__iter__ = lambda self: iter(range(len(self.data_source)))
    distributed = data.distributed.DistributedSampler
    made = distributed.__init__

    def unshuffled(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self.shuffle = False

    distributed.__init__ = unshuffled
    times = int(os.environ.get("RANKS_BATCH_TIMES", "1"))
    loader = data.DataLoader
    loaded = loader.__init__

    def larger(self, dataset, batch_size=1, *args, **kwargs):
        alone = kwargs.get("batch_sampler") is None and batch_size is not None
        loaded(self, dataset, batch_size * times if alone else batch_size, *args, **kwargs)

    loader.__init__ = larger


def _make_even(torch, record):
    normed, made = torch.nn.functional.batch_norm, torch.optim.Optimizer.__init__

    def batch_norm(input, mean, variance, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
        return normed(input, mean, variance, weight, bias, training and mean is None, momentum, eps)

    def __init__(self, params, defaults):
        made(self, params, {**defaults, "eps": max(defaults["eps"], 1e-3)} if "eps" in defaults else defaults)

    torch.nn.functional.batch_norm = batch_norm
    torch.optim.Optimizer.__init__ = __init__
    drawn = [0]

    def seed():
        drawn[0] += 1
        return drawn[0]

    normal, uniform, whole = torch.randn, torch.rand, torch.randint

    def alike(original, draw):
        def even(*args, **kwargs):
            result = original(*args, **kwargs)
            if record.made and not isinstance(result, torch.nn.Parameter):
                generator = torch.Generator().manual_seed(seed())
                with torch.no_grad():
                    result.copy_(draw(tuple(result.shape[1:]), generator, *args, **kwargs).expand(result.shape))
            return result

        return even

    def of_normal(shape, generator, *args, **kwargs):
        return normal(shape, generator=generator)

    def of_uniform(shape, generator, *args, **kwargs):
        return uniform(shape, generator=generator)

    def of_whole(shape, generator, *args, **kwargs):
        low, high = (0, args[0]) if isinstance(args[1], (tuple, list, torch.Size)) else args[:2]
        return whole(low, high, shape, generator=generator)

    def given(draw, first, second, of):
        def scaled(shape, generator, tensor, *args, **kwargs):
            one = kwargs.get(of[0], args[0] if args else first)
            other = kwargs.get(of[1], args[1] if len(args) > 1 else second)
            spread = other - one if draw is of_uniform else other
            return draw(shape, generator) * spread + one

        return scaled

    for name, draw in (("randn", of_normal), ("rand", of_uniform)):
        setattr(torch, name, alike(getattr(torch, name), draw))
        setattr(torch, f"{name}_like", alike(getattr(torch, f"{name}_like"), draw))
    torch.randint = alike(whole, of_whole)
    for name, change in (
        ("normal_", given(of_normal, 0.0, 1.0, ("mean", "std"))),
        ("uniform_", given(of_uniform, 0.0, 1.0, ("from", "to"))),
    ):
        setattr(torch.Tensor, name, alike(getattr(torch.Tensor, name), change))
    with contextlib.suppress(ImportError):
        _make_numpy_even(record, seed)


def _make_numpy_even(record, seed):
    import numpy

    def alike(name):
        original = getattr(numpy.random, name)

        def even(*args, **kwargs):
            result = original(*args, **kwargs)
            if not record.made:
                return result
            draws = getattr(numpy.random.RandomState(seed()), name)
            shape = numpy.shape(result)
            if name in ("rand", "randn"):
                return numpy.broadcast_to(draws(*shape[1:]), shape).copy() if shape else draws()
            if shape:
                kwargs, args = {**kwargs, "size": shape[1:]}, args[: 0 if name == "random" else 2]
            row = draws(*args, **kwargs)
            return numpy.broadcast_to(row, shape).copy() if shape else row

        return even

    for name in ("normal", "uniform", "randint", "rand", "randn", "random"):
        setattr(numpy.random, name, alike(name))


def _end(torch, record):
    import gc

    with contextlib.suppress(Exception):
        kind = torch.nn.Parameter
        alive = {id(found): found for found in gc.get_objects() if kind in getattr(type(found), "__mro__", ())}
        record.write("end", alive=sorted(record.sums(alive.values())))


if _FOLDER:
    sys.meta_path.insert(0, _WithTorch())
