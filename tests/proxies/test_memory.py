import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.configuration.config import resolve
from aadml.configuration.overrides import with_setting
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses import LOSSES
from aadml.losses.contrastive import contrastive
from aadml.losses.supcon import supcon
from aadml.objective import Embedded, Objective
from aadml.objective.composition import Space, compose_objective
from aadml.proxies.contract import TrainingSet
from aadml.proxies.memory import Memory
from aadml.selections import SELECTIONS
from tests.sections import typed

SIZE, WIDTH, BATCH = 20, 3, 5
LABELS = torch.arange(SIZE) % 4
SIDES = ("audio", "visual")
seeds = st.integers(0, 2**32 - 1)


def vectors(seed, count=SIZE):
    generator = torch.Generator().manual_seed(seed)
    return {m: torch.randn(count, WIDTH, generator=generator, dtype=torch.float64) for m in SIDES}


def embedded(seed, rows, relation="label", groups=LABELS):
    points = {m: values.requires_grad_() for m, values in vectors(seed, len(rows)).items()}
    return Embedded(points, groups[rows], rows, relation=relation)


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def objective(memory, loss=contrastive, directions=("audio-visual", "visual-audio")):
    return Objective(loss, SELECTIONS["all"], memory, directions=directions)


def comparisons(memory, batch, directions=("audio-visual",)):
    made = objective(memory, directions=directions).eval()
    return made._extended(made.comparisons(batch), batch, memory, torch.Generator())


@settings(max_examples=10)
@given(seed=seeds, relation=st.sampled_from(["label", "id"]), direction=st.sampled_from(["audio-visual", "both-both"]))
def test_anchors_meet_the_batch_and_all_remembered_clips_that_are_not_in_it(seed, relation, direction):
    memory, bank = Memory(WIDTH, SIDES), vectors(seed)
    memory.refresh(TrainingSet(bank, LABELS))
    batch = embedded(seed + 1, torch.randperm(SIZE, generator=draws(seed))[:BATCH], relation)
    (found,) = comparisons(memory, batch, (direction,))
    (plain,) = objective(None, directions=(direction,)).comparisons(batch)
    rows, columns = (SIDES, SIDES) if direction == "both-both" else (SIDES[:1], SIDES[1:])
    count = BATCH * len(columns)
    for field in ("positives", "negatives", "within"):
        assert torch.equal(getattr(found, field)[:, :count], getattr(plain, field))
    assert torch.equal(found.candidates[:count], plain.candidates)
    assert torch.equal(found.own, plain.own)
    for a in range(BATCH * len(rows)):
        for at, column in enumerate(columns):
            for j in range(SIZE):
                place, outside = count + at * SIZE + j, j not in batch.index.tolist()
                same = LABELS[batch.index[a % BATCH]] == LABELS[j]
                assert torch.equal(found.candidates[place], bank[column][j])
                assert found.positives[a, place] == (relation == "label" and bool(same) and outside)
                assert found.negatives[a, place] == (bool(~same) and outside)
                assert found.within[a, place] == (rows[a // BATCH] == column)
                assert found.candidate_class[place] == LABELS[j]


@settings(max_examples=10)
@given(seed=seeds)
def test_of_a_memory_that_is_up_to_date_the_loss_is_that_of_the_whole_training_set_as_candidates(seed):
    bank, rows = vectors(seed), torch.randperm(SIZE, generator=draws(seed))[:BATCH]
    memory = Memory(WIDTH, SIDES)
    memory.refresh(TrainingSet(bank, LABELS))
    batch = Embedded({m: values[rows] for m, values in bank.items()}, LABELS[rows], rows)
    whole = Embedded(bank, LABELS, torch.arange(SIZE))
    (found,) = comparisons(memory, batch)
    (plain,) = objective(None, directions=("audio-visual",)).comparisons(whole)
    assert torch.allclose(supcon(found).total, supcon(plain.narrow(rows=rows)).total)


def test_what_is_remembered_carries_no_gradient_and_the_batch_does_unless_it_is_fixed():
    bank = {m: values.requires_grad_() for m, values in vectors(0).items()}
    for fixed in (False, True):
        memory = Memory(WIDTH, SIDES, batch="fixed" if fixed else "live")
        memory.refresh(TrainingSet(bank, LABELS))
        batch = embedded(1, torch.arange(BATCH))
        objective(memory, directions=("audio-visual",))(batch, draws())["loss"].backward()
        assert batch.vectors["audio"].grad.any()
        assert (batch.vectors["visual"].grad is None) is fixed
    assert all(values.grad is None for values in bank.values())


def test_a_queue_holds_the_last_embeddings_and_those_of_the_batch_count_among_them():
    memory = Memory(WIDTH, SIDES, size=12)
    made = objective(memory, directions=("audio-visual",))
    steps = [embedded(seed, torch.arange(SIZE)[BATCH * seed :][:BATCH]) for seed in range(4)]
    seen = []
    for batch in steps:
        (found,) = comparisons(memory, batch)
        past = torch.cat([one.vectors["visual"] for one in seen])[-(12 - BATCH) :] if seen else torch.zeros(0, WIDTH)
        assert torch.equal(found.candidates, torch.cat([batch.vectors["visual"], past]))
        made(batch, draws())
        seen.append(batch)
        kept = torch.cat([one.index for one in seen])[-12:]
        assert torch.equal(memory.remembered.index, kept)
        assert torch.equal(memory.remembered.groups, LABELS[kept])


def test_a_queue_begins_an_epoch_with_clips_by_lot_as_they_are_embedded_now():
    bank, memory = vectors(2), Memory(WIDTH, SIDES, size=8)
    memory.refresh(TrainingSet(bank, LABELS, None, draws(1)))
    first = memory.remembered
    assert len(first.index.unique()) == 8
    assert all(torch.equal(first.vectors[m], bank[m][first.index]) for m in SIDES)
    assert torch.equal(first.groups, LABELS[first.index])
    memory.refresh(TrainingSet(bank, LABELS, None, draws(2)))
    assert not torch.equal(memory.remembered.index, first.index)
    small = Memory(WIDTH, SIDES, size=100)
    small.refresh(TrainingSet(bank, LABELS, None, draws(1)))
    assert sorted(small.remembered.index.tolist()) == list(range(SIZE))


def test_a_queue_no_larger_than_the_batch_remembers_nothing_beside_it():
    memory, batch = Memory(WIDTH, SIDES, size=BATCH), embedded(0, torch.arange(BATCH))
    memory.refresh(TrainingSet(vectors(1), LABELS, None, draws()))
    (found,) = comparisons(memory, batch)
    assert torch.equal(found.candidates, batch.vectors["visual"])


def test_a_clip_of_the_batch_that_is_still_in_the_queue_is_no_candidate_twice():
    memory, batch = Memory(WIDTH, SIDES, size=100), embedded(0, torch.arange(BATCH))
    made = objective(memory)
    once = made(batch, draws())["loss"]
    torch.testing.assert_close(made(batch, draws())["loss"], once)


def test_held_out_batches_meet_nothing_that_is_remembered_and_are_not_remembered():
    memory, batch = Memory(WIDTH, SIDES, size=10), embedded(0, torch.arange(BATCH))
    made = objective(memory)
    assert torch.equal(made.without_proxy(batch, draws())["loss"], objective(None)(batch, draws())["loss"])
    made.eval()(batch, draws())
    assert memory.remembered is None


@pytest.mark.parametrize("name", [name for name in LOSSES if not isinstance(LOSSES[name], type)])
@pytest.mark.parametrize("relation", ["label", "id"])
def test_every_loss_that_owns_nothing_takes_it(name, relation):
    space = Space(SIDES, WIDTH, classes=4)
    made = compose_objective(space, **typed(loss=name, proxy="memory"), directions=("both-both",)).double()
    made.proxy.refresh(TrainingSet(vectors(0), LABELS))
    batch = embedded(1, torch.arange(BATCH), relation)
    made(batch, draws())["loss"].backward()
    assert all(torch.isfinite(values.grad).all() for values in batch.vectors.values())


def test_refuses_to_remember_nothing_and_what_is_no_vector():
    batch = embedded(0, torch.arange(BATCH))
    with pytest.raises(InputError, match="the memory is empty"):
        comparisons(Memory(WIDTH, SIDES), batch)
    with pytest.raises(
        InputError, match=r"proxy\.size: a queue begins with random clips, but the training set has no generator"
    ):
        Memory(WIDTH, SIDES, size=4).refresh(TrainingSet(vectors(0), LABELS))
    guided = Embedded(batch.vectors, batch.groups, batch.index, guides={"text": torch.eye(BATCH)})
    memory = Memory(WIDTH, SIDES)
    memory.refresh(TrainingSet(vectors(0), LABELS))
    with pytest.raises(InputError, match="has relevance scores or guides"):
        comparisons(memory, guided)
    with pytest.raises(InputError, match="daml needs"):
        objective(memory, LOSSES["daml"](features=WIDTH))(batch, draws())


def test_xbm_before_a_loss_names_it_and_options_of_another_proxy_are_left_behind():
    values = resolve({"loss": "aa-triplet", "proxy": {"k": 5}}).values
    config = resolve(with_setting(values, "loss", "xbm-hard-triplet"))
    assert config.section("proxy").name == "memory"
    assert config["proxy"] == {"name": "memory", "size": "all", "batch": "live"}
    assert config.label() == "xbm-hard-triplet"
    back = resolve(with_setting(config.values, "loss", "aa-triplet"))
    assert back.section("proxy").options.k == 3
    queue = resolve(with_setting(config.values, "proxy.size", 500))
    assert resolve(with_setting(queue.values, "loss", "xbm-contrastive"))["proxy"]["size"] == 500
