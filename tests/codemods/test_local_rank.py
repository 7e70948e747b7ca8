"""The flag that torch.distributed.launch passes."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern

HEAD = "import argparse\nimport torch\n\nuse_cuda = True\nparser = argparse.ArgumentParser()\n"


@pattern("P71", "T6")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('("--local_rank", type=int)', '("--local_rank", "--local-rank", type=int)'),
        ("('--local_rank')", "('--local_rank', '--local-rank')"),
        ('("-l", "--local_rank", default=0)', '("-l", "--local_rank", "--local-rank", default=0)'),
        ('("--local_rank",\n    type=int)', '("--local_rank", "--local-rank",\n    type=int)'),
        ('(\n    "--local_rank",\n)', '(\n    "--local_rank", "--local-rank",\n)'),
    ],
)
def test_both_spellings(before: str, after: str) -> None:
    line = "parser.add_argument{}\n"
    check_rewrite(HEAD + line.format(before), HEAD + line.format(after), codes_applied=["NPU313"])


@pattern("P71", "T6")
def test_the_help_beside_it_changes_too() -> None:
    before = 'parser.add_argument("--local_rank", type=int, help="rank for nccl")\n'
    after = 'parser.add_argument("--local_rank", "--local-rank", type=int, help="rank for hccl")\n'
    check_rewrite(HEAD + before, HEAD + after, codes_applied=["NPU207", "NPU313"], texts=True)


@pattern("P71")
def test_a_flag_that_is_required() -> None:
    line = 'parser.add_argument("--local_rank", {}type=int, required=True)\n'
    check_rewrite(HEAD + line.format(""), HEAD + line.format('"--local-rank", '), open_codes=["NPU313"])


@pattern("P71", "T6")
@pytest.mark.parametrize(
    "line",
    [
        'import deepspeed\nparser.add_argument("--local_rank", type=int)\nargs, _ = parser.parse_known_args()',
        'parser.add_argument("--local_rank", default=os.environ.get("LOCAL_RANK"))\nparser.parse_known_args()',
        'parser.add_argument("--local_rank", "--local-rank", type=int)',
        'parser.add_argument("--local-rank", type=int)',
        'parser.add_argument("--local_rank_of_peer", type=int)',
        "parser.add_argument(*flags)",
        'parser.add_argument(*flags, "--local_rank")',
        'parser.add_argument("--" + "local_rank")',
        'parser.set_defaults(local_rank="--local_rank")',
        'command = ["train.py", "--local_rank", str(rank)]',
    ],
)
def test_nothing_to_do(line: str) -> None:
    check_noop(HEAD + line + "\n")


@pattern("P71", "T6")
@pytest.mark.parametrize(
    "rest",
    [
        "known, _ = parser.parse_known_args()\nif known.fast:\n    import deepspeed\nargs = parser.parse_args()",
        "known, rest = parser.parse_known_args()\nimport deepspeed\nargs = other.parse_args(rest)",
        'args = parser.parse_args()\nos.environ.setdefault("LOCAL_RANK", str(args.local_rank))',
        'args = parser.parse_intermixed_args()\nrank = os.environ["LOCAL_RANK"]',
        "import deepspeed\nparser = deepspeed.add_config_arguments(parser)",  # it is read elsewhere
        "args, _ = parser.parse_known_args()",  # the card is read from nothing else
    ],
)
def test_a_parser_that_refuses_what_it_does_not_know(rest: str) -> None:
    head = f"import os\n{HEAD}"
    line = f'parser.add_argument("--local_rank", {{}}type=int)\n{rest}\n'
    check_rewrite(head + line.format(""), head + line.format('"--local-rank", '), codes_applied=["NPU313"])


@pattern("P71")
def test_a_flag_that_is_required_under_deepspeed() -> None:
    line = 'import deepspeed\nparser.add_argument("--local_rank", {}type=int, required=True)\nparser.parse_args()\n'
    check_rewrite(HEAD + line.format(""), HEAD + line.format('"--local-rank", '))


@pattern("P71")
def test_another_parser() -> None:
    check_noop('import fire\nuse_cuda = True\nparser.add_argument("--local_rank")\n')


def test_an_option_of_click() -> None:
    head = "import click\nimport torch\n\ncuda = 1\n\n\n@click.option('--local_rank'{})\ndef main(local_rank): ...\n"
    check_rewrite(head.format(""), head.format(", '--local-rank'"), codes_applied=["NPU313"])
    head += "\nos.environ['LOCAL_RANK']\n"
    check_rewrite(head.format(""), head.format(", '--local-rank'"), codes_applied=["NPU313"])


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ('flags.DEFINE_integer("local_rank", 0, "which card")', ["NPU313"]),
        ('flags.DEFINE_integer("local_rank", int(os.environ["LOCAL_RANK"]), "which card")', []),
        ('flags.DEFINE_integer("rank", 0, "the local_rank of the process")', []),
    ],
)
def test_a_flag_of_absl(line: str, left: list[str]) -> None:
    check_noop(f"from absl import flags\nimport torch\n\nuse_cuda = True\n{line}\n", open_codes=left)
