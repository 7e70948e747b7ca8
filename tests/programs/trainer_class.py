# distributed: converts
# same with W processes: yes
# amp: converts
# run: --batch_size {batch}
import argparse
import os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AverageMeter(object):
    def __init__(self):
        self.sum = self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


class Trainer(object):
    def __init__(self, args):
        self.args = args
        self.device = torch.device('cuda')
        gen = torch.Generator().manual_seed(1)
        x = torch.randn(84, 5, generator=gen)
        y = (x.sum(1) > 0).long()
        self.train_loader = DataLoader(TensorDataset(x[:64], y[:64]), args.batch_size, shuffle=True)
        self.val_loader = DataLoader(TensorDataset(x[64:], y[64:]), 10, shuffle=False)
        self.model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Dropout(0.1), nn.Linear(10, 2)).to(self.device)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.best_pred = 0.0

    def training(self, epoch):
        self.model.train()
        losses = AverageMeter()
        for i, (image, target) in enumerate(self.train_loader):
            image, target = image.to(self.device), target.to(self.device)
            self.optimizer.zero_grad()
            output = self.model(image)
            loss = self.criterion(output, target)
            loss.backward()
            self.optimizer.step()
            losses.update(loss.item(), image.size(0))
        print('[Epoch: %d] Loss: %.3f' % (epoch, losses.avg))

    def validation(self, epoch):
        self.model.eval()
        top1 = AverageMeter()
        for image, target in self.val_loader:
            with torch.no_grad():
                output = self.model(image.to(self.device))
            top1.update((output.argmax(1).cpu() == target).float().mean().item(), image.size(0))
        if top1.avg > self.best_pred:
            self.best_pred = top1.avg
            self.save_checkpoint(epoch)

    def save_checkpoint(self, epoch):
        os.makedirs('run', exist_ok=True)
        torch.save({'epoch': epoch + 1, 'state_dict': self.model.state_dict(),
                    'optimizer': self.optimizer.state_dict(), 'best_pred': self.best_pred}, 'run/model_best.pth.tar')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--batch_size', type=int, default=8)
    parser.add_argument('--epochs', type=int, default=2)
    trainer = Trainer(parser.parse_args())
    for epoch in range(trainer.args.epochs):
        trainer.training(epoch)
        trainer.validation(epoch)


if __name__ == "__main__":
    main()
