"""Laws of every method, over the whole table: a new entry is covered the day it enters.

Sizes and schedules are those of the shipped configs, made small by SMALL and QUICK; a method that SMALL does not name
runs in its shipped size.
"""

import ast
import copy
import inspect
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.configuration.overrides import parse_setting, with_setting
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import schema
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.session import Checkpoint, Session
from aadml.model.files import build_method
from aadml.protocols.audit import Verdict, audit
from aadml.protocols.audit_checks import CHECKS
from aadml.protocols.pipelines import ProtocolPipeline
from aadml.protocols.protocol import Subject
from aadml.retrieval.evaluation import evaluate
from aadml.runs.prepare import untrained_model

# those that embed sound and captions, not vectors, have their laws in tests/methods/audio_text
ELSEWHERE = (
    "aadml.methods.audio_text",
    "aadml.methods.untrained.zero_shot",
)  # zero-shot wants features of one pretrained model
NAMES = sorted(name for name, build in METHODS.items() if not build.__module__.startswith(ELSEWHERE))
AUDITED = ("aadml", "pairs", "kcca", "tnn-c-cca", "acmr", "bic-net", "random")
"""One of each kind of learner, as an audit takes nine processes; of all methods
`test_an_item_is_embedded_without_regard_to_order_batch_partner_or_label` looks for the same leaks in this one."""
WITHOUT_DRAWS = {"cca", "c-cca", "kcca"}
OF_BATCH_CORRELATIONS = {"dcca", "c-dcca"}

QUICK = ("training.epochs=6", "training.batch=40", "training.learning_rate=2.0e-3")
SMALL = {
    "aadml": ["network.hidden=[32, 32]"],
    "cctl": ["network.hidden=[32, 32]"],
    "clip": ["method.hidden=[32]", "method.dimension=16"],
    "pairs": ["network.hidden=[32]", "method.dimension=16", "method.average=0.5"],
    "few-labels": ["network.hidden=[32]", "network.input_noise=0.0", "training.learning_rate=1.0e-2"],
    "dcil": ["method.hidden=[32]", "method.dimension=16"],
    "dcca": ["method.outputs=10"],
    "c-dcca": ["method.outputs=10", "method.hidden=[32]"],
    "tnn-c-cca": ["method.hidden=[32]"],
    "vae-cca": ["method.hidden=32", "method.inner=16", "method.dimension=16"],
    "dscmr": ["method.hidden=[64]", "method.dimension=32"],
    "agah": ["method.hidden=[64, 32]", "method.dimension=16"],
    "bic-net": ["method.hidden=[32]", "method.dimension=32", "method.tokens=4", "method.depth=1"],
    "eics": ["method.hidden=[32]", "method.explicit=16", "network.hidden=[32, 32]"],
    "tlca": ["network.hidden=[32, 32]"],
    "video-adviser-lite": ["method.hidden=[32]", "network.hidden=[32, 32]"],
    "msnsca": ["method.visual_hidden=64", "method.width=64"],
}


@cache
def splits():
    return to_splits(synthetic(classes=4, train=80, valid=24, test=60, dimensions=(24, 40), difficulty=0.0, seed=3))


def config(name, *settings):
    values = open_config(name.replace("-", "_")).values
    for setting in settings:
        values = with_setting(values, *parse_setting(setting))
    return resolve(values)


def built(name, *settings, data=None, seed=0):
    complete = config(name, *QUICK, *SMALL.get(name, ()), f"seed={seed}", *settings)
    return untrained_model(complete, data or splits(), torch.device("cpu"))


def fit(encoder, data=None, session=None):
    data = data or splits()
    encoder.method.fit(encoder.scaling.clips(data.train), encoder.scaling.clips(data.valid), session)
    return encoder


@cache
def fitted(name, seed=0):
    return fit(built(name, seed=seed))


def embeddings(encoder, clips):
    return {m: encoder.embed_features(clips[m], m) for m in clips.modalities}


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


class KilledError(Exception):
    pass


class Recorder(Session):
    """Keeps the state of every epoch; dies after one of them, as a killed process would."""

    def __init__(self, die_after=None, state=None, best=None):
        super().__init__()
        self.die_after, self.state, self._best = die_after, state, best

    def save(self, checkpoint):
        self.state = Checkpoint(copy.deepcopy(dict(checkpoint.tensors)), dict(checkpoint.facts))
        if checkpoint.facts["epochs_done"] == self.die_after:
            raise KilledError

    def resume(self):
        return self.state


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_the_shipped_config_names_the_method_and_runs_one_step_as_it_is(name):
    complete = config(name, "training.epochs=1", "training.batch=110")
    assert complete.method == name
    encoder = fit(untrained_model(complete, splits(), torch.device("cpu")))
    for vectors in embeddings(encoder, splits().test).values():
        assert torch.isfinite(vectors).all()


def test_refuses_features_that_are_made_batch_by_batch_before_anything_is_trained(name):
    complete = config(name, *QUICK, *SMALL.get(name, ()))
    context = Context({"audio": 0, "visual": 40}, 4, clips=80)
    with pytest.raises(InputError, match="needs vectors"):  # the random baseline says so once it is asked
        build_method(name, complete.arguments(), complete.training, context).embed(object(), "audio")


@pytest.mark.slow
def test_what_is_built_for_all_clips_trains_on_some_of_them_as_a_forecast_does(name):
    some = splits().having("train", splits().train.select(torch.arange(10, 70)))
    encoder = fit(built(name, "training.epochs=1"), some)
    for vectors in embeddings(encoder, splits().test).values():
        assert torch.isfinite(vectors).all()


def test_a_method_never_imports_another(name):
    source = Path(inspect.getfile(inspect.unwrap(METHODS[name]))).read_text(encoding="utf-8")
    others = {build.__module__ for build in METHODS.values()} - {METHODS[name].__module__}
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert not imported & others


def test_every_option_is_documented(name):
    assert all(option.sentence for option in schema(METHODS[name]).values())


def test_same_seed_same_bytes_whatever_was_drawn_before_and_draws_after_are_left_alone(name):
    before = {m: features.clone() for m, features in splits().train.features.items()}
    fitted(name)
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    again = fit(built(name))
    assert torch.equal(torch.rand(3), expected)
    assert equal(again.method.state(), fitted(name).method.state())
    assert equal(embeddings(again, splits().test), embeddings(fitted(name), splits().test))
    assert equal(before, dict(splits().train.features))


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT_DRAWS))
def test_another_seed_other_embeddings(name):
    one, other = (embeddings(fit(built(name, "training.epochs=1", seed=seed)), splits().test) for seed in (0, 1))
    assert not any(torch.equal(one[m], other[m]) for m in one)


def test_what_was_fitted_is_all_in_the_state(name):
    fresh = built(name, seed=5)
    fresh.method.load({key: value.clone() for key, value in fitted(name).method.state().items()})
    assert fresh.method.similarity == fitted(name).method.similarity
    assert equal(embeddings(fresh, splits().test), embeddings(fitted(name), splits().test))


@pytest.mark.parametrize(
    "killed_after", [1, pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(4, marks=pytest.mark.slow)]
)
def test_a_killed_training_ends_in_the_same_bytes(name, killed_after):
    session = Recorder(die_after=killed_after)
    try:
        fit(built(name), session=session)
    except KilledError:
        encoder = fit(built(name), session=Recorder(state=session.state, best=session.best()))
        assert equal(encoder.method.state(), fitted(name).method.state())
    else:
        # a closed form has no epochs to be killed between
        assert session.state is None


def test_an_item_is_embedded_without_regard_to_order_batch_partner_or_label(name):
    encoder, test = fitted(name), splits().test
    whole = encoder.embed_clips(test).vectors
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(test), generator=generator)
    garbage = replace(test, labels=torch.randint(0, 4, (len(test),), generator=generator))
    for modality in test.modalities:
        near = {"atol": 1e-5, "rtol": 1e-4}
        shuffled = encoder.embed_clips(test.select(order)).vectors[modality]
        torch.testing.assert_close(shuffled, whole[modality][order], **near)
        one_by_one = torch.cat([encoder.embed_features(row[None], modality) for row in test.matrix(modality)])
        torch.testing.assert_close(one_by_one, whole[modality], **near)
        noise = {m: f if m == modality else 100 * torch.randn_like(f) for m, f in test.features.items()}
        with_noise = encoder.embed_clips(replace(test, features=noise)).vectors[modality]
        torch.testing.assert_close(with_noise, whole[modality], **near)
        torch.testing.assert_close(encoder.embed_clips(garbage).vectors[modality], whole[modality], **near)
        alone = encoder.embed_clips(replace(test, features={modality: test[modality]})).vectors
        assert list(alone) == [modality]
        torch.testing.assert_close(alone[modality], whole[modality], **near)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in AUDITED else pytest.mark.slow) for name in NAMES]
)
def test_the_audit_passes_every_check(name):
    def never(changed):
        raise AssertionError("an honest protocol trains once")

    pipeline = ProtocolPipeline(Subject(fitted(name), splits(), never), "inductive")
    findings = audit(pipeline, splits(), CHECKS)
    assert [(one.check, one.evidence) for one in findings if one.failed] == []
    assert sum(one.verdict is Verdict.PASS for one in findings) >= 9


def test_embeddings_are_float32_and_as_wide_as_the_config_says(name):
    for vectors in embeddings(fitted(name), splits().test).values():
        assert vectors.dtype == torch.float32
        assert vectors.device.type == "cpu"
        wanted = config(name, *SMALL.get(name, ()))["method"].get("dimension")
        assert wanted is None or vectors.shape[1] == wanted
        assert not vectors.requires_grad


def test_parameters_are_counted(name):
    assert fitted(name).method.parameters_count() > 0 or name == "random"


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"random"}))
def test_a_few_epochs_retrieve_far_better_than_chance(name):
    result = evaluate(fitted(name).embed_clips(splits().test)).to_json()
    assert result["map_mean"] > result["chance"] + 0.15


def test_the_random_baseline_is_at_chance():
    scores = [evaluate(fitted("random", seed).embed_clips(splits().test)).to_json() for seed in range(20)]
    mean = sum(score["map_mean"] for score in scores) / len(scores)
    assert mean == pytest.approx(scores[0]["chance"], abs=0.015)


def with_train(**changed):
    return replace(splits(), train=replace(splits().train, **changed))


def fewer_clips_than_dimensions():
    return replace(splits(), train=splits().train.select(torch.arange(12)))


def constant_columns():
    features = {m: f.clone() for m, f in splits().train.features.items()}
    for values in features.values():
        values[:, :3] = torch.tensor([0.0, 1.0, -1e3])
    return with_train(features=features)


def one_class():
    return with_train(labels=torch.zeros_like(splits().train.labels))


def equal_clips():
    features = {m: f[:1].expand_as(f).clone() for m, f in splits().train.features.items()}
    return with_train(features=features)


@pytest.mark.parametrize("awkward", [fewer_clips_than_dimensions, constant_columns, one_class, equal_clips])
def test_embeddings_stay_finite_on_awkward_training_clips(name, awkward):
    data = awkward()
    encoder = fit(built(name, "training.epochs=2", data=data), data)
    assert all(torch.isfinite(value).all() for value in encoder.method.state().values())
    for vectors in embeddings(encoder, data.test).values():
        assert torch.isfinite(vectors).all()


def test_tiny_batches_are_learned_from_or_refused(name):
    data = fewer_clips_than_dimensions()
    # most batches of 3 hold one class alone
    labels = torch.tensor([1, 2] + 10 * [0])
    data = replace(data, train=replace(data.train, labels=labels))
    if name in OF_BATCH_CORRELATIONS:
        with pytest.raises(InputError, match=r"training\.batch"):
            built(name, "training.batch=3", data=data)
        return
    encoder = fit(built(name, "training.epochs=2", "training.batch=3", data=data), data)
    for vectors in embeddings(encoder, data.test).values():
        assert torch.isfinite(vectors).all()
