"""The data of a run: loaded once, split by its protocol, and embedded where the backbone is frozen."""

from dataclasses import dataclass

from crosstail import backbones, data, discovery
from crosstail.backbones import Backbone
from crosstail.data import DomainDataset, protocols
from crosstail.progress import Progress
from crosstail.training.data_facts import DataFacts
from crosstail.training.embedding import embed
from crosstail.training.spec import RunSpec


@dataclass
class Inputs:
    """The data of a run as loaded and split; `embedded` are the same samples as the trained part sees them."""

    samples: DomainDataset
    frozen: Backbone | None = None
    views: int = 0
    source: DomainDataset | None = None  # before the split, if it is for one fold or unseen domain
    _embedded: DomainDataset | None = None

    def embedded(self, progress: Progress | None = None) -> DomainDataset:
        """Embedded by the frozen backbone, or as loaded, with decoded images kept; made once."""
        if self._embedded is None:
            of = self.samples
            if self.frozen is not None:
                report = (lambda done, total: progress("embedding", done, total)) if progress else None
                x = embed(of, self.frozen, views=self.views, progress=report)
            else:
                x = of.kind.cached(of.x)  # every epoch reads the same files, so decoded images are kept
            self._embedded = of if x is of.x else of.with_x(x)
        return self._embedded

    def forget(self) -> None:
        self._embedded = None

    def facts(self) -> DataFacts:
        """Facts about the data that are stored with the run."""
        return DataFacts.of(self.samples, self.source)


def load_inputs(spec: RunSpec, source: DomainDataset | None = None) -> Inputs:
    """Load and split the data of a resolved spec; `source` saves loading where `data.load_source` was called before."""
    source = data.load_source(spec) if source is None else source
    samples = _sized(spec, protocols.split(source, spec))
    return Inputs(samples, frozen_backbone(spec, input_shape(samples)), spec.views, source if spec.part else None)


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
    """The backbone that embeds the inputs, or None if there is none; `weights` override the spec's."""
    if not spec.frozen:
        if spec.views or spec.head:
            raise ValueError("--head and --views need --tune none or last (on vectors: --backbone identity)")
        return None
    if spec.stages:
        raise ValueError("--tune last is not available yet: use --tune none or all")
    if len(shape) == 1:
        raise ValueError(f"{spec.dataset} already contains vectors: remove --tune {spec.tune} and use --backbone mlp")
    assert spec.backbone is not None
    if discovery.own_files(spec.backbone):  # features of a run are computed without asking for trust
        raise ValueError(f"{spec.backbone}: a backbone in a file of yours can be trained with --tune all only")
    backbone = backbones.build(spec.backbone, shape, weights=weights or spec.weights, resolution=spec.resolution)
    if not backbone.weights:
        raise ValueError(
            f"backbone {spec.backbone!r} has no pretrained weights for --tune {spec.tune}: use efficientnet_lite0"
        )
    return backbone


def input_shape(dataset: DomainDataset) -> tuple[int, ...]:
    """Shape of one sample as a backbone takes it: (3, H, W) or (F,)."""
    return dataset.kind.shape(dataset.x)
