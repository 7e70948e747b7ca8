"""Records as JSON and back: dataclasses, named tuples, tuples, enums, texts and numbers, as their annotations say.

Dataclasses of which a union is made have a `TAG`, which their text begins with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_Record = TypeVar("_Record")
_Reader = Callable[[Any], Any]


def to_json(record: object) -> str:
    """A record as one line of JSON; equal records give equal text. TypeError for what has no form."""
    return json.dumps(record, default=_plain, separators=(",", ":"))


def from_json(kind: type[_Record], text: str) -> _Record:
    """The record that `to_json` wrote. ValueError for any text that is none of that kind."""
    try:
        found = _reader(kind)(json.loads(text))
    except RecursionError as error:
        raise ValueError("too deep") from error
    assert isinstance(found, kind)
    return found


def _plain(value: object) -> object:
    """What the encoder does not know: tuples and enums of texts it does."""
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, name) for name in _names(type(value))]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    raise TypeError(f"{type(value).__name__} has no form in JSON")


@cache
def _names(kind: type) -> tuple[str, ...]:
    return (*_tag(kind), *(field.name for field in fields(kind)))


def _tag(kind: type) -> tuple[str, ...]:
    return ("TAG",) if hasattr(kind, "TAG") else ()


def _reader(kind: Any) -> _Reader:
    """Reads a value of a kind; what is of another is a ValueError."""
    return _made(kind)


@cache
def _made(kind: Any) -> _Reader:
    if get_origin(kind) in (Union, UnionType):
        kinds = get_args(kind)
        if all(map(_tag, kinds)):
            return _tagged({each.TAG: _reader(each) for each in kinds})
        return _either([_reader(each) for each in kinds])
    if get_origin(kind) is Literal:
        return _one_of(get_args(kind))
    if get_origin(kind) is tuple:
        first, *rest = get_args(kind)
        if rest == [...]:
            item = _reader(first)
            return lambda raw: tuple(map(item, _exactly(list)(raw)))
        return _row(tuple, [_reader(each) for each in (first, *rest)])
    if is_dataclass(kind):
        make: Any = kind
        hints = get_type_hints(kind)
        tag = _tag(make)
        readers = [_one_of((make.TAG,))] if tag else []
        readers += [_reader(hints[field.name]) for field in fields(make)]
        return _row(lambda values: make(*values[len(tag) :]), readers)
    if issubclass(kind, tuple):  # a named one
        return _row(lambda values: kind(*values), [_reader(each) for each in get_type_hints(kind).values()])
    if issubclass(kind, Enum):
        return lambda raw: kind(_exactly(str)(raw))
    if kind is bytes:
        return lambda raw: _exactly(str)(raw).encode("latin-1")
    return _exactly(kind)


def _exactly(kind: type) -> _Reader:
    def read(raw: Any) -> Any:
        if type(raw) is not kind:
            raise ValueError(f"{type(raw).__name__} instead of {kind.__name__}")
        return raw

    return read


def _one_of(values: tuple[object, ...]) -> _Reader:
    def read(raw: Any) -> Any:
        if not any(raw == value and type(raw) is type(value) for value in values):
            raise ValueError("none of the values there are")
        return raw

    return read


def _tagged(readers: dict[str, _Reader]) -> _Reader:
    def read(raw: Any) -> Any:
        tag = raw[0] if type(raw) is list and raw else None
        if type(tag) is not str or tag not in readers:
            raise ValueError("none of the kinds there are")
        return readers[tag](raw)

    return read


def _either(readers: list[_Reader]) -> _Reader:
    def read(raw: Any) -> Any:
        for each in readers:
            try:
                return each(raw)
            except ValueError:
                continue
        raise ValueError("none of the kinds there are")

    return read


def _row(make: Callable[[Sequence[Any]], Any], readers: list[_Reader]) -> _Reader:
    def read(raw: Any) -> Any:
        if type(raw) is not list or len(raw) != len(readers):
            raise ValueError("a row of another length")
        return make([reader(value) for reader, value in zip(readers, raw, strict=True)])

    return read
