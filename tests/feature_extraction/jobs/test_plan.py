from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.plan import ExtractionPlan, fingerprint
from aadml.feature_extraction.manifest import Manifest, Row
from aadml.feature_extraction.media import Sound, Text

AUDIO = Extractor("a", "audio", 3, Sound(8000), {"hop": 1}, np.asarray)
TEXT = Extractor("t", "text", 3, Text(), {}, np.asarray)
ROWS = tuple(
    Row(
        str(number),
        {"audio": "a.wav", "visual": "", "text": "x", **({"text_2": "y"} if number == 1 else {})},
        "",
        split,
        {},
    )
    for number, split in enumerate(["train", "train", "test"])
)
MANIFEST = Manifest("m.csv", ROWS, ())


def plan(*extractors, manifest=MANIFEST, shard=(0, 1), sequence=False):
    return ExtractionPlan(manifest, Path("f.h5"), extractors, shard=shard, sequence=sequence)


def test_a_shard_has_every_nth_row():
    assert [row.id for row in plan(AUDIO, shard=(1, 2)).rows] == ["1"]
    assert [row.id for row in plan(AUDIO, shard=(0, 2)).rows] == ["0", "2"]


def test_further_texts_have_the_extractor_of_text():
    by_modality = plan(AUDIO, TEXT).by_modality
    assert list(by_modality) == ["audio", "text", "text_2"]
    assert by_modality["text_2"] == replace(TEXT, modality="text_2")


@pytest.mark.parametrize(
    "changed", [replace(AUDIO, parameters={"hop": 2}), replace(AUDIO, minimum_seconds=1.0), replace(AUDIO, name="b")]
)
def test_settings_change_with_whatever_determines_the_values(changed):
    assert plan(AUDIO).settings == plan(replace(AUDIO, batch_clips=3)).settings
    assert plan(AUDIO).settings != plan(changed).settings
    assert plan(AUDIO).settings != plan(AUDIO, sequence=True).settings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"extractors": (AUDIO,), "shard": (2, 2)}, "shard is 2/2"),
        ({"extractors": ()}, "at most one per modality"),
        ({"extractors": (AUDIO, AUDIO)}, "at most one per modality"),
        ({"extractors": (TEXT,), "manifest": replace(MANIFEST, rows=(replace(ROWS[0], media={}),))}, "has no text"),
    ],
)
def test_impossible_plans_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        plan(*arguments.pop("extractors"), **arguments)


def test_the_fingerprint_depends_on_the_content_of_a_manifest_alone():
    assert fingerprint(MANIFEST) == fingerprint(replace(MANIFEST, path="elsewhere.csv"))
    assert fingerprint(MANIFEST) != fingerprint(replace(MANIFEST, rows=ROWS[:2]))
    assert fingerprint(MANIFEST) != fingerprint(replace(MANIFEST, rows=(replace(ROWS[0], split="valid"), *ROWS[1:])))
