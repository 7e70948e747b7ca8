import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
import lightning.pytorch as pl
from lightning.pytorch.accelerators import Accelerator
from lightning.pytorch.strategies import SingleDeviceStrategy
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


class GAN(pl.LightningModule):
    def __init__(self, latent=6, lr=2e-3):
        super().__init__()
        self.automatic_optimization = False
        self.latent, self.lr = latent, lr
        self.G = nn.Sequential(nn.Linear(latent, 32), nn.LeakyReLU(0.2), nn.Linear(32, 8))
        self.D = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def adv(self, logits, real):
        target = torch.ones_like(logits) if real else torch.zeros_like(logits)
        return F.binary_cross_entropy_with_logits(logits, target)

    def training_step(self, batch, idx):
        (real,) = batch
        opt_g, opt_d = self.optimizers()
        z = torch.randn(real.size(0), self.latent, device=self.device)

        self.toggle_optimizer(opt_d)
        fake = self.G(z).detach()
        d_loss = (self.adv(self.D(real), True) + self.adv(self.D(fake), False)) / 2
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.untoggle_optimizer(opt_d)

        self.toggle_optimizer(opt_g)
        g_loss = self.adv(self.D(self.G(z)), True)
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        self.clip_gradients(opt_g, gradient_clip_val=0.1, gradient_clip_algorithm="norm")
        opt_g.step()
        self.untoggle_optimizer(opt_g)

        self.log_dict({"d_loss": d_loss, "g_loss": g_loss}, on_step=False, on_epoch=True)

    def on_train_epoch_end(self):
        for s in self.lr_schedulers():
            s.step()
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch} d loss {m['d_loss'].item():.5f} g loss {m['g_loss'].item():.5f}")

    def configure_optimizers(self):
        g = torch.optim.Adam(self.G.parameters(), lr=self.lr, betas=(0.5, 0.999))
        d = torch.optim.Adam(self.D.parameters(), lr=self.lr * 2, betas=(0.5, 0.999))
        return [g, d], [torch.optim.lr_scheduler.ExponentialLR(g, 0.7), torch.optim.lr_scheduler.ExponentialLR(d, 0.9)]


def main():
    pl.seed_everything(1)
    data = torch.randn(64, 8) * torch.linspace(0.2, 1.5, 8) + 1
    loader = DataLoader(TensorDataset(data), batch_size=16, shuffle=True)
    model = GAN()
    trainer = pl.Trainer(strategy=SingleDeviceStrategy(device=torch.device("npu", 0), accelerator=NPUAccelerator()), devices=1, max_epochs=3, logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, loader)
    torch.save(model.G.state_dict(), "G.pt")


if __name__ == "__main__":
    main()
