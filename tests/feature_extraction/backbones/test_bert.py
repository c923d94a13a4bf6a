import pytest
import torch

from feature_extraction.backbones.bert import load_bert, load_word_pieces, small_bert
from feature_extraction.ground.errors import InputError
from feature_extraction.word_pieces import SPECIAL, train_vocabulary, word_piece_tokenizer

pytest.importorskip("transformers")

CAPTIONS = ["a dog barks twice", "a dog barks and a bird sings", "rain falls on a tin roof", "a bird sings"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder as `transformers` saves it: a tiny BERT with its tokenizer."""
    import transformers

    place = tmp_path_factory.mktemp("bert")
    pieces = word_piece_tokenizer(train_vocabulary(CAPTIONS, size=80))
    torch.manual_seed(0)
    small_bert(pieces.get_vocab_size(), dimension=16).model.save_pretrained(place)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    transformers.PreTrainedTokenizerFast(tokenizer_object=pieces, **names).save_pretrained(place)
    return place


def test_a_local_folder_is_loaded_without_a_network(folder):
    bert, pieces = load_bert(folder, dropout=0.3), load_word_pieces(folder)
    assert bert.dimension == 16
    assert bert.model.config.hidden_dropout_prob == bert.model.config.attention_probs_dropout_prob == 0.3
    ids = torch.tensor([pieces.encode("a dog barks twice").ids])
    vector = bert.eval()(ids, torch.ones_like(ids, dtype=torch.bool))
    whole = bert.model(input_ids=ids).last_hidden_state
    torch.testing.assert_close(vector, whole[:, 0])


def test_a_caption_is_described_as_if_it_were_alone(folder):
    bert = load_bert(folder).eval()
    ids = torch.randint(5, 20, (3, 9))
    lengths = torch.tensor([9, 4, 2])
    mask = torch.arange(9)[None] < lengths[:, None]
    together = bert(ids, mask)
    for i, length in enumerate(lengths):
        alone = bert(ids[i : i + 1, :length], mask[i : i + 1, :length])
        torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-4, atol=1e-5)


def test_a_folder_without_a_bert_is_refused(tmp_path):
    for load in (load_bert, load_word_pieces):
        with pytest.raises(InputError, match=r"config\.json"):
            load(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=str(tmp_path)):
        load_bert(tmp_path)
