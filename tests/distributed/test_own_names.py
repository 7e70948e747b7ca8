"""Paths of which each process has its own: temporary folders, names after the clock, random names."""

from __future__ import annotations

import textwrap

import pytest

from tests.distributed.test_pairs import distributed, left, script

TEMPORARY = "import json, os, pickle, tempfile\nfrom pathlib import Path\n\nfolder = tempfile.mkdtemp()\n"


def body(source: str) -> str:
    return textwrap.dedent(source).strip("\n") + "\n"


@pytest.mark.parametrize(
    "writes",
    [
        'torch.save([1], os.path.join(folder, "x.pt"))',
        'with open(folder + "/x.txt", "w") as f:\n    f.write("1")',
        'with open(f"{folder}/x.json", "w") as f:\n    json.dump([1], f)',
        'f = open(os.path.join(folder, "x"), "w")\njson.dump([1], f)',
        '(Path(folder) / "x").write_text("1")',
        'root = Path(folder)\n(root / "x").write_text("1")',
        'def write(at):\n    torch.save([1], at)\n\nwrite(folder + "/x")',
        'def path():\n    return os.path.join(folder, "x")\n\ntorch.save([1], path())',
        'with tempfile.TemporaryDirectory() as d:\n    torch.save([1], d + "/x")',
        "with tempfile.NamedTemporaryFile() as d:\n    torch.save([1], d.name)",
        'os.replace("x", folder + "/y")',
    ],
)
def test_each_rank_writes_to_its_own_temporary_folder(writes: str) -> None:
    result = distributed(script(head=TEMPORARY, tail=writes))
    assert body(writes) in result.data.decode() and not left(result)


@pytest.mark.parametrize(
    "writes",
    [
        "print(folder)",
        'torch.save([folder], "x.pt")',
        'os.replace(folder + "/x", "y")',
        'torch.save({"at": folder}, "runs" + "/x.pt")',
    ],
)
def test_rank_0_alone_writes_what_stands_elsewhere(writes: str) -> None:
    result = distributed(script(head=TEMPORARY, tail=writes))
    assert f"if npu_port.is_first():\n    {writes}\n" in result.data.decode() and not left(result)


def test_a_function_that_writes_to_either_is_left() -> None:
    tail = 'def write(at):\n    torch.save([1], at)\n\nwrite(folder + "/x")\nwrite("x.pt")'
    assert left(distributed(script(head=TEMPORARY, tail=tail))) == ["NPU344"]


CLOCK = "import datetime, os, time, uuid\n"


@pytest.mark.parametrize(
    ("name", "writes"),
    [
        ('time.strftime("%H%M%S")', 'torch.save([1], os.path.join("runs", name))'),
        ('os.path.join("runs", time.strftime("%H%M%S"))', 'torch.save([1], name + "/x")'),
        ('datetime.datetime.now().strftime("%H%M%S")', "os.makedirs(name, exist_ok=True)"),
        ("uuid.uuid4().hex", 'where = "runs/" + name\nwith open(where, "w") as f:\n    f.write("1")'),
        ('f"runs/{int(time.time())}"', 'def path():\n    return name + "/x"\n\ntorch.save([1], path())'),
    ],
)
def test_rank_0_names_what_all_read(name: str, writes: str) -> None:
    result = distributed(script(head=CLOCK, model=f"name = {name}\nmodel = net().cuda()", tail=writes))
    assert f"\nname = npu_port.of_first({name})\n" in result.data.decode() and not left(result)


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("log = net.Log('runs/' + time.strftime('%H'))\ntorch.save([1], log)",
         "net.Log(npu_port.of_first('runs/' + time.strftime('%H')))"),
        ("runs = sorted(glob.glob('runs/*'))\ntorch.save([1], f'runs/{len(runs)}')",
         "runs = npu_port.of_first(sorted(glob.glob('runs/*')))"),
        ("images = sorted(glob.glob('data/*'))\nnet.read(images)", "images = sorted(glob.glob('data/*'))"),
    ],
)  # fmt: skip
def test_the_name_of_an_object_and_what_is_there(line: str, written: str) -> None:
    result = distributed(script(head=f"import glob\n{CLOCK}", tail=line))
    assert written in result.data.decode()


def test_a_name_that_not_all_ranks_choose() -> None:
    named = 'name = "last"\nif torch.rand(1) > 0.5:\n    name = time.strftime("%H")\ntorch.save([1], name)'
    named = textwrap.indent(named, " " * 4)
    loop = f"for epoch in range(3):\n    for x in loader:\n        model(x).backward()\n{named}"
    assert left(distributed(script(head=CLOCK, loop=loop))) == ["NPU344"]


@pytest.mark.parametrize(
    "tail",
    [
        "print(time.time() - begin)",
        'torch.save({"time": begin}, "x.pt")',
        'torch.save([1], f"x-{time.time()}.pt")',
        'if time.time() - begin > 9:\n    print("slow")',
    ],
)
def test_a_clock_that_names_nothing_stays(tail: str) -> None:
    result = distributed(script(head=CLOCK, model="begin = time.time()\nmodel = net().cuda()", tail=tail))
    assert "\nbegin = time.time()\n" in result.data.decode() and not left(result)


RESUMED = """
    import time

    import torch
    from torch.utils.data import DataLoader

    from project import dataset, net


    def main():
        name = {0}
        model = net().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.save({{}}, {1})
        first = torch.load(name + "/last.pt")["epoch"]
        for epoch in range(first, 9):
            for x in DataLoader(dataset, batch_size=8, shuffle=True):
                model(x).backward()
                optimizer.step()


    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("made", ['time.strftime("%H%M")', '"runs" + str(time.time())', '"runs"'])
def test_what_is_loaded_under_a_name_of_rank_0_is_alike(made: str) -> None:
    result = distributed(body(RESUMED.format(made, 'name + "/config.pt"')))
    assert b"npu_port.start()" in result.data
    assert (f"name = npu_port.of_first({made})\n".encode() in result.data) is ("time." in made)


@pytest.mark.parametrize("made", ["str(time.time())", "str(time.time() + 1)"])
def test_a_clock_that_names_nothing_still_parts_the_ranks(made: str) -> None:
    result = distributed(body(RESUMED.format(made, '"config.pt"')))
    assert b"npu_port" not in result.data and "NPU332" in left(result)


BEFORE = """
    import argparse
    import os
    import time

    import torch
    from torch.utils.data import DataLoader

    from project import dataset, net

    {top}


    def parse():
        args = argparse.ArgumentParser().parse_args()
        {parsed}
        return args


    def main():
        {first}
        args = parse()
        model = net().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in DataLoader(dataset, batch_size=8, shuffle=True):
            model(x).backward()
            optimizer.step()
        torch.save([1], os.path.join({name}, "x.pt"))


    if __name__ == "__main__":
        main()
"""
START = "npu_port.start()"


@pytest.mark.parametrize(
    ("given", "name", "before"),
    [
        ({"top": "run = time.strftime('%H')"}, "run", "if __name__ == '__main__':\n    npu_port.start()\n\nrun = "),
        ({"first": "run = str(time.time())"}, "run", "    npu_port.start()\n    main()"),
        ({"parsed": "args.run = str(os.getpid())"}, "args.run", "    npu_port.start()\n    main()"),
    ],
)
def test_the_processes_know_each_other_before_one_names_a_folder(given: dict[str, str], name: str, before: str) -> None:
    parts = {"top": "", "parsed": "", "first": "", **given}
    result = distributed(body(BEFORE.format(name=name, **parts)))
    found = result.data.decode()
    assert not left(result) and found.count("npu_port.of_first(") == 1
    assert before.replace("'", '"') in found.replace("'", '"')


@pytest.mark.parametrize("top", ["begin = time.time()", "run = os.environ['RUN']"])
def test_what_names_no_folder_moves_no_start(top: str) -> None:
    parts = {"top": top, "parsed": "", "first": "", "name": "'runs'"}
    found = distributed(body(BEFORE.format(**parts))).data.decode()
    assert f"{top}\n" in found and found.index(START) > found.index("def main")
