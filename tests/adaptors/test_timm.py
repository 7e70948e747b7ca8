"""The adaptor of timm, and names that come from npu_port in general."""

from __future__ import annotations

from tests.adaptors.adapted import check_adapted, check_not_adapted, offered
from tests.harness import migrate


def test_the_import_comes_from_the_helper() -> None:
    check_adapted(
        "timm",
        """
        from timm.utils import NativeScaler

        loss_scaler = NativeScaler()
        """,
        """
        from npu_port import NativeScaler

        loss_scaler = NativeScaler()
        """,
    )


def test_other_names_stay_and_a_name_here_is_kept() -> None:
    check_adapted(
        "timm",
        """
        def build():
            from timm.utils import NativeScaler as Scaler, accuracy

            return Scaler(), accuracy
        """,
        """
        def build():
            from timm.utils import accuracy
            from npu_port import NativeScaler as Scaler

            return Scaler(), accuracy
        """,
    )


def test_scalers_that_are_told_a_device_stay() -> None:
    """timm 1.0.12 and newer have a place for it: nothing disables itself."""
    for call in ("NativeScaler(device=device.type)", 'NativeScaler("npu")'):
        check_not_adapted(
            "timm",
            f"""
            from timm.utils import NativeScaler

            def scaler(device):
                return {call}
            """,
        )


def test_one_scaler_without_a_device_is_enough() -> None:
    check_adapted(
        "timm",
        """
        from timm.utils import NativeScaler

        first, second = NativeScaler(), NativeScaler(device="cpu")
        """,
        """
        from npu_port import NativeScaler

        first, second = NativeScaler(), NativeScaler(device="cpu")
        """,
    )


def test_attributes_of_the_module() -> None:
    check_adapted(
        "timm",
        """
        import torch
        import timm.utils as utils

        scaler = utils.NativeScaler()
        meter = utils.AverageMeter()
        """,
        """
        import torch
        import timm.utils as utils

        import npu_port

        scaler = npu_port.NativeScaler()
        meter = utils.AverageMeter()
        """,
    )


def test_in_one_file_the_class_stands_above() -> None:
    result = check_adapted(
        "timm",
        "from timm.utils import NativeScaler\n\nscaler = NativeScaler()\n",
        "from npu_port import NativeScaler\n\nscaler = NativeScaler()\n",
    )
    assert [finding.code for finding in result.findings if finding.applied] == ["NPU871"]


def test_it_is_offered() -> None:
    assert offered("from timm.utils import NativeScaler\n\nscaler = NativeScaler()\n") == [("NPU148", 3, "timm")]


def test_what_it_leaves() -> None:
    check_not_adapted("timm", "from mine.utils import NativeScaler\n\nscaler = NativeScaler()\n")
    check_not_adapted("timm", "from timm.utils import accuracy\n\nprint(accuracy)\n")
    check_not_adapted(
        "timm",
        "from timm.utils import NativeScaler  # transplt: ignore[NPU871]\n\nscaler = NativeScaler()\n",
        open_codes=["NPU148"],
    )


def test_a_loader_gets_the_card() -> None:
    check_adapted(
        "timm",
        """
        from timm.data import create_dataset, create_loader

        loader = create_loader(
            create_dataset("", root),
            input_size=224,
            batch_size=8,
        )
        """,
        """
        from timm.data import create_dataset, create_loader

        import npu_port

        loader = npu_port.timm_loader_on_npu(
            create_loader,
            create_dataset("", root),
            input_size=224,
            batch_size=8,
        )
        """,
    )


def test_loaders_that_need_no_card_stay() -> None:
    head = "from timm.data import create_loader\n\n"
    check_not_adapted("timm", f"{head}loader = create_loader(data, 224, 8, use_prefetcher=False)\n")
    check_not_adapted("timm", f"{head}loader = create_loader(data, 224, 8, device=device)\n")
    check_not_adapted("timm", f"{head}loader = create_loader(data, 224, 8, **options)\n", open_codes=["NPU149"])


def test_where_timm_takes_a_device_the_migration_writes_it() -> None:
    pins = (("timm", ">=1.0.12"),)
    source = "from timm.utils import NativeScaler\n\nscaler = NativeScaler()\n"
    assert b'NativeScaler(device="npu")' in migrate(source, adapt=(("timm", ""),), helper_file=True, pins=pins).data


def test_targets_of_an_older_mixup() -> None:
    source = "from timm.data import Mixup\n\nmixup = Mixup(mixup_alpha=0.8, num_classes=10)\n"
    after = """
        from timm.data import Mixup

        import npu_port

        mixup = npu_port.timm_mixup_on_npu(Mixup, mixup_alpha=0.8, num_classes=10)
    """
    check_adapted("timm", source, after, open_codes=["NPU515"], pins=(("timm", "==0.4.12"),))
    for pins in ((), (("timm", ">=1.0.20"),)):
        check_not_adapted("timm", source, open_codes=["NPU515"], pins=pins)  # a remark
