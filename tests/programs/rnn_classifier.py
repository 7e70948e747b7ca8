# distributed: converts
# same with W processes: yes
# amp: converts
# apex: refused (the forward pass makes its hidden state in float32)
# run: --batch_size {batch}
import argparse
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, n, seed):
        self.x = torch.randn(n, 6, 4, generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], (self.x[i].sum() > 0).long()


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, num_classes):
        super(RNN, self).__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True)
        self.fc = nn.Linear(hidden_size, num_classes)

    def forward(self, x):
        h0 = torch.zeros(self.num_layers, x.size(0), self.hidden_size).to(x.device)
        c0 = torch.zeros(self.num_layers, x.size(0), self.hidden_size).to(x.device)
        out, _ = self.lstm(x, (h0, c0))
        return self.fc(out[:, -1, :])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--device", default="cuda:0")
    args = parser.parse_args()
    device = torch.device(args.device)
    train_loader = DataLoader(dataset=Rows(64, 0), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(dataset=Rows(16, 1), batch_size=8, shuffle=False)
    model = RNN(4, 8, 1, 2).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    total_step = len(train_loader)
    for epoch in range(2):
        for i, (rows, labels) in enumerate(train_loader):
            rows = rows.reshape(-1, 6, 4).to(device)
            labels = labels.to(device)
            outputs = model(rows)
            loss = criterion(outputs, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if (i + 1) % 2 == 0:
                print('Epoch [{}/2], Step [{}/{}], Loss: {:.4f}'.format(epoch + 1, i + 1, total_step, loss.item()))
    model.eval()
    with torch.no_grad():
        correct = 0
        for rows, labels in test_loader:
            correct += (model(rows.to(device)).argmax(1) == labels.to(device)).sum().item()
        print('Test Accuracy: {} %'.format(100 * correct / 16))
    torch.save(model.state_dict(), 'model.ckpt')
