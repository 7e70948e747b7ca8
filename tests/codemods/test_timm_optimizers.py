"""Optimizers of apex that timm makes by their names."""

from __future__ import annotations

import pytest

from tests.harness import check_noop
from transplt.base.settings import Settings
from transplt.engine.engine import migrate_source
from transplt.flow.facts import ProjectFacts

OPTION = (
    "import argparse\nfrom timm.optim import create_optimizer, create_optimizer_v2\n"
    "p = argparse.ArgumentParser()\np.add_argument('--opt', default='{}')\nargs = p.parse_args()\n"
)


@pytest.mark.parametrize(
    ("default", "call", "codes"),
    [
        ("fusedadam", "create_optimizer(args, model)", ["NPU501"]),
        ("adamw", "create_optimizer_v2(model, 'fusedlamb')", ["NPU501"]),
        ("adamw", "create_optimizer_v2(model, opt='fusedsgd')", ["NPU501"]),
        ("adamw", "create_optimizer(args, model)", []),
        ("fusedadam", "create_optimizer_v2(model, opt='adamw')", []),
        ("fusedadam", "make_optimizer(args, model)", []),
    ],
)
def test_a_name(default: str, call: str, codes: list[str]) -> None:
    check_noop(f"{OPTION.format(default)}optimizer = {call}\n", open_codes=codes)


@pytest.mark.parametrize(("given", "codes"), [(("fusedmomentum",), ["NPU501"]), (("lamb",), []), ((), [])])
def test_what_all_commands_of_the_project_give(given: tuple[str, ...], codes: list[str]) -> None:
    project = ProjectFacts(known=True, given_at={("a.py", "--opt"): given})
    source = f"{OPTION.format('fusedadam')}optimizer = create_optimizer(args, model)\n"
    found = migrate_source(source.encode(), "a.py", Settings(), project).findings
    assert [each.code for each in found if each.open] == codes
