"""TorchScript is remarked on where it compiles something, and left as it is."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_untuned

TUNE = "jit-script"


@pytest.mark.parametrize(
    "source",
    [
        "import torch\n\n@torch.jit.script\ndef f(x):\n    return x\n",
        "import torch\nf = torch.jit.script(len)\n",
        "from torch import jit\nf = jit.script(len)\n",
        "from torch.jit import script\n\n@script\ndef f(x):\n    return x\n",
        "import torch\n\nclass A:\n    @torch.jit.script_method\n    def f(self):\n        return self\n",
    ],
)
def test_what_is_compiled(source: str) -> None:
    check_untuned(TUNE, source, open_codes=["NPU772"])


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nf = torch.jit.load('a.pt', map_location='cpu')\n",
        "import torch\n\n@torch.jit.ignore\ndef f(x):\n    return x\n",
        "import torch\n\n@torch.jit.export\ndef f(x):\n    return x\n",
        "import torch\ntorch.jit.script = len\n",
        "import torch\nf = torch.jit.trace(len, 1)\n",
        "import torch\nfrom project import jit\nf = jit.script(len)\n",
        "import torch\nassert not torch.jit.is_scripting()\n",
    ],
)
def test_what_is_not(source: str) -> None:
    check_untuned(TUNE, source)
