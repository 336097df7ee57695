"""The page that a person with a GPU pastes into an issue, on the CPU, and the estimate in speed.md."""

import pytest
from studies.gpu_check import Host, estimate, page, photos

from crosstail.data import ImageFiles


@pytest.mark.slow
def test_the_page_compares_and_times_on_whatever_device_there_is(tmp_path) -> None:
    text = page(each=1, steps=1, side=32, files=2, names=["erm", "boda+coral", "ndcl"])
    assert "- 3 algorithms, relative difference of terms above 1e-06: none" in text  # of the CPU from itself
    assert "- augmented images: 0.0e+00 apart at most" in text and "- 32: compute" in text and "- bf16: compute" in text
    made = photos(tmp_path / "p", 2)
    assert isinstance(made.x, ImageFiles) and made.num_domains == 6 and len(made) == 24


def test_the_estimate_is_its_arithmetic() -> None:
    found = [row.split(" | ") for row in estimate(Host(on_cpu=0.003, for_device=0.002, colour_bytes=19e6))[2:]]
    assert [row[0].removeprefix("| ") + ": " + row[1] for row in found] == [
        "bytes to the device: 21.7 MB",  # 144 · 224 · 224 · 3
        "copy, behind the step before: 1.1 ms",
        "flip, colour, scale: 1.4 ms",  # 144 · 19e6 / 1.9e12
        "compute, 32: 154 ms",
        "compute, bf16: 58 ms",
        "decode and crop, on the host: 288 ms of one core",
        "cores that keep it busy, 32: 1.9",  # 288 / (153.5 + 1.4)
        "cores that keep it busy, bf16: 4.8",  # 288 / (58.3 + 1.4)
    ]
