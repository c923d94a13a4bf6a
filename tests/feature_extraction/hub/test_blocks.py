"""Which parts of a network are trained: those that run, or the last blocks with what follows them."""

import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.hub.blocks import train_only, trained_parts
from aadml.feature_extraction.hub.towers import open_tower
from tests.feature_extraction.hub.tiny import NETWORKS

FOLLOWS = {
    ("clap", "audio"): {"audio_model.audio_encoder.norm", "audio_projection.linear1", "audio_projection.linear2"},
    ("clap", "text"): {"text_model.pooler.dense", "text_projection.linear1", "text_projection.linear2"},
    ("clip", "visual"): {"vision_model.post_layernorm", "visual_projection"},
    ("whisper", "audio"): {"layer_norm"},
    ("siglip", "text"): {"final_layer_norm", "head"},
}
"""What runs after the last block, by the names of the library."""
BLOCKS = {("clap", "audio"): 4, ("clap fused", "audio"): 4}
"""Stages of a Swin; all other networks here have two blocks."""
TOWERS = [(name, modality) for name, (_, modalities) in NETWORKS.items() for modality in modalities]


@pytest.fixture
def tower(network):
    def opened(name, modality):
        found = open_tower(f"hf:{network(name)}", modality, torch.device("cpu")).encoder
        made = found.preparation
        return found, lambda: found.run([made.items(made.trial)])

    return opened


def trained(network):
    return {name.rpartition(".")[0] for name, weights in network.named_parameters() if weights.requires_grad}


@pytest.mark.parametrize(("name", "modality"), FOLLOWS)
def test_none_of_the_blocks_leaves_what_follows_them(tower, name, modality):
    found, run = tower(name, modality)
    train_only(found.run.network, trained_parts(found.run.network, run, 0))
    assert trained(found.run.network) == FOLLOWS[name, modality]


@pytest.mark.parametrize(("name", "modality"), TOWERS)
def test_more_blocks_move_more_numbers_and_nothing_else_has_a_gradient(tower, name, modality):
    found, run = tower(name, modality)
    network, made = found.run.network, found.preparation
    items = made.items(made.trial)
    batch = {key: torch.stack([torch.from_numpy(item[key]) for item in items]) for key in items[0]}
    counts = []
    for blocks in (0, 1, BLOCKS.get((name, modality), 2), "all"):
        train_only(network, trained_parts(network, run, blocks))
        network.zero_grad(set_to_none=True)
        vectors = found.run.pool(network, batch)
        if vectors.requires_grad:
            vectors.square().sum().backward()
        moved = {key for key, weights in network.named_parameters() if weights.grad is not None}
        wanted = {key for key, weights in network.named_parameters() if weights.requires_grad}
        assert moved <= wanted
        counts.append((len(wanted), len(moved)))
    assert counts == sorted(counts)
    assert counts[0][1] < counts[1][1] < counts[2][1] <= counts[3][1]


def test_more_blocks_than_there_are_are_refused(tower):
    found, run = tower("bert", "text")
    with pytest.raises(
        InputError, match=r"blocks is 3, but the number of blocks of this network is 2; choose 0 to 2, or all"
    ):
        trained_parts(found.run.network, run, 3)


def test_a_network_without_blocks_is_trained_whole_or_not_at_all():
    plain = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    run = lambda: plain(torch.zeros(1, 2))  # noqa: E731
    assert len(trained_parts(plain, run, "all")) == 3
    with pytest.raises(InputError, match="this network has no blocks; choose all"):
        trained_parts(plain, run, 1)
