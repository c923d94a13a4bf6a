import numpy as np
import pytest

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.engines.decoding_workers import DecodedPart, Wanted
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.batching import Describer, wanted_of
from aadml.feature_extraction.media import Sound


def own(describe=None, **changes):
    settings = {"pool": np.asarray, "fit": None} | changes
    return Extractor("mine:own", "audio", 1, Sound(8000), {}, np.asarray, describe, **settings)


def run(values, batch_clips=2, fail=False, keeps_time=False, **changes):
    """The sizes of the described batches, and number, reason and description of each recorded part."""
    sizes, recorded = [], []

    def describe(prepared):
        sizes.append(len(prepared))
        return [array * 2 for array in prepared]

    def record(number, part, description):
        reason = f"{part.reason}: {part.detail}" if part.reason else ""
        recorded.append((number, reason, None if description is None else description.tolist()))

    extractors = {"audio": own(**{"describe": describe, "batch_clips": batch_clips, **changes})}
    with Describer(extractors, record, lambda _: keeps_time) as describer:
        for number, value in enumerate(values):
            describer.add(number, DecodedPart("audio", prepared=np.array([value])))
        if fail:
            raise LookupError
    return sizes, recorded


def test_full_batches_and_the_rest_are_described_in_order():
    sizes, recorded = run([1.0, 2.0, 3.0])
    assert sizes == [2, 1]
    assert recorded == [(0, "", [2.0]), (1, "", [4.0]), (2, "", [6.0])]


def test_a_description_that_is_not_finite_is_a_failure_of_its_clip():
    _, recorded = run([1.0, np.nan])
    assert recorded == [(0, "", [2.0]), (1, "corrupt: the features contain NaN or infinity", None)]
    assert run([1.0, 2.0], batch_clips=1)[0] == [1, 1]


@pytest.mark.parametrize(("describe", "keeps_time"), [(None, False), (None, True), (np.asarray, False)])
def test_a_worker_pools_if_no_network_and_no_features_over_time_follow(describe, keeps_time):
    extractor = Extractor("a", "audio", 3, Sound(8000), {}, np.asarray, describe, minimum_seconds=0.5)
    wanted = wanted_of(extractor, keeps_time=keeps_time)
    pool = extractor.pool if describe is None and not keeps_time else None
    assert wanted == Wanted(extractor.inputs, extractor.prepare, 0.5, pool)
    assert wanted_of(extractor) == wanted_of(extractor, keeps_time=False)


def test_the_rest_is_dropped_after_an_exception():
    with pytest.raises(LookupError):
        run([1.0], fail=True)


@pytest.mark.parametrize(("keeps_time", "kept"), [(False, [0.0]), (True, [2.0])])
@pytest.mark.parametrize("broken", [np.nan, np.inf, 1e300])
def test_pooled_features_that_are_not_finite_are_a_failure_of_their_clip(keeps_time, kept, broken):
    def pool(rows):
        return np.where(rows == 2, 0.0, broken)

    _, recorded = run([1.0, 3.0], keeps_time=keeps_time, pool=pool)
    assert recorded == [(0, "", kept), (1, "corrupt: the features contain NaN or infinity", None)]
    _, recorded = run([2.0, 3.0], keeps_time=keeps_time, pool=pool, describe=None)
    assert [reason[:7] for _, reason, _ in recorded] == (["", "corrupt"] if keeps_time else ["", ""])


def test_features_that_exceed_float32_are_a_failure():
    assert [reason[:7] for _, reason, _ in run([1.0, 1e300], describe=None)[1]] == ["", "corrupt"]


def test_the_features_before_a_fit_are_not_pooled_to_keep_them():
    _, recorded = run([1.0], keeps_time=True, fit="whitening", pool=lambda rows: 1 / 0)
    assert recorded == [(0, "", [2.0])]


def failing(clips):
    raise RuntimeError("no such layer")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"describe": failing},
            r"^mine:own fails on decoded clips \(RuntimeError: no such layer\); correct the extractor",
        ),
        ({"pool": failing}, r"^mine:own fails on decoded clips \(RuntimeError: no such layer\)"),
        ({"describe": lambda clips: []}, r"^mine:own fails on decoded clips \(ValueError: "),
    ],
)
def test_an_error_of_an_extractor_of_the_user_names_the_extractor(changes, message):
    with pytest.raises(InputError, match=message):
        run([1.0], **changes)
