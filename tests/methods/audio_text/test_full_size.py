"""The published sizes take a training step: ResNet38 with a BERT of bert-base's size, and the CRNN."""

from dataclasses import replace

import pytest
import torch

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.feature_extraction.ground.options import OptionValues, keywords
from aadml.feature_extraction.layers.word_pieces import SPECIAL, train_vocabulary, word_piece_tokenizer
from aadml.methods import METHODS
from aadml.methods.training.session import Session
from tests.sections import typed


@pytest.fixture(scope="module")
def bert_base(tmp_path_factory):
    """A local folder with a network of bert-base's size, its weights random."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False).save_pretrained(folder)
    pieces = word_piece_tokenizer(train_vocabulary(["a very low tone", "the tone number 0 1 2 is high"], size=200))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    transformers.PreTrainedTokenizerFast(tokenizer_object=pieces, **names).save_pretrained(folder)
    return str(folder)


def one_step(tones, context, name, changes):
    """Train on one batch; return the weights before and after."""
    config = resolve(open_config(name).values | {"seed": 3})
    arguments = OptionValues(**vars(config.arguments()) | typed(**changes))
    settings = replace(config.training, epochs=1, batch=6, select="last")
    torch.manual_seed(3)
    build = METHODS[config.method]
    method = build(context, settings, **keywords(build, arguments))
    train = tones.train.select(torch.arange(0, 12, 2))
    before = {key: value.clone() for key, value in method.state().items()}
    session = Session()
    method.fit(train, tones.valid.select(torch.arange(4)), session)
    assert session.history[0]["loss"] > 0
    return before, method.state()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["nt-xent", "triplet-weighted"])
def test_mei_takes_a_step_at_full_size(tones, context, bert_base, loss):
    changes = {"text_weights": bert_base, "loss": {"name": loss}}
    before, after = one_step(tones, context, "mei_audiocaps", changes)
    shapes = {key: tuple(value.shape) for key, value in after.items()}
    assert shapes["towers.audio.head.0.weight"] == (2048, 2048)
    assert shapes["towers.text.head.0.weight"] == (2048, 768)
    assert shapes["towers.audio.head.2.weight"] == shapes["towers.text.head.2.weight"] == (1024, 2048)
    for key in ("towers.audio.network.network.conv_block1.conv1.weight", "towers.text.head.2.weight"):
        assert not torch.equal(before[key], after[key])
        assert torch.isfinite(after[key]).all()


@pytest.mark.slow
def test_xie_takes_a_step_at_full_size(tones, context):
    before, after = one_step(tones, context, "xie_clotho", {"directions": ["audio-text", "text-audio"]})
    assert not torch.equal(before["audio.convolutions.0.weight"], after["audio.convolutions.0.weight"])
    assert sum(value.numel() for key, value in after.items() if key.startswith("audio.") and "running" not in key
               and "tracked" not in key) == 732_354  # fmt: skip
