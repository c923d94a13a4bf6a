import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.hub.bert import bert_of, load_bert, load_word_pieces, small_bert
from aadml.feature_extraction.layers.word_pieces import SPECIAL, train_vocabulary, word_piece_tokenizer

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


@pytest.fixture
def copy(folder, tmp_path):
    """A copy of the folder that may be damaged."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.mark.parametrize("load", [load_bert, load_word_pieces])
def test_code_in_a_folder_is_not_run_and_nobody_is_asked(copy, load, monkeypatch):
    code = f"open({str(copy / 'ran')!r}, 'w')\nfrom transformers import BertConfig as C, BertTokenizerFast as T\n"
    (copy / "planted_of_bert.py").write_text(code)
    config = json.loads((copy / "config.json").read_text()) | {"model_type": "planted"}
    names = {"AutoConfig": "planted_of_bert.C", "AutoTokenizer": ["planted_of_bert.T", "planted_of_bert.T"]}
    (copy / "config.json").write_text(json.dumps(config | {"auto_map": names}))
    (copy / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "T", "auto_map": names}))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(InputError, match=r"copy:? (contains a model .* 'planted'|its AutoTokenizer cannot be loaded)"):
        load(copy)
    assert not (copy / "ran").exists()


def test_a_kernel_on_the_hub_is_refused(copy):
    configuration = json.loads((copy / "config.json").read_text()) | {"attn_implementation": "planted/kernel"}
    (copy / "config.json").write_text(json.dumps(configuration))
    for build in (lambda: load_bert(copy), lambda: bert_of(configuration)):
        with pytest.raises(InputError, match="attn_implementation is 'planted/kernel', which is code on the hub"):
            build()


@pytest.mark.parametrize("kind", ["roberta", "distilbert", "electra"])
def test_a_relative_of_bert_is_not_read_as_bert(tmp_path, kind):
    import transformers

    config = transformers.AutoConfig.for_model(kind, vocab_size=50, hidden_size=16, dim=16, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=32)  # fmt: skip
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path)
    with pytest.raises(InputError, match=f"a model of type '{kind}'; pass the folder of a BERT"):
        load_bert(tmp_path)


def test_a_bert_without_its_tokenizer_is_refused(copy):
    for name in ("tokenizer.json", "vocab.txt"):
        (copy / name).unlink(missing_ok=True)
    with pytest.raises(InputError, match=r"contains none of tokenizer\.json, vocab\.txt; copy"):
        load_word_pieces(copy)


def test_an_empty_vocabulary_is_no_tokenizer(copy):
    for path in copy.glob("token*"):
        path.unlink()
    (copy / "vocab.txt").write_text("\n".join(SPECIAL) + "\n")
    with pytest.raises(InputError, match="the tokenizer lacks words"):
        load_word_pieces(copy)


def test_a_vocabulary_alone_is_a_tokenizer(folder, copy):
    pieces = load_word_pieces(folder)
    for path in copy.glob("token*"):
        path.unlink()
    words = sorted(pieces.get_vocab(), key=pieces.get_vocab().get)
    (copy / "vocab.txt").write_text("\n".join(words) + "\n")
    assert load_word_pieces(copy).encode("a dog barks").ids == pieces.encode("a dog barks").ids


def test_weights_that_are_missing_are_not_drawn_at_random(copy):
    weights = load_file(copy / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "layer.1" not in k}, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        InputError, match=r"the files lack weights of BertModel \(16 in total, the first is encoder\.layer\.1"
    ):
        load_bert(copy)


def test_loading_prints_nothing_even_where_a_file_holds_more_than_is_read(copy, capfd):
    weights = load_file(copy / "model.safetensors")
    more = {"cls.predictions.bias": torch.zeros(80), "pooler.dense.bias": torch.zeros(16)}
    save_file(weights | more, copy / "model.safetensors", {"format": "pt"})
    load_bert(copy)
    assert capfd.readouterr() == ("", "")
