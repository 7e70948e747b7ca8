"""A class that trains a model."""

import json
import os

import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, model, loaders, args):
        self.args = args
        self.device = torch.device("npu")
        self.model = model.to(self.device)
        self.model = DistributedDataParallel(self.model, device_ids=[torch.npu.current_device()])
        self.loaders = loaders
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.lr, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()
        self.start_epoch = 0
        os.makedirs(args.out, exist_ok=True)
        if args.resume:
            self.load(args.resume)

    def load(self, path):
        state = torch.load(path, map_location=self.device)
        self.model.module.load_state_dict(state["model"])
        self.start_epoch = state["epoch"] + 1

    def save(self, epoch, history):
        if dist.get_rank() == 0:
            torch.save({"model": self.model.module.state_dict(), "epoch": epoch}, os.path.join(self.args.out, "last.pt"))
            with open(os.path.join(self.args.out, "history.json"), "w") as file:
                json.dump(history, file)

    def train_epoch(self, epoch):
        self.model.train()
        running = 0.0
        self.loaders["train"].sampler.set_epoch(epoch)
        for tokens, labels in self.loaders["train"]:
            loss = self.criterion(self.model(tokens.to(self.device)), labels.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            mean_loss = loss.detach().clone()
            dist.all_reduce(mean_loss)
            mean_loss /= dist.get_world_size()
            running += mean_loss.item()
        return running / len(self.loaders["train"])

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        losses = [
            self.criterion(self.model(tokens.to(self.device)), labels.to(self.device)).item()
            for tokens, labels in self.loaders["valid"]
        ]
        return sum(losses) / len(losses)

    def fit(self):
        history = []
        torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
        for epoch in range(self.start_epoch, self.args.epochs):
            train_loss = self.train_epoch(epoch)
            valid_loss = self.evaluate()
            history.append({"epoch": epoch, "train": train_loss, "valid": valid_loss})
            if dist.get_rank() == 0:
                print(f"epoch {epoch}: train {train_loss:.4f} valid {valid_loss:.4f} scale {self.model.module.scale:.2f}")
            self.save(epoch, history)
