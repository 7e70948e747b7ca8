"""Reads the log-probabilities of tokens that a trainer or a rollout engine wrote: JSON lines of the frameworks.

Fields: verl, trainer/ppo; OpenRLHF, ppo_utils/experience.py; trl, grpo_trainer.py and scripts/vllm_serve.py; vLLM's
RequestOutput and its OpenAI server (outputs, choices); sglang (meta_info).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from transplt.base.errors import UsageError, shown
from transplt.precision.files import json_lines

_PLAIN = ("logprobs", "log_probs", "token_logprobs", "logps", "per_token_logps")
_OF_TRAINER = ("old_log_probs", "action_log_probs", "old_per_token_logps", "old_logprobs")
_OF_ROLLOUT = ("rollout_log_probs", "sampling_per_token_logps", "rollout_per_token_logps", "rollout_logprobs")
#: Whose fields are looked for, in this order: a file may hold both.
TRAINER, ROLLOUT = (*_OF_TRAINER, *_PLAIN, *_OF_ROLLOUT), (*_OF_ROLLOUT, *_PLAIN, *_OF_TRAINER)
_TOKENS = ("responses", "completion_ids", "response_ids", "token_ids", "output_ids", "sequences", "tokens")
_MASKS = ("response_mask", "action_mask", "completion_mask", "loss_mask")


@dataclass(slots=True)
class Sample:
    """The tokens of one answer: log-probabilities (NaN: none), and ids and mask where the file has them."""

    values: list[float]
    tokens: list[Any] = field(default_factory=list)
    mask: list[bool] = field(default_factory=list)


def read_logprobs(path: str, names: Sequence[str]) -> list[Sample]:
    """The samples of a file, in their order. UsageError where it holds none, UnusableDump where it cannot be read."""
    found = [sample for _, record in json_lines(path) for sample in _samples(record, names) if sample.values]
    if not found:
        raise UsageError(f"{shown(path)} has no log-probabilities of tokens: none of {', '.join(names)}")
    return found


def _samples(record: Any, names: Sequence[str]) -> Iterator[Sample]:
    match record:
        case list(records) | {"choices": list(records)} | {"outputs": list(records)}:
            for each in records:
                yield from _samples(each, names)
        case {"meta_info": {"output_token_logprobs": list(rows)}}:  # [log-probability, id, text]
            yield Sample([_number(row[0]) for row in rows], [row[1] for row in rows])
        case dict():
            values = _first(record, names)
            tokens, mask, of_top = _first(record, _TOKENS), _first(record, _MASKS), record.get("logprob_token_ids")
            # A batch has a list for each sample, unless these are the most probable tokens of each place of one.
            if _depth(values) > 1 and _depth(tokens) != 1:
                for at, each in enumerate(values):
                    yield _sample(each, *(part[at] if part else None for part in (tokens, mask, of_top)))
            elif values is not None:
                yield _sample(values, tokens, mask, of_top)


def _first(record: dict[str, Any], names: Sequence[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _depth(value: Any) -> int:
    return 1 + max(map(_depth, value[:1]), default=0) if isinstance(value, list) else 0


def _sample(values: Any, tokens: Any, mask: Any, of_top: Any) -> Sample:
    match values:
        case {"content": list(rows)}:  # of a chat
            values, tokens = [row.get("logprob") for row in rows], [row.get("token") for row in rows]
        case {"token_logprobs": list(numbers)}:
            values, tokens = numbers, tokens or values.get("tokens")
    given, tokens, tops = (each if isinstance(each, list) else [] for each in (values, tokens, of_top))
    numbers = [_at(each, tokens, tops, at) for at, each in enumerate(given)]
    count = len(numbers)  # ids and masks of prompt and answer end with the answer
    return Sample(numbers, tokens[-count:], [bool(each) for each in mask[-count:]] if isinstance(mask, list) else [])


def _at(value: Any, tokens: list[Any], tops: list[Any], at: int) -> float:
    """The number of the token that was drawn at a place, of those of the most probable ones."""
    token = tokens[at] if at < len(tokens) else None
    match value:
        case dict() if value:
            return _at(value.get(str(token), next(iter(value.values()))).get("logprob"), [], [], 0)
        case [_, _, *_] if at < len(tops) and token in tops[at]:
            return _number(value[tops[at].index(token)])
        case [only, *_]:
            return _number(only)
    return _number(value)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan
