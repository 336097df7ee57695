"""Check and time a GPU in about ten minutes, and print one page to paste into an issue: `make gpu-check`.

python -m studies.gpu_check              the page, on whatever device there is
python -m studies.gpu_check --estimate   write "What a GPU would see" in docs/results/speed.md, measured on this machine

The numbers on the device are compared with those on the CPU: three updates of every algorithm, the augmentation, and a
whole run. Then a step of ResNet-50 at 224 pixels is timed in its parts: what the host does, the copy, and the compute.
"""

import argparse
import platform
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from studies.speed_page import DOCS, replaced
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import crosstail
from crosstail import algorithms, backbones, discovery, machine
from crosstail.ahead import Courier
from crosstail.algorithms import Algorithm, Task
from crosstail.data import Augment, DomainBatch, DomainBatches, DomainDataset, load_folder
from crosstail.data.images.on_device import recoloured
from crosstail.training import RunSpec
from crosstail.training.devices import ONE, Devices, OneDevice, fuse
from crosstail.training.fit import train_run

DOMAINS, EACH, SIDE = 6, 24, 224  # a step of DomainBed's on DomainNet, with 24 samples per domain
PUBLISHED = {"32": 938.0, "bf16": 2470.0}  # images per second, see A100
A100 = (
    "ResNet-50 on one A100 of 80 GB with TF32, and with mixed precision, as NVIDIA publishes it "
    "(DeepLearningExamples, ResNet50 v1.5 for PyTorch)"
)
LINK, PAGEABLE, MEMORY = 20e9, 6e9, 1.9e12  # bytes per second: PCIe 4 from pinned and pageable memory, HBM2e
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Host:
    """What this machine's cores do for one image of a batch, in seconds of processor time."""

    on_cpu: float  # decode, crop, recolour, scale: all of it, as for training on the CPU
    for_device: float  # decode and crop to bytes; the rest is the device's
    colour_bytes: float  # read and written on the device to recolour and scale one image


def photos(folder: Path, each: int) -> DomainDataset:
    """JPEG files of 500 × 375 pixels, about as smooth as photos, in a folder of a user."""
    rng = np.random.default_rng(0)
    for d in range(DOMAINS):
        for c in range(2):
            place = folder / f"domain{d}" / f"class{c}"
            place.mkdir(parents=True)
            for i in range(each):
                coarse = Image.fromarray(rng.integers(0, 256, (47, 62, 3), dtype=np.uint8))
                coarse.resize((500, 375), Image.Resampling.BICUBIC).save(place / f"{i}.jpg", quality=90)
    return load_folder(folder)


def host(dataset: DomainDataset, steps: int) -> Host:
    """Processor time per image of a stream of batches; torch's device `meta` takes bytes and does nothing."""

    def per_image(device: str) -> float:
        batches = DomainBatches(dataset, batch_size=4, augment=Augment(), workers=1, device=torch.device(device))
        for _ in batches.stream(0, 2):
            pass
        began = time.process_time()
        for _ in batches.stream(0, steps):
            pass
        return (time.process_time() - began) / (steps * 4 * DOMAINS)

    return Host(per_image("cpu"), per_image("meta"), _colour_bytes())


class _Traffic(TorchDispatchMode):
    """Counts the bytes that operations read and write, views apart."""

    moved = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if not func.is_view:
            self.moved += sum(t.nbytes for t in tree_leaves((args, kwargs, found)) if isinstance(t, Tensor))
        return found


def _colour_bytes() -> float:
    augment, n = Augment(), 4
    draws = augment.draw(0, n)
    drawn = [torch.from_numpy(part) for part in (draws.flip, draws.factors, draws.grey)]
    with _Traffic() as traffic:
        images = torch.zeros(n, SIDE, SIDE, 3, dtype=torch.uint8)
        recoloured(images, *drawn, order=draws.order.tolist(), jitter=augment.jitter)
    return traffic.moved / n


def estimate(of: Host) -> list[str]:
    """A step of ResNet-50 on one A100, from the published speed of the network and the measured work of the host."""
    images, pixels = DOMAINS * EACH, DOMAINS * EACH * SIDE * SIDE * 3
    compute = {precision: images / speed for precision, speed in PUBLISHED.items()}
    colour = images * of.colour_bytes / MEMORY
    rows = [
        (
            "bytes to the device",
            f"{pixels / 1e6:.1f} MB",
            f"{images} × {SIDE}² × 3; as float32 {4 * pixels / 1e6:.1f} MB",
        ),
        (
            "copy, behind the step before",
            f"{1e3 * pixels / LINK:.1f} ms",
            f"at {LINK / 1e9:.0f} GB/s from pinned memory; float32 from pageable memory, which is not hidden: "
            f"{4e3 * pixels / PAGEABLE:.0f} ms at {PAGEABLE / 1e9:.0f} GB/s",
        ),
        (
            "flip, colour, scale",
            f"{1e3 * colour:.1f} ms",
            f"{of.colour_bytes / 1e6:.0f} MB per image read and written (counted) at {MEMORY / 1e12:.1f} TB/s",
        ),
        *(
            (f"compute, {p}", f"{1e3 * s:.0f} ms", f"{images} / {PUBLISHED[p]:,.0f} images/s")
            for p, s in compute.items()
        ),
        (
            "decode and crop, on the host",
            f"{1e3 * images * of.for_device:.0f} ms of one core",
            f"{images} × {1e3 * of.for_device:.2f} ms (measured; with colour on the host {1e3 * of.on_cpu:.2f} ms)",
        ),
    ]
    for p, seconds in compute.items():
        cores = images * of.for_device / (seconds + colour)
        hours = 5001 * (seconds + colour) / 3600
        rows.append(
            (f"cores that keep it busy, {p}", f"{cores:.1f}", f"5,001 steps then take {60 * hours:.0f} minutes")
        )
    return ["| per step | estimate | arithmetic |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]


def updates(name: str, device: torch.device) -> tuple[list[dict[str, float]], int]:
    """The terms of three updates of an algorithm in double precision, and the most reads that a step makes."""
    torch.manual_seed(0)
    task = Task(torch.tensor([[40, 3, 9], [1, 25, 4], [7, 2, 30]]))
    algorithm = algorithms.build(name, backbones.build("mlp", (4,), 5), task).double().train().to(device)
    algorithm.steps, optimizers = 3, algorithm.optimizers()
    for optimizer in optimizers:
        fuse(optimizer.param_groups, device)
    generator, found, reads = torch.Generator().manual_seed(1), [], []
    for algorithm.step in range(3):
        x = 2 * torch.randn(12, 4, generator=generator, dtype=torch.float64)
        y = torch.randint(3, (12,), generator=generator)
        batch = DomainBatch(x, y, torch.arange(3).repeat_interleave(4)).to(device)
        torch.manual_seed(5)
        with _counted(device, reads):
            terms = algorithm.update(batch, optimizers, Tensor.backward)
        found.append({term: value.item() for term, value in terms.items()})
    return found, max(reads)


class _counted(warnings.catch_warnings):
    """Appends how often the host waited for a GPU inside the context."""

    def __init__(self, device: torch.device, into: list[int]) -> None:
        super().__init__(record=True)
        self.cuda, self.into = device.type == "cuda", into

    def __enter__(self) -> Any:
        self.seen = super().__enter__()
        warnings.simplefilter("always")
        if self.cuda:
            torch.cuda.set_sync_debug_mode("warn")
        return self.seen

    def __exit__(self, *error: Any) -> None:
        if self.cuda:
            torch.cuda.set_sync_debug_mode("default")
        self.into.append(sum("synchroniz" in str(each.message) for each in self.seen or ()))
        super().__exit__(*error)


def numbers(device: torch.device, names: list[str], steps: int) -> Iterator[str]:
    """How far algorithms, the augmentation and a run on the device are from those on the CPU."""
    far, reading = [], []
    for name in names:
        expected, found = updates(name, torch.device("cpu"))[0], updates(name, device)
        pairs = [(a[term], b[term]) for a, b in zip(expected, found[0], strict=True) for term in a]
        worst = max(abs(b - a) / max(abs(a), 1e-3) for a, b in pairs)
        far += [f"{name} {worst:.1e}"] if not worst <= TOLERANCE else []
        reading += [f"{name} {found[1]}"] if found[1] else []
    yield f"- {len(names)} algorithms, relative difference of terms above {TOLERANCE:g}: {', '.join(far) or 'none'}"
    yield f"- waits for the device in a step: {', '.join(reading) or 'none'}"
    augment = Augment()
    draws, images = augment.draw(0, 8), np.random.default_rng(0).integers(0, 256, (8, 64, 64, 3), dtype=np.uint8)
    drawn = [torch.from_numpy(part) for part in (draws.flip, draws.factors, draws.grey)]
    how: dict[str, Any] = {"order": draws.order.tolist(), "jitter": augment.jitter}
    first, second = (
        recoloured(torch.from_numpy(images).to(place), *(part.to(place) for part in drawn), **how).cpu()
        for place in (torch.device("cpu"), device)
    )
    yield f"- augmented images: {float((first - second).abs().max()):.1e} apart at most, of 1"
    values = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("cpu", device.type):
            spec = RunSpec(
                dataset="digits", algorithm="boda", second_stage="retrain", backbone="small_cnn", width=16, steps=steps
            )
            run = train_run(spec, Path(folder) / f"{kind}{len(values)}", devices=Devices(kind))  # type: ignore[arg-type]
            values.append(100 * (run.result.test.pair_average or 0.0))
    averages = f"pair average {values[0]:.1f} on the CPU, {values[1]:.1f} on the device"
    yield f"- `boda:retrain` on digits, {steps} steps: {averages}"


def timed(device: torch.device, function: Callable[[], object], times: int) -> float:
    """Seconds of one call, after a few that warm up, all work of the device included."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    for _ in range(3):
        function()
    wait()
    began = time.perf_counter()
    for _ in range(times):
        function()
    wait()
    return (time.perf_counter() - began) / times


def speed(device: torch.device, dataset: DomainDataset, each: int, steps: int, side: int) -> Iterator[str]:
    """A step of ERM on ResNet-50 in its parts, and from files to the updated weights."""
    whole = torch.zeros(DOMAINS * each, side, side, 3, dtype=torch.uint8)
    courier = Courier(device)
    sent = timed(device, lambda: courier.send([whole])(), steps)
    plain = timed(device, lambda: (whole.float().permute(0, 3, 1, 2) / 255).to(device), steps)
    yield f"- copy of a batch of {len(whole)}: {1e3 * sent:.1f} ms as pinned bytes, {1e3 * plain:.1f} ms as float32"
    for precision in PUBLISHED:
        fabric, batches = (
            OneDevice(device.type, precision),
            DomainBatches(dataset, batch_size=each, augment=Augment(resolution=side), device=device),
        )
        algorithm = _resnet(dataset, side).to(device, memory_format=torch.channels_last)
        optimizers = algorithm.optimizers()
        for optimizer in optimizers:
            fuse(optimizer.param_groups, device)

        def update(batch: DomainBatch) -> object:
            with fabric.autocast():  # noqa: B023 - called in this turn only
                return algorithm.update(batch, optimizers, Tensor.backward)  # noqa: B023

        batch = batches.at(0)
        compute = timed(device, lambda: update(batch), steps)  # noqa: B023
        stream = batches.stream(0, 10**6)
        loop = timed(device, lambda: update(next(stream)), steps)  # noqa: B023
        stream.close()  # type: ignore[attr-defined]
        rate = DOMAINS * each / loop
        yield (
            f"- {precision}: compute {1e3 * compute:.0f} ms, from JPEG files {1e3 * loop:.0f} ms "
            f"({rate:,.0f} images/s); the device is busy {min(1.0, compute / loop):.0%} of the time"
        )


def _resnet(dataset: DomainDataset, side: int) -> Algorithm:
    network = backbones.build("resnet50", (3, side, side), weights=backbones.RANDOM)
    return algorithms.build("erm", network, Task(torch.from_numpy(dataset.counts("train")))).train()


def page(
    *, each: int = EACH, steps: int = 20, side: int = SIDE, files: int = 48, names: list[str] | None = None
) -> str:
    """The page, as Markdown."""
    device = torch.device(ONE.kind)
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else f"no CUDA device; on {device.type}"
    if device.type != "cuda":
        each, steps = min(each, 2), min(steps, 3)
    began, python = time.perf_counter(), platform.python_version()
    lines = [f"# GPU check: {gpu}", ""]
    lines += [f"crosstail {crosstail.__version__}, torch {torch.__version__}, Python {python}, {machine.cores()} cores"]
    names = [*discovery.names("crosstail.algorithms"), "boda+coral", "boda@reference"] if names is None else names
    lines += ["", "## Numbers", "", *numbers(device, names, 10 * steps), "", "## Speed", ""]
    with tempfile.TemporaryDirectory() as folder:
        dataset = photos(Path(folder) / "photos", files)
        of = host(dataset, steps)
        lines += [f"- host: {1e3 * of.for_device:.2f} ms of a core per image, {1e3 * of.on_cpu:.2f} ms with colour"]
        lines += [*speed(device, dataset, each, steps, side), "", f"{time.perf_counter() - began:.0f} s in all."]
    return "\n".join(lines)


def main() -> None:
    """Print the page, or write the estimate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--estimate", action="store_true", help="write the estimate for one A100 in speed.md")
    if not parser.parse_args().estimate:
        print(page())
        return
    with tempfile.TemporaryDirectory() as folder:
        lines = estimate(host(photos(Path(folder) / "photos", 48), 20))
    file = DOCS / "results" / "speed.md"
    file.write_text(replaced(file.read_text(encoding="utf-8"), "gpu", lines), encoding="utf-8")


if __name__ == "__main__":
    main()
