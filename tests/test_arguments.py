"""Where the argument of a call ends up, by the first row that applies."""

from __future__ import annotations

import pytest

from tests.harness import clean
from transplt.base.text.source import read_source
from transplt.flow.destinations import places
from transplt.flow.facts import ProjectFacts
from transplt.flow.module_facts import parameters_in_text
from transplt.flow.slot_links import linked_slots
from transplt.syntax.names import Names
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan

_HEAD = "import os, re, numba, torch, typer\ndef own(a, *, b=0): pass\n"


def reached(statement: str) -> list[tuple[str, str]]:
    """Kind and detail of the places that the string in a statement reaches."""
    source = read_source(f"{_HEAD}{statement}\n".encode())
    found = scan(source, parse(source), "m.py")
    (string,) = [node for node in found.strings if node.value == "cuda"]
    slots = linked_slots(found, Names(found), ProjectFacts())
    return [(place.kind, place.detail) for place in places(slots, string)]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("numba.device('cuda')", [("foreign", "numba")]),
        ("p.add_argument('cuda')", [("flag", "")]),
        ("p.add_argument('--place', default='cuda')", [("slot", "n:place")]),
        ("p.add_argument('--place', help='cuda')", [("help", "")]),
        ("p.add_argument('--place', metavar='cuda')", [("prose", "")]),
        ("x = typer.Option('cuda')", [("slot", "g:m.x")]),
        ("flags.DEFINE_string('place', 'cuda', 'text')", [("slot", "n:place")]),
        ("flags.DEFINE_string('cuda', 'x', 'text')", [("flag", "")]),
        ("re.match('cuda', x)", [("compare", "regex")]),
        ("re.sub('cuda', y, x)", [("compare", "regex")]),
        ("re.compile('cuda')", [("other", "a pattern")]),
        ("print('cuda')", [("prose", "")]),
        ("f(msg='cuda')", [("prose", "")]),
        ("MyError('cuda')", [("prose", "")]),
        ("lib.impl('cuda')", [("kernel", "impl")]),
        ("torch.zeros(1, device='cuda')", [("device", "")]),
        ("init_dist('cuda')", [("backend", "")]),
        ("x.startswith('cuda')", [("compare", "startswith")]),
        ("y = x.replace('cuda', 'z')", [("compare", "replace")]),
        ("y = x.replace('z', 'cuda')", [("compare", "replace"), ("slot", "g:m.y")]),
        ("self.assertEqual('cuda', x)", [("compare", "")]),
        ("self.assertIn(x, ['cuda'])", [("compare", "in")]),
        ("x[len('cuda'):]", [("compare", "slice")]),
        ("y = len('cuda')", [("other", "a length")]),
        ("y = str('cuda')", [("slot", "g:m.y")]),
        ("y = random.choice(['cuda'])", [("slot", "g:m.y")]),
        ("for x, y in zip(a, ['cuda']): pass", [("slot", "g:m.y")]),
        ("for i, y in enumerate(['cuda']): pass", [("slot", "g:m.y")]),
        ("y = field(default='cuda')", [("slot", "g:m.y")]),
        ("y = field(metadata='cuda')", [("named", "metadata")]),
        ("y = dict(place='cuda')", [("slot", "k:y[place]")]),
        ("y = dict(device_x='cuda')", [("named", "device_x")]),
        ("y = d.get('place', 'cuda')", [("slot", "k:d[place]"), ("slot", "g:m.y")]),
        ("d.get('cuda')", [("key", "")]),
        ("getattr(d, 'cuda')", [("probe", "")]),
        ("hasattr(d, 'cuda')", [("probe", "")]),
        ("d.append('cuda')", [("other", "append")]),
        ("y = []\ny.append('cuda')", [("slot", "g:m.y")]),
        ("@pytest.mark.parametrize('x', ['cuda'])\ndef t(x): pass", [("slot", "p:m.t.x")]),
        ("@pytest.mark.parametrize('w, x', [pytest.param(1, 'cuda')])\ndef t(w, x): pass", [("slot", "p:m.t.x")]),
        ("@pytest.fixture(params=['cuda'])\ndef t(request): pass", [("slot", "r:m.t")]),
        ("os.system('cuda')", [("command", "system")]),
        ("Namespace(place='cuda')", [("slot", "n:place")]),
        ("Namespace(name='cuda')", [("named", "name")]),
        ("own('cuda')", [("slot", "p:m.own.a")]),
        ("own(b='cuda')", [("slot", "p:m.own.b")]),
        ("other(b='cuda')", [("named", "b")]),
        ("other('cuda')", [("other", "argument of other")]),
        ("other()('cuda')", [("other", "argument of a call")]),
    ],
)
def test_where_an_argument_ends_up(statement: str, expected: list[tuple[str, str]]) -> None:
    assert reached(statement) == expected


@pytest.mark.parametrize(
    ("statement", "first"),
    [
        ("numba.print(device='cuda')", "foreign"),  # another library's, before anything else
        ("p.add_argument('--x', device='cuda')", "prose"),  # a flag, before a device
        ("print(device='cuda')", "prose"),  # text for people, before a device
        ("torch.library.impl(x, device_types='cuda')", "kernel"),
        ("dict(device='cuda')", "device"),  # a device, before the entry of a mapping
        ("own(device='cuda')", "device"),  # a device, before a parameter of the project
        ("x.index('cuda')", "compare"),  # a test of a string, before the item of a list
        ("d.replace(place='cuda')", "slot"),  # a field of an object, for want of a position
    ],
)
def test_the_first_row_decides(statement: str, first: str) -> None:
    assert reached(statement)[0][0] == first


def test_parameters_are_read_in_the_text_as_in_the_tree() -> None:
    """Those of functions and methods with a parameter called device or backend, of a file that is not parsed."""
    text = clean(
        """
        def a(x, device): pass
        async def b(self, device="a,b", *, z): pass
        class C(Base):
            def m(self, x: dict[str, int], device: str | None = None,
                  y=3):
                def inner(device): pass
            @staticmethod
            def s(x, /, device): pass
        def k(x, *, device): pass
        def b(x, dist_backend="gloo"): pass
        def of_nothing(x): pass
        """
    )
    source = read_source(text.encode())
    found = scan(source, parse(source), "pk/m.py")
    own = linked_slots(found, Names(found), ProjectFacts()).own.parameters()
    told = {"device", "dist_backend"}
    expected = {name: names for name, names in own.items() if told & {*names} and "inner" not in name}
    assert dict(parameters_in_text(text.encode(), "pk/m.py")) == expected
