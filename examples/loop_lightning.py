"""Add the BoDA loss to a Lightning module. The lines it takes are marked `# boda`.

pip install pytorch-lightning
python examples/loop_lightning.py
"""

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from synthetic_images import COUNTS, synthetic_images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from crosstail.integrations.lightning import PairReport
from crosstail.losses import BoDALoss  # boda
from crosstail.metrics import PairAccuracy


class Classifier(pl.LightningModule):
    """A small network with one hidden layer."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(768, 64), nn.ReLU())
        self.head = nn.Linear(64, 4)
        self.criterion = BoDALoss(num_domains=3, num_classes=4, num_features=64, counts=COUNTS)  # boda

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, number):
        x, y, domain = batch  # boda, before: x, y = batch
        z = self.body(x)
        loss = F.cross_entropy(self.head(z), y)
        loss = loss + 0.1 * self.criterion(z, y, domain)  # boda
        self.log("loss", loss)
        return loss

    def test_step(self, batch, number):
        x, y, _ = batch
        self.log("test loss", F.cross_entropy(self(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


pl.seed_everything(0, verbose=False)
x, y, domain = synthetic_images(COUNTS, seed=1)
dataset = TensorDataset(x, y, domain)  # boda, before: dataset = TensorDataset(x, y)
model = Classifier()
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
names = {"classes": ["a", "b", "c", "d"], "domain_names": ["first", "second", "third"]}
report = PairReport("report.html", **names, train_counts=COUNTS, features=lambda model, x: model.body(x))
trainer = pl.Trainer(max_epochs=10, accelerator="cpu", callbacks=[report], **quiet)
trainer.fit(model, DataLoader(dataset, batch_size=32, shuffle=True))

x, y, domain = synthetic_images(torch.full((3, 4), 50), seed=2)
trainer.test(model, DataLoader(TensorDataset(x, y, domain), batch_size=100), verbose=False)  # writes report.html
with torch.no_grad():
    predicted = model(x).argmax(1)
accuracy = PairAccuracy.from_predictions(predicted, y, domain, num_domains=3, num_classes=4)
print(f"pair average {accuracy.pair_average:.3f}, worst pair {accuracy.worst_pair:.3f}")
