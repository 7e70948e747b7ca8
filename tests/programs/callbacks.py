# distributed: converts
# same with W processes: yes
# amp: converts
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Callback:
    def on_batch_end(self, learner, loss):
        pass

    def on_epoch_end(self, learner):
        pass


class PrintLoss(Callback):
    def on_epoch_end(self, learner):
        print("epoch", learner.epoch, "loss", sum(learner.history[-8:]) / 8)


class History(Callback):
    def on_batch_end(self, learner, loss):
        learner.history.append(loss.item())


class Checkpoint(Callback):
    def on_epoch_end(self, learner):
        torch.save(learner.net.state_dict(), f"epoch{learner.epoch}.pt")


class StepLR(Callback):
    def on_batch_end(self, learner, loss):
        for group in learner.optimizer.param_groups:
            group["lr"] *= 0.98


class Learner:
    def __init__(self, net, optimizer, loss_fn, callbacks):
        self.net, self.optimizer, self.loss_fn = net, optimizer, loss_fn
        self.callbacks, self.history, self.epoch = callbacks, [], 0

    def fit(self, loader, epochs):
        for self.epoch in range(epochs):
            for xb, yb in loader:
                pred = self.net(xb.cuda())
                loss = self.loss_fn(pred, yb.cuda())
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                for cb in self.callbacks:
                    cb.on_batch_end(self, loss)
            for cb in self.callbacks:
                cb.on_epoch_end(self)


if __name__ == "__main__":
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(2))
    loader = DataLoader(TensorDataset(x, x.abs()), batch_size=8, shuffle=True)
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    Learner(net, optimizer, nn.MSELoss(), [History(), PrintLoss(), Checkpoint(), StepLR()]).fit(loader, 2)
