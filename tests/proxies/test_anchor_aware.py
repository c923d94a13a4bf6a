import itertools

import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, keywords, schema
from aadml.feature_extraction.ground.validation import checked_options
from aadml.proxies import PROXIES
from aadml.proxies.anchor_aware import AnchorAware, degeneracy
from aadml.proxies.contract import TrainingSet
from aadml.proxies.graph import neighbors

MODALITIES = ("audio", "visual")
COUNT, DIMENSION, CLASSES = 60, 6, 4
LABELS = torch.arange(COUNT) % CLASSES
INDEX = torch.tensor([3, 50, 7, 22, 41, 12, 0, 59])


def bank(seed=0, modalities=MODALITIES):
    generator = torch.Generator().manual_seed(seed)
    return {m: torch.randn(COUNT, DIMENSION, generator=generator, dtype=torch.float64) for m in modalities}


def batch(seed=5):
    """Embeddings of the batch: not those of the bank, as after some steps of an epoch."""
    return {m: vectors[INDEX].clone().requires_grad_() for m, vectors in bank(seed).items()}


def built(modalities=MODALITIES, **options) -> AnchorAware:
    checked = checked_options(AnchorAware, OptionValues(**options), "proxy")
    return AnchorAware(DIMENSION, modalities, **keywords(AnchorAware, checked))


def ready(*, labels=LABELS, **options) -> AnchorAware:
    torch.manual_seed(0)
    proxy = built(**options).double()
    inputs = {"audio": bank(8)["audio"][:, :3], "visual": bank(9)["visual"]}
    proxy.refresh(TrainingSet(bank(), labels, inputs, torch.Generator().manual_seed(1)))
    return proxy


def encode(modality, rows):
    return 2 * bank()[modality][rows]


def softmax_pooling(attention, query, keys):
    """Equations 5 and 6 with one head and a joint softmax over the rows of `keys`."""
    weights = torch.softmax(attention.key(keys) @ attention.query(query) / DIMENSION**0.5, 0)
    return attention.output(weights @ attention.value(keys))


def test_the_default_is_the_decided_one():
    defaults = {name: option.default for name, option in schema(AnchorAware).items()}
    decided = {"reading": "R6", "query": "self", "residual": "add", "aa_on": "all", "aa_mix": 0.5, "k": 3}
    decided |= {"heads": "auto", "attention": "mha", "neighbors": "nearest", "live": False, "space": "embedding"}
    assert decided.items() <= defaults.items()


@pytest.mark.parametrize("reading", ["R3", "R6"])
@pytest.mark.parametrize("query", ["self", "partner"])
def test_a_proxy_is_the_anchor_plus_attention_over_its_nearest_of_the_same_class(reading, query):
    proxy, embeddings = ready(reading=reading, query=query, heads=1), batch()
    proxies = proxy(embeddings, INDEX)
    for modality, other in (MODALITIES, MODALITIES[::-1]):
        lists = neighbors(bank()[modality], k=3, labels=LABELS)
        for i, row in enumerate(INDEX.tolist()):
            x, keys = embeddings[modality][i], bank()[modality][lists.index[row]]
            keys = torch.cat([x[None], keys]) if reading == "R6" else keys
            asking = embeddings[other if query == "partner" else modality][i]
            expected = x + softmax_pooling(proxy.attentions[modality], asking, keys)
            torch.testing.assert_close(proxies[modality][i], expected)


def test_residuals_combine_anchor_and_attention():
    embeddings = batch()
    alone = ready(residual="none")(embeddings, INDEX)
    added = ready(residual="add")(embeddings, INDEX)
    convex = ready(residual="convex")(embeddings, INDEX)
    for m in MODALITIES:
        torch.testing.assert_close(added[m], embeddings[m] + alone[m])
        torch.testing.assert_close(convex[m], 0.5 * embeddings[m] + 0.5 * alone[m])


@pytest.mark.parametrize("reading", ["R1", "R3", "R5", "R6"])
def test_with_residual_and_zero_output_projection_a_proxy_is_its_anchor(reading):
    proxy, embeddings = ready(reading=reading), batch()
    for attention in proxy.attentions.values():
        torch.nn.init.zeros_(attention.output.weight)
    proxies = proxy(embeddings, INDEX)
    assert all(torch.equal(proxies[m], embeddings[m]) for m in MODALITIES)


def test_r1_depends_neither_on_k_nor_on_the_graph():
    embeddings = batch()
    one, seven = ready(reading="R1", k=1), ready(reading="R1", k=7, space="input")
    seven.load_state_dict(one.state_dict())
    seven.refresh(TrainingSet(bank(3), LABELS.flip(0), bank(4)))
    a, b = one(embeddings, INDEX), seven(embeddings, INDEX)
    for m in MODALITIES:
        torch.testing.assert_close(a[m], b[m])


def test_r3_on_a_detached_bank_without_residual_reaches_the_encoder_through_the_weights_alone():
    proxy, embeddings = ready(reading="R3", residual="none"), batch()
    sum(p.square().sum() for p in proxy(embeddings, INDEX).values()).backward()
    assert all(float(embeddings[m].grad.abs().max()) > 0 for m in MODALITIES)
    one_key = ready(reading="R3", residual="none", k=1)  # one key: the weights are constant, and nothing is left
    embeddings = batch()
    sum(p.square().sum() for p in one_key(embeddings, INDEX).values()).backward()
    assert all(float(embeddings[m].grad.abs().max()) == 0 for m in MODALITIES)


def test_only_live_neighbors_carry_gradient():
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    rows_asked = []

    def encoded(modality, rows):
        rows_asked.append(rows)
        return weight * bank()[modality][rows]

    proxy = ready(live=True)
    proxies = proxy(batch(), INDEX, encoded)
    sum(p.square().sum() for p in proxies.values()).backward()
    assert float(weight.grad.abs()) > 0
    assert all(len(rows.unique()) == len(rows) for rows in rows_asked)
    frozen = ready(live=False)
    frozen.load_state_dict(proxy.state_dict())
    for m, expected in frozen(batch(), INDEX).items():
        torch.testing.assert_close(proxies[m], expected)


def test_live_neighbors_need_an_encoder():
    with pytest.raises(InputError, match=r"proxy\.live: live neighbors need an encoder"):
        ready(live=True)(batch(), INDEX)


def test_an_anchor_without_neighbors_stands_for_itself():
    labels = torch.cat([torch.tensor([1]), torch.zeros(COUNT - 1, dtype=torch.int64)])
    embeddings = {m: v[:2] for m, v in bank(5).items()}
    for reading, residual in itertools.product(["R3", "R5"], ["none", "add", "convex"]):
        found = ready(labels=labels, reading=reading, residual=residual)(embeddings, torch.tensor([0, 1]))
        assert torch.equal(found["audio"][0], embeddings["audio"][0])
        assert not torch.equal(found["audio"][1], embeddings["audio"][1])


def test_proxies_do_not_depend_on_the_order_or_the_rest_of_the_batch():
    proxy, embeddings = ready(), batch()
    whole = proxy(embeddings, INDEX)
    order = torch.tensor([6, 2, 0])
    part = proxy({m: e[order] for m, e in embeddings.items()}, INDEX[order])
    for m in MODALITIES:
        torch.testing.assert_close(part[m], whole[m][order])


def test_state_holds_parameters_and_neither_bank_nor_lists():
    proxy = ready()
    assert set(proxy.state_dict()) == {name for name, _ in proxy.named_parameters()}
    fresh = AnchorAware(DIMENSION, MODALITIES).double()
    fresh.load_state_dict(proxy.state_dict())
    fresh.refresh(TrainingSet(bank(), LABELS))
    embeddings = batch()
    for m, expected in proxy(embeddings, INDEX).items():
        assert torch.equal(fresh(embeddings, INDEX)[m], expected)


def test_a_partner_query_is_refused_in_evaluation():
    proxy = ready(query="partner").eval()
    with pytest.raises(InputError, match="for training only"):
        proxy(batch(), INDEX)
    proxy.train()(batch(), INDEX)


@pytest.mark.parametrize("options", [{}, {"query": "partner"}])
def test_from_bank_sees_each_item_alone_and_no_label(options):
    proxy, other = ready(**options).eval(), ready(labels=LABELS.flip(0), **options).eval()
    vectors = bank(7)["audio"]
    found = proxy.from_bank(vectors, "audio")
    assert not found.requires_grad
    assert torch.equal(found, other.from_bank(vectors, "audio"))
    for i in (0, 33):
        torch.testing.assert_close(proxy.from_bank(vectors[i : i + 1], "audio")[0], found[i])


def test_from_bank_asks_the_nearest_of_the_own_modality_with_the_item():
    proxy = ready(reading="R3", heads=1, query="partner", neighbors="random").eval()
    vector = bank(7)["visual"][0]
    nearest = torch.cosine_similarity(vector[None], bank()["visual"]).topk(5).indices
    expected = vector + softmax_pooling(proxy.attentions["visual"], vector, bank()["visual"][nearest])
    torch.testing.assert_close(proxy.from_bank(vector[None], "visual", k=5)[0], expected)


def test_from_bank_needs_a_bank_and_one_item_at_a_time():
    with pytest.raises(InputError, match="no bank yet"):
        AnchorAware(DIMENSION, MODALITIES).from_bank(torch.ones(1, DIMENSION), "audio")
    with pytest.raises(InputError, match="R5 mixes the items of a batch"):
        ready(reading="R5").from_bank(bank()["audio"], "audio")
    proxy = AnchorAware(DIMENSION, MODALITIES).double()
    proxy.remember(bank())
    assert proxy.from_bank(bank(7)["audio"], "audio").shape == (COUNT, DIMENSION)


def test_a_bank_in_another_precision_follows_the_batch():
    proxy = ready().float()
    embeddings = {m: e.detach().to(torch.float32) for m, e in batch().items()}
    assert proxy(embeddings, INDEX)["audio"].dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = proxy({m: e.to(torch.bfloat16) for m, e in embeddings.items()}, INDEX)
    assert all(bool(torch.isfinite(p).all()) for p in half.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reading": "R7"}, r'proxy.reading is "R7"; pass one of R1, R3, R5, R6'),
        ({"query": "partners"}, "one of self, partner"),
        ({"residual": "sum"}, "proxy.residual"),
        ({"aa_mix": -0.1}, "proxy.aa_mix"),
        ({"aa_on": "anchors"}, "one of all, anchor, reference"),
        ({"k": 0}, "proxy.k is 0"),
        ({"k": 2.5}, "proxy.k is 2.5; pass a whole number from 1"),
        ({"space": "inputs"}, "one of embedding, input"),
        ({"heads": 4}, "4 heads do not divide 6 dimensions; choose from 1, 2, 3, 6, or auto"),
        ({"space": "input", "graph_modality": "cross"}, "proxy.graph_modality: cross"),
    ],
)
def test_impossible_values_are_answered_with_the_possible_ones(options, message):
    with pytest.raises(InputError, match=message):
        built(**options)


@pytest.mark.parametrize("options", [{"query": "partner"}, {"graph_modality": "cross"}])
def test_a_choice_across_modalities_needs_two(options):
    with pytest.raises(InputError, match="two modalities, but the data have 1; choose "):
        built(("audio",), **options)


REMOVED = [
    ("symmetrize", False, True),
    ("shared_lists", False, True),
    ("shared", False, True),
    ("values", "own", "other"),
    ("pairs", "neighbors", "clique"),
    ("scope", "bank", "batch"),
    ("similarity", "cosine", "dot"),
    ("width", None, 20),
    ("attention_dropout", 0.0, 0.1),
    ("same_class", True, False),
    ("residual_weight", 0.5, 0.3),
]


@pytest.mark.parametrize(("name", "kept", "other"), REMOVED)
def test_a_removed_option_is_accepted_at_the_value_that_is_implemented_alone(name, kept, other):
    assert checked_options(AnchorAware, OptionValues(**{name: kept}), "proxy") == checked_options(
        AnchorAware, OptionValues(), "proxy"
    )
    with pytest.raises(InputError, match=rf"proxy\.{name} is .*, but this option of anchor-aware was removed"):
        checked_options(AnchorAware, OptionValues(**{name: other}), "proxy", name="anchor-aware")


def test_misspelt_options_are_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"proxy.redaing: .*did you mean 'reading'"):
        checked_options(PROXIES["anchor-aware"], OptionValues(redaing="R3"), "proxy")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reading": "R1"}, "affine map of the anchor"),
        ({"reading": "R3", "k": 1, "residual": "none", "aa_mix": 1.0}, "does not train the encoders"),
        ({"reading": "R5"}, "whole batch"),
        ({"aa_mix": 0.0}, "does not use the proxies"),
    ],
)
def test_degenerate_options_have_a_sentence(options, words):
    assert words in degeneracy(OptionValues(**options))


@pytest.mark.parametrize("options", [{}, {"reading": "R3"}, {"reading": "R3", "residual": "none", "live": True}])
def test_other_options_have_none(options):
    assert degeneracy(OptionValues(**options)) is None
