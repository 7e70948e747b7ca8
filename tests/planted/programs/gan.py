# Two networks with an optimizer each, and a third that both losses go through and that learns with the generator.
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def mlp(*sizes):
    layers = []
    for before, after in zip(sizes, sizes[1:]):
        layers += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


def main():
    torch.manual_seed(8)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    real_data = torch.randn(48, 6) * 0.5 + 1
    codes = torch.randn(48, 5)
    loader = DataLoader(TensorDataset(real_data, codes), batch_size=8, shuffle=True)

    encoder = mlp(5, 8, 4).to(device)
    generator = mlp(4, 12, 6).to(device)
    discriminator = mlp(6, 12, 1).to(device)
    criterion = nn.BCEWithLogitsLoss()
    optimizer_g = torch.optim.Adam(
        list(generator.parameters()) + list(encoder.parameters()), lr=0.002, betas=(0.5, 0.999)
    )
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=0.002, betas=(0.5, 0.999))

    for epoch in range(2):
        for step, (real, code) in enumerate(loader):
            real = real.to(device)
            code = code.to(device)
            ones = torch.ones(real.size(0), 1, device=device)
            zeros = torch.zeros(real.size(0), 1, device=device)

            optimizer_d.zero_grad()
            fake = generator(encoder(code))
            loss_d = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
            loss_d.backward()
            optimizer_d.step()

            optimizer_g.zero_grad()
            loss_g = criterion(discriminator(fake), ones)
            loss_g.backward()
            optimizer_g.step()

            if step % 3 == 0:
                print(f"{epoch} {step} D {loss_d.item():.4f} G {loss_g.item():.4f}")


if __name__ == "__main__":
    main()
