# distributed: refused or converts (samplers of its own, over parts of one data set)
# same with W processes: no (the sampler shuffles by itself)
# amp: converts
import torch
from torch import nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

torch.manual_seed(0)
x = torch.randn(80, 4)
train_data = TensorDataset(x, (x.sum(1) > 0).float())
indices = torch.randperm(80).tolist()
train_sampler, valid_sampler = SubsetRandomSampler(indices[:64]), SubsetRandomSampler(indices[64:])
train_loader = DataLoader(train_data, batch_size=8, sampler=train_sampler)
valid_loader = DataLoader(train_data, batch_size=8, sampler=valid_sampler)
model = nn.Linear(4, 1).cuda()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
valid_loss_min = float("inf")
for epoch in range(2):
    train_loss = valid_loss = 0.0
    model.train()
    for data, target in train_loader:
        data, target = data.cuda(), target.cuda()
        optimizer.zero_grad()
        loss = criterion(model(data).squeeze(1), target)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * data.size(0)
    model.eval()
    for data, target in valid_loader:
        loss = criterion(model(data.cuda()).squeeze(1), target.cuda())
        valid_loss += loss.item() * data.size(0)
    train_loss, valid_loss = train_loss / len(train_loader.sampler), valid_loss / len(valid_loader.sampler)
    print('Epoch: {} \tTraining Loss: {:.6f} \tValidation Loss: {:.6f}'.format(epoch, train_loss, valid_loss))
    if valid_loss <= valid_loss_min:
        torch.save(model.state_dict(), 'model_cifar.pt')
        valid_loss_min = valid_loss
