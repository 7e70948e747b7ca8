"""A class that trains a model."""

import json
import os

import torch
import torch.nn as nn

import npu_port


class Trainer:
    def __init__(self, model, loaders, args):
        self.args = args
        self.device = torch.device("npu")
        self.model = model.to(self.device)
        self.model = npu_port.wrap(self.model)
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
        if npu_port.is_first():
            torch.save({"model": self.model.module.state_dict(), "epoch": epoch}, os.path.join(self.args.out, "last.pt"))
            with open(os.path.join(self.args.out, "history.json"), "w") as file:
                json.dump(history, file)

    def train_epoch(self, epoch):
        self.model.train()
        running = 0.0
        for tokens, labels in self.loaders["train"]:
            loss = self.criterion(self.model(tokens.to(self.device)), labels.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            mean_loss = npu_port.mean_over_ranks(loss)
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
        npu_port.own_draws()
        for epoch in range(self.start_epoch, self.args.epochs):
            train_loss = self.train_epoch(epoch)
            valid_loss = self.evaluate()
            history.append({"epoch": epoch, "train": train_loss, "valid": valid_loss})
            if npu_port.is_first():
                print(f"epoch {epoch}: train {train_loss:.4f} valid {valid_loss:.4f} scale {self.model.module.scale:.2f}")
            self.save(epoch, history)
