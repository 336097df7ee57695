"""crosstail list, and behaviour that all verbs share."""

import json
import re

import pytest

from crosstail import cli, discovery

PACKAGES = {
    "algorithms": "crosstail.algorithms",
    "second-stages": "crosstail.second_stages",
    "datasets": "crosstail.data.benchmarks",
    "backbones": "crosstail.backbones",
    "metrics": "crosstail.metrics",
}
MORE = {"backbones": ["timm:NAME", "hf-hub:ORG/NAME", "open_clip:NAME"]}
VERBS = cli.VERBS


@pytest.mark.parametrize("kind", PACKAGES)
def test_json_lists_everything_there_is_with_a_sentence(crosstail, kind):
    done = crosstail(f"list {kind} --json")
    assert done.code == 0 and done.err == ""
    rows = json.loads(done.out)
    assert sorted(row["name"] for row in rows) == sorted(discovery.names(PACKAGES[kind]) + MORE.get(kind, []))
    assert all(len(row["what"]) > 20 for row in rows)


@pytest.mark.parametrize("kind", PACKAGES)
def test_the_table_lists_the_same_within_80_columns(crosstail, kind):
    done = crosstail(f"list {kind}")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    first_words = {line.split(" ")[0] for line in done.out.splitlines()}
    assert set(discovery.names(PACKAGES[kind])) <= first_words


def test_details_that_a_program_may_read(crosstail):
    rows = {row["name"]: row for row in json.loads(crosstail("list algorithms --json").out)}
    assert [h["name"] for h in rows["erm"]["hyperparameters"]] == ["lr", "weight_decay", "dropout"]
    nu = next(h for h in rows["boda"]["hyperparameters"] if h["name"] == "nu")
    assert nu["default"] == 1.0 and nu["search"] == "log-uniform 0.32 to 1" and "calibrate" in nu["meaning"]
    assert (rows["boda"]["family"], rows["boda"]["year"], rows["boda"]["passes"]) == ("ours", 2022, 1.0)
    digits = next(row for row in json.loads(crosstail("list datasets --json").out) if row["name"] == "digits")
    assert digits["domains"] == ["handwritten", "textured", "signs"] and digits["classes"] == 10


@pytest.mark.parametrize(
    "name", ["boda+coral", "boda_m+coral", "da+ldam", "boda+bsoftmax+coral", "fish+boda", "bsoftmax+coral"]
)
def test_a_combination_is_described_by_all_of_its_parts(crosstail, name):
    parts = [json.loads(crosstail(f"list algorithms {part} --json").out)[0] for part in name.split("+")]
    (row,) = json.loads(crosstail(f"list algorithms {name} --json").out)
    assert row["name"] == name and row["presets"] == []
    shown = " ".join(crosstail(f"list algorithms {name}").out.split())
    for part in parts:
        assert part["what"] in shown and f"{part['paper']}, {part['year']}" in shown


def test_second_stages_say_whether_they_are_trained_and_the_help_names_them(crosstail):
    rows = {row["name"]: row for row in json.loads(crosstail("list second-stages --json").out)}
    assert (rows["retrain"]["kind"], rows["ncm"]["kind"]) == ("trained", "fitted")
    assert rows["ncm"]["paper"] == "Kang et al., 2020"
    assert rows.keys() <= set(re.findall(r"\w+", crosstail("fit --help").out))


def test_an_unknown_kind_is_refused_with_those_there_are(crosstail):
    done = crosstail("list colours")
    assert done.code == 2 and all(kind in done.err for kind in PACKAGES) and "Traceback" not in done.err


def test_there_are_verbs():
    assert {"demo", "fit", "graph", "list"} <= set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_argument_is_described_by_the_verb_or_the_command(verb):
    taken = [one for one in cli.app[verb].assemble_argument_collection(parse_docstring=True) if not one.children]
    assert taken and all(one.parameter.help for one in taken if one.parse)


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example_and_fits_into_80_columns(crosstail, verb):
    done = crosstail(f"{verb} --help")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    text = " ".join(done.out.split())
    assert f"Example: crosstail {verb}" in text


def test_help_is_as_wide_as_the_terminal_is_now(crosstail, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert max(map(len, crosstail("sweep --help").out.splitlines())) == 100
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, crosstail("sweep --help").out.splitlines())) == 80


def test_help_names_every_verb(crosstail):
    done = crosstail("--help")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    assert all(f" {verb} " in done.out for verb in VERBS)


def test_no_verb_shows_the_help_and_has_exit_code_2(crosstail):
    done = crosstail("")
    assert done.code == 2 and "Usage:" in done.out + done.err


def test_the_command_lists_the_cuts_with_their_size(crosstail, refused):
    (last, second, *_) = json.loads(crosstail("list backbones efficientnet_lite0 --json").ok().out)
    assert last == {"tune": "last", "behind": "blocks.5", "shape": [192, 7, 7], "bytes": 18816}
    assert second["tune"] == "last:2" and "44 KB" in crosstail("list backbones efficientnet_lite0").ok().out
    assert "no pretrained weights" in refused("list backbones small_cnn")
