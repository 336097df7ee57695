"""Image files as an array: what each format becomes, the view that is evaluated, indexing, checksums, memory."""

import errno
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest
import torch
from PIL import Image, ImageOps
from tests.opened import opened
from torchvision.transforms import v2

from crosstail.data import BrokenImage, ImageFiles, find_broken
from crosstail.data.dataset import DomainDataset
from crosstail.data.images import decode
from crosstail.data.images.decode import base_size, evaluation_view, read_image


def saved(path, image, **options):
    image.save(path, **options)
    return path


def test_rgb_is_exact(tmp_path, picture):
    image = picture()
    for name in ("a.png", "a.bmp", "a.tif", "a.ppm"):
        assert (read_image(saved(tmp_path / name, image)) == np.asarray(image)).all()
    webp = read_image(saved(tmp_path / "a.webp", image, lossless=True))
    assert (webp == np.asarray(image)).all()


def test_from_bytes(tmp_path, picture):
    path = saved(tmp_path / "a.png", picture())
    assert (read_image(path.read_bytes()) == read_image(path)).all()


@pytest.mark.parametrize("mode", ["L", "1", "P"])
def test_grey_black_and_palette(tmp_path, picture, mode):
    image = picture().convert(mode)
    assert (read_image(saved(tmp_path / "a.png", image)) == np.asarray(image.convert("RGB"))).all()


def test_transparency_shows_white(tmp_path, picture):
    image = picture().convert("RGBA")
    image.putalpha(Image.fromarray(np.repeat(np.uint8([[0], [128], [255], [255]]), 50, 1).repeat(10, 0)))
    read = read_image(saved(tmp_path / "a.png", image)).astype(int)
    assert (read[:10] == 255).all()
    half = (np.asarray(picture()).astype(int) + 255) / 2
    assert abs(read[10:20] - half[10:20]).max() <= 1
    assert (read[20:] == np.asarray(picture())[20:]).all()


def test_transparent_palette_and_grey(tmp_path):
    indices = Image.fromarray(np.uint8([[0, 1], [1, 0]]), "P")
    indices.putpalette([255, 0, 0, 0, 0, 255])
    path = saved(tmp_path / "a.png", indices, transparency=0)
    assert read_image(path)[0].tolist() == [[255, 255, 255], [0, 0, 255]]
    grey = Image.merge("LA", (Image.new("L", (2, 2), 40), Image.new("L", (2, 2), 0)))
    assert (read_image(saved(tmp_path / "b.png", grey)) == 255).all()


def test_animation_shows_its_first_frame(tmp_path):
    frames = [Image.new("RGB", (8, 6), colour) for colour in ("red", "lime", "blue")]
    for name in ("a.gif", "a.webp", "a.png", "a.tif"):
        path = saved(tmp_path / name, frames[0], save_all=True, append_images=frames[1:])
        read = read_image(path).astype(int)
        assert read.shape == (6, 8, 3) and abs(read - [255, 0, 0]).max() <= 2


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp", "a.tif"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_sideways_photos_stand_upright(tmp_path, picture, orientation, name):
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path / name, picture(), exif=exif)
    with Image.open(path) as image:
        expected = np.asarray(ImageOps.exif_transpose(image))
    assert (read_image(path) == expected).all()


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("compression", ["raw", "tiff_lzw"])
def test_a_tiff_is_turned_as_its_tag_says(tmp_path, turn, compression):
    stored = Image.new("RGB", (3, 2))
    stored.putdata([(10 * i, 0, 0) for i in range(6)])
    path = saved(tmp_path / "a.tif", stored, tiffinfo={0x0112: turn}, compression=compression)
    rows = np.arange(0, 60, 10).reshape(2, 3)  # where the tag says that row 0 and column 0 are:
    upright = {
        1: rows,  # top, left
        2: rows[:, ::-1],  # top, right
        3: rows[::-1, ::-1],  # bottom, right
        4: rows[::-1],  # bottom, left
        5: rows.T,  # left, top
        6: rows[::-1].T,  # right, top
        7: rows[::-1, ::-1].T,  # right, bottom
        8: rows[:, ::-1].T,  # left, bottom
    }[turn]
    assert read_image(path)[..., 0].tolist() == upright.tolist()


def test_a_photo_is_reduced_while_it_is_decoded(tmp_path, picture):
    path = saved(tmp_path / "a.jpg", picture(1000, 1300))
    reduced = read_image(path, at_least=256)
    assert reduced.shape == (500, 650, 3)
    whole = np.asarray(Image.open(path).resize((650, 500), Image.Resampling.BOX)).astype(int)
    assert abs(reduced - whole).mean() < 2
    assert read_image(saved(tmp_path / "a.png", picture(1000, 1300)), at_least=256).shape == (334, 434, 3)
    assert read_image(saved(tmp_path / "b.png", picture(300, 200)), at_least=256).shape == (300, 200, 3)


def test_of_a_long_image_the_middle_is_kept(tmp_path, picture):
    image = picture(30, 200)
    path = saved(tmp_path / "a.png", image)
    assert (read_image(path, at_least=20) == np.asarray(image)[:, 70:130]).all()
    assert read_image(path).shape == (30, 200, 3)


def test_evaluation_view_is_the_whole_central_square(tmp_path, picture):
    image = picture(320, 480)
    expected = v2.Compose([v2.CenterCrop(320), v2.Resize(224, antialias=True)])(image)
    view = evaluation_view(np.asarray(image), 224)
    assert view.shape == (224, 224, 3) and view.dtype == np.uint8
    assert abs(view.astype(int) - np.asarray(expected)).mean() < 1


@pytest.mark.parametrize(("resolution", "size"), [(224, 256), (32, 37), (1, 2), (112, 128)])
def test_base_has_room_for_the_view(resolution, size):
    assert base_size(resolution) == size


@pytest.fixture
def files(photos):
    root = photos()
    paths = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.jpg"))
    return ImageFiles(root, paths, resolution=32)


def test_like_an_array(files):
    assert (len(files), files.shape, files.ndim, files.dtype) == (24, (24, 32, 32, 3), 4, np.uint8)
    whole = files[:]
    assert whole.shape == files.shape and whole.dtype == np.uint8
    rows = np.array([7, 3, 3])
    assert (files[rows] == whole[rows]).all() and (files[[7, 3]] == whole[[7, 3]]).all()
    mask = np.arange(24) % 5 == 0
    assert (files[mask] == whole[mask]).all() and (files[2:9:3] == whole[2:9:3]).all()
    assert (files[4] == whole[4]).all() and (files[np.int64(-1)] == whole[-1]).all()
    assert files[rows[:0]].shape == (0, 32, 32, 3)
    with pytest.raises(IndexError):
        files[np.array([24])]


def test_one_view_for_any_number_of_threads(files):
    other = ImageFiles(files.root, files.paths(), resolution=32, workers=5)
    assert (files[:] == other[:]).all()


def test_take(files):
    part = files.take(np.array([5, 1]))
    assert part.paths() == [files.paths()[5], files.paths()[1]] and len(part) == 2
    assert (part[:] == files[np.array([5, 1])]).all()
    again = part.take(np.array([False, True]))
    assert again.paths(0) == [files.paths()[1]]
    assert files.at_resolution(16)[:2].shape == (2, 16, 16, 3)


def test_in_a_data_set(files):
    n = len(files)
    y, domain = np.arange(n) % 3, np.arange(n) // 12
    dataset = DomainDataset("d", files, y, domain, np.full(n, "train"), ("a", "b", "c"), ("p", "q"))
    kept = dataset.keep(dataset.domain == 1)
    assert dataset.kind.picture and isinstance(kept.x, ImageFiles) and kept.x.paths() == files.paths(slice(12, None))
    assert kept.checksum != dataset.checksum
    assert dataset.with_x(files.at_resolution(16)).checksum == dataset.checksum  # the same files


def test_checksum_is_that_of_a_copy(files, tmp_path):
    shutil.copytree(files.root, tmp_path / "copy")
    copy = ImageFiles(tmp_path / "copy", files.paths(), resolution=32)
    assert copy.checksum == files.checksum and copy.fingerprint() != files.fingerprint()
    assert files.take(slice(2, 5)).checksum == copy.take([2, 3, 4]).checksum != files.checksum
    sliced = ImageFiles(files.root, pa.array(["nothing", *files.paths()]).slice(1), resolution=32)
    assert sliced.checksum == files.checksum
    with (copy.root / copy.paths()[3]).open("ab") as file:
        file.write(b"more")
    assert ImageFiles(copy.root, copy.paths(), resolution=32).checksum != files.checksum
    assert files.take([]).checksum == copy.take([]).checksum


def test_fingerprint_sees_a_new_time(files):
    before = files.fingerprint()
    os.utime(files.root / files.paths()[0], (1, 1))
    assert files.fingerprint() != before


def test_pickle(files):
    copy = pickle.loads(pickle.dumps(files.take([3, 4])))
    assert (copy[:] == files[3:5]).all()


def test_resolution_of_nothing(tmp_path):
    with pytest.raises(ValueError, match="resolution is 0, expected 1 or more pixels"):
        ImageFiles(tmp_path, [], resolution=0)


def test_a_broken_file_is_named_by_its_relative_path(files):
    path = files.paths()[6]
    (files.root / path).write_bytes((files.root / path).read_bytes()[:400])
    with pytest.raises(BrokenImage) as error:
        files[:]
    assert error.value.path == path and str(error.value).startswith(f"{path}: cannot be decoded: ")
    assert "truncated" in str(error.value).lower() and "--skip-broken" in str(error.value)


def test_check_finds_what_cannot_be_decoded_and_remembers_it(files):
    paths = files.paths()
    (files.root / paths[2]).write_bytes(b"")
    (files.root / paths[9]).write_text("no image")
    (files.root / paths[20]).unlink()
    seen = []
    found = find_broken(files, lambda what, done, total: seen.append((done, total)))
    assert [path for path, _ in found] == [paths[2], paths[9], paths[20]]
    assert all(named in problem for named, (_, problem) in zip(("empty", "JPEG", "no such file"), found, strict=True))
    assert seen == [(24, 24)]
    with opened() as read:
        assert find_broken(files) == found
    assert not [file for file in read if file.is_relative_to(files.root)]
    shutil.copy(files.root / paths[0], files.root / paths[2])
    assert [path for path, _ in find_broken(files)] == [paths[9], paths[20]]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), OSError(errno.EMFILE, "open files"), MemoryError()])
def test_a_passing_error_does_not_make_an_image_broken(files, monkeypatch, error):
    path, opened = files.paths()[3], Path.open

    def fail(self, *args, **kwargs):
        if self.as_posix().endswith(path):
            raise error
        return opened(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", fail)
    for read in (lambda: files[3], lambda: find_broken(files)):
        with pytest.raises(type(error), match=path):
            read()
    monkeypatch.setattr(Path, "open", opened)
    assert find_broken(files) == []


def test_real_photos_are_whole(shared_data):
    root = shared_data / "office-caltech10/dslr"
    files = ImageFiles(root, sorted(p.relative_to(root).as_posix() for p in root.rglob("*.jpg"))[:60])
    assert find_broken(files) == []
    assert files[:3].shape == (3, 224, 224, 3) and files[:3].std() > 20


def test_half_a_million_paths_take_little_memory():
    """DomainNet has 586,575 images; its index and labels may take 200 MB."""
    n, per_pair = 600_000, 290
    process = psutil.Process()
    before, arrow = process.memory_info().rss, pa.total_allocated_bytes()
    pairs = [
        pa.array([f"infograph/{c % 345}_the_name/infograph_{c:03d}_{i:06d}.jpg" for i in range(per_pair)])
        for c in range(-(-n // per_pair))
    ]
    files = ImageFiles("data", pa.concat_arrays(pairs), sizes=np.arange(len(pairs) * per_pair))
    del pairs
    count = len(files)
    y, domain = np.arange(count) % 345, np.arange(count) % 6
    names = tuple(map(str, range(345)))
    dataset = DomainDataset("net", files, y, domain, np.full(count, "train", "<U5"), names, tuple("abcdef"))
    assert dataset.counts("train").sum() == count >= n and len(files.checksum) == 64
    assert process.memory_info().rss - before < 200e6
    assert pa.total_allocated_bytes() - arrow < 60e6


def test_views_are_close_to_those_of_the_whole_photo(tmp_path, picture):
    """Reducing first and cutting then shows what torchvision shows of the full photo."""
    path = saved(tmp_path / "a.jpg", picture(900, 1200))
    with Image.open(path) as image:
        whole = v2.Compose([v2.Resize(224, antialias=True), v2.CenterCrop(224), v2.PILToTensor()])(image)
    view = ImageFiles(tmp_path, ["a.jpg"])[0]
    assert (torch.from_numpy(view).permute(2, 0, 1).float() - whole.float()).abs().mean() < 1


def test_heic_without_its_decoder_is_refused_with_the_remedy(tmp_path, monkeypatch):
    (tmp_path / "phone.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    monkeypatch.setattr(decode, "FORMATS", tuple(name for name in decode.FORMATS if name != "HEIF"))
    with pytest.raises(BrokenImage, match=r"phone\.HEIC: .*pip install pillow-heif"):
        read_image(tmp_path / "phone.HEIC")


def test_heic(tmp_path, picture):
    pytest.importorskip("pillow_heif", reason="not installed: pip install pillow-heif")
    picture().save(tmp_path / "phone.heic", format="HEIF", quality=90)
    assert abs(read_image(tmp_path / "phone.heic").astype(int) - np.asarray(picture())).mean() < 5
