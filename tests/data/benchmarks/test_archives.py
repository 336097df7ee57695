"""Unpacking: archive members stay inside the target folder, or the archive is refused."""

import io
import tarfile
import zipfile

import pytest

from crosstail.data.benchmarks._archives import fetch, unpack
from crosstail.data.benchmarks._sheet import Archive, DataSheet


def make_zip(path, members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def make_tar(path, members):
    with tarfile.open(path, "w:gz") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if content is None:
                info.type = tarfile.DIRTYPE
                file.addfile(info)
            elif isinstance(content, tuple):
                info.type, info.linkname = content
                file.addfile(info)
            else:
                info.size = len(content)
                file.addfile(info, io.BytesIO(content))
    return path


def below(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


MAKE = {"a.zip": make_zip, "a.tar.gz": make_tar}


@pytest.mark.parametrize("name", MAKE)
def test_files_and_folders(tmp_path, name):
    members = {"kfold/photo/dog/1.jpg": b"one", "kfold/._x": b"mac", "__MACOSX/y": b"mac", "./top.txt": b"top"}
    path = MAKE[name](tmp_path / name, members)
    unpack(path, tmp_path / "out")
    assert below(tmp_path / "out") == {"kfold/photo/dog/1.jpg": b"one", "top.txt": b"top"}


@pytest.mark.parametrize("name", MAKE)
def test_into_folders_that_are_there(tmp_path, name):
    (tmp_path / "out/photo/dog").mkdir(parents=True)
    (tmp_path / "out/photo/dog/1.jpg").write_bytes(b"old")
    (tmp_path / "out/photo/dog/2.jpg").write_bytes(b"kept")
    unpack(MAKE[name](tmp_path / name, {"photo/dog/1.jpg": b"new", "photo/cat/3.jpg": b"three"}), tmp_path / "out")
    assert below(tmp_path / "out") == {
        "photo/dog/1.jpg": b"new",
        "photo/dog/2.jpg": b"kept",
        "photo/cat/3.jpg": b"three",
    }


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("outside", ["../evil", "a/../../evil", "/evil", "C:/evil", "a\\..\\..\\evil"])
def test_nothing_lands_outside(tmp_path, name, outside):
    path = MAKE[name](tmp_path / name, {"fine": b"1", outside: b"2"})
    with pytest.raises(ValueError, match=r"evil.*refused"):
        unpack(path, tmp_path / "in/out")
    assert not list((tmp_path / "in/out").iterdir()) and not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar(tmp_path, kind):
    path = make_tar(tmp_path / "a.tar.gz", {"fine": b"1", "folder": None, "link": (kind, "/etc/passwd")})
    with pytest.raises(ValueError, match="'link' is a link or a device, refused"):
        unpack(path, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_links_in_a_zip(tmp_path):
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr(info, "/etc/passwd")
    with pytest.raises(ValueError, match="'link' is a link, refused"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


@pytest.mark.parametrize("name", MAKE)
def test_cut_short(tmp_path, name):
    path = MAKE[name](tmp_path / name, {"a": bytes(range(256)) * 400, "b": b"2"})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=rf"{name}: .*truncated"):
        unpack(path, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_no_archive_at_all(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"<html>quota exceeded</html>")
    with pytest.raises(ValueError, match=r"a\.zip: "):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_damaged_content(tmp_path):
    path = make_zip(tmp_path / "a.zip", {"a": b"some content that is long enough"})
    path.write_bytes(path.read_bytes().replace(b"long enough", b"long, alas!"))
    with pytest.raises(ValueError, match=r"a\.zip: "):
        unpack(path, tmp_path / "out")


def sheet(*archives):
    words = dict.fromkeys(("name", "title", "summary", "licence", "citation", "source"), "w")
    return DataSheet(**words, domains=("a",), classes=("b",), archives=archives)


def test_fetch_takes_what_was_put_there_by_hand(tmp_path):
    make_zip(tmp_path / "set.zip", {"a/b/1.jpg": b"1"})
    (tmp_path / "list.txt").write_text("a/b/1.jpg 0")
    said = []
    made = sheet(
        Archive(file="set.zip", mirrors=()),
        Archive(file="list.txt", mirrors=(), size=11, md5="c3ee4cf9ad46d8f1bed34a8c1ec4a4b2"),
        Archive(file="more.zip", mirrors=(), optional=True),
    )
    with pytest.raises(OSError, match=r"list\.txt: has the md5 .*; delete it and start again"):
        fetch(made, tmp_path, say=said.append)
    assert [line.split(",")[0] for line in said] == ["set.zip: already there", "set.zip: unpacked; it may be deleted"]
    assert "not verified" in said[0]
    (tmp_path / "set.zip").unlink()
    said.clear()
    fetch(sheet(Archive(file="set.zip", mirrors=())), tmp_path, say=said.append)
    assert said == ["set.zip: already unpacked"] and (tmp_path / "a/b/1.jpg").read_bytes() == b"1"
