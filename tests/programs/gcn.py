# distributed: refused or converts (one graph is one batch: there is nothing to share out)
# amp: converts
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument('--no-cuda', action='store_true', default=False)
parser.add_argument('--epochs', type=int, default=5)
args = parser.parse_args()
args.cuda = not args.no_cuda and torch.cuda.is_available()

torch.manual_seed(42)
N = 30
adj = (torch.rand(N, N) > 0.8).float()
adj = ((adj + adj.t()) > 0).float() + torch.eye(N)
adj = adj / adj.sum(1, keepdim=True)
features, labels = torch.randn(N, 6), torch.randint(0, 3, (N,))
idx_train, idx_val = torch.arange(20), torch.arange(20, 30)


class GraphConvolution(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(i, o) * 0.1)

    def forward(self, x, adj):
        return torch.mm(adj, torch.mm(x, self.weight))


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1 = GraphConvolution(6, 8)
        self.gc2 = GraphConvolution(8, 3)

    def forward(self, x, adj):
        x = F.dropout(F.relu(self.gc1(x, adj)), 0.5, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


model = GCN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=5e-4)
if args.cuda:
    model.cuda()
    features = features.cuda()
    adj = adj.cuda()
    labels = labels.cuda()
    idx_train, idx_val = idx_train.cuda(), idx_val.cuda()


def train(epoch):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    model.eval()
    output = model(features, adj)
    acc_val = (output[idx_val].argmax(1) == labels[idx_val]).float().mean()
    print('Epoch: {:04d}'.format(epoch + 1), 'loss_train: {:.4f}'.format(loss_train.item()),
          'acc_val: {:.4f}'.format(acc_val.item()))


for epoch in range(args.epochs):
    train(epoch)
