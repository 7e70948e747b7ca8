import torch
from torch.utils.data import DataLoader, Dataset


class PairDataset(Dataset):
    def __init__(self):
        gen = torch.Generator().manual_seed(3)
        self.A = torch.randn(64, 6, generator=gen)

    def __getitem__(self, i):
        return self.A[i], self.A[i].flip(0)

    def __len__(self):
        return len(self.A)


def create_dataset(opt):
    dataset = PairDataset()
    print("dataset [%s] was created" % type(dataset).__name__)
    return DataLoader(dataset, batch_size=opt.batchSize, shuffle=opt.isTrain)
