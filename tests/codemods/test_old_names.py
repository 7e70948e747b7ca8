"""Names of older releases of Python and NumPy (rules/python_gone.json, old_names.py)."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from collections import Iterable\nx = isinstance(y, Iterable)",
         "from collections.abc import Iterable\nx = isinstance(y, Iterable)"),
        ("from collections import OrderedDict, Mapping as M\nx = OrderedDict, M",
         "from collections import OrderedDict\nfrom collections.abc import Mapping as M\nx = OrderedDict, M"),
        ("import collections.abc\nimport collections\nx = collections.Callable",
         "import collections.abc\nimport collections\nx = collections.abc.Callable"),
        ("import numpy as np\nx = np.zeros(3, np.float).astype(np.int), np.object",
         "import numpy as np\nx = np.zeros(3, float).astype(int), object"),
        ("import numpy as np\nbest = np.Inf, -np.Infinity, np.NaN, np.zeros(3, np.float_)",
         "import numpy as np\nbest = np.inf, -np.inf, np.nan, np.zeros(3, np.float64)"),
        ("import numpy as np\nx = np.array(image, np.float32, copy=False)",
         "import numpy as np\nx = np.asarray(image, np.float32)"),
        ("import numpy as np\nx = np.array(image, copy=False, dtype=int)",
         "import numpy as np\nx = np.asarray(image, dtype=int)"),
        ("from numpy import Inf\nbest = Inf", "from numpy import inf as Inf\nbest = Inf"),
        ("import numpy as np\nx = np.infty, np.PINF, np.complex_, np.string_, np.unicode_",
         "import numpy as np\nx = np.inf, np.inf, np.complex128, np.bytes_, np.str_"),
        ("import numpy as np\nx = np.bool8, np.product(y), np.longfloat, np.NAN, np.alltrue(z)",
         "import numpy as np\nx = np.bool_, np.prod(y), np.longdouble, np.nan, np.all(z)"),
        ("import numpy as np\nx = np.int0, np.uint0, np.singlecomplex, np.clongfloat, np.longcomplex, np.cfloat",
         "import numpy as np\nx = np.intp, np.uintp, np.complex64, np.clongdouble, np.clongdouble, np.complex128"),
        ("import numpy as np\nx = np.round_(y, 3), np.cumproduct(y), np.sometrue(y), np.mat(y)",
         "import numpy as np\nx = np.round(y, 3), np.cumprod(y), np.any(y), np.asmatrix(y)"),
        ("from PIL import Image\nx = Image.CUBIC, Image.LINEAR",
         "from PIL import Image\nx = Image.BICUBIC, Image.BILINEAR"),
        ("from PIL import Image\nx = y.resize((3, 3), Image.ANTIALIAS)",
         "from PIL import Image\nx = y.resize((3, 3), Image.LANCZOS)"),
        ("import scipy.special\nfrom scipy.misc import comb, logsumexp as total\nx = comb(3, 2), total(y)",
         "import scipy.special\nfrom scipy.special import comb, logsumexp as total\nx = comb(3, 2), total(y)"),
        ("from scipy import integrate\nx = integrate.trapz(y, x), integrate.cumtrapz(y)",
         "from scipy import integrate\nx = integrate.trapezoid(y, x), integrate.cumulative_trapezoid(y)"),
        ("import scipy.special\nfrom scipy.misc import factorial\nx = factorial(3)",
         "import scipy.special\nfrom scipy.special import factorial\nx = factorial(3)"),
        ("from torchvision import transforms\nclass Scale(transforms.Scale):\n    pass",
         "from torchvision import transforms\nclass Scale(transforms.Resize):\n    pass"),
        ("from torchvision.transforms import RandomSizedCrop\nx = RandomSizedCrop(8)",
         "from torchvision.transforms import RandomResizedCrop as RandomSizedCrop\nx = RandomSizedCrop(8)"),
    ],
)  # fmt: skip
def test_names_that_moved(before: str, after: str) -> None:
    check_rewrite(before + "\n", after + "\n", codes_applied=["NPU153"])


@pytest.mark.parametrize(
    "name",
    "AsyncGenerator AsyncIterable AsyncIterator Awaitable Collection Container Coroutine Generator Hashable ItemsView "
    "Iterator KeysView MappingView MutableMapping MutableSequence MutableSet Reversible Sequence Set Sized "
    "ValuesView".split(),
)
def test_each_name_of_collections_abc(name: str) -> None:
    after = f"from collections.abc import {name}\n"
    check_rewrite(f"from collections import {name}\n", after, codes_applied=["NPU153"])


def test_a_package_does_not_load_its_module() -> None:
    before = "import os\nimport collections\nclass C(collections.Mapping): pass\n"
    after = "import os\nimport collections\nimport collections.abc\nclass C(collections.abc.Mapping): pass\n"
    check_rewrite(before, after, codes_applied=["NPU153"])


GUARDED = [
    "try:\n    from collections.abc import Iterable\nexcept ImportError:\n    from collections import Iterable",
    "try:\n    from collections import Iterable\nexcept ImportError:\n    from collections.abc import Iterable",
    "import six\nif six.PY2:\n    from collections import Set\nelse:\n    from collections.abc import Set",
    "import collections\nM = collections.Mapping if hasattr(collections, 'Mapping') else collections.abc.Mapping",
    "import numpy as np\nif hasattr(np, 'int'):\n    INT = np.int",
    "import numpy as np\ntry:\n    BEST = np.Inf\nexcept AttributeError:\n    BEST = np.inf",
    "from PIL import Image\nSMOOTH = Image.LANCZOS if hasattr(Image, 'LANCZOS') else Image.ANTIALIAS",
    "try:\n    from torchvision.transforms import Resize\nexcept ImportError:\n"
    "    from torchvision.transforms import Scale as Resize",
]


@pytest.mark.parametrize(
    "source",
    [
        *GUARDED,
        "import collections\ncollections.Callable = collections.abc.Callable",
        "import numpy as np\nnp.Inf = np.inf",
        "from PIL import Image\nImage.ANTIALIAS = Image.LANCZOS\nx = Image.Resampling.LANCZOS, y.ANTIALIAS",
        "from mine import Image\nx = Image.ANTIALIAS",
        "from mine import transforms\nclass Scale(transforms.Scale): pass",
        "from mine import numpy\nx = numpy.infty, numpy.PINF, numpy.complex_, numpy.string_, numpy.unicode_",
        "from collections import OrderedDict, defaultdict\nx = OrderedDict, defaultdict",
        "from collections.abc import Iterable\nx = Iterable",
        "from typing import Mapping\nx = Mapping",
        "from mine.collections import Mapping\nx = Mapping",
        "import numpy as np\nx = np.float32, np.int_, np.bool, np.long",
        "import numpy as np\nx = np.array(y, copy=True), np.array(y, np.float32), np.array(y, ndmin=2, copy=False)",
        "import numpy as np\nx = y.astype(np.float32, copy=False), np.array(*y, copy=False, **z)",
        "import numpy as np\nnp.float = float",
        "import numpy as np\ndef f(int):\n    return np.int",
        "np = mine()\nx = np.float",
    ],
)
def test_other_names_stay(source: str) -> None:
    check_noop(source + "\n")


@pytest.mark.parametrize("source", ["from collections import Mapping\nx = Mapping", "import numpy as np\nx = np.float"])
def test_an_older_torch_goes_with_a_python_that_has_them(source: str) -> None:
    check_noop(source + "\n", torch_version="2.8")
