"""No option is silent: what was changed acts, is refused, or is said to change nothing; over all tables."""

import random
from collections.abc import Mapping
from functools import cache
from itertools import islice
from types import SimpleNamespace
from typing import Annotated, Literal, get_args, get_origin

import pytest
import torch

from aadml.configuration.config import FIXED, resolve
from aadml.configuration.files import open_config
from aadml.configuration.overrides import with_setting
from aadml.configuration.presets import configs_folder
from aadml.configuration.unused_options import idle_options
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Choice
from aadml.feature_extraction.ground.options import idle, schema
from aadml.feature_extraction.ground.validation import checked
from aadml.losses import LABEL_LOSSES, LOSSES
from aadml.methods import METHODS
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training
from aadml.objective.sections import EntrySection
from aadml.proxies import PROXIES
from aadml.runs.config_warnings import config_warnings, training_warnings
from aadml.runs.prepare import prepare
from aadml.runs.train import fit_model
from aadml.selections import SELECTIONS
from tests.configuration.small_configs import SMALL, full
from tests.configuration.test_option_laws import ENTRIES
from tests.methods.trainings import Scripted, run
from tests.option_leaves import leaves
from tests.sections import UNNAMED

MARKED = {f"{name}: {key}": (entry, key) for name, entry in ENTRIES.items() for key, one in schema(entry).items()
          if one.conditions}  # fmt: skip
DATA_DECIDE = {
    "mask_same_id": "no two of these clips have one id",
    "combine": "of one direction, mean and sum are the same",
}
"""Options that act on other data, or in other company, than here."""


@pytest.mark.parametrize("place", MARKED)
def test_what_an_option_acts_with_is_possible(place):
    entry, key = MARKED[place]
    known = schema(entry)
    for condition in known[key].conditions:
        other = known[condition.option]
        assert all(checked(other.kind, value, other.name) == value for value in condition.values)


@pytest.mark.parametrize("place", MARKED)
def test_an_option_that_cannot_act_is_named_and_one_that_can_is_not(place):
    entry, key = MARKED[place]
    values = {name: option.default for name, option in schema(entry).items()}
    changed = next(iter(others(schema(entry)[key])))
    acting = values | {one.option: one.values[0] for one in schema(entry)[key].conditions}
    assert not [
        line for line in idle(entry, SimpleNamespace(**acting | {key: changed}), "x") if line.startswith(f"x.{key}=")
    ]
    for condition in schema(entry)[key].conditions:
        of_other = (value for value in others(schema(entry)[condition.option], every=True))
        wrong = next(value for value in of_other if value not in condition.values)
        (line,) = (
            line
            for line in idle(entry, SimpleNamespace(**acting | {key: changed, condition.option: wrong}), "x")
            if line.startswith(f"x.{key}=")
        )
        assert line.endswith(f"changes nothing: it has an effect only with {condition}, not {wrong}")


@pytest.mark.parametrize("path", sorted(configs_folder().glob("*.yaml")), ids=lambda path: path.stem)
def test_no_shipped_config_sets_what_cannot_act(path):
    assert not idle_options(resolve(open_config(path.stem).values))


@pytest.mark.parametrize(("method", "idle"), [("pairs", True), ("few-labels", False), ("aadml", False)])
def test_the_weight_of_a_loss_that_stands_alone_is_said_to_change_nothing(method, idle):
    said = f"loss.weight=0.5 changes nothing: it has an effect only with a second loss, and {method} has one loss"
    assert (said in idle_options(full(method, **{"loss.weight": 0.5}))) == idle
    assert said not in idle_options(full(method))


@pytest.mark.parametrize("weight", [0, 1])
def test_parts_of_a_loss_without_weight_are_said_to_change_nothing(weight):
    changed = full("aadml", **{"loss.weight": weight, "proxy.name": "anchor-aware", "selection.name": "hardest"})
    lines = [f"{key} changes nothing: it belongs to the loss, and loss.weight is 0" for key in ("selection", "proxy")]
    assert set(lines) & set(idle_options(changed)) == (set() if weight else set(lines))


@pytest.mark.parametrize(
    ("changes", "unread"),
    [
        ({"selection.name": "hardest"}, "selection.name=hardest"),
        ({"selection.name": "one-pair-a-class"}, None),
        ({"selection.name": "all"}, None),
        ({"selection.name": "all", "proxy.aa_on": "reference"}, "proxy.aa_on=reference"),
        ({"selection.name": "all", "proxy.aa_on": "anchor"}, None),
    ],
)
def test_what_changes_only_candidates_is_said_to_change_nothing_where_none_are_read(changes, unread):
    for name in ("arcface", "triplet"):
        lines = [line for line in idle_options(full("aadml", **{"loss.name": name, **changes})) if "candidates" in line]
        said = f"{unread} changes nothing: the loss arcface compares anchors with class proxies, not with candidates"
        assert lines == ([said] if unread and name == "arcface" else [])


def others(option, *, every=False):
    """Give values of an option that are not its default; `every` gives its default too."""
    found = [value for kind, metadata in leaves(option.kind) for value in _values(kind, metadata, option.default)]
    if get_origin(_plain(option.kind)) is tuple:
        found = [_longer(option.default)] if option.default else []
    for value in found:
        try:
            known = checked(option.kind, value, option.name)
        except InputError:
            continue
        if every or known != option.default:
            yield known


def _plain(kind):
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _longer(default):
    numbers = all(isinstance(one, int | float) for one in default)
    return [one / 2 if isinstance(one, float) else one + 2 for one in default] if numbers else default[:1]


def _values(kind, metadata, default):
    choice = next((one.names for one in metadata if isinstance(one, Choice)), None)
    if choice or get_origin(kind) is Literal:
        return list(choice or get_args(kind))
    known = default if isinstance(default, int | float) and not isinstance(default, bool) else 0
    return {
        bool: [True, False],
        int: [1, 2, 3, 4, known + 1],
        float: [known / 2, 2 * known, 0.3, 0.01, 0.9, 2.0],
        type(None): [None],
        str: ["recall@2"],
    }.get(kind, [])


@cache
def splits():
    return to_splits(synthetic(classes=3, train=40, valid=15, test=15, dimensions=(5, 6), difficulty=0.2))


def outcome(config):
    """Train; give all that comes out, and what is said of the config."""
    torch.set_num_threads(1)
    prepared, session = prepare(config, splits()), Session()
    model = fit_model(prepared, session)
    log = [{key: value for key, value in record.items() if key != "seconds"} for record in session.history]
    vectors = {m: model.embed_features(splits().test[m], m).numpy().tobytes() for m in splits().test.modalities}
    state = {key: value.numpy().tobytes() for key, value in model.method.state().items()}
    return (repr(log), vectors, state), {*config_warnings(config), *training_warnings(prepared)}


def options_of(config):
    """List the options of a config's sections: (dotted key, option), without the names of entries."""
    found = [("method", METHODS[config.method]), *FIXED.items()]
    for key, section in vars(config.sections).items():
        if isinstance(section, EntrySection):
            found += [(key, entry) for entry in (section.entry, *section.groups)]
        elif key in UNNAMED:
            found.append((key, UNNAMED[key]))
    return [(f"{section}.{key}", option) for section, entry in found for key, option in schema(entry).items()]


def acts_or_is_named(config, key, option):
    """Tell whether an option, what it acts with being set, changes what comes out, is refused, or is named."""
    section, name = key.split(".")
    for condition in option.conditions:
        if _at(config.values, section, condition.option) not in condition.values:
            config = resolve(with_setting(config.values, f"{section}.{condition.option}", condition.values[0]))
    before, said = outcome(config)
    tried = [value for value in others(option, every=True) if value != _at(config.values, section, name)]
    for value in islice(tried, 4):
        try:
            after, more = outcome(resolve(with_setting(config.values, key, value)))
        except InputError:
            return True
        if after != before or any(key in line for line in more - said):
            return True
    return not tried


def _at(values, section, key):
    inner = values[section]
    assert isinstance(inner, Mapping)
    return inner[key]


def silent(config, keys):
    """List those options of a config that change nothing without a word."""
    return [key for key, one in options_of(config) if key in keys and not acts_or_is_named(config, key, one)]


def own_options(config):
    """Name the options of a config but those of the loop, which have a test of their own, and of other data."""
    return [key for key, _ in options_of(config) if not key.startswith("training.") and _name(key) not in DATA_DECIDE]


def _name(key):
    return key.partition(".")[2]


def ready(method, **changes):
    return full(method, **{"training.epochs": 2, "training.batch": 20, "training.learning_rate": 1e-2}, **changes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", SMALL)
def test_an_option_of_a_method_acts_is_refused_or_is_named(method):
    config = ready(method)
    assert not silent(config, random.Random(f"{method} 0").sample(own_options(config), 1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", SMALL)
def test_every_option_of_a_method_acts_is_refused_or_is_named(method):
    config = ready(method)
    assert not silent(config, own_options(config))


OF_OTHER_LEARNERS = {"precision", "drop_last", "compile"}
"""Keys of the loop that act on wider learners, on more batches, or on metric losses."""


@pytest.mark.parametrize("key", [key for key in schema(Training) if key not in OF_OTHER_LEARNERS])
def test_every_key_of_the_loop_acts(key):
    option = schema(Training)[key]
    base = {"epochs": 6, "batch": 8, "schedule_every": 1, "learning_rate": 0.05, "weight_decay": 0.1}
    base |= {one.option: one.values[0] for one in option.conditions}
    base |= {"optimizer": "sgd"} if key == "clip_norm" else {}  # Adam takes a gradient of any length alike
    tried = [value for value in others(option, every=True) if value != base.get(key, option.default)]
    assert tried
    before = _trained(**base)
    assert any(_trained(**base | {key: value}) != before for value in tried)


def _trained(**settings):
    settings |= {name: tuple(value) for name, value in settings.items() if isinstance(value, list)}
    learner, session = run(Training(**settings), learner=Scripted([0.1, 0.3, 0.2, 0.2, 0.1, 0.1, *[0.0] * 50]))
    log = [{key: value for key, value in record.items() if key != "seconds"} for record in session.history]
    return repr(log), {name: values.numpy().tobytes() for name, values in learner.state_dict().items()}


PARTS = {
    **{f"loss {name}": {"loss": name} for name in LOSSES},
    **{f"selection {name}": {"loss": "triplet", "selection": name} for name in SELECTIONS},
    **{f"proxy {name}": {"loss": "triplet", "proxy": name} for name in PROXIES},
    **{f"label_loss {name}": {"label_loss": name} for name in LABEL_LOSSES},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", PARTS)
def test_every_option_of_a_part_acts_is_refused_or_is_named(part):
    section = part.partition(" ")[0]
    changes = {"proxy": "identity", "selection": "all", "training.epochs": 6} | PARTS[part]
    try:
        config = resolve(with_settings(ready("aadml").values, changes))
        outcome(config)
    except InputError:
        return  # refused by this method, whatever its options are
    keys = [key for key in own_options(config) if key.startswith(f"{section}.")]
    assert not silent(config, keys)


def with_settings(values, changes):
    for key, value in changes.items():
        values = with_setting(values, key, value)
    return values
