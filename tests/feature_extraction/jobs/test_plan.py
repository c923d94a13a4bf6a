import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aadml.feature_extraction.backbones import Extractor, mean_over_time
from aadml.feature_extraction.feature_file.content import PendingFit
from aadml.feature_extraction.frontends.whitening import PcaWhitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.plan import ExtractionPlan, fingerprint
from aadml.feature_extraction.manifest import Manifest, Row
from aadml.feature_extraction.media.decoding import decoder_versions
from aadml.feature_extraction.media.inputs import Limits, Sound, Text

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


WHITENING = PcaWhitening(2, eight_bit=True)


def plan(*extractors, manifest=MANIFEST, **options):
    return ExtractionPlan(manifest, Path("f.h5"), extractors, **options)


def test_a_plan_has_defaults():
    least = plan(AUDIO)
    assert (least.engine, least.workers, least.time_limit, least.shard) == ("local", None, 120.0, (0, 1))
    assert (least.limits, least.retry_failed, least.sequence, least.command) == (Limits(), False, False, "")
    assert plan(AUDIO, workers=1).workers == 1
    assert plan(TEXT, manifest=replace(MANIFEST, rows=())).rows == ()


def test_a_shard_leaves_its_fits_to_the_merge_and_keeps_features_over_time():
    fitted = replace(AUDIO, fit=WHITENING, pool=mean_over_time)
    assert plan(fitted).pending == plan(AUDIO, shard=(0, 2)).pending == {}
    assert plan(fitted, shard=(1, 2)).pending == {"audio": PendingFit("pca-whitening", 2, eight_bit=True)}
    assert [plan(AUDIO, sequence=kept).keeps_time(each) for kept in (False, True) for each in (AUDIO, fitted)] == [
        False, True, True, True,
    ]  # fmt: skip


def test_the_origin_of_features_has_all_that_determines_them():
    assert plan(replace(AUDIO, about={"by": "me"})).provenance == {
        "audio": {
            "extractor": "a", "dimension": 3, "parameters": {"hop": 1}, "about": {"by": "me"},
            "inputs": {"sample_rate": 8000, "seconds": None}, "decoder": decoder_versions(),
            "decoding": Sound(8000).edition, "limits": vars(Limits()),
        }
    }  # fmt: skip
    assert [*map(len, plan(AUDIO, TEXT).settings.values())] == [16, 16, 16]


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
        *(
            ({"extractors": (AUDIO,), "shard": (i, n)}, rf"shard is \({i}, {n}\); pass \(i, n\) with i from 0 to n-1$")
            for i, n in ((2, 2), (-1, 2), (0, 0))
        ),
        (
            {"extractors": (TEXT,), "manifest": replace(MANIFEST, rows=(replace(ROWS[0], media={}), *ROWS))},
            f"^m.csv has no text for the extractor {TEXT.name}; add a column text, caption or caption_1$",
        ),
        ({"extractors": (AUDIO,), "workers": 0}, "^the number of workers is 0; pass a number above zero$"),
        ({"extractors": (AUDIO,), "time_limit": 0.0}, "^time limit is 0 s; pass a number above zero"),
        (
            {"extractors": (replace(AUDIO, fit=WHITENING, pool=np.max),), "shard": (0, 2)},
            r"^a: its fit needs .*, and merging does not support this fit; extract all clips without shards$",
        ),
    ],
)
def test_impossible_plans_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        plan(*arguments.pop("extractors"), **arguments)


def test_the_fingerprint_depends_on_the_content_of_a_manifest_alone():
    assert fingerprint(MANIFEST) == fingerprint(replace(MANIFEST, path="elsewhere.csv"))
    assert fingerprint(MANIFEST) != fingerprint(replace(MANIFEST, rows=ROWS[:2]))
    rows = (replace(ROWS[0], label="x", columns={"b": "1", "a": "2"}, more_labels=("y",)), ROWS[1])
    text = '[["0", "x", "train", {"a": "2", "b": "1"}, "y"], ["1", "", "train", {}]]'
    assert fingerprint(replace(MANIFEST, rows=rows)) == hashlib.sha256(text.encode()).hexdigest()
    assert fingerprint(MANIFEST) != fingerprint(replace(MANIFEST, rows=(replace(ROWS[0], split="valid"), *ROWS[1:])))
