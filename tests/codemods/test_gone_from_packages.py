"""What packages gave up: imports that fail and calls that raise, where no handler goes on without them."""

from __future__ import annotations

import re

import pytest

from tests.harness import check_noop, migrate
from transplt import migrate_source
from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.engine import engine
from transplt.engine.actions.actions import actions_of
from transplt.engine.engine import index_source, join_facts
from transplt.engine.prefilter import worth_a_look
from transplt.rules.since import rows_of_gone
from transplt.rules.tables import read_table
from transplt.rules.versions import version_key

_TASK = "import pytorch_lightning as pl\nclass Task(pl.LightningModule):\n    def"
_IO = "from pytorch_lightning.plugins import CheckpointIO\nclass Own(CheckpointIO):\n    def"
_MODEL = "from transformers import BertPreTrainedModel\nclass Own(BertPreTrainedModel):\n    def"
_TRAINER = "from transformers import Trainer\nclass Own(Trainer):\n    def"
_VIT = "from timm.models.vision_transformer import VisionTransformer\n"
_ENV = "import argparse\nimport gymnasium as gym\np = argparse.ArgumentParser()\n"
_STEM = f"{_VIT}m = VisionTransformer(embed_layer=Stem)\nclass Stem:\n    def __init__(self, embed_dim{{}}): pass"
_REGISTERED = """\
from timm.models.registry import register_model
from timm.models.vision_transformer import VisionTransformer
@register_model
"""


@pytest.mark.parametrize(
    "source",
    [
        "import pandas as pd\nx = pd.read_csv(p).drop(['date'], 1).values",
        "import pandas as pd\nx = frame.append(row, ignore_index=True)",
        "import pandas as pd\nx = pd.concat([a, b], 1)",
        "import pandas as pd\nx = pd.read_csv(p, error_bad_lines=False)",
        "import pandas as pd\nstamp['month'] = stamp.date.apply(lambda row: row.month, 1)",
        "from audiotools.data.datasets import AudioLoader\nx = AudioLoader(sources=[p])",
        "import pkg_resources",
        "from pkg_resources import resource_filename",
        "from scipy.misc import imread, imresize",
        "import scipy.misc\nx = scipy.misc.imsave(p, y)",
        "from scipy import misc\nx = misc.imresize(y, 2)",
        "from scipy.misc import face",
        "from sklearn.cross_validation import train_test_split",
        "from scipy.integrate import simps",
        "from datasets import load_dataset, load_metric",
        "from skimage.measure import compare_ssim as ssim",
        "from sklearn.externals import joblib",
        "from moviepy.editor import VideoFileClip",
        "import seaborn as sns\nsns.tsplot(x)",
        "import seaborn as sns\nsns.FacetGrid(frame, size=3)",
        "from accelerate import Accelerator\na = Accelerator(fp16=True)",
        "import accelerate\na = accelerate.Accelerator(dispatch_batches=True)",
        "from monai.transforms import AddChanneld",
        "from omegaconf import OmegaConf\nx = OmegaConf.is_none(c)",
        "from torchvision import models\nclass C(models.ConvBNReLU):\n    pass",
        "from torchvision.models.utils import load_state_dict_from_url",
        "from torchvision.transforms.functional_tensor import rgb_to_grayscale",
        "import librosa\nlibrosa.output.write_wav(p, y, 3)",
        "import yaml\nc = yaml.load(open(p))",
        "import torchaudio as ta\nprint(ta.info(path).num_frames)",
        "import torchaudio\ntorchaudio.set_audio_backend('sox_io')",
        "import torchaudio\nwave, rate = torchaudio.load(path)",
        "from transformers.modeling_bert import BertModel",
        "from transformers.tokenization_roberta import RobertaTokenizer",
        "from transformers.deepspeed import HfDeepSpeedConfig",
        "from transformers.generation_utils import GenerationMixin",
        "from transformers.modeling_utils import PretrainedConfig, PreTrainedModel",
        "from transformers.utils.model_parallel_utils import get_device_map",
        "from transformers import AdamW, get_scheduler",
        "from transformers import TrainingArguments\na = TrainingArguments(o, evaluation_strategy='steps')",
        "from transformers.optimization import AdamW, get_linear_schedule_with_warmup",
        "from transformers import AutoTokenizer, AutoModelWithLMHead",
        "from transformers.trainer_pt_utils import DistributedLengthGroupedSampler, SequentialDistributedSampler",
        "from transformers.integrations import default_hp_search_backend, is_comet_available",
        "from transformers.file_utils import cached_path",
        "from transformers.modeling_utils import PreTrainedModel, prune_linear_layer",
        "from transformers.trainer import *\ndef f(x: Union[int, str]): pass",
        "from transformers.trainer import *\nfrom typing import Union\nclass C:\n    x: Optional[Union] = None",
        f"{_TRAINER} f(self):\n        return self.is_local_master()",
        "from transformers.pytorch_utils import find_pruneable_heads_and_indices",
        "from transformers.data.processors.glue import *",
        "from transformers import InputExample",
        "from peft import LoraConfig, prepare_model_for_int8_training",
        "from pytorchvideo.transforms import Normalize",
        "from librosa.filters import mel as mel_fn\nm = mel_fn(rate, n_fft, 80)",
        "import librosa\ny, sr = librosa.load(path, 22050)",
        "import librosa\ny = librosa.resample(y, a, b)",
        "import motmetrics as mm\na = mm.utils.compare_to_groundtruth(g, t, 'iou', distth=0.5)",
        "import motmetrics as mm\nd = mm.distances.iou_matrix(a, b, max_iou=0.5)",
        "from torchvision.utils import make_grid, save_image\ng = make_grid(x, 3, normalize=True, range=(0, 255))",
        "import torchvision\ntorchvision.utils.save_image(x, p, nrow=8, normalize=True, range=(-1, 1))",
        "from pkg_resources.extern import packaging",
        "import numpy as np\nx = np.math.pi",
        "import networkx as nx\nf = {'a': nx.from_numpy_matrix}",
        "import gym\nenv = gym.make('CartPole-v1')",
        "import gymnasium as gym\nenv = gym.make(name)\nstate, reward, done, info = env.step(action)",
        "import gymnasium as gym\nenv = gym.make(name)\nenv.seed(1)",
        "import bcolz",
        "from visdom import Visdom",
        "import torchnet as tnt",
        "import pandas as pd\nwriter = pd.ExcelWriter(p)\ntable.to_excel(writer)\nwriter.save()",
        "import pandas as pd\nframe = pd.read_csv(p)\nx = frame.as_matrix()",
        "import pandas as pd\nframe = pd.DataFrame()\nfor row in rows:\n    frame = frame.append(row)",
        "from torchvision import transforms\nt = transforms.ColorJitter.get_params(b, c, s, h)\nx = t(x)",
        "from torchvision import transforms as T\nclass C(T.ColorJitter):\n    def __call__(self, x):\n"
        "        self.t = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)",
        "from timm.data.transforms import _pil_interp",
        "import numpy as np\narea = np.trapz(y, x)",
        "from skimage.feature import greycomatrix",
        "from pytorch_lightning.utilities.distributed import rank_zero_only",
        f"{_TASK} validation_epoch_end(self, outputs): pass",
        f"{_TASK} training_step(self, batch, batch_idx, optimizer_idx): pass",
        f"{_TASK} optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx=0, optimizer_closure=None): pass",
        f"{_TASK} on_train_batch_end(self, outputs, batch, batch_idx, dataloader_idx): pass",
        f"{_IO} load_checkpoint(self, path, storage_options=None): pass",
        f"{_MODEL} prepare_inputs_for_generation(self, input_ids, past=None): pass",
        "from transformers import Trainer\nt = Trainer(model=m, tokenizer=t)",
        f"{_TRAINER} f(self):\n        return self.args.evaluation_strategy",
        "from transformers import HfArgumentParser\nx = training_args.overwrite_output_dir",
        "from torch.functional import align_tensors",
        "import torch\nx = torch.functional.align_tensors(a, b)",
        "from torch._utils import _accumulate",
        "from gfpgan import GFPGANer",
        "from pytorch_lightning.callbacks import ModelCheckpoint\nc = ModelCheckpoint(every_n_val_epochs=1)",
        "import transformers as t\na = t.TrainingArguments(warmup_ratio=0.1)",
        "from transformers import TrainingArguments\na = TrainingArguments(o, no_cuda=True)",
        "from pytorch_lightning.callbacks import ModelCheckpoint\nc = ModelCheckpoint(p, period=1)",
        f"{_TRAINER} compute_loss(self, model, inputs, return_outputs=False): pass",
        f"{_TRAINER} training_step(self, model, inputs): pass",
        f"{_TRAINER} log(self, logs): pass",
        f"{_TRAINER} _get_train_sampler(self): pass",
        "import transformers as t\nm = t.AutoModel.from_pretrained(p, load_in_8bit=False)",
        f"{_REGISTERED}def tiny(**kwargs):\n    return VisionTransformer(depth=2, **kwargs)",
        f"{_REGISTERED}def tiny(**kwargs):\n    return Own(**kwargs)\nclass Own(VisionTransformer):\n"
        "    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)",
        f"{_REGISTERED}def tiny(**kwargs):\n    return Own(**kwargs)\nclass Own:\n    def __init__(self, a=1): pass",
        "from scipy import linalg\nroot, _ = linalg.sqrtm(a.dot(b), disp=False)",
        f"{_VIT}class Own(VisionTransformer):\n    def f(self):\n        assert self.num_tokens == 1",
        f"{_STEM.format('')}",
        "import gymnasium as gym\ne = gym.make('HalfCheetah-v2')",
        f"{_ENV}p.add_argument('--env', default='Ant-v3')\na = p.parse_args()\ne = gym.make(a.env)",
        "import pandas as pd\nd = pd.date_range('2020', periods=3, freq='15T')",
        "import pandas as pd\nd = frame.resample('M').mean()",
        "import pandas as pd\nd = frame.date.dt.floor('H')",
        "import pandas as pd\nfreq = 'Q-DEC'\nd = pd.Grouper(freq=freq)",
        "import numpy as np\nlow = np.percentile(x, 5, interpolation='lower')",
        "from torchvision import transforms\nt = transforms.RandomAffine(10, fillcolor=0)",
        "from skimage.metrics import structural_similarity as ssim\ns = ssim(a, b, multichannel=True)",
        "import gymnasium as gym\ne = gym.make('LunarLander-v2', render_mode=None)",
        "from gymnasium.wrappers.clip_action import ClipAction",
        "import dora\ndora.distrib.init()",
        "from dora.executor import start_ddp_workers\nstart_ddp_workers(main, argv)",
        "from dora import distrib\ndistrib.init()",
        "from diffusers.pipeline_utils import DiffusionPipeline",
    ],
)
def test_reported(source: str) -> None:
    check_noop(f"{source}\n", open_codes=["NPU293"])


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import pkg_resources\nexcept ImportError:\n    pkg_resources = None",
        "import setuptools",
        "import pandas as pd\nx = pd.read_csv(p).drop(['date'], axis=1)\ny.append(x)\nz = s.replace(x, 1)",
        "import pandas as pd\nx = pd.concat([a, b], axis=1, ignore_index=True)\nd.drop(a, b)",
        "import pandas as pd\nx = frame.apply(lambda row: row.a, 1)\ny = frame.date.apply(lambda row: row.month)",
        "x = frame.drop(['date'], 1)\ny = x.append(row, ignore_index=True)",
        "import motmetrics as mm\nh = mm.metrics.create()",
        "from torchvision.utils import make_grid\ng = make_grid(x, 3, normalize=True, value_range=(0, 255))",
        "from torchvision.utils import save_image\nsave_image(x, p, normalize=True)",
        "from mine.utils import make_grid\ng = make_grid(x, range=(0, 255))",
        "from scipy.misc.pilutil import thing",
        "try:\n    from scipy.misc import imread\nexcept ImportError:\n    from imageio import imread",
        "from .scipy.misc import imread",
        "from skimage.measure import label\nfrom skimage.metrics import structural_similarity",
        "import joblib",
        "import torchvision.transforms as T\nt = T.Compose([T.Resize(256), T.RandomResizedCrop(2)])",
        "from timm.models.layers import DropPath, trunc_normal_\nfrom timm.data import create_transform",
        "import numpy as np\nx = np.trapezoid(y, np.float32(1))\nz = mine.trapz(y)",
        "from skimage.feature import graycomatrix, Cascade\nfrom skimage.graph import MCP",
        "from transformers import Trainer, TrainingArguments\na = TrainingArguments(o, eval_strategy='steps')",
        "def f(evaluation_strategy): pass\nf(evaluation_strategy='steps')",
        "from peft import prepare_model_for_kbit_training",
        "import pytorchvideo.data",
        "import librosa\nm = librosa.filters.mel(sr=rate, n_fft=n_fft)\ny, sr = librosa.load(path, sr=22050)",
        "import librosa\ny = librosa.to_mono(y)\ny = librosa.resample(y, orig_sr=a, target_sr=b)",
        "import torchaudio\nx = torchaudio.transforms.Resample(8, 16)(x)",
        "import torchaudio\nif hasattr(torchaudio, 'info'):\n    pass",
        "from transformers.modeling_utils import PreTrainedModel",
        "from transformers.generation.utils import GenerationMixin\nfrom transformers import PretrainedConfig",
        "from transformers.pytorch_utils import apply_chunking_to_forward",
        "from transformers.trainer_pt_utils import DistributedLengthGroupedSampler, LabelSmoother",
        "from transformers.trainer import *\nt = Trainer(m)",
        "from transformers.trainer import *\nfrom typing import Union\ndef f(x: Union[int, str]): pass",
        "from transformers.trainer import *\nfrom typing import *\ndef f(x: Union[int, str]): pass",
        "from mine.trainer import *\ndef f(x: Union[int, str]): pass\nimport transformers",
        f"{_TRAINER} f(self):\n        return self.is_local_master()\n    def is_local_master(self): pass",
        f"{_TRAINER} f(self):\n        return self.is_local_process_zero()",
        "from transformers.data.data_collator import DataCollatorWithPadding",
        "from transformers import AutoModelForCausalLM, CLIPImageProcessor",
        "from transformers.models.bert.modeling_bert import BertModel",
        "try:\n    from transformers.modeling_t5 import T5\nexcept ImportError:\n    from transformers import T5",
        "from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled",
        "try:\n    from a.integrations import b\nexcept ImportError:\n    from transformers.deepspeed import b",
        "from torchvision.models import resnet18",
        "import gymnasium as gym\nenv = gym.make(name)\nstate, reward, ended, cut, info = env.step(action)",
        "import gymnasium as gym\nenv = Old(gym.make(name))\nstate, reward, done, info = env.step(action)\nenv.seed(1)",
        "import gymnasium as gym\nenv = gym.make(name)\nenv = Old(env)\nstate, reward, done, info = env.step(action)",
        "import gymnasium as gym\nenv = gym.make(name)\nstate, *more = env.step(action)\nresult = env.step(action)",
        "import gymnasium as gym\ndef f(env):\n    state, reward, done, info = env.step(action)\n    env.seed(1)",
        "import gym.spaces\nspace = gym.spaces.Box(0, 1)\nclass Mine(gym.Env):\n    pass",
        "try:\n    import visdom\nexcept ImportError:\n    visdom = None",
        "from mine import visdom",
        "import pandas as pd\nwith pd.ExcelWriter(p) as writer:\n    table.to_excel(writer)\nmodel.save()",
        "import pandas as pd\nx = pd.read_csv(p).to_numpy()\nrows = []\nrows.append(pd.DataFrame())",
        "import pandas as pd\ndef f(rotation):\n    return rotation.as_matrix()",
        "from torchvision import transforms\norder, b, c, s, h = transforms.ColorJitter.get_params(b, c, s, h)",
        "from torchvision import transforms\nclass C(transforms.ColorJitter):\n    def get_params(self): pass\n"
        "    def f(self):\n        t = self.get_params()",
        "from torchvision import transforms\nclass C(transforms.RandomCrop):\n    def f(self):\n"
        "        place = self.get_params(x, y)",
        "import numpy as np\nimport math\nx = math.pi\nnp.math = math\ny = mine.math",
        "import yaml\nc = yaml.load(f, Loader=yaml.FullLoader)",
        "import yaml\nc = yaml.load(f, yaml.Loader)",
        "import yaml\nc = yaml.load(*given)",
        "import yaml\nc = yaml.safe_load(f)",
        f"{_TASK} on_validation_epoch_end(self): pass\n    def training_step(self, batch, batch_idx): pass",
        f"{_TASK} on_train_batch_end(self, outputs, batch, batch_idx, dataloader_idx=0): pass",
        f"{_TASK} training_step(self, batch, batch_idx, optimizer_idx=0): pass",
        "class Task(Own):\n    def validation_epoch_end(self, outputs): pass",
        "import pytorch_lightning as pl\nclass Task(Own):\n    def validation_epoch_end(self, outputs): pass",
        f"{_IO} load_checkpoint(self, path, **kwargs): pass\n    def save_checkpoint(self, checkpoint, path): pass",
        f"{_IO} load_checkpoint(self, path, map_location=None, weights_only=None): pass",
        f"{_MODEL} prepare_inputs_for_generation(self, input_ids, past=None, **kwargs): pass",
        f"{_TRAINER} compute_loss(self, model, inputs, return_outputs=False, **kwargs): pass",
        f"{_TRAINER} compute_loss(self, model, inputs, num_items_in_batch=None): pass",
        f"{_TRAINER} training_step(self, model, inputs, items=None): pass",
        f"{_TRAINER} evaluate(self): pass",
        "from transformers import Trainer\nt = Trainer(model=m, processing_class=t)\nu = mine.Trainer(tokenizer=t)",
        f"{_TRAINER} f(self):\n        return self.args.eval_strategy, self.own.evaluation_strategy",
        "class Own(Base):\n    def f(self):\n        return self.args.no_cuda\nimport transformers",
        "import transformers\nx = training_args.overwrite_output_dir, args.no_cuda",
        "import torch\nx = torch.functional.broadcast_tensors(a, b)",
        "from torch.functional import einsum, norm\nfrom torch._utils import _get_device_index",
        "from transformers import BertTokenizerFast, ViTImageProcessorFast",
        f"{_MODEL} compute_loss(self, logits): pass",
        "from mine import AutoModel\nm = AutoModel.from_pretrained(p, load_in_8bit=False)\nimport transformers",
        "def prepare_inputs_for_generation(input_ids): pass\nimport transformers",
        f"{_REGISTERED}def tiny(**kwargs):\n    kwargs.pop('pretrained_cfg')\n    return VisionTransformer(**kwargs)",
        f"{_REGISTERED}def tiny(**kwargs):\n    return build(**kwargs)",
        f"{_REGISTERED}def tiny(**kwargs):\n    return Own(**kwargs)\nclass Own:\n    def __init__(self, **kw): pass",
        f"{_REGISTERED}def tiny(depth=2):\n    return VisionTransformer(depth=depth)",
        "from ruamel.yaml import YAML\nyaml = YAML()\nc = yaml.load(f)",
        "import ruamel.yaml as yaml\nc = yaml.load(f)",
        "from scipy import linalg\nroot = linalg.sqrtm(a.dot(b))",
        f"{_VIT}class Own(VisionTransformer):\n    def f(self):\n        self.num_tokens = 1\n        self.num_tokens",
        f"{_STEM.format(', **kwargs')}",
        f"{_STEM.format(', bias=True')}",
        f"{_VIT}m = VisionTransformer(embed_layer=chosen)",
        "import gymnasium as gym\ne = gym.make('HalfCheetah-v5')\nf = gym.make('MyAnt-v2')",
        f"{_ENV}p.add_argument('--name', default='Ant-v3')\na = p.parse_args()\ne = gym.make(a.env)",
        "import pandas as pd\nd = pd.date_range('2020', periods=3, freq='15min')\npd.period_range('2020', freq='M')",
        "import pandas as pd\nd = frame.resample('ME').mean(), frame.date.dt.to_period('M'), round(x), a.round(2)",
        "d = frame.resample('M').mean()",
        "import numpy as np\nlow = np.percentile(x, 5, method='lower')",
        "from torchvision import transforms\nt = transforms.RandomAffine(10, fill=0)",
        "from skimage.metrics import structural_similarity as ssim\ns = ssim(a, b, multichannel=False)",
        "import dora\ndora.distrib.init('gloo')\ndora.distrib.init(backend='hccl')",
        "from dora import executor\nexecutor.start_ddp_workers(main, argv, 8)",
        "from own import distrib\ndistrib.init()",
        "import gymnasium as gym\ne = gym.make('LunarLander-v3')",
        "from gymnasium.wrappers import ClipAction",
    ],
)
def test_stays(source: str) -> None:
    check_noop(f"{source}\n", open_codes=[])


def test_the_name_that_is_gone_is_named() -> None:
    source = "from transformers.trainer import SequentialDistributedSampler, Trainer\n"
    (finding,) = migrate(source, torch_version="2.14").findings
    assert finding.message == "transformers no longer has SequentialDistributedSampler: 5.0 removed it"
    assert "IntervalStrategy" not in finding.help  # takes the place of another name
    source = "from transformers.trainer import *\ndef f(x: Union[int, str], y: Optional[int]): pass\n"
    said = {(each.message.partition(":")[0], each.help) for each in migrate(source, torch_version="2.14").findings}
    names = ("Optional", "Union")
    assert said == {(f"transformers.trainer no longer brings {each}", f"import {each} from typing") for each in names}


_VISION = "from timm.models.vision_transformer import VisionTransformer as V\nclass N(V):\n    x = V.num_tokens\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        # a class without its modules, all else below the package
        (_VISION, "timm no longer has VisionTransformer.num_tokens"),
        ("from timm.models.layers.helpers import to_2tuple\n", "timm no longer has models.layers.helpers"),
        ("from torchmetrics import PSNR\n", "torchmetrics no longer has PSNR"),
    ],
)
def test_a_name_is_said_as_programs_write_it(source: str, said: str) -> None:
    found = migrate(source, torch_version="2.14").findings
    assert {each.message.partition(" (removed")[0] for each in found if each.code == "NPU293"} == {said}


def test_a_help_names_what_it_is_about() -> None:
    helps, unclear = {row["help"] for row in rows_of_gone()}, re.compile(r"\w+ (?:it|them)\b(?! is)|.* or keep a copy$")
    assert helps and [*filter(unclear.match, helps)] == []


def test_a_message_and_its_row_name_the_same_torch() -> None:
    table = read_table("support/refused_calls.json")
    rows = [row for row in (*table["calls"], *table["packages"]) if "since" in row]
    named = ((row, each) for row in rows for each in re.findall(r"torch (\d+\.\d+)", row["message"]))
    oldest = TORCH_VERSIONS[0]  # there what is older begins, too
    wrong = [row["message"] for row, each in named if row["since"] not in (each, max(each, oldest, key=version_key))]
    assert rows and wrong == []


def test_an_import_stops_the_start_and_a_call_the_first_step() -> None:
    source = "from sklearn.externals import joblib\nimport yaml\nc = yaml.load(f)\n"
    found = migrate_source(source, path="a.py").findings
    assert [each.blocks for each in found if each.code == "NPU293"] == ["import", ""]


def test_an_import_in_a_function_stops_no_start() -> None:
    found = migrate_source("def f():\n    import pkg_resources\n    return pkg_resources\n", path="a.py").findings
    assert [each.blocks for each in found] == [""]


@pytest.mark.parametrize(("torch", "asked", "open_"), [("2.12", "", 0), ("2.14", "<82", 0), ("2.14", ">=70", 1)])
def test_a_torch_or_a_project_that_keeps_setuptools_back(torch: str, asked: str, open_: int) -> None:
    settings = Settings(torch_version=torch, pins=(("setuptools", asked),))
    assert len(engine.migrate_source(b"import pkg_resources\n", "a.py", settings).findings) == open_


@pytest.mark.parametrize(
    ("path", "open_"),
    [("base/a.py", 0), ("base/deep/a.py", 0), ("base/newer/a.py", 1), ("baseline/a.py", 1), ("a.py", 1)],
)
def test_a_pin_of_the_part_that_a_file_lies_in(path: str, open_: int) -> None:
    pins = (("numpy", ">=2"), ("base/numpy", "==1.21.2"), ("base/newer/numpy", "==2.9"))
    found = engine.migrate_source(b"import numpy as np\nnp.compat.x\n", path, Settings(pins=pins)).findings
    assert [each.code for each in found] == ["NPU293"] * open_


def test_an_older_python_has_older_packages() -> None:
    source = "import torchaudio\nimport yaml\nc = yaml.load(f)\nw, r = torchaudio.load(f)\n"
    found = migrate_source(source, path="a.py", torch_version="2.1").findings
    assert not [each for each in found if each.code == "NPU293"]


@pytest.mark.parametrize(
    ("asked", "open_"),
    [
        ("==4.36.2", False), (">=4.30,<4.46", False), (">=4.30", True), ("==4.46.0", True), ("~=4.51", True),
        # no wheel for Python 3.10: it has to be raised
        ("==3.4.0", True),
    ],
)
def test_a_pin_below_the_release_that_gave_it_up(asked: str, open_: bool) -> None:
    source = "from transformers.deepspeed import HfDeepSpeedConfig\n"
    settings = Settings(pins=(("transformers", asked),))
    found = engine.migrate_source(source.encode(), "a.py", settings).findings
    assert [each.code for each in found] == ["NPU293"] * open_


@pytest.mark.parametrize(
    ("source", "package", "asked", "open_"),
    [
        ("from pytorchvideo import transforms\n", "pytorchvideo", "@", False),
        ("from pytorchvideo import transforms\n", "pytorchvideo", "==0.1.5", True),
        ("import motmetrics as mm\nd = mm.distances.iou_matrix(a, b)\n", "motmetrics", "@", False),
        # what is gone from the repository too
        ("from transformers.deepspeed import HfDeepSpeedConfig\n", "transformers", "@", True),
    ],
)
def test_what_the_project_installs_from_the_repository_that_mends_it(
    source: str, package: str, asked: str, open_: bool
) -> None:
    found = engine.migrate_source(source.encode(), "a.py", Settings(pins=((package, asked),))).findings
    assert [each.code for each in found] == ["NPU293"] * open_


@pytest.mark.parametrize(("asked", "open_"), [("==0.8.0", True), ("==0.9.2", False), ("<0.10", False), ("", True)])
def test_a_pin_that_has_to_be_raised_keeps_no_old_call(asked: str, open_: bool) -> None:
    source = "import librosa\ny = librosa.resample(y, a, b)\n"
    settings = Settings(pins=(("librosa", asked),))
    found = engine.migrate_source(source.encode(), "a.py", settings).findings
    assert [each.code for each in found] == ["NPU293"] * open_


def test_the_calls_of_librosa_are_one_thing_to_do() -> None:
    calls = ("librosa.load(p, 3)", "librosa.filters.mel(sr, 8)", "librosa.util.fix_length(y, 9)")
    source = "".join(f"{line}\n" for line in ("import librosa", *calls))
    found = [each for each in migrate_source(source, path="a.py").findings if each.code == "NPU293"]
    assert [each.api for each in found] == ["librosa"] * 3


def test_a_module_that_is_gone_is_said_once_for_an_import() -> None:
    source = "from transformers.modeling_bert import BertModel, BertConfig\n"
    assert len([each for each in migrate_source(source, path="a.py").findings if each.code == "NPU293"]) == 1


@pytest.mark.parametrize(("asked", "blocks"), [("", ["later"]), (">=1.26", ["later"]), ("<2", []), ("==1.26.4", [])])
def test_what_an_evaluation_calls_stops_later(asked: str, blocks: list[str]) -> None:
    source = "import motmetrics as mm\nd = mm.distances.iou_matrix(a, b)\n"
    found = engine.migrate_source(source.encode(), "a.py", Settings(pins=(("numpy", asked),))).findings
    assert [each.blocks for each in found] == blocks


@pytest.mark.parametrize(
    ("numpy", "gym", "open_"),
    [("", "", True), ("<2", "", False), ("==1.26.4", "", False), ("", "~=0.15.3", False), (">=2", ">=0.26", True)],
)
def test_gym_beside_an_older_numpy_and_an_older_gym(numpy: str, gym: str, open_: bool) -> None:
    settings = Settings(pins=(("numpy", numpy), ("gym", gym)))
    found = engine.migrate_source(b"import gym\nenv = gym.make(name)\n", "a.py", settings).findings
    assert [each.code for each in found] == ["NPU293"] * open_


@pytest.mark.parametrize(("gym", "found"), [("", 3), ("==0.25.2", 1), ("==0.21.0", 0)])
def test_the_calls_of_gym_are_one_thing_to_decide(gym: str, found: int) -> None:
    source = b"import gym\nenv = gym.make(name)\nenv.seed(1)\nstate, reward, done, info = env.step(action)\n"
    each = engine.migrate_source(source, "a.py", Settings(pins=(("gym", gym),))).findings
    assert [finding.api for finding in each] == ["gym.make"] * found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from scipy.stats import binom_test", True),
        ("from scipy import stats\np = stats.binom_test(1, 2)", True),
        ("from sklearn.utils import linear_assignment_", True),
        ("from networkx import from_numpy_matrix", True),
        ("from torchtext.data import Field", True),
        ("from diffusers import FlaxModelMixin", True),
        ("import numpy\nx = numpy.asscalar(y)", True),
        ("import numpy as np\nx = np.trapz(y)", True),
        ("import numpy as np\nx = np.sort(y)", False),
        ("from yaml import safe_load\nx = safe_load(y)", False),
        ("import json\nx = json.load(y)", False),
    ],
)
def test_a_file_that_names_nothing_else_is_looked_at(text: str, expected: bool) -> None:
    assert worth_a_look(text.encode(), Settings()) is expected


def test_one_finding_for_what_one_import_lacks() -> None:
    source = "from transformers.data.processors.utils import InputExample, InputFeatures\n"
    found = [each for each in migrate_source(source, path="a.py").findings if each.code == "NPU293"]
    assert [each.api for each in found] == ["transformers.data"]


_OWN = """\
import transformers
class Own(transformers.Trainer):
    {}
class Below(Own):
    def log(self, logs): pass
"""


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("x = 1", 1),
        ("def __init__(self, *args, **kwargs): super().__init__(*args, **kwargs)", 1),
        ("def __init__(self, model, tokenizer): super().__init__(model, processing_class=tokenizer)", 0),  # its own
    ],
)
def test_a_class_of_the_project_takes_what_that_of_the_package_takes(body: str, codes: int) -> None:
    files = {"own/__init__.py": "from .net import Below\n", "own/net.py": _OWN.format(body)}
    files["train.py"] = "import transformers\nimport own\nt = own.Below(model=m, tokenizer=t)\n"
    settings = Settings()
    project = join_facts([index_source(text.encode(), path, settings) for path, text in files.items()], settings)
    for path, expected in (("train.py", codes), ("own/net.py", 1)):  # a keyword, and a method
        found = engine.migrate_source(files[path].encode(), path, settings, project).findings
        assert [each.code for each in found] == ["NPU293"] * expected, path


def test_a_model_that_is_quantised_is_told_once() -> None:
    source = "from transformers import AutoModel\nm = AutoModel.from_pretrained(p, load_in_8bit=True)\n"
    assert [each.code for each in migrate_source(source, path="a.py").findings] == ["NPU142"]


_OWN_TIMM = """from timm.models.layers.helpers import to_2tuple
from timm.models.resnet import ResNet
from torch.nn import Module
class Net(ResNet):
    def forward(self, x):
        return self.stem(x)
"""
_OWN_DDP = "import torch\nfrom torch.nn.parallel import DistributedDataParallel\nclass DDP(DistributedDataParallel):\n"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("        if self.static_graph and self.num_iterations == 1:\n            pass", 1),
        ("        self._sync_params()", 1),
        ("        if version.parse(torch.__version__) < version.parse('1.11'):\n            pass\n"
         "        else:\n            print(self.num_iterations)", 1),
        ("        if version.parse(torch.__version__) < version.parse('1.11'):\n            self._sync_params()", 0),
        ("        if hasattr(self, 'num_iterations'):\n            self.num_iterations", 0),
        ("        self.num_iterations = 0\n        print(self.num_iterations)", 0),
        ("        self.reducer.prepare_for_backward([])", 0),
        ("        other.num_iterations", 0),
    ],
)  # fmt: skip
def test_what_a_copied_forward_reads_of_its_base(body: str, count: int) -> None:
    source = f"{_OWN_DDP}    def forward(self, other):\n{body}\n"
    found = check_noop(source, open_codes=["NPU293"] * count).findings
    assert all("AttributeError" in each.message for each in found)
    assert not check_noop(source.replace("DDP(DistributedDataParallel)", "DDP(Other)")).findings


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        ("", "Or, for all of it, require transformers<4.46"),
        (">=4.46", "or require transformers<4.46"),  # it allows no older one
    ],
)
def test_the_names_of_a_package_are_one_thing_to_do_with_one_older_release(asked: str, how: str) -> None:
    source = b"from transformers import AdamW\nfrom transformers.deepspeed import HfDeepSpeedConfig\n"
    settings = Settings(pins=(("transformers", asked),) if asked else ())
    (action,) = actions_of(engine.migrate_source(source, "a.py", settings).findings)
    assert "transformers (AdamW, deepspeed)" in action.title
    assert action.how.endswith(how)


@pytest.mark.parametrize(
    ("source", "back"),
    [
        ("from timm.models.layers.helpers import to_2tuple\n", "timm<=0.6.13"),
        (_OWN_TIMM, ""),  # which of the attributes of a class an older release has is not known
        (_OWN_TIMM.replace("(ResNet)", "(Module)"), "timm<=0.6.13"),
        # what was built for NumPy 1 needs that
        ("import pandas as pd\npd.read_csv(f).drop(['a'], 1)\n", "pandas<2.0 and numpy<2"),
    ],
)
def test_the_older_release_that_has_it_all(source: str, back: str) -> None:
    settings, data = Settings(), source.encode()
    project = join_facts([index_source(data, "a.py", settings)], settings)
    (action,) = actions_of(engine.migrate_source(data, "a.py", settings, project).findings)
    assert action.how.partition("Or, for all of it, require ")[2] == back


@pytest.mark.parametrize(("more", "open_"), [("", 0), ("from transformers import Trainer\n", 1)])
def test_a_pin_that_trainer_needs_newer_keeps_nothing(more: str, open_: int) -> None:
    source = f"{more}from transformers.deepspeed import HfDeepSpeedConfig\n".encode()
    settings = Settings(pins=(("transformers", "==4.27.1"),))
    project = join_facts([index_source(source, "a.py", settings)], settings)
    found = engine.migrate_source(source, "a.py", settings, project).findings
    assert [each.code for each in found] == ["NPU293"] * open_


@pytest.mark.parametrize(("asked", "found"), [("==1.5.0", 2), ("==1.8.6", 1), ("", 2), ("==1.9.5", 1)])
def test_a_pin_of_lightning_that_has_to_be_raised_keeps_nothing(asked: str, found: int) -> None:
    source = f"{_TASK} on_train_batch_end(self, outputs, batch, batch_idx, dataloader_idx): pass\n"
    source += "    def validation_epoch_end(self, outputs): pass\n"
    pins = (("pytorch-lightning", asked),) if asked else ()
    assert len(engine.migrate_source(source.encode(), "a.py", Settings(pins=pins)).findings) == found


def test_a_method_of_a_class_of_the_project_is_said_of_the_package() -> None:
    source = f"{_TASK} f(s): pass\nclass Own(Task):\n    def on_train_batch_end(self, o, b, i, dataloader_idx): pass\n"
    project = join_facts([index_source(source.encode(), "a.py", Settings())], Settings())
    (found,) = engine.migrate_source(source.encode(), "a.py", Settings(), project).findings
    assert found.api == "pytorch_lightning"
