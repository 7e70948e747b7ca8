# distributed: converts
# same with W processes: yes
# amp: converts
import torch
import model
import data

if __name__ == "__main__":
    loader = data.loader(8)
    model = model.Net()
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, loss.item())
    torch.save(model.state_dict(), "model.pt")
