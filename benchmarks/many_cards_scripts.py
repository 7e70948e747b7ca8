"""The single-card scripts of `many_cards.py`: of many kinds, and what is right for each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Script:
    """A script of a public repository. `project`: the folder that is migrated, from that of all clones.

    `settings` replace texts of the script so that it is small; `stubs` names modules that do nothing; `prepare` is a
    program that writes data, run beside the script; `same`: one process with the same global batch trains alike;
    `even`: so it does where batch norms and draws do not hang on a share of a batch (see `tests.ranks.run_ranks`).
    """

    kind: str
    project: str
    main: str
    arguments: tuple[str, ...] = ()
    expected: str = "converted"
    reason: str = ""
    note: str = ""
    same: bool = False
    even: bool = False
    runs: bool = True
    stubs: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    prepare: str = ""

    @property
    def name(self) -> str:
        return f"{self.project}/{self.main}"


def _gan(name: str, *arguments: str, **more: object) -> Script:
    given = ("--n_epochs", "1", "--batch_size", "8", *arguments)
    return Script("GAN", f"PyTorch-GAN/implementations/{name}", f"{name}.py", given, note=NOISE, even=True, **more)  # type: ignore[arg-type]


def _tutorial(kind: str, name: str, *settings: tuple[str, str], **more: object) -> Script:
    return Script(kind, f"pytorch-tutorial/tutorials/{name}", "main.py", settings=settings, **more)  # type: ignore[arg-type]


NOISE = "each rank draws noise of its own"
SUM = "each rank draws noise of its own; the loss is a sum, of which the mean is half (NPU346)"
NO_CARD = "nothing of this program is on a card"
STTY = """
text = open("utils.py").read()
open("utils.py", "w").write(text.replace("os.popen('stty size', 'r').read().split()", "24, 80"))
"""
TEXT = """
import os
os.makedirs("data", exist_ok=True)
for name in ("train", "valid", "test"):
    open("data/" + name + ".txt", "w").write("a b c d e f g h\\n" * 200)
"""
PICTURES = """
import os
for name in ("dataset/BSDS300/images/train", "dataset/BSDS300/images/test", "png"):
    os.makedirs(name, exist_ok=True)
    for each in ["content", "style"] if name == "png" else range(16):
        open(f"{name}/{each}.png", "w")
"""
CORA = """
import tarfile
import numpy
drawn = numpy.random.default_rng(1)
with open("cora.content", "w") as file:
    for node in range(60):
        bits = " ".join(map(str, drawn.integers(0, 2, 12)))
        print(node, bits, f"class{node % 4}", file=file)
numpy.savetxt("cora.cites", [(node, node * 7 % 60) for node in range(1, 60)], fmt="%d")
with tarfile.open("cora.tgz", "w:gz") as packed:
    for name in ("cora.content", "cora.cites"):
        packed.add(name, "cora/" + name)
"""
UNET = """
import os
import re
import numpy
for name, shape in (("imgs", (32, 32, 3)), ("masks", (32, 32))):
    os.makedirs("data/" + name, exist_ok=True)
    for each in range(10):
        drawn = numpy.random.default_rng(each).integers(0, 256, shape, dtype="uint8")
        numpy.save(f"data/{name}/{each}.npy", drawn if name == "imgs" else drawn // 128)
network = open("unet/unet_model.py").read()
smaller = re.sub(r"\\b(64|128|256|512|1024)\\b", lambda each: str(int(each[0]) // 16), network)
open("unet/unet_model.py", "w").write(smaller)
"""
VOCODER = """
import os
import pathlib
import numpy
for name in ("mels", "audio"):
    os.makedirs("data/SV2TTS/synthesizer/" + name)
for each in range(8):
    drawn = numpy.random.default_rng(each)
    numpy.save(f"data/SV2TTS/synthesizer/mels/{each}.npy", drawn.standard_normal((24, 80), dtype="float32"))
    numpy.save(f"data/SV2TTS/synthesizer/audio/{each}.npy", drawn.uniform(-1, 1, 24 * 200))
with open("data/SV2TTS/synthesizer/train.txt", "w") as file:
    for each in range(8):
        print(f"{each}.npy|{each}.npy|-|-|24|text", file=file)
for path, old, new in (
    ("train.py", "350", "3"),
    ("train.py", "num_workers=2", "num_workers=0"),
    ("hparams.py", "_syn_hp.preemphasize", "False"),
    ("hparams.py", "_dims = 512", "_dims = 16"),
    ("hparams.py", "voc_batch_size = 100", "voc_batch_size = 2"),
    ("hparams.py", "voc_gen_at_checkpoint = 5", "voc_gen_at_checkpoint = 0"),
    ("models/fatchord_version.py", "np.cumproduct", "np.cumprod"),
):
    path = pathlib.Path("vocoder") / path
    assert old in path.read_text(), old
    path.write_text(path.read_text().replace(old, new))
os.makedirs("scipy")
os.rename("scipy.py", "scipy/__init__.py")
open("scipy/signal.py", "w").write("lfilter = None")
"""
WIKI = TEXT.replace("data", "data/wikitext-2")

SCRIPTS = (
    Script(
        "classification",
        "examples/mnist",
        "main.py",
        ("--epochs", "1", "--batch-size", "{batch}", "--log-interval", "2", "--save-model"),
        same=True,
    ),
    Script(
        "classification",
        "examples/mnist_rnn",
        "main.py",
        ("--epochs", "1", "--batch-size", "{batch}", "--accel", "--log-interval", "2"),
        note="BatchNorm of a card",
        even=True,
    ),
    Script(
        "classification",
        "examples/mnist_forward_forward",
        "main.py",
        ("--epochs", "2", "--train_size", "16", "--test_size", "8", "--log-interval", "1"),
    ),
    Script(
        "classification",
        "pytorch-cifar",
        "main.py",
        settings=(
            ("net = SimpleDLA()", "net = LeNet()"),
            ("start_epoch+200", "start_epoch+2"),
            ("batch_size=128", "batch_size=16"),
            ("num_workers=2", "num_workers=0"),
        ),
        same=True,
        prepare=STTY,
    ),
    _tutorial(
        "classification",
        "01-basics/feedforward_neural_network",
        ("num_epochs = 5", "num_epochs = 2"),
        ("batch_size = 100", "batch_size = 8"),
        same=True,
    ),
    _tutorial("classification", "01-basics/logistic_regression", expected="refused", reason=NO_CARD),
    _tutorial(
        "classification",
        "02-intermediate/convolutional_neural_network",
        ("num_epochs = 5", "num_epochs = 2"),
        ("batch_size = 100", "batch_size = 8"),
        even=True,
    ),
    _tutorial(
        "classification",
        "02-intermediate/deep_residual_network",
        ("num_epochs = 80", "num_epochs = 2"),
        ("batch_size = 100", "batch_size = 16"),
        even=True,
    ),
    _tutorial(
        "time series",
        "02-intermediate/recurrent_neural_network",
        ("num_epochs = 2", "num_epochs = 1"),
        ("batch_size = 100", "batch_size = 8"),
        same=True,
    ),
    _tutorial("regression", "01-basics/linear_regression", expected="refused", reason=NO_CARD),
    Script("regression", "examples/regression", "main.py", expected="refused", reason=NO_CARD),
    _gan("gan"),
    _gan("dcgan"),
    _gan("wgan"),
    _gan("wgan_gp"),
    _gan("lsgan"),
    _gan("acgan"),
    _gan("infogan"),
    _gan("began", runs=False),
    _gan("ebgan"),
    _gan("softmax_gan", runs=False),
    _gan("cogan", runs=False),
    _gan("relativistic_gan"),
    _gan("sgan"),
    _tutorial(
        "GAN",
        "03-advanced/generative_adversarial_network",
        ("num_epochs = 200", "num_epochs = 1"),
        ("batch_size = 100", "batch_size = 4"),
        note=NOISE,
    ),
    Script(
        "GAN",
        "examples/dcgan",
        "main.py",
        (
            "--dataset",
            "fake",
            "--niter",
            "1",
            "--batchSize",
            "8",
            "--workers",
            "0",
            "--ngf",
            "8",
            "--ndf",
            "8",
            "--accel",
        ),
        note=NOISE,
        even=True,
    ),
    Script("autoencoder", "examples/vae", "main.py", ("--epochs", "1", "--batch-size", "8"), note=SUM),
    _tutorial(
        "autoencoder",
        "03-advanced/variational_autoencoder",
        ("num_epochs = 15", "num_epochs = 1"),
        ("batch_size = 128", "batch_size = 8"),
        note=SUM,
    ),
    Script(
        "autoencoder", "PyTorch-GAN/implementations/aae", "aae.py", ("--n_epochs", "1", "--batch_size", "8"),
        note=NOISE, even=True,
    ),
    Script(
        "language model",
        "examples/word_language_model",
        "main.py",
        ("--epochs", "1", "--emsize", "8", "--nhid", "8", "--batch_size", "4", "--accel", "--use-optimizer"),
        prepare=WIKI,
    ),
    _tutorial("language model", "02-intermediate/language_model", ("num_epochs = 5", "num_epochs = 1"), prepare=TEXT),
    Script("language model", "nlp-tutorial/1-1.NNLM", "NNLM.py", expected="refused", reason=NO_CARD),
    Script("language model", "nlp-tutorial/5-2.BERT", "BERT.py", expected="refused", reason=NO_CARD),
    Script(
        "reinforcement learning",
        "examples/reinforcement_learning",
        "actor_critic.py",
        expected="refused",
        reason=NO_CARD,
    ),
    Script("reinforcement learning", "pytorch-a2c-ppo-acktr-gail", "main.py", runs=False),
    Script(
        "graph",
        "examples/gcn",
        "main.py",
        ("--epochs", "3"),
        note="products of sparse tensors have no kernel on NPUs (NPU526)",
        runs=False,
        settings=(("idx[:1000], idx[1000:1500], idx[1500:]", "idx[:10], idx[10:20], idx[20:]"),),
        prepare=CORA,
    ),
    Script(
        "graph",
        "examples/gat",
        "main.py",
        ("--epochs", "3"),
        settings=(("idx[:1200], idx[1200:1600], idx[1600:]", "idx[:10], idx[10:20], idx[20:]"),),
        prepare=CORA,
    ),
    Script(
        "metric learning",
        "examples/siamese_network",
        "main.py",
        ("--epochs", "1", "--batch-size", "8", "--log-interval", "1"),
        prepare="open('stub_pairs', 'w')",
    ),
    Script("detection", "ssd.pytorch", "train.py", runs=False),
    Script("detection", "deep-text-recognition-benchmark", "train.py", runs=False),
    Script(
        "segmentation",
        "Pytorch-UNet",
        "train.py",
        ("--epochs", "1", "--batch-size", "{batch}", "--validation", "20"),
        settings=(("num_workers=os.cpu_count()", "num_workers=0"),),
        stubs=("wandb",),
        prepare=UNET,
        expected="refused",
        reason="differs between ranks",
    ),
    Script(
        "speech",
        "Real-Time-Voice-Cloning",
        "encoder_train.py",
        expected="refused",
        reason="a part of what trains is put on the CPU",
    ),
    Script(
        "speech",
        "Real-Time-Voice-Cloning",
        "vocoder_train.py",
        ("run", "data", "--ground_truth", "--save_every", "1", "--force_restart"),
        stubs=("librosa", "soundfile", "scipy"),
        prepare=VOCODER,
    ),
    Script("speech", "wavenet_vocoder", "train.py", runs=False),
    Script("time series", "examples/time_sequence_prediction", "train.py", expected="refused", reason=NO_CARD),
    Script("time series", "Informer2020", "main_informer.py", expected="refused", reason="differs between ranks"),
    Script("time series", "Autoformer", "run.py", expected="refused", reason="DataParallel cannot become"),
    Script(
        "style transfer",
        "pytorch-tutorial/tutorials/03-advanced/neural_style_transfer",
        "main.py",
        ("--total_step", "3", "--log_step", "1", "--sample_step", "2", "--max_size", "32"),
        prepare=PICTURES,
    ),
    Script("captioning", "pytorch-tutorial/tutorials/03-advanced/image_captioning", "train.py", runs=False),
    Script(
        "super resolution",
        "examples/super_resolution",
        "main.py",
        ("--upscale_factor", "4", "--batchSize", "{batch}", "--nEpochs", "2", "--threads", "0", "--accel"),
        same=True,
        prepare=PICTURES,
    ),
    Script(
        "style transfer",
        "examples/fast_neural_style",
        "neural_style/neural_style.py",
        (
            *("train", "--epochs", "1", "--batch-size", "{batch}", "--dataset", ".", "--save-model-dir", "models"),
            *("--style-image", "png/style.png", "--style-size", "32", "--image-size", "32", "--log-interval", "1"),
            *("--checkpoint-model-dir", "models", "--checkpoint-interval", "2", "--accel"),
            *("--content-weight", "1e-3", "--style-weight", "1e2"),  # both 1e-8 of what they are: rounding is below eps
        ),
        note="Adam makes steps of rounding: biases in front of a norm have no gradient",
        even=True,
        prepare=PICTURES,
    ),
    Script("view synthesis", "nerf-pytorch", "run_nerf.py", runs=False),
)
