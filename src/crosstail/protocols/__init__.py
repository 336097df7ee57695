"""Which part of the data is trained on, selected on and tested on: one file per protocol, with one `split`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from crosstail import data, discovery
from crosstail.data import DomainDataset
from crosstail.training import RunSpec, fit
from crosstail.training import run as training
from crosstail.training.devices import Devices
from crosstail.training.loop import Progress
from crosstail.training.run import ONE, Inputs, Load, prepare_as_split


def prepare(spec: RunSpec) -> DomainDataset:
    """The data of a run, split as its protocol says and thinned out as its label profiles say.

    A data sheet's own profiles make the long tails of `mdlt`; under another protocol only profiles that the run
    names are applied, to its training part.
    """
    protocol = discovery.find("crosstail.protocols", spec.protocol, "protocol")
    if spec.protocol == "mdlt":
        return protocol.split(prepare_as_split(spec), spec.unseen, spec.data_seed)
    dataset = prepare_as_split(replace(spec, protocol="mdlt", labels=()))
    return data.apply_labels(protocol.split(dataset, spec.unseen, spec.data_seed), spec.labels, spec.data_seed)


def folds(spec: RunSpec) -> list[RunSpec]:
    """The runs that a spec stands for: itself, or one for each domain that its protocol leaves out in turn."""
    if spec.protocol == "mdlt" or spec.unseen is not None:
        return [spec]
    domains = prepare_as_split(replace(spec, protocol="mdlt")).domains
    return [replace(spec, unseen=domain) for domain in domains]


def load(spec: RunSpec, progress: Progress | None = None) -> Inputs:
    """The data of a run as its trained part sees them, and what its result says about them."""
    return training.load(spec, progress, prepare)


def run(
    spec: RunSpec,
    out: Path,
    progress: Progress | None = None,
    load: Load = load,
    devices: Devices = ONE,
    trace: bool = False,
) -> dict[str, Any]:
    """Run a spec in a folder and return its result; finished runs return at once, unfinished ones go on."""
    return fit(spec, out, progress, load, devices, trace)


def inputs(spec: RunSpec, progress: Progress | None = None) -> DomainDataset:
    """The data of a run as its trained part sees it."""
    return load(spec, progress).dataset
