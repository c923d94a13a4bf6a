"""Methods of captioned sound pass the audit, and one that looks at its neighbors does not."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.configuration.overrides import with_setting
from aadml.protocols.audit import Verdict, audit
from aadml.protocols.audit_checks import CHECKS, duplicates
from aadml.retrieval.evaluation import evaluate
from aadml.runs.prepare import untrained_model

pytest.importorskip("transformers")

SETTINGS = {
    "audio_text": ("method.audio_width=2", "method.text_dimension=16", "method.text_layers=1", "method.dimension=16"),
    "3cmlf": (
        "method.audio_width=2",
        "method.text_dimension=16",
        "method.text_layers=1",
        "method.dimension=16",
        "training.batch=8",
    ),
    "xie": ("method.channels=8", "method.text_dimension=16"),
}


class Subject:
    """An encoder under audit."""

    preparation = surroundings = ""
    channels = ()

    def __init__(self, encoder, leak=False):
        self.encoder, self.leak = encoder, leak

    def embedder(self, splits, split):
        def embed(clips):
            found = self.encoder.embed_clips(clips)
            if not self.leak:
                return found
            return replace(found, vectors={m: v - v.float().mean(0) for m, v in found.vectors.items()})

        return embed

    def reported_map(self, splits, split):
        return evaluate(self.embedder(splits, split)(splits[split])).map_mean


class Drawn:
    """An encoder that looks at nothing."""

    def embed_clips(self, clips):
        return clips.embedded({m: torch.ones(len(clips), 2) for m in clips.modalities}, once=("audio",))


@pytest.fixture(params=SETTINGS)
def encoder(request, tones):
    values = with_setting(with_setting(open_config(request.param).values, "training.epochs", 1), "training.batch", 12)
    for setting in SETTINGS[request.param]:
        key, value = setting.split("=")
        values = with_setting(values, key, int(value))
    built = untrained_model(resolve(values), tones, torch.device("cpu"))
    built.method.fit(tones.train, tones.valid)
    return built


@pytest.mark.slow
def test_every_check_passes(tones, encoder):
    findings = audit(Subject(encoder), tones, CHECKS)
    assert [(one.check, one.evidence) for one in findings if one.failed] == []
    assert sum(one.verdict is Verdict.PASS for one in findings) >= 9


def test_a_sound_that_stands_in_train_under_another_name_is_caught(tones, tmp_path):
    copied = tmp_path / "another name.wav"
    copied.write_bytes(Path(tones.train["audio"].paths[4]).read_bytes())
    sound = tones.test["audio"]
    paths = (*sound.paths[:2], str(copied), *sound.paths[3:])
    test = replace(tones.test, features={**tones.test.features, "audio": replace(sound, paths=paths, known={})})
    for splits, verdict in ((tones, Verdict.PASS), (replace(tones, test=test), Verdict.FAIL)):
        found, *_ = audit(Subject(Drawn()), splits, [duplicates])
        assert found.verdict is verdict, found.evidence
        assert f"{int(verdict is Verdict.FAIL)} audio files also in train" in found.evidence
        assert "0 audio files also in valid" in found.evidence
    assert found.evidence.endswith(f"({copied} = {tones.train['audio'].paths[4]} ...)")


def test_the_printed_map_ranks_a_sound_once_for_all_its_captions(tones):
    subject = Subject(Drawn())
    score = subject.reported_map(tones, "test")
    assert audit(subject, tones, [])[-1].evidence.startswith(f"MAP by cosine {score:.5f}; ")


@pytest.mark.slow
def test_looking_at_the_other_items_is_caught(tones, encoder):
    failed = {one.check for one in audit(Subject(encoder, leak=True), tones, CHECKS) if one.failed}
    assert {"batch invariance", "other items"} <= failed
