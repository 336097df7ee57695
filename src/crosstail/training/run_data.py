"""The data of a run: loaded once, split by its protocol, and embedded where the backbone is frozen."""

from dataclasses import dataclass
from typing import Any

from crosstail import backbones, data, discovery
from crosstail.backbones import Backbone
from crosstail.data import DomainDataset, protocols
from crosstail.data.activations import Activations
from crosstail.data.images.files import Samples
from crosstail.progress import Progress
from crosstail.training.data_facts import DataFacts
from crosstail.training.embedding import activations, embed
from crosstail.training.spec import RunSpec


@dataclass
class Inputs:
    """The data of a run as loaded and split; `embedded` are the same samples as the trained part sees them."""

    samples: DomainDataset
    frozen: Backbone | None = None
    spec: RunSpec | None = None  # if there is a frozen backbone
    source: DomainDataset | None = None  # before the split, if it is for one fold or unseen domain
    _embedded: DomainDataset | None = None

    def embedded(self, progress: Progress | None = None) -> DomainDataset:
        """Embedded by the frozen backbone, or by its front, or as loaded, with decoded images kept; made once."""
        if self._embedded is None:
            of, spec = self.samples, self.spec
            x: Samples
            report = (lambda done, total: progress("embedding", done, total)) if progress else None
            if self.frozen is None or spec is None:
                x = of.kind.cached(of.x)  # every epoch reads the same files, so decoded images are kept
            elif spec.stages:
                batch = (spec.batch_size or 1) * int(of.counts("train").any(axis=1).sum())
                how: dict[str, Any] = {"views": spec.views, "mirrored": bool(spec.augment), "budget": spec.budget}
                x = activations(of, self.frozen, spec.stages, **how, least=batch, progress=report)
            else:
                x = embed(of, self.frozen, views=spec.views, progress=report)
            self._embedded = of if x is of.x else of.with_x(x)
        return self._embedded

    def notes(self) -> list[str]:
        """On what is not kept of the embedded samples."""
        x = self._embedded.x if self._embedded else None
        return [note] if isinstance(x, Activations) and (note := x.note) else []

    def forget(self) -> None:
        self._embedded = None

    def facts(self) -> DataFacts:
        """Facts about the data that are stored with the run."""
        return DataFacts.of(self.samples, self.source)


def load_inputs(spec: RunSpec, source: DomainDataset | None = None) -> Inputs:
    """Load and split the data of a resolved spec; `source` saves loading where `data.load_source` was called before."""
    source = data.load_source(spec) if source is None else source
    samples = _sized(spec, protocols.split(source, spec))
    return Inputs(samples, frozen_backbone(spec, input_shape(samples)), spec, source if spec.part else None)


def _sized(spec: RunSpec, dataset: DomainDataset) -> DomainDataset:
    if spec.backbone is None:
        raise ValueError("the spec of the run has no backbone")
    network = backbones.pretrained(spec.backbone)
    if dataset.kind.resized is None:
        if spec.resolution and network is None:
            raise ValueError("--resolution is for image files and pretrained backbones only: remove it")
        return dataset
    size = spec.resolution or (network.size if network else dataset.x.shape[1])
    return dataset.with_x(dataset.kind.resized(dataset.x, size, spec.whole_view))


def frozen_backbone(spec: RunSpec, shape: tuple[int, ...], weights: str | None = None) -> Backbone | None:
    """The backbone whose weights, or those of its front, stay fixed, or None; `weights` override the spec's."""
    if not spec.frozen:
        return None
    if len(shape) == 1:
        raise ValueError(f"{spec.dataset} already contains vectors: remove --tune {spec.tune} and use --backbone mlp")
    assert spec.backbone is not None
    if discovery.own_files(spec.backbone):  # features of a run are computed without asking for trust
        raise ValueError(f"{spec.backbone}: a backbone in a file of yours can be trained with --tune all only")
    given, size = weights or spec.weights, spec.resolution
    backbone = backbones.build(spec.backbone, shape, weights=given, resolution=size, projected=not spec.stages)
    if not backbone.weights:
        raise ValueError(
            f"backbone {spec.backbone!r} has no pretrained weights for --tune {spec.tune}: use efficientnet_lite0"
        )
    return backbone


def input_shape(dataset: DomainDataset) -> tuple[int, ...]:
    """Shape of one sample as a backbone takes it: (3, H, W) or (F,)."""
    return dataset.kind.shape(dataset.x)
