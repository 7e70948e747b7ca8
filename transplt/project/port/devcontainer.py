"""`.devcontainer/devcontainer.json` of a ported project: an editor opens it in the container of transplt's docs."""

from __future__ import annotations

import json

NAME = ".devcontainer/devcontainer.json"
_HEAD = """\
// The image comes of a checkout of transplt:
// docker build --platform linux/amd64 -t transplt -f docs/container/Dockerfile .
"""


def devcontainer(name: str) -> str:
    """The text of the file, for a project of this name. Fields: containers.dev/implementors/json_reference."""
    table = {
        "name": f"{name} on an emulated NPU",
        "image": "transplt",
        # What the image starts is a command that ends.
        "overrideCommand": True,
        "postCreateCommand": "transplt run --setup",
        "mounts": ["source=transplt,target=/cache,type=volume"],
    }
    return _HEAD + json.dumps(table, indent=4, ensure_ascii=False) + "\n"
