# distributed: converts
# same with W processes: yes
# amp: converts
# run: --batch {batch}
import argparse
import torch
import torch.nn as nn
from torch import optim
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
HIDDEN, VOCAB, LENGTH = 12, 10, 5


class EncoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.gru = nn.GRU(HIDDEN, HIDDEN, batch_first=True)

    def forward(self, input):
        return self.gru(self.embedding(input))


class DecoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.gru = nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, VOCAB)

    def forward(self, hidden, target):
        start = torch.zeros(target.size(0), 1, dtype=torch.long, device=device)
        output, _ = self.gru(self.embedding(torch.cat([start, target[:, :-1]], 1)), hidden)
        return self.out(output)


def train_epoch(dataloader, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    total_loss = 0
    for input_tensor, target_tensor in dataloader:
        input_tensor, target_tensor = input_tensor.to(device), target_tensor.to(device)
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        _, encoder_hidden = encoder(input_tensor)
        decoder_outputs = decoder(encoder_hidden, target_tensor)
        loss = criterion(decoder_outputs.view(-1, VOCAB), target_tensor.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        total_loss += loss.item()
    return total_loss / len(dataloader)


def train(train_dataloader, encoder, decoder, n_epochs, learning_rate=0.1):
    encoder_optimizer = optim.SGD(encoder.parameters(), lr=learning_rate)
    decoder_optimizer = optim.SGD(decoder.parameters(), lr=learning_rate)
    criterion = nn.NLLLoss() if False else nn.CrossEntropyLoss()
    for epoch in range(1, n_epochs + 1):
        loss = train_epoch(train_dataloader, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion)
        print('%d %.4f' % (epoch, loss))


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--batch', type=int, default=8)
    args = parser.parse_args()
    words = torch.randint(0, VOCAB, (64, LENGTH), generator=torch.Generator().manual_seed(6))
    dataloader = DataLoader(TensorDataset(words, words.flip(1)), batch_size=args.batch, shuffle=True)
    train(dataloader, EncoderRNN().to(device), DecoderRNN().to(device), 2)
