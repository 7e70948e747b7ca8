"""Both readers of YAML give the same nodes at the same places; texts that no C parser may be given end quietly."""

from __future__ import annotations

import contextlib

import pytest

from transplt.engine.files import yaml_reader
from transplt.engine.files.yaml_reader import MappingNode, Node, NotYaml, ScalarNode, SequenceNode, compose

TEXTS = (
    "device: cuda\n",
    "a:\n  - b: cuda:0\n    c: [1, 'x', \"y\\n\"]\n  - {d: e, f: {g: h}}\n",
    "run: |\n  python train.py \\\n    --device cuda\nfold: >-\n  a\n  b\n",
    "base: &base\n  device: cuda\nother:\n  <<: *base\n  again: *base\n",
    "a: &x 1\nb: &x 2\nc: *x\n",
    "obj: !new:pkg.Model\n  device: !ref <device>\nn: !!python/name:torch.float16 ''\n",
    "---\na: 1\n---\nb: on\n...\n",
    "\ufeffa: cuda\nb: ü\n",
    "name: 模型 🚀\ndevice: cuda\n",
    "a:\r\n  b: cuda\r\n",
    "? {a: b}\n: c\n",
    "{{ name }}: x\n",
    '{"a": {"b": ["cuda", 1, null]}}',
    "# nothing\n",
    "",
)  # fmt: skip
REFUSED = ("a: b: c\n", "a: [1, 2\n", "\tx: 1\n", "a: *gone\n", "{% if x %}\na: 1\n{% endif %}\n")


def flat(node: Node, text: str, seen: dict[int, int]) -> object:
    """A node with its place and what it holds; an empty text may stand anywhere between its neighbours."""
    if id(node) in seen:
        return seen[id(node)]
    seen[id(node)] = len(seen)
    end = node.start + len(text[node.start : node.end].rstrip())
    if isinstance(node, ScalarNode):
        place = (node.start, end) if node.start < node.end else None
        return place, node.tag, node.value, node.style
    if isinstance(node, SequenceNode):
        return node.start, end, node.tag, [flat(each, text, seen) for each in node.value]
    assert isinstance(node, MappingNode)
    return node.start, end, node.tag, [(flat(key, text, seen), flat(each, text, seen)) for key, each in node.value]


@pytest.mark.parametrize("text", TEXTS)
def test_the_readers_agree(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = [flat(root, text, {}) for root in compose(text)]
    monkeypatch.setattr(yaml_reader, "_by_libyaml", lambda text, before: None)
    slow = [flat(root, text, {}) for root in compose(text)]
    assert fast == slow


@pytest.mark.parametrize("text", REFUSED)
def test_what_neither_reads_is_no_yaml(text: str) -> None:
    with pytest.raises(NotYaml):
        compose(text)


@pytest.mark.parametrize(
    "text", ["[" * 50_000 + "]" * 50_000, "- " * 50_000 + "x", "".join(" " * n + "a:\n" for n in range(3_000))]
)
def test_deep_texts_end(text: str) -> None:
    """Some libyaml read them, newer ones refuse them; none falls over."""
    with contextlib.suppress(NotYaml):
        assert compose(text)
