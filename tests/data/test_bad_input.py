"""Flaws seen in real data: each is handled and reported, or refused in at most two lines."""

import struct
import zlib

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from crosstail.data import BrokenImage, DomainBatches, ImageFiles, load, read_image


def refused(error, *parts):
    """The message names these, in at most two lines."""
    message = str(error.value)
    assert len(message.splitlines()) <= 2 and len(message) < 500, message
    for part in parts:
        assert part in message, message


# Images


def truncated_jpeg(path):
    noise().save(path, "JPEG")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def noise():
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (200, 200, 3), dtype=np.uint8))


def truncated_png(path):
    noise().save(path, "PNG")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scrambled_png(path):
    noise().save(path, "PNG")
    content = bytearray(path.read_bytes())
    content[41:71] = b"\xff" * 30  # the start of the compressed pixels
    path.write_bytes(content)


def png_with_a_wrong_bit(path):
    """Pillow decodes it without a word."""
    noise().save(path, "PNG")
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)


def header_of_a_png(width, height):
    def write(path):
        chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        body = struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
        end = b"\x00\x00\x00\x0cIDAT" + zlib.compress(b"")[:8].ljust(12, b"\0") + b"\0" * 4
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + body + end)

    return write


BROKEN = {
    "cut short, JPEG": (truncated_jpeg, "cannot be decoded: ", "truncated"),
    "cut short, PNG": (truncated_png, "cannot be decoded: Truncated", ""),
    "scrambled": (scrambled_png, "cannot be decoded: ", ""),
    "a wrong bit": (png_with_a_wrong_bit, "cannot be decoded: broken PNG file (bad header checksum", ""),
    "empty": (lambda path: path.write_bytes(b""), "is empty", ""),
    "text": (lambda path: path.write_text("hello"), "JPEG, PNG, GIF", ""),
    "a page": (lambda path: path.write_text("<html>404</html>"), "JPEG, PNG", ""),
    "PostScript": (lambda path: path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"), "JPEG, PNG", ""),
    "floats": (
        lambda path: Image.fromarray(np.ones((8, 8), np.float32)).save(path, "TIFF"),
        "has floating-point pixels, expected 8-bit",
        "",
    ),
    "32 bits": (
        lambda path: Image.fromarray(np.full((8, 8), 1 << 20, np.int32)).save(path, "TIFF"),
        "has 32-bit pixels, expected 8-bit",
        "",
    ),
    "225 megapixels": (header_of_a_png(15_000, 15_000), "expected at most 200 megapixels", ""),
    "900 megapixels": (header_of_a_png(30_000, 30_000), "expected at most 200 megapixels", ""),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_image_is_refused_by_name_or_skipped_by_name(photos, what):
    root = photos(n=4)
    spoil, *parts = BROKEN[what]
    spoil(root / "photo/dog/2.jpg")
    dataset = load(root)
    with pytest.raises(BrokenImage) as error:
        dataset.x[:]
    refused(error, "photo/dog/2.jpg: ", *parts, "--skip-broken")
    split = str(dataset.split[dataset.x.paths().index("photo/dog/2.jpg")])
    with pytest.raises(BrokenImage):
        list(DomainBatches(dataset.keep(dataset.y == 1), split=split, batch_size=8).stream(0, 2))

    kept = load(root, skip_broken=True)
    assert len(kept) == 23 and "photo/dog/2.jpg" not in kept.x.paths()
    (note,) = [note for note in kept.notes if "broken" in note]
    assert note.startswith("left out, as it is broken: photo/dog/2.jpg: ")
    assert kept.x[:2].shape == (2, 224, 224, 3)


def test_all_images_broken(photos):
    root = photos(n=1)
    for path in root.rglob("*.jpg"):
        path.write_bytes(b"")
    with pytest.raises(ValueError) as error:
        load(root, skip_broken=True)
    refused(error, "none of its 6 images can be read; the first, photo/cat/0.jpg, is empty")


def test_an_animated_gif_shows_its_first_frame(photos):
    root = photos(n=1)
    frames = [Image.new("RGB", (30, 30), colour) for colour in ("red", "blue")]
    frames[0].save(root / "photo/cat/0.gif", save_all=True, append_images=frames[1:])
    dataset = load(root)
    (row,) = (i for i, path in enumerate(dataset.x.paths()) if path.endswith("gif"))
    assert abs(dataset.x[row].astype(int) - [255, 0, 0]).max() <= 2


def test_cmyk(tmp_path):
    path = tmp_path / "a.jpg"
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(path)
    assert abs(read_image(path).astype(int) - [255, 0, 0]).max() <= 4


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_16_bits_are_scaled(tmp_path, name):
    ramp = np.linspace(0, 65535, 256).round().astype(np.uint16).reshape(16, 16)
    Image.fromarray(ramp).save(tmp_path / name)
    assert (read_image(tmp_path / name)[..., 1].ravel() == np.arange(256)).all()


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 1), (2, 3)])
def test_one_pixel(tmp_path, size):
    Image.new("RGB", size, (10, 20, 30)).save(tmp_path / "a.png")
    view = ImageFiles(tmp_path, ["a.png"])[0]
    assert view.shape == (224, 224, 3) and (view == [10, 20, 30]).all()


@pytest.mark.parametrize("name", ["a.png", "a.jpg"])
def test_a_hundred_megapixels(tmp_path, name):
    Image.new("L", (10_000, 10_000), 77).save(tmp_path / name)
    files = ImageFiles(tmp_path, [name])
    assert files.base(0).shape[0] < 512 and abs(files[0].astype(int) - 77).max() <= 1


def test_names_that_are_not_ascii(photos, tmp_path):
    root = photos(n=4, domains=("東京", "Zürich 2"), classes=("naïve", "кот", "🙂"), root="Bilder é")
    dataset = load(root)
    assert dataset.name == "Bilder é" and dataset.domains == ("Zürich 2", "東京") and "🙂" in dataset.classes
    assert dataset.x[:3].shape == (3, 224, 224, 3)
    rows = [(p.parts[-3], p.parts[-2], p.relative_to(tmp_path).as_posix(), "train") for p in root.rglob("*.jpg")]
    for name in ("m.csv", "m.parquet"):
        table = pd.DataFrame(rows, columns=["domain", "label", "path", "split"])
        table.to_csv(tmp_path / name, index=False) if name == "m.csv" else table.to_parquet(tmp_path / name)
        listed = load(tmp_path / name)
        assert listed.domains == dataset.domains and listed.classes == dataset.classes
        assert listed.x[:1].shape == (1, 224, 224, 3)


# Classes and domains


def test_an_empty_class(photos):
    root = photos(n=4)
    for domain in ("photo", "sketch"):
        (root / domain / "yak").mkdir()
    (root / "clipart").mkdir()
    dataset = load(root)
    assert dataset.classes == ("cat", "dog", "emu") and dataset.domains == ("photo", "sketch")
    assert "1 class (yak) without images in any domain, left out" in dataset.notes
    assert "1 domain (clipart) without images, left out" in dataset.notes


def test_a_class_that_one_domain_lacks(photos):
    root = photos(n=8)
    for path in (root / "sketch/emu").iterdir():
        path.unlink()
    dataset = load(root)
    assert dataset.counts("train")[1].tolist()[2] == 0 and dataset.counts("train").sum(axis=0)[2] > 0
    assert "1 folder (sketch/emu) without images" in dataset.notes


@pytest.fixture
def manifest(tmp_path, picture):
    def write(text, name="m.csv", files="abcdef"):
        for file in files:
            picture(9, 9, seed=ord(file)).save(tmp_path / f"{file}.png")
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_class_that_is_only_in_test(manifest):
    rows = "p,x,a.png,train\np,y,b.png,train\nq,x,c.png,train\nq,y,d.png,train\np,z,e.png,test\n"
    dataset = load(manifest("domain,label,path,split\n" + rows))
    assert dataset.classes == ("x", "y", "z") and dataset.counts("test").sum() == 1
    cannot_be_learned, not_tested = dataset.notes
    assert cannot_be_learned.endswith(": z") and not_tested.endswith(": p / x, p / y")


def test_a_domain_with_one_class(manifest):
    rows = "p,x,a.png,train\np,y,b.png,train\nq,x,c.png,train\n"
    dataset = load(manifest("domain,label,path,split\n" + rows))
    assert dataset.notes == ("training samples of one class only in the domain q",)


def test_a_domain_without_training_samples(manifest):
    rows = "p,x,a.png,train\np,y,b.png,train\nq,x,c.png,test\n"
    assert load(manifest("domain,label,path,split\n" + rows)).notes == ("no training samples in the domain q",)
    only_test = load(manifest("domain,label,path,split\np,x,a.png,test\nq,y,b.png,test\n"))
    assert only_test.notes == ("there are no training samples: it can be evaluated on, not trained on",)


def test_one_domain(photos):
    dataset = load(photos(n=4, domains=("photo",)))
    assert dataset.num_domains == 1 and dataset.notes[0].startswith("there is one domain (photo): ")
    assert next(DomainBatches(dataset, batch_size=3).stream(0, 1)).x.shape == (3, 3, 224, 224)


def test_one_class(photos, tmp_path):
    with pytest.raises(ValueError) as error:
        load(photos(n=4, classes=("cat",)))
    refused(error, "photos: has one class (cat)")
    np.savez(tmp_path / "a.npz", x=np.zeros((9, 2), np.float32), y=np.zeros(9, int), domain=np.arange(9) % 2)
    with pytest.raises(ValueError) as error:
        load(tmp_path / "a.npz")
    refused(error, "a.npz: has one class (0)")


# Manifests

HEADER = "domain,label,path,split\n"
GOOD = "p,x,a.png,train\np,y,b.png,train\n"
AGAIN = "line 4 has the path 'a.png' of line 2 again, with another "

REFUSED = {
    "no label": ("domain,path\np,a.png\n", "has no column 'label' but domain, path; expected path (or x), domain"),
    "no domain": ("site,label,path\np,x,a.png\n", "has no column 'domain' but site, label, path", "--column domain="),
    "no path": ("domain,label\np,x\n", "has no column 'path' but domain, label"),
    "a column twice": ("domain,label,path,label\np,x,a.png,y\n", "has the column 'label' twice"),
    "an empty label": (HEADER + GOOD + "p,,c.png,train\n", "line 4 has no label (1 such rows)"),
    "an empty domain": (HEADER + " ,x,c.png,train\n" + GOOD, "line 2 has no domain (1 such rows)"),
    "an empty path": (HEADER + GOOD + "p,x,,train\n", "line 4 has no path"),
    "an unknown split": (HEADER + GOOD + "p,x,c.png,hold-out\n", "line 4 has the split 'hold-out', expected train"),
    "a number in two ways": (
        HEADER + "p,1,a.png,train\np,2,b.png,train\np,1.0,c.png,train\n",
        "line 4 has the label '1.0', elsewhere it is '1': write a number in one way",
    ),
    "another label": (HEADER + GOOD + "p,y,a.png,train\n", AGAIN + "label"),
    "in two splits": (HEADER + GOOD + "p,x,a.png,test\n", AGAIN + "split"),
    "in two domains": (HEADER + GOOD + "q,x,./a.png,train\n", AGAIN + "domain"),
    "above": (HEADER + GOOD + "p,x,../secret.png,train\n", "line 4 has the path '../secret.png', which leads out of"),
    "above in the middle": (HEADER + GOOD + "p,x,a/../../b.png,train\n", "line 4 has the path 'a/../../b.png', which"),
    "absolute": (HEADER + "p,x,/etc/passwd,train\n" + GOOD, "line 2 has the path '/etc/passwd', which leads out of"),
    "backslashes": (HEADER + GOOD + "p,x,d\\c.png,train\n", "line 4 has the path 'd\\\\c.png'; expected / between"),
    "missing files": (
        HEADER + GOOD + "".join(f"p,x,gone{i}.png,train\n" for i in range(5)),
        "5 of 7 files are not below",
        ": gone0.png, gone1.png, gone2.png, …; give the folder of the images as `root`",
    ),
    "a short row": (HEADER + GOOD + "p,x\n", "cannot be read as a table", "Expected 4 columns, got 2"),
    "nothing": ("", "cannot be read as a table (Empty CSV"),
    "no rows": (HEADER, "has no rows"),
    "not UTF-8": ((HEADER + "p,caf\xe9,a.png,train\n").encode("latin-1"), "is not text in UTF-8 (byte 29)"),
    "rows without an array": ("domain,label,x\np,a,0\n", "'x' of row numbers, but there is neither m.npy nor m.npz"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_manifest_that_is_refused(manifest, what):
    text, *parts = REFUSED[what]
    with pytest.raises(ValueError) as error:
        load(manifest(text))
    refused(error, "m.csv: ", *parts)


def test_a_manifest_of_another_kind(manifest, tmp_path):
    with pytest.raises(ValueError) as error:
        load(manifest("no table", name="m.parquet"))
    refused(error, "m.parquet: cannot be read as a table (")
    with pytest.raises(FileNotFoundError, match=r"gone\.csv: there is no such file"):
        load(tmp_path / "gone.csv")


def test_columns_that_are_not_there(manifest):
    path = manifest(HEADER + GOOD)
    with pytest.raises(ValueError) as error:
        load(path, columns={"domain": "site"})
    refused(error, "m.csv: has no column 'site' for 'domain' but domain, label, path, split")
    with pytest.raises(ValueError) as error:
        load(path, columns={"site": "domain"})
    refused(error, "--column has 'site', expected some of path, x, domain, label, split")


def test_columns_of_data_that_have_none(tmp_path):
    (tmp_path / "photos").mkdir()
    for source in (tmp_path / "photos", tmp_path / "v.npz", "digits"):
        with pytest.raises(ValueError) as error:
            load(str(source), columns={"group": "patient"})
        refused(error, f"{source}: --column group=patient has no meaning here; only a .csv or .parquet manifest")


def test_rows_of_parquet_are_numbered_from_0(tmp_path):
    table = pd.DataFrame({"domain": ["p", "p"], "label": [1.0, np.nan], "path": ["a.png", "b.png"]})
    table.to_parquet(tmp_path / "m.parquet")
    with pytest.raises(ValueError) as error:
        load(tmp_path / "m.parquet")
    refused(error, "m.parquet: row 1 has no label")
    pd.DataFrame({"domain": ["p"], "label": [[1, 2]], "path": ["a.png"]}).to_parquet(tmp_path / "m.parquet")
    with pytest.raises(ValueError) as error:
        load(tmp_path / "m.parquet")
    refused(error, "m.parquet: the column 'label' is list<", "expected text or numbers")


def test_duplicate_rows_are_left_out(manifest):
    dataset = load(manifest(HEADER + GOOD + GOOD + "q,x,c.png,test\nq,y,d.png,train\np,x,./a.png,train\n"))
    assert dataset.x.paths() == ["a.png", "b.png", "c.png", "d.png"]
    assert dataset.notes[0] == "left out: 2 duplicate rows (first line 4, 'a.png')"
    assert dataset.notes[1] == "left out: 1 duplicate row (first line 8, 'a.png')"


def test_numbers_and_words_as_labels(manifest):
    dataset = load(manifest(HEADER + "p,10,a.png,train\np,9,b.png,train\np,cat,c.png,train\n"))
    assert dataset.classes == ("9", "10", "cat")
    assert dataset.notes[0] == "the column 'label' mixes numbers and words (9, cat); all are used as names"


def test_numeric_domains(manifest):
    dataset = load(manifest(HEADER + "10,x,a.png,train\n9,y,b.png,train\n9,x,c.png,train\n10,y,d.png,train\n"))
    assert dataset.domains == ("9", "10") and dataset.notes == ()


def test_missing_files_are_skipped_by_name(manifest):
    path = manifest(HEADER + GOOD + "q,x,gone.png,train\nq,z,also.png,train\nq,x,c.png,train\n")
    dataset = load(path, skip_broken=True)
    assert dataset.x.paths() == ["a.png", "b.png", "c.png"] and dataset.classes == ("x", "y")
    assert dataset.notes[0].startswith("left out: 2 of 5 files are not below ")
    assert dataset.notes[0].endswith(": gone.png, also.png")


# Embeddings


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_embeddings_that_are_no_numbers(manifest, tmp_path, value):
    path = manifest("domain,label,x\np,a,0\np,b,1\n")
    x = np.zeros((4, 3), np.float32)
    x[1, 2] = value
    np.save(tmp_path / "m.npy", x)
    with pytest.raises(ValueError) as error:
        load(path)
    refused(error, "m.npy: row 1 of x has a value that is NaN or infinite (1 such rows)")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("p,a,0\np,b,7\n", "m.csv: line 3 has x = 7, expected a row of m.npy, 0 to 3"),
        ("p,a,-1\np,b,1\n", "m.csv: line 2 has x = -1, expected a row of m.npy, 0 to 3"),
        ("p,a,0\np,b,1.5\n", "m.csv: line 3 has x = '1.5', expected a row number"),
        ("p,a,0\np,b,one\n", "m.csv: line 3 has x = 'one', expected a row number"),
        ("p,a,0\np,b,0\n", "m.csv: line 3 has the x '0' of line 2 again, with another label"),
    ],
)
def test_row_numbers_that_are_wrong(manifest, tmp_path, rows, message):
    np.save(tmp_path / "m.npy", np.zeros((4, 3), np.float32))
    with pytest.raises(ValueError) as error:
        load(manifest("domain,label,x\n" + rows))
    refused(error, message)


def test_an_array_that_is_none(manifest, tmp_path):
    path = manifest("domain,label,x\np,a,0\np,b,1\n")
    (tmp_path / "m.npy").write_bytes(b"no array")
    with pytest.raises(ValueError) as error:
        load(path)
    refused(error, "m.npy: cannot be read as an array")
    (tmp_path / "m.npy").unlink()
    np.savez(tmp_path / "m.npz", z=np.zeros(3))
    with pytest.raises(ValueError) as error:
        load(path)
    refused(error, "m.npz: has no array 'x' but z")
