"""What `proof.py` proves beyond the scripts of `many_cards.py`, and the commit of each repository."""

from __future__ import annotations

from many_cards_scripts import NO_CARD, SCRIPTS, Script

#: Folder below that of all clones -> the repository, and the commit that the published page speaks of.
REPOSITORIES = {
    "Autoformer": ("thuml/Autoformer", "51c7d41"),
    "Informer2020": ("zhouhaoyi/Informer2020", "29f2a73"),
    "PyTorch-GAN": ("eriklindernoren/PyTorch-GAN", "36d3c77"),
    "Pytorch-UNet": ("milesial/Pytorch-UNet", "21d7850"),
    "Real-Time-Voice-Cloning": ("CorentinJ/Real-Time-Voice-Cloning", "865eba8"),
    "deep-text-recognition-benchmark": ("clovaai/deep-text-recognition-benchmark", "e2117f2"),
    "examples": ("pytorch/examples", "77f55b9"),
    "nanoGPT": ("karpathy/nanoGPT", "3adf61e"),
    "nerf-pytorch": ("yenchenlin/nerf-pytorch", "63a5a63"),
    "nlp-tutorial": ("graykode/nlp-tutorial", "d05e31e"),
    "pytorch-a2c-ppo-acktr-gail": ("ikostrikov/pytorch-a2c-ppo-acktr-gail", "41332b7"),
    "pytorch-cifar": ("kuangliu/pytorch-cifar", "49b7aa9"),
    "pytorch-tutorial": ("yunjey/pytorch-tutorial", "0500d3d"),
    "ssd.pytorch": ("amdegroot/ssd.pytorch", "5b0b77f"),
    "wavenet_vocoder": ("r9y9/wavenet_vocoder", "a35fff7"),
}

_TOKENS = """
import os
import numpy
os.makedirs("data/shakespeare_char", exist_ok=True)
for name, seed in (("train", 1), ("val", 2)):
    drawn = numpy.random.default_rng(seed).integers(0, 64, 4096)
    drawn.astype(numpy.uint16).tofile(f"data/shakespeare_char/{name}.bin")
"""


def _gan(name: str, *arguments: str, **more: object) -> Script:
    given = ("--n_epochs", "1", *(arguments or ("--batch_size", "8")))
    return Script("GAN", f"PyTorch-GAN/implementations/{name}", f"{name}.py", given, **more)  # type: ignore[arg-type]


_MORE = (
    _gan("bgan"),
    _gan("cgan"),
    _gan("dragan"),
    _gan("wgan_div"),
    Script("GAN", "PyTorch-GAN/implementations/cluster_gan", "clustergan.py", ("-n", "1", "-b", "8")),
    _gan("pixelda"),
    Script(
        "language model",
        "nanoGPT",
        "train.py",
        (
            *("--dataset=shakespeare_char", "--compile=False", "--eval_interval=4", "--eval_iters=2", "--max_iters=6"),
            *("--log_interval=1", "--block_size=16", "--batch_size=4", "--n_layer=2", "--n_head=2", "--n_embd=16"),
            *("--gradient_accumulation_steps=2", "--lr_decay_iters=6", "--warmup_iters=1", "--dtype=float32"),
        ),
        prepare=_TOKENS,
    ),
    Script(
        "language model", "pytorch-tutorial/tutorials/02-intermediate/bidirectional_recurrent_neural_network",
        "main.py", settings=(("num_epochs = 2", "num_epochs = 1"), ("batch_size = 100", "batch_size = 8")),
    ),
)  # fmt: skip

#: In the order in which they are proven: last what computes on no card, and what needs packages that are not here.
PROVEN = sorted((*SCRIPTS, *_MORE), key=lambda each: (not each.runs, each.reason == NO_CARD))

_WHOLE = (
    "True, and said at the migration: it trains on one batch of all its data, and NPU340 says that every rank trains "
    "with all of the data"
)
_FIXED = (
    "The script shapes tensors by its batch size, so it takes no larger batch than that; and each rank draws noise of "
    "its own, so that no step of one process can be held against it. The parameters of the ranks agree after each step"
)
_SPARSE = (
    "True, and said at the migration: torch_npu multiplies no sparse matrices (NPU526). With `to_dense()` in front of "
    "`to(device)`, as the finding says, it trains"
)
_NUMPY = (
    "True, and not said at the migration: `distributed` seeds NumPy alike on all ranks, and only torch by rank before "
    "the training, whose noise this program draws from NumPy"
)
#: (script, way) -> what reading a verdict that is not `equal` has shown.
READ: dict[tuple[str, str], str] = {
    **{
        (f"PyTorch-GAN/implementations/{name}/{name}.py", way): _NUMPY
        for name in ("infogan", "sgan")
        for way in ("distributed", "four")
    },
    ("examples/mnist_forward_forward/main.py", "distributed"): _WHOLE,
    ("examples/mnist_forward_forward/main.py", "four"): _WHOLE,
    ("pytorch-tutorial/tutorials/03-advanced/generative_adversarial_network/main.py", "distributed"): _FIXED,
    ("pytorch-tutorial/tutorials/03-advanced/generative_adversarial_network/main.py", "four"): _FIXED,
    **{("examples/gcn/main.py", way): _SPARSE for way in ("plain", "distributed", "four", "tune")},
}
