"""Add the BoDA loss to a plain PyTorch loop. The lines it takes are marked `# boda`.

python examples/loop_pytorch.py
"""

import torch
import torch.nn.functional as F
from synthetic_images import COUNTS, synthetic_images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from crosstail.integrations import write_report
from crosstail.losses import BoDALoss  # boda
from crosstail.metrics import PairAccuracy

torch.manual_seed(0)
x, y, domain = synthetic_images(COUNTS, seed=1)
dataset = TensorDataset(x, y, domain)  # boda, before: dataset = TensorDataset(x, y)
body = nn.Sequential(nn.Flatten(), nn.Linear(768, 64), nn.ReLU())
head = nn.Linear(64, 4)
criterion = BoDALoss(num_domains=3, num_classes=4, num_features=64, counts=COUNTS)  # boda
loader = DataLoader(dataset, batch_size=32, shuffle=True)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)

for epoch in range(10):
    for x, y, domain in loader:  # boda, before: for x, y in loader:
        z = body(x)
        loss = F.cross_entropy(head(z), y)
        loss = loss + 0.1 * criterion(z, y, domain)  # boda
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")

x, y, domain = synthetic_images(torch.full((3, 4), 50), seed=2)
with torch.no_grad():
    predicted = head(body(x)).argmax(1)
names = {"classes": ["a", "b", "c", "d"], "domain_names": ["first", "second", "third"]}
write_report("report.html", predictions=predicted, labels=y, domains=domain, train_counts=COUNTS, **names)
accuracy = PairAccuracy.from_predictions(predicted, y, domain, num_domains=3, num_classes=4)
print(f"pair average {accuracy.pair_average:.3f}, worst pair {accuracy.worst_pair:.3f}")
