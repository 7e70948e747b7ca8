"""An operator in words: figures and stack as the guide on dumps prints them, elements, and a comparison."""

from __future__ import annotations

from typing import Any

from transplt.base.render.cell import figure, visible
from transplt.precision.elements import Array
from transplt.precision.first_line import place
from transplt.precision.record import Row, Tensor
from transplt.precision.show.beside import Beside
from transplt.precision.show.operator import Found

FORMAT = 1


def full_name(row: Row, tensor: Tensor) -> str:
    """`67_VF_lstm_backward_input.0`, `Functional.conv2d.0.forward.input.0`: with the separator of its recorder."""
    if "." in row.name:
        return f"{row.name}.{tensor.name}"
    # ptdbg gives an output that is alone no number.
    alone = tensor.name == "output.0" and len(row.outputs) == 1
    return f"{row.name}_{'output' if alone else tensor.name}"


def statistic(row: Row, tensor: Tensor) -> str:
    """The line of figures of one tensor; what the dump does not have is left out."""
    name = full_name(row, tensor)
    if not tensor.is_tensor:
        makes = {"bool": bool, "int": int}.get(tensor.dtype, float)
        value = tensor.digest if tensor.max is None else makes(tensor.max)
        return f"[{name}][type: {tensor.dtype}][value: {value}]"
    figures = (("max", tensor.max), ("min", tensor.min), ("mean", tensor.mean), ("norm", tensor.norm))
    printed = "".join(f"[{what}: {value!r}]" for what, value in figures if value is not None)
    digest = f"[md5: {tensor.digest}]" if tensor.digest else ""
    return f"[{name}][dtype: torch.{tensor.dtype}][shape: {list(tensor.shape)}]{printed}{digest}"


def row_text(found: Found, row: Row, elements: dict[str, Array], top: int) -> list[str]:
    """The lines of one operator."""
    lines = ["Statistic Info:", *(f"  {visible(statistic(row, tensor))}" for tensor in row.tensors)]
    if frames := found.stacks.get(row.name, ()):
        lines.append(f"Trace back({visible(row.name)}):")
        # Innermost first in the dump; a traceback is read from the outside in, with the source below its place.
        for frame in reversed(frames):
            first, *source = (part.strip(" ,") for part in frame.strip().split("\n"))
            lines += [f"  {visible(first)}", *(f"    {visible(part)}" for part in source if part)]
        if where := place(frames):
            lines.append(f"Called at {where}")
    for tensor in row.tensors:
        if tensor.name in elements:
            lines += _elements_text(full_name(row, tensor), elements[tensor.name], top)
    return lines


def _elements_text(name: str, array: Array, top: int) -> list[str]:
    from transplt.precision.show.beside import counted, largest_elements

    counts = ", ".join(f"{count} {what}" for what, count in counted(array).items() if count)
    lines = [f"Elements of {visible(name)}: {array.size}" + (f", of which {counts}" if counts else "")]
    lines += [f"  {list(place)}: {figure(value)}" for place, value in largest_elements(array, top)]
    return lines


def beside_text(found: Beside) -> list[str]:
    """One tensor beside that of the other dump."""
    head = f"{visible(found.name)}: {visible(found.how)}"
    lines = [head]
    lines += [f"  {what:<24}{one:<24}{other}" for what, one, other in found.figures]
    if found.metrics:
        lines.append("  " + ", ".join(f"{what} {value}" for what, value in found.metrics))
    for title, elements in (("absolute", found.by_absolute), ("relative", found.by_relative)):
        if elements:
            lines.append(f"  largest {title} errors of {found.size} elements, {found.apart} of them differ:")
            lines.append(f"    {'index':>10}  {'position':<18}{'NPU':<16}{'bench':<16}{'absolute':<14}relative")
            for each in elements:
                sides = f"{figure(each.npu):<16}{figure(each.bench):<16}"
                errors = f"{figure(each.absolute, 4):<14}{figure(each.relative, 4)}"
                lines.append(f"    {each.index:>10}  {list(each.position)!s:<18}{sides}{errors}")
    return lines


def row_json(found: Found, row: Row, beside: list[Beside]) -> dict[str, Any]:
    """One operator as an object."""
    frames = found.stacks.get(row.name, ())
    return {
        "name": visible(row.name),
        "api": visible(row.api),
        "phase": row.phase,
        "step": found.step,
        "rank": found.rank,
        "source": place(frames),
        "stack": [visible(frame) for frame in frames],
        "tensors": [
            {"name": visible(tensor.name), "dtype": tensor.dtype, "shape": list(tensor.shape),
             "max": _finite(tensor.max), "min": _finite(tensor.min), "mean": _finite(tensor.mean),
             "norm": _finite(tensor.norm), "line": visible(statistic(row, tensor))}
            for tensor in row.tensors
        ],
        "beside": [
            {"name": visible(each.name), "how": visible(each.how), "metrics": dict(each.metrics), "size": each.size,
             "apart": each.apart,
             "elements": [[each.index, list(each.position), _finite(each.npu), _finite(each.bench),
                           _finite(each.absolute), _finite(each.relative)] for each in each.by_absolute]}
            for each in beside
        ],
    }  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and value - value == 0 else None
