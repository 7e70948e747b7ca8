"""What has to happen once: files, logs, downloads and progress bars are those of rank 0."""

from __future__ import annotations

import ast
from collections.abc import Callable

from transplt.edits.rewrite import rendered
from transplt.edits.trees.calls import one_after_the_other, with_keyword, with_last_name
from transplt.edits.trees.expressions import and_also, only_if
from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.downloads import Downloads
from transplt.fixers.distributed.program.divergence import runs_in_worker
from transplt.fixers.distributed.program.outputs import (
    PROGRESS,
    WRITERS,
    happens_once,
    holds_writer,
    only_writes,
    opened,
    opens_to_write,
    removes,
    written_place,
)
from transplt.fixers.distributed.program.process_paths import Own, Places, name_within, names_written_to
from transplt.fixers.distributed.program.read_back import behind_training, read_just_before
from transplt.fixers.distributed.program.side_effects import acts
from transplt.fixers.distributed.waits import write_waits
from transplt.program.loops import loops_around
from transplt.program.program import enclosing_function
from transplt.program.reached_functions import reached_functions
from transplt.syntax.files import names_and_attributes
from transplt.syntax.nodes import (
    arguments_of,
    attribute_of,
    begins,
    block_of,
    by_place,
    called_name,
    inner_nodes,
    is_elif,
    keyword_of,
    last_name,
    of_kind,
)
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

_CODE = "NPU343"
_MESSAGE = "once, by rank 0"
_ELSEWHERE = ("Dataset", "Module", "Function", "Sampler", "Loss")


class Effects:
    """Guards the effects of one file."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.reached = reached_functions(bench.program)
        self.downloads = Downloads(bench)
        self.waited: set[int] = set()  # ids of statements behind which all ranks wait
        self.unclear: set[int] = set()  # ids of calls that write to paths of a process in some calls only
        self.averaged: set[int] = set()  # ids of statements in front of which all ranks take the mean of a loss

    def runs_after_start(self, node: ast.AST) -> bool:
        """True for code that the program runs once the process group is there, and that any rank may be kept from."""
        if self.downloads.covers(node):
            return False
        file, start = self.bench.file, self.bench.start
        function = enclosing_function(node)
        if function is start.function and (function is not None or file is start.file):
            return begins(start.first) <= begins(node)
        outer = [above for above in chain(node) if isinstance(above, FUNCTIONS)]
        if function is None or not any(above in self.reached for above in outer):
            return False
        bases = [last_name(base) for cls in of_kind(ast.ClassDef, chain(node)) for base in cls.bases]
        if any(name.endswith(_ELSEWHERE) for name in bases):
            # what a method of a model writes to a file, as `save` does; what it runs forth and back stays
            writes = called_name(node) in ("save", "save_file")
            if not (writes and bases == ["Module"] and "save" in str(getattr(function, "name", "")).lower()):
                return False
        return not (runs_in_worker(function) or function.name in ("__len__", "forward"))

    def write(self) -> None:
        self._progress()
        self._writers()
        self.downloads.write()
        self._folders()
        write_names(self.bench, self.runs_after_start)
        write_waits(self.bench, self.runs_after_start)
        done: set[int] = set()
        self._files()
        for call in self.bench.file.scan.calls:
            above = statement(call) if opens_to_write(self.bench.file, call) else None
            if isinstance(above, ast.With) and self._is_writing(above):
                self._guard(block_of(above), done)
        for call in by_place(self.bench.file.scan.calls):
            node = parent(call)
            guarded = any(id(above) in done for above in (node, *chain(node)))
            if isinstance(node, ast.Expr) and not guarded and self._is_effect(call):
                self._guard(block_of(node), done)

    def _is_writing(self, node: ast.With) -> bool:
        """True for `with open(path, "w") as f:` whose body only writes."""
        for item in node.items:
            call = item.context_expr
            if not isinstance(call, ast.Call) or not opens_to_write(self.bench.file, call):
                return False
            if self._is_own(call, call.args[0]):
                return False
        if not self.runs_after_start(node) or not all(only_writes(inner) for inner in node.body):
            return False
        written = [call for inner in node.body for call in inner_nodes(inner, ast.Call)]
        return not any(acts(self.bench.models, self.bench.file, each) for call in written for each in call.args)

    def _is_effect(self, call: ast.Call) -> bool:
        known = happens_once(self.bench.file, call)
        if last_name(call.func) == "log" and isinstance(self.bench.program.callee(self.bench.file, call), FUNCTIONS):
            return False  # what that does by itself, ranks that wait for each other included, stands in it
        if not known and isinstance(call.func, ast.Attribute) and call.func.attr in ("close", "flush"):
            owner = call.func.value
            named = "writer" in last_name(owner).lower()
            known = named and holds_writer(self.bench.program, self.bench.file, owner)
        return known and self.runs_after_start(call) and not self._is_own(call, written_place(self.bench.file, call))

    def _is_own(self, call: ast.Call, path: ast.expr | None) -> bool:
        """True for a path in a temporary folder of the process, which it alone reads: each process writes its own."""
        own = self.bench.program.once(Places).is_own(self.bench.file, path)
        if own is Own.SOMETIMES and id(call) not in self.unclear:
            self.unclear.add(id(call))
            why = "only rank 0 writes this, and some calls write to a temporary file, which each rank has for itself"
            self.bench.left(call, why, "use one path on all ranks: path = npu_port.of_first(path)", code="NPU344")
        return own is Own.ALWAYS

    def _guard(self, block: list[ast.stmt], done: set[int]) -> None:
        """Put each run of neighbouring effects of a block under one condition."""
        run: list[ast.stmt] = []
        for node in [*block, None]:
            fits = node is not None and self._guardable(node)
            apart = id(node) in self.averaged or (fits and bool(self._acting(node)))
            if not fits or apart:  # a mean, or what has an effect of its own, stands in front of the condition
                if run and id(run[0]) not in done:
                    done.update(id(item) for item in run)
                    self._under(block, run)
                run = []
            if node is not None and fits:
                run.append(node)

    def _guardable(self, node: ast.stmt) -> bool:
        match node:
            case ast.With():
                return self._is_writing(node)
            case ast.Expr(value=ast.Call() as call):
                return self._is_effect(call)
        return False

    def _under(self, block: list[ast.stmt], run: list[ast.stmt]) -> None:
        bench = self.bench
        if not bench.fits(*run):
            why = "every rank does this, and the line cannot be split"
            bench.left(run[0], why, f"put it under `if {bench.first}:`")
            return
        self._hoist(run)
        calls = [*of_kind(ast.Call, (getattr(each, "value", None) for each in run))]
        # What removes, renames or overwrites a file that all ranks may still be reading.
        if (changing := next((call for call in calls if read_just_before(bench.training, bench.file, call)), None)):
            self._wait_for_readers(run[0], changing)
        # No rank misses a file; a folder that is moved or emptied may be filled again.
        gone = [each for each in calls if removes(bench.file, each)]
        folders = any(last_name(each.func) not in ("remove", "unlink") or loops_around(each) for each in gone)
        if folders and not behind_training(bench.training, bench.file, run[0], True):
            self._wait_behind(run[-1], "changed")
        match parent(run[0]):
            case ast.If(test=test, body=body, orelse=[]) as above if body is block and run == block and not (
                is_elif(above) or self.averaged.intersection(map(id, run)) or any(inner_nodes(test, ast.Call))
            ):
                bench.change(test, _CODE, _MESSAGE, and_also(bench.first))
            case _:
                bench.wrap(run, f"if {bench.first}:", _CODE, _MESSAGE)

    def _acting(self, node: ast.stmt | None) -> list[ast.expr]:
        """The arguments of a print that do more than give a value: all ranks have to do that."""
        match node:
            case ast.Expr(value=ast.Call() as call):
                return [each for each in arguments_of(call) if acts(self.bench.models, self.bench.file, each)]
        return []

    def _wait_for_readers(self, first: ast.stmt, changing: ast.Call) -> None:
        if self.bench.alike(first):
            lines = [f"{self.bench.waiting}  # all ranks have read it"]
            self.bench.before(first, lines, _CODE, "rank 0 changes the file after all ranks have read it")
            self.averaged.add(id(first))
        else:
            why, do = "rank 0 may change this while others read it", "call npu_port.wait() before it, on all ranks"
            self.bench.left(changing, why, do, code="NPU344")

    def _hoist(self, run: list[ast.stmt]) -> None:
        """Give what acts a name in front of the condition."""
        bench = self.bench
        for argument in self._acting(run[0]):
            text = rendered(bench.file.source, argument, [edit for edit in bench.edits if edit.rewrites])
            if "\n" in text:
                text = " ".join(line.strip() for line in text.splitlines())
            name = bench.new_name("value", "shown_value")
            bench.withdraw(argument)
            bench.before(run[0], [f"{name} = {text}"], _CODE, "all ranks do this, only rank 0 shows it")
            bench.rewrite(argument, _CODE, "what all ranks have done", name)
            self.averaged.add(id(run[0]))

    # --- one theme each ----------------------------------------------------------------------------------------------

    def _progress(self) -> None:
        """One progress bar, and one run of wandb: those of rank 0."""
        bench = self.bench
        for call in bench.file.scan.calls:
            name = bench.file.names.qualified(call.func)
            bar = name in PROGRESS
            if not (bar or name == "wandb.init") or not self.runs_after_start(call):
                continue
            key, why = ("disable", "one progress bar, on rank 0") if bar else ("mode", "one wandb run, on rank 0")
            if keyword_of(call, key) is None and (bar or all(keyword.arg is not None for keyword in call.keywords)):
                value = bench.others if bar else f'None if {bench.first} else "disabled"'
                bench.change(call, _CODE, why, with_keyword(key, value), beside=True)
            elif not bar:
                why, do = "every rank starts a wandb run here", 'pass mode="disabled" if npu_port.is_first() is False'
                bench.left(call, why, do, code="NPU344")

    def _writers(self) -> None:
        bench = self.bench
        for call in bench.file.scan.calls:
            cls = bench.program.callee(bench.file, call)  # a class of the program may be made from a writer
            names = bench.program.owner[cls].names if isinstance(cls, ast.ClassDef) else bench.file.names
            derived = any(names.qualified(base) in WRITERS for base in getattr(cls, "bases", ()))
            if bench.file.names.qualified(call.func) not in WRITERS and not derived:
                continue
            stored = None if derived else parent(call)
            slot = bench.program.slot(bench.file, stored.targets[0]) if isinstance(stored, ast.Assign) else None
            uses = [node for node in names_and_attributes(bench.file) if bench.program.slot(bench.file, node) == slot]
            if slot is not None and self.runs_after_start(call) and all(map(self._is_written_to, uses)):
                bench.change(call, _CODE, "TensorBoard is written by rank 0", only_if(bench.first))
            else:
                why = "each rank creates a TensorBoard log here, but only rank 0 writes to it"
                do = "the logs of the other ranks are empty; create the writer on rank 0 only, if nothing else uses it"
                bench.remark(call, "NPU352", why, do)

    def _files(self) -> None:
        """A file that is written here and there: the other ranks write into nothing."""
        bench = self.bench
        for call in bench.file.scan.calls:
            path = opened(bench.file, call)
            if path is None or not self.runs_after_start(call) or self._is_own(call, path):
                continue
            node = statement(call)
            if isinstance(node, ast.With) and self._guardable(node):
                continue
            if isinstance(node, ast.With):
                self._wait_behind(node)
            nothing = f"{bench.standard('os')}.devnull"
            bench.rewrite(path, _CODE, "only rank 0 writes this file", only_if(bench.first, nothing))

    def _wait_behind(self, node: ast.stmt, done: str = "written") -> None:
        """All ranks wait for what rank 0 does to files before training: they may use them next."""
        bench = self.bench
        if bench.training.in_region(bench.file, node) or not bench.alike(node):
            return
        place: ast.stmt = node
        while isinstance(above := parent(place), ast.stmt) and not isinstance(above, (*FUNCTIONS, ast.ClassDef)):
            place = above
        if bench.fits(place) and id(place) not in self.waited:
            self.waited.add(id(place))
            bench.after(place, [f"{bench.waiting}  # rank 0 has {done} it"], _CODE, "the others wait for rank 0")

    def _is_written_to(self, node: ast.Name | ast.Attribute) -> bool:
        """True for `writer.add_scalar(...)` and the like, which will stand under a condition on the rank."""
        above = parent(node)
        call = parent(above) if isinstance(above, ast.Attribute) else None
        acts = isinstance(call, ast.Call) and isinstance(parent(call), ast.Expr) and self._is_effect(call)
        return acts or not isinstance(node.ctx, ast.Load)

    def _folders(self) -> None:
        """All ranks make a folder at once: none of them may mind that it is there."""
        bench = self.bench
        for call in bench.file.scan.calls:
            name = bench.file.names.qualified(call.func) or ""
            if enclosing_function(call) not in self.reached and bench.file is not bench.start.file:
                continue
            method = attribute_of(call.func) == "mkdir" and not name
            if name == "os.makedirs" or method:
                if (given := keyword_of(call, "exist_ok")) is None and len(call.args) < (3 if name else 1):
                    new = with_keyword("exist_ok", "True")
                    bench.change(call, _CODE, "all ranks create this folder", new, beside=True)
                elif given is not None and getattr(given, "value", None) is False:
                    bench.rewrite(given, _CODE, "all ranks create this folder", "True")
            elif name == "os.mkdir" and isinstance(call.func, ast.Attribute) and len(call.args) == 1:
                new = one_after_the_other(with_last_name("makedirs"), with_keyword("exist_ok", "True"))
                bench.change(call, _CODE, "all ranks create this folder", new)


def write_names(bench: Bench, after_start: Callable[[ast.AST], bool]) -> None:
    """A name after the clock, or a random one, under which the program writes: all ranks take that of rank 0.

    Into a temporary folder each rank writes for itself, as it reads from it alone.
    """
    for node in names_written_to(bench.program, bench.file):
        if after_start(node) and bench.alike(node):
            name, chosen = bench.call("of_first"), name_within(bench.file, node.value)
            bench.put_around(chosen, "NPU343", "all ranks use the name that rank 0 chooses", name)
        else:
            why = "each process chooses its own name here, and only rank 0 writes, under its own name"
            help_ = "choose it after npu_port.start(), on all ranks: name = npu_port.of_first(name)"
            bench.left(node, why, help_, code="NPU344")
