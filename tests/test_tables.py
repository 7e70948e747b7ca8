"""The built-in tables: valid, in the users' language, true to the facts they were built from."""

from __future__ import annotations

import json
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scripts import fixer_words
from scripts.build_packages import package_rules
from scripts.npu_operators import read_page
from scripts.release_check import aged, months
from scripts.table_decisions import EXTRA
from transplt.base.finding import Level
from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.base.text.requirement import normalised
from transplt.rules.packages import runs_unchanged
from transplt.rules.pages import all_codes
from transplt.rules.releases import release_of
from transplt.rules.rule import Kind, Rule
from transplt.rules.rule_file import problems
from transplt.rules.rule_set import compile_rules, parse_rules
from transplt.rules.tables import read_table, rules_dir
from transplt.rules.versions import versions_of

RULE_FILES = sorted(path.name for path in rules_dir().glob("*.json") if path.name != "schema.json")
SAMPLE: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "fact_sample.json").read_bytes())


def builtin(version: str, similar: bool = False) -> list[Rule]:
    return list(compile_rules(Settings(torch_version=version, similar=similar)).builtin)


@pytest.mark.parametrize("theme", EXTRA)
def test_what_is_written_by_hand_stands_in_the_table(theme: str) -> None:
    """Who has no facts cannot build the tables, and writes an entry into both."""
    rules = json.loads((rules_dir() / f"{theme}.json").read_bytes())["rules"]
    missing = [entry for kind, entries in EXTRA[theme].items() for entry in entries if entry not in rules[kind]]
    assert missing == []


def known_names() -> dict[str, frozenset[str]]:
    """Every public name of torch.npu and torch_npu in the table, and the torch versions that have it."""
    groups = read_table("support/npu_names.json")["names"].items()
    return {name: versions_of(text) for text, names in groups for name in names}


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(read_table("schema.json"))


def test_there_are_rules() -> None:
    assert len(RULE_FILES) >= 10
    assert len(builtin(TORCH_VERSIONS[-1])) > 350


@pytest.mark.parametrize("name", RULE_FILES)
def test_built_in_files_pass_the_check_for_user_files(name: str) -> None:
    text = (rules_dir() / name).read_text(encoding="utf-8")
    assert [str(problem) for problem in problems(name, text)] == []


def test_no_name_has_two_rules_in_one_version() -> None:
    for version in TORCH_VERSIONS:
        seen: dict[tuple[str, str], str] = {}
        for name in RULE_FILES:
            for rule in parse_rules(read_table(name), name, version, user=False):
                if rule.similar:
                    continue
                key = (rule.old, "args" if rule.kind is Kind.ARGS else "name")
                assert key not in seen, f"{rule.old} in {name} and {seen[key]} for torch {version}"
                seen[key] = name


@pytest.mark.parametrize("version", TORCH_VERSIONS)
def test_every_name_that_a_rule_writes_exists_in_that_version(version: str) -> None:
    known = known_names()
    for rule in builtin(version, similar=True):
        of_torch = rule.new.startswith("torch.") and ".npu" in rule.new
        if rule.renames and (of_torch or rule.new.startswith("torch_npu")):
            assert version in known.get(rule.new, ()), f"{rule.old} -> {rule.new} for torch {version}"


@pytest.mark.torch
def test_every_other_name_that_a_rule_writes_exists_in_torch() -> None:
    checked = 0
    for rule in builtin(TORCH_VERSIONS[-1], similar=True):
        of_torch = rule.new.partition(".")[0] == "torch"
        if rule.renames and of_torch and "npu" not in rule.new.lower() and "hccl" not in rule.new.lower():
            assert pkgutil.resolve_name(rule.new) is not None
            checked += 1
    assert checked >= 20


@pytest.mark.torch
def test_torch_cuda_names_are_all_decided() -> None:
    """No public name of torch.cuda is left to the answer 'not in the tables'."""
    import torch

    rules = compile_rules(Settings(torch_version=TORCH_VERSIONS[-1]))
    open_names = []
    for name in dir(torch.cuda):
        value = getattr(torch.cuda, name)
        if (
            name.startswith("_")
            or name.isupper()
            or getattr(value, "__module__", "torch.cuda").split(".")[:2] != ["torch", "cuda"]
        ):
            continue
        if type(value).__name__ in ("module", "_GenericAlias", "_UnionGenericAlias", "TypeVar"):
            continue
        found = rules.resolve(f"torch.cuda.{name}")
        if found is None or found[1] == "torch.cuda":
            open_names.append(name)
    # Helpers that torch.cuda imports for itself, without meaning for its users.
    assert sorted(set(open_names) - {"classproperty", "handle_torch_function"}) == []


def test_what_changes_is_in_no_table_of_names_below_the_old_module() -> None:
    for rule in builtin(TORCH_VERSIONS[-1], similar=True):
        assert not rule.new.startswith("torch.cuda"), rule
        if rule.user or not rule.renames:
            continue
        assert "cuda" not in rule.new.lower(), rule


@pytest.mark.parametrize("version", TORCH_VERSIONS)
def test_results_are_stable_names(version: str) -> None:
    """A second run finds nothing to rewrite: no rule matches what another wrote."""
    rules = compile_rules(Settings(torch_version=version, similar=True))
    for rule in rules.builtin:
        if rule.renames:
            found = rules.resolve(rule.new)
            assert found is None or not found[0].renames, f"{rule.old} -> {rule.new} -> {found}"


def test_codes_have_pages_and_levels_are_those_of_the_kind() -> None:
    pages = set(all_codes())
    for version in ("2.1", "2.8", TORCH_VERSIONS[-1]):
        for rule in builtin(version, similar=True):
            assert rule.code in pages, rule
            if rule.kind is Kind.UNSUPPORTED:
                assert rule.code[:4] in ("NPU3", "NPU5"), rule
                assert (rule.effort is not None) == (rule.level is Level.MANUAL), rule
            else:
                assert rule.code.startswith("NPU1"), rule
                assert rule.level is (Level.UNSAFE if rule.similar else Level.SAFE), rule
            assert rule.differs if rule.similar else not rule.differs


def test_messages_are_sentences_without_markup() -> None:
    for version in ("2.2", "2.8", TORCH_VERSIONS[-1]):
        for rule in builtin(version, similar=True):
            for text in (rule.message, rule.help, rule.differs):
                assert text == text.strip() and "\n" not in text, rule
                assert not text.endswith("."), rule
                assert len(text) < 400, rule


def status_of(name: str, version: str) -> str:
    """What the tables say of a fact's name: renamed:<new>, unsupported:<code>, codemod, none."""
    if name in read_table("support/codemod_facts.json"):
        return "codemod"
    found = compile_rules(Settings(torch_version=version)).builtin.resolve(name)
    if found is None:
        return "none"
    rule, prefix = found
    if rule.kind is Kind.UNSUPPORTED:
        return f"unsupported:{rule.code}"
    if rule.kind is Kind.MODULE and rule.listed and prefix != name:
        return "none"
    return f"renamed:{rule.new}{name[len(prefix) :]}"


#: Facts that the tables treat otherwise than their status says, decided by hand (see scripts/table_decisions.py).
DECIDED = {
    "torch.backends.cuda.matmul.allow_tf32": "unsupported:NPU504",
    "torch.backends.cudnn.allow_tf32": "unsupported:NPU504",
    "torch.cuda.CUDAPluggableAllocator": "unsupported:NPU552",
    "torch.cuda.cudart": "unsupported:NPU501",
    "torch.cuda.get_device_capability": "unsupported:NPU503",
    "torch.cuda.memory.CUDAPluggableAllocator": "unsupported:NPU552",
    "torch.cuda.nvtx.range": "unsupported:NPU501",
    "torch.cuda.profiler.cudart": "unsupported:NPU501",
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler": "unsupported:NPU508",
    "torch.distributed.ProcessGroupNCCL.Options": "renamed:torch_npu._C._distributed_c10d.ProcessGroupHCCL.Options",
    "torch.distributed.rpc.TensorPipeRpcBackendOptions": "unsupported:NPU506",
    "torch.utils.cpp_extension.CUDAExtension": "unsupported:NPU550",
    "torch.utils.cpp_extension.CppExtension": "none",
    "torch.utils.collect_env": "none",
    "torch.version.cuda": "unsupported:NPU506",
    "torch.profiler.itt": "none",
    "torch.profiler.kineto_available": "none",
    "torch.backends.fp32_precision": "none",
}


@pytest.mark.parametrize("name", SAMPLE)
def test_facts_are_kept(name: str) -> None:
    """A sample of the facts, drawn once with a fixed seed: each is renamed, reported or left as the fact says."""
    fact = SAMPLE[name]
    minors = {".".join(wheel.split(".")[:2]) for wheel in fact.get("exists_in", ())}
    stubs = {".".join(wheel.split(".")[:2]) for wheel in fact.get("stub_in", ())}
    for version in TORCH_VERSIONS:
        if version == "2.2":
            continue  # not read: see test_the_version_whose_wheel_was_not_read
        said = status_of(name, version)
        if name in DECIDED:
            assert said == DECIDED[name]
        elif not re.fullmatch(r"torch(\.\w+)+", name):
            assert said == "codemod"
        elif said == "codemod":
            continue
        elif fact["status"] == "missing":
            assert said.startswith("unsupported:NPU5"), (name, version, said)
        elif fact["status"] == "stub" or version in stubs:
            assert said in ("unsupported:NPU503", "unsupported:NPU504"), (name, version, said)
        elif version not in minors:
            assert said in ("unsupported:NPU502", "none"), (name, version, said)
            assert said != "none" or name == fact["npu"]
        elif name == fact["npu"]:
            assert said == "none"
        else:
            assert said == f"renamed:{fact['npu']}", (name, version, said)


def test_the_sample_holds_every_status() -> None:
    statuses = {fact["status"] for fact in SAMPLE.values()}
    assert statuses == {"same", "renamed", "missing", "stub"}
    assert len(SAMPLE) == 120


def test_the_version_whose_wheel_was_not_read() -> None:
    """torch_npu 2.2 is read as what 2.1 and 2.3 have in common."""
    at = {
        version: {rule.old: rule.new for rule in builtin(version) if rule.renames} for version in ("2.1", "2.2", "2.3")
    }
    assert set(at["2.2"]) == set(at["2.1"]) & set(at["2.3"])


def test_versions_table() -> None:
    table = read_table("support/versions.json")
    assert table["source"]
    assert tuple(table["torch"]) == TORCH_VERSIONS
    for minor, row in table["torch"].items():
        assert row["torch"].startswith(f"{minor}.")
        assert row["torch_npu"].startswith(row["torch"])
        assert row["python"] and row["torchvision"] and row["torchaudio"]
        assert row["x86_64"] in ("", f"{row['torch']}+cpu")
        assert release_of(minor).pythons
    assert tuple(table["verdicts"]) == TORCH_VERSIONS
    for row in table["verdicts"].values():
        assert (row["kind"] == "its support list is not published yet") == (not row["source"]) == (not row["date"])


def test_every_third_party_package_bound_to_cuda_has_a_finding() -> None:
    rules = compile_rules(Settings())
    quiet = {"torch", "onnxruntime", "faiss", "fairseq", "megatron", "fla"}
    for package in read_table("support/third_party.json")["packages"]:
        for name in package["import"]:
            found = rules.resolve(name)
            if re.search(r"(?:^|_)cuda(?:[_.\d]|$)", name) and found is None:
                continue  # a compiled module: NPU553 speaks of it
            if package["status"] in ("native", "works", "cpu") or package.get("quiet") or name in quiet:
                assert found is None or found[0].imports_only is False or runs_unchanged(name, found[0].old), name
            else:
                assert found is not None and found[0].code in ("NPU510", "NPU511", "NPU512"), name


def test_the_table_of_packages() -> None:
    """At least 300 packages, each with what Ascend offers and who says so; every name leads to one row."""
    table = read_table("support/third_party.json")
    rows = table["packages"]
    assert len(rows) >= 300
    names = [row["name"] for row in rows]
    distributions = [name for row in rows for name in row["pip"]]
    imports = [name for row in rows for name in row["import"]]
    for each in (names, distributions, imports):
        assert sorted(set(each)) == sorted(each)
    keys = {"name", "pip", "import", "status", "quiet", "since", "first", "replacement", "note", "source", "confidence"}
    keys |= {"part_of", "functions", "checked", "repository", "whole_file", "loads", "installs", "other_card"}
    keys |= {"goes_with", "takes_place", "floors", "parts", "raising", "brings"}
    for row in rows:
        assert set(row) <= keys, row["name"]
        assert row["status"] in table["_meta"]["status"], row["name"]
        assert row["confidence"] in ("high", "medium", "low"), row["name"]
        assert row["source"] and (row["pip"] or row["import"]), row["name"]
        assert row.get("note") or row.get("replacement") or row["status"] in ("native", "works"), row["name"]
        assert row["status"] not in ("replacement", "plugin", "ascend_fork") or row.get("replacement"), row["name"]
        assert all(name == normalised(name) for name in row["pip"]), row["name"]
        assert all(re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", name) for name in row["import"]), row["name"]
        assert re.fullmatch(r"\d+(\.\d+)+", row.get("first", "1.0")), row["name"]
        assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", row["checked"]), row["name"]
        assert not row.get("functions") or row["import"], row["name"]


@pytest.mark.parametrize(
    ("checked", "day", "old"),
    [
        ("2026-07", "2026-07-31", False),
        ("2026-07", "2027-01-31", False),
        ("2026-07", "2027-02-01", True),
        ("2026-12", "2027-06-30", False),
        ("2026-11", "2027-06-01", True),
    ],
)
def test_a_package_is_to_be_read_again_after_half_a_year(checked: str, day: str, old: bool) -> None:
    """Of a day that is given: this test says the same on every day. The day of a release is in release_check.py."""
    assert aged([{"name": "a", "checked": checked}], day) == (["a"] if old else [])


def test_the_operators_that_are_documented_for_torch_npu() -> None:
    """All pages of op-plugin, in our words, with the cards of the page."""
    operators = read_table("support/npu_operators.json")["operators"]
    assert len(operators) == 163
    cards = {"950", "A3", "A2", "200I A2", "910", "310P"}
    for name, row in operators.items():
        assert re.fullmatch(r"torch_npu\._?npu_\w+", name)
        assert row["for"].isascii() and row["cards"] and set(row["cards"]) <= cards, name
        assert "instead" not in row or row["deprecated"], name
        assert all(re.fullmatch(r"torch(_npu)?(\.\w+)+", each) for each in row.get("instead", ())), name


@pytest.mark.parametrize(
    ("page", "fact"),
    [
        ("| <term>Atlas A2 训练系列产品</term> | √ |\n| <term>Ascend 950DT</term> | x |\n", {"cards": ["A2"]}),
        ("| Ascend 950PR | √ |\n| Atlas 推理系列产品 | √ |\n", {"cards": ["950", "310P"]}),
        (
            "> 该接口计划废弃\uff0c可以使用`torch.sort`接口进行替换。\n| Atlas 训练系列产品 | √ |\n",
            {"cards": ["910"], "deprecated": True, "instead": ["torch.sort"]},
        ),
        (
            "> 该接口计划废弃\uff0c可以使用tensor.to()接口进行替换。\n| Atlas 训练系列产品 | √ |\n",
            {"cards": ["910"], "deprecated": True, "instead": ["torch.Tensor.to"]},
        ),
        (
            "> 该接口计划废弃\uff0c底层算子不再维护。\n| Atlas 训练系列产品 | √ |\n",
            {"cards": ["910"], "deprecated": True},
        ),
        ("> 使用torch.sort时请注意。\n| Atlas 训练系列产品 | √ |\n", {"cards": ["910"]}),
    ],
)
def test_a_page_of_an_operator_is_read(page: str, fact: dict[str, object]) -> None:
    assert read_page(page, beta=False) == fact
    assert read_page(page, beta=True) == fact | {"beta": True}


def test_the_words_of_the_prefilter_are_those_that_the_fixers_state() -> None:
    """Whoever changes the words of a fixer writes them down again: `python -m scripts.fixer_words --write`."""
    assert fixer_words.PAGE.read_text(encoding="ascii") == fixer_words.table()


def test_the_rules_for_packages_are_built_from_the_table() -> None:
    built = package_rules(read_table("support/third_party.json")["packages"])
    assert read_table("third_party.json") == built


def test_environment_variables() -> None:
    table = read_table("support/env_vars.json")
    assert table["cuda_to_npu"]["CUDA_VISIBLE_DEVICES"]["npu"] == "ASCEND_RT_VISIBLE_DEVICES"
    for section in ("cuda_to_npu", "npu_only"):
        for name, row in table[section].items():
            assert re.fullmatch(r"[A-Z][A-Z0-9_]+(=\w+)?\*?", name), name
            assert row["source"]


@pytest.mark.parametrize(("earlier", "later", "count"), [("2026-11-29", "2027-02-28", 3), ("2026-11", "2027-03-01", 4)])
def test_the_months_after_which_releases_are_read_again(earlier: str, later: str, count: int) -> None:
    assert months(earlier, later) == count
