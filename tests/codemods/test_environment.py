"""Environment variables of CUDA and NCCL in Python code."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern


@pattern("P62", "T25")
@pytest.mark.parametrize(
    "line",
    [
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"',
        'os.environ["CUDA_VISIBLE_DEVICES"] = ""',
        'os.environ["CUDA_VISIBLE_DEVICES"] = "-1"',
        'os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu',
        'os.environ["CUDA_VISIBLE_DEVICES"] = str(args.gpu)',
        'os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, args.gpus))',
        'count = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))',
        'count = len(os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(","))',
        'os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")',
        'os.environ.pop("CUDA_VISIBLE_DEVICES", None)',
        'del os.environ["CUDA_VISIBLE_DEVICES"]',
        'visible = os.getenv("CUDA_VISIBLE_DEVICES")',
        'os.putenv("CUDA_VISIBLE_DEVICES", "0")',
        'assert "CUDA_VISIBLE_DEVICES" in os.environ',
        'print("CUDA_VISIBLE_DEVICES" not in os.environ)',
        'print("CUDA_VISIBLE_DEVICES" in os.environ.keys())',
        'env["CUDA_VISIBLE_DEVICES"] = "0"',
        'env = {**os.environ, "CUDA_VISIBLE_DEVICES": "0"}',
        'env = dict(os.environ, CUDA_VISIBLE_DEVICES="0")',
        'os.environ.update({"CUDA_VISIBLE_DEVICES": "0"})',
        'os.environ.update(CUDA_VISIBLE_DEVICES="0")',
        'subprocess.run(command, env={"CUDA_VISIBLE_DEVICES": "0"})',
        'os.system("CUDA_VISIBLE_DEVICES=0 python train.py")',
        'os.system(f"CUDA_VISIBLE_DEVICES={gpu} python train.py")',
        'os.system("CUDA_VISIBLE_DEVICES={} python train.py".format(gpu))',
        'os.system("CUDA_VISIBLE_DEVICES=%d python train.py" % gpu)',
        'worker_env_ds["CUDA_VISIBLE_DEVICES"] = "0"',
        'variables = {"CUDA_VISIBLE_DEVICES": "0,1,2,4", "LOCAL_RANK": "1"}',
        'ray.init(runtime_env={"env_vars": {"CUDA_VISIBLE_DEVICES": "0"}})',
        'for key in ("RANK", "CUDA_VISIBLE_DEVICES"): os.environ.pop(key, None)',
        'for key in (key, "CUDA_VISIBLE_DEVICES"): os.environ.pop(key, None)',
        'for a in (b, "CUDA_VISIBLE_DEVICES"):\n    for b in [a]: os.environ.pop(b, None)',
    ],
)
def test_visible_devices(line: str) -> None:
    check_rewrite(
        f"import os\n{line}\n",
        f"import os\n{line.replace('CUDA_VISIBLE_DEVICES', 'ASCEND_RT_VISIBLE_DEVICES')}\n",
        codes_applied=["NPU220"],
    )


@pattern("P62")
def test_environ_under_another_name() -> None:
    check_rewrite(
        """
        from os import environ as e
        from os import getenv
        e["CUDA_VISIBLE_DEVICES"] = "0"
        visible = getenv('CUDA_VISIBLE_DEVICES')
        """,
        """
        from os import environ as e
        from os import getenv
        e["ASCEND_RT_VISIBLE_DEVICES"] = "0"
        visible = getenv('ASCEND_RT_VISIBLE_DEVICES')
        """,
    )


@pattern("P62")
def test_name_held_by_a_constant() -> None:
    check_rewrite(
        """
        import os
        KEY = "CUDA_VISIBLE_DEVICES"
        def restrict(ids):
            if KEY not in os.environ:
                os.environ[KEY] = ids
        """,
        """
        import os
        KEY = "ASCEND_RT_VISIBLE_DEVICES"
        def restrict(ids):
            if KEY not in os.environ:
                os.environ[KEY] = ids
        """,
    )


@pattern("P62", "T10")
def test_in_tests() -> None:
    check_rewrite(
        """
        import os
        from unittest import mock
        @mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0"})
        def test_one(monkeypatch):
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
            with mock.patch.dict("os.environ", {"CUDA_VISIBLE_DEVICES": ""}):
                pass
        """,
        """
        import os
        from unittest import mock
        @mock.patch.dict(os.environ, {"ASCEND_RT_VISIBLE_DEVICES": "0"})
        def test_one(monkeypatch):
            monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "0,1")
            monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES")
            with mock.patch.dict("os.environ", {"ASCEND_RT_VISIBLE_DEVICES": ""}):
                pass
        """,
    )


@pattern("P62", "T25")
@pytest.mark.parametrize("value", ["'GPU-1a2b'", "'MIG-GPU-1/0/0'", "'0, 1'", "'1,0'"])
def test_values_that_an_npu_does_not_read(value: str) -> None:
    check_noop(f'import os\nos.environ["CUDA_VISIBLE_DEVICES"] = {value}\n', open_codes=["NPU221"])


@pattern("P63")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CUDA_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING"),
        ("NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME"),
        ("NCCL_BLOCKING_WAIT", "TORCH_HCCL_BLOCKING_WAIT"),
        ("TORCH_NCCL_BLOCKING_WAIT", "TORCH_HCCL_BLOCKING_WAIT"),
        ("NCCL_ASYNC_ERROR_HANDLING", "TORCH_HCCL_ASYNC_ERROR_HANDLING"),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_NPU_MEMORY_CACHING"),
    ],
)
def test_documented_counterparts(old: str, new: str) -> None:
    check_rewrite(f'import os\nos.environ["{old}"] = "1"\n', f'import os\nos.environ["{new}"] = "1"\n')


@pattern("P63")
@pytest.mark.parametrize("value", ["expandable_segments:True", "max_split_size_mb:64,garbage_collection_threshold:0.8"])
def test_allocator_options_that_carry_over(value: str) -> None:
    check_rewrite(
        f'import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "{value}"\n',
        f'import os\nos.environ["PYTORCH_NPU_ALLOC_CONF"] = "{value}"\n',
    )


@pytest.mark.parametrize(("name", "blocks"), [("NCCL_IB_TC", "slow"), ("NCCL_DEBUG", "slow"), ("CUDA_HOME", "")])
def test_what_hccl_does_not_read_stops_nothing(name: str, blocks: str) -> None:
    result = check_noop(f'import os\nos.environ["{name}"] = "106"\n', open_codes=["NPU221"])
    assert [each.blocks for each in result.findings] == [blocks]


@pattern("P63")
@pytest.mark.parametrize("value", ['"backend:cudaMallocAsync"', '"max_split_size_mb:16"', "options", 'f"a{options}"'])
def test_allocator_options_to_look_at(value: str) -> None:
    check_noop(f'import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = {value}\n', open_codes=["NPU221"])


@pattern("P63")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("NCCL_DEBUG", "NPU221"),
        ("NCCL_BUFFSIZE", "NPU221"),
        ("CUDA_HOME", "NPU221"),
        ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "NPU221"),
        ("CUDA_DEVICE_ORDER", "NPU222"),
        ("NCCL_IB_DISABLE", "NPU222"),
        ("CUBLAS_WORKSPACE_CONFIG", "NPU222"),
        ("CUDA_DEVICE_MAX_CONNECTIONS", "NPU222"),
    ],
)
def test_no_counterpart_for_the_value(name: str, code: str) -> None:
    check_noop(f'import os\nos.environ["{name}"] = "1"\n', open_codes=[code])


@pattern("P63")
@pytest.mark.parametrize(
    "line", ['os.environ.pop("NCCL_DEBUG", None)', 'del os.environ["NCCL_ALGO"]', 'monkeypatch.delenv("CUDA_HOME")']
)
def test_removal_of_what_means_nothing(line: str) -> None:
    check_noop(f"import os\n{line}\n", open_codes=["NPU222"])


@pattern("P63")
def test_a_version_that_does_not_read_the_new_name() -> None:
    source = 'import os\nos.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"\n'
    check_noop(source, open_codes=["NPU221"], torch_version="2.1")
    check_rewrite(source, source.replace("NVML_BASED_CUDA", "HAL_BASED_NPU"), torch_version="2.9")


@pattern("P63", "T6")
@pytest.mark.parametrize("name", ["FORCE_CUDA", "USE_CUDA_GRAPH", "MY_NCCL_OPTION"])
def test_names_of_the_project_stay(name: str) -> None:
    check_noop(f'import os\nflag = os.getenv("{name}", "0") == "1"\n')


@pattern("P62", "T6")
@pytest.mark.parametrize(
    "line",
    [
        'names = ["CUDA_VISIBLE_DEVICES", "RANK"]',
        'config = {"CUDA_VISIBLE_DEVICES": "0"}',
        'env_info["CUDA_VISIBLE_DEVICES"] = shown',
        'launch(CUDA_VISIBLE_DEVICES="0")',
        'forward("CUDA_VISIBLE_DEVICES")',
        'class Env:\n    NCCL_DEBUG: str = "INFO"',
        'class Env:\n    CUDA_VISIBLE_DEVICES = "0"',
    ],
)
def test_names_in_uncertain_places_are_reported(line: str) -> None:
    check_noop(f"{line}\n", open_codes=["NPU223"])


@pattern("P63")
@pytest.mark.parametrize("line", ['data.append(("CUDA_HOME", str(home)))', 'env_info["CUDA_HOME"] = CUDA_HOME'])
def test_names_that_are_not_set(line: str) -> None:
    check_noop(f"{line}\n")


@pattern("P63")
@pytest.mark.parametrize(
    "field", ['nccl_debug: str = "INFO"', "NCCL_READY = 1", 'CUDA_HOME = "/usr"', "x = 1"]
)
def test_fields_that_are_no_variables(field: str) -> None:
    check_noop(f"class Env:\n    {field}\n")


@pattern("P62", "T28")
def test_prose_stays() -> None:
    check_noop(
        '''
        """Set CUDA_VISIBLE_DEVICES=0 before the start."""
        print("run it with CUDA_VISIBLE_DEVICES=0 python train.py")
        raise SystemExit("CUDA_VISIBLE_DEVICES is not set")
        '''
    )


@pattern("P62")
def test_command_in_a_variable() -> None:
    check_rewrite(
        """
        import subprocess
        def launch(gpu):
            command = f"CUDA_VISIBLE_DEVICES={gpu} python train.py"
            subprocess.run(command, shell=True)
        """,
        """
        import subprocess
        def launch(gpu):
            command = f"ASCEND_RT_VISIBLE_DEVICES={gpu} python train.py"
            subprocess.run(command, shell=True)
        """,
    )


@pattern("P62", "P70")
@pytest.mark.parametrize(
    "line",
    [
        'command = f"CUDA_VISIBLE_DEVICES={gpu} python train.py"\nprint(command)\nqueue.put(command)',
        'script = "#!/bin/bash\\nexport CUDA_VISIBLE_DEVICES=0\\npython train.py"\nopen("a.sh", "w").write(script)',
        'launch(["env", "CUDA_VISIBLE_DEVICES=0", "python"])',
        'COMMAND = "CUDA_VISIBLE_DEVICES=0 python train.py"',
    ],
)
def test_commands_that_go_elsewhere(line: str) -> None:
    check_noop(f"{line}\n", open_codes=["NPU221"])


@pattern("P63")
def test_two_variables_in_one_command() -> None:
    check_noop(
        'import os\nos.system("CUDA_VISIBLE_DEVICES=0 NCCL_DEBUG=INFO python train.py")\n', open_codes=["NPU221"]
    )


def test_what_a_call_of_something_else_gives_is_no_environment() -> None:
    source = 'import os\n\nsettings.load()["CUDA_VISIBLE_DEVICES"] = "0"\nprint(settings.load()["NCCL_DEBUG"])\n'
    check_noop(source, open_codes=["NPU223"])


@pytest.mark.parametrize("value", ["0", "{n}"])
def test_a_command_that_sets_a_variable(value: str) -> None:
    line = f'import os\n\nos.system(f"%s={value} python train.py")\n'
    check_rewrite(line % "CUDA_VISIBLE_DEVICES", line % "ASCEND_RT_VISIBLE_DEVICES", codes_applied=["NPU220"])


def test_a_command_that_sets_a_variable_to_what_has_no_counterpart() -> None:
    check_noop('import os\n\nos.system("CUDA_VISIBLE_DEVICES=GPU-1f python train.py")\n', open_codes=["NPU221"])


def test_a_list_of_names_that_has_the_npus_stays() -> None:
    names = '["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES"]'
    result = migrate(f"NAMES = {names}\n")
    assert not result.changed and not [each for each in result.findings if each.open]
    alone = migrate('NAMES = ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "HOME"]\n')
    assert alone.changed or [each for each in alone.findings if each.open]


@pytest.mark.parametrize(
    "line",
    [
        "parser.add_argument('--gpus', help='Use CUDA_VISIBLE_DEVICES=0,1 to choose the cards')",
        "flags.DEFINE_string('gpus', None, 'The cards to use. Set CUDA_VISIBLE_DEVICES=0,1 to choose them before.')",
        "NOTE = 'The cards are numbered from 0. Set CUDA_VISIBLE_DEVICES=0,1 to choose. The others are not seen.'",
    ],
)
def test_text_for_people_sets_nothing(line: str) -> None:
    check_noop(f"{line}\n", open_codes=[])
