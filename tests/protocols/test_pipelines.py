"""Pipelines of users' commands are audited; a command that fails gives one sentence."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from types import FunctionType, SimpleNamespace

import h5py
import numpy as np
import pytest
import torch

from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.model.facts import MethodFacts
from aadml.protocols import pipelines
from aadml.protocols.audit import audit
from aadml.protocols.audit_checks import CHECKS, one_modality_alone, selection
from aadml.protocols.isolated_encoder import Order
from aadml.protocols.pipelines import FunctionPipeline, ProtocolPipeline, of_command
from aadml.protocols.protocol import Subject

EMBED = (
    "import sys, h5py\n"
    "with h5py.File(sys.argv[1]) as given, h5py.File(sys.argv[2], 'w') as made:\n"
    "    for modality in ('audio', 'visual'):\n"
    "        if modality in given:\n"
    "            made[modality] = given[modality][:, :3]\n"
)


@pytest.fixture
def command(tmp_path):
    (tmp_path / "embed.py").write_text(EMBED)
    return of_command(f"{sys.executable} {tmp_path}/embed.py {{input}} {{output}}")


@pytest.mark.slow
def test_a_users_command_is_audited(command):
    small = to_splits(synthetic(classes=2, train=8, valid=4, test=8, dimensions=(4, 5)))
    assert not [f for f in audit(command, small, CHECKS) if f.failed]


def test_a_command_is_audited_on_clips_without_a_modality(command):
    small = to_splits(synthetic(classes=2, train=8, valid=4, test=8, dimensions=(4, 5)))
    test = replace(small.test, present={"audio": torch.arange(8) % 4 > 0})
    found = audit(command, replace(small, test=test), [one_modality_alone])
    assert not [f for f in found if f.failed]


HARMFUL = (
    "{{python}} -c \"import sys, h5py; m = h5py.File(sys.argv[2], 'w'); m['visual'] = [[1.0]]; {}; m.close()\""
    " {{input}} {{output}}"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("{python} -c 'raise SystemExit(3)' {input} {output}", "ended with exit status 3"),
        ("/no/such/program {input} {output}", "cannot be started"),
        ("{python} -c pass {input} {output}", "did not write the file {output}"),
        ("{python} 'open quote {input} {output}", "cannot be parsed"),
        ("{python} -c pass {foo}", "lacks {input} or {output}"),
        ("", "--command '' lacks {input} or {output}"),
        ('{python} -c \'import sys; open(sys.argv[2], "w").write("x")\' {input} {output}', "cannot be read as HDF5"),
        ("{python} -c 'import sys, h5py; h5py.File(sys.argv[2], \"w\")' {input} {output}", "contains no 'audio'"),
        ("{python} -c 'import time; time.sleep(60)' {input} {output}", "longer than"),
        (HARMFUL.format("m['audio'] = h5py.ExternalLink(sys.argv[1], 'visual')"), "is a link to another file"),
        (HARMFUL.format("m.create_dataset('audio', (10**12, 4))"), "declares 16,000,000,000,000 bytes"),
        (HARMFUL.format("m.create_group('audio')"), "'audio' is a group, but must be an array"),
    ],
)
def test_a_command_that_goes_wrong_is_one_sentence(command, says, subject):
    with pytest.raises(InputError) as caught:
        audit(of_command(command.replace("{python}", sys.executable)), subject.splits, [], seconds=8.0)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_output_of_a_command_is_a_dataset_of_each_modality(subject, tmp_path):
    clips, output = subject.splits.test, tmp_path / "output.h5"
    wrong = {
        "'audio' is a group, but must be an array": {"audio": {}, "visual": np.ones(2)},
        r"contains no 'visual'; .*\(keys found: audio\)": {"audio": np.ones(2)},
    }
    for says, content in {"": {m: clips[m].numpy() for m in clips.modalities}, **wrong}.items():
        with h5py.File(output, "w") as file:
            for name, values in content.items():
                file.create_group(name) if isinstance(values, dict) else file.create_dataset(name, data=values)
        if says:
            with pytest.raises(InputError, match=f"^the command's output .*{says}"):
                pipelines._read_output(output, clips)
        else:
            arrays = pipelines._read_output(output, clips)
            assert all(np.array_equal(arrays[m], values) for m, values in content.items())


def test_what_an_encoder_can_use_is_named(tmp_path, subject):
    (tmp_path / "weights").write_bytes(b"x")
    isolated = of_command("embed {input} {output}", [tmp_path / "weights"])
    begin = "each pass ran in a new interpreter, which the kernel isolated from network, processes and files; "
    checksum = hashlib.sha256(b"x").hexdigest()[:12]
    assert isolated.surroundings == f"{begin}readable beside the libraries: {tmp_path}/weights (SHA-256 {checksum})"
    assert of_command("embed {input} {output}").surroundings == f"{begin}readable beside the libraries: no file"
    isolated._running.extend(SimpleNamespace(channels=channels) for channels in (("air", "water"), ("air",)))
    assert isolated.channels == ("air", "water")
    code = "pass;" * 100  # too long for the name of a file
    assert of_command(f"embed -c '{code}' {{input}} {{output}}").order.command[2] == code
    with pytest.raises(InputError, match="--allow none does not exist; pass files or folders that the encoder reads"):
        of_command("embed {input} {output}", [Path("none")])


@pytest.mark.parametrize(
    ("protocol", "evidence", "training"),
    [
        (
            "unseen-classes",
            "the training of the encoder is not visible; to",
            "unknown",
        ),
        ("legacy:test-scaling", "the training of the encoder is not visible; to", "unknown"),
        ("legacy:test-selection", "the protocol legacy:test-selection trained again 3 times with garbage", "failed"),
    ],
)
def test_a_protocol_that_trains_nothing_is_no_evidence_on_training(protocol, evidence, training, subject):
    splits = subject.splits
    if protocol == "unseen-classes":
        train, test = splits.train, splits.test
        seen, unseen = (train.labels < 2).nonzero()[:, 0], (test.labels > 1).nonzero()[:, 0]
        splits = replace(splits, train=train.select(seen), test=test.select(unseen))
    retrained = replace(subject.encoder, scaling=subject.encoder.rescaled(splits.test).scaling)
    by_labels = lambda given: retrained if given.valid.labels.equal(splits.test.labels) else subject.encoder  # noqa: E731
    found = audit(ProtocolPipeline(Subject(subject.encoder, splits, by_labels), protocol), splits, [selection])
    (finding,) = [finding for finding in found if finding.check == "selection"]
    assert finding.evidence.startswith(evidence)
    assert found.training == training


def test_the_program_of_a_command_is_found_by_the_path_of_the_user(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "embed"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.chdir(tmp_path)
    for word in ("embed", "bin/embed", str(program)):
        order = of_command(f"{word} bin embed {{input}} {{output}}").order
        assert order.command == (str(program), "bin", "embed", "{input}", "{output}")
        assert order.readable == (str(program),)
    assert of_command("train {input} {output}").order.command[0] == "train"


def named(features, labels):
    return features


def test_a_function_that_can_be_imported_is_isolated_with_consent_and_others_are_called_here(tmp_path, monkeypatch):
    consents, source = [], tmp_path / "source.py"
    for path in (source, tmp_path / "weights"):
        path.touch()
    monkeypatch.setattr(pipelines, "consent_to", consents.append)
    monkeypatch.setattr(pipelines, "source_with_consent", lambda place, kind: (place, source))
    place = f"{named.__module__}:named"
    assert pipelines.of_function(named, [tmp_path / "weights"]).order == Order(
        place, readable=(str(source), str(tmp_path / "weights"))
    )
    assert consents == [place]
    assert pipelines.of_function("a:b").order == Order("a:b", readable=(str(source),))
    monkeypatch.setattr(pipelines, "source_with_consent", lambda place, kind: (place, None))
    assert pipelines.of_function("a:b").order == Order("a:b")
    assert consents == [place]
    monkeypatch.setattr(sys.modules["__main__"], "named", named, raising=False)
    in_main = FunctionType(named.__code__, {}, "named")
    in_main.__module__ = "__main__"
    monkeypatch.setattr(sys.modules["__main__"], "named", in_main)
    for function in (lambda features, labels: features, in_main):
        pipeline = pipelines.of_function(function)
        assert (type(pipeline), pipeline.function) == (FunctionPipeline, function)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "embed 'open {input} {output}",
            r"^--command \"embed 'open .*\" cannot be parsed \(No closing quotation\); check quotes and backslashes$",
        ),
        ("embed {input}", r"^--command 'embed \{input\}' lacks \{input\} or \{output\}; write both into the command$"),
        ("", "lacks"),
    ],
)
def test_a_command_that_cannot_be_parsed_or_lacks_a_place_is_refused(command, message):
    with pytest.raises(InputError, match=message):
        of_command(command)


def test_files_among_the_words_of_a_command_can_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("script.py", "weights"):
        (tmp_path / name).touch()
    words = (str(tmp_path / "script.py"), "a b", "--in={input}", "{output}")
    order = of_command("script.py 'a b' --in={input} {output}", [tmp_path / "weights"]).order
    assert order == Order(command=words, readable=(words[0], str(tmp_path / "weights")))


def test_code_from_outside_of_the_method_of_a_run_is_a_channel(subject):
    assert ProtocolPipeline(subject, "inductive").channels == []
    facts = replace(subject.encoder.facts, method=MethodFacts("own_module:Method", OptionValues()))
    encoder = SimpleNamespace(facts=facts)
    assert ProtocolPipeline(replace(subject, encoder=encoder), "inductive").channels == [
        "own_module:Method, code from outside aadml, ran in forks of the audit"
    ]


def embedded(encode, clips):
    return FunctionPipeline(encode).embedder(None, "test")(clips)


def test_the_arrays_of_a_function_become_embeddings(subject):
    clips = subject.splits.test
    found = embedded(lambda features, labels: {m: v[:, :2] + labels[:, None] for m, v in features.items()}, clips)
    assert found.ids == clips.ids
    for modality in clips.modalities:
        wanted = clips.matrix(modality)[:, :2] + clips.labels[:, None]
        torch.testing.assert_close(found.of(modality, torch.arange(len(clips))), wanted)
    found = embedded(lambda features, _: {m: v[:5] for m, v in features.items()}, clips)  # the audit reports it
    assert found.ids == clips.ids[:5]


@pytest.mark.parametrize(
    ("encode", "says"),
    [
        (
            lambda features, _: list(features.values()),
            "returned a value of type list; return a mapping with audio, visual",
        ),
        (lambda features, _: {}, "returned a mapping with nothing; return"),
        (lambda features, _: {"audio": features["audio"]}, "returned a mapping with audio; return"),
        (
            lambda features, _: {**features, "visual": features["visual"][0]},
            r"visual: .* and shape \(9,\); return numbers",
        ),
        (lambda features, _: {**features, "visual": features["visual"].astype(str)}, "visual: .*<U.* and shape"),
        (lambda features, _: {**features, "visual": features["visual"][1:]}, "arrays of 43, 44 rows for 44 clips"),
        (
            lambda features, _: {m: np.concatenate([v, v[:1]]) for m, v in features.items()},
            "arrays of 45 rows for 44 clips; return one row per clip",
        ),
    ],
)
def test_arrays_that_are_no_embeddings_of_the_clips_are_refused(encode, says, subject):
    with pytest.raises(InputError, match=says):
        embedded(encode, subject.splits.test)


@pytest.mark.parametrize(
    ("code", "says"), [("raise SystemExit('one\\ntwo')", "1 (two)"), ("raise SystemExit(3)", "3 (no message)")]
)
def test_a_command_that_fails_is_told_with_its_last_line(code, says, subject):
    command = f'{sys.executable} -c "{code}" {{input}} {{output}}'
    with pytest.raises(InputError) as caught:
        audit(of_command(command), subject.splits, [])
    advice = "test the command by itself, and if it works there, pass the path of the interpreter itself, and --allow"
    assert f"ended with exit status {says}; {advice}" in str(caught.value)
