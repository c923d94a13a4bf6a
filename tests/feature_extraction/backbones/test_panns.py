import io

import numpy as np
import pytest
import torch

from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS, cnn10, cnn14, load_published, resnet38
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights.tensor_files import read_tensors

LENGTHS = torch.tensor([203, 77, 130, 20])


def sound(seed=0, items=4, frames=203):
    return torch.randn(items, frames, 64, generator=torch.Generator().manual_seed(seed)) * 10 - 40


# trainable numbers of the whole published networks (Kong et al. 2020, their Table of complexities, to the digit)
# less the two last linear layers
PUBLISHED = {
    "cnn10": 5_219_279 - (512 * 512 + 512) - (512 * 527 + 527),
    "cnn14": 80_753_615 - (2048 * 2048 + 2048) - (2048 * 527 + 527),
    "resnet38": 73_783_247 - (2048 * 2048 + 2048) - (2048 * 527 + 527),
}


@pytest.mark.parametrize("name", PANNS_NETWORKS)
def test_full_size_has_the_published_number_of_parameters(name):
    with torch.device("meta"):
        network = PANNS_NETWORKS[name]()
    assert sum(p.numel() for p in network.parameters()) == PUBLISHED[name]


def published_layout(name):
    """Key names and shapes of a published file, spelled out without the code under test."""
    shapes = {"bn0": (64,)}

    def block(prefix, inputs, outputs):
        shapes[f"{prefix}.conv1.weight"] = (outputs, inputs, 3, 3)
        shapes[f"{prefix}.conv2.weight"] = (outputs, outputs, 3, 3)
        shapes[f"{prefix}.bn1"] = shapes[f"{prefix}.bn2"] = (outputs,)

    if name == "resnet38":
        block("conv_block1", 1, 64)
        for stage, (count, outputs) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], start=1):
            for i in range(count):
                halve = stage > 1 and i == 0
                block(f"resnet.layer{stage}.{i}", outputs // 2 if halve else outputs, outputs)
                if halve:
                    shapes[f"resnet.layer{stage}.{i}.downsample.1.weight"] = (outputs, outputs // 2, 1, 1)
                    shapes[f"resnet.layer{stage}.{i}.downsample.2"] = (outputs,)
        block("conv_block_after1", 512, 2048)
    else:
        sizes = [1, 64, 128, 256, 512, 1024, 2048][: 5 if name == "cnn10" else 7]
        for i in range(1, len(sizes)):
            block(f"conv_block{i}", sizes[i - 1], sizes[i])
    last = 512 if name == "cnn10" else 2048
    weights = {
        "spectrogram_extractor.stft.conv_real.weight": torch.zeros(513, 1, 1024),
        "spectrogram_extractor.stft.conv_imag.weight": torch.zeros(513, 1, 1024),
        "logmel_extractor.melW": torch.zeros(513, 64),
        "fc1.weight": torch.zeros(last, last),
        "fc1.bias": torch.zeros(last),
        "fc_audioset.weight": torch.zeros(527, last),
        "fc_audioset.bias": torch.zeros(527),
    }
    generator = torch.Generator().manual_seed(1)
    for key, shape in shapes.items():
        if key.endswith(".weight"):
            weights[key] = torch.randn(shape, generator=generator) * 0.02
        else:
            for part in ("weight", "bias", "running_mean", "running_var"):
                weights[f"{key}.{part}"] = torch.rand(shape, generator=generator) + 0.5
            weights[f"{key}.num_batches_tracked"] = torch.tensor(7)
    return weights


@pytest.mark.slow
@pytest.mark.parametrize("name", PANNS_NETWORKS)
def test_a_file_of_the_published_layout_loads_whole_and_runs_at_full_size(name):
    network = PANNS_NETWORKS[name]()
    weights = published_layout(name)
    load_published(network, weights)
    for key, value in network.state_dict().items():
        assert torch.equal(value, weights[key]), key
    with torch.no_grad():
        described = network.eval()(sound(items=1))
    assert described.shape == (1, network.dimension)
    assert torch.isfinite(described).all()


def test_a_published_file_is_read_with_or_without_what_was_saved_beside_the_weights(tmp_path):
    weights = {"bn0.weight": torch.ones(64)}
    torch.save({"iteration": 1, "model": weights}, tmp_path / "new.pth")
    torch.save({"model": weights}, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    for name in ("new.pth", "old.pth"):
        assert torch.equal(read_tensors(tmp_path / name)["bn0.weight"], weights["bn0.weight"])


def test_a_file_that_would_run_code_or_holds_no_weights_is_refused(tmp_path):
    torch.save({"model": {"x": io.BytesIO}}, tmp_path / "code.pth")
    torch.save({"state": {}}, tmp_path / "other.pth")
    (tmp_path / "noise.pth").write_bytes(np.random.default_rng(0).bytes(1000))
    for name in ("code.pth", "other.pth", "noise.pth", "absent.pth"):
        with pytest.raises(InputError, match=name):
            read_tensors(tmp_path / name)


def test_weights_of_another_network_are_refused_by_name():
    with pytest.raises(InputError, match=r"tensor conv_block5.conv1.weight is missing"):
        load_published(cnn14(width=4), cnn10(width=4).state_dict())
    with pytest.raises(InputError, match=r"conv_block5.conv1.weight is not a tensor of this network"):
        load_published(cnn10(width=4), cnn14(width=4).state_dict())
    with pytest.raises(InputError, match=r"\(8, 1, 3, 3\) instead of \(4, 1, 3, 3\)"):
        load_published(cnn10(width=4), cnn10(width=8).state_dict())


@pytest.mark.parametrize("build", PANNS_NETWORKS.values(), ids=PANNS_NETWORKS)
def test_a_clip_is_described_as_if_it_were_alone(build):
    network = build(width=4).eval()
    clips = sound()
    together = network(clips, LENGTHS)
    louder_padding = clips.clone()
    for i, length in enumerate(LENGTHS):
        louder_padding[i, length:] = 1e4
        alone = network(clips[i : i + 1, :length])
        torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(network(louder_padding, LENGTHS), together)


@pytest.mark.parametrize("build", [cnn10, resnet38])
def test_training_statistics_do_not_see_the_padding(build):
    clips = sound()
    states = []
    for padding in (0, 70):
        network = build(width=4, dropout=0.0, augment=False)
        torch.manual_seed(0)
        for p in network.parameters():
            torch.nn.init.normal_(p, std=0.2)
        padded = torch.nn.functional.pad(clips, (0, 0, 0, padding), value=55.0)
        network.train()(padded, LENGTHS).sum().backward()
        states.append(network.state_dict())
    for key, value in states[0].items():
        torch.testing.assert_close(value, states[1][key], rtol=1e-3, atol=1e-4, msg=key)


def test_a_batch_of_equal_lengths_takes_the_same_values_with_and_without_lengths():
    network = cnn10(width=4).eval()
    torch.testing.assert_close(network(sound(), torch.full((4,), 203)), network(sound()))


def test_dropout_and_spec_augment_act_only_while_training():
    network = cnn10(width=4)
    assert not torch.equal(network.train()(sound()), network(sound()))
    assert torch.equal(network.eval()(sound()), network(sound()))
    still = cnn10(width=4, dropout=0.0, augment=False).train()
    assert torch.equal(still(sound()), still(sound()))


def test_every_parameter_gets_a_gradient():
    network = resnet38(width=4)
    for p in network.parameters():
        torch.nn.init.normal_(p, std=0.2)
    network(sound(), LENGTHS).sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())
