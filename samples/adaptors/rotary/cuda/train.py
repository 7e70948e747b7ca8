import torch
import torch.nn.functional as F

from model import Model


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = Model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(4):
        tokens = torch.randint(0, 64, (8, 12), device=device)
        positions = torch.arange(12, device=device).expand(8, 12).flip(-1)
        logits = model(tokens, positions)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, 64), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
