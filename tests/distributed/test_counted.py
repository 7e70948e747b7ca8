"""Counts and lists that are filled over the share of one rank, and shown as if they were of all data."""

from __future__ import annotations

import re
import textwrap

import pytest

from tests.distributed.test_pairs import codes, distributed, script

BEFORE = "import numpy as np\nseen, correct, counts, kept, ids = 0, 0, torch.zeros(9), [], set()\n"
FILL = {
    "seen": "seen += len(x)",
    "correct": "correct += model(x).eq(x).sum().item()",
    "counts": "counts[x] += 1",
    "kept": "kept.append(x)",
    "ids": "ids.update(x.tolist())",
}


def remarks(fill: str, shown: str, loader: str = "loader = DataLoader(dataset, 8, True)") -> list[str]:
    body = textwrap.indent(f"model(x).backward()\n{fill}", " " * 8)
    loop = f"for epoch in range(3):\n    for x in loader:\n{body}\n{textwrap.indent(shown, ' ' * 4)}"
    result = distributed(script(head=BEFORE, loader=loader, loop=loop))
    return [code for code in codes(result, applied=False) if code == "NPU346"]


@pytest.mark.parametrize("name", FILL)
@pytest.mark.parametrize("shown", ["print({0})", 'print(f"{{epoch}} {{len({0})}}")', 'torch.save({{"x": {0}}}, "x.pt")',
                                   "late = ({0} == 0).sum()\nprint(late)", "print('%s' % {0})"])  # fmt: skip
def test_what_is_of_the_share_of_one_rank(name: str, shown: str) -> None:
    assert remarks(FILL[name], shown.format(name)) == ["NPU346"]


@pytest.mark.parametrize(
    ("fill", "shown"),
    [
        (FILL["correct"] + "\n" + FILL["seen"], "print(correct / seen)"),
        (FILL["correct"] + "\n" + FILL["seen"], 'acc = correct / seen\nprint(f"{acc}")'),
        (FILL["kept"], "print(np.mean(kept))"),
        (FILL["kept"], "print(sum(kept) / len(kept))"),
        (FILL["seen"], "print(epoch)"),
        ("seen += 1", "print(seen)"),
        ("seen = 0\nseen += len(x)\nprint(seen)", "pass"),
        (FILL["correct"], "if correct > 3:\n    print('good')"),
        ("loss = model(x).mean()\nkept.append(loss.item())", "print(kept[-1])"),
    ],
)
def test_what_is_of_all_ranks_or_a_ratio(fill: str, shown: str) -> None:
    assert remarks(fill, shown) == []


def test_data_that_all_ranks_go_through() -> None:
    assert remarks(FILL["seen"], "print(seen)", loader="loader = dataset") == []


@pytest.mark.parametrize(
    ("fill", "told"),
    [
        ("seen += len(x)\nnet.alpha = min(1.0, seen / 192)", True),
        ("seen += x.size(0)\nif seen > 192:\n    net.grow()", True),
        ("seen += x.shape[0]\nnet.alpha = seen / net.images", True),
        ("seen += len(x)\nif seen % 192 == 0:\n    net.save()", True),
        ("seen += 1\nnet.alpha = seen / 192", False),
        ("seen += 1\nif seen % 192 == 0:\n    net.save()", False),
        ("seen += len(x)\nrate = correct / seen", False),
        ("seen += len(x)\nspeed = seen / elapsed", False),
        ("seen = len(x)\nnet.alpha = seen / 192", False),
    ],
)
def test_a_count_of_samples_that_decides(fill: str, told: bool) -> None:
    assert remarks(fill, "pass") == ["NPU346"] * told


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        ("(model(x).sum() / x.abs().sum()).backward()", True),
        ("def judged(x):\n    return model(x).sum() / x.abs().sum()\njudged(x).backward()", True),
        ("loss = torch.nn.functional.cross_entropy(model(x), x, weight=net.weights)\nloss.backward()", True),
        ("loss = torch.nn.functional.cross_entropy(model(x), x, weight=None)\nloss.backward()", False),
        ("torch.nn.functional.cross_entropy(model(x), x, weight=net.w, reduction='none')[0].backward()", False),
        ("(model(x).sum() / 8).backward()", False),
        ("(model(x).sum() / len(x)).backward()", False),
        ("loss = model(x).sum()\n(loss / loss.detach()).backward()", False),
    ],
)
def test_a_loss_that_is_divided_by_a_count_of_its_batch(loss: str, told: bool) -> None:
    body = textwrap.indent(loss + "\noptimizer.step()", " " * 4)
    result = distributed(script(loop=f"for x in loader:\n{body}"))
    assert ("NPU346" in codes(result, applied=False)) is told


@pytest.mark.parametrize(
    ("loss", "written"),
    [
        ("(model(x).sum() / (x != 0).sum()).backward()", "/ npu_port.mean_over_ranks((x != 0).sum())"),
        ("n = int((x != 0).sum())\nloss = model(x).sum() / n\nloss.backward()", "/ npu_port.mean_over_ranks(n)"),
        ("mask = (x > 0).float()\n(model(x).sum() / mask.sum()).backward()", "/ npu_port.mean_over_ranks(mask.sum())"),
        (
            "def judged(x):\n    return model(x).sum(), x.ne(0).sum()\ntotal, n = judged(x)\n(total / n).backward()",
            "total / npu_port.mean_over_ranks(n)",
        ),
    ],
)
def test_ranks_divide_by_the_count_of_all(loss: str, written: str) -> None:
    assert written in looped(loss)
    no_count = re.sub(r"x\.ne\(0\)|\(x != 0\)|\(x > 0\)", "x", loss)
    assert "mean_over_ranks" not in looped(no_count)


def looped(inner: str, head: str = BEFORE, after: str = "pass") -> str:
    """The loop over batches with some lines, migrated."""
    body = textwrap.indent(f"{inner}\noptimizer.step()", " " * 8)
    loop = f"for epoch in range(3):\n    for x in loader:\n{body}\n{textwrap.indent(after, ' ' * 4)}"
    return distributed(script(head=head, loop=loop)).data.decode()


TRAINED = "y = model(x)\ny.mean().backward()\n"


@pytest.mark.parametrize(
    ("figure", "written"),
    [
        ("seen = 0.9 * seen + 0.1 * y.std().mean().item()", "0.1 * npu_port.mean_over_ranks(y.std().mean()).item()"),
        ("kept.append((y > 0).float().mean().item())", "npu_port.mean_over_ranks((y > 0).float().mean()).item()"),
        ("kept.append(100 * (y > 0).sum().item() / len(x))", "mean_over_ranks(100 * (y > 0).sum().item() / len(x))"),
        ("print(y.mean().item())", "mean_y = npu_port.mean_over_ranks(y.mean())"),
        ("if epoch > 1:\n    print(float(y.mean() - 1))", "mean_y = npu_port.mean_over_ranks(y.mean() - 1)"),
        ("gap = y.mean() - 0.5 * x.mean()\nkept.append(gap.item())", "npu_port.mean_over_ranks(gap).item()"),
        ("parts = [x.mean(), y.mean()]\nkept.append(parts[0].item())", "npu_port.mean_over_ranks(parts[0]).item()"),
        ("error = torch.nn.MSELoss()\nkept.append(error(y, x).item())", "npu_port.mean_over_ranks(error(y, x)).item()"),
        ("def gap(y):\n    return y.mean() - 1\nkept.append(gap(y).item())", "npu_port.mean_over_ranks(gap(y)).item()"),
    ],
)
def test_a_mean_of_the_batch_is_that_of_all_ranks(figure: str, written: str) -> None:
    assert written in looped(TRAINED + figure)


@pytest.mark.parametrize(
    "figure",
    [
        "print(model.weight.mean().item())",  # the same on all ranks
        "kept.append(torch.ones(3).mean().item())",
        "print(y.shape)",
        "seen = y.max().item()",
        "kept.append(y.mean())",
        "if y.std() > 1: print('far')",
    ],
)
def test_no_mean_is_taken(figure: str) -> None:
    assert "mean_over_ranks" not in looped(TRAINED + figure)


@pytest.mark.parametrize(
    ("figure", "told"),
    [
        ("print(y.max().item())", True),
        ("top = y.max().item()\nprint(f'{top:.3f}')", True),
        ("top = y.max().item()", False),
        ("kept.append(y.mean().item())\nprint(kept)", False),
    ],
)
def test_a_figure_that_is_no_mean_is_told_where_it_is_shown(figure: str, told: bool) -> None:
    assert remarks(TRAINED.partition("y.mean")[0] + figure, "pass") == ["NPU346"] * told


@pytest.mark.parametrize(
    ("shown", "written"),
    [
        ("print(f'{loss:.3f}')", "print(f'{mean_loss:.3f}')"),
        ("print('%d %f' % (epoch, loss))", "(epoch, mean_loss)"),
        ("print('{:.3f}'.format(loss))", ".format(mean_loss)"),
        ("print(epoch, loss)", "print(epoch, mean_loss)"),
    ],
)
def test_a_loss_is_shown_without_its_number_taken_out(shown: str, written: str) -> None:
    assert written in looped(f"loss = model(x).mean()\nloss.backward()\n{shown}")


def test_a_sum_and_its_count_are_summed_where_they_are_read() -> None:
    loss = "words = (x != 0).sum()\ntotal = model(x).sum()\n(total / words).backward()\n"
    text = looped(loss + "seen += words.item()\nkept.append(total.item())")
    assert "sum_words = npu_port.sum_over_ranks(words)" in text and "seen += sum_words.item()" in text
    assert "sum_total = npu_port.sum_over_ranks(total)" in text and "kept.append(sum_total.item())" in text


@pytest.mark.parametrize(
    ("count", "told"),
    [
        ("net.alpha = min(1.0, seen / 192)", True),
        ("if seen > 192:\n    net.grow()", True),
        ("if seen % 192 == 0:\n    net.save()", False),
        ("kept.append(seen)", False),
    ],
)
def test_a_count_of_steps_that_decides_is_a_remark(count: str, told: bool) -> None:
    body = textwrap.indent(f"model(x).backward()\noptimizer.step()\nseen += 1\n{count}", " " * 4)
    result = distributed(script(head=BEFORE, loop=f"for x in loader:\n{body}"))
    counted = [each.message for each in result.findings if "counts the steps of one rank" in each.message]
    assert len(counted) == told


@pytest.mark.parametrize(
    ("fill", "shown", "written"),
    [
        (FILL["correct"] + "\n" + FILL["seen"], "print(correct / seen)", "mean_correct = {0}(correct / seen)"),
        (FILL["correct"] + "\nseen += x.numel()", "acc = 100. * correct / seen", "acc = {0}(100. * correct / seen)"),
        (FILL["correct"], "rate = correct / len(loader) if seen else 0", "rate = {0}(correct / len(loader)) if seen"),
        ("kept.append(net.judge(x))", "print(np.mean(kept))", "mean_kept = {0}(np.mean(kept))"),
        ("kept.append(net.judge(x))", "rate = sum(kept) / len(kept)", "rate = {0}(sum(kept) / len(kept))"),
        # What all ranks count, or have alike, stays.
        ("seen += 1", "rate = seen / len(loader)", "rate = seen / len(loader)"),
        ("loss = model(x).mean()\nkept.append(loss.item())", "rate = np.mean(kept)", "rate = np.mean(kept)"),
        (FILL["correct"], "rates = [correct / len(loader) for _ in ids]", "[correct / len(loader) for _ in ids]"),
    ],
)
def test_the_mean_of_a_share_is_that_of_all_ranks(fill: str, shown: str, written: str) -> None:
    assert written.format("npu_port.mean_over_ranks") in looped(f"{TRAINED}{fill}", after=shown)


METER = """
class Meter(object):
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1, **others):
        self.total += value * n
        self.count += n

    def close(self):
        return 3

    @property
    def avg(self):
        return self.total / self.count


meter, other = Meter(), Meter()
"""


@pytest.mark.parametrize(
    ("fill", "shown", "told"),
    [
        ("meter.update(net.judge(x))", "print(meter.avg)", True),
        ("meter.update(1, judged=net.judge(x))", 'print(f"{meter}")', True),
        ("meter.update(**net.judge(x))", "stats = {'avg': meter.avg}\nprint(stats)", True),
        ("meter.update(net.judge(x))", "net.file.write('%s' % meter.avg)", True),
        ("meter.update(net.judge(x))", "net.writer.add_scalar('x', meter.avg, epoch)", True),
        ("meter.update(net.judge(x))", "save_image(meter.avg, 'x.png')", False),
        ("meter.update(net.judge(x))", "print(other.avg)", False),
        ("loss = model(x).mean()\nmeter.update(loss.item())", "print(meter.avg)", False),
        ("meter.update(epoch)", "print(meter.avg)", False),
    ],
)
def test_what_an_object_holds_of_one_rank_is_told(fill: str, shown: str, told: bool) -> None:
    source = script(head=METER, loop=f"for epoch in range(3):\n    for x in loader:\n        model(x).backward()\n"
                    f"{textwrap.indent(fill, ' ' * 8)}\n{textwrap.indent(shown, ' ' * 4)}")  # fmt: skip
    assert ("NPU346" in codes(distributed(source), applied=False)) is told


@pytest.mark.parametrize(
    ("count", "mean"), [("sum(len(t) for t in y)", True), ("len(y)", False), ("len([*y])", False), ("self.n", False)]
)
def test_a_loss_in_a_forward_pass_is_divided_by_the_count_of_all(count: str, mean: bool) -> None:
    forward = f"    def forward(self, x, y):\n        n = {count}\n        return x.sum() / n\n"
    loop = "for x, y in loader:\n    loss = model(x, y)\n    loss.backward()\n    optimizer.step()"
    source = script(head=f"class Net(torch.nn.Module):\n{forward}", model="model = Net().cuda()", loop=loop)
    assert (b"x.sum() / npu_port.mean_over_ranks(n)" in distributed(source).data) is mean


@pytest.mark.parametrize(
    ("step", "made", "told"),
    [
        ("self.step_count += 1\n{0}net.alpha = min(1.0, (self.step_count + 1) / net.warmup)", "", True),
        ("self.step_count += 1\n{0}net.alpha = self.step_count", "", False),
        ("schedule.step()", "torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=900)", True),
        ("schedule.step()", "torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=3 * len(loader))", False),
    ],
)
def test_a_schedule_by_steps_is_told(step: str, made: str, told: bool) -> None:
    lines = textwrap.indent(f"model(x).backward()\noptimizer.step()\n{step.format('')}", " " * 12)
    trainer = f"class Trainer:\n    def train(self):\n        for x in loader:\n{lines}\n\n\nTrainer().train()"
    loop = f"schedule = {made or None}\n\n\n{trainer}"
    found = distributed(script(loop=loop)).findings
    assert any(each.code == "NPU348" and "learning rate is not changed" not in each.message for each in found) is told


def test_a_field_of_settings_makes_nothing_a_loss() -> None:
    text = looped("loss = model(x).mean()\ni = epoch + net.first\n(net.weight * loss).backward()\nprint(f'{i} {loss}')")
    assert "{i} {mean_loss}" in text and "mean_i" not in text


def test_a_log_of_the_program_guards_itself() -> None:
    head = "class Log:\n    def log(self, x):\n        net.file.write(x)\n\n\nlog = Log()"
    text = looped(f"{TRAINED}if epoch:\n    log.log('1')", head=head)
    assert "if epoch:\n            log.log('1')\n" in text
