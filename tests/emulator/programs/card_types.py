"""Operators with types that the card refuses, computes on its AI CPU or takes; printed as name -> error."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
import torch_npu  # noqa: F401

TOLD: dict[str, str] = {}


def tell(name: str, call: Callable[[], Any]) -> None:
    try:
        call()
        TOLD[name] = ""
    except RuntimeError as error:
        TOLD[name] = str(error)


x = torch.randn(4, 4).npu()
double = torch.randn(4, 4, dtype=torch.float64).npu()
z = torch.complex(x, x)
wide = torch.complex(torch.randn(4, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)).npu()
at = torch.tensor([0, 1]).npu()
columns = torch.zeros(4, 2, dtype=torch.int64).npu()

tell("polar float64", lambda: torch.polar(double, double))
tell("index complex64", lambda: z[at])
tell("index complex128", lambda: wide[at])
tell("index by mask complex64", lambda: z[x > 0])
tell("index_put complex64", lambda: z.index_put_((at,), z[:2].clone()))
tell("gather complex64", lambda: z.gather(1, columns))
tell("cat complex128", lambda: torch.cat([wide, wide]))
tell("silu float64", lambda: torch.nn.functional.silu(double))
tell("gelu float64", lambda: torch.nn.functional.gelu(double))
tell("index uint16", lambda: torch.zeros(4, dtype=torch.uint16).npu()[at])

tell("slice complex64", lambda: z[1:3])
tell("one row complex64", lambda: z[0])
tell("mul complex64", lambda: z * z)
tell("view_as_real", lambda: torch.view_as_real(z) + 1)
tell("index float16", lambda: x.half()[at])
tell("index int64", lambda: columns[at])
tell("index bool", lambda: (x > 0)[at])
tell("polar float32", lambda: torch.polar(x, x))
tell("sum float64 of one", lambda: double.sum() + double.sum())
tell("index complex64 on the host", lambda: z.cpu()[at.cpu()])
tell("index of nothing", lambda: z[:0][at[:0]])

for _ in range(3):
    tell("exp float64", lambda: double.exp())
print(json.dumps(TOLD))
