"""What containers, clusters and CI services get for an NPU: rules/support/containers.json."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from transplt.base.settings import Settings, TorchTarget
from transplt.rules.releases import index_option, release_of
from transplt.rules.tables import read_table

_table = partial(read_table, "support/containers.json")


def container_text(name: str, number: str = "") -> str:
    """The text to paste in one of the places where a GPU is asked for: a key of `texts` in the table."""
    return str(_table()["texts"][name]).replace("{number}", number or "1")


def is_cuda_image(name: str) -> bool:
    """True for the name of an image (with its tag) that is built on CUDA."""
    return re.search(_table()["cuda_images"], name.lower()) is not None


def cann_image(settings: Settings, target: TorchTarget) -> str:
    """The name of an image with CANN for a card and a torch; with a place to fill in where no such tag is known."""
    images = _table()["images"]
    chip = images["chips"].get(settings.hardware, "<chip>")
    python = images["python"].get(target.cann)
    if chip == "950":
        python = images["python_950"] if target.cann == "9.1.0" else None
    if python is None:
        return f"{images['repository']}:{images['scheme']}"
    return f"{images['repository']}:{target.cann.lower()}-{chip}-{images['os']}-py{python}"


def image_text(
    settings: Settings, target: TorchTarget, key: str = "text", name: str = "", imported: Iterable[str] = ()
) -> str:
    """What to write for the `name` of an image: `text` for a Dockerfile, `image` for a key of YAML. An image of PyTorch
    has torchvision and torchaudio in it: what of them is among the `imported` names is installed with torch.
    """
    text = str(_table()["images"][key]).replace("{image}", cann_image(settings, target))
    text = text.replace("{torch}", target.pin)
    row, roots = release_of(target.version), {each.partition(".")[0] for each in imported if "pytorch" in name.lower()}
    family = (("torchvision", row.torchvision), ("torchaudio", row.torchaudio))
    beside = "".join(f" {each}=={version}" for each, version in family if each in roots and version)
    text = text.replace("{index}", index_option(row.x86_64))
    return text.replace("=={torch_npu}", f"{f'=={target.torch_npu}' if target.torch_npu else ''}{beside}")


def package_text(name: str, target: TorchTarget) -> str:
    """What to do about a package of a Linux distribution; empty for one that is not NVIDIA's."""
    for row in _table()["packages"]:
        if re.search(row["pattern"], name.lower()):
            return str(row["text"]).replace(" {cann}", f" {target.cann}" if target.cann else "")
    return ""


def variable_text(name: str) -> str:
    """What to do about a variable of NVIDIA's images and of CUDA builds; empty for others."""
    return str(_table()["variables"].get(name, ""))


def paths_text() -> str:
    """What to do about folders of CUDA in PATH and the like."""
    return str(_table()["cuda_paths"])
