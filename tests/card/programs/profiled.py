"""torch.profiler over a training on the card: it starts, ends, and lists the operators of the host."""

from __future__ import annotations

import torch

ACTIVITIES = torch.profiler.ProfilerActivity
layer = torch.nn.Linear(4, 4).npu()
BOTH = [ACTIVITIES.CPU, ACTIVITIES.PrivateUse1]
with torch.profiler.profile(activities=BOTH) as profile, torch.profiler.record_function("a step"):
    layer(torch.ones(2, 4).npu()).sum().backward()
names = {each.key for each in profile.key_averages()}
assert {"a step", "aten::linear", "aten::sum"} <= names, names
with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=1)) as profile:
    for _ in range(4):
        layer(torch.ones(2, 4).npu()).sum().item()
        profile.step()
print("ok")
