"""Every key of full configs with values that make no sense: refused in one line, or built and trained."""

import math
from collections.abc import Mapping

import pytest
import torch

from aadml.configuration.config import resolve
from aadml.configuration.overrides import with_setting
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.prepare import untrained_model
from tests.configuration.small_configs import SMALL, full, keys_of

WRONG = [None, -1, 0, 1e30, "x", [], {}, True, math.nan]
LOSSES = ("triplet-weighted", "contrastive", "n-pair", "angular", "supcon", "cross-clr", "daml", "hdml", "ranking")


@pytest.fixture(scope="module")
def splits():
    torch.set_num_threads(1)
    return to_splits(synthetic(classes=3, train=24, valid=9, test=9, dimensions=(5, 6), difficulty=0.2))


def numbers_of(value: object):
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from numbers_of(inner)
    elif isinstance(value, int | float):
        yield value


def try_all(config, keys, splits):
    """Put every wrong value into every key; return how many were tried, and how many were built and trained."""
    tried = trained = 0
    refusals: list[str] = []
    for key in keys:
        for wrong in WRONG:
            tried += 1
            try:
                found = resolve(with_setting(config.values, key, wrong))
                assert all(math.isfinite(number) and abs(number) < 1e19 for number in numbers_of(found.values)), key
                if found.values == config.values or key in ("data", "device"):
                    continue
                model = untrained_model(found, splits, torch.device("cpu"))
                if found["training"]["epochs"] > 1:  # the whole section was replaced
                    continue
                model.method.fit(model.scaling.clips(splits.train), model.scaling.clips(splits.valid))
                trained += 1
            except InputError as error:
                refusals.append(str(error))
            except Exception as error:
                raise AssertionError(f"{key}: {wrong!r} gives {type(error).__name__}: {error}") from error
    assert not [message for message in refusals if "\n" in message]
    return tried, trained


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", SMALL)
def test_wrong_values_are_refused_in_one_line_or_train(method, splits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = full(method)
    tried, trained = try_all(config, list(keys_of(config.values)), splits)
    assert tried >= 250
    assert trained < tried / 5
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", LOSSES)
def test_wrong_options_of_losses_are_refused_in_one_line_or_train(loss, splits):
    config = full("aadml", loss=loss)
    keys = [key for key in keys_of(config.values) if key.startswith(("loss.", "recipe", "selection."))]
    tried, trained = try_all(config, keys, splits)
    assert 0 <= trained < tried


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["audio-text", "3cmlf", "xie"])
def test_wrong_options_of_sound_and_captions_are_refused_in_one_line(method):
    config, refused = resolve({"method": method}), []
    keys = list(keys_of(config.values))
    for key in keys:
        for wrong in WRONG:
            try:
                found = resolve(with_setting(config.values, key, wrong))
            except InputError as error:
                refused.append(str(error))
                continue
            assert all(math.isfinite(number) for number in numbers_of(found.values)), key
    assert len(refused) > len(keys)
    assert not [message for message in refused if "\n" in message]


@pytest.mark.parametrize(("given", "written"), [(32, "[32]"), ("32,16", "[32, 16]"), ("32, 16", "[32, 16]")])
def test_a_list_that_is_not_written_as_one_is_shown_as_it_is_written(given, written):
    with pytest.raises(InputError) as refused:
        full("aadml", **{"network.hidden": given})
    assert str(refused.value).endswith(f", written as {written}")


@pytest.mark.parametrize("given", [0, "x", "32,x", -1, True, pytest.param("[" * 100_000, id="nested")])
def test_what_no_list_is_made_of_has_no_such_hint(given):
    with pytest.raises(InputError) as refused:
        full("aadml", **{"network.hidden": given})
    assert str(refused.value).endswith("from 1 to 65536")
