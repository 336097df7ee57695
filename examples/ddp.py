"""Add the BoDA loss to a loop on two processes. The lines it takes are marked `# boda`.

torchrun --standalone --nproc-per-node 2 examples/ddp.py
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from synthetic_images import COUNTS, synthetic_images
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from crosstail.losses import BoDALoss  # boda
from crosstail.metrics import PairAccuracy


class Classifier(nn.Module):
    """A small network with one hidden layer, which returns its loss."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(768, 64), nn.ReLU())
        self.head = nn.Linear(64, 4)
        self.criterion = BoDALoss(num_domains=3, num_classes=4, num_features=64, counts=COUNTS)  # boda

    def forward(self, x, y, domain):  # boda, before: def forward(self, x, y):
        z = self.body(x)
        loss = F.cross_entropy(self.head(z), y)
        return loss + 0.1 * self.criterion(z, y, domain)  # boda, before: return loss


dist.init_process_group("gloo")  # "nccl" on GPUs
torch.manual_seed(0)
x, y, domain = synthetic_images(COUNTS, seed=1)
dataset = TensorDataset(x, y, domain)  # boda, before: dataset = TensorDataset(x, y)
model = Classifier()
shared = DistributedDataParallel(model)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=16, sampler=sampler)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(10):
    sampler.set_epoch(epoch)
    for batch in loader:
        loss = shared(*batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

if dist.get_rank() == 0:
    x, y, domain = synthetic_images(torch.full((3, 4), 50), seed=2)
    with torch.no_grad():
        predicted = model.head(model.body(x)).argmax(1)
    accuracy = PairAccuracy.from_predictions(predicted, y, domain, num_domains=3, num_classes=4)
    print(f"pair average {accuracy.pair_average:.3f}, worst pair {accuracy.worst_pair:.3f}")
    print(f"samples in the statistics: {int(model.criterion.statistics.counts.sum())}")  # boda
dist.destroy_process_group()
