"""Images of Cog (cog.yaml): it builds them on NVIDIA's images alone.

The version of CUDA is a key of its own (yaml.md in the docs of github.com/replicate/cog), and no device.
"""

from __future__ import annotations

import re

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Finds, Kept, Note
from transplt.engine.files.document import Document
from transplt.engine.files.recipe_keys import IMAGE
from transplt.rules.containers import image_text

_ASKS = re.compile(r"^[ \t]+(?P<key>gpu|cuda|cudnn):[ \t]*(?P<value>[^\s#]+)", re.M)


def changes(document: Document, text: str) -> Finds:
    """Say once that the image is one of CUDA, where Cog is asked for a GPU."""
    asked = {match["key"]: match for match in _ASKS.finditer(text)}
    if not asked or ("gpu" in asked and asked["gpu"]["value"].lower() not in ("true", "yes", "on")):
        return
    first = asked.get("gpu") or next(iter(asked.values()))
    help_ = f"Cog has no images for NPUs: write a Dockerfile. {image_text(document.settings, document.target)}"
    message = "Cog builds this image on NVIDIA's CUDA image"
    yield Note(first.span(), IMAGE, Level.MANUAL, message, first["key"], help_, Effort.MEDIUM)
    yield from (Kept(match.span(), "key") for match in asked.values() if match is not first)
