"""Names of pretrained networks: separators, folders, other names."""

import pytest

from aadml.feature_extraction.weights.hub_names import expanded, without_folder


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("hf:a/b", {"model": "a/b"}),
        ("hf:a/b@v1#cls", {"model": "a/b", "revision": "v1", "pooling": "cls"}),
        ("hf:a/b#cls", {"model": "a/b", "pooling": "cls"}),
        ("hf:clap", {"model": "clap"}),
    ],
)
def test_a_name_stands_for_an_extractor_and_its_options(name, options):
    assert expanded(name, "audio") == ("hf-audio", options)


def test_the_name_of_a_folder_may_contain_the_separators(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a#b@c").mkdir()
    assert expanded("hf:a#b@c", "text") == ("hf-text", {"model": "a#b@c"})
    assert expanded("hf:a#b@c#cls", "text") == ("hf-text", {"model": "a#b@c", "pooling": "cls"})


def test_other_names_are_unchanged():
    assert expanded("log-mel", "audio") == ("log-mel", {})
    assert expanded("mine:make", "audio") == ("mine:make", {})


def test_a_folder_is_shortened_to_its_last_part_and_a_name_on_the_hub_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep" / "clap").mkdir(parents=True)
    (tmp_path / "clap").mkdir()
    assert without_folder("hf:deep/clap@deep/clap") == "hf:clap@deep/clap"
    assert without_folder(f"hf:{tmp_path / 'clap'}#projection") == "hf:clap#projection"
    assert without_folder("hf:laion/clap@main") == "hf:laion/clap@main"
