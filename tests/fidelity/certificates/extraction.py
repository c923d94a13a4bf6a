"""Networks of sound, sight and text against their sources; weights are drawn by a shared recipe."""

import json
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from aadml.feature_extraction.backbones.crnn import Crnn
from aadml.feature_extraction.backbones.inception_v3 import InceptionVariant, load_inception_v3, network_input
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS, load_published
from aadml.feature_extraction.backbones.vggish import VGGish
from aadml.feature_extraction.frontends.log_mel import PANNS, log_mel
from aadml.feature_extraction.frontends.quantization import quantize
from aadml.feature_extraction.frontends.whitening import vggish_pca
from aadml.feature_extraction.hub.bert import Bert
from aadml.feature_extraction.layers.word_pieces import word_piece_tokenizer
from aadml.methods.audio_text.options import Freezing, TowerOptions
from aadml.methods.audio_text.towers import _tower
from certificates.audio_text import MEI, XIE
from certificates.certificate import Arrays, Certificate, Errors, error, worst
from certificates.front_ends import TVG, samples


def drawn_weights(arrays: Arrays) -> dict[str, Tensor]:
    """Draw the weights of a reference by its recipe, and check that they are those the source was given."""
    shapes = [tuple(map(int, shape.split(","))) for shape in arrays["recipe_shapes"]]
    names = arrays["recipe_names"]
    random = np.random.default_rng(int(arrays["weight_seed"]))
    plain = "Conv2d_1a_3x3.bn.weight" in names  # Inception: the scales of its batch norms are 1 and are not drawn
    weights = {}
    for name, shape in zip(names, shapes, strict=True):
        values = _tensor(name, shape, names, random, plain)
        weights[name] = torch.from_numpy(np.asarray(values, dtype=np.float32))
    checks = torch.tensor([[float(w.double().sum()), float(w.flatten()[0])] for w in weights.values()])
    assert error(checks, arrays["weight_checks_sum_first"]) < 1e-6, "the recipe gave other weights than the source had"
    return weights


def _tensor(name: str, shape: tuple[int, ...], names: list[str], random: np.random.Generator, plain: bool) -> Any:
    layer, _, kind = name.rpartition(".")
    if kind == "running_mean":
        values = 0.2 * random.standard_normal(shape)
        return 25 * values - 40 if layer == "bn0" else values
    if kind == "running_var":
        values = random.uniform(0.5, 1.5, shape)
        return 300 * values if layer == "bn0" else values
    if kind == "weight" and f"{layer}.running_mean" in names:
        return np.ones(shape) if plain else random.uniform(0.75, 1.25, shape)
    if len(shape) == 1:
        return random.uniform(-0.25, 0.25, shape)
    return random.standard_normal(shape) * np.sqrt(2 / prod(shape[1:]))


def _panns(name: str) -> Any:
    def measure(arrays: Arrays) -> Errors:
        network = PANNS_NETWORKS[name]().eval()
        load_published(network, drawn_weights(arrays))
        with torch.no_grad():
            single, sound = (network(x) for x in (arrays["log_mel"].float(), log_mel(samples(arrays), PANNS)))
            double = network.double()(arrays["log_mel"])
        return {
            "output": error(single, arrays["output"]),
            "output in float64": error(double, arrays["output_float64_network"]),
            "output from sound": error(sound, arrays["output"]),
        }

    return measure


CRNN_NAMES = {f"cnn.{i}": f"norms.{n}" for n, i in enumerate((0, 4, 7, 11, 14))} | {
    f"cnn.{i}": f"convolutions.{n}" for n, i in enumerate((1, 5, 8, 12, 15))
}


def _crnn(arrays: Arrays) -> Errors:
    network = Crnn(dimension=int(arrays["out_dim"])).eval()
    weights = {}
    for name, values in drawn_weights(arrays).items():
        layer, _, kind = name.rpartition(".")
        weights[f"{CRNN_NAMES[layer]}.{kind}" if layer in CRNN_NAMES else name.replace("gru", "recurrent")] = values
    network.load_state_dict(weights, strict=False)
    bands, lengths = arrays["log_mel_zero_padded"], arrays["lengths"].long()
    with torch.no_grad():
        own = network(bands.float(), lengths)
        double = network.double()(bands)
        pooled = network(bands, pooled=True)
    alone = [(own[i, :n], arrays[f"output_alone_{i}"]) for i, n in enumerate(lengths.tolist())]
    return {
        "output in float64": worst([
            (double, arrays["output_padded_batch_float64"]), (pooled, arrays["output_not_upsampled_float64"]),
        ]),
        "each clip alone, in float32": worst(alone),
    }  # fmt: skip


class _Vectors(nn.Module):
    """Stands for a network whose vectors are known."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension


def _towers(arrays: Arrays) -> Errors:
    config = json.loads(arrays["bert_config"][0])
    bert = _bert(config, arrays)
    tokenizer = word_piece_tokenizer(arrays["vocabulary"])
    encoded = [tokenizer.encode(text).ids for text in arrays["captions"]]
    ids = nn.utils.rnn.pad_sequence([torch.tensor(one) for one in encoded], batch_first=True)
    with torch.no_grad():
        cls = bert(arrays["input_ids"].long(), arrays["attention_mask"].bool())
        text = _head(32, 32, "text_linear", arrays)(arrays["bert_cls"].float())
        audio = _head(512, 16, "audio_linear", arrays)(arrays["audio_network_output"].float())
    return {
        "token ids": error(ids.double(), arrays["input_ids"].double()),
        "bert": error(cls, arrays["bert_cls"]),
        "heads": worst([(text, arrays["text_head_output"]), (audio, arrays["audio_head_output"])]),
        "embedding": worst([
            (nn.functional.normalize(text, dim=1), arrays["text_embedding"]),
            (nn.functional.normalize(audio, dim=1), arrays["audio_embedding"]),
        ]),
    }  # fmt: skip


def _bert(config: Mapping[str, Any], arrays: Arrays) -> Bert:
    import transformers

    model = transformers.BertModel(transformers.BertConfig(**config), add_pooling_layer=False).eval()
    stored = "weight/text_enc.bert_encoder."
    weights = {name.removeprefix(stored): values.float() for name, values in arrays.items() if name.startswith(stored)}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected
    assert all(name.endswith("_ids") for name in missing)
    return Bert(model)


def _head(width: int, hidden: int, name: str, arrays: Arrays) -> nn.Module:
    tower = _tower(_Vectors(width), hidden, TowerOptions(dimension=16), Freezing(), "text")
    layers = {f"{i}.{part}": arrays[f"weight/{name}.{i}.{part}"].float() for i in (0, 2) for part in ("weight", "bias")}
    tower.head.load_state_dict(layers)
    return tower.head


def _vggish(arrays: Arrays) -> Errors:
    network = VGGish().eval()
    network.load_state_dict(drawn_weights(arrays))
    with torch.no_grad():
        found = network(arrays["patches"].float())
    whitened = vggish_pca(*(arrays[key].numpy() for key in ("embeddings", "pca_eigen_vectors", "pca_means")))
    codes = torch.from_numpy(quantize(whitened, rounding="floor"))
    ported = torch.from_numpy(quantize(whitened, rounding="nearest"))
    return {
        "embedding": worst([(found, arrays["pre_activation"]), (found.relu(), arrays["post_relu_port"])]),
        "whitened": error(torch.from_numpy(whitened), arrays["hand_pca_float64"]),
        "8-bit codes": error(codes.double(), arrays["eight_bit_tensorflow_floor"].double()),
        "codes cut off, not rounded": error(codes.double(), arrays["eight_bit_port_rounding"]),
        "codes of the port, rounded": error(ported.double(), arrays["eight_bit_port_rounding"]),
    }


def _inception(arrays: Arrays) -> Errors:
    weights = drawn_weights(arrays)
    frames = arrays["frames"]
    cases = {
        "counted": (InceptionVariant("counted"), "pooled_torchvision_zeros_counted"),
        "excluded": (InceptionVariant("excluded"), "pooled_keras_zeros_excluded"),
        "transformed": (InceptionVariant("counted", transform_input=True), "pooled_torchvision_transform_input"),
    }
    found = {}
    for name, (reading, stored) in cases.items():
        network = load_inception_v3(weights, reading)
        with torch.no_grad():
            pooled = network(network_input(frames, transform_input=True))
        found[name] = error(pooled, arrays[stored])
    return {
        "pooled as torchvision": max(found["counted"], found["transformed"]),
        "pooled as Keras": found["excluded"],
    }


EXTRACTION_CERTIFICATES = (
    *(
        Certificate(
            name, f"audio_text/mei_{name}", f"{MEI}, `{spelled}`",
            ("output", "output in float64", "output from sound"), _panns(name), slow=True, tolerance=2e-6,
            deviations="`output` and `output from sound` in float32.",
        )
        for name, spelled in (("cnn10", "Cnn10"), ("cnn14", "Cnn14"), ("resnet38", "ResNet38"))
    ),
    Certificate(
        "crnn", "audio_text/xie_crnn", f"{XIE}, `CRNNEncoder`", ("output in float64", "each clip alone, in float32"),
        _crnn, tolerance=5e-5,
        deviations="The released network in float32 is itself 3e-5 from float64; in float64 they agree to 1e-13. With "
        "lengths, a clip's frames do not depend on its padding; the source's do.",
    ),
    Certificate(
        "towers of mei", "audio_text/mei_towers", f"{MEI}, `ASE`, `BertEncoder`",
        ("token ids", "bert", "heads", "embedding"), _towers,
    ),
    Certificate(
        "vggish", "audio_text/vggish",
        f"{TVG}, `VGG`, `Postprocessor`; tensorflow/models @ 4b2f15f, `vggish_postprocess.py`",
        ("embedding", "whitened", "8-bit codes", "codes of the port, rounded"), _vggish, slow=True, tolerance=1e-5,
        repairs=("codes cut off, not rounded",),
        deviations="In float32: 3e-8 where the processor has AVX-512, 2e-6 where it has not. 8-bit codes are cut off "
        "as TensorFlow does; the port rounds them.",
    ),
    Certificate(
        "inception-v3", "audio_text/inception_v3", "torchvision 0.28.0, `inception_v3`; Keras 3.15.1, `InceptionV3`",
        ("pooled as torchvision", "pooled as Keras"), _inception, slow=True,
    ),
)  # fmt: skip
