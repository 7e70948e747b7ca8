"""`transplt compare --logprobs`: harmless noise is none, and faults of real trainers are told, each as what it is."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.base.errors import UsageError
from transplt.faces.cli.compare import compare
from transplt.precision.engines import Engines, engines_text
from transplt.precision.token_logprobs import ROLLOUT, TRAINER, Sample, read_logprobs

VOCABULARY, SAMPLES, LENGTH = 64, 24, 80


def bf16(value: float) -> float:
    """Rounded to the nearest bfloat16, as logits of a language model's head are."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return float(struct.unpack("<f", struct.pack("<I", (bits + 0x8000) & 0xFFFF0000))[0])


def logprob(logits: list[float], token: int, temperature: float = 1.0) -> float:
    top = max(logits)
    total = math.log(sum(math.exp((each - top) / temperature) for each in logits))
    return (logits[token] - top) / temperature - total


def answers(seed: int = 7020) -> list[tuple[list[list[float]], list[int]]]:
    """Logits and drawn tokens, most of them nearly sure, as those of a language model are."""
    drawn = random.Random(seed)
    found = []
    for _ in range(SAMPLES):
        logits, tokens = [], []
        for _ in range(LENGTH):
            row = [drawn.gauss(0, 2.5) for _ in range(VOCABULARY)]
            row[drawn.randrange(VOCABULARY)] += drawn.choice((2, 8, 14))
            weights = [math.exp(logprob(row, token)) for token in range(VOCABULARY)]
            tokens.append(drawn.choices(range(VOCABULARY), weights)[0])
            logits.append(row)
        found.append((logits, tokens))
    return found


ANSWERS = answers()


def of(change: Callable[[list[list[float]], list[int]], list[float]], *, tokens: bool = True) -> list[Sample]:
    return [Sample(change(logits, drawn), list(drawn) if tokens else []) for logits, drawn in ANSWERS]


def exactly(logits: list[list[float]], tokens: list[int]) -> list[float]:
    return [logprob(row, token) for row, token in zip(logits, tokens, strict=True)]


def rounded(logits: list[list[float]], tokens: list[int]) -> list[float]:
    return exactly([[bf16(each) for each in row] for row in logits], tokens)


def noisy(spread: float) -> Callable[[list[list[float]], list[int]], list[float]]:
    """Another kernel, another order of the sums: each logit is off by a little; or other weights, by much."""
    drawn = random.Random(3)
    return lambda logits, tokens: exactly([[each + drawn.gauss(0, spread) for each in row] for row in logits], tokens)


@pytest.mark.parametrize("trainer", [exactly, rounded, noisy(0.003), noisy(0.01)])
@pytest.mark.parametrize("tokens", [True, False])
def test_rounding_is_no_difference(trainer: Any, tokens: bool) -> None:
    found = Engines(of(trainer, tokens=tokens), of(rounded, tokens=tokens))
    assert (found.verdict, found.structure, found.apart, found.hint()) == ("same", [], [], "")


def shifted(logits: list[list[float]], tokens: list[int]) -> list[float]:
    return exactly(logits, [tokens[-1], *tokens[:-1]])  # the logits of a place, with the token before it


def moved(logits: list[list[float]], tokens: list[int]) -> list[float]:
    return [0.0, *exactly(logits, tokens)[:-1]]


def at_temperature(value: float) -> Callable[[list[list[float]], list[int]], list[float]]:
    return lambda logits, tokens: [logprob(row, token, value) for row, token in zip(logits, tokens, strict=True)]


def wrong_late(logits: list[list[float]], tokens: list[int]) -> list[float]:
    """Positions that start anew after four fifths, as of a cache that is too short."""
    return exactly([*logits[:-16], *logits[:16]], tokens)


@pytest.mark.parametrize(
    ("trainer", "said", "hint"),
    [
        (shifted, "mean |p - p'|", "nothing agrees: logits of a different position"),
        (moved, "mean |p - p'|", "one token behind"),
        (at_temperature(0.7), "mean |p - p'|", "steeper for the trainer: one side does not apply a temperature"),
        (at_temperature(0.5), "mean |p - p'|", "steeper for the trainer: one side does not apply a temperature"),
        (at_temperature(0.9), "mean |p - p'|", "steeper for the trainer: one side does not apply a temperature"),
        (at_temperature(1.1), "mean |p - p'|", "steeper for the rollout: one side does not apply a temperature"),
        (at_temperature(1.4), "mean |p - p'|", "steeper for the rollout: one side does not apply a temperature"),
        (noisy(0.5), "mean |p - p'|", "a different model"),
        (noisy(3.0), "effective share", "a different model"),
        (wrong_late, "part 5 of 5 of the samples", "what these tokens share"),
    ],
)
def test_faults_of_trainers(trainer: Any, said: str, hint: str) -> None:
    text = engines_text(Engines(of(trainer), of(rounded)))
    assert text.startswith("transplt compare --logprobs: different: ")
    assert said in text.splitlines()[0] and hint in text.rpartition("look for")[2]


def test_a_token_that_one_side_takes_for_something_else() -> None:
    """The end of text, scored as padding."""
    late = of(rounded)
    for sample in late:
        sample.tokens[40] = 999
    odd = [Sample([*each.values[:40], -9.0, *each.values[41:]], each.tokens) for each in late]
    found = Engines(odd, late)
    assert found.verdict == "different" and "token 999 (24 times)" in found.apart


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda each: Sample(each.values, each.tokens, [True] * 79 + [False]), "other masks"),
        (lambda each: Sample(each.values[:-1], each.tokens[:-1]), "a different number of tokens (79 and 80)"),
        (lambda each: Sample(each.values, [*each.tokens[:3], 998, *each.tokens[4:]]), "another token"),
        (lambda each: Sample([-math.inf, *each.values[1:]], each.tokens), "no logarithm of a probability"),
        (lambda each: Sample([1000.0, *each.values[1:]], each.tokens), "no logarithm of a probability"),
        (lambda each: Sample([math.nan, *each.values[1:]], each.tokens), "no logarithm of a probability"),
    ],
)
def test_what_does_not_belong_together(change: Callable[[Sample], Sample], said: str) -> None:
    rollout = [Sample(each.values, each.tokens, [True] * 80) for each in of(rounded)]
    if said.startswith("another number"):
        rollout = of(rounded)
    found = Engines([change(each) for each in of(exactly)], rollout)
    assert found.verdict == "different" and said in found.structure[0]


def test_a_token_that_one_side_masks() -> None:
    trainer = of(exactly)
    at = next(at for at, value in enumerate(trainer[0].values[:-1]) if value < -1)
    trainer[0].values[at] = 0.0
    found = Engines(trainer, of(rounded))
    assert found.structure == [f"masked (0.0) on one side only in 1 place, first sample 1, token {at + 1}"]
    assert "compare the masks" in found.hint()


def test_samples_are_paired_by_their_tokens() -> None:
    """Asynchronous engines answer in another order."""
    assert Engines(of(exactly), of(rounded)[::-1]).verdict == "same"
    assert Engines(of(exactly), of(rounded)[1:]).structure == ["a different number of samples (24 and 23)"]


def test_a_mask_is_that_of_either_side() -> None:
    """Feedback of tools stands between the tokens of the model, as 0.0; padding behind them."""
    trainer = [Sample([-5.0, *each.values[1:], 0.0], [*each.tokens, 0], [False] + [True] * 79 + [False])
               for each in of(exactly)]  # fmt: skip
    rollout = [Sample([0.0, *each.values[1:], 0.0], [*each.tokens, 0]) for each in of(rounded)]
    assert Engines(trainer, rollout).verdict == Engines(rollout, trainer).verdict == "same"


def test_a_last_token_that_is_sure_is_no_padding() -> None:
    sure = [Sample([*each.values[:-1], 0.0], each.tokens) for each in of(rounded)]
    nearly = [Sample([*each.values[:-1], -1e-4], each.tokens) for each in of(rounded)]
    assert Engines(sure, nearly).verdict == Engines(nearly, sure).verdict == Engines(sure, sure).verdict == "same"


@pytest.mark.parametrize("more", [0, 200])
def test_padding_hides_nothing(more: int) -> None:
    """Zeros behind the answers, of one side or of both, are no tokens that agree."""
    padded = [Sample([*each.values, *[0.0] * 400]) for each in of(noisy(0.2))]
    for other in (of(rounded, tokens=False), [Sample([*each.values, *[0.0] * more]) for each in of(rounded)]):
        found = Engines(padded, other)
        assert found.structure == [] and len(found.tokens) == SAMPLES * LENGTH and found.verdict == "different"


# --- files -------------------------------------------------------------------------------------------------------

A, IDS = [-0.1, -2.5, -0.01], [11, 12, 13]
_CHAT = {
    "content": [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -2.5}, {"token": "c", "logprob": -0.01}]
}


@pytest.mark.parametrize(
    ("record", "names", "tokens"),
    [
        # verl: a batch, whose mask may be of prompt and answer
        ({"old_log_probs": [A, A], "rollout_log_probs": [[-1.0] * 3] * 2, "responses": [IDS, IDS],
          "response_mask": [[0, 1, 1, 1], [0, 1, 1, 1]]}, TRAINER, IDS),
        ({"old_log_probs": [-1.0] * 3, "rollout_log_probs": A, "responses": IDS}, ROLLOUT, IDS),
        # OpenRLHF: one number less than the sequence has tokens
        ({"action_log_probs": A, "sequences": [10, *IDS], "action_mask": [1, 1, 1]}, TRAINER, IDS),
        # trl
        ({"old_per_token_logps": A, "completion_ids": IDS, "completion_mask": [1, 1, 1]}, TRAINER, IDS),
        ({"prompt_ids": [[1]], "completion_ids": [IDS], "logprobs": [[[each] for each in A]],
          "logprob_token_ids": [[[each] for each in IDS]]}, ROLLOUT, IDS),
        ({"completion_ids": IDS, "logprobs": [[-0.1, -9], [-0.2, -2.5], [-0.01, -9]],
          "logprob_token_ids": [[11, 7], [7, 12], [13, 7]]}, ROLLOUT, IDS),
        # vLLM
        ({"outputs": [{"token_ids": IDS, "logprobs": [
            {"11": {"logprob": -0.1, "rank": 1}}, {"7": {"logprob": -0.2}, "12": {"logprob": -2.5}},
            {"13": {"logprob": -0.01}}]}]}, ROLLOUT, IDS),
        ({"choices": [{"logprobs": {"tokens": ["a", "b", "c"], "token_logprobs": A}}]}, ROLLOUT, ["a", "b", "c"]),
        ({"choices": [{"message": {}, "logprobs": _CHAT}]}, ROLLOUT, ["a", "b", "c"]),
        # sglang
        ({"text": "abc", "meta_info": {"output_token_logprobs": [[x, y, None] for x, y in zip(A, IDS, strict=True)]}},
         ROLLOUT, IDS),
    ],
)  # fmt: skip
def test_dumps_of_frameworks(tmp_path: Path, record: dict[str, Any], names: tuple[str, ...], tokens: list[Any]) -> None:
    path = tmp_path / "dump.jsonl"
    path.write_text(json.dumps(record) + "\n\n" + json.dumps([record]) + "\n")
    found = read_logprobs(str(path), names)
    assert len(found) in (2, 4) and all(each.values == A and each.tokens == tokens for each in found)
    assert all(each.mask in ([], [True] * 3) for each in found)


def written(path: Path, **fields: list[Sample]) -> str:
    count = len(next(iter(fields.values())))
    rows = [{name: held[at].values for name, held in fields.items()} for at in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(compare, ["--logprobs", *arguments], standalone_mode=False)
    if isinstance(result.exception, UsageError):
        raise result.exception
    return result.return_value, result.output


def test_one_file_may_hold_both(tmp_path: Path) -> None:
    path = written(tmp_path / "step.jsonl", old_log_probs=of(exactly), rollout_log_probs=of(rounded))
    code, output = run(path, path)
    assert code == 0 and output.startswith("transplt compare --logprobs: same: no difference beyond rounding\n")
    assert "(below 0.005; an error from 0.01 on: verl, docs/faq/faq.rst)" in output and "look for" not in output


def test_the_exit_code_is_that_of_compare(tmp_path: Path) -> None:
    b = written(tmp_path / "b", logprobs=of(rounded))
    code, output = run(written(tmp_path / "a", logprobs=of(at_temperature(0.7))), b)
    assert code == 1 and "one side does not apply a temperature" in output
    code, output = run(written(tmp_path / "c", logprobs=of(noisy(0.1))), b)
    assert code == 1 and output.startswith("transplt compare --logprobs: in doubt: mean |p - p'|\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no log-probabilities of tokens"),
        ('{"input": "a", "output": "b", "score": 1.0}\n', "none of old_log_probs, "),
        ('{"logprobs": null}\n{"logprobs": []}\n[1]\n"x"\n', "has no log-probabilities of tokens"),
        ('{"logprobs": [-0.1]}\n{"logprobs": [-0', "ends in the middle"),
    ],
)
def test_what_cannot_be_compared(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(UsageError, match=said):
        run(str(tmp_path / "a"), written(tmp_path / "b", logprobs=of(rounded)))
