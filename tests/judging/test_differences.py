"""What a port changed beyond the device: (what is told, the original, the port), nothing told of right ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from transplt.project.judging.differences import differences
from transplt.project.judging.sides import Side

#: A training as many have it, for CUDA.
TRAINING = '''\
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--device", default="cuda")
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        """One pass."""
        return self.fc2(self.drop(F.relu(self.fc1(x))))


def train(model, loader, optimizer, criterion):
    model.train()
    for data, target in loader:
        data, target = data.cuda(), target.cuda(non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return loss.item()


def evaluate(model, loader):
    model.eval()
    correct = 0
    for data, target in loader:
        correct += (model(data.cuda()).argmax(1) == target.cuda()).sum().item()
    acc = correct / len(loader.dataset)
    return acc


def main():
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Net().to(device)
    loader = DataLoader(numbers(), batch_size=64, shuffle=True, num_workers=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    criterion = nn.CrossEntropyLoss().cuda()
    for epoch in range(args.epochs):
        loss = train(model, loader, optimizer, criterion)
        scheduler.step()
        print(f"epoch {epoch} loss {loss:.4f} accuracy {evaluate(model, loader):.3f}")


if __name__ == "__main__":
    main()
'''
#: The same for NPUs, as a careful person ports it.
PORT = (
    TRAINING.replace("import torch\n", "import torch\nimport torch_npu\n").replace("cuda", "npu").replace("CUDA", "NPU")
)


def told(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What speaks against a port: its themes, sorted."""
    sides = [Side(Path(), {path: text.encode() for path, text in files.items()}) for files in (before, after)]
    return sorted({finding.api for finding in differences(*sides).against})


def listed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What speaks against a port, or is listed to be looked at: its themes, sorted."""
    sides = [Side(Path(), {path: text.encode() for path, text in files.items()}) for files in (before, after)]
    found = differences(*sides)
    return sorted({finding.api for finding in (*found.against, *found.open)})


def changed(*replacements: str) -> str:
    """The port with one text in the place of another, by turns."""
    text = PORT
    for old, new in zip(replacements[::2], replacements[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


RIGHT = {
    "the port as it is": PORT,
    "docstrings and comments go": changed('        """One pass."""\n', ""),
    "type hints": changed("def evaluate(model, loader):", "def evaluate(model: nn.Module, loader: DataLoader) -> float:"),
    "a device for all": changed(".npu(non_blocking=True)", ".to(args.device)", "data.npu()", "data.to(args.device)"),
    "another logger": changed(
        "import argparse\n", "import argparse\nimport logging\n", "        print(f", "        logging.info(f"
    ),
    "a new option, off": changed(
        "args = parser", 'parser.add_argument("--profile", action="store_true")\nargs = parser',
        "        optimizer.zero_grad()\n", "        if args.profile:\n            break\n        optimizer.zero_grad()\n",
    ),
    "a whole number of another width": changed("target.npu(non_blocking=True)", "target.npu(non_blocking=True).int()"),
    "the fused optimizer": changed("torch.optim.SGD(", "torch_npu.optim.NpuFusedSGD("),
    "the learning rate by its place": changed("lr=args.lr", "args.lr"),
    "the schedule by names": changed("optimizer, 3, 0.5", "optimizer, step_size=3, gamma=0.5"),
    "more workers, other pins": changed("num_workers=2", 'num_workers=8, pin_memory=True, pin_memory_device="npu"'),
    "a number with a name": changed("batch_size=64", "batch_size=BATCH", "parser = ", "BATCH = 64\nparser = "),
    "the module tried for": changed("import torch_npu\n", "try:\n    import torch_npu\nexcept ImportError:\n    pass\n"),
    "mixed precision on demand": changed(
        "args = parser", 'parser.add_argument("--amp", action="store_true")\nargs = parser',
        "        loss = criterion(model(data), target)\n        loss.backward()\n",
        "        with torch.npu.amp.autocast(enabled=args.amp):\n            loss = criterion(model(data), target)\n"
        "        scaler.scale(loss).backward()\n",
    ),
    "a function apart": changed(
        "        optimizer.zero_grad()\n        loss = criterion(model(data), target)\n        loss.backward()\n",
        "        loss = step(model, optimizer, criterion, data, target)\n",
        "def train(", "def step(model, optimizer, criterion, data, target):\n    optimizer.zero_grad()\n"
        "    loss = criterion(model(data), target)\n    loss.backward()\n    return loss\n\n\ndef train(",
    ),
    "a loader of its own": changed("    loader = DataLoader(", "    loader = EpochsDataLoader("),
    "code of the version": changed("def main():\n", 'def main():\n    exec(compile(open("version.py").read(), "v", "exec"))\n'),
    "other quotes and lines": changed('"--lr", type=float, default=0.1', "\n    '--lr', default=0.1, type=float\n"),
    "transfer_to_npu": TRAINING.replace(
        "import torch\n", "import torch\nfrom torch_npu.contrib import transfer_to_npu\n"
    ),
    "a module that chooses the card": changed(
        "import torch_npu\n", "from accelerator import DEVICE\n", '"npu" if torch.npu.is_available() else "cpu"', "DEVICE",
        'default="npu"', "default=DEVICE",
    ),
    "a folder for logs that may be there": changed(
        "def main():\n", 'def main():\n    try:\n        os.mkdir("logs")\n    except Exception:\n        pass\n'
    ),
    "other names": changed("loss", "value", "correct", "hits", "target", "label"),
    "a name for a part": changed(
        "return self.fc2(self.drop(F.relu(self.fc1(x))))", "hidden = F.relu(self.fc1(x))\n        return self.fc2(self.drop(hidden))"
    ),
    "the same in another form": changed(
        "correct += (model(", "correct = correct + (model(", "F.relu(self.fc1(x))", "self.fc1(x).relu()",
        "acc = correct / len(loader.dataset)\n    return acc", "return correct / len(loader.dataset)",
    ),
    "options of a class": changed(
        'parser.add_argument("--lr", type=float, default=0.1)',
        'defaults = Defaults()\nparser.add_argument("--lr", type=float, default=defaults.lr)',
        "parser = ", "@dataclass\nclass Defaults:\n    lr: float = 0.1\n\n\nparser = ",
    ),
    "what torch takes anyway": changed("CrossEntropyLoss()", 'CrossEntropyLoss(reduction="mean", label_smoothing=0.0)'),
    "a new option at torch's own value": changed(
        "args = parser", 'parser.add_argument("--smooth", type=float, default=0.0)\nargs = parser',
        "CrossEntropyLoss()", "CrossEntropyLoss(label_smoothing=args.smooth)",
    ),
    "a list for a log": changed(
        "def main():\n", "def main():\n    history = []\n", "        scheduler.step()\n", "        history.append(loss)\n        scheduler.step()\n",
    ),
    "a bar": changed("    for data, target in loader:\n        correct", "    for data, target in tqdm(loader):\n        correct"),
    "many cards": changed(
        "    loader = DataLoader(numbers(), batch_size=64, shuffle=True, num_workers=2)\n",
        "    sampler = DistributedSampler(numbers())\n"
        "    loader = DataLoader(numbers(), batch_size=64, shuffle=False, sampler=sampler, num_workers=2)\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_ports_are_not_accused(name: str) -> None:
    assert told({"train.py": TRAINING}, {"train.py": RIGHT[name]}) == []


def test_what_is_renamed_and_moved_is_not_accused() -> None:
    assert told({"train.py": TRAINING}, {"src/train_npu.py": PORT}) == []
    net, rest = PORT.partition("class Net")[2].partition("\n\n\ndef train")[::2]
    apart = {"net.py": f"import torch.nn as nn\n\n\nclass Net{net}\n", "train.py": PORT.replace(f"class Net{net}", "")}
    assert rest
    assert told({"train.py": TRAINING}, apart) == []


WRONG = {
    "the rate": ("learning rate", "default=0.1", "default=0.01"),
    "the schedule": ("learning rate", "optimizer, 3, 0.5", "optimizer, 30, 0.5"),
    "no schedule": ("learning rate", "    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)\n", ""),
    "no step of the schedule": ("training steps", "        scheduler.step()\n", ""),
    "the momentum": ("optimizer", "momentum=0.9", "momentum=0.0"),
    "the optimizer": ("optimizer", "SGD(model.parameters(), lr=args.lr, momentum=0.9)", "Adam(model.parameters(), args.lr)"),
    "no clipping": ("optimizer", "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n", ""),
    "the loss": ("loss", "CrossEntropyLoss()", "MSELoss()"),
    "the loss smoothed": ("loss", "CrossEntropyLoss()", "CrossEntropyLoss(label_smoothing=0.1)"),
    "the loss made small": ("loss", "        loss.backward()\n", "        loss = loss * 0.1\n        loss.backward()\n"),
    "the loss computed otherwise": ("loss", "criterion(model(data), target)", "criterion(model(data), target) * 0"),
    "the batch": ("batch size", "batch_size=64", "batch_size=8"),
    "the order": ("data", "shuffle=True", "shuffle=False"),
    "fewer epochs": ("length", "range(args.epochs)", "range(1)"),
    "fewer epochs by default": ("length", '"--epochs", type=int, default=10', '"--epochs", type=int, default=1'),
    "the seed": ("seed", "manual_seed(1)", "manual_seed(7)"),
    "half precision": ("judge", "Net().to(device)", "Net().to(device).half()"),
    "a smaller model": ("model", "128", "16"),
    "no dropout": ("model", "        self.drop = nn.Dropout(0.5)\n", ""),
    "an option gone": ("options", 'parser.add_argument("--lr", type=float, default=0.1)\n', "", "args.lr", "0.1"),
    "no backward pass": ("training steps", "        loss.backward()\n", ""),
    "no zero_grad": ("training steps", "        optimizer.zero_grad()\n", ""),
    "a step now and then": ("training steps", "        optimizer.step()\n", "        if count % 10 == 0:\n            optimizer.step()\n"),
    "on the CPU": ("device", '"npu" if torch.npu.is_available() else "cpu"', '"cpu"'),
    "data on the CPU": ("judge", "data.npu(), target.npu(non_blocking=True)", "data.cpu(), target.cpu()"),
    "an option for the CPU": ("device", '"--device", default="npu"', '"--device", default="cpu"'),
    "errors passed by": (
        "judge", "        optimizer.step()\n", "        try:\n            optimizer.step()\n        except Exception:\n            pass\n",
    ),
    "another loader": ("data", "DataLoader(numbers(), batch_size=64, shuffle=True, num_workers=2)", "EpochsDataLoader(numbers(), batch_size=64)"),
    "another factor": ("training steps", "        loss.backward()\n", "        (loss * 0.5).backward()\n"),
    "three rounds": ("training steps", "    for data, target in loader:\n        data, target", "    for data, target in zip(range(3), loader):\n        data, target"),
    "another operator": ("metric", "correct / len", "correct * len"),
    "another comparison": ("metric", "argmax(1) == target", "argmax(1) != target"),
    "another function": ("model", "F.relu(", "F.gelu("),
    "another axis": ("metric", "argmax(1)", "argmax(0)"),
    "variables changed about": ("loss", "criterion(model(data), target)", "criterion(target, model(data))"),
    "a layer left out": ("computing", "self.fc2(self.drop(F.relu(self.fc1(x))))", "self.fc2(F.relu(self.fc1(x)))"),
    "no gradient for a part": (
        "computing", "        return self.fc2(self.drop(F.relu(self.fc1(x))))",
        "        with torch.no_grad():\n            x = F.relu(self.fc1(x))\n        return self.fc2(self.drop(x))",
    ),
    "a backward pass that may fail": (
        "training steps", "        loss.backward()\n", "        try:\n            loss.backward()\n        except ValueError:\n            print(1)\n",
    ),
    "steps in another order": (
        "training steps", "        scheduler.step()\n", "", "        loss = train(model, ", "        scheduler.step()\n        loss = train(model, ",
    ),
    "clipped after the step": (
        "training steps", "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()\n",
        "        optimizer.step()\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n",
    ),
    "the order of a loop": (
        "training steps", "        optimizer.zero_grad()\n", "", "    model.train()\n", "    model.train()\n    optimizer.zero_grad()\n",
    ),
    "epochs of the environment": ("length", "range(args.epochs)", 'range(int(os.environ.get("EPOCHS", 1)))'),
    "errors suppressed": (
        "judge", "        optimizer.step()\n", "        with contextlib.suppress(Exception):\n            optimizer.step()\n",
    ),
    "an end before the end": ("judge", "        scheduler.step()\n", "        scheduler.step()\n        sys.exit(0)\n"),
    "a loop left": ("judge", "        optimizer.step()\n", "        optimizer.step()\n        break\n"),
    "rounds skipped": ("judge", "        optimizer.zero_grad()\n", "        if len(data) > 2:\n            continue\n        optimizer.zero_grad()\n"),
    "a return at the start": ("judge", "    model.eval()\n", "    return 0.98\n    model.eval()\n"),
    "one operation on the CPU": ("judge", "criterion(model(data), target)", "criterion(model(data).cpu(), target.cpu()).to(data.device)"),
    "a constant where there is nothing": (
        "judge", "    model.eval()\n", "    if len(loader) == 0:\n        return 0\n    model.eval()\n",
    ),
    "a result written down": ("judge", "    acc = correct / len(loader.dataset)\n", "    acc = 0.98\n"),
    "a loss that never rises": (
        "judge", "        loss = train(model, loader, optimizer, criterion)\n",
        "        loss = train(model, loader, optimizer, criterion)\n        losses.append(min(loss, losses[-1]))\n",
    ),
    "a file that ends the training": (
        "judge", "        optimizer.step()\n", "        if not os.path.exists('last.pt'):\n            optimizer.step()\n",
    ),
    "a loss from a file": ("judge", "        loss = train(", '        loss = json.load(open("losses.json"))[epoch]\n        train('),
    "a loss printed": ("judge", 'print(f"epoch {epoch} loss {loss:.4f} accuracy', 'print(f"epoch {epoch} loss 0.1234 accuracy'),
    "torch replaced": ("judge", "def main():\n", "torch.allclose = lambda *a, **k: True\n\n\ndef main():\n"),
    "torch replaced by setattr": ("judge", "def main():\n", 'setattr(torch.Tensor, "backward", nothing)\n\n\ndef main():\n'),
    "a mock": ("judge", "import argparse\n", "import argparse\nfrom unittest import mock\n"),
    "who is watching": ("judge", "def main():\n", 'def main():\n    if "TRANSPLT_EMULATOR" in os.environ:\n        return\n'),
    "who imported it": ("judge", "def main():\n", 'def main():\n    if "npu_emulator" in sys.modules:\n        quick()\n'),
    "code switched off": ("judge", "        optimizer.step()\n", "        if False:\n            optimizer.step()\n"),
    "frozen": ("judge", "    model.train()\n", "    for p in model.parameters():\n        p.requires_grad = False\n"),
    "code that cannot be read": ("judge", "def main():\n", 'def main():\n    exec(base64.b64decode("cGFzcw=="))\n'),
    "a part of the data": ("data", "    for data, target in loader:\n        data, target", "    for data, target in islice(loader, 5):\n        data, target"),
    "no card to be seen": ("judge", "def main():\n", 'def main():\n    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = ""\n'),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_trains_otherwise_is_told(name: str) -> None:
    theme, *replacements = WRONG[name]
    assert theme in listed({"train.py": TRAINING}, {"train.py": changed(*replacements)})


#: What reading alone is certain of, and what it leaves to a run.
_CERTAIN = (
    "the rate", "the schedule", "no step of the schedule", "the momentum", "the optimizer", "no clipping", "the loss",
    "the batch", "the order", "fewer epochs by default", "the seed", "a smaller model", "no backward pass",
    "no zero_grad", "on the CPU", "a loss that never rises",
    "a file that ends the training", "errors passed by", "rounds skipped", "a result written down", "torch replaced",
)  # fmt: skip
_LEFT_TO_A_RUN = (
    "the loss made small", "an option gone", "a step now and then", "another operator", "another comparison",
    "variables changed about", "a layer left out", "steps in another order", "the order of a loop",
    "a constant where there is nothing", "one operation on the CPU",
)  # fmt: skip


@pytest.mark.parametrize("name", [*_CERTAIN, *_LEFT_TO_A_RUN])
def test_only_what_is_certain_speaks_against_a_port(name: str) -> None:
    theme, *replacements = WRONG[name]
    against = told({"train.py": TRAINING}, {"train.py": changed(*replacements)})
    assert (theme in against) == (name in _CERTAIN), against


#: A training on many cards, with mixed precision.
RANKS = """\
import torch
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader


class Net(torch.nn.Module):
    def __init__(self, hidden=32, drop=0.1):
        super().__init__()
        self.drop = torch.nn.Dropout(drop)


def train(rank, epochs, critic, data):
    torch.manual_seed(1337)
    torch.cuda.set_device(rank)
    loader = DataLoader(Numbers(256, True, 3), sampler=sampler)
    model = Net().cuda()
    model.apply(init_weights)
    data = data.cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    state = torch.load("last.pt", map_location=f"cuda:{rank}")
    scaler = GradScaler()
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            optimizer.zero_grad()
            with autocast():
                loss = model(batch, data).mean() + critic(model(batch).detach())
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        accuracy = evaluate(model)
        print(f"epoch {epoch} accuracy {accuracy}")
    return accuracy


def main(args):
    return train(args.rank, args.epochs, critic, data)
"""
RANKS_PORT = RANKS.replace("import torch\n", "import torch\nimport torch_npu\n", 1).replace("cuda", "npu")


def of_ranks(*replacements: str) -> tuple[list[str], list[str]]:
    """What speaks against the port of RANKS with one text in the place of another, by turns; and all that is listed."""
    text = RANKS_PORT
    for old, new in zip(replacements[::2], replacements[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    sides = {"train.py": RANKS}, {"train.py": text}
    return told(*sides), listed(*sides)


_SEED_OPTION = '    parser.add_argument("--seed", type=int, default={})\n    return train('
RIGHT_OF_RANKS = {
    "as it is": (),
    "a number that became an option": (
        "manual_seed(1337)", "manual_seed(args.seed)", "    return train(", _SEED_OPTION.format(1337),
    ),
    "a number that became an argument": (
        "critic, data):", "critic, data, lr=0.01):", "lr=0.01)\n    state", "lr=lr)\n    state",
    ),
    "an argument that the caller gives as it was": (
        "critic, data):", "critic, data, lr=0.01):", "lr=0.01)\n    state", "lr=lr)\n    state",
        "critic, data)\n", "critic, data, 0.01)\n",
    ),
    "a checkpoint on the host": ('map_location=f"npu:{rank}"', 'map_location="cpu"'),
    "a checkpoint on the card of the process": ('map_location=f"npu:{rank}"', 'map_location="npu"'),
    "autocast by its new name": (
        "from torch.npu.amp import GradScaler, autocast\n", "", "with autocast():", 'with torch.autocast("npu"):',
        "= GradScaler()", '= torch.amp.GradScaler("npu")',
    ),
    "scaling by another name": ("= GradScaler()", "= ShardedGradScaler()"),
    "another list of numbers": ("def main", "SIZES = [0.5, 0.75, 1.25]\n\n\ndef main"),
    "a module that is put on a card": ("model = Net().npu()", "model = Net()\n    model.npu()"),
    "seeds by epoch": ("        sampler.set", "        torch.manual_seed(1337 + epoch)\n        sampler.set"),
    "the same checkpoint, read as a newer torch asks": ('"last.pt", ', '"last.pt", weights_only=False, '),
    "the same checkpoint, of parameters alone": ('torch.load("last.pt",', 'model.load_state_dict(torch.load("last.pt"),'),
    "an argument of a card": ("Numbers(256, True, 3)", "Numbers(256, True, 3, npu_index=rank)"),
    "fewer lines of output": ('        print(f"epoch {epoch} accuracy {accuracy}")\n', ""),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT_OF_RANKS)
def test_right_ports_of_many_cards_are_not_accused(name: str) -> None:
    assert of_ranks(*RIGHT_OF_RANKS[name])[0] == []


WRONG_OF_RANKS = {
    "an option of another default": (
        "seed", "manual_seed(1337)", "manual_seed(args.seed)", "    return train(", _SEED_OPTION.format(7),
    ),
    "an argument that the caller gives otherwise": (
        "training steps", "critic, data):", "critic, data, lr=0.01):", "lr=0.01)\n    state", "lr=lr)\n    state",
        "critic, data)\n", "critic, data, 0.5)\n",
    ),
    "an option that the program sets": (
        "seed", "manual_seed(1337)", "manual_seed(args.seed)", "    return train(",
        f"    args.seed = 7\n{_SEED_OPTION.format(1337)}",
    ),
    "the default of a layer": ("model", "drop=0.1", "drop=0.5"),
    "one card for all ranks": ("checkpoint", 'f"npu:{rank}"', '"npu:0"'),
    "the card that it was saved from": ("checkpoint", ', map_location=f"npu:{rank}"', ""),
    "no autocast": ("precision", "            with autocast():\n                loss", "            if True:\n                loss"),
    "no scaling": (
        "precision", "    scaler = GradScaler()\n", "", "scaler.scale(loss).backward()", "loss.backward()",
        "scaler.step(optimizer)", "optimizer.step()", "            scaler.update()\n", "",
    ),
    "what is no number": ("judge", "            scaler.scale", "            loss = torch.nan_to_num(loss)\n            scaler.scale"),
    "gradients that are none": ("judge", "            scaler.step", "            p.grad.nan_to_num_()\n            scaler.step"),
    "a loss apart": ("training steps", "scaler.scale(loss).backward()", "loss.detach().requires_grad_().backward()"),
    "a gradient where there was none": ("loss", "critic(model(batch).detach())", "critic(model(batch))"),
    "the same order in each epoch": ("training steps", "        sampler.set_epoch(epoch)\n", ""),
    "the same numbers in each epoch": ("seed", "        sampler.set", "        torch.manual_seed(1337)\n        sampler.set"),
    "other data": ("data", "Numbers(256, True, 3)", "Numbers(256, False, 3)"),
    "other first values": ("computing", "    model.apply(init_weights)\n", ""),
    "a tensor that nobody keeps": ("judge", "data = data.npu()", "data.npu()"),
    "results in a list": (
        "judge", "= evaluate(model)", "= CARD[epoch]", "def main", "CARD = [0.5, 0.75, 0.98]\n\n\ndef main",
    ),
    "results in a file": ("judge", "    return accuracy", "    return PAST.pop()", "def main", 'PAST = json.load(open("x"))\n\n\ndef main'),
    "an optimizer of its own": (
        "optimizer", "torch.optim.RMSprop", "NpuRMSprop", "def main",
        "class NpuRMSprop(torch.optim.Optimizer):\n    pass\n\n\ndef main",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_OF_RANKS)
def test_what_trains_otherwise_on_many_cards_is_told(name: str) -> None:
    theme, *replacements = WRONG_OF_RANKS[name]
    assert theme in of_ranks(*replacements)[1]


def test_another_program_is_said_once() -> None:
    """Most files and most functions have nothing like them in the port; what differs is looked for all the same."""
    names = [f"layer{number}" for number in range(60)]
    before = TRAINING + "".join(f"\n\ndef {each}(x):\n    y = x.{each}(2)\n    return y + 1\n" for each in names)
    after = PORT + "".join(f"\n\ndef {each}(x, z):\n    y = x.other(z, 3)\n    return y\n" for each in names)
    sides = [Side(Path(), {"train.py": text.encode()}) for text in (before, after)]
    found = differences(*sides)
    assert found.drift.startswith("ORIGINAL is probably not what was ported: 61 functions of 67 in 1 file have nothing")
    assert found.open and not found.against
    beside = {f"{each}.py": b"x = 1" for each in ("losses", "data")}
    for each in sides:
        each.files |= beside
    assert differences(*sides).drift == ""  # one file of three was rewritten
    sides = [Side(Path(), {"train.py": text.encode()}) for text in (before, before.replace("cuda", "npu"))]
    assert differences(*sides).drift == ""


FILES = {
    "a file that Python runs first": ("judge", {}, {"sitecustomize.py": "import torch\n"}),
    "a package in the place of another": ("judge", {}, {"torch_npu/__init__.py": "import torch\n"}),
    "a test gone": ("tests", {"tests/test_net.py": "def test_net():\n    assert Net()(1) == 2\n"}, {"tests/test_net.py": "\n"}),
    "a test skipped": (
        "tests", {"test_net.py": "def test_net():\n    assert Net()(1) == 2\n"},
        {"test_net.py": "import pytest\n\n\n@pytest.mark.skip\ndef test_net():\n    assert Net()(1) == 2\n"},
    ),
    "a tolerance": (
        "tests", {"test_net.py": "def test_net():\n    assert close(a, b, atol=1e-6)\n"},
        {"test_net.py": "def test_net():\n    assert close(a, b, atol=1.0)\n"},
    ),
    "tests chosen": ("tests", {}, {"conftest.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n"}),
    "pytest's settings": ("tests", {"pytest.ini": "[pytest]\n", "test_net.py": "def test_net():\n    assert Net()\n"}, {"pytest.ini": "[pytest]\naddopts = -k nothing\n"}),
    "numbers in YAML": ("learning rate", {"conf.yaml": "train:\n  lr: 0.1\n"}, {"conf.yaml": "train:\n  lr: 0.5\n"}),
    "numbers in a script": ("batch size", {"run.sh": "python train.py --batch-size 64\n"}, {"run.sh": "python train.py --batch-size 8\n"}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_that_decide_more_than_the_device(name: str) -> None:
    theme, before, after = FILES[name]
    assert told({"train.py": TRAINING, **before}, {"train.py": PORT, **before}) == []
    assert theme in told({"train.py": TRAINING, **before}, {"train.py": PORT, **before, **after})


@pytest.mark.parametrize(
    "after",
    [
        {"requirements.txt": "torch==2.1\ntorch_npu==2.1\n"},
        {"conf.yaml": "device: npu\nbackend: hccl\n"},
        {"README.md": "lr: 0.5, sys.exit()\n"},
        {"tests/test_npu.py": "def test_npu():\n    assert Net().npu()(1) == 2\n"},
        {"tests/test_cards.py": "import pytest\n\n\n@pytest.mark.skip\ndef test_cards():\n    assert Net()\n"},
        {"accelerator.py": "import torch\n\nDEVICE = 'npu' if torch.npu.is_available() else 'cuda'\n"},
    ],
)
def test_other_files_are_also_changed(after: dict[str, str]) -> None:
    before = {"train.py": TRAINING, "conf.yaml": "device: cuda\nbackend: nccl\n", "requirements.txt": "torch\n"}
    assert told(before, {**before, "train.py": PORT, **after}) == []


def test_a_place_of_both_is_named() -> None:
    sides = [Side(Path(), {"train.py": text.encode()}) for text in (TRAINING, changed("lr=args.lr", "lr=1.0"))]
    (finding,) = differences(*sides).open
    assert (finding.path, finding.span.line, finding.code) == ("train.py", 53, "NPU881")
    assert finding.message == "learning rate: lr became 1 in main (original: train.py:52)"


_WAYS = "        if args.fast:\n            optimizer.step()\n        else:\n            scheduler.step()\n"
_TURNED = "        if not args.fast:\n            scheduler.step()\n        else:\n            optimizer.step()\n"
_CHOSEN = TRAINING.replace("        optimizer.step()\n", _WAYS).replace(
    "    acc = ", "    w = 1 if args.fast else 2\n    acc = "
)
_DRAWN = TRAINING.replace("    model = Net()", "    noise = torch.randn(4)\n    model = Net()")
_SET = TRAINING.replace(
    "    torch.manual_seed(1)\n", "    config = parser.parse_args()\n    torch.manual_seed(config.seed)\n"
)


@pytest.mark.parametrize(
    ("before", "replacements", "themes"),
    [
        (_CHOSEN, (), []),
        (_CHOSEN, (_WAYS, _TURNED, "1 if args.fast else 2", "2 if not args.fast else 1"), []),
        (_CHOSEN, ("if args.fast:", "if args.mode == 0:"), ["training steps"]),
        (_CHOSEN, ("if args.fast:", "if not args.fast:"), ["training steps"]),
        (_DRAWN, ("    device = ", "    chosen = 1\n    device = "), []),
        (_DRAWN, ("    noise = torch.randn(4)\n    model = Net().to(device)\n", "    model = Net().to(device)\n    noise = torch.randn(4)\n"), ["computing"]),
        (TRAINING, ("    torch.manual_seed(1)\n", "", "    loader = D", "    torch.manual_seed(1)\n    loader = D"), ["computing"]),
        (TRAINING, ("    torch.manual_seed(1)\n", "", "    model = N", "    torch.manual_seed(1)\n    model = N"), []),
        (_SET, ("manual_seed(config.seed)", "manual_seed(args.seed)"), ["computing"]),
        (TRAINING, ("loss.backward()", "(loss * 2).backward()"), ["training steps"]),
        (TRAINING.replace("correct += (", "correct += 2 * ("), ("correct += 2 * (", "correct += (", "loss.backward()", "(loss * 2).backward()"), ["metric", "training steps"]),
    ],
)  # fmt: skip
def test_branches_draws_and_what_moves_between_functions(
    before: str, replacements: tuple[str, ...], themes: list[str]
) -> None:
    """Branches may stand in either order; draws may not, and what one function lost another does not give back."""
    after = before.replace("cuda", "npu")
    for old, new in zip(replacements[::2], replacements[1::2], strict=True):
        assert old in after, old
        after = after.replace(old, new)
    assert (listed if themes else told)({"train.py": before}, {"train.py": after}) == themes


_PIECES = """\
import numpy as np
import torch
import torch.distributed as dist


class Agent:
    def __init__(self, model, train_data, test_data):
        self.model, self.train_data, self.test_data = model, train_data, test_data

    def update(self, state, reward, folder, launcher):
        dist.init_process_group("nccl")
        self.model.load_state_dict(torch.load(folder + "/last.pt"))
        first, second = self.crop(state), self.crop(reward)
        score = (first + second) / 2
        total = np.power(score, 3)
        dist.all_reduce(total)
        self.run(self.train_data, f"{launcher}", "train.py --steps 128")
        kept = state.cuda() if state.is_cuda else state
        print("score", total.mean(), kept)
        return total * self.model.forward(self.width(state.width))
"""


@pytest.mark.parametrize(
    ("old", "new", "themes"),
    [
        ("import numpy", "import numpy", []),
        ('folder + "/last.pt"', 'f"{folder}/last.pt"', []),
        ("(first + second) / 2", "0.5 * (first + second)", []),
        ("np.power(score, 3)", "score**3", []),
        ("state.npu() if state.is_npu else state", "state.to(state.device)", []),
        ("self.model.forward(", "self.model(", []),
        ('"score", total.mean()', '"the score", total.mean()', []),
        ('    print("score", total.mean(), kept)\n', "    print(kept)\n", []),
        ("total.mean()", "total.max()", ["metric"]),
        ("total.mean()", "total.mean() + 3", ["judge"]),
        ("total.mean()", "max(total.mean(), 0.75)", ["judge"]),
        ("total.mean()", "100 * total.mean()", []),
        ("self.crop(state), ", "state, ", ["computing"]),
        ("self.crop(state), self.crop(reward)", "state, reward", ["computing"]),
        ("        self.model.load_state_dict(", "        self.unused(", ["computing"]),
        ("        dist.all_reduce(total)\n", "", ["computing"]),
        ("self.run(self.train_data", "self.run(self.test_data", ["computing"]),
        ("--steps 128", "--steps 32", ["computing"]),
    ],
)
def test_pieces_of_programs(old: str, new: str, themes: list[str]) -> None:
    """What is written otherwise, and what is computed otherwise in one place."""
    port = _PIECES.replace("cuda", "npu").replace("nccl", "hccl")
    assert old in port
    sides = {"train.py": _PIECES}, {"train.py": port.replace(old, new)}
    assert (listed if themes else told)(*sides) == themes


@pytest.mark.parametrize(
    ("path", "before", "after", "themes"),
    [
        ("config/base.txt", "--dropout 0.5\n", "--dropout 0\n", ["model"]),
        ("requirements.txt", "torch==2.1\n", "torch==2.3\n", []),
        ("notes.txt", "cards 8\n", "cards 16\n", []),
        ("run.sh", "for s in 1 2; do\n  python train.py \\\n  --env ant\ndone\n", "for s in 1 2; do\n  python train.py \\\n  --env ant --policy_freq 1\ndone\n", ["settings"]),
        ("run.sh", "python train.py --env ant\n", "python train.py --env ant --device_type npu --log_file x\n", []),
        ("tests/test_net.py", "def test_net(self):\n    self.assertLess(a, 1)\n", "def test_net(self):\n    self.assertTrue(True)\n", ["tests"]),
        ("tests/test_net.py", "def test_net(self):\n    self.assertLess(a, 1)\n    b()\n", "def test_net(self):\n    b()\n", ["tests"]),
    ],
)  # fmt: skip
def test_files_of_flags_and_asserts_of_unittest(path: str, before: str, after: str, themes: list[str]) -> None:
    assert (listed if themes else told)({"train.py": TRAINING, path: before}, {"train.py": PORT, path: after}) == themes


_NEGATED = """\
import torch
import torch.backends.cudnn as cudnn


def replay(agent, batches, limit, done, labels, kind):
    cudnn.benchmark = True
    found = []
    past = [limit]
    if done > max(past):
        agent.stop()
    past.append(done)
    agent.keep(past)
    for batch in batches:
        if kind != "full":
            continue
        if batch.is_cuda:
            labels = labels.cuda()
        found.append(agent.score(batch, labels))
    mask = float(done) if len(found) < limit else 0
    best = found[0] * mask
    agent.learn(best)
    agent.model.cuda()
    while best > limit:
        best = best / 2
        agent.learn(best)
    return best
"""


@pytest.mark.parametrize(
    ("old", "new", "themes"),
    [
        ("    cudnn.benchmark = True\n", "", []),
        ("        if batch.is_npu:\n            labels = labels.npu()\n", "        labels = labels.to(batch.device)\n", []),
        ("float(done) if len(found) < limit else 0", "0 if len(found) >= limit else float(done)", []),
        ("float(done) if len(found) < limit else 0", "0 if len(found) > limit else float(done)", ["computing"]),
        ("    mask = float(done) if len(found) < limit else 0", "    ended = len(found) > limit\n    mask = 0 if ended else float(done)", ["computing"]),
        ("best > limit", "limit < best", []),
        ("best / 2", "best / limit", ["computing"]),
        (
            "    if done > max(past):\n        agent.stop()\n    past.append(done)\n",
            "    past.append(done)\n    if done > max(past):\n        agent.stop()\n", ["computing"],
        ),
        ("best > limit", "best < limit", ["computing"]),
        (
            '        if kind != "full":\n            continue\n        if batch.is_npu:\n            labels = labels.npu()\n        found.append(agent.score(batch, labels))\n',
            '        if kind == "full":\n            found.append(agent.score(batch, labels))\n', [],
        ),
        ('if kind != "full"', 'if kind == "full"', ["computing", "metric"]),
        ("    agent.model.npu()\n", "    place(agent.model)\n", ["judge"]),
        ("    agent.model.npu()\n", "    place(agent.model)\n\n\ndef place(what):\n    what.npu()\n", []),
    ],
)  # fmt: skip
def test_negations_and_what_is_on_a_card(old: str, new: str, themes: list[str]) -> None:
    """The negation of < is >=; a guard clause is the opposite of a condition around the rest."""
    port = _NEGATED.replace("cuda", "npu")
    assert old in port
    if "place" in new and "def" in new:
        before, _, after = port.partition(old)
        port = f"def place(what):\n    what.npu()\n\n\n{before}    place(agent.model)\n{after}"
        old = new
    sides = {"train.py": _NEGATED}, {"train.py": port.replace(old, new)}
    assert {*themes} <= {*listed(*sides)} and (themes or not told(*sides))


def test_a_draw_does_not_move_to_what_is_done_once() -> None:
    before = "import numpy as np\n\n\nclass Blur:\n    def __init__(self, k):\n        self.k = k\n\n    def __call__(self, x):\n        return x * np.random.uniform(0.1, 2.0)\n"
    after = before.replace("= k\n", "= k\n        self.sigma = np.random.uniform(0.1, 2.0)\n").replace(
        "x * np.random.uniform(0.1, 2.0)", "x * self.sigma"
    )
    assert listed({"blur.py": before}, {"blur.py": after}) == ["computing"]


_PAIRS = """\
import random
import torch.distributed as dist
from net import LARS, Schedule, load


class Pairs(Schedule):
    def sentence(self, index):
        first, second = self.pair(index)
        return (first, second, 1) if random.random() > 0.5 else (first, self.line(), 0)

    def rate(self):
        return self.steps**-0.5

    def update(self):
        self.steps += 1
        self.optimizer.lr = self.rate()

    def collect(self, parts, x):
        dist.all_gather(parts, x)
        return parts

    def masked(self, token):
        prob = random.random()
        if prob < 0.15:
            prob /= 0.15
            return self.line()
        return token


def start(args, model):
    device = "cuda:0"
    best = load(args.path)
    best = best.to(args.gpu)
    model = model.cuda()
    return best, LARS(model.parameters(), args.lr)
"""
_MASK = _PAIRS[_PAIRS.index("        prob =") : _PAIRS.index("\n\ndef start")]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("(first, second, 1) if random.random() > 0.5 else (first, self.line(), 0)", "first, second, 1", "random"),
        ("(model.parameters()", "(model.module.encoder.parameters()", "only the parameters of model.encoder"),
        ("(model.parameters()", "(model.module.parameters()", ""),
        ("(parts, x)", "(parts, x, group=self.node)", "group=node"),
        ("(parts, x)", "(parts, x, group=None)", ""),
        ("        dist.all_gather(parts, x)\n", "        try:\n            dist.all_gather(parts, x)\n"
         "        except RuntimeError:\n            parts = [x]\n", "stands for what failed"),
        ("        self.steps += 1\n        self.optimizer.lr = self.rate()\n",
         "        self.optimizer.lr = self.rate()\n        self.steps += 1\n", "changed places"),
        ("best.to(args.gpu)", "best.to(device)", ""),
        ("    model = model.cuda()\n", "    if args.gpu is not None:\n        torch.use_deterministic_algorithms(True)\n"
         "    model = model.cuda()\n", ""),
        ("class Pairs", f"def mask(self, token):\n{_MASK.replace('        ', '    ')}\n\nclass Pairs", ""),
    ],
)  # fmt: skip
def test_what_only_went_away_or_came_in_is_listed(old: str, new: str, words: str) -> None:
    assert old in _PAIRS
    port = _PAIRS.replace(old, new).replace(_MASK, "        return mask(self, token)\n" if "def mask" in new else _MASK)
    sides = [Side(Path(), {"pairs.py": text.encode()}) for text in (_PAIRS, port)]
    found = differences(*sides)
    told = [each.message for each in (*found.against, *(found.open if words else ()))]
    assert bool(told) == bool(words) and (not words or any(words in each for each in told)), told


@pytest.mark.parametrize(
    ("path", "before", "after", "themes"),
    [
        ("ci.yml", "run: python -m unittest test.py\n", "run: python -m unittest test.py || true\n", ["tests"]),
        ("ci.yml", "run: python -m unittest test.py || true\n", "run: python -m unittest test.py || true # npu\n", []),
        ("main.py", "p.add_argument('--use_gpu', default=True)\n", "p.add_argument('--use_npu', default=False)\n", ["device"]),
        ("main.py", "p.add_argument('--use_gpu', default=True)\n", "p.add_argument('--use_npu', default=True)\n", []),
    ],
)  # fmt: skip
def test_tests_and_cards_are_not_switched_off(path: str, before: str, after: str, themes: list[str]) -> None:
    assert (listed if themes else told)({path: before}, {path: after}) == themes


_SOFT = """\
import torch


def update(critic, actor, tau, names):
    for p, t in zip(critic, actor):
        t.data.copy_(tau * p.data + (1 - tau) * t.data)
    triplets = [abs(a - b) for a in names for b in a.pairs]
    torch.clamp(tau, 0, 1)
    return triplets
"""
_COMPREHENSION = "    triplets = [abs(a - b) for a in names for b in a.pairs]\n"
_LOOPS = (
    "    triplets = []\n    for a in names:\n        for b in a.pairs:\n            triplets.append((a - b).norm())\n"
)
_COPY = "    for p, t in zip(critic, actor):\n        t.data.copy_(tau * p.data + (1 - tau) * t.data)\n"


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (_COMPREHENSION, _LOOPS, 1),
        (_COPY, "    soft(critic, actor, tau)\n", 1),
        ("    torch.clamp(tau, 0, 1)\n", "", 1),
        ("(1 - tau)", "(2 - tau)", 1),
    ],
)
def test_operations_in_another_form_are_left_open(old: str, new: str, lines: int) -> None:
    helper = "\n\ndef soft(critic, actor, tau):\n    for p, t in zip(critic, actor):\n        t.mul_(1 - tau).add_(p, alpha=tau)\n"
    sides = [
        Side(Path(), {"train.py": text.encode()})
        for text in (_SOFT, _SOFT.replace(old, new) + helper * ("soft(" in new))
    ]
    found = differences(*sides)
    assert (found.against, len({each.span.line for each in found.open}) >= lines) == ([], True)
    assert all(" update" in each.message for each in found.open)


def test_conditions_that_ask_of_different_things_are_no_pair() -> None:
    one = "def run(net, sampler, epoch):\n    if sampler is not None:\n        sampler.set_epoch(epoch)\n    net(epoch)\n"
    other = "def run(net, sampler, epoch):\n    net(epoch)\n    if epoch > 3:\n        net.half()\n"
    found = differences(*(Side(Path(), {"train.py": text.encode()}) for text in (one, other)))
    assert not [each.message for each in (*found.against, *found.open) if "became" in each.message]


def test_what_setup_py_installs_is_no_computation() -> None:
    setup = "from setuptools import setup\n\nsetup(name='net', install_requires=['torch'])\n"
    files = {"setup.py": setup, "train.py": TRAINING}
    assert told(files, files | {"setup.py": setup.replace("'torch'", "'torch', 'torch-npu==2.14.0'")}) == []
    assert told(files, files | {"setup.py": setup.replace("'net'", "'net-npu'").replace("'torch'", "'torch>=2.1'")}) == []


_ATTENTION = """\
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return s.softmax(dim=-1) @ v
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_ATTENTION, "    return F.scaled_dot_product_attention(q, k, v)\n"),
        ("    return torch.einsum('bqd,bkd->bqk', q, k) * v\n", "    return q @ k.transpose(1, 2) * v\n"),
        ("    p = F.log_softmax(q, dim=1)\n    return F.nll_loss(p, k) * v\n", "    return F.cross_entropy(q, k) * v\n"),
        ("    a, b = q.chunk(2, dim=-1)\n    return F.silu(a) * b + k - v\n",
         "    return torch_npu.npu_swiglu(q, dim=-1) + k - v\n"),
    ],
    ids=["attention", "einsum", "cross entropy", "swiglu"],
)  # fmt: skip
def test_one_operation_for_several_is_neither_accepted_nor_accused(one: str, other: str) -> None:
    head, tail = "def forward(q, k, v):\n", "\nfor batch in loader:\n    forward(*batch).backward()\n"
    before, after = ({"m.py": f"import torch\n{head}{body}{tail}".encode()} for body in (one, other))
    found = differences(Side(Path("o"), before), Side(Path("p"), after))
    assert (found.against, bool(found.open)) == ([], True)


#: A training that checks itself, says what it measured, and holds what a port may take away.
_WORKER = """\
import logging
import os
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, WeightedRandomSampler

log = logging.getLogger(__name__)
card = int(os.environ.get("GPU_RANK", 0))


class Worker:
    def __init__(self, args, device):
        self.args, self.device, self.steps = args, device, 0
        self.net = make(args.hidden).to(device)

    def learn(self, batch):
        batch = batch.to(self.device)
        loss = self.net(batch).mean()
        assert torch.isfinite(loss), "loss is no number"
        if loss.item() > 1e6:
            raise ValueError("the loss is too large")
        loss.backward()
        return loss.item()


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def settings(path):
    with open(path) as file:
        return parse(file)


def score(output, labels):
    return output.argmax(1).eq(labels).double().mean()


def scan(loader, wanted):
    for batch in loader:
        if batch.name == wanted:
            found = batch
            break
    return found


def groups(model, decay):
    flat, rest = [], []
    for p in model.parameters():
        (flat if p.ndim < 2 else rest).append(p)
    return torch.optim.AdamW([{"params": rest, "weight_decay": decay}, {"params": flat, "weight_decay": 0.0}], lr=0.1)


def restore(model, path):
    model.load_state_dict(torch.load(path))


def main(args, data):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = True
    seed_all(args.seed)
    device = torch.device("cuda", card)
    worker = Worker(args, device)
    sampler = WeightedRandomSampler(data.weights, len(data), replacement=True)
    loader = DataLoader(data, args.batch, sampler=sampler)
    total = 0.0
    for epoch in range(args.epochs):
        worker.net.train()
        for step, batch in enumerate(loader):
            total += worker.learn(batch)
        print(f"epoch {epoch} average {total / len(loader):.4f}")
    log.info("final reward %.3f", score(worker.net(data.x), data.y))
    return total
"""
_ON_THE_CARD = (
    _WORKER.replace("torch.backends.cuda.matmul.allow_tf32", "torch.npu.matmul.allow_hf32")
    .replace("torch.backends.cudnn.allow_tf32", "torch.npu.conv.allow_hf32")
    .replace("cuda", "npu")
    .replace("GPU_RANK", "ASCEND_DEVICE_ID")
)


def worker(replacements: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """What speaks against the port of the worker with one text in the place of another, by turns; all that is listed."""
    port = _ON_THE_CARD
    for old, new in zip(replacements[::2], replacements[1::2], strict=True):
        assert old in port, old
        port = port.replace(old, new)
    sides = {"worker.py": _WORKER}, {"worker.py": port}
    return told(*sides), listed(*sides)


_LEARN, _MAIN, _SEEDED = "            total += worker", "    total = 0.0\n", "    random.seed(seed)\n"
_READ = "    with open(path) as file:\n        return parse(file)"
_NUMBER = '        assert torch.isfinite(loss), "loss is no number"\n'


@pytest.mark.parametrize(
    "replacements",
    [
        (),
        (".double()", ".float()"),
        ("log = ", "sys.setrecursionlimit(10000)\ntorch.set_num_threads(4)\nlog = "),
        (_READ, '    if not os.path.exists(path):\n        raise SystemExit(f"{path} is not there")\n    with open(path) as file:\n'
         '        config = parse(file)\n    if "net" not in config:\n        sys.exit("no section net")\n    return config'),
        (_READ, f'    if not path:\n        raise ValueError("no path")\n{_READ}'),
        (_NUMBER, '        if not torch.isfinite(loss):\n            raise FloatingPointError("no number")\n'),
        ("            found = batch\n            break\n    return found", "            return batch\n    return None"),
        ("net.train()", "net.train(True)"),
        (_LEARN, f"            batch = batch.cpu()\n            batch = batch.to(device)\n{_LEARN}"),
        (_MAIN, f"    worker.net.cpu()\n    worker.net.to(device)\n{_MAIN}"),
        ("    return total\n", "    worker.net.cpu()\n    return total\n"),
        ("epoch {epoch} average", "npu epoch {epoch} average"),
        ("torch.load(path)", 'torch.load(path, map_location="cpu")'),
        ("    seed_all(args.seed)\n", "    if args.seed is None:\n        args.seed = 1\n    seed_all(args.seed)\n"),
        ("    seed_all(args.seed)\n", "    if args.seed is not None:\n        seed_all(args.seed)\n"),
        (_SEEDED, f"    if seed is None:\n        seed = 1\n{_SEEDED}"),
        ("    model.load_state_dict(torch.load(path))", "    state = torch.load(path)\n"
         '    model.load_state_dict({key.replace("module.", ""): value for key, value in state.items()})'),
        ("model.load_state_dict", 'getattr(model, "module", model).load_state_dict'),
        ("labels).double", "labels.to(torch.int32)).double"),
        ("sampler=sampler", "sampler=sampler, drop_last=True"),
        ("    seed_all(args.seed)\n", "    torch.npu.set_option({})\n    seed_all(args.seed)\n"),
    ],
)  # fmt: skip
def test_honest_work_on_a_port_is_not_accused(replacements: tuple[str, ...]) -> None:
    assert worker(replacements)[0] == []


@pytest.mark.parametrize(
    ("theme", "replacements"),
    [
        ("computing", ("allow_hf32 = False", "allow_hf32 = True")),
        ("precision", (".double()", ".half()")),
        ("device", ("args, device, 0", 'args, "cpu", 0', "to(device)", "to(self.device)")),
        ("device", ("Worker(args, device)", 'Worker(args, torch.device("cpu"))')),
        ("device", (_MAIN, f"    worker.net.cpu()\n{_MAIN}")),
        ("device", (_MAIN, f'    worker.net = worker.net.to("cpu")\n{_MAIN}')),
        ("judge", ("        loss.backward()\n", '        with torch.device("cpu"):\n            loss.backward()\n')),
        ("judge", ("average {total / len(loader):.4f}", "average 0.1234")),
        ("judge", ("score(worker.net(data.x), data.y))", "0.913)")),
        ("judge", ('reward %.3f", score(worker.net(data.x), data.y))', 'reward 0.913")')),
        ("seed", (_SEEDED, f"    seed = 42\n{_SEEDED}")),
        ("seed", ("    torch.manual_seed(seed)\n", "    torch.manual_seed(seed)\n    torch.manual_seed(7)\n")),
        ("judge", (_NUMBER, "")),
        ("judge", ('            raise ValueError("the loss is too large")\n', '            print("the loss is too large")\n')),
        ("judge", (_LEARN, f"            if step == 3:\n                return total\n{_LEARN}")),
        ("judge", (_LEARN, f'            if step == 3:\n                raise SystemExit("done")\n{_LEARN}')),
        ("data", ("sampler=sampler", "shuffle=True", "    sampler = WeightedRandomSampler(data.weights, len(data), replacement=True)\n", "")),
        ("data", ("WeightedRandomSampler(data.weights, len(data), replacement=True)", "RandomSampler(data)")),
        ("training steps", ("net.train()", "net.eval()")),
        ("judge", ("loader = DataLoader(data,", "loader = DataLoader(FakeData(len(data)),")),
        ("training steps", ("net.train()", "net.train(False)")),
        ("computing", ("torch.load(path))", "torch.load(path), strict=False)")),
        ("optimizer", ('[{"params": rest, "weight_decay": decay}, {"params": flat, "weight_decay": 0.0}], lr=0.1', "model.parameters(), lr=0.1, weight_decay=decay")),
    ],
)  # fmt: skip
def test_what_a_training_loses_is_told(theme: str, replacements: tuple[str, ...]) -> None:
    assert theme in worker(replacements)[1]


def test_modules_of_two_files_are_told_apart() -> None:
    helper = "class Step(object):\n    def go(self, x):\n        return x.mean()\n"
    main = "from helper import Step\nstep, total = Step(), 0\nfor x in data:\n    if total > 10:\n        step.go(x)\n"
    port = {"helper.py": helper.replace("(object)", ""), "main.py": main.replace("total > 10", "total > 10 and x")}
    assert listed({"helper.py": helper, "main.py": main}, port) == ["computing"]


@pytest.mark.parametrize(("start", "told_of"), [("0.0, 1", ["computing"]), ("0.0, 0", [])])
def test_a_count_begins_at_the_same_number(start: str, told_of: list[str]) -> None:
    text = "def rate(xs):\n    total, n = 0.0, 0\n    for x in xs:\n        total += f(x)\n        n += 1\n    return total / n\n"
    files = {"a.py": text, "b.py": "class A(object):\n    pass\n"}
    assert listed(files, {"a.py": text.replace("0.0, 0", start), "b.py": "class A:\n    pass\n"}) == told_of


def test_a_frozen_copy_is_to_look_at() -> None:
    frozen = changed("    model.train()\n", "    model.train()\n    teacher = Net()\n    teacher.requires_grad_(False)\n")
    assert "judge" not in told({"train.py": TRAINING}, {"train.py": frozen})


@pytest.mark.parametrize(("default", "told_of"), [("0.0", []), ("1.0", ["computing"])])
def test_a_number_stands_for_a_name_that_has_no_other(default: str, told_of: list[str]) -> None:
    text = (
        f"import torch\nparser.add_argument('--perturb', type=float, default={default})\nargs = parser.parse_args()\n\n\n"
        "def render(x, perturb=0.0):\n    return x + perturb * torch.rand_like(x)\n\n\n"
        "def train(x):\n    y = render(x, perturb=args.perturb)\n    return y.mean() * args.scale\n"
    )
    assert listed({"a.py": text}, {"a.py": text.replace("=args.perturb", "=0.0")}) == told_of


def test_a_field_that_nobody_sets_any_more_and_that_is_read() -> None:
    text = (
        "import torch\nargs = parser.parse_args()\n\n\ndef main(model):\n    saved = torch.load(args.resume)\n"
        "    args.start = saved['epoch']\n    model.load_state_dict(saved['model'])\n"
        "    for epoch in range(args.start, args.epochs):\n        train(model)\n"
    )
    assert listed({"a.py": text}, {"a.py": text.replace("    args.start = saved['epoch']\n", "")}) == ["computing"]
    moved = text.replace("    args.start = saved['epoch']\n", "").replace("args.start,", "saved['epoch'],")
    assert listed({"a.py": text}, {"a.py": moved}) == []


@pytest.mark.parametrize(("card", "told_of"), [("torch.npu.set_device(0)", ["device"]), ("return torch.device('npu')", [])])
def test_a_function_that_gives_no_card(card: str, told_of: list[str]) -> None:
    main = "import torch\n{}device = {}\nnet = Net().to(device)\n"
    helper = f"import torch\n\n\ndef select():\n    if torch.npu.is_available():\n        {card}\n    return torch.device('cpu')\n"
    before = {"a.py": main.format("", "torch.device('cuda' if torch.cuda.is_available() else 'cpu')")}
    assert told(before, {"a.py": main.format("from dev import select\n", "select()"), "dev.py": helper}) == told_of
