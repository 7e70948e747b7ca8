# distributed: converts
# same with W processes: no (batch statistics)
# amp: converts
import argparse
import logging
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, TensorDataset, random_split

dir_checkpoint = Path('./checkpoints/')


class UNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.n_classes = n_classes
        self.down = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        self.mid = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.outc = nn.Conv2d(8, n_classes, 1)

    def forward(self, x):
        a = self.down(x)
        return self.outc(torch.cat([a, self.up(self.mid(a))], 1))


def dice_loss(pred, target):
    inter = (pred * target).sum((1, 2))
    return 1 - ((2 * inter + 1) / (pred.sum((1, 2)) + target.sum((1, 2)) + 1)).mean()


@torch.inference_mode()
def evaluate(net, dataloader, device):
    net.eval()
    dice_score = 0
    for image, mask_true in dataloader:
        mask_pred = net(image.to(device)).argmax(1).float()
        dice_score += 1 - dice_loss(mask_pred, mask_true.to(device).float())
    net.train()
    return dice_score / max(len(dataloader), 1)


def train_model(model, device, epochs=2, batch_size=8, learning_rate=1e-3, val_percent=0.25, save_checkpoint=True):
    gen = torch.Generator().manual_seed(3)
    images = torch.rand(64, 1, 8, 8, generator=gen)
    dataset = TensorDataset(images, (images[:, 0] > 0.5).long())
    n_val = int(len(dataset) * val_percent)
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(0))
    loader_args = dict(batch_size=batch_size, num_workers=0, pin_memory=True)
    train_loader = DataLoader(train_set, shuffle=True, **loader_args)
    val_loader = DataLoader(val_set, shuffle=False, drop_last=True, **loader_args)
    logging.info(f'Training size: {len(train_set)}, device: {device.type}')
    optimizer = optim.RMSprop(model.parameters(), lr=learning_rate, weight_decay=1e-8, momentum=0.9)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, 'max', patience=1)
    criterion = nn.CrossEntropyLoss()
    global_step = 0
    for epoch in range(1, epochs + 1):
        model.train()
        epoch_loss = 0
        for images, true_masks in train_loader:
            images = images.to(device=device, dtype=torch.float32)
            true_masks = true_masks.to(device=device, dtype=torch.long)
            masks_pred = model(images)
            loss = criterion(masks_pred, true_masks)
            loss += dice_loss(F.softmax(masks_pred, dim=1)[:, 1].float(), true_masks.float())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            global_step += 1
            epoch_loss += loss.item()
            if global_step % 3 == 0:
                val_score = evaluate(model, val_loader, device)
                scheduler.step(val_score)
                logging.info('Validation Dice score: {}'.format(val_score))
        if save_checkpoint:
            Path(dir_checkpoint).mkdir(parents=True, exist_ok=True)
            torch.save(model.state_dict(), str(dir_checkpoint / 'checkpoint_epoch{}.pth'.format(epoch)))
            logging.info(f'Checkpoint {epoch} saved!')


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', '-e', type=int, default=2)
    parser.add_argument('--load', '-f', type=str, default=False)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format='%(levelname)s: %(message)s')
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    model = UNet(n_classes=2)
    if args.load:
        model.load_state_dict(torch.load(args.load, map_location=device))
    model.to(device=device)
    train_model(model=model, epochs=args.epochs, device=device)
