"""What makes two runs of a program see the same data and draw the same numbers; what cannot be made so is said."""

from __future__ import annotations

import ast

from transplt.instrument.edits import Edits
from transplt.program.files import File
from transplt.syntax.asks import by_place, keyword_of, last_name
from transplt.syntax.scan import parent

_LOADER = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_DISTRIBUTED = "torch.utils.data.distributed.DistributedSampler"
_RANDOM_SAMPLERS = ("RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler")
_DRAWS = ("torch.randn", "torch.rand", "torch.randint", "torch.randperm", "torch.normal")
_LIKE = {"torch.randn_like": "torch.randn", "torch.rand_like": "torch.rand"}
_INTO = ("normal_", "uniform_", "bernoulli_", "exponential_", "random_")
_MORE = ("torch.bernoulli", "torch.multinomial", "torch.poisson")
_SEEDS = ("manual_seed", "seed_everything", "set_seed", "seed_all", "manual_seed_all")
_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "attention_dropout", "hidden_dropout")
_ON_DEVICE = "draws on the device, whose numbers are not the other device's: draw on the host"


def seeds_of(files: list[Edits]) -> list[int]:
    """The seeds that the program sets by itself, as numbers, in the order of their places."""
    found = []
    for edits in files:
        for call in _seedings(edits.file):
            given = call.args[0] if call.args else keyword_of(call, "seed")
            if isinstance(given, ast.Constant) and type(given.value) is int:
                found.append(given.value)
    return found


def _seedings(file: File) -> list[ast.Call]:
    return [call for call in by_place(file.scan.calls) if last_name(call.func) in _SEEDS]


def fix_order(edits: Edits) -> None:
    """Samples in their order, random numbers from the host, and what else is random as a finding."""
    file = edits.file
    for call in _seedings(file):
        edits.say(call, "the program seeds here, and its seed wins over the probe's", informs=True)
    for call in by_place(file.scan.calls):
        name = file.names.qualified(call.func) or ""
        if name in _LOADER:
            _loader(edits, call)
        elif name == _DISTRIBUTED or last_name(call.func) == "DistributedSampler":
            _shuffle_off(edits, call, add=True)
        elif last_name(call.func) in _RANDOM_SAMPLERS:
            what = f"{last_name(call.func)} draws the order of samples"
            edits.say(call, f"{what}: give it a generator with a seed, or leave it out")
        elif name in _DRAWS:
            _draw(edits, call)
        elif name in _LIKE:
            _draw_like(edits, call, _LIKE[name])
        elif name in _MORE or (isinstance(call.func, ast.Attribute) and call.func.attr in _INTO and not name):
            if _repeats(call):
                edits.say(call, f"{last_name(call.func)} {_ON_DEVICE}")
        elif last_name(call.func) == "shuffle" and not name.startswith(("random.", "numpy.")):
            edits.say(call, "this shuffles the data: leave it out for the probe, or give it a seed")
        for keyword in call.keywords:
            configures = last_name(call.func).endswith("Config") or last_name(call.func) == "from_pretrained"
            if configures and keyword.arg in _DROPOUTS and not _is_zero(keyword.value):
                said = f"{keyword.arg} is for a model that may drop out by itself: set it to 0 for the probe"
                edits.say(keyword.value, said)
    for node in ast.walk(file.scan.tree):
        if isinstance(node, ast.Assign) and _benchmarks(file, node):
            edits.replace(node.value, "False")
        elif isinstance(node, ast.Dict) and _of_loader(node):
            _dict(edits, node)


def _loader(edits: Edits, call: ast.Call) -> None:
    _shuffle_off(edits, call, add=False)
    workers = keyword_of(call, "num_workers")
    if workers is not None and not _is_zero(workers):
        edits.replace(workers, "0")
        for name in ("prefetch_factor", "persistent_workers", "timeout"):
            given = next((keyword for keyword in call.keywords if keyword.arg == name), None)
            if given is not None:
                edits.drop_keyword(call, given)
    elif len(call.args) > 5:
        edits.replace(call.args[5], "0")
    if keyword_of(call, "batch_sampler") is not None:
        edits.say(call, "its batch_sampler decides the order of samples: see that it is the same on both sides")


def _shuffle_off(edits: Edits, call: ast.Call, *, add: bool) -> None:
    place = 3 if add else 2
    given = keyword_of(call, "shuffle") or (call.args[place] if len(call.args) > place else None)
    if given is not None:
        if not (isinstance(given, ast.Constant) and not given.value):
            edits.replace(given, "False")
    elif add and not any(keyword.arg is None for keyword in call.keywords):
        edits.add_keyword(call, "shuffle=False")


def _of_loader(node: ast.Dict) -> bool:
    keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
    return "shuffle" in keys and (len(keys) == 1 or bool(keys & {"num_workers", "pin_memory", "batch_size"}))


def _dict(edits: Edits, node: ast.Dict) -> None:
    """Arguments of a loader that come with `**`."""
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value in ("shuffle", "num_workers"):
            wanted = "False" if key.value == "shuffle" else "0"
            if not _is_zero(value):
                edits.replace(value, wanted)


def _draw(edits: Edits, call: ast.Call) -> None:
    """`torch.randn(4, device=d)` as `torch.randn(4).to(d)`."""
    device = next((keyword for keyword in call.keywords if keyword.arg == "device"), None)
    if device is None or _is_cpu(device.value):
        return
    if keyword_of(call, "generator") is not None:
        edits.say(call, "its generator is one of the device: draw with one of the host")
        return
    if any(keyword.arg in (None, "out", "requires_grad", "pin_memory") for keyword in call.keywords):
        edits.say(call, f"this {_ON_DEVICE}")
        return
    edits.drop_keyword(call, device)
    end = edits.file.source.extent(call)[1]
    edits.span(end, end, f".to({edits.file.source.slice(*edits.file.source.extent(device.value))})")


def _draw_like(edits: Edits, call: ast.Call, function: str) -> None:
    """`torch.randn_like(x)` as `torch.randn(x.shape, dtype=x.dtype).to(x.device)`."""
    if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.Name | ast.Attribute):
        if _repeats(call):
            edits.say(call, f"this {_ON_DEVICE}")
        return
    source = edits.file.source
    of = source.slice(*source.extent(call.args[0]))
    name = source.slice(*source.extent(call.func)).removesuffix("_like")
    edits.replace(call, f"{name}({of}.shape, dtype={of}.dtype).to({of}.device)")


def _benchmarks(file: File, node: ast.Assign) -> bool:
    target = node.targets[0]
    named = (file.names.qualified(target) or "") if isinstance(target, ast.Attribute) else ""
    return named == "torch.backends.cudnn.benchmark" and not _is_zero(node.value)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _is_cpu(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cpu"


def _repeats(call: ast.Call) -> bool:
    """Whether a draw is in a loop or a method: what fills weights once is drawn before the model moves, mostly."""
    above: ast.AST = call
    while not isinstance(above, ast.Module):
        above = parent(above)
        if isinstance(above, (ast.For, ast.While)):
            return True
        if isinstance(above, ast.FunctionDef):
            return above.name in ("forward", "sample", "reparameterize", "training_step")
    return False
