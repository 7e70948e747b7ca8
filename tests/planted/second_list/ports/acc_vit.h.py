import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import ViTConfig, ViTForImageClassification


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    x = torch.randn(n, 3, 16, 16, generator=g)
    x += (y.view(-1, 1, 1, 1) - 1).float() * 0.06
    return TensorDataset(x, y)


def training_function():
    set_seed(13)
    accelerator = Accelerator(gradient_accumulation_steps=2)
    config = ViTConfig(image_size=16, patch_size=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, num_labels=3,
                       hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = ViTForImageClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    train_loader = DataLoader(make(64, 0), batch_size=8 // accelerator.num_processes, shuffle=True)
    val_loader = DataLoader(make(22, 1), batch_size=4)
    epochs = 4
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader) // 2)
    model, optimizer, train_loader, val_loader, scheduler = accelerator.prepare(model, optimizer, train_loader, val_loader, scheduler)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            with accelerator.accumulate(model):
                loss = criterion(model(pixel_values=x).logits, y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        correct = seen = 0
        for x, y in val_loader:
            with torch.no_grad():
                pred = model(pixel_values=x).logits.argmax(-1)
            pred, ref = accelerator.gather_for_metrics((pred, y))
            correct += (pred == ref).sum().item()
            seen += len(ref)
        accelerator.print(f"epoch {epoch} accuracy {correct / seen:.4f} over {seen}")
    accelerator.wait_for_everyone()
    unwrapped = accelerator.unwrap_model(model)
    accelerator.save(unwrapped.state_dict(), "vit.pt")


if __name__ == "__main__":
    training_function()
