"""Forty-odd faults that are planted in recorded runs, and pairs of runs that are equal: what `compare` has to say.

The programs lie in `programs/`. A fault is one of `transplt run --fault`, below the recorder as a wrong kernel is, or a
replacement in the text of the program, as somebody who ports it makes.
"""

from __future__ import annotations

from dataclasses import dataclass

Swaps = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Planted:
    """One fault. `names` is what the verdict has to name: one of these, parted by `|`; `how` is a piece of the first
    line. `swaps` are (old, new), each old text standing there once; `fault` is one of `--fault`. Of a fault in a line
    of the program, `line` is a piece of the line that has to be named."""

    kind: str
    name: str
    names: str
    how: str
    fault: str = ""
    swaps: Swaps = ()
    line: str = ""

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """What is right to name in a dump of msprobe, which has no row for `triu`, indexing, changes of type and
        functions of `VF`, and has rows for what optimizers compute."""
        return ELSEWHERE.get(self.name, ())

    @property
    def nproc(self) -> int:
        """The number of processes that torchrun starts; 0 without it."""
        return 2 if self.kind == "ranks" else 0


def kernel(kind: str, fault: str, names: str, how: str, name: str = "") -> Planted:
    return Planted(kind, name or fault.replace("=", " "), names, how, fault)


def text(kind: str, name: str, old: str, new: str, names: str, how: str, line: str = "") -> Planted:
    return Planted(kind, name, names, how, "", ((old, new),), line)


PLANTED = [
    kernel("convolution", "conv2d.1=sign", "Functional.conv2d.1.forward", "of the other sign"),
    kernel("convolution", "relu.0=scale:1.02", "Functional.relu.0.forward", "scaled by 1.02"),
    kernel("convolution", "max_pool2d=scale:1.5", "Functional.max_pool2d.0.forward", "scaled by 1.5"),
    kernel("convolution", "conv2d.0=bf16", "Functional.conv2d.0.forward", "rounded to bfloat16"),
    kernel("convolution", "relu.1=nan", "Functional.relu.1.forward", "its output is nan"),
    text("convolution", "another eps in a batch norm", "BatchNorm2d(16)", "BatchNorm2d(16, eps=1e-2)",
         "Functional.batch_norm.1.forward", "is 0.01 and not 1e-05", "self.bn2(self.conv2"),
    text("convolution", "another momentum in a batch norm", "BatchNorm2d(8)", "BatchNorm2d(8, momentum=0.9)",
         "Functional.batch_norm.0.forward", "is 0.9 and not 0.1", "self.bn1(self.conv1"),
    text("convolution", "sum for mean in the loss", "nn.CrossEntropyLoss()", 'nn.CrossEntropyLoss(reduction="sum")',
         "Functional.cross_entropy.0.forward", "is sum and not mean", "criterion(model(x), y)"),
    text("convolution", "relu left out", "F.relu(self.bn2(self.conv2(x)))", "self.bn2(self.conv2(x))",
         "Functional.relu.1.forward", "missing"),
    text("convolution", "an operator too many", "F.max_pool2d(x, 2)", "F.hardtanh(F.max_pool2d(x, 2))",
         "Functional.hardtanh.0.forward", "only on the NPU's side", "F.hardtanh"),
    text("convolution", "samples in another order", "TensorDataset(pictures, labels)",
         "TensorDataset(pictures.flip(0), labels.flip(0))",
         "Functional.conv2d.0.forward input.0|Module.conv1.Conv2d.forward.0 input.0", "input inconsistent"),
    text("convolution", "smaller batches", "batch_size=8", "batch_size=6",
         "Functional.conv2d.0.forward input.0|Module.conv1.Conv2d.forward.0 input.0", "of shape [6, 3, 12, 12] and not [8, 3, 12, 12]"),
    text("convolution", "other weights", "model = Net()", "torch.manual_seed(8)\nmodel = Net()",
         "conv1.weight", "initial weights differ"),
    text("convolution", "no gradient behind max_pool2d", "F.max_pool2d(x, 2)", "F.max_pool2d(x, 2).detach()",
         "Functional.conv2d.1.forward input.0", "no gradient flows", "F.max_pool2d"),
    text("convolution", "a gradient scaled between operators", "x = F.max_pool2d(x, 2)",
         "x = F.max_pool2d(x, 2)\n        x.requires_grad and x.register_hook(lambda gradient: gradient * 1.5)",
         "Functional.max_pool2d.0.backward input.0", "every operator before agrees", "F.max_pool2d"),
    text("convolution", "SGD without momentum", "momentum=0.9, ", "", "Optimizer.SGD.0|conv1.weight", "the optimizer's step"),
    text("convolution", "a larger weight decay", "weight_decay=1e-4", "weight_decay=0.1", "Optimizer.SGD.0|conv1.weight",
         "the optimizer's step"),
    text("transformer", "tanh for gelu", "F.gelu(self.up(self.norm2(x)))",
         'F.gelu(self.up(self.norm2(x)), approximate="tanh")',
         "Functional.gelu.0.forward", "argument", "F.gelu"),
    kernel("transformer", "softmax=sign", "Torch.softmax.0.forward", "of the other sign"),
    kernel("transformer", "layer_norm.1=scale:1.02", "Functional.layer_norm.1.forward", "scaled by 1.02"),
    kernel("transformer", "linear.1=bf16", "Functional.linear.1.forward", "rounded to bfloat16"),
    kernel("transformer", "matmul.1=nan", "Torch.matmul.1.forward", "its output is nan"),
    text("transformer", "another eps in a layer norm", "norm1 = nn.LayerNorm(width)",
         "norm1 = nn.LayerNorm(width, eps=1e-2)",
         "Functional.layer_norm.0.forward", "is 0.01 and not 1e-05", "self.norm1(x)"),
    text("transformer", "a wrong mask", ".triu(1)", ".triu(2)", "Tensor.triu.0.forward", "is 2 and not 1", ".triu("),
    text("transformer", "a wrong scale of the scores", "math.sqrt(width // self.heads)", "math.sqrt(width)",
         "Tensor.__truediv__.0.forward|Tensor.div.0.forward", "scaled by 0.7071", "math.sqrt(width)"),
    text("transformer", "other weights", "self.embed = nn.Embedding(words, width)",
         "self.embed = nn.Embedding(words, width)\n        nn.init.normal_(self.embed.weight, std=0.5)",
         "embed.weight", "initial weights differ"),
    text("transformer", "another type", "F.gelu(self.up(self.norm2(x)))",
         "F.gelu(self.up(self.norm2(x)).bfloat16()).float()",
         "Tensor.bfloat16.0.forward|Functional.gelu.0.forward", "bfloat16", "F.gelu"),
    text("transformer", "relu for gelu", "F.gelu", "F.relu", "Functional.relu.0.forward",
         "where the other side has Functional.gelu.0.forward", "F.relu"),
    text("transformer", "a residual left out", "x = x + self.attention(self.norm1(x))",
         "x = self.attention(self.norm1(x))", "Tensor.__add__.0.forward|Tensor.add.0.forward", "missing",
         "x + self.attention"),
    text("transformer", "another batch", "text[step].to", "text[(step + 1) % 3].to",
         "Tensor.__getitem__.0.forward|Functional.embedding.0.forward input.0|Module.embed.Embedding.forward.0 input.0",
         "", "text[(step + 1) % 3]|self.embed(words)"),
    text("transformer", "targets that are not shifted", "batch[:, 1:].reshape", "batch[:, :-1].reshape",
         "Tensor.__getitem__.2.forward|Tensor.__getitem__.1.forward", "argument", "batch[:, :-1].reshape"),
    text("transformer", "no gradient through the softmax", 'float("-inf")), dim=-1)', 'float("-inf")), dim=-1).detach()',
         "Torch.matmul.1.forward input.0", "no gradient flows", "torch.softmax"),
    text("transformer", "Adam with other betas", "betas=(0.9, 0.99)", "betas=(0.5, 0.9)", "Optimizer.AdamW.0|embed.weight|norm1.bias",
         "the optimizer's step"),
    text("transformer", "Adam with another eps", "eps=1e-8", "eps=1e-2", "Optimizer.AdamW.0|embed.weight|norm1.weight|norm1.bias",
         "the optimizer's step"),
    text("transformer", "gradients that are not clipped",
         "    nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n", "",
         "Module.embed.Embedding.parameters_grad.0", "the gradients of"),
    text("transformer", "gradients of the step before stay", "    optimizer.zero_grad()\n", "",
         "Module.embed.Embedding.parameters_grad.0", "the gradients of"),
    kernel("recurrent", "tanh.0=sign", "Torch.tanh.0.forward", "of the other sign"),
    kernel("recurrent", "lstm=scale:1.02", "VF.lstm.0.forward", "scaled by 1.02"),
    kernel("recurrent", "sigmoid.0=bf16", "Torch.sigmoid.0.forward", "rounded to bfloat16"),
    kernel("recurrent", "gru_cell.1=nan", "VF.gru_cell.1.forward", "its output is nan"),
    text("recurrent", "a gate left out", "state * torch.sigmoid(self.gate(state))", "state",
         "Functional.linear.1.forward|Module.gate.Linear.forward.0|Torch.sigmoid.0.forward", "missing",
         "torch.sigmoid(self.gate(state))"),
    text("recurrent", "other weights", "self.cell = nn.GRUCell(width, width)",
         "self.cell = nn.GRUCell(width, width)\n        nn.init.zeros_(self.cell.bias_hh)",
         "cell.bias_hh", "initial weights differ"),
    text("recurrent", "no gradient into the LSTM's state", "hidden[-1]", "hidden[-1].detach()",
         "VF.gru_cell.0.forward input.1", "no gradient flows", "self.cell("),  # seen[:, -1] has the same values
    text("recurrent", "a shorter sequence", "wave[:, :-2]", "wave[:, :-3]", "Tensor.__getitem__.1.forward|Tensor.__getitem__.0.forward",
         "of shape [6, 5, 4] and not [6, 6, 4]", "wave[:, :-3]"),
    text("recurrent", "batch_first forgotten", ", batch_first=True", "", "VF.lstm.0.forward", "is 0 and not 1",
         "self.lstm("),
    text("recurrent", "RMSprop with another alpha", "alpha=0.95", "alpha=0.5", "Optimizer.RMSprop.0|into.weight|into.bias", "the optimizer's step"),
    text("gan", "another slope", "nn.Linear(16, 20), nn.LeakyReLU(0.2)", "nn.Linear(16, 20), nn.LeakyReLU()",
         "Functional.leaky_relu.0.forward", "is 0.01 and not 0.2", "judge(true)"),
    kernel("gan", "tanh=scale:1.5", "Tensor.tanh.0.forward|Torch.tanh.0.forward", "scaled by 1.5"),
    kernel("gan", "linear.3=bf16", "Functional.linear.3.forward", "rounded to bfloat16"),
    text("gan", "sum for mean in the loss", "nn.BCEWithLogitsLoss()", 'nn.BCEWithLogitsLoss(reduction="sum")',
         "Functional.binary_cross_entropy_with_logits.0.forward", "is sum and not mean", "criterion("),
    text("gan", "the wrong labels", "criterion(judge(made), ones)", "criterion(judge(made), zeros)",
         "Functional.binary_cross_entropy_with_logits.2.forward input.1", "all zero", "criterion(judge(made), zeros)"),
    text("gan", "another rate in one optimizer", "judges = torch.optim.Adam(judge.parameters(), lr=2e-3",
         "judges = torch.optim.Adam(judge.parameters(), lr=2e-2", "Optimizer.Adam.0|1.0.bias|1.0.weight|0.weight|0.bias", "the optimizer's step"),
    kernel("ranks", "gelu@1=scale:1.02", "Functional.gelu.0.forward", "rank 1", "gelu on rank 1 scale:1.02"),
    kernel("ranks", "linear.1@1=sign", "Functional.linear.1.forward", "rank 1", "linear.1 on rank 1 sign"),
    text("ranks", "one share for all ranks", "samples[step].chunk(world)[rank]", "samples[step].chunk(world)[0]",
         "Tensor.chunk.0.forward|Functional.linear.0.forward input.0|Tensor.to.0.forward input.0|"
         "Module.Net.forward.0 input.0|Module.one.Linear.forward.0 input.0",
         "rank 1"),
    text("ranks", "gradients that are not added up", "    loss = F.cross_entropy(model(x), y)\n    loss.backward()\n",
         "    with model.no_sync():\n        loss = F.cross_entropy(model(x), y)\n        loss.backward()\n",
         "Module.module.one.Linear.parameters_grad.0", "the gradients of"),
    text("ranks", "another rate on one rank", "lr=0.1)", "lr=0.1 * (1 + rank))", "Optimizer.SGD.0|one.weight|one.bias", "the optimizer's step"),
]  # fmt: skip


ELSEWHERE = {
    "no gradient behind max_pool2d": ("Functional.conv2d.1.backward", "Functional.max_pool2d.0.backward"),
    "a gradient scaled between operators": ("Tensor.__mul__.0.forward",),
    "a wrong mask": ("Tensor.masked_fill.0.forward input.1",),
    "another type": ("Functional.gelu.0.forward input.0",),
    "targets that are not shifted": ("Functional.cross_entropy.0.forward input.1",),
    "gradients of the step before stay": ("Module.head.Linear.parameters_grad.0",),
    "lstm scale:1.02": ("Tensor.__mul__.0.forward", "Module.lstm.LSTM.forward.0"),
    "gru_cell.1 nan": ("Tensor.__setitem__.0.forward", "Module.cell.GRUCell.forward.1"),
    "a shorter sequence": ("Functional.linear.0.forward input.0",),
    "batch_first forgotten": ("Module.lstm.LSTM.forward.0",),
}


@dataclass(frozen=True)
class Equal:
    """Two runs that compute the same. `npu` and `bench` are devices (`npu`, `cuda`, `cpu`); `swaps` are those of the
    NPU's side, `nproc` the processes of each."""

    kind: str
    name: str
    npu: str = "npu"
    bench: str = "cpu"
    swaps: Swaps = ()
    nproc: tuple[int, int] = (0, 0)


EQUAL = [
    Equal("convolution", "CPU and NPU"),
    Equal("transformer", "CPU and NPU"),
    Equal("recurrent", "CPU and NPU"),
    Equal("gan", "CPU and NPU"),
    Equal("ranks", "two ranks, CPU and NPU", nproc=(2, 2)),
    Equal("ranks", "DDP of one rank, and no DDP", nproc=(1, 0)),
    Equal("convolution", "CUDA host and NPU", bench="cuda"),
    Equal("transformer", "CUDA host and NPU", bench="cuda"),
    Equal("transformer", "fused attention", swaps=(("FUSED = False", "FUSED = True"),)),
    Equal("transformer", "AdamW foreach, and one tensor at a time",
          swaps=(("weight_decay=0.01)", "weight_decay=0.01, foreach=True)"),)),
    Equal("gan", "Adam one tensor at a time", bench="npu",
          swaps=(("makes = torch.optim.Adam(maker.parameters(), ",
                  "makes = torch.optim.Adam(maker.parameters(), foreach=False, "),)),
    # An NPU refuses this format of memory.
    Equal("convolution", "channels last", npu="cuda", swaps=(
        ("model = Net().to(device)", "model = Net().to(device, memory_format=torch.channels_last)"),)),
]  # fmt: skip
