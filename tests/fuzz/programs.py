"""Programs that Hypothesis puts together from small pieces: names of CUDA in every place of the grammar."""

from __future__ import annotations

import codecs
import textwrap

from hypothesis import strategies as st

#: Import lines, some of which bind the names below and some of which shadow them.
IMPORTS = (
    "import torch",
    "import torch.cuda",
    "import torch.cuda as tc",
    "from torch import cuda",
    "from torch.cuda import amp, Stream as S",
    "from torch.cuda.amp import autocast as ac, GradScaler",
    "import torch, torch.distributed as dist",
    "import torch_npu",
    "from numba import cuda",
    "try:\n    from torch.cuda import nvtx\nexcept ImportError:\n    nvtx = None",
    "import os; import sys",
)

#: Expressions; `{x}` takes another expression.
EXPRESSIONS = (
    "torch.cuda.is_available()",
    "torch.cuda.current_device()",
    "tc.synchronize()",
    "cuda.Event(enable_timing=True)",
    "x.cuda()",
    "x.cuda(0, non_blocking=True)",
    "x.to('cuda')",
    "torch.device('cuda:0' if {x} else \"cpu\")",
    "torch.device(f'cuda:{{rank}}')",
    "f(lambda cuda: cuda.y({x}))",
    "[{x} for cuda in range(3)]",
    "{{'cuda': {x}}}",
    "torch.load(p, map_location={{'cuda:0': 'cpu'}})",
    "isinstance(x, torch.cuda.FloatTensor)",
    "x.device.type == 'cuda'",
    "x.is_cuda and {x}",
    "dist.init_process_group('nccl')",
    "print('cuda is é', {x})",
    "b'cuda'",
    "'cu' 'da'",
    "(yield_ := {x})",
    "1 + 2",
    "name",
    "g({x}, {x})",
    "torch . cuda . manual_seed ( {x} )",
)

#: Statements; `{x}` takes an expression, `{body}` an indented block.
STATEMENTS = (
    "y = {x}",
    "y = {x}  # cuda here",
    "{x}",
    "{x}; z = {x}",
    "del y",
    "if {x}:\n{body}",
    "while {x}:\n{body}\n    break",
    "with ac(enabled={x}), torch.cuda.amp.autocast():\n{body}",
    "with torch.cuda.stream(S()) as s:\n{body}",
    "def f(a, cuda=None, device='cuda'):\n{body}\n    return {x}",
    "def g(torch):\n{body}",
    "class C:\n    def cuda(self):\n        return {x}",
    "for cuda in {x}:\n{body}",
    "try:\n{body}\nexcept RuntimeError:\n    torch.cuda.empty_cache()",
    "assert {x}, 'no CUDA'",
    "@torch.cuda.amp.custom_fwd\ndef h(x):\n{body}",
    "torch.backends.cudnn.benchmark = True",
    "torch = {x}",
    "'''cuda docs'''",
    "os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
    "x = [\n    {x},  # one cuda\n    {x},\n]",
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    template = draw(st.sampled_from(EXPRESSIONS if depth else (*EXPRESSIONS[:6], "name", "1 + 2")))
    parts = template.split("{x}")
    text = parts[0].replace("{{", "{").replace("}}", "}")
    for part in parts[1:]:
        inner = draw(expressions(depth - 1)) if depth else "name"
        text += f"({inner})" + part.replace("{{", "{").replace("}}", "}")
    return text


@st.composite
def statements(draw: st.DrawFn, depth: int = 2) -> str:
    template = draw(st.sampled_from(STATEMENTS))
    while "{x}" in template:
        template = template.replace("{x}", draw(expressions()), 1)
    if "{body}" in template:
        lines = draw(st.lists(statements(depth - 1), min_size=1, max_size=3)) if depth else ["pass"]
        template = template.replace("{body}", textwrap.indent("\n".join(lines), "    "))
    return template


@st.composite
def programs(draw: st.DrawFn) -> bytes:
    """A module of bytes, with any newline, byte order mark or cookie, that Python may or may not accept."""
    head = draw(
        st.sampled_from(["", "'''About cuda.'''", "from __future__ import annotations", "#!/usr/bin/env python"])
    )
    imports = draw(st.lists(st.sampled_from(IMPORTS), max_size=4))
    body = draw(st.lists(statements(), max_size=5))
    text = "\n".join([head, *imports, *body])
    text += draw(st.sampled_from(["", "\n", "\n\n", "\n# cuda\n"]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n", "\r"])))
    kind = draw(st.sampled_from(["utf-8", "utf-8", "bom", "latin-1"]))
    if kind == "bom":
        return codecs.BOM_UTF8 + text.encode()
    if kind == "latin-1":
        return ("# -*- coding: latin-1 -*-\n" + text).encode("latin-1")
    return text.encode()
