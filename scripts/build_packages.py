"""Builds rules/third_party.json, the rules for imports of packages, from rules/support/third_party.json.

    python scripts/build_packages.py

The table is written by hand: a package is a line there (docs/analysis.md), and this script makes its findings.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

from build_tables import write  # noqa: E402

from transplt.base.settings import TORCH_VERSIONS  # noqa: E402
from transplt.rules.packages import what_to_do  # noqa: E402

Entry = dict[str, Any]

#: Packages whose import alone says nothing: they work on NPU for most of what they do.
QUIET_IMPORTS = {"torch", "onnxruntime", "faiss", "fairseq", "megatron", "cv2.cuda", "fla"}
#: Names of packages with mostly portable content that need something extra on NPU.
#: Operators of torchvision that its adapter brings to NPUs, under `torchvision.ops` and the module that defines them
#: (torchvision/ops/__init__.py of pytorch/vision); a module layer calls the function of its file.
_ADAPTED = (
    "nms", "boxes.nms", "batched_nms", "boxes.batched_nms", "roi_align", "RoIAlign", "MultiScaleRoIAlign",
    "poolers.MultiScaleRoIAlign", "roi_pool", "RoIPool", "deform_conv2d", "DeformConv2d", "deform_conv.deform_conv2d",
    "deform_conv.DeformConv2d",
)  # fmt: skip
#: The torch versions that a branch of the adapter is there for (gitcode.com/Ascend/vision@master: README.zh.md), and
#: what to know beside another one.
_WITH_ADAPTER = ("2.1", "2.5", "2.6", "2.7")
_NO_ADAPTER = "nothing to do: torchvision_npu, which has such a kernel, is there for torch 2.1, 2.5, 2.6 and 2.7 alone"
_LACKING = ("ps_roi_align", "PSRoIAlign", "ps_roi_pool", "PSRoIPool")
EXTRA_RULES = [
    *(
        {
            "name": f"torchvision.ops.{name}",
            "code": "NPU512",
            "effort": "low",
            "message": f"torchvision.ops.{name} has an NPU kernel in torchvision_npu only: "
            "without it the CPU computes it",
            # with a warning (npu_cpu_fallback, seen on a 910B: opendatalab/MinerU issue 1695)
            "blocks": "slow",
            "help": "install the Torchvision Adapter, import torchvision_npu after torchvision, or run it on the CPU",
            "versions": [*_WITH_ADAPTER],
        }
        for name in _ADAPTED
    ),
    *(
        {
            "name": f"torchvision.ops.{name}",
            "code": "NPU523",
            "level": "info",
            "message": f"torchvision.ops.{name} has no NPU kernel beside this torch: the CPU computes it",
            "help": _NO_ADAPTER,
            "versions": [each for each in TORCH_VERSIONS if each not in _WITH_ADAPTER],
        }
        for name in _ADAPTED
    ),
    *(
        {
            "name": f"torchvision.ops.{name}",
            "code": "NPU512",
            "effort": "medium",
            "message": f"torchvision.ops.{name} has no NPU kernel, in torchvision_npu neither",
            "help": "run it on the CPU, or write it with roi_align, which torchvision_npu has",
        }
        for name in _LACKING
    ),
    {
        "name": "cv2.cuda",
        "code": "NPU510",
        "effort": "medium",
        "message": "cv2.cuda needs a CUDA build of OpenCV",
        "help": "use OpenCV on the CPU, its cann module, or DVPP",
    },
]
#: Compiled modules that are known by their names (NPU553, fixers/codemods/extensions.py): the row gives the help.
_EXTENSION = re.compile(r"(?:^|_)cuda(?:[_\d]|$)|_cuda\.")
_STATUS_CODES = {
    "unsupported": ("NPU510", "medium"),
    "replacement": ("NPU510", "medium"),
    "drop": ("NPU510", "low"),
    "ascend_fork": ("NPU511", "medium"),
    "plugin": ("NPU512", "low"),
}
_SAYS = {
    "unsupported": "the package {name} does not support NPUs",
    "replacement": "the package {name} does not support NPUs",
    "drop": "the package {name} is part of CUDA",
    "ascend_fork": "the package {name} needs an Ascend version",
    "plugin": "the package {name} needs an extra package for Ascend",
}


def package_rules(packages: list[Entry]) -> Entry:
    """One finding at the import of each package that needs CUDA or something extra on NPU."""
    rules = []
    by_hand = json.loads((ROOT / "rules" / "libraries.json").read_bytes())["rules"]["UnsupportedRule"]
    named = {rule["name"] for rule in by_hand}
    for fact in packages:
        if fact["status"] not in _STATUS_CODES or fact.get("quiet"):
            continue
        code, effort = _STATUS_CODES[fact["status"]]
        for name in fact["import"]:
            if name in QUIET_IMPORTS or name in named or _EXTENSION.search(name):
                continue
            message = _SAYS[fact["status"]].format(name=name)
            if fact.get("confidence") == "low":
                message = f"no NPU support is known for the package {name}"
            rule = {"name": name, "where": "import", "code": code, "effort": effort, "message": message}
            if fact.get("loads"):  # what is called of it fails
                rule["blocks"] = "first step"
            text = what_to_do(fact)
            if text:
                rule["help"] = text
            rules.append(rule)
    return {
        "description": "packages bound to CUDA, reported where they are imported",
        "rules": {"UnsupportedRule": [*rules, *EXTRA_RULES]},
    }


def main(rules: Path) -> None:
    """Write the rules from the packages beside them."""
    table = json.loads((rules / "support" / "third_party.json").read_bytes())
    write(rules / "third_party.json", package_rules(table["packages"]))


if __name__ == "__main__":
    main(ROOT / "rules")
