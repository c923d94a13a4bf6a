import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.losses.triplet import triplet
from aadml.objective import Embedded, Objective
from aadml.proxies.contract import Direction
from aadml.proxies.expansion import Expansion
from aadml.selections import SELECTIONS

BATCH, WIDTH = 7, 3
SIDES = ("audio", "visual")
NOT_USED = (SIDES[:1], SIDES[1:], torch.arange(0))  # modalities of both sides and rows in the training set


def batch(seed, classes=3):
    generator = torch.Generator().manual_seed(seed)
    x = {m: torch.randn(BATCH, WIDTH, generator=generator, dtype=torch.float64).requires_grad_() for m in SIDES}
    return Embedded(x, torch.arange(BATCH) % classes, torch.arange(BATCH))


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def objective(proxy, selection="all"):
    return Objective(triplet, SELECTIONS[selection], proxy, directions=("audio-visual",))


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), points=st.integers(1, 3))
def test_made_up_negatives_lie_at_even_steps_between_two_of_a_class_and_are_nobodys_positive(seed, points):
    given_batch = batch(seed)
    (plain,) = objective(None).comparisons(given_batch)
    found = Expansion(WIDTH, SIDES, points=points).extend(
        plain, Direction(*NOT_USED, by_id=False, generator=draws(seed))
    )
    y, labels = given_batch.vectors["visual"].detach(), given_batch.groups
    assert torch.equal(found.candidates[:BATCH], y)
    assert torch.equal(found.positives[:, :BATCH], plain.positives)
    assert len(found.candidates) == BATCH * (1 + points)
    assert not found.positives[:, BATCH:].any()
    for place, point in enumerate(found.candidates[BATCH:].detach()):
        step, j = place // BATCH + 1, place % BATCH
        share = step / (points + 1)
        partners = [i for i in range(BATCH) if i != j and labels[i] == labels[j]] or [j]
        assert any(torch.allclose(point, share * y[j] + (1 - share) * y[i]) for i in partners)
        assert torch.equal(found.negatives[:, BATCH + place], labels != labels[j])


def test_the_hardest_negative_is_never_farther_than_without_and_both_ends_are_moved():
    given_batch = batch(1)
    plain = objective(None, "batch-hard")(given_batch, draws())["loss"]
    harder = objective(Expansion(WIDTH, SIDES, points=8), "batch-hard")(given_batch, draws())["loss"]
    assert harder > plain
    harder.backward()
    assert given_batch.vectors["visual"].grad.any()


def test_of_clips_alone_in_their_class_what_is_made_up_is_the_clip_itself():
    (plain,) = objective(None).comparisons(batch(2, classes=BATCH))
    found = Expansion(WIDTH, SIDES).extend(plain, Direction(*NOT_USED, by_id=False, generator=draws()))
    torch.testing.assert_close(found.candidates, plain.candidates.repeat(3, 1))
