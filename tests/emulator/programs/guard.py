"""Runs snippets of leftover CUDA code; prints a JSON object: snippet -> [outcome, diagnostic code, message]."""

import json
import os
import sys
import tempfile

import torch
import torch.nn as nn
from npu_emulator.cuda_guard import CudaLeftover
from npu_emulator.record import record

os.chdir(tempfile.mkdtemp())
outcomes = {}
for snippet in json.loads(sys.argv[1]):
    record.findings.clear()
    names = {"torch": torch, "nn": nn, "x": torch.ones(2), "m": nn.Linear(2, 2), "os": os}
    message = ""
    try:
        exec(compile(snippet, "train.py", "exec"), names)
        outcome = "passed"
    except CudaLeftover as error:
        outcome, message = "stopped", str(error)
    except Exception as error:
        outcome, message = type(error).__name__, str(error)
    found = [f for f in record.findings.values() if f["level"] in ("error", "warning")]
    if outcome == "passed" and found:
        outcome = "noted"
    outcomes[snippet] = [outcome, found[0]["code"] if found else "", message or (found[0]["message"] if found else "")]
print(json.dumps(outcomes))
