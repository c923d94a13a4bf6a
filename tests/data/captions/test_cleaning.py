from hypothesis import given
from hypothesis import strategies as st

from aadml.data.captions.cleaning import CLEANINGS, clean_mei, clean_spaces, clean_xie


def test_mei_keeps_words_hyphens_and_apostrophes_and_drops_marks_of_sentences():
    # two spaces stay where four marks and spaces met: doubles are halved once
    assert clean_mei('A dog\'s bark , then "Stop!" ; a low-pitched hum.') == "a dog's bark then stop  a low-pitched hum"


def test_xie_drops_every_punctuation_but_the_hyphen():
    assert clean_xie("A dog's bark (loud), then 50% low-pitched hum.") == "a dog s bark loud then 50 low-pitched hum"


@given(st.text())
def test_cleaning_twice_changes_nothing(text):
    for clean in (clean_xie, clean_spaces):
        assert clean(clean(text)) == clean(text)


@given(st.text(st.sampled_from("ab -'.,!? \t\"é"), max_size=40))
def test_cleaning_as_mei_twice_leaves_the_same_words(text):
    assert clean_mei(clean_mei(text)).split() == clean_mei(text).split()


@given(st.text(max_size=60))
def test_no_cleaning_leaves_capitals_or_marks_of_sentences(text):
    for clean in (clean_mei, clean_xie):
        assert clean(text) == clean(text).lower() or not text.isascii()
        assert not set(',.!?;:"') & set(clean(text))
    assert set(CLEANINGS) == {"mei", "xie", "spaces"}
