"""`channel-shuffle`: the channels are looked up by an index instead of by views that have to be copied.

Source: the sections on copy bottlenecks and on ShuffleNet of the Ascend PyTorch porting guide (CANN, torch 1.8):
exchanging two dimensions and making the result contiguous is the slow way there, index_select is one operator.
"""

from __future__ import annotations

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.around import scripted
from transplt.fixers.tuning_writer import switched_off, torch_name, touched, writer_for
from transplt.program.shuffles import shuffle_ending_at
from transplt.syntax.nodes import by_place

fixer = Fixer(__name__, code="NPU769", rank=480, theme="tune:channel-shuffle", needs=(b"view", b"reshape"))


@on_file(fixer, writer_for)
def shuffled_channels(work: Work, writer: Writer) -> None:
    """Rewrite the shuffles whose shapes are seen."""
    for call in by_place(work.scan.calls):
        shuffle = shuffle_ending_at(work.scan, work.names, call)
        if shuffle is None or scripted(work, call) or switched_off(work, call, fixer.code):
            continue
        if touched(writer, call) or any(touched(writer, line) for line in shuffle.gone):
            continue
        if not writer.fits(*shuffle.gone):
            continue
        x, torch = shuffle.x.id, torch_name(writer)
        groups, each = work.text(shuffle.groups), work.text(shuffle.each)
        order = f"{torch}.arange({shuffle.channels}, device={x}.device).view({groups}, {each}).t().flatten()"
        message = "a channel shuffle -> index_select"
        text = f"{x}.index_select(1, {order})"
        if writer.change_alone(call, fixer.code, message, text, api="torch.Tensor.index_select"):
            for line in shuffle.gone:
                writer.remove(line, fixer.code, "a step of the channel shuffle, which is now one operator", only=False)
