import contextvars
import threading
from pathlib import Path

import pytest

from aadml.feature_extraction.ground import consent
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.consent import (
    UntrustedCodeError,
    consent_to,
    decision,
    inherit,
    is_consented,
    is_trusting,
    named_in,
    require_address_consent,
    require_consent,
    trusting,
)
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import as_yaml


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("my_losses:mine", ["my_losses:mine"]),
        ("aa-my_losses:mine", ["my_losses:mine"]),
        ("aa-hard-pkg.my_losses:mine", ["pkg.my_losses:mine"]),
        ("loss=my_losses:mine", ["my_losses:mine"]),
        ("loss={name: my_losses:mine, margin: 1}", ["my_losses:mine"]),
        ("my_metrics:mine@3", ["my_metrics:mine"]),
        ("a:b+c:d", ["a:b", "c:d"]),
        (["a:b", {"loss": {"name": "c:d"}}], ["a:b", "c:d"]),
        ("--loss=a:b", ["a:b"]),
        ("--set=loss.name=a:b", ["a:b"]),
        ("--over=loss=aa-a:b,c:d", ["a:b", "c:d"]),
        ("[a:b, c:d]", ["a:b", "c:d"]),
        (",".join(["a:b"] * 1000), ["a:b"]),
        ("a sound of a:b and rain", []),
        ("sound a:b", []),
        ("a:b,folder/x", []),
        ("a:b,folder\\x", []),
        ("aa-hf:clap", []),
        ("note:this is a dog", []),
        ("synthetic:ave", []),
        ("--data=synthetic:ave", []),
        ("hf:clap", []),
        ("ray:head", []),
        ("legacy:partner", []),
        ("-oa:b", []),
        ("--data=folder/a:b", []),
        ("folder/a:b", []),
        ("a:b/model", []),
        ("C:\\a:b", []),
        ("triplet", []),
        (3, []),
        (None, []),
    ],
)
def test_what_a_person_types_is_consented_to_name_by_name(typed, names):
    consent_to(typed)
    assert consent._names == set(names)


def test_the_name_of_a_file_that_is_there_is_no_consent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a:b").touch()
    consent_to("a:b", "--data=a:b", "audio=a:b", ["a:b"])
    assert not is_consented("a:b")


def test_a_refusal_names_the_name_the_file_and_the_consent():
    with named_in("run/config.yaml"), named_in(""), pytest.raises(UntrustedCodeError) as caught:
        require_consent("a:b", "loss")
    message = str(caught.value)
    advice = "was not run; read that code, then consent with --trust-code (in Python: trust_code=True)"
    assert message == f"run/config.yaml names loss a:b, which is code from outside aadml and {advice}"
    with pytest.raises(UntrustedCodeError) as caught:
        require_consent("a:b")
    assert str(caught.value).startswith("a file or a program, and not the user, names a:b, which is code")


def test_consent_lasts_as_long_as_the_call_and_is_not_seen_by_other_threads():
    seen = []

    @with_consent("path")
    def work(path, *, trust_code=False):
        require_consent("a:b")
        other = threading.Thread(target=lambda: seen.append(is_consented("a:b")))
        other.start()
        other.join()
        return path

    assert work("x", trust_code=True) == "x"
    assert seen == [False]
    assert not is_consented("a:b")
    with pytest.raises(UntrustedCodeError, match=r"^x names a:b"):
        work("x")


@pytest.mark.parametrize("consented", ["yes", 1, None])
def test_consent_is_true_or_false(consented):
    def called(*, trust_code: bool = False):
        pytest.fail("called")

    with pytest.raises(InputError, match=r"trust_code has type .*; pass True or False"):
        with_consent("path")(called)(trust_code=consented)


def test_what_opens_a_file_can_keep_the_consent_and_gives_none_to_other_files():
    with trusting():
        kept = is_trusting()
    assert not is_trusting()
    with trusting(kept):
        assert is_consented("a:b")
    assert not is_consented("a:b")


def test_a_process_takes_over_the_decision_of_its_parent(monkeypatch):
    consent_to("a:b")
    monkeypatch.setattr(consent, "folders", ["entered"])
    parent = decision()
    monkeypatch.setattr(consent, "_names", set())
    monkeypatch.setattr(consent, "folders", [])
    inherit(parent)
    assert consent.folders == ["entered"]
    assert is_consented("a:b")
    assert not is_consented("c:d")
    with trusting():
        parent = decision()
    inside = contextvars.copy_context()
    inside.run(inherit, parent)
    assert inside.run(is_trusting)
    assert not is_trusting()


@pytest.mark.parametrize("typed", ["{}", "--data={}", "data={}", "--set=data={}", ["train", "--data", "{}"]])
@pytest.mark.parametrize("address", ["s3://bucket/clips.h5", "https://host/a?sig=x=y", "hf:org/name"])
def test_an_address_that_a_person_types_may_be_opened_and_no_other(typed, address):
    with pytest.raises(InputError, match=r"^shown was not opened, because .* a file or a program and not from you; "):
        require_address_consent(address, "shown")
    with trusting():
        require_address_consent(address, "shown")
    consent_to([text.format(address) for text in typed] if isinstance(typed, list) else typed.format(address))
    require_address_consent(address, "shown")
    with named_in("run/config.yaml"), pytest.raises(InputError, match=r"comes from run/config.yaml and not from you"):
        require_address_consent(f"{address}.other", "shown")


def test_a_path_of_a_public_function_is_consent_to_its_address_and_to_no_name():
    consent_to("memory://a", "c:d", paths=True)
    parent = decision()
    consent._addresses.clear()
    inherit(parent)
    require_address_consent("memory://a", "memory://a")
    assert not is_consented("c:d")


def test_messages_do_not_show_the_secrets_of_typed_addresses():
    address = "memory://{}host/clips.h5{}"
    consent_to(address.format("me:secret@", "?sig=a"), f"--data={address.format('', '?sig=ab#/c')}", "hf:org/a#pool?y")
    for text, shown in {
        address.format("me:secret@", "?sig=a"): address.format("", ""),
        str(Path(address.format("", "?sig=ab#/c"))): "memory:/host/clips.h5",
        "clips.h5?sig=ab.work: hf:org/a#pool?y": "clips.h5.work: hf:org/a#pool?y",
    }.items():
        assert str(InputError(f"{text} is wrong; is it?")) == f"{shown} is wrong; is it?"


@pytest.mark.parametrize(
    "text",
    [
        "https://zenodo.org/files/Cnn10.pth?download=1 is missing",
        "hf:org/data@main is missing",
        "pass a pooling, as in hf:MODEL#mean",
    ],
)
def test_messages_keep_what_typed_addresses_contain_elsewhere(text):
    consent_to(
        "https://zenodo.org/files/clips.h5?download=1", "s3://data@bucket/x", "https://h/c.h5#mean", "a://h/?x=1"
    )
    assert str(InputError(text)) == text


@pytest.mark.parametrize(
    "form", ["{}", "seed={}", "data={{a: {}}}", "--set=data=[{}]", "data: '{}'", "data={0},{0}2", 'data={{"a": "{}"}}']
)
def test_secrets_are_hidden_in_values_of_any_form(form):
    address = "https://me:SECRET@host/clips.h5?sig=SECRET" + "S" * 60
    consent_to(form.format(address))
    for text in (f"{address} is wrong", f"seed is {as_yaml(address)}", f"seed is {as_yaml({'a': [address]})}"):
        assert "SECRET" not in str(InputError(text))
        assert "https://host/clips.h5" in str(InputError(text))
