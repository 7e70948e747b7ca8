"""What half precision cannot hold or hand on: constants beyond float16, and arrays of bfloat16 for NumPy."""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.expressions import between, method_called
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.amp.amp_writer import wanted, writer_for
from transplt.fixers.amp.apex.together import read_together
from transplt.fixers.amp.reading import makes_models, networks, own_nodes, runs_network
from transplt.fixers.amp.recognise import already
from transplt.fixers.amp.sigmoids import unsafe_under_autocast
from transplt.fixers.amp.training_units import Unit, units_of
from transplt.fixers.around import scripted
from transplt.program.cards import on_card
from transplt.program.program import enclosing_function
from transplt.program.programs import programs_of
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import begins, call_of, ends, is_dotted, last_name, plain_name, variable
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU740", rank=20, needs=(b"masked_fill",), theme="amp")

#: torch.finfo(torch.float16).max
_LARGEST = 65504.0
_FILLS = {"masked_fill": 1, "masked_fill_": 1}
#: What stands between an output and its array without changing its type.
_SAME_TYPE = names_of(TENSOR, "keeps_type")


@fixer.on(ast.Module)
def constants_of_a_network(work: Work, tree: ast.Module) -> Finds:
    """Constants beyond float16, in all files of a project that gets mixed precision."""
    if work.settings.amp_dtype != "float16" or not wanted(work):
        return
    texts = work.project.sources.values() or [work.source.utf8]
    if any(b".backward(" in text for text in texts) and work.once(already) is None:
        writer = writer_for(work)
        _fit(writer)
        if writer.found and _all_refused(work):
            return
        yield from writer.found


def _all_refused(work: Work) -> bool:
    """True when no program that runs this file gets mixed precision, and one is seen to be refused."""
    programs = programs_of(work.project)
    own = programs.own(work.file)
    if work.settings.amp == "apex":
        return not read_together(work.project, work.settings, own).plans
    refused = False
    for program in programs.around(own):
        if makes_models(program) and not on_card(program):
            refused = True
            continue
        trains = [file for file in program.files if b".backward(" in file.source.utf8]
        units = [unit for file in trains for unit in units_of(program, file)]
        if not all(unit.problems or unsafe_under_autocast(unit) is not None for unit in units):
            return False
        refused = refused or bool(units)
    return refused


def _fit(writer: Writer) -> None:
    """`scores.masked_fill(mask, -1e9)` raises when the scores are float16; in float32 the number stays what it is.

    Whole numbers may fill tensors of indices, which have no finfo: those are reported, as are tensors that are
    computed in the call, which would be computed twice.
    """
    for call in writer.work.scan.calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name not in _FILLS:
            continue
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        value = given.get("value") or (call.args[_FILLS[name]] if len(call.args) > _FILLS[name] else None)
        literal, floats = _literal(writer.work, value)
        number = _number(literal)
        if number is None or not _LARGEST < abs(number) < float("inf"):
            continue
        assert isinstance(call.func, ast.Attribute) and value is not None
        source = writer.work.source
        tensor, written_number = (source.slice(*source.extent(node)) for node in (call.func.value, value))
        inner, end = ("max", "min") if number < 0 else ("min", "max")
        if floats and is_dotted(call.func.value) and not scripted(writer.work, call):
            fitted = between(f"{inner}(", f", {writer.torch}.finfo({tensor}.dtype).{end})")
            writer.change(value, "NPU740", f"{written_number} does not fit float16", fitted)
            continue
        writer.left(
            call,
            f"{written_number} does not fit float16 (at most {_LARGEST:.0f}): this raises in half precision",
            f"fill with torch.finfo({tensor if tensor.isidentifier() else 'x'}.dtype).{end}",
            "NPU745",
        )


def _literal(work: Work, node: ast.expr | None) -> tuple[ast.expr | None, bool]:
    """The number of `-1e9`, of `float(-1e9)` and of a variable with one value, and whether it is a float."""
    if isinstance(node, ast.Name):
        bindings = work.names.bindings_of(node)
        stored = parent(bindings[0].node) if len(bindings) == 1 else None
        node = stored.value if isinstance(stored, (ast.Assign, ast.AnnAssign)) else None
    match node:
        case ast.Call(func=func, args=[number]) if last_name(func) == "float":
            return number, True
        case ast.Constant(value=float()) | ast.UnaryOp(operand=ast.Constant(value=float())):
            return node, True
    return node, False


def _number(node: ast.expr | None) -> float | None:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return None if isinstance(value, bool) else -float(value)
        case ast.Constant(value=int() | float() as value):
            return None if isinstance(value, bool) else float(value)
    return None


def write_arrays(writer: Writer, unit: Unit, regions: list[list[ast.stmt]]) -> None:
    """NumPy has no bfloat16: outputs become float32 before they become arrays."""
    program, file = unit.program, unit.file
    known = networks(file)
    for region in regions:
        outputs = set()
        for item in region:
            for at in own_nodes(item):
                match at:
                    case ast.Assign(targets=[ast.Name(id=name), *_], value=ast.Call(func=func) as call):
                        if variable(func) in known and runs_network(program, file, call, known):
                            outputs.add(name)
        function = enclosing_function(region[0])
        for node in file.scan.attributes.get("numpy", ()):
            later = enclosing_function(node) is function and begins(node) >= ends(region[0])
            if later and _root(node.value) in outputs and call_of(node) is not None:
                message = "NumPy has no bfloat16: the output becomes float32"
                writer.rewrite(node.value, "NPU740", message, method_called("float"), apart=True)


def _root(node: ast.expr) -> str:
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _SAME_TYPE:
                node = value
            case ast.Attribute(value=value, attr=attr) if attr in _SAME_TYPE:
                node = value
            case ast.Subscript(value=value):
                node = value
            case _:
                return plain_name(node)
