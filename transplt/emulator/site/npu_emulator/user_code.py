"""Whose code is running: the user's own files, or a library's."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from types import FrameType

from .config import config


def _vendor() -> list[str]:
    """The folder of torch_npu; none beside the stand-in for CUDA."""
    spec = importlib.util.find_spec("torch_npu") if config.driver else None
    return [os.path.dirname(spec.origin)] if spec is not None and spec.origin else []


_PATHS = sysconfig.get_paths()
_EMULATOR = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
#: Frames that are transparent when looking for the caller: the standard library, this emulator and torch_npu.
_TRANSPARENT = tuple(
    os.path.realpath(p) + os.sep for p in (_PATHS["stdlib"], _PATHS["platstdlib"], _EMULATOR, *_vendor())
)
#: `scripts` has the commands of packages, torchrun among them.
_LIBRARIES = tuple(os.path.realpath(_PATHS[name]) + os.sep for name in ("purelib", "platlib", "scripts"))
_PACKAGE_DIRS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

#: Parts of a path that mark what is no user's code, for those who have only the path.
LIBRARIES = (*_TRANSPARENT, *_LIBRARIES, *_PACKAGE_DIRS)

_kinds: dict[str, str] = {}


def kind(filename: str) -> str:
    """`user`, `library`, `torch` or `transparent` for a code object's file name."""
    known = _kinds.get(filename)
    if known is None:
        known = _kinds[filename] = _classify(filename)
    return known


def _classify(filename: str) -> str:
    if filename.startswith("<"):
        return "user" if filename in ("<stdin>", "<string>") else "transparent"
    path = os.path.realpath(filename)
    if path.startswith(_LIBRARIES) or any(part in path for part in _PACKAGE_DIRS):
        return (
            "torch"
            if any(f"{part.strip(os.sep)}{os.sep}torch{os.sep}" in path for part in _PACKAGE_DIRS)
            else "library"
        )
    if path.startswith(_TRANSPARENT):
        return "transparent"
    torch = sys.modules.get("torch")
    root = getattr(torch, "__path__", None)
    if root and path.startswith(os.path.realpath(root[0]) + os.sep):
        return "torch"
    return "user"


def is_user(filename: str) -> bool:
    """True for a source file that belongs to no library."""
    return kind(filename) == "user"


def caller(depth: int = 2) -> FrameType | None:
    """The user's frame that called into torch, None when a library did.

    `depth` counts as in `sys._getframe`, from this function's caller.
    """
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        whose = kind(frame.f_code.co_filename)
        if whose == "user":
            return frame
        if whose == "library":
            return None
        frame = frame.f_back
    return None


def nearest(depth: int = 2) -> FrameType | None:
    """The innermost user frame, whatever lies between: the place a reader would look at."""
    return nearest_from(sys._getframe(depth))


def nearest_from(frame: FrameType | None) -> FrameType | None:
    """The same, of the callers of a frame and itself."""
    while frame is not None and not is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return frame
