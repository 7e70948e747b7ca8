# distributed: converts
# same with W processes: yes
# amp: converts
import torch
import torch.nn as nn
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset

cuda = True if torch.cuda.is_available() else False
model = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 6))
criterion = torch.nn.L1Loss()
if cuda:
    model = model.cuda()
    criterion.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
Tensor = torch.cuda.FloatTensor if cuda else torch.Tensor
images = torch.randn(64, 6, generator=torch.Generator().manual_seed(4))
dataloader = DataLoader(TensorDataset(images, images.roll(1, 1)), batch_size=8, shuffle=True)

for epoch in range(2):
    for i, (real_A, real_B) in enumerate(dataloader):
        real_A = Variable(real_A.type(Tensor))
        real_B = Variable(real_B.type(Tensor))
        weight = Variable(Tensor(real_A.size(0), 1).fill_(1.0), requires_grad=False)
        optimizer.zero_grad()
        loss = criterion(weight * model(real_A), real_B)
        loss.backward()
        optimizer.step()
    print("[Epoch %d] [Batch %d/%d] [loss: %f]" % (epoch, i, len(dataloader), loss.item()))
