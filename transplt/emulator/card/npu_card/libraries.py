"""CANN's libraries as torch_npu looks for them: ours, loaded before it asks."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from typing import Any

from npu_emulator import limits
from npu_emulator.config import config
from npu_emulator.record import record

#: In the order of their needs. torch_npu's own are matched by these names, wherever they lie.
_NAMES = (
    "ascendcl", "acl_op_compiler", "ge_runner", "graph", "acl_tdt_channel", "opapi", "mspti", "msprofiler",
    "ascend_hal", "hccl", "hcomm",
)  # fmt: skip
_GIB = 1 << 30
#: What a card holds where the table of limits does not say (`gib` of 0), in bytes.
_USUAL = 64 * _GIB
#: What CANN's functions return for an error that is their own (ACLNN_ERR_INNER, aclnn_base.h).
_INTERNAL = 561000
#: Cores of a card that do matrices; programs that ask divide work by it.
_CORES = 24
#: libascendcl and libhccl, once they are loaded.
runtime: Any = None
collective: Any = None
#: Names of operators by the number under which the driver calls.
names: list[str] = []
#: Classes of what is raised again in the program.
_raised: list[Any] = []
#: What ctypes has to hold as long as C may call it.
_callbacks: list[Any] = []


def load() -> None:
    """Load the libraries of `config.driver`, and let them call Python. Does nothing the second time."""
    global runtime, collective
    if runtime is not None:
        return
    loaded = {
        name: ctypes.CDLL(os.path.join(config.driver, f"lib{name}.so"), mode=ctypes.RTLD_GLOBAL) for name in _NAMES
    }
    with open(os.path.join(config.driver, "operators.json"), encoding="utf-8") as file:
        names.extend(json.load(file))
    runtime, collective = loaded["ascendcl"], loaded["hccl"]
    set_up()
    python = ctypes.pythonapi
    runtime.card_python(python.PyGILState_Ensure, python.PyGILState_Release, python.PyThreadState_SetAsyncExc)
    word, handle = ctypes.c_int, ctypes.c_uint64
    _call(runtime.card_compute, word, (word, handle), "calls", "compute")
    _call(
        runtime.card_compute_named, word,
        (ctypes.c_char_p, word, handle, handle, word, handle, handle, handle), "named_calls", "compute",
    )  # fmt: skip
    _call(collective.card_carry_out, word, (word, handle), "collectives", "carry_out")
    _call(runtime.card_await, word, (ctypes.c_int64,), "communicators", "wait")
    runtime.card_begin.argtypes, runtime.card_begin.restype = (handle, ctypes.c_bool), ctypes.c_int64
    runtime.card_end.argtypes = (ctypes.c_int64,)
    if config.needs:
        sys.path.append(config.needs)


def set_up() -> None:
    """Be the cards of the settings; a process that was forked for a run has other ones than its parent. Does nothing
    before the libraries are loaded."""
    if runtime is not None:
        memory = limits.card_memory() or _USUAL
        runtime.card_setup(config.npus, limits.card_name().encode(), ctypes.c_uint64(memory), ctypes.c_int64(_CORES))


def _call(setter: Any, result: Any, arguments: tuple[Any, ...], module: str, function: str) -> None:
    """Let `setter`'s callback be a function of a module of this package, which is imported at the first call: torch is
    there by then."""
    kind = ctypes.CFUNCTYPE(result, *arguments)

    def first(*values: Any) -> Any:
        try:
            found = getattr(__import__(f"npu_card.{module}", fromlist=[function]), function)
            if config.models not in ("", "eager"):  # Dynamo, which traces what C calls as well, leaves out its own
                from torch.compiler import disable

                found = disable(found)
            set_callback(kind(found))
            return found(*values)
        except BaseException as error:
            return after(error)

    def set_callback(callback: Any) -> None:
        _callbacks.append(callback)
        setter(callback)

    set_callback(kind(first))


def after(error: BaseException) -> int:
    """The error code for what our own code raises in a call from C, which else would go on with any number. What a
    signal asks for (Ctrl-C) is raised in the program once the call is over: C asks for that then."""
    if isinstance(error, Exception):
        say(f"the emulated card failed: {type(error).__name__}: {error}")
        return _INTERNAL
    kind = type(error)
    again = type(kind.__name__, (kind,), {"__init__": lambda self, *given: kind.__init__(self, *error.args)})
    _raised.append(again)
    runtime.card_raise(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(again))
    return 0


def say(text: str) -> None:
    """Make `text` what the driver says of the last error; torch_npu shows it inside its own message."""
    record.said = text
    runtime.card_message(text.encode("utf-8", "replace")[:8000])
