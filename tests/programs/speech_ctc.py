# distributed: converts
# same with W processes: yes
# amp: converts
# run: --batch-size {batch}
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.data as data


class Utterances(data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        gen = torch.Generator().manual_seed(index)
        return torch.randn(14, 6, generator=gen), torch.randint(1, 8, (4,), generator=gen)


def data_processing(batch):
    spectrograms, labels, input_lengths, label_lengths = [], [], [], []
    for spec, label in batch:
        spectrograms.append(spec)
        labels.append(label)
        input_lengths.append(spec.shape[0])
        label_lengths.append(len(label))
    spectrograms = nn.utils.rnn.pad_sequence(spectrograms, batch_first=True)
    return spectrograms, nn.utils.rnn.pad_sequence(labels, batch_first=True), input_lengths, label_lengths


class SpeechRecognitionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.birnn = nn.GRU(6, 8, batch_first=True, bidirectional=True)
        self.classifier = nn.Linear(16, 8)

    def forward(self, x):
        return self.classifier(self.birnn(x)[0])


def train(model, device, train_loader, criterion, optimizer, epoch):
    model.train()
    data_len = len(train_loader.dataset)
    for batch_idx, _data in enumerate(train_loader):
        spectrograms, labels, input_lengths, label_lengths = _data
        spectrograms, labels = spectrograms.to(device), labels.to(device)
        optimizer.zero_grad()
        output = F.log_softmax(model(spectrograms), dim=2).transpose(0, 1)
        loss = criterion(output, labels, torch.tensor(input_lengths), torch.tensor(label_lengths))
        loss.backward()
        optimizer.step()
        if batch_idx % 4 == 0 or batch_idx == data_len:
            print('Train Epoch: {} [{}/{}]\tLoss: {:.6f}'.format(epoch, batch_idx * len(spectrograms), data_len,
                                                                 loss.item()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    hparams = parser.parse_args()
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    kwargs = {'num_workers': 0, 'pin_memory': True} if use_cuda else {}
    train_loader = data.DataLoader(dataset=Utterances(), batch_size=hparams.batch_size, shuffle=True,
                                   collate_fn=lambda x: data_processing(x), **kwargs)
    model = SpeechRecognitionModel().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    criterion = nn.CTCLoss(blank=0).to(device)
    for epoch in range(1, 3):
        train(model, device, train_loader, criterion, optimizer, epoch)


if __name__ == "__main__":
    main()
