"""Rules compiled into tables: which rule answers for a name, in which version, and who wins."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from transplt.base.finding import Effort, Level
from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.engine.prefilter import worth_a_look
from transplt.rules.rule import ArgSpec, Kind, SkipIf, needs_torch_npu
from transplt.rules.rule_set import RuleSet, compile_rules
from transplt.rules.versions import versions_of

ROOT = Path(__file__).resolve().parent.parent


def compiled(*documents: dict[str, list[dict[str, object]]], **settings: object) -> RuleSet:
    texts = tuple((f"{index}.json", json.dumps({"rules": rules})) for index, rules in enumerate(documents))
    return compile_rules(Settings(user_rules=texts, **settings))  # type: ignore[arg-type]


def func(old: str, new: str, **keys: object) -> dict[str, list[dict[str, object]]]:
    return {"FuncNameModifyRule": [{"old_name": old, "new_name": new, **keys}]}


def module(old: str, new: str, **keys: object) -> dict[str, list[dict[str, object]]]:
    return {"ModuleNameModifyRule": [{"old_name": old, "new_name": new, **keys}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, TORCH_VERSIONS),
        (">=2.9", TORCH_VERSIONS[TORCH_VERSIONS.index("2.9") :]),
        (">2.9 , <2.12", ("2.10", "2.11")),
        ("<=2.3,!=2.2", ("2.1", "2.3")),
        ("==2.10", ("2.10",)),
        (["2.8", "2.1"], ("2.1", "2.8")),
    ],
)
def test_versions(spec: str | list[str] | None, expected: tuple[str, ...]) -> None:
    assert versions_of(spec) == set(expected)


@pytest.mark.parametrize("spec", ["2.1", ">=2", ">=2.1;<3.0", "", ">=2.1,", ["2"], ["3.0"]])
def test_versions_that_say_nothing(spec: str | list[str]) -> None:
    with pytest.raises(ValueError, match=r"."):
        versions_of(spec)


@pytest.mark.parametrize(
    ("name", "kind", "new", "prefix"),
    [
        ("torch.cuda.is_available", Kind.FUNC, "torch.npu.is_available", "torch.cuda.is_available"),
        ("torch.cuda.Event.record", Kind.FUNC, "torch.npu.Event", "torch.cuda.Event"),
        ("torch.cuda.amp.autocast", Kind.FUNC, "torch.npu.amp.autocast", "torch.cuda.amp.autocast"),
        ("torch.cuda", Kind.MODULE, "torch.npu", "torch.cuda"),
        ("torch.cuda.amp", Kind.MODULE, "torch.npu.amp", "torch.cuda.amp"),
        ("torch.cuda.nvtx", Kind.MODULE, "torch.npu.mstx", "torch.cuda.nvtx"),
        ("torch.cuda.nccl.all_reduce", Kind.UNSUPPORTED, "", "torch.cuda.nccl"),
        ("torch.backends.cudnn.benchmark", Kind.UNSUPPORTED, "", "torch.backends.cudnn.benchmark"),
        ("flash_attn.flash_attn_func", Kind.UNSUPPORTED, "", "flash_attn"),
    ],
)
def test_the_longest_prefix_answers(name: str, kind: Kind, new: str, prefix: str) -> None:
    found = compiled().resolve(name)
    assert found is not None
    assert (found[0].kind, found[0].new, found[1]) == (kind, new, prefix)


def test_a_member_that_no_table_lists_is_not_renamed() -> None:
    found = compiled().resolve("torch.cuda.brand_new_api")
    assert found is not None
    assert found[0].kind is Kind.MODULE
    assert found[0].listed
    assert found[1] == "torch.cuda"


@pytest.mark.parametrize(
    "name",
    ["torch", "torch.nn.Linear", "numba.jit", "cupyxx", "numpy.cuda", "torch.cudax", "torch.accelerator.synchronize"],
)
def test_names_that_no_rule_knows(name: str) -> None:
    assert compiled().resolve(name) is None


def test_versions_decide() -> None:
    name = "torch.cuda.ExternalStream"
    kinds = {version: compiled(torch_version=version).resolve(name) for version in TORCH_VERSIONS}
    renamed = {version for version, found in kinds.items() if found is not None and found[0].renames}
    assert renamed == {"2.7", *TORCH_VERSIONS[TORCH_VERSIONS.index("2.9") :]}
    missing = kinds["2.8"]
    assert missing is not None
    assert (missing[0].code, missing[0].level, missing[0].effort) == ("NPU502", Level.MANUAL, Effort.MEDIUM)
    assert "2.7, 2.9 and later" in missing[0].help


def test_out_of_memory_is_what_torch_npu_raises() -> None:
    new, old = (compiled(torch_version=version).resolve("torch.cuda.OutOfMemoryError") for version in ("2.6", "2.5"))
    assert new is not None and new[0].new == "torch.OutOfMemoryError"
    assert old is not None and old[0].kind is Kind.UNSUPPORTED


def test_user_rules_win_whatever_the_length() -> None:
    rules = compiled(module("cuda", "mine", parent_module="torch"))
    found = rules.resolve("torch.cuda.amp.autocast")
    assert found is not None
    assert (found[0].new, found[1], found[0].user, found[0].code) == ("torch.mine", "torch.cuda", True, "NPU003")
    assert rules.builtin.resolve("torch.cuda.amp.autocast") is not None


def test_a_later_file_wins() -> None:
    rules = compiled(func("a.b", "c"), func("a.b", "d"))
    assert rules.user.names["a.b"].new == "d"
    assert rules.user.names["a.b"].origin == "1.json"


def test_undotted_names_match_calls_and_not_references() -> None:
    rules = compiled(func("synchronize", "sync_all"))
    assert rules.user.last_names["synchronize"].new == "sync_all"
    assert rules.user.resolve("torch.cuda.synchronize") is None
    assert "synchronize" not in rules.roots


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        (module("m", "n"), "m", "n"),
        (module("m", "n", parent_module="a.b"), "a.b.m", "a.b.n"),
        (module("m", "x.n", parent_module="a.b"), "a.b.m", "x.n"),
        (module("a.b.m", "n"), "a.b.m", "a.b.n"),
        (module("m", "x.n"), "m", "x.n"),
    ],
)
def test_names_of_modules(rule: dict[str, list[dict[str, object]]], old: str, new: str) -> None:
    assert compiled(rule).user.modules[old].new == new


def test_argument_rules_add_up_and_a_later_file_wins_for_the_same_argument() -> None:
    def rule(index: int, new: str) -> dict[str, list[dict[str, object]]]:
        return {"ArgsModifyRule": [{"func_name": "pkg.f", "arg_idx": index, "arg_new": new}]}

    found = compiled(rule(0, "a"), rule(1, "b"), rule(0, "c")).user.args["pkg.f"]
    assert [(each.arg_idx, each.new) for each in found] == [(1, "b"), (0, "c")]


def test_unsupported_rules_of_users() -> None:
    rules = compiled({"UnsupportedRule": [{"name": "pkg", "help": "use other", "where": "import"}]})
    found = rules.resolve("pkg.deep.name")
    assert found is not None
    rule = found[0]
    assert (rule.code, rule.level, rule.effort, rule.imports_only) == ("NPU004", Level.MANUAL, Effort.MEDIUM, True)
    assert rule.message == "pkg has no counterpart on NPU"


def test_defaults_of_a_file_apply_to_their_kind() -> None:
    document = {"defaults": {"FuncNameModifyRule": {"code": "NPU012", "level": "unsafe"}}, "rules": func("a.b", "c")}
    rules = compile_rules(Settings(user_rules=(("r.json", json.dumps(document)),)))
    assert (rules.user.names["a.b"].code, rules.user.names["a.b"].level) == ("NPU012", Level.UNSAFE)


def test_rules_of_other_versions_are_not_there() -> None:
    assert not compiled(func("a.b", "c", versions="<2.9")).user.names
    assert compiled(func("a.b", "c", versions="<2.9"), torch_version="2.8").user.names


class TestSimilar:
    def test_off_by_default_but_told(self) -> None:
        found = compiled().resolve("apex.normalization.FusedLayerNorm")
        assert found is not None
        assert found[0].kind is Kind.UNSUPPORTED
        assert "use torch.nn.LayerNorm, as --similar does" in found[0].help

    def test_in_force_with_what_stands_otherwise(self) -> None:
        found = compiled(similar=True).resolve("apex.optimizers.FusedAdam")
        assert found is not None
        rule = found[0]
        assert (rule.new, rule.code, rule.level) == ("torch.optim.AdamW", "NPU120", Level.UNSAFE)
        assert rule.differs
        assert rule.otherwise is not None and rule.otherwise.kind is Kind.UNSUPPORTED
        assert rule.skip_if is not None
        assert rule.skip_if.holds(1, {"lr"}, False)
        assert not rule.skip_if.holds(1, {"weight_decay"}, False)

    def test_replaces_the_finding_of_the_version_that_lacks_a_name(self) -> None:
        found = compiled(similar=True, torch_version="2.4").resolve("torch.cuda.ipc_collect")
        assert found is not None and found[0].new == "torch.npu.empty_cache"
        assert found[0].otherwise is not None and found[0].otherwise.code == "NPU502"
        found = compiled(similar=True, torch_version="2.6").resolve("torch.cuda.ipc_collect")
        assert found is not None and found[0].new == "torch.npu.ipc_collect"

    def test_rules_of_users(self) -> None:
        rule = func("a.b", "c", similar=True, differs="slower")
        assert not compiled(rule).user.names
        assert compiled(rule, similar=True).user.names["a.b"].level is Level.UNSAFE


@pytest.mark.parametrize(
    ("spec", "positional", "keywords", "starred", "expected"),
    [
        (ArgSpec(), 9, {"a"}, True, False),
        (ArgSpec(rename=(("a", "b"),)), 1, {"a"}, False, False),
        (ArgSpec(rename=(("a", "b"),)), 1, set(), True, True),
        (ArgSpec(reject=frozenset({"x"})), 0, {"x"}, False, True),
        (ArgSpec(reject=frozenset({"x"})), 0, {"y"}, False, False),
        (ArgSpec(positional_max=2), 2, set(), False, False),
        (ArgSpec(positional_max=2), 3, set(), False, True),
        (ArgSpec(positional_max=3, name_positional=((3, "mode"),)), 4, set(), False, False),
        (ArgSpec(positional_max=3, name_positional=((3, "mode"),)), 5, set(), False, True),
        (ArgSpec(name_positional=((4, "enabled"),)), 5, set(), False, False),
    ],
)
def test_calls_that_cannot_be_carried_over(
    spec: ArgSpec, positional: int, keywords: set[str], starred: bool, expected: bool
) -> None:
    assert spec.rejects(positional, keywords, starred) is expected


@pytest.mark.parametrize(
    ("skip", "positional", "keywords", "starred", "expected"),
    [
        (SkipIf(keywords=frozenset({"a"})), 0, {"a"}, False, True),
        (SkipIf(keywords=frozenset({"a"})), 0, {"b"}, False, False),
        (SkipIf(keywords=frozenset({"a"})), 0, set(), True, True),
        (SkipIf(lacks=frozenset({"a"})), 0, {"b"}, False, True),
        (SkipIf(lacks=frozenset({"a"})), 0, {"a", "b"}, False, False),
        (SkipIf(positional_at_least=2), 1, set(), False, False),
        (SkipIf(positional_at_least=2), 2, set(), False, True),
        (SkipIf(positional_at_most=2), 3, set(), False, False),
        (SkipIf(positional_at_most=2), 2, set(), False, True),
        (SkipIf(positional_at_most=2), 3, set(), True, True),
    ],
)
def test_calls_that_are_left_alone(
    skip: SkipIf, positional: int, keywords: set[str], starred: bool, expected: bool
) -> None:
    assert skip.holds(positional, keywords, starred) is expected


def test_every_name_a_rule_knows_is_behind_a_literal_or_words() -> None:
    """The prefilter may only drop files that no rule can touch."""
    for version in TORCH_VERSIONS:
        rules = compiled(func("torch.MyThing", "a.b"), func("short", "b"), torch_version=version)
        for table in (rules.user, rules.builtin):
            for rule in table:
                name = rule.old.lower().encode()
                parts = set(name.split(b"."))
                assert any(literal in name for literal in rules.literals) or any(
                    not parts.isdisjoint(rules.words[word]) for word in parts & rules.words.keys()
                ), rule.old
    assert b"torch" not in rules.literals
    assert b"mything" in rules.literals
    assert b"short" in rules.literals


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch.eig(x)", True),
        ("from torch import EIG", True),
        ("weight = neighbour", False),
        ("from torch.nn.parallel import gather", True),
        ("from torch.nn.parallel import DistributedModule", False),
        ("gather(x)", False),
        ("import apex.parallel", True),
        ("from .parallel import gathered", False),
        ("network = torch.load(path)", True),
        ("rules = json.load(path)", False),
        ("use_cuda = True", True),
    ],
)
def test_files_worth_a_look(text: str, expected: bool) -> None:
    """Words of rules count as whole names, beside what belongs to them; `eig` is in every weight."""
    assert worth_a_look(text.encode(), Settings()) is expected


def test_modules_that_can_be_imported() -> None:
    rules = compiled()
    assert rules.importable("torch.npu") == "torch.npu"
    assert rules.importable("torch.npu.amp") == "torch_npu.npu.amp"
    assert rules.importable("torch.npu.mstx") is None
    assert rules.importable("mylib.ops") == "mylib.ops"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch.npu", True),
        ("torch.npu.Stream", True),
        ("torch_npu.npu.amp", True),
        ("torch.distributed.Backend.HCCL", True),
        ("torch.distributed.is_hccl_available", True),
        ("torch.OutOfMemoryError", False),
        ("mylib.npu", False),
        ("torch.npu_ops", False),
    ],
)
def test_names_that_exist_only_with_torch_npu(name: str, expected: bool) -> None:
    assert needs_torch_npu(name) is expected


def test_a_rule_set_is_made_once_for_the_same_settings_and_can_be_sent_to_a_worker() -> None:
    assert compile_rules(Settings()) is compile_rules(Settings(annotate=True))
    assert compile_rules(Settings()) is not compile_rules(Settings(torch_version="2.1"))
    again = pickle.loads(pickle.dumps(compile_rules(Settings())))
    assert again.resolve("torch.cuda.Stream")[0].new == "torch.npu.Stream"


def test_loading_is_cheap_and_brings_in_no_validator() -> None:
    program = (
        "import sys, time\n"
        "from transplt.base.settings import Settings\n"
        "from transplt.rules.rule_set import compile_rules\n"
        "start = time.process_time()\n"
        "compile_rules(Settings())\n"
        "spent = time.process_time() - start\n"
        "assert 'jsonschema' not in sys.modules and 'libcst' not in sys.modules\n"
        "print(spent)\n"
    )
    spent = min(
        float(
            subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        )
        for _ in range(3)
    )
    assert spent < 0.1  # 10 ms on an ordinary machine; the bound leaves room for a busy one
