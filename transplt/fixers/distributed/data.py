"""Training data is shared out: a DistributedSampler in each loader, and the epoch is set on it."""

from __future__ import annotations

import ast

from transplt.edits.parting import indent_of
from transplt.edits.rewrite import rendered
from transplt.fixers.distributed.bench import Bench
from transplt.fixers.distributed.downloads import Downloads, downloads
from transplt.fixers.distributed.orders import plain_sampler, sampler_of
from transplt.program.loops import loop_head, loops_around
from transplt.program.program import LOADERS, File, Program, Value, text_of
from transplt.program.training import Loader, Training
from transplt.syntax.asks import keyword_of, last_name
from transplt.syntax.scan import chain, parent, statement
from transplt.trees.loaders import with_sampler

#: The code of data that is not shared out.
WHOLE = "NPU340"
_CODE = "NPU339"
_MESSAGE = "each rank gets its share of the data; batch_size stays that of one card, so the global batch is W times it"


def training_loaders(training: Training) -> list[Loader]:
    """The loaders that a training loop reads; by their looks when no loop shows it."""
    found: dict[int, Loader] = {}
    for _, _, loaders in training.loops:
        for loader in loaders:
            found.setdefault(id(loader.call), loader)
    return list(found.values())


def is_shared_out(program: Program, loader: Loader) -> bool:
    """True for a loader that gets a DistributedSampler."""
    return not _problem(program, loader)


def unclear_loaders(program: Program, training: Training) -> list[Loader]:
    """When nothing trains in sight: loaders that shuffle, or that are named after training."""
    if training_loaders(training):
        return []
    found = []
    for file in program.files:
        for call in file.scan.calls:
            if file.names.qualified(call.func) in LOADERS:
                stored = statement(call)
                named = isinstance(stored, ast.Assign) and "train" in ast.dump(stored.targets[0]).lower()
                shuffle = keyword_of(call, "shuffle")
                if named or (isinstance(shuffle, ast.Constant) and shuffle.value is True):
                    found.append(Loader(file, call))
    return found


def write_samplers(bench: Bench, fetched: Downloads) -> set[int]:
    """Shard the training loaders of the file on the bench; returns the ids of all calls that shuffle by a sampler."""
    shuffled: set[int] = set()
    loaders = training_loaders(bench.training)
    for loader in loaders:
        problem = _problem(bench.program, loader)
        plain = plain_sampler(bench.program, loader)
        shuffle = _shuffle(loader) if plain is None else str(plain[2])
        if not problem and shuffle != "False":
            shuffled.add(id(loader.call))
        if loader.file is not bench.file:
            continue
        if problem:
            _whole(bench, loader.call, *problem)
        else:
            _shard(bench, loader, fetched)
    unclear = unclear_loaders(bench.program, bench.training)
    if not loaders and not unclear:
        _no_loader(bench)
    for loader in unclear:
        if loader.file is bench.file:
            _whole(
                bench,
                loader.call,
                "this loader may be the one to train with, but no loop in sight trains with it",
                "if it is, give it sampler=DistributedSampler(dataset), not shuffle, and call sampler.set_epoch(epoch)",
            )
    return shuffled


def _whole(bench: Bench, node: ast.expr, why: str, help_: str) -> None:
    """Say that each rank goes through all of the data: right, and no faster than one card."""
    bench.remark(node, WHOLE, f"{why}: every rank trains with all of the data, and more cards are no faster", help_)


def _no_loader(bench: Bench) -> None:
    """One word about data that no loader reads: at the loop of the first backward pass, or at one that calls it."""
    training = bench.training
    loops = [(file, loop) for file, call in training.backwards for loop in loops_around(call)[:1]]
    # Where a function takes one step, what calls it goes over the data.
    for file, loop in (loops or training.regions)[:1]:
        if file is bench.file:
            _whole(
                bench,
                loop_head(loop),
                "the data of this loop comes from no DataLoader in sight",
                "take a share on each rank: data[dist.get_rank()::dist.get_world_size()], of one length on all ranks",
            )


def _problem(program: Program, loader: Loader) -> tuple[str, str] | None:
    call = loader.call
    if loader.by_key:
        return (
            "one expression makes loaders for training and for others",
            "make the training loader on its own, with sampler=DistributedSampler(dataset) instead of shuffle",
        )
    own = [name for name, index in (("sampler", 3), ("batch_sampler", 4)) if sampler_of(call, name, index) is not None]
    if own == ["sampler"] and plain_sampler(program, loader) is not None:
        return None
    if own:
        return (
            f"this loader has a {own[0]} of its own",
            f"make the {own[0]} draw the share of the rank: dist.get_rank() of dist.get_world_size()",
        )
    dataset = dataset_of(call)
    if dataset is None:
        return ("the dataset of this loader cannot be seen", "give it sampler=DistributedSampler(dataset)")
    if _is_iterable(program, loader.file, dataset):
        return (
            "an IterableDataset takes no sampler",
            "let __iter__ yield its share: itertools.islice(samples, dist.get_rank(), None, dist.get_world_size())",
        )
    if len(call.args) > 3:
        return ("the arguments of this loader are positional", "write them as keywords and run transplt again")
    if _shuffle(loader) is None:
        return (
            "whether this loader shuffles cannot be seen",
            "give it sampler=DistributedSampler(dataset, shuffle=...) and no shuffle",
        )
    return None


def dataset_of(call: ast.Call) -> ast.expr | None:
    if call.args and not isinstance(call.args[0], ast.Starred):
        return call.args[0]
    return keyword_of(call, "dataset")


def _is_iterable(program: Program, file: File, node: ast.expr) -> bool:
    values = [Value(file, node)]
    slot = program.slot(file, node)
    if slot is not None:
        values += program.values.get(slot, [])
    for value in values:
        if isinstance(value.node, ast.Call):
            made = program.callee(value.file, value.node)
            while isinstance(made, ast.ClassDef):
                owner = program.owner[made]
                names = [owner.names.qualified(base) or "" for base in made.bases]
                if any(name.endswith("IterableDataset") for name in names):
                    return True
                made = next((found for base in made.bases if (found := program.definition(owner, base))), None)
    return False


def _shuffle(loader: Loader) -> str | None:
    """The source that decides whether a loader shuffles: True, False, an expression; None when a `**` may hold it."""
    call = loader.call
    value = keyword_of(call, "shuffle") or (call.args[2] if len(call.args) > 2 else None)
    if value is not None:
        return text_of(loader.file, value)
    stars = [keyword.value for keyword in call.keywords if keyword.arg is None]
    if not stars:
        return "False"
    if not any(_may_shuffle(loader.file, star) for star in stars):
        return "False"
    if len(stars) == 1 and isinstance(stars[0], ast.Name) and _used_once(loader.file, stars[0]):
        return f'{stars[0].id}.pop("shuffle", False)'
    return None


def _may_shuffle(file: File, star: ast.expr) -> bool:
    """True when a dict that is given with `**` may hold shuffle: the file puts it into one of that name."""
    if not isinstance(star, ast.Name):
        return True
    for call in file.scan.calls:
        func = call.func
        updates = isinstance(func, ast.Attribute) and func.attr == "update" and _names(func.value, star.id)
        if updates and _speaks_of_shuffle(call):
            return True
    for bindings in (scope.bindings.get(star.id, ()) for scope in file.scan.scopes.values()):
        for binding in bindings:
            if binding.kind == "param" or _speaks_of_shuffle(statement(binding.node)):
                return True
    return any(
        _names(node.value, star.id) and isinstance(node.slice, ast.Constant) and node.slice.value == "shuffle"
        for node in file.scan.subscripts
    )


def _speaks_of_shuffle(node: ast.AST) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and inner.value == "shuffle":
            return True
        if isinstance(inner, ast.keyword) and inner.arg in ("shuffle", None):
            return True
        if isinstance(inner, (ast.Call, ast.Dict)) and isinstance(node, ast.Call) and inner is not node:
            continue
    # A name that is merged in may hold it too: `train_kwargs.update(cuda_kwargs)`.
    return isinstance(node, ast.Call) and any(isinstance(argument, ast.Name) for argument in node.args)


def _names(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _used_once(file: File, star: ast.Name) -> bool:
    above = [(node, parent(node)) for node in file.scan.names.get(star.id, ())]
    return [node for node, keyword in above if isinstance(keyword, ast.keyword) and keyword.arg is None] == [star]


# --- the sampler -----------------------------------------------------------------------------------------------------


def _shard(bench: Bench, loader: Loader, fetched: Downloads) -> None:
    plain = plain_sampler(bench.program, loader)
    if plain is not None:
        made, data, shuffles = plain
        bench.change(made, _CODE, _MESSAGE, _sampler(bench, text_of(bench.file, data), str(shuffles)))
        return
    call, shuffle = loader.call, _shuffle(loader)
    dataset = dataset_of(call)
    assert dataset is not None and shuffle is not None
    stored = statement(call)
    simple = isinstance(dataset, ast.Name) or plain_attribute(dataset)
    name = text_of(bench.file, dataset)
    replace_dataset = ""
    if not simple:
        if enclosing_lambda(call) or not bench.fits(stored):
            _whole(
                bench,
                call,
                "the dataset of this loader has no name yet, and the sampler needs it too",
                "give the dataset a name and run transplt again",
            )
            return
        replace_dataset = name = _dataset_name(bench, stored)
    new = with_sampler(_sampler(bench, name, shuffle), replace_dataset)
    bench.change(call, _CODE, _MESSAGE, new, beside=True)
    if replace_dataset:
        _namedataset_of(bench, stored, dataset, replace_dataset, fetched)


def _sampler(bench: Bench, dataset: str, shuffle: str) -> str:
    given = "" if shuffle == "True" else f", shuffle={shuffle}"
    if bench.shared:  # other scripts have no process group that could show it
        environ = f"{bench.standard('os')}.environ"
        dataset += f', int({environ}.get("WORLD_SIZE", 1)), int({environ}.get("RANK", 0))'
    return f"{bench.sampler}({dataset}{given})"


def enclosing_lambda(node: ast.AST) -> bool:
    """True inside of a lambda or a comprehension: a line before the statement would run at another time."""
    for above in chain(node):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, (ast.Lambda, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.IfExp)):
            return True
    return False


def plain_attribute(node: ast.expr) -> bool:
    """True for a name, its attributes, and entries under a constant key: nothing that runs when it is read."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return plain_attribute(node.value)
    return isinstance(node, ast.Name)


def _dataset_name(bench: Bench, stored: ast.stmt) -> str:
    target = stored.targets[0] if isinstance(stored, ast.Assign) else None
    last = last_name(target)
    wanted = last.replace("_loader", "_set") if "_loader" in last else "train_set"
    return bench.free_name(wanted, "train_set", "train_dataset")


def _namedataset_of(bench: Bench, stored: ast.stmt, dataset: ast.expr, name: str, fetched: Downloads) -> None:
    """Put the dataset on lines of its own; its other edits go along."""
    source = bench.file.source
    text = rendered(source, dataset, [edit for edit in bench.edits if edit.rewrites])
    lead = f"{name} = "
    column = len(indent_of(source, stored))
    shift = (column + len(lead)) - dataset.col_offset
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    indent = " " * column
    shown = [lead + lines[0]]
    for line in lines[1:]:
        bare = line.lstrip(" ")
        blanks = len(line) - len(bare)
        blanks += shift if blanks >= dataset.col_offset else 0  # what is aligned with the call stays aligned
        moved = " " * blanks + bare
        shown.append(moved[len(indent) :] if moved.startswith(indent) else bare)
    calls = [inner for inner in ast.walk(dataset) if isinstance(inner, ast.Call) and downloads(inner)]
    if calls and all(map(fetched.stands_alone, calls)):
        shown = bench.alone_first(shown, "rank 0 downloads first")
        fetched.alone.update(map(id, calls))
    bench.before(stored, shown, _CODE, f"the dataset as {name}: the sampler needs it too")
    bench.withdraw(dataset)
