# distributed: converts
# same with W processes: yes
# amp: converts
import copy

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, series, length):
        self.series, self.length = series, length

    def __len__(self):
        return len(self.series) - self.length

    def __getitem__(self, i):
        return self.series[i:i + self.length], self.series[i + self.length]


class EarlyStopping:
    def __init__(self, patience=2, delta=0.0):
        self.patience, self.delta, self.counter = patience, delta, 0
        self.best_score, self.early_stop = None, False

    def __call__(self, val_loss, model, path):
        score = -val_loss
        if self.best_score is None or score > self.best_score + self.delta:
            self.best_score, self.counter = score, 0
            print(f'Validation loss decreased ({val_loss:.6f}).  Saving model ...')
            torch.save(model.state_dict(), path)
        else:
            self.counter += 1
            print(f'EarlyStopping counter: {self.counter} out of {self.patience}')
            self.early_stop = self.counter >= self.patience


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 8, batch_first=True)
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        return self.out(self.gru(x.unsqueeze(-1))[0][:, -1]).squeeze(-1)


class Experiment:
    def __init__(self, lr=0.1):
        self.device = torch.device("cuda:0")
        self.model = Forecaster().to(self.device)
        self.lr = lr

    def _get_data(self, flag):
        t = torch.arange(72 if flag == "train" else 28).float()
        shuffle = flag == "train"
        return DataLoader(Windows(torch.sin(t / 4), 8), batch_size=8, shuffle=shuffle, drop_last=shuffle)

    def vali(self, loader, criterion):
        self.model.eval()
        total = []
        with torch.no_grad():
            for x, y in loader:
                total.append(criterion(self.model(x.to(self.device)), y.to(self.device)).item())
        self.model.train()
        return sum(total) / len(total)

    def train(self):
        train_loader, vali_loader = self._get_data("train"), self._get_data("val")
        early_stopping = EarlyStopping(patience=2)
        model_optim = torch.optim.SGD(self.model.parameters(), lr=self.lr)
        criterion = nn.MSELoss()
        for epoch in range(4):
            train_loss = []
            for batch_x, batch_y in train_loader:
                model_optim.zero_grad()
                outputs = self.model(batch_x.to(self.device))
                loss = criterion(outputs, batch_y.to(self.device))
                train_loss.append(loss.item())
                loss.backward()
                model_optim.step()
            vali_loss = self.vali(vali_loader, criterion)
            print("Epoch: {} Train Loss: {:.7f} Vali Loss: {:.7f}".format(epoch, sum(train_loss) / len(train_loss),
                                                                          vali_loss))
            early_stopping(vali_loss, self.model, "checkpoint.pth")
            if early_stopping.early_stop:
                print("Early stopping")
                break
        best = copy.deepcopy(self.model.state_dict())
        self.model.load_state_dict(torch.load("checkpoint.pth"))
        return best


if __name__ == "__main__":
    Experiment().train()
