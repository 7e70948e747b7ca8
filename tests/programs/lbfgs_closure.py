# distributed: refused or converts (the optimizer decides by the loss of its own rank, and the data is one batch)
# amp: refused (LBFGS calls a closure several times in a step)
import torch
import torch.nn as nn
import torch.optim as optim


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.lstm1 = nn.LSTMCell(1, 8)
        self.linear = nn.Linear(8, 1)

    def forward(self, input):
        outputs = []
        h_t = torch.zeros(input.size(0), 8).cuda()
        c_t = torch.zeros(input.size(0), 8).cuda()
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            outputs += [self.linear(h_t)]
        return torch.cat(outputs, dim=1)


if __name__ == '__main__':
    torch.manual_seed(0)
    t = torch.arange(0, 12).float().unsqueeze(0) + torch.arange(0, 10).float().unsqueeze(1)
    data = torch.sin(t / 3).cuda()
    input, target = data[3:, :-1], data[3:, 1:]
    seq = Sequence().cuda()
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=4)
    for i in range(2):
        print('STEP: ', i)

        def closure():
            optimizer.zero_grad()
            out = seq(input)
            loss = criterion(out, target)
            print('loss:', loss.item())
            loss.backward()
            return loss
        optimizer.step(closure)
        with torch.no_grad():
            print('test loss:', criterion(seq(data[:3, :-1]), data[:3, 1:]).item())
