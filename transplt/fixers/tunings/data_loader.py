"""`data-loader`: memory is pinned where batches go to the device, workers stay alive from epoch to epoch.

Pinned host memory is what makes copies asynchronous; workers that stay need not be started again for every epoch.
`pin_memory_device` is written up to the last version of torch that heeds it (see codemods.data_loader).
"""

from __future__ import annotations

import ast

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import writer_for
from transplt.fixers.tunings.copies import copies_of
from transplt.fixers.tunings.keywords import add_keyword
from transplt.fixers.tunings.reading import WRAPPERS, Loop, Reading, reading
from transplt.program.cards import MOVES
from transplt.program.loops import repeated
from transplt.program.program import File, class_name, text_of
from transplt.program.training import Loader
from transplt.program.variable_values import uses
from transplt.rules.torch_callables import full_names, names_of
from transplt.rules.versions import LAST_CUDA_PINNING, versions_of
from transplt.syntax.nodes import argument_at, call_of, is_dotted, keyword_of, lacks, last_name, nodes_in, string_of
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

fixer = Fixer(__name__, code="NPU756", rank=320, theme="tune:data-loader", needs=(b"DataLoader",))

API = "torch.utils.data.DataLoader"
_PIN = "pinned memory lets copies to the device overlap with computation"
_WORKERS = "the workers stay alive from epoch to epoch"
_DRAWING = ("persistent workers continue their random numbers, also on CUDA, where new ones would start again; add "
            "this if the workers draw none")
#: Places of the arguments of DataLoader.
PLACES = {"batch_size": 1, "batch_sampler": 4, "num_workers": 5, "collate_fn": 6, "pin_memory": 7, "drop_last": 8}
#: What may be asked of a dataset without changing it.
_ASKING = frozenset({"__len__", "__getitem__", "get_labels", "get_class_names", "num_classes"})


@on_file(fixer, writer_for)
def arguments_of_loaders(work: Work, writer: Writer) -> None:
    """Look at the loaders of a file."""
    found = reading(work)
    old = work.settings.torch_version in versions_of(f"<={LAST_CUDA_PINNING}")
    for loader in found.loaders_in(work.scan.path):
        call = loader.call
        if should_pin(found, loader) and not (old and writer.portable):  # which device it is must not be said for CUDA
            add_keyword(writer, call, fixer.code, _PIN, "pin_memory", "True", api=API)
            if old and lacks(call, "pin_memory_device", 99):
                add_keyword(writer, call, fixer.code, _PIN, "pin_memory_device", '"npu"', api=API)
        workers = _workers(found, loader)
        if workers and writer.portable:
            writer.remark(call, fixer.code, "persistent_workers is not written for both", _DRAWING)
        elif workers:
            add_keyword(writer, call, fixer.code, _WORKERS, "persistent_workers", workers, api=API)


def argument_of(call: ast.Call, name: str) -> ast.expr | None:
    """The value of an argument of DataLoader, by its keyword or its place."""
    at = PLACES[name]
    return keyword_of(call, name) or (call.args[at] if len(call.args) > at else None)


def is_constant(node: ast.expr | None, *values: object) -> bool:
    """True for one of some constants."""
    return isinstance(node, ast.Constant) and any(node.value is value for value in values)


# --- pinned memory ---------------------------------------------------------------------------------------------------


def pinned(loader: Loader) -> bool:
    """True for a loader that pins memory for certain."""
    return is_constant(argument_of(loader.call, "pin_memory"), True)


def should_pin(found: Reading, loader: Loader) -> bool:
    """True for a loader without `pin_memory` whose batches, all made on the host, are copied to the device."""
    call = loader.call
    if not lacks(call, "pin_memory", PLACES["pin_memory"]):
        return False
    readers = found.readers[id(call)]
    if not all(reader.loop is not None and copies_of(reader.file, reader.loop) for reader in readers):
        return False
    return not _makes_device_tensors(found, loader)


def _makes_device_tensors(found: Reading, loader: Loader) -> bool:
    """True when what a loader draws from may hold tensors that are on the device already: they cannot be pinned."""
    call, program = loader.call, found.program
    pending: list[tuple[File, ast.AST]] = [
        (loader.file, node)
        for node in (argument_at(call, 0, "dataset"), argument_of(call, "collate_fn"))
        if node is not None
    ]
    seen: set[int] = set()
    while pending:
        file, node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for inner in ast.walk(node):
            match inner:
                case ast.Call(func=ast.Attribute(attr=method)) if method in MOVES:
                    return True
                case ast.keyword(arg="device", value=device) if string_of(device) != "cpu":
                    return True
                case (ast.Name() | ast.Attribute()) as read if isinstance(read.ctx, ast.Load):
                    slot = program.slot(file, read)
                    pending += [(held.file, held.node) for held in program.values.get(slot, ())] if slot else []
                    made = program.definition(file, read)
                    pending += [(program.owner[made], made)] if made is not None else []
    return False


# --- workers ---------------------------------------------------------------------------------------------------------


def _workers(found: Reading, loader: Loader) -> str:
    """What to write for `persistent_workers`, empty where workers must not stay or none is sure to be there."""
    call = loader.call
    workers = argument_of(call, "num_workers")
    if not lacks(call, "persistent_workers", 99) or workers is None or loader.by_key:
        return ""
    match workers:
        case ast.Constant(value=int() as number) if number > 0:
            text = "True"
        case ast.Name() | ast.Attribute() if is_dotted(workers):
            text = f"{text_of(loader.file, workers)} > 0"
        case _:
            return ""
    if not _read_again(found, loader) or _changes_dataset(found, loader):
        return ""
    return text


def _read_again(found: Reading, loader: Loader) -> bool:
    """True for a loader that is made once and read by loops, one after the other, more than once."""
    readers = found.readers[id(loader.call)]
    loops = [(reader.file, reader.loop) for reader in readers if reader.loop is not None]
    if len(loops) < len(readers) or repeated(found.program, loader.call):
        return False  # `iter(loader)` starts the workers that stay from the beginning, also for those who still read
    if not all(_reads_alone(found, file, loop, loader) for file, loop in loops):
        return False
    slots, whole = found.held(loader.call)
    read = uses(found.program, slots)
    if any(sum(loop.iter in chain(node) or loop.iter is node for _, node in read) > 1 for _, loop in loops):
        return False  # `zip(loader, loader)`
    return bool(slots) and whole and all(_harmless(found, file, node) for file, node in read)


def _reads_alone(found: Reading, file: File, loop: Loop, loader: Loader) -> bool:
    """True for a loop that runs more than once, and while which nothing else reads the loader."""
    readers = found.readers[id(loader.call)]
    if sum(each is loader for each in found.read_by[id(loop)]) > 1 or not repeated(found.program, loop):
        return False
    if any(above is reader.loop for above in chain(loop) for reader in readers):
        return False
    callees = [found.program.callee(file, node) for node in nodes_in(loop.body) if isinstance(node, ast.Call)]
    return not any(
        callee in chain(each.node) for callee in callees if isinstance(callee, FUNCTIONS) for each in readers
    )


def _harmless(found: Reading, file: File, node: ast.expr) -> bool:
    """True for a use of a loader that neither starts it again nor hands it to code that is not in sight."""
    above = parent(node)
    match parent(above) if isinstance(above, ast.keyword) else above:
        case ast.For() | ast.AsyncFor() | ast.Assign() | ast.AnnAssign() | ast.Return() | ast.Tuple() | ast.List():
            return True
        case ast.Attribute(attr=name) as read:
            return not (isinstance(parent(read), ast.Call) and name in ("__iter__", "_get_iterator"))
        case ast.Call(func=func) as call:
            if last_name(func) in WRAPPERS - {"iter", "list", "tuple"} or last_name(func) == "len":
                return True
            return found.program.callee(file, call) is not None
        case ast.If() | ast.IfExp() | ast.Compare() | ast.BoolOp() | ast.UnaryOp():
            return True
    return False


def _changes_dataset(found: Reading, loader: Loader) -> bool:
    """True when something is done to the dataset that workers which stay would not see."""
    call = loader.call
    slots, _ = found.held(call)
    for file, node in uses(found.program, slots):
        match parent(node):
            case ast.Attribute(attr="dataset" | "collate_fn" | "batch_sampler") as held if _touches(found, file, held):
                return True
    dataset = argument_at(call, 0, "dataset")
    if dataset is None or _keeps_state(found, loader.file, dataset):
        return True
    if not isinstance(dataset, (ast.Name, ast.Attribute)):
        return False
    return any(
        _touches(found, file, node)
        for file, node in found.others(loader.file, dataset)
        if file is not loader.file or node.lineno > statement(call).lineno or repeated(found.program, node)
    )


def _keeps_state(found: Reading, file: File, dataset: ast.expr) -> bool:
    """True for a dataset that remembers something when it is read: a fresh worker would have forgotten it."""
    program = found.program
    slot = program.slot(file, dataset) if isinstance(dataset, (ast.Name, ast.Attribute)) else None
    made = [(value.file, value.node) for value in program.values.get(slot, ())] if slot else [(file, dataset)]
    for at, value in made:
        for call in ast.walk(value):
            cls = program.callee(at, call) if isinstance(call, ast.Call) else None
            if not isinstance(cls, ast.ClassDef):
                continue
            name = class_name(program.owner[cls], cls)
            methods = [program.method(name, each) for each in ("__getitem__", "__iter__", "__next__")]
            for node in nodes_in(method for method in methods if method is not None):
                match node:
                    case ast.Attribute(ctx=ast.Store()):
                        return True
    return False


def _touches(found: Reading, file: File, node: ast.expr) -> bool:
    """True for a method that is called on a dataset, something stored in it, and a call that gets it."""
    above = parent(node)
    match parent(above) if isinstance(above, ast.keyword) else above:
        case ast.Attribute(attr=name, ctx=ctx) as read:
            if not isinstance(ctx, ast.Load):
                return True
            if call_of(read) is not None:
                return name not in _ASKING
            return name in ("transform", "dataset", "datasets", "transforms") and _touches(found, file, read)
        case ast.Subscript(value=value, ctx=ctx) if value is node:
            return not isinstance(ctx, ast.Load)
        case ast.Call(func=func):
            full = file.names.qualified(func) or ""
            known = full in full_names("loads") or full.startswith("torch.utils.data.")
            return not known and last_name(func) not in names_of("builtins", "asks", "counts", "shows")
    return False
