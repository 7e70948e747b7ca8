"""What lies at a path: which kind of dump, and its steps and ranks."""

from __future__ import annotations

import os

from transplt.base.errors import shown
from transplt.base.render.cell import first_of
from transplt.precision import loose_files as loose
from transplt.precision import msprobe, ptdbg
from transplt.precision.elements import WEIGHTS
from transplt.precision.files import folders
from transplt.precision.record import Dump, UnusableDump

#: Folders below the one that is named are looked into so deep, and so many of them. A device writes into five: of the
#: time, of the device, of the model, of its number and of the iteration.
_DEEP, _MOST_FOLDERS = 6, 5_000
#: They lie in a dump, and are none.
_INSIDE = (msprobe.DATA, "configuration", ".git", ".transplt")
#: Models and weights that are not read, by the ends of their names; of TensorFlow's `.data-00000-of-00001` the begin.
_MODELS = {
    ".om": "an offline model of CANN", ".air": "a model for ATC", ".pb": "a graph of TensorFlow",
    ".onnx": "a model of ONNX", ".mindir": "a model of MindSpore",
    ".index": "part of a checkpoint of TensorFlow", ".data": "part of a checkpoint of TensorFlow",
    ".meta": "part of a checkpoint of TensorFlow", ".tflite": "a model of TensorFlow Lite",
    ".gguf": "a model for llama.cpp", ".pdparams": "weights of Paddle",
}  # fmt: skip
_READ = f"dumps (.pkl of ptdbg, .h5) and weights ({', '.join(WEIGHTS)})"


def open_dump(path: str) -> Dump:
    """The dump at `path`, or the only one in the folders below, listed and not read. UnusableDump where there is none.
    """
    if not os.path.lexists(path):
        raise UnusableDump(f"{shown(path)} does not exist")
    if (found := _at(path)) is not None:
        return found
    below = _below(path) if os.path.isdir(path) else []
    if len(below) == 1:
        return below[0]
    if below:
        names = first_of([shown(os.path.relpath(each.path, path)) for each in below], 5)
        raise UnusableDump(f"{shown(path)} holds several dumps ({names}): name one of them")
    if os.path.isdir(path) and msprobe.steps_in(path):
        raise UnusableDump(f"{shown(path)} has folders of steps, and no dump.json and no .npy files in any of them")
    ends = os.path.splitext(path)[1].lower()
    if model := _MODELS.get(ends.partition("-")[0]):
        raise UnusableDump(f"{shown(path)} is {model}; {_READ} are read")
    what = f"{_READ} are read"
    if os.path.isdir(path):
        what = "no step*/rank*/dump.json, no .pkl of ptdbg, no .npy files"
    elif ends == ".npy":
        what = "it is one array without a name; name the folder that holds it"
    raise UnusableDump(f"{shown(path)} is not a dump: {what}")


def _below(path: str) -> list[Dump]:
    """The dumps in the folders below, the nearest first; what lies in one is no other."""
    found: list[Dump] = []
    seen = 0
    level = [path]
    for _ in range(_DEEP):
        inner = [os.path.join(each, name) for each in level for name in folders(each) if name not in _INSIDE]
        seen += len(inner)
        if seen > _MOST_FOLDERS:
            raise UnusableDump(f"{shown(path)} has more than {_MOST_FOLDERS} folders: name the dump itself")
        level = []
        for each in inner:
            if (dump := _at(each)) is not None:
                found.append(dump)
            else:
                level.append(each)
    return found


def _at(path: str) -> Dump | None:
    if os.path.isdir(path) and (parts := msprobe.find(path)):
        return Dump(path, "msprobe", parts)
    if parts := ptdbg.find(path):
        return Dump(path, "ptdbg", parts)
    if parts := loose.find(path):
        return Dump(path, "h5" if os.path.isfile(path) else "npy", parts)
    return None
