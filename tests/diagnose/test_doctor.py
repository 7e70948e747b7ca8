"""What a host has and what is wrong with it, on fake hosts: a folder for the root, a dict for the environment."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from transplt.precision.diagnose import npu_smi
from transplt.precision.diagnose.advice import Check, State, checks_of
from transplt.precision.diagnose.host import Host, examine
from transplt.precision.diagnose.triton import Triton, installed_triton
from transplt.rules.tables import read_table

HOME = "/usr/local/Ascend/ascend-toolkit/latest"
SMI = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc3                 Version: 24.1.rc3                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 94.6        49                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3373 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | Alarm         | 94.6        49                0    / 0             |
| 0                         | 0000:01:00.0  | 0           0    / 0          3367 / 65536         |
+===========================+===============+====================================================+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 926997        | python3.10               | 60991                   |
| No running processes found in NPU 1                                                            |
+===========================+===============+====================================================+
"""
PACKAGES = {"torch": "2.1.0", "torch_npu": "2.1.0.post17"}
ENVIRONMENT = {
    "ASCEND_HOME_PATH": HOME, "ASCEND_OPP_PATH": f"{HOME}/opp", "HOME": "/root",
    "LD_LIBRARY_PATH": f"{HOME}/lib64:/usr/local/Ascend/driver/lib64:",
}  # fmt: skip


def put(root: Path, path: str, text: str = "") -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host on which all is well, for torch 2.1."""
    put(
        tmp_path,
        f"{HOME}/aarch64-linux/ascend_toolkit_install.info",
        "package_name=Ascend-cann-toolkit\nversion=8.3.RC1\n",
    )
    put(tmp_path, "/usr/local/Ascend/driver/version.info", "Version=24.1.rc3\nascendhal_version=7.35.23\n")
    put(tmp_path, "/usr/local/Ascend/firmware/version.info", "Version=7.5.0.1.129\n")
    for name in ("davinci0", "davinci1", "davinci_manager", "devmm_svm", "hisi_hdc", "null"):
        put(tmp_path, f"/dev/{name}")
    for name in ("libascendcl.so", "libhccl.so", "libopapi.so"):
        put(tmp_path, f"{HOME}/lib64/{name}")
    put(tmp_path, "/usr/local/Ascend/driver/lib64/libascend_hal.so")
    return tmp_path


def looked(root: Path, packages: dict[str, str] = PACKAGES, smi: str = "", **environ: str) -> dict[str, Check]:
    host = examine(root, {**ENVIRONMENT, **environ}, lambda name: packages.get(name, ""), lambda: smi, Triton)
    host.python = "3.10.14"
    return {check.what: check for check in checks_of(host)}


def wrong(checks: dict[str, Check]) -> dict[str, str]:
    return {what: check.state.value for what, check in checks.items() if check.state is not State.FINE}


def test_a_host_on_which_all_is_well(root: Path) -> None:
    checks = looked(root)
    assert wrong(checks) == {}
    assert checks["CANN"].text == f"8.3.RC1 in {HOME}"
    assert checks["driver"].text == "24.1.rc3, firmware 7.5.0.1.129"
    assert checks["cards"].text == "0, 1"


def test_a_host_with_nothing(tmp_path: Path) -> None:
    host = examine(tmp_path, {}, lambda name: "", triton=Triton)
    assert {check.what for check in checks_of(host) if check.state is State.MISSING} == {
        "torch", "torch_npu", "CANN", "driver", "cards",
    }  # fmt: skip
    assert (host.cann, host.cards, host.processes) == ("", [], [])


@pytest.mark.parametrize(
    ("packages", "said"),
    [
        ({"torch": "2.1.0", "torch_npu": "2.5.1"}, {"torch_npu": "wrong"}),
        ({"torch": "2.1.0"}, {"torch_npu": "missing"}),
        ({"torch": "2.1.0+cpu", "torch_npu": "2.1.0.post17"}, {}),
        ({"torch": "2.1.0+cu121", "torch_npu": "2.1.0.post17"}, {"torch": "note"}),
        ({"torch": "2.7.1", "torch_npu": "2.7.1.post8"}, {"CANN": "wrong"}),
        ({"torch": "2.7.1", "torch_npu": "2.7.1"}, {"CANN": "note"}),
        ({"torch": "2.4.0", "torch_npu": "2.4.0.post4"}, {}),
        ({"torch": "9.9.0", "torch_npu": "9.9.0"}, {"torch_npu": "note"}),
        ({"torch": "2.1.0", "torch_npu": "odd"}, {}),
    ],
)
def test_versions_that_belong_together_or_not(root: Path, packages: dict[str, str], said: dict[str, str]) -> None:
    assert wrong(looked(root, packages)) == said


def test_a_python_that_torch_npu_is_not_made_for(root: Path) -> None:
    host = Host(python="3.13.0", torch="2.1.0", torch_npu="2.1.0.post17")
    assert checks_of(host)[0].state is State.WRONG
    assert "3.8 to 3.11" in checks_of(host)[0].text


def test_set_env_is_not_sourced(root: Path) -> None:
    """CANN is found where it lies by default, its libraries by nobody."""
    checks = looked(root, ASCEND_HOME_PATH="", ASCEND_OPP_PATH="", LD_LIBRARY_PATH="/usr/local/Ascend/driver/lib64")
    assert wrong(checks) == {
        "set_env.sh": "wrong", "libascendcl.so": "missing", "libhccl.so": "missing", "libopapi.so": "missing",
    }  # fmt: skip
    assert "set_env.sh" in checks["libhccl.so"].do


def test_a_container_without_what_it_needs(root: Path) -> None:
    (root / "dev" / "hisi_hdc").unlink()
    checks = looked(root)
    assert wrong(checks) == {"cards": "wrong"} and "/dev/hisi_hdc" in checks["cards"].text


def test_another_folder_of_the_driver(root: Path) -> None:
    put(root, "/etc/ascend_install.info", "Driver_Install_Path_Param=/opt/Ascend\n")
    put(root, "/opt/Ascend/driver/version.info", "Version=25.2.0\n")
    assert looked(root)["driver"].text.startswith("25.2.0, firmware not to be read")


def test_cards_and_processes_of_npu_smi(root: Path) -> None:
    checks = looked(root, smi=SMI)
    assert wrong(checks) == {"card 1": "wrong", "process 926997": "note"}
    assert checks["process 926997"].text == "python3.10 holds 60991 MB of card 0"


def test_variables_of_cuda_days(root: Path) -> None:
    checks = looked(
        root, CUDA_VISIBLE_DEVICES="0", NCCL_DEBUG="INFO", MASTER_ADDR="localhost", ASCEND_LAUNCH_BLOCKING="1"
    )
    assert wrong(checks) == {"CUDA_VISIBLE_DEVICES": "note", "NCCL_DEBUG": "note", "ASCEND_LAUNCH_BLOCKING": "note"}
    assert "use ASCEND_RT_VISIBLE_DEVICES" in checks["CUDA_VISIBLE_DEVICES"].text


def test_files_that_are_odd_do_no_harm(root: Path) -> None:
    put(root, f"{HOME}/aarch64-linux/ascend_toolkit_install.info", "\0\x1b[2J" * 1000)
    (root / "usr/local/Ascend/driver/version.info").unlink()
    (root / "usr/local/Ascend/driver/version.info").mkdir()
    checks = looked(root, smi="|" * 10_000)
    assert checks["CANN"].state is State.MISSING and checks["driver"].state is State.MISSING


def test_the_table_of_the_document_is_that_of_the_versions() -> None:
    page = (Path(__file__).parents[2] / "docs" / "diagnose.md").read_text("utf-8")
    for row in read_table("support/versions.json")["torch"].values():
        line = f"| {row['torch']} | {row['torch_npu']} | {row['cann'] or 'not said yet'} | {row['python']} |"
        assert line in page


def test_nothing_is_changed(root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    looked(root)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


@pytest.mark.parametrize(
    ("script", "printed"),
    [("echo fine\n", "fine\n"), ("echo no; exit 1\n", ""), ("sleep 9\n", "")],
)
@pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")
def test_npu_smi_is_asked_for_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, printed: str
) -> None:
    program = tmp_path / "npu-smi"
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(npu_smi, "_SECONDS", 1)
    assert npu_smi.npu_smi() == printed


def test_without_npu_smi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert npu_smi.npu_smi() == ""


def test_the_command() -> None:
    """On whatever host the tests run."""
    command = [sys.executable, "-m", "transplt", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr and "checked with" in done.stdout
    as_json = subprocess.run([*command, "--format=json"], capture_output=True, text=True, check=False)
    document = json.loads(as_json.stdout)
    assert document["format"] == 1 and {"what", "state", "text", "do"} == set(document["checks"][0])
    assert subprocess.run([*command, "--exit-zero"], capture_output=True, check=False).returncode == 0


#: A host with torch_npu, a card 910B and CANN 9.0.
NPU = {"torch_npu": "2.7.1", "cann": "9.0.0", "cards": [0], "smi": "| 0     910B3               | OK            |"}


@pytest.mark.parametrize(
    ("found", "host", "state", "said"),
    [
        (Triton("3.2.0", "3.2.1", "triton"), NPU, State.WRONG, "the GPU one is used"),
        (Triton("3.5.0", "3.2.1", "mixed"), NPU, State.WRONG, "both are installed"),
        (Triton("3.2.0", "3.2.1", "triton-ascend"), NPU, State.FINE, "triton-ascend is used"),
        (Triton("3.2.0", "3.2.1", ""), NPU, State.NOTE, "it is unknown which"),
        (Triton("3.5.0", "", "triton"), NPU, State.NOTE, "0 active drivers"),
        (Triton("3.5.0", "", "triton"), {}, State.FINE, "for GPUs"),
        (Triton("", "3.2.1", "triton-ascend"), NPU, State.FINE, "triton-ascend 3.2.1"),
        (Triton("", "3.2.1", "triton-ascend"), {**NPU, "cann": "8.5.0"}, State.NOTE, "needs CANN 9.0"),
        (Triton("", "3.2.1", "triton-ascend"), {**NPU, "smi": "| 4     310P3     | OK |"}, State.NOTE, "310P"),
    ],
)
def test_triton_for_gpus_and_for_npus(found: Triton, host: dict[str, Any], state: State, said: str) -> None:
    checks = {check.what: check for check in checks_of(Host(python="3.11.9", triton=found, **host))}
    assert checks["Triton"].state is state and said in checks["Triton"].text


def test_without_triton_nothing_is_said_of_it() -> None:
    assert "Triton" not in {check.what for check in checks_of(Host(python="3.11.9", **NPU))}


def installed(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    """Installs a package as pip does: its files, and the list of them with their sums."""
    rows = []
    for file, text in files.items():
        put(folder, file, text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        rows.append(f"{file},sha256={digest},{len(text)}")
    place = f"{name.replace('-', '_')}-{version}.dist-info"
    put(folder, f"{place}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    put(folder, f"{place}/RECORD", "\n".join(rows) + "\n")


OF_GPU = {"triton/__init__.py": "gpu", "triton/_C/libtriton.so": "g" * 50, "triton/runtime/jit.py": "same"}
OF_ASCEND = {"triton/__init__.py": "ascend", "triton/_C/libtriton.so": "a" * 70, "triton/runtime/jit.py": "same"}


@pytest.mark.parametrize(
    ("order", "in_force"),
    [(("triton", "triton-ascend"), "triton-ascend"), (("triton-ascend", "triton"), "triton"), (("triton",), "triton"),
     (("triton-ascend",), "triton-ascend"), ((), "")],
)  # fmt: skip
def test_the_triton_that_was_installed_last_is_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: tuple[str, ...], in_force: str
) -> None:
    for name in order:
        installed(tmp_path, name, "3.2.0", OF_GPU if name == "triton" else OF_ASCEND)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = installed_triton()
    assert found.in_force == in_force and bool(found.triton) == ("triton" in order)


def test_files_of_both_tritons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "triton", "3.5.0", OF_GPU)
    installed(tmp_path, "triton-ascend", "3.2.0", OF_ASCEND)
    put(tmp_path, "triton/__init__.py", "gpu")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert installed_triton().in_force == "mixed"


def doctor_for(*words: str) -> tuple[int, str]:
    from click.testing import CliRunner

    from transplt.faces.cli.doctor import doctor

    done = CliRunner().invoke(doctor, ["--for", *words], standalone_mode=False)
    return (0, done.output) if done.exception is None else (2, str(done.exception))


def test_the_set_of_one_framework_and_what_installs_it() -> None:
    code, text = doctor_for("vllm")
    first, vllm, rest = text.splitlines()[:3]
    assert code == 0 and first.startswith("vllm-ascend ") and "torch-npu " in first and "CANN " in first
    assert vllm.strip().startswith("pip install vllm==")
    assert rest.strip().startswith("pip install torch==") and "vllm-ascend==" in rest and " vllm==" not in rest
    said = json.loads(doctor_for("vllm-ascend", "--format", "json")[1])
    assert any(each.startswith("vllm-ascend 0.18.0: vllm 0.18.0") for each in [said["set"], *said["others"]])


def test_a_framework_without_a_set() -> None:
    code, text = doctor_for("flask")
    assert code == 2 and "no table of matching releases for flask" in text
