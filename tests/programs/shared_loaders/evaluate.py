import torch
from loaders import get_loaders
from net import ConvNet

device = "cuda" if torch.cuda.is_available() else "cpu"
train_loader, val_loader = get_loaders(8)
model = ConvNet().to(device)
model.load_state_dict(torch.load("best.pt", map_location=device))
model.eval()
with torch.no_grad():
    for name, loader in (("train", train_loader), ("val", val_loader)):
        correct = sum((model(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in loader)
        print(name, correct / len(loader.dataset))
