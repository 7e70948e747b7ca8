"""A class that trains a model, and goes on where a checkpoint stopped."""

import os

import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, loaders, args):
        self.args = args
        self.device = torch.device("npu")
        self.model = model.to(self.device)
        self.loaders = loaders
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
        self.scaler = torch.amp.GradScaler("npu")
        self.criterion = nn.CrossEntropyLoss()
        self.start_epoch = 0
        os.makedirs(args.out, exist_ok=True)
        if args.resume:
            self.load(args.resume)

    def load(self, path):
        state = torch.load(path, map_location=self.device)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if "scaler" in state:
            self.scaler.load_state_dict(state["scaler"])
        self.start_epoch = state["epoch"] + 1

    def save(self, epoch):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "epoch": epoch,
        }
        torch.save(state, os.path.join(self.args.out, "last.pt"))

    def train_epoch(self, epoch):
        self.model.train()
        running = 0.0
        for tokens, labels in self.loaders["train"]:
            tokens, labels = tokens.to(self.device), labels.to(self.device)
            with torch.autocast("npu", dtype=torch.float16):
                logits = self.model(tokens)
                loss = self.criterion(logits, labels)
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            if self.args.clip > 0:
                self.scaler.unscale_(self.optimizer)
                nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            running += loss.item()
        return running / len(self.loaders["train"])

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        total, correct = 0, 0
        for tokens, labels in self.loaders["valid"]:
            with torch.autocast("npu", dtype=torch.float16):
                logits = self.model(tokens.to(self.device))
            correct += (logits.argmax(dim=1).cpu() == labels).sum().item()
            total += len(labels)
        return correct / total

    def fit(self):
        for epoch in range(self.start_epoch, self.args.epochs):
            loss = self.train_epoch(epoch)
            print(f"epoch {epoch}: loss {loss:.4f} accuracy {self.evaluate():.3f}")
            self.save(epoch)
