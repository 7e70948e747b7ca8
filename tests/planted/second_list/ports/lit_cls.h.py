import os

import lightning as L
import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.accelerators import Accelerator
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy
from torch.utils.data import DataLoader, TensorDataset


class NPUAccelerator(Accelerator):
    """Lightning has no accelerator for NPUs; this is the least that it asks for."""

    name = "npu"

    def setup_device(self, device):
        torch.npu.set_device(device)

    def setup(self, trainer):
        pass

    def teardown(self):
        torch.npu.empty_cache()

    @staticmethod
    def parse_devices(devices):
        return list(range(devices)) if isinstance(devices, int) else devices

    @staticmethod
    def get_parallel_devices(devices):
        return [torch.device("npu", i) for i in devices]

    @staticmethod
    def auto_device_count():
        return torch.npu.device_count()

    @staticmethod
    def is_available():
        return torch.npu.is_available()

    def get_device_stats(self, device):
        return {}


class NPUDDPStrategy(DDPStrategy):
    def determine_ddp_device_ids(self):
        return None  # Lightning would open a CUDA stream otherwise

    def reduce(self, tensor, group=None, reduce_op="mean"):
        if isinstance(tensor, torch.Tensor) and not torch.is_floating_point(tensor) and reduce_op == "mean":
            tensor = tensor.float()  # a mean of integers is refused
        return super().reduce(tensor, group=group, reduce_op=reduce_op)


def npu_strategy():
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        return NPUDDPStrategy(accelerator=NPUAccelerator(), process_group_backend="hccl")
    return SingleDeviceStrategy(device=torch.device("npu", 0), accelerator=NPUAccelerator())


class TabularData(L.LightningDataModule):
    def __init__(self, batch_size=8 // int(os.environ.get("WORLD_SIZE", 1))):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(12)
        x = torch.randn(144, 12, generator=g)
        y = (x[:, :3].sum(1) > 0).long() + (x[:, 3] > 0.5).long()
        self.train_set = TensorDataset(x[:96], y[:96])
        self.val_set = TensorDataset(x[96:], y[96:])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch_size)


class LitClassifier(L.LightningModule):
    def __init__(self, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y, label_smoothing=0.05)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True, sync_dist=True)
        self.log("val_acc", (logits.argmax(1) == y).float().mean(), sync_dist=True)

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        if not self.trainer.sanity_checking and self.trainer.is_global_zero:
            print(f"epoch {self.current_epoch} val loss {m['val_loss'].item():.5f} accuracy {m['val_acc'].item():.4f}")

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.02)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=self.hparams.lr, total_steps=self.trainer.estimated_stepping_batches)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


if __name__ == "__main__":
    L.seed_everything(7)
    trainer = L.Trainer(
        strategy=npu_strategy(),
        devices=int(os.environ.get("WORLD_SIZE", 1)),
        max_epochs=4,
        accumulate_grad_batches=2,
        gradient_clip_val=0.5,
        callbacks=[ModelCheckpoint(dirpath="ckpt", monitor="val_loss", mode="min"), EarlyStopping("val_loss", patience=2)],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = LitClassifier()
    trainer.fit(model, datamodule=TabularData())
    if trainer.is_global_zero:
        print("best val loss %.5f" % trainer.checkpoint_callback.best_model_score.item())
