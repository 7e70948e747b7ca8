"""Calls of libraries that mean CUDA where they are told no device (rules/support/default_devices.json)."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite
from transplt.rules.default_devices import default_devices, packages
from transplt.rules.tables import read_table

NEW = {"pins": (("timm", ">=1.0.12"),)}
SCALER = "from timm.utils import NativeScaler\nscaler = NativeScaler()\n"


def test_the_scaler_of_timm_is_told_the_npu_where_the_version_takes_it() -> None:
    check_rewrite(
        SCALER,
        """
        from timm.utils import NativeScaler
        import torch_npu  # noqa: F401
        scaler = NativeScaler(device="npu")
        """,
        codes_applied=["NPU148", "NPU403"],
        **NEW,
    )


@pytest.mark.parametrize("asked", ["==1.0.12", ">=1.0.12,<2", "~=1.0.20", ">1.0.12"])
def test_every_version_that_is_asked_for_has_to_take_it(asked: str) -> None:
    check_rewrite(
        "import torch_npu\nimport timm.utils as utils\nscaler = utils.NativeScaler()\n",
        'import torch_npu\nimport timm.utils as utils\nscaler = utils.NativeScaler(device="npu")\n',
        pins=(("timm", asked),),
    )


@pytest.mark.parametrize("asked", ["==0.3.2", ">=0.9.2", "<1.0.12", "!=1.0", "@ git+https://example.org"])
def test_where_an_older_one_may_be_installed_it_is_reported(asked: str) -> None:
    check_noop(SCALER, open_codes=["NPU148"], pins=(("timm", asked),))


def test_without_a_version_it_is_reported() -> None:
    check_noop(SCALER, open_codes=["NPU148"])


@pytest.mark.parametrize(
    "line",
    [
        'from timm.utils import NativeScaler\nscaler = NativeScaler(device="npu")',
        'from timm.utils import NativeScaler\nscaler = NativeScaler("npu")',
        "from timm.utils import NativeScaler\nscaler = NativeScaler(device=device.type)",
        "from timm.utils import ApexScaler\nscaler = ApexScaler()",
        "from mine import NativeScaler\nscaler = NativeScaler()",
        "class NativeScaler:\n    pass\nscaler = NativeScaler()",
        "from timm.utils import NativeScaler\ndef scaler() -> NativeScaler: ...",
        "from timm.data import create_loader\nloader = create_loader(data, 224, 8, use_prefetcher=False)",
        "from timm.data import create_loader\nloader = create_loader(data, 224, 8, device=device)",
        'from timm.data.random_erasing import RandomErasing\nerase = RandomErasing(device="cpu")',
        "from torchvision.transforms import RandomErasing\nerase = RandomErasing()",
        "from timm.data.random_erasing import RandomErasing\n"
        "erase = RandomErasing(0.5, 0.02, 0.3, 0.3, None, 'const', 1, 1, 0, 'cpu')",
        'import clip\nmodel, transform = clip.load("ViT-B/32", device=device)',
        'import clip\nmodel, transform = clip.load("ViT-B/32", device)',
        "from torchinfo import summary\nsummary(model, (3, 224, 224))",
        'from torchsummary import summary\nsummary(model, (3, 224, 224), device="cpu")',
        'from resemblyzer import VoiceEncoder\nencoder = VoiceEncoder("cpu")',
        "from resemblyzer import VoiceEncoder\nencoder = VoiceEncoder(device)",
        "from resemblyzer import VoiceEncoder\ndef encoder() -> VoiceEncoder: ...",
        "from mine import VoiceEncoder\nencoder = VoiceEncoder()",
    ],
)
def test_what_is_told_a_device_or_is_another_function_stays(line: str) -> None:
    check_noop(f"{line}\n", **NEW)


def test_a_star_brings_it() -> None:
    check_rewrite(
        "import torch_npu\nfrom timm.utils import *\nscaler = NativeScaler()\n",
        'import torch_npu\nfrom timm.utils import *\nscaler = NativeScaler(device="npu")\n',
        **NEW,
    )


@pytest.mark.parametrize(
    "text",
    [
        "from timm.models import *\nscaler = NativeScaler()",
        "from timm.utils import *\nfrom mine import NativeScaler\nscaler = NativeScaler()",
        "from timm.utils import *\ndef NativeScaler(): ...\nscaler = NativeScaler()",
    ],
)
def test_a_star_of_something_else_does_not(text: str) -> None:
    check_noop(f"{text}\n", **NEW)


def test_a_later_star_may_hide_it() -> None:
    check_noop(
        "from timm.utils import *\nfrom mine import *\nscaler = NativeScaler()\n", open_codes=["NPU148"], **NEW
    )


def test_a_package_of_the_project_has_a_default_of_its_own() -> None:
    files = {"clip/__init__.py": "from clip.clip import load\n", "clip/clip.py": "def load(name, device=None): ...\n"}
    check_noop('import clip\nmodel = clip.load("ViT-B/32")\n', files=files)


def test_a_loader_gets_a_device_of_torch() -> None:
    check_rewrite(
        """
        import torch
        from timm.data import create_loader
        loader = create_loader(
            data,
            input_size=224,
            use_prefetcher=args.prefetcher,
        )
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from timm.data import create_loader
        loader = create_loader(
            data,
            input_size=224,
            use_prefetcher=args.prefetcher,
            device=torch.device("npu"),
        )
        """,
        codes_applied=["NPU149", "NPU403"],
        **NEW,
    )


@pytest.mark.parametrize(
    "line",
    [
        "from timm.data import create_loader\nloader = create_loader(data, 224, 8)",
        "import torch\nfrom timm.data import create_loader\nloader = create_loader(data, 224, 8, **options)",
        "from torchsummary import summary\nsummary(model, (3, 224, 224))",
        "from cleanfid import fid\nscore = fid.compute_fid(real, fake)",
    ],
)
def test_what_stops_and_cannot_be_written_is_reported(line: str) -> None:
    check_noop(f"{line}\n", open_codes=["NPU149"], **NEW)


@pytest.mark.parametrize(
    ("line", "code"),
    [('import whisper\nmodel = whisper.load_model("base")', "NPU148"), (f"{SCALER}", "NPU148")],
)
def test_what_goes_on_in_silence_is_reported(line: str, code: str) -> None:
    check_noop(f"{line}\n", open_codes=[code])


def test_a_model_is_loaded_to_the_npu() -> None:
    check_rewrite(
        'import torch\nimport clip\nmodel, _ = clip.load("ViT-B/32")\nmodel = model.cuda()\n',
        'import torch\nimport torch_npu  # noqa: F401\nimport clip\n'
        'model, _ = clip.load("ViT-B/32", device="npu")\nmodel = model.npu()\n',
    )  # fmt: skip


def test_a_model_that_keeps_its_own_device_is_told_it_before_it_is_moved() -> None:
    check_rewrite(
        "import torch_npu\nfrom resemblyzer import VoiceEncoder\nencoder = VoiceEncoder().cuda()\n",
        'import torch_npu\nfrom resemblyzer import VoiceEncoder\nencoder = VoiceEncoder(device="npu").npu()\n',
        codes_applied=["NPU148", "NPU210"],
    )


def test_the_portable_style_is_told_and_does_not_write() -> None:
    check_noop(SCALER, open_codes=["NPU148"], style="portable", **NEW)


def test_the_table_has_its_form() -> None:
    keys = {"names", "argument", "position", "writes", "package", "since", "falls", "unless", "is", "help", "source",
            "seen"}  # fmt: skip
    rows = read_table("support/default_devices.json")["callables"]
    assert all(set(row) <= keys and row["source"] and row["falls"] in ("silent", "stops") for row in rows)
    assert all(("package" in row) == ("since" in row) for row in rows)
    assert len(default_devices()) == sum(len(row["names"]) for row in rows)
    assert packages() == {"timm"}
