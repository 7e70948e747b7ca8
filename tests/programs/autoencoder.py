# distributed: converts
# same with W processes: yes
# amp: converts
import os

import torch
from torch import nn
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset

if not os.path.exists('./mlp_img'):
    os.mkdir('./mlp_img')

num_epochs = 2
batch_size = 8
learning_rate = 5e-2
img = torch.rand(64, 1, 4, 4, generator=torch.Generator().manual_seed(1))
dataloader = DataLoader(TensorDataset(img, torch.zeros(64)), batch_size=batch_size, shuffle=True)


class autoencoder(nn.Module):
    def __init__(self):
        super(autoencoder, self).__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 8), nn.ReLU(True), nn.Linear(8, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 8), nn.ReLU(True), nn.Linear(8, 16), nn.Tanh())

    def forward(self, x):
        x = self.encoder(x)
        x = self.decoder(x)
        return x


model = autoencoder().cuda()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, weight_decay=1e-5)

for epoch in range(num_epochs):
    for data in dataloader:
        img, _ = data
        img = img.view(img.size(0), -1)
        img = Variable(img).cuda()
        output = model(img)
        loss = criterion(output, img)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print('epoch [{}/{}], loss:{:.4f}'.format(epoch + 1, num_epochs, loss.data))
    if epoch % 1 == 0:
        torch.save(output.cpu().data, './mlp_img/image_{}.pt'.format(epoch))

torch.save(model.state_dict(), './sim_autoencoder.pth')
