# distributed: left
# start: no (the package is missing)
import argparse
import deepspeed
import torch
from torch import nn
from torch.utils.data import TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument('--local_rank', type=int, default=-1)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()

x = torch.randn(64, 4)
net = nn.Linear(4, 4)
model_engine, optimizer, trainloader, _ = deepspeed.initialize(
    args=args, model=net, model_parameters=net.parameters(), training_data=TensorDataset(x, x.abs()),
    config={"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}})
for epoch in range(2):
    for data in trainloader:
        inputs, labels = data[0].to(model_engine.local_rank), data[1].to(model_engine.local_rank)
        loss = nn.functional.mse_loss(model_engine(inputs), labels)
        model_engine.backward(loss)
        model_engine.step()
    if torch.cuda.current_device() == 0:
        print(epoch, loss.item())
model_engine.save_checkpoint("checkpoints", "last")
