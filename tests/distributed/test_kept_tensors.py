"""Tables and queues that are kept over batches: their rows are shared, or a remark names them."""

from __future__ import annotations

import textwrap

import pytest

from tests.distributed.test_pairs import distributed, script
from tests.harness import codes

LOADER = "loader = DataLoader(dataset, batch_size=8, shuffle=True)"
LOOP = """
for epoch in range(3):
    for x, y, index in loader:
        loss = model(x)
        {}
        loss.mean().backward()
        optimizer.step()
"""
ELR = """
class ELR(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        {made}

    def forward(self, {given}, p):
        {write}
        return p

criterion = ELR(99)
"""


def looped(write: str, table: str = "table = torch.zeros(99)") -> str:
    body = textwrap.indent(write, " " * 8).lstrip()
    return script(head="import numpy as np", model=f"{table}\nmodel = net().cuda()", loop=LOOP.format(body))


def in_a_loss(write: str, given: str = "index", made: str = "self.table = torch.zeros(n)") -> str:
    head = ELR.format(made=made, given=given, write=write)
    return script(head=head, loop=LOOP.format("loss = criterion(index, loss)"))


def shared(source: str) -> tuple[str, bool]:
    """The call that shares rows (empty where there is none), and whether a remark names a memory."""
    result = distributed(source)
    assert b"npu_port.start()" in result.data
    lines = [line.strip() for line in result.data.decode().splitlines()]
    calls = [line.removeprefix("npu_port.share_rows") for line in lines if "share_rows" in line]
    assert len(calls) < 2
    return "".join(calls), "NPU353" in codes(result, applied=False)


@pytest.mark.parametrize(
    ("write", "table", "call"),
    [
        ("table[index] = loss.detach()", "table = torch.zeros(99)", "(table, index)"),
        ("table[index] = loss.detach().cpu().numpy()", "table = np.zeros(99)", "(table, index)"),
        ("table[index.cpu()] = loss.detach()", "table = torch.zeros(99).cuda()", "(table, index)"),
        ("table[y] = 0.9 * table[y] + 0.1 * loss.detach()", "table = torch.zeros(9)", "(table, y)"),
        ("table.data[index] = loss.detach()", "table = torch.zeros(99)", "(table.data, index)"),
        ("table[index] += 1", "table = torch.zeros(99)", "(table, index)"),
        ("table.index_copy_(0, index, loss.detach())", "table = torch.zeros(99)", "(table, index)"),
        ("table.index_copy_(0, index.view(-1), loss.detach())", "table = torch.zeros(99)", "(table, index)"),
        ("table[index.numpy(), epoch] = loss.detach().cpu().numpy()", "table = np.zeros((99, 3))", "(table, index)"),
        ("for each, rows in ((table, index), (table, y)):\n    each[rows] = loss.detach()", "table = torch.zeros(99)",
         "(each, rows)"),
    ],
)
def test_rows_by_the_number_of_a_sample(write: str, table: str, call: str) -> None:
    assert shared(looped(write, table)) == (call, False)


def test_rows_that_a_loss_keeps() -> None:
    write = "self.table[index] = p.detach()"
    assert shared(in_a_loss(write)) == ("(self.table, index)", False)
    assert shared(in_a_loss(write, made='self.register_buffer("table", torch.zeros(n))')) == (
        "(self.table, index)",
        False,
    )


def test_a_memory_whose_rows_are_shared_is_no_remark() -> None:
    made, write = 'self.register_buffer("memory", torch.zeros(n))', "self.memory.index_copy_(0, index, p.detach())"
    assert shared(in_a_loss(write, made=made)) == ("(self.memory, index)", False)


def test_a_table_of_one_epoch_is_kept_over_its_batches() -> None:
    found = looped("table[index] = loss.detach()", "").replace(
        "    for x, y", "    table = torch.zeros(99)\n    for x, y"
    )
    assert shared(found) == ("(table, index)", False)


@pytest.mark.parametrize(
    "write",
    [
        "if loss.max() > 3:\n    table[index] = loss.detach()",  # not on all ranks
        "table.index_add_(0, index, loss.detach())",
        "table.index_copy_(1, index, loss.detach())",
        "table.scatter_(0, index, loss.detach())",
        "table[epoch, index] = loss.detach()",
        "table[y, loss.argmax(1)] += 1",
    ],
)
def test_rows_that_are_left_to_the_reader(write: str) -> None:
    assert shared(looped(write)) == ("", True)


@pytest.mark.parametrize(
    ("write", "table"),
    [
        ("table = torch.zeros(8)\ntable[index] = loss.detach()", ""),  # made for each batch
        ("mask = loss > 1\ntable[mask] = 0", "table = torch.zeros(8)"),  # no number of a sample
        ("table[epoch] = loss.mean().item()", "table = torch.zeros(3)"),
        ("table[0] = loss.mean()", "table = torch.zeros(3)"),
        ("table[:] = 0", "table = torch.zeros(3)"),
        ("table[index] = loss", "table = {}"),
        ("table[index] = loss", "table = net.table()"),  # not known to be a tensor
        ("loss = table[index]", "table = torch.zeros(99)"),
        ("for each, rows in ((table, mask), (x, index)):\n    each[rows[0]] = loss", "table = net.table()"),
        ("table[0, epoch] = loss.mean()", "table = torch.zeros(3, 3)"),
        ("x[index] = 0", ""),
    ],
)
def test_what_is_no_table_of_samples_stays(write: str, table: str) -> None:
    assert shared(looped(write, table)) == ("", False)


@pytest.mark.parametrize(
    ("write", "given", "made"),
    [
        ("self.table[index] = p", "index", "self.table = []"),
        ("self.table[mask] = p", "mask", "self.table = torch.zeros(n)"),
        ("table = torch.zeros(9)\n        table[index] = p", "index", "pass"),
    ],
)
def test_what_a_loss_keeps_otherwise_stays(write: str, given: str, made: str) -> None:
    assert shared(in_a_loss(write, given, made)) == ("", False)


def test_a_table_that_an_evaluation_fills_is_the_same_on_all_ranks() -> None:
    tail = "valid = DataLoader(net.valid)\nwith torch.no_grad():\n    for x, index in valid:\n"
    tail += "        table[index] = model(x)"
    assert shared(looped("pass") + tail) == ("", False)


def test_what_a_dataset_keeps_is_that_of_its_worker() -> None:
    head = """
        class Points(torch.utils.data.Dataset):
            def __init__(self):
                self.seen = torch.zeros(99)

            def __getitem__(self, index):
                self.seen[index] = 1
                return index
    """
    loader = "loader = DataLoader(Points(), batch_size=8, shuffle=True)"
    assert shared(script(head=head, loader=loader, loop=LOOP.format("pass"))) == ("", False)


def test_what_is_chosen_by_a_shared_table_is_the_same_on_all_ranks() -> None:
    source = looped("table[index] = loss.detach()").replace(
        "        optimizer.step()\n", "        optimizer.step()\n    if table.mean() < 0.1:\n        break\n"
    )
    assert shared(source) == ("(table, index)", False)


@pytest.mark.parametrize(
    ("write", "remarked"),
    [
        ("queue[place:place + 8] = loss.detach()", True),
        ("queue[:, place:place + 8] = loss.detach()", True),
        ("queue[:] = 0", False),
        ("part = torch.zeros(9)\nqueue[0] = part[:3]", False),
    ],
)
def test_a_queue_that_is_a_plain_tensor(write: str, remarked: bool) -> None:
    assert shared(looped(write, "place = 0\nqueue = torch.zeros(99)")) == ("", remarked)


@pytest.mark.parametrize(
    ("write", "remarked"),
    [
        ("self.keys = torch.cat([self.keys, p])[-99:]", True),
        ("self.keys = torch.cat([p, self.keys[:-8]])", True),
        ("self.keys = torch.cat([p, p])[-99:]", False),
        ("self.keys = self.keys[-99:]", False),
    ],
)
def test_a_queue_that_is_joined_anew(write: str, remarked: bool) -> None:
    assert shared(in_a_loss(write, made="self.keys = torch.zeros(n)")) == ("", remarked)


WEIGHED = "\nloss = loss * level"
MOVED = "level = 0.9 * level + 0.1 * {}"


def stated(source: str) -> tuple[list[str], bool]:
    """What all ranks take the mean of, and whether a remark names a state that each rank makes for itself."""
    result = distributed(source)
    assert b"npu_port.start()" in result.data
    parts = result.data.decode().split("npu_port.mean_over_ranks(")[1:]
    told = any(each.code == "NPU353" and " is kept over batches" in each.message for each in result.findings)
    return [part.splitlines()[0] for part in parts], told


@pytest.mark.parametrize(
    ("write", "mean"),
    [
        (MOVED.format("loss.mean().item()"), "loss.mean().item())"),
        (MOVED.format("loss.detach().mean(dim=0)"), "loss.detach().mean(dim=0))"),
        ("level += 0.1 * (loss.mean().item())", "loss.mean().item()))"),
        ("part = loss.detach().mean()\nlevel = max(level, part)", "part))"),
        ("with torch.no_grad():\n    level = 0.9 * level.detach() + loss.mean() / 10", "loss.mean()) / 10"),
    ],
)
def test_a_state_that_is_moved_by_means_is_the_same_on_all_ranks(write: str, mean: str) -> None:
    assert stated(looped(write + WEIGHED, "level = 0.5")) == ([mean], False)


@pytest.mark.parametrize(("key", "gathered"), [("y[0]", True), ('"level"', False)])
def test_values_under_keys_of_a_share_are_gathered_with_their_keys(key: str, gathered: bool) -> None:
    write = f"kept[{key}] = 0.9 * kept[{key}] + loss.std().item()\nloss = loss * kept[{key}]"
    helps = [each.help for each in distributed(looped(write, "kept = {}")).findings if each.code == "NPU353"]
    assert ["all_gather_object" in each for each in helps] == [gathered]


def test_a_state_that_the_first_batch_makes() -> None:
    write = "if level is None:\n    level = loss.mean().item()\nelse:\n    " + MOVED.format("loss.mean().item()")
    assert stated(looped(write + WEIGHED, "level = None")) == (["loss.mean().item())", "loss.mean().item())"], False)


@pytest.mark.parametrize(
    "write",
    [
        MOVED.format("loss.std().item()"),
        MOVED.format("loss.detach().mean(0)"),  # NumPy's arrays have no mean over the ranks
        "level = 0.9 * level.detach() + 0.1 * loss.mean()",  # the gradient of this batch would be lost
        "level.mul_(0.9).add_(loss.detach().sum(0))",
        "level += (loss > 1).sum().item()",
        "level, count = level + loss.detach().sum(), count + 1",
        "if loss.mean() > 1:\n    level = level * 2",
        "if y.sum() > 1:\n    " + MOVED.format("loss.mean().item()"),
    ],
)
def test_a_state_of_one_rank_that_weighs_its_losses_is_a_remark(write: str) -> None:
    found, told = stated(looped(write + WEIGHED, "level = 0.5\ncount = 0"))
    assert told and not any("level" in each for each in found)


@pytest.mark.parametrize(
    "write",
    [
        MOVED.format("loss.std().item()") + "\nprint(level)",  # only shown
        MOVED.format("loss.std().item()") + "\nkept.append(level)",
        "level = 0.5\nlevel = level + loss.std().item()" + WEIGHED,  # of this batch alone
        "level = level + 1" + WEIGHED,
        "level = 0.9 * level + epoch" + WEIGHED,
        "x = x + torch.randn_like(x)\nloss = model(x)",  # the loop makes it anew
        "loss += loss.std()\nloss = loss + loss.var()",
        "for each in range(3):\n    level = 0\n    level = level + loss.var()" + WEIGHED,
        "level = model(level)" + WEIGHED,  # spoken of as what is carried on
    ],
)
def test_what_no_batch_gets_from_the_one_before_is_no_remark(write: str) -> None:
    assert not stated(looped(write, "level = 0.5\nkept = []"))[1]


def centred(moved: str) -> str:
    write = f"self.centre = self.centre * 0.9 + {moved} * 0.1\n        p = p - self.centre"
    return ELR.format(made="self.centre = 0", given="index", write=write)


@pytest.mark.parametrize(
    ("moved", "mean", "told"),
    [
        ("p.mean().item()", ["p.mean().item()) * 0.1"], False),
        ("p.detach().sum(0)", [], True),
        ("len(p)", [], False),
    ],
)
def test_a_state_of_a_loss(moved: str, mean: list[str], told: bool) -> None:
    assert stated(script(head=centred(moved), loop=LOOP.format("loss = criterion(index, loss)"))) == (mean, told)


def test_a_loss_that_some_ranks_call_takes_no_mean() -> None:
    loop = LOOP.format("loss = criterion(index, loss) if y.sum() > 3 else loss")
    assert stated(script(head=centred("p.mean().item()"), loop=loop)) == ([], True)


def test_the_state_of_an_environment_is_its_own() -> None:
    head = """
        class Track:
            def reset(self):
                self.at = torch.randn(3)
                return self.at

            def step(self, action):
                self.at = self.at + action + torch.randn(3)
                return self.at, 1.0, False

        class Statistics:
            def __init__(self):
                self.mean = 0

            def update(self, x):
                self.mean = self.mean + 0.1 * (x.sum() - self.mean)

        track, statistics = Track(), Statistics()
        state = track.reset()
    """
    loop = """
        for step in range(9):
            {}
            loss = model((state - statistics.mean).cuda())
            state, reward, done = track.step(loss.detach().cpu())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    assert not stated(script(head=head, loop=loop.format("pass")))[1]
    assert stated(script(head=head, loop=loop.format("statistics.update(state)")))[1]
