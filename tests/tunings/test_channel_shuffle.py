"""The channel shuffle of ShuffleNet becomes one index_select."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_tuned, check_untuned

HEAD = """
    import torch


    def shuffle(x, groups, other):
        {}
    """
PARTED, SHUFFLED = "x.view(b, groups, -1, h, w)", "x.view(b, groups, -1, h, w).transpose(1, 2).reshape(b, c, h, w)"
SIZES = "b, c, h, w = x.size()\n        "
ORDER = "torch.arange(c, device=x.device).view(groups, {}).t().flatten()"


@pytest.mark.parametrize(
    ("before", "each"),
    [
        ("return x.view(b, groups, c // groups, h, w).transpose(1, 2).contiguous().view(b, c, h, w)", "c // groups"),
        ("return x.reshape(b, groups, -1, h, w).transpose(2, 1).reshape(b, -1, h, w)", "-1"),
        ("return x.view((b, groups, -1, h, w)).permute(0, 2, 1, 3, 4).reshape((b, c, h, w))", "-1"),
        (
            "return torch.transpose(x.view(b, groups, int(c / groups), h, w), 1, 2).contiguous().view(b, c, h, w)",
            "int(c / groups)",
        ),
    ],
)
def test_one_expression(before: str, each: str) -> None:
    after = f"return x.index_select(1, {ORDER.format(each)})"
    check_tuned("channel-shuffle", HEAD.format(SIZES + before), HEAD.format(SIZES + after))


@pytest.mark.parametrize("asked", ["x.shape", "x.data.size()"])
def test_three_statements(asked: str) -> None:
    before = """
    import torch


    def channel_shuffle(x, groups):
        # type: (torch.Tensor, int) -> torch.Tensor
        batchsize, channels, height, width = ASKED
        channels_per_group = channels // groups
        # reshape
        x = x.view(batchsize, groups,
                   channels_per_group, height, width)
        x = torch.transpose(x, 1, 2).contiguous()
        # flatten
        x = x.view(batchsize, -1, height, width)
        return x
    """
    after = """
    import torch


    def channel_shuffle(x, groups):
        # type: (torch.Tensor, int) -> torch.Tensor
        batchsize, channels, height, width = ASKED
        channels_per_group = channels // groups
        # reshape
        # flatten
        x = x.index_select(1, torch.arange(channels, device=x.device).view(groups, channels_per_group).t().flatten())
        return x
    """
    check_tuned("channel-shuffle", before.replace("ASKED", asked), after.replace("ASKED", asked))


def test_names_of_their_own_and_three_dimensions() -> None:
    sizes = "b, c, n = x.shape\n        "
    before = "y = x.view(b, groups, -1, n)\n        z = y.transpose(1, 2)\n        out = z.reshape(b, c, n)\n"
    before += "        return out"
    after = f"out = x.index_select(1, {ORDER.format('-1')})\n        return out"
    check_tuned("channel-shuffle", HEAD.format(sizes + before), HEAD.format(sizes + after))


def test_a_comment_keeps_one() -> None:
    line = "return x.view(b, groups, -1, h, w).transpose(1, 2).reshape(b, c, h, w)  # transplt: ignore[NPU769]"
    check_untuned("channel-shuffle", HEAD.format(SIZES + line))


@pytest.mark.parametrize(
    "body",
    [
        # the sizes are not seen to be those of x
        "return " + SHUFFLED,
        "b, c, h, w = other.size()\n        return " + SHUFFLED,
        SIZES + "x = other\n        return " + SHUFFLED,
        SIZES + "h = h // 2\n        return " + SHUFFLED,
        SIZES + "if other:\n            x = other\n        return " + SHUFFLED,
        "b, c, h, w = x.size(0), 8, 4, 4\n        return " + SHUFFLED,
        "b, *rest = x.size()\n        return x.view(b, groups, -1, *rest).transpose(1, 2).reshape(b, c, *rest)",
        # other dimensions are exchanged, or none
        SIZES + "return x.view(b, groups, -1, h, w).transpose(2, 3).reshape(b, c, h, w)",
        SIZES + "return x.view(b, groups, -1, h, w).permute(0, 2, 1, 4, 3).reshape(b, c, h, w)",
        SIZES + "return x.view(b, groups, -1, h, w).contiguous().reshape(b, c, h, w)",
        SIZES + "return x.view(b, groups, -1, h, w).transpose(1, 2)",
        SIZES + "return x.view(b, h, w, c).transpose(1, 2).reshape(b, c, h, w)",
        # other sizes go in or come out
        SIZES + "return x.view(b, groups, -1, w, h).transpose(1, 2).reshape(b, c, h, w)",
        SIZES + "return x.view(b, groups, -1, h, w).transpose(1, 2).reshape(b, c, h * w)",
        SIZES + "return x.view(b, groups, -1, h, w).transpose(1, 2).reshape(b, c, w, h)",
        SIZES + "return x.view(-1, groups, 2, h, w).transpose(1, 2).reshape(-1, c, h, w)",
        SIZES + "return x.view(b, other(), -1, h, w).transpose(1, 2).reshape(b, c, h, w)",
        # something else happens in between, or reads a step
        SIZES + "y = " + PARTED + "\n        y = other(y)\n        return y.transpose(1, 2).reshape(b, c, h, w)",
        SIZES + "y = " + PARTED + "\n        z = y.transpose(1, 2)\n        out = z.reshape(b, c, h, w)\n"
        "        return out + y.sum()",
        SIZES + "y = " + PARTED + "\n        print(y)\n        return y.transpose(1, 2).reshape(b, c, h, w)",
        SIZES + "y = " + PARTED + ".transpose(1, 2)\n        return other(y, y.reshape(b, c, h, w))",
        # no tensor of torch, no view
        SIZES + "return x.view(b, groups, -1, h, w).transpose(1, 2).resize(b, c, h, w)",
        SIZES + "return other.view(x, b, groups, -1, h, w).transpose(1, 2).reshape(b, c, h, w)",
    ],
)
def test_what_stays(body: str) -> None:
    check_untuned("channel-shuffle", HEAD.format(body))


def test_code_of_torchscript_stays() -> None:
    line = f"return {SHUFFLED}"
    source = HEAD.format(SIZES + line).replace("def shuffle", "@torch.jit.script\n    def shuffle")
    check_untuned("channel-shuffle", source)
