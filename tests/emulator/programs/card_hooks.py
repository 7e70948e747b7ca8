"""What a run on the vendor's torch_npu reports, each in a line that says which rule it is, and how often."""

import json
import os
import signal
import warnings

import torch
import torch_npu  # noqa: F401
from npu_emulator.record import record

assert not torch.npu.is_initialized()  # processes may still be forked
warnings.simplefilter("ignore")  # torch_npu's own warnings are told all the same


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return torch.lgamma(gradient)  # NPU790 1


def refused(compute):
    try:
        compute()
    except RuntimeError as error:
        return str(error)
    raise AssertionError("it ran")


x = torch.rand(3, 3).npu()
for _ in range(2):
    torch.digamma(x)  # NPU790 2
x.double()  # NPU127 1
x.to(torch.float64)  # NPU127 1
torch.ones(2).to("npu", torch.float64)
torch.npu.get_device_capability()  # NPU503 1
wide = torch.ones(3, 3, dtype=torch.float64).npu()
said = refused(lambda: wide @ wide)  # NPU791 1
assert "161002" in said and "Tensor self not implemented for DT_DOUBLE" in said and "[NPU791]" in said
said = refused(lambda: torch.cat([torch.ones([1] * 9).npu()] * 2))  # NPU791 1
assert "cannot be larger than 8 dimensions" in said
refused(lambda: torch.empty(80 << 30, dtype=torch.uint8, device="npu"))  # NPU792 1
torch.nn.functional.gelu(x)  # NPU736 1
torch.nn.functional.gelu(x, approximate="tanh")
torch.nn.DataParallel(torch.nn.Linear(2, 2))  # NPU507 1
leaf = x.clone().requires_grad_()
Doubled.apply(leaf).sum().backward()
torch.nn.LazyLinear(3).npu()(x)


def interrupt(*given):
    raise KeyboardInterrupt("now")


signal.signal(signal.SIGALRM, interrupt)
large = torch.rand(200, 200).npu()
# One that comes just as C calls Python is lost: again, as Ctrl-C is pressed again.
signal.setitimer(signal.ITIMER_REAL, 0.1, 1.0)
try:
    while True:
        large @ large
except KeyboardInterrupt as error:
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    assert error.args == ("now",)
pid = os.fork()
if not pid:
    said = refused(lambda: torch.ones(2).npu())
    os._exit(0 if "forked after its parent had used it: start workers" in said else 1)
assert os.waitpid(pid, 0)[1] == 0
found = [[each["line"], f"{each['code']} {each['count']}"] for each in record.findings.values()]
print(json.dumps(sorted(found)))
