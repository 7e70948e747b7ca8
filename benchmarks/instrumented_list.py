"""The public scripts that `instrumented_scripts.py` records, of twelve repositories."""

from __future__ import annotations

from many_cards_scripts import Script
from proof_scripts import PROVEN
from proof_scripts import REPOSITORIES as _PROVEN

REPOSITORIES = {
    **_PROVEN,
    "BERT-pytorch": ("codertimo/BERT-pytorch", "d10dc4f"),
    "TCN": ("locuslab/TCN", "2f8c2b8"),
    "pyGAT": ("Diego999/pyGAT", "3664f2d"),
    "pytorch-cifar100": ("weiaicunzai/pytorch-cifar100", "11d8418"),
}

#: Of those that are proven, some of each kind.
_TAKEN = (
    "examples/mnist/main.py",
    "examples/vae/main.py",
    "examples/word_language_model/main.py",
    "examples/dcgan/main.py",
    "pytorch-cifar/main.py",
    "pytorch-tutorial/tutorials/02-intermediate/deep_residual_network/main.py",
    "pytorch-tutorial/tutorials/02-intermediate/bidirectional_recurrent_neural_network/main.py",
    "PyTorch-GAN/implementations/dcgan/dcgan.py",
    "nanoGPT/train.py",
    "Pytorch-UNet/train.py",
)

_NODES = """
import os
import pathlib
import numpy
os.makedirs("data/cora")
drawn = numpy.random.default_rng(1)
with open("data/cora/cora.content", "w") as file:
    for node in range(60):
        print(node, *drawn.integers(0, 2, 12), f"class{node % 4}", file=file)
numpy.savetxt("data/cora/cora.cites", [(node, node * 7 % 60) for node in range(1, 60)], fmt="%d")
path = pathlib.Path("utils.py")
text = path.read_text().replace("range(140)", "range(20)").replace("range(200, 500)", "range(20, 40)")
path.write_text(text.replace("range(500, 1500)", "range(40, 60)"))
"""
_HOURS = """
import os
import pathlib
import numpy
os.makedirs("data/ETT", exist_ok=True)
drawn = numpy.random.default_rng(1).standard_normal((240, 7)).round(3)
with open("data/ETT/ETTh1.csv", "w") as file:
    print("date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT", file=file)
    for hour, row in enumerate(drawn):
        print(f"2016-07-{hour // 24 + 1:02} {hour % 24:02}:00:00", *row, sep=",", file=file)
for path in (*pathlib.Path().glob("data*/data_loader.py"), *pathlib.Path("utils").glob("*.py")):
    text = path.read_text().replace("30*24", "10").replace("30 * 24", "10").replace("np.Inf", "np.inf")
    path.write_text(text)
"""
_HOURLY = (
    *("--data", "ETTh1", "--seq_len", "24", "--label_len", "12", "--pred_len", "8", "--d_model", "16"),
    *("--n_heads", "2", "--d_ff", "32", "--batch_size", "4", "--train_epochs", "1", "--itr", "1"),
)
_SENTENCES = """
import sys
sys.path.insert(0, ".")
lines = [f"{'a b c d e f g h'[number % 8:]}\\td e f g {number % 3}" for number in range(24)]
open("corpus.tsv", "w").write("\\n".join(lines) + "\\n")
open("bert.py", "w").write("from bert_pytorch.__main__ import train\\n\\ntrain()\\n")
from bert_pytorch.dataset import WordVocab
WordVocab([line.replace("\\t", " ") for line in lines], max_size=None, min_freq=1).save_vocab("vocab")
"""
_SHORT = """
import pathlib
path = pathlib.Path("conf/global_settings.py")
path.write_text(path.read_text().replace("EPOCH = 200", "EPOCH = 1", 1))
"""

LISTED = (
    *(each for name in _TAKEN for each in PROVEN if each.name == name),
    Script("language model", "nlp-tutorial/5-2.BERT", "BERT.py", settings=(("range(100)", "range(4)"),)),
    Script("time series", "Informer2020", "main_informer.py", ("--model", "informer", *_HOURLY), prepare=_HOURS),
    Script(
        "classification", "pytorch-cifar100", "train.py", ("-net", "squeezenet", "-gpu", "-b", "8"), prepare=_SHORT,
        settings=(("writer.add_graph(net, input_tensor)", "pass"),),  # no device of the emulator is traced
    ),
    Script(
        "language model", "BERT-pytorch", "bert.py",
        ("-c", "corpus.tsv", "-v", "vocab", "-o", "out.model", "-hs", "16", "-l", "2", "-a", "2", "-b", "4", "-e", "1"),
        prepare=_SENTENCES,
    ),
    Script("graph", "pyGAT", "train.py", ("--epochs", "3"), prepare=_NODES),
    Script(
        "sequence", "TCN", "TCN/adding_problem/add_test.py",
        ("--epochs", "1", "--batch_size", "8", "--seq_len", "32", "--levels", "3", "--dropout", "0.1"),
        settings=(("50000", "64"), ("1000, seq", "16, seq")),
    ),
)  # fmt: skip
