# distributed: left
# run: --epochs 2
import argparse
import utils
import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset


def main(args):
    utils.init_distributed_mode(args)
    device = torch.device("cuda")
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    dataset = TensorDataset(x, x.abs())
    if args.distributed:
        train_sampler = torch.utils.data.distributed.DistributedSampler(dataset)
    else:
        train_sampler = RandomSampler(dataset)
    loader = DataLoader(dataset, batch_size=8, sampler=train_sampler)
    model = nn.Linear(4, 4).to(device)
    model_without_ddp = model
    if args.distributed:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
        model_without_ddp = model.module
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        if args.distributed:
            train_sampler.set_epoch(epoch)
        for a, b in loader:
            loss = nn.functional.mse_loss(model(a.to(device)), b.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, utils.reduce_value(loss.detach()).item())
        utils.save_on_master({"model": model_without_ddp.state_dict()}, "checkpoint.pth")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=10, type=int)
    main(parser.parse_args())
