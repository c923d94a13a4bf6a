"""Tokens of a text, its maximum length and the pooling of a sentence encoder, with a planted tokenizer."""

from types import SimpleNamespace

import pytest

from aadml.feature_extraction.hub import texts


class Tokenizer:
    """Tokenizer of one token per letter."""

    def __init__(self, model_max_length=100):
        self.model_max_length = model_max_length

    def __call__(self, text, *, truncation, max_length, padding="", return_attention_mask=False):
        ids = [ord(letter) for letter in text][: max_length if truncation else None]
        rest = max_length - len(ids) if padding else 0
        found = {"input_ids": [*ids, *[0] * rest]}
        return found | ({"attention_mask": [1] * len(ids) + [0] * rest} if return_attention_mask else {})


@pytest.mark.parametrize(
    ("letters", "filled", "longest", "width"),
    [
        (1, False, 40, 16),
        (16, False, 40, 16),
        (17, False, 40, 32),
        (33, False, 40, 40),
        (99, False, 40, 40),
        (1, True, 40, 40),
    ],
)
def test_a_text_is_padded_to_a_multiple_of_sixteen_tokens_or_to_the_maximum(letters, filled, longest, width):
    for masked in (True, False):
        item = texts._item(Tokenizer(), "a" * letters, SimpleNamespace(filled=filled, masked=masked), longest)
        used = min(letters, longest)
        assert item["input_ids"].tolist() == [97] * used + [0] * (width - used)
        assert set(item) == ({"input_ids", "attention_mask", "mask"} if masked else {"input_ids"})
        assert not masked or item["mask"].tolist() == [1] * used + [0] * (width - used)


@pytest.mark.parametrize(
    ("model_type", "config", "limit", "sentences", "longest"),
    [
        ("bert", {"max_position_embeddings": 50, "pad_token_id": 1}, 100, {}, 50),
        ("roberta", {"max_position_embeddings": 50, "pad_token_id": 1}, 100, {}, 48),
        ("mpnet", {"max_position_embeddings": 50, "pad_token_id": 1}, 47, {}, 47),
        ("bert", {"max_position_embeddings": 50}, 100, {"max_seq_length": 30}, 30),
        ("clip", {"text_config": SimpleNamespace(max_position_embeddings=20)}, 100, {}, 20),
    ],
)
def test_a_text_is_as_long_as_positions_tokenizer_and_sentence_encoder_allow(
    monkeypatch, model_type, config, limit, sentences, longest
):
    monkeypatch.setattr(texts, "configuration_of", lambda _: SimpleNamespace(**config))
    snapshot = SimpleNamespace(model_type=model_type, settings=lambda name: sentences)
    assert texts._longest(snapshot, Tokenizer(limit)) == longest


@pytest.mark.parametrize(
    ("settings", "pooling"),
    [({}, None), ({"pooling_mode_cls_token": True}, "cls"),
     ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "word_embedding_dimension": True}, "mean"),
     ({"embedding_dimension": 32, "pooling_mode": "cls", "include_prompt": True}, "cls"),
     ({"pooling_mode": ["mean"]}, "mean"), ({"pooling_mode": "cls", "pooling_mode_mean_tokens": True}, "cls")],
)  # fmt: skip
def test_a_sentence_encoder_states_its_pooling(settings, pooling):
    assert texts.own_pooling(SimpleNamespace(settings=lambda name: settings)) == pooling


@pytest.mark.parametrize(
    ("settings", "modes"),
    [({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, "cls, mean"),
     ({"pooling_mode": ["cls", "mean"]}, "cls, mean"), ({"pooling_mode": "lasttoken"}, "lasttoken"),
     ({"pooling_mode": 7}, "7")],
)  # fmt: skip
def test_a_sentence_encoder_of_several_or_unknown_poolings_is_refused(settings, modes):
    with pytest.raises(texts.InputError, match=f"m pools by {modes}, but only"):
        texts.own_pooling(SimpleNamespace(model="m", settings=lambda name: settings))
