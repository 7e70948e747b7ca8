"""The adaptor of timm, and names that come from npu_port in general."""

from __future__ import annotations

from tests.adaptors.adapted import check_adapted, check_not_adapted, offered


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
