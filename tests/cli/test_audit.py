import json
import shlex

import numpy as np
import pytest
from PIL import Image

from crosstail.data import load


@pytest.fixture
def audit(crosstail):
    return lambda *words: crosstail(shlex.join(["audit", *map(str, words)]))


@pytest.fixture
def arrays(tmp_path):
    path = tmp_path / "my set.npz"
    np.savez(
        path,
        x=np.random.default_rng(0).normal(size=(240, 5)).astype(np.float32),
        y=np.tile(np.repeat([0, 1, 2], 40), 2),
        domain=np.repeat([0, 1], 120),
        domains=["photo", "sketch"],
        classes=["cat", "dog", "[b]cow"],
    )
    return path


def test_terminal_names_what_to_do_next(audit, arrays):
    result = audit(arrays)
    assert result.code == 0
    assert "[b]cow" in result.out and "photo" in result.out
    assert f"Next: crosstail race '{arrays}' --out race" in result.out
    assert "--out audit.html" in result.out
    assert max(map(len, result.out[: result.out.index("Next:")].splitlines())) <= 80


def test_json_is_all_that_is_printed(audit, arrays):
    record = json.loads(audit(arrays, "--json").out)
    assert record["domains"] == ["photo", "sketch"] and record["inputs"]["kind"] == "embeddings"


def test_page_is_written_beside_either(audit, arrays, tmp_path):
    for options in ((), ("--json",)):
        page = tmp_path / f"folder{len(options)}" / "audit.html"
        assert audit(arrays, "--out", page, *options).code == 0
        assert "my set: data audit" in page.read_text(encoding="utf-8")


def test_label_profiles_and_the_sheets_shots_are_used(audit):
    record = json.loads(audit("digits", "--labels", "uniform", "--json").out)
    assert record["shots"] == {"many": 30, "few": 8, "pairs": {"many": 30, "medium": 0, "few": 0, "zero": 0}}
    assert json.loads(audit("digits", "--json").out)["zero_pairs"] == [
        {"domain": "signs", "class": "2", "train": 0},
        {"domain": "signs", "class": "7", "train": 0},
    ]


def test_wrong_input_is_one_sentence(audit, arrays):
    for words, named in (((arrays, "--out", "report.pdf"), "--out report.pdf"), (("digit",), "'digits'")):
        done = audit(*words)
        assert done.code == 2 and done.out == "" and named in done.err


def test_help_has_an_example(audit):
    assert "crosstail audit photos/ --out audit.html" in audit("--help").out


def picture(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (20, 24, 3), np.uint8)).save(path)


@pytest.fixture
def folder(tmp_path):
    """Eight pictures per pair, of which one is there twice and one is broken."""
    root = tmp_path / "photos"
    names = [f"{d}/{c}/{i}.png" for d in ("photo", "sketch") for c in ("cat", "dog") for i in range(8)]
    for seed, name in enumerate(names):
        picture(root / name, seed)
    (root / "sketch/dog/0.png").write_bytes((root / "photo/cat/0.png").read_bytes())
    (root / "sketch/dog/1.png").write_bytes(b"no picture")
    return root


def test_a_folder_of_images(audit, folder):
    record = json.loads(audit(folder, "--json").out)
    assert record["inputs"]["overall"]["median"] == [24, 20]
    assert [name for name, _ in record["inputs"]["broken"]] == ["sketch/dog/1.png"]
    (duplicate,) = record["duplicates"]
    assert {"class", "domain"} <= set(duplicate["across"])
    assert sorted(sample["name"] for sample in duplicate["samples"]) == ["photo/cat/0.png", "sketch/dog/0.png"]


def test_broken_images_are_named_and_the_others_counted_as_in_a_run(audit, folder):
    record = json.loads(audit(folder, "--json").out)
    run = load(folder, skip_broken=True)
    assert record["counts"] == {split: run.counts(split).tolist() for split in ("train", "val", "test")}
    assert "1 image cannot be read and is not counted" in " ".join(audit(folder).out.split())


def test_photos_are_as_large_as_they_stand_upright(audit, folder):
    orientation = Image.Exif()
    orientation[0x112] = 6
    (folder / "sketch/dog/1.png").unlink()
    for path in folder.glob("*/*/*.png"):
        Image.open(path).save(path, exif=orientation)
    assert json.loads(audit(folder, "--json").out)["inputs"]["overall"]["median"] == [20, 24]


def test_the_page_of_a_manifest_is_named_after_its_file(audit, folder, tmp_path):
    rows = [f"{path.relative_to(folder)},{path.parts[-3]},{path.parts[-2]}" for path in sorted(folder.glob("*/*/*"))]
    for name, title in (("labels.csv", "photos/labels.csv"), ("second.csv", "second")):
        (folder / name).write_text("\n".join(["path,domain,label", *rows]), encoding="utf-8")
        audit(folder / name, "--out", tmp_path / "audit.html")
        assert f"{title}: data audit" in (tmp_path / "audit.html").read_text(encoding="utf-8")


def test_the_next_command_repeats_what_was_asked_for(audit, folder):
    rows = [f"{path.relative_to(folder)},{path.parts[-3]},{path.parts[-2]}" for path in sorted(folder.glob("*/*/*"))]
    (folder / "list.csv").write_text("\n".join(["path,site,label", *rows]), encoding="utf-8")
    result = audit(folder / "list.csv", "--column", "domain=site", "--data-seed", 3, "--labels", "uniform")
    asked = {"--labels uniform", "--column domain=site", "--data-seed 3", "--skip-broken", "--out race"}
    command = result.out.partition("Next: crosstail race ")[2].splitlines()[0]
    assert {words for words in asked if words in command} == asked
    done = audit(folder / "list.csv", "--column", "site")
    assert done.code == 2 and "--column" in done.err and "'site'" in done.err


def test_groups_by_column_and_by_pattern(audit, folder):
    names = sorted(str(path.relative_to(folder)) for path in folder.glob("*/*/*"))
    rows = [f"{name},{','.join(name.split('/')[:2])},p{int(name[-5]) // 2}" for name in names]
    (folder / "list.csv").write_text("\n".join(["path,domain,label,patient id", *rows]), encoding="utf-8")
    warned = audit(folder / "list.csv")
    said = " ".join(warned.out.split())
    assert "--column 'group=patient id'" in said and "problems to solve before training" in said
    assert said.index("The column patient id looks like a group") < said.index("1 image cannot be read")
    assert "--column 'group=patient id'" in warned.out.partition("Next: ")[2].splitlines()[0]
    named = audit(folder / "list.csv", "--column", "group=patient id")
    assert "looks like a group" not in named.out and "--column 'group=patient id'" in named.out  # to fit with
    by_column = json.loads(audit(folder / "list.csv", "--column", "group=patient id", "--json").out)["groups"]
    by_pattern = json.loads(audit(folder, "--group-by", "[01]\\.png|[23]\\.png|[45]\\.png|[67]\\.png", "--json").out)
    assert by_column["several_splits"] == 0 and by_column["groups"] == 4 and by_column["largest"] == 8
    assert by_pattern["groups"]["several_splits"] == 0
    command = shlex.split(audit(folder, "--group-by", "[0-3]\\.png|[4-7]").out.partition("Next: ")[2].splitlines()[0])
    assert command[command.index("--group-by") + 1] == "[0-3]\\.png|[4-7]"
    done = audit(folder, "--group-by", "(")
    assert done.code == 2 and "--group-by '('" in done.err


def test_a_trailing_space_is_a_problem_until_it_is_decided(audit, crosstail, folder):
    (folder / "sketch/dog").rename(folder / "sketch/dog ")
    found = audit(folder).out
    said, command = " ".join(found.split()), found.partition("Next: ")[2].splitlines()[0]
    assert "1 name has several spellings" in said and "'dog' (8) and 'dog ' (8)" in said and "--names merge" in command
    assert json.loads(audit(folder, "--json").out)["same_names"] == [
        {"what": "class", "spellings": {"dog": 8, "dog ": 8}}
    ]
    refused = crosstail(f"fit {folder} --skip-broken --out run")
    said = " ".join(refused.err.split())
    assert (
        refused.code == 2 and "'dog' (8) and 'dog ' (8)" in said and "--names merge" in said and "--names keep" in said
    )
    assert "several spellings" not in audit(folder, "--names", "keep").out
    merged = json.loads(audit(folder, "--names", "merge", "--json").out)
    assert merged["classes"] == ["cat", "dog"] and merged["same_names"] == []
