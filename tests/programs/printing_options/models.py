import torch.nn as nn


def create_model(opt):
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))
    model.to(opt.device)
    print("model was created")
    return model, nn.L1Loss()
