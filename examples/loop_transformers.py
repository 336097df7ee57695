"""Add the BoDA loss to a Hugging Face Trainer with a small ResNet. The lines it takes are marked `# boda`.

pip install transformers accelerate
python examples/loop_transformers.py
"""

import torch
from synthetic_images import COUNTS, synthetic_images
from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainingArguments, set_seed

from crosstail.integrations.transformers import PairReport
from crosstail.losses import BoDALoss  # boda
from crosstail.metrics import PairAccuracy


class BoDATrainer(Trainer):  # boda
    """Adds the BoDA loss on the input of the classifier."""  # boda

    criterion = BoDALoss(num_domains=3, num_classes=4, num_features=32, counts=COUNTS)  # boda

    def compute_loss(self, model, inputs, return_outputs=False, **others):  # boda
        domain = inputs.pop("domain")  # boda
        outputs = model(**inputs, output_hidden_states=True)  # boda
        z = outputs.hidden_states[-1].mean((2, 3))  # boda
        loss = outputs.loss + 0.1 * self.criterion.to(z.device)(z, inputs["labels"], domain)  # boda
        return (loss, outputs) if return_outputs else loss  # boda


set_seed(0)
x, y, domain = synthetic_images(COUNTS, seed=1, noise=3)
rows = [{"pixel_values": x[i], "labels": y[i]} for i in range(len(y))]
rows = [row | {"domain": domain[i]} for i, row in enumerate(rows)]  # boda
shape = {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "layer_type": "basic"}
model = ResNetForImageClassification(ResNetConfig(num_labels=4, **shape))
args = TrainingArguments(
    num_train_epochs=15,
    per_device_train_batch_size=32,
    learning_rate=5e-3,
    save_strategy="no",
    report_to="none",
    use_cpu=True,
    remove_unused_columns=False,  # boda
)
given = {"model": model, "args": args, "train_dataset": rows}
trainer = BoDATrainer(**given)  # boda, before: trainer = Trainer(**given)
trainer.train()

x, y, domain = synthetic_images(torch.full((3, 4), 50), seed=2, noise=3)
tests = [{"pixel_values": x[i], "labels": y[i], "domain": domain[i]} for i in range(len(y))]
names = {"classes": ["a", "b", "c", "d"], "domain_names": ["first", "second", "third"]}
trainer.add_callback(PairReport("report.html", domains=domain, **names, train_counts=COUNTS))
trainer.evaluate(tests)  # writes report.html
with torch.no_grad():
    predicted = model.eval()(x).logits.argmax(1)
accuracy = PairAccuracy.from_predictions(predicted, y, domain, num_domains=3, num_classes=4)
print(f"pair average {accuracy.pair_average:.3f}, worst pair {accuracy.worst_pair:.3f}")
