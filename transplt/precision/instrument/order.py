"""What makes two runs of a program see the same data in the same order; what cannot be made so is reported."""

from __future__ import annotations

import ast

from transplt.edits.trees.calls import with_keyword
from transplt.edits.trees.removals import argument_replaced, without_arguments
from transplt.edits.trees.transform import New
from transplt.precision.instrument.edits import Edits
from transplt.precision.instrument.loops import PROBE
from transplt.program.cards import stated
from transplt.program.program import LOADERS, Program, enclosing_function
from transplt.program.variable_values import values_of
from transplt.rules.torch_callables import last_names
from transplt.syntax.files import File
from transplt.syntax.nodes import by_place, class_of_method, has_key, hides_arguments, is_false, keyword_of, last_name

_SAMPLERS = last_names("shuffles")
#: Arguments of a loader that need workers, and what they are without.
_OF_WORKERS = {"prefetch_factor": "None", "persistent_workers": "False", "timeout": "0",
               "multiprocessing_context": "None"}  # fmt: skip
_SEEDS = last_names("seeds") | {"seed_everything", "set_seed", "seed_all"}
#: Generators that begin at another place in each run when they get no seed.
_FRESH = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random", "numpy.random.seed", "random.seed")
_CLOCK = ("torch.seed", "torch.cuda.seed", "torch.npu.seed", "torch.random.seed", "os.urandom", "secrets.randbelow",
          "random.SystemRandom")  # fmt: skip
_TIMES = ("time.time", "time.time_ns", "os.getpid", "datetime.datetime.now", "os.urandom")
#: Kernels that drop out by themselves, and the arguments that set how much.
_KERNELS = ("flash_attn.", "xformers.ops.", "torch_npu.npu_fusion_attention")
_SHARES = ("dropout_p", "p", "keep_prob")
_GENERATORS = ("rng", "random", "gen", "rand")


def seeds_of(program: Program, files: list[Edits]) -> list[int]:
    """The seeds that the program sets by itself, in the order of their places: numbers, and variables and options of
    the command line that are one number."""
    found = []
    for edits in files:
        for call in _seedings(edits.file):
            given = call.args[0] if call.args else keyword_of(call, "seed")
            if given is not None and (number := _number(program, edits.file, given)) is not None:
                found.append(number)
    return found


def _number(program: Program, file: File, node: ast.expr) -> int | None:
    """The number that an expression is wherever it comes from; None where it may be several, or none."""
    values = [node] if isinstance(node, ast.Constant) else [value for _, value in values_of(program, file, node)]
    if isinstance(node, ast.Attribute):
        values += [value for value in stated(program, file, node) if value is not None]
    known = {value.value for value in values if isinstance(value, ast.Constant) and type(value.value) is int}
    return known.pop() if len(known) == 1 and all(isinstance(value, ast.Constant) for value in values) else None


def _seedings(file: File) -> list[ast.Call]:
    """The calls that seed all that draws: a function, not a method of one generator."""
    calls = [call for call in by_place(file.scan.calls) if last_name(call.func) in _SEEDS]
    return [call for call in calls if isinstance(call.func, ast.Name) or file.names.qualified(call.func) is not None]


def fix_order(edits: Edits) -> None:
    """Shuffles with a seed, loaders without workers, and what else is random as a finding."""
    file = edits.file
    for call in _seedings(file):
        if file.names.qualified(call.func) not in _FRESH and not _is_fresh(file, call):
            edits.report(call, "the program sets a seed here, which replaces the probe's", informs=True)
    for call in by_place(file.scan.calls):
        name = file.names.qualified(call.func) or ""
        if name in LOADERS or _makes_loader(file, call):
            _loader(edits, call)
        elif last_name(call.func) in _SAMPLERS and keyword_of(call, "generator") is None and not hides_arguments(call):
            edits.rewrite(call, _seeded())
            edits.probes = True
        elif name == "dict" or last_name(call.func) == "dict":
            _loader(edits, call, plain=True)
        elif name in _CLOCK or (name in _FRESH and not call.args and not call.keywords) or _is_fresh(file, call):
            edits.report(call, f"{name or last_name(call.func)} starts differently in each run: give it a seed")
        elif last_name(call.func) == "shuffle" and _shuffles_data(call, name):
            edits.report(call, "this shuffles the data: turn it off for the probe, or give it a seed")
        elif name.startswith(_KERNELS):
            _kernel(edits, call)
    for node in ast.walk(file.scan.tree):
        match node:
            case ast.Assign(targets=[ast.Attribute() as target, *_], value=value) if not is_false(value):
                if file.names.qualified(target) == "torch.backends.cudnn.benchmark":
                    edits.rewrite(value, "False")
            case ast.Dict() if has_key(node, "num_workers"):
                _dict(edits, node)


def _is_fresh(file: File, call: ast.Call) -> bool:
    """True for a seed that is taken from the clock or the process."""
    seeds = last_name(call.func) in (*_SEEDS, "seed", "default_rng", "RandomState", "Random")
    inner = [node for given in call.args for node in ast.walk(given) if isinstance(node, ast.Call)] if seeds else []
    return any(file.names.qualified(node.func) in _TIMES for node in inner)


def _makes_loader(file: File, call: ast.Call) -> bool:
    """True for a loader of another library, by its name and arguments, and for `super().__init__(...)` of one."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "__init__" and isinstance(func.value, ast.Call):
        of = class_of_method(enclosing_function(call))
        bases = of.bases if of is not None and last_name(func.value.func) == "super" else []
        return any(file.names.qualified(base) in LOADERS for base in bases)
    return last_name(func).endswith("DataLoader") and keyword_of(call, "shuffle") is not None


def _loader(edits: Edits, call: ast.Call, *, plain: bool = False) -> None:
    """No workers; a shuffle with a generator of its own. `plain`: a `dict(...)` of arguments."""
    if plain and keyword_of(call, "num_workers") is None:
        return
    news: list[New] = []
    if any(isinstance(each, ast.Starred) for each in call.args):
        return
    workers = keyword_of(call, "num_workers") or (call.args[5] if len(call.args) > 5 else None)
    if workers is not None and not is_false(workers):
        news.append(argument_replaced(5, "num_workers", "0"))
        given = [name for name in _OF_WORKERS if keyword_of(call, name) is not None]
        news += [without_arguments(*given)] if given else []
    shuffle = keyword_of(call, "shuffle") or (call.args[2] if len(call.args) > 2 else None)
    if shuffle is not None and not is_false(shuffle) and not plain and keyword_of(call, "generator") is None:
        news.append(_seeded())
        edits.probes = True
    edits.rewrite(call, *news)


def _seeded() -> New:
    return with_keyword("generator", f"{PROBE}.generator()")


def _dict(edits: Edits, node: ast.Dict) -> None:
    """Arguments of a loader that come with `**`."""
    wanted = {"num_workers": "0", **_OF_WORKERS}
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value in wanted and not is_false(value):
            edits.rewrite(value, wanted[key.value])


def _shuffles_data(call: ast.Call, name: str) -> bool:
    """True for `data.shuffle()` and `data.shuffle(1000)` without a seed; `random.shuffle` and the like have one."""
    if name.startswith(("random.", "numpy.")) or not isinstance(call.func, ast.Attribute):
        return False
    if any(keyword_of(call, each) is not None for each in ("seed", "generator", "rng")):
        return False
    of = last_name(call.func.value).lower()
    if of == "self" or any(word in of for word in _GENERATORS):
        return False
    first = call.args[0] if call.args else ast.Constant(0)  # a layer may be called so, and is given a tensor
    return isinstance(first, ast.Constant) or any(word in last_name(first).lower() for word in ("size", "buffer"))


def _kernel(edits: Edits, call: ast.Call) -> None:
    """Dropout that is drawn inside a kernel, where the probe cannot turn it off."""
    for name in _SHARES:
        share = keyword_of(call, name)
        none = 1.0 if name == "keep_prob" else 0.0
        if share is not None and not (isinstance(share, ast.Constant) and share.value == none):
            edits.report(share, f"this kernel has its own dropout: pass {name}={none} for the probe")
