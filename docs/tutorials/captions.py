# %% [markdown]
# # Sound and captions
#
# **Question:** can words find a sound, if every clip has a few written captions and no class?
#
# The sample clips have five captions each. A text encoder turns a caption into numbers. In practice it is a
# pretrained network (`aadml extract --audio hf:laion/clap-htsat-unfused --text hf:laion/clap-htsat-unfused`). Here it
# is the simplest that exists, a count of words, so that nothing is downloaded and every step is visible.

# %%
import csv

import numpy as np

import aadml

manifest = aadml.sample_data("clips", clips=200, seconds=1)
aadml.extract(manifest, "sound.h5", workers=1)
with manifest.open() as file:
    clips = list(csv.DictReader(file))
print(clips[0]["id"])
print(*(clips[0][f"caption_{number}"] for number in range(1, 6)), sep="\n")

# %% [markdown]
# ## Words as vectors
#
# The vocabulary comes from the training captions alone. Words that occur only in test captions would be a small leak.


# %%
def words(caption):
    """Return the words of a caption."""
    return "".join(letter if letter.isalpha() else " " for letter in caption.lower()).split()


captions = [[words(clip[f"caption_{number}"]) for number in range(1, 6)] for clip in clips]
training = [caption for clip, of_clip in zip(clips, captions) if clip["split"] == "train" for caption in of_clip]
vocabulary = {word: place for place, word in enumerate(sorted({word for caption in training for word in caption}))}
text = np.zeros((len(clips), 5, len(vocabulary)), dtype="float32")
for row, of_clip in enumerate(captions):
    for column, caption in enumerate(of_clip):
        for word in caption:
            if word in vocabulary:
                text[row, column, vocabulary[word]] += 1
print(f"{len(vocabulary)} words")

# %% [markdown]
# One file holds sound and captions. It has no labels, so the partner is the only positive.

# %%
splits = aadml.read("sound.h5")
sound = {
    clip_id: row
    for part in (splits.train, splits.valid, splits.test)
    for clip_id, row in zip(part.ids, part["audio"].numpy())
}
audio = np.stack([sound[clip["id"]] for clip in clips])
np.savez(
    "captions.npz", audio=audio, text=text, split=[clip["split"] for clip in clips], id=[clip["id"] for clip in clips]
)
model = aadml.fit("captions.npz", settings={"texts": "drawn"}, epochs=40)
scores = aadml.evaluate(model, data="captions.npz")
print(scores)

# %% [markdown]
# Every caption is a query, and only the sound of its own clip is right. The sample has ten events, so five test clips
# of one event share most of their words: an exact hit is hard even for a person. From text to sound, the right clip
# is among the first ten of 50 for 84 % of the captions, where chance is 20 %. So words find the event, and part of
# what distinguishes its clips (fast or slow, high or low).
#
# ## Ask in words

# %%
query = "fast ticks of a metronome"
vector = np.zeros((1, len(vocabulary)), dtype="float32")
for word in words(query):
    vector[0, vocabulary[word]] += 1
test = splits.test
best = model.top_k(model.embed(text=vector), model.embed(audio=test["audio"].numpy()), k=5).indices[0]
print(query)
print(*(f"  {test.ids[place]}" for place in best), sep="\n")

# %% [markdown]
# ## Next
#
# - Clotho, AudioCaps and pretrained networks: [sound and captions](../audio_text.md).
# - Train the networks themselves: [fine-tuning towers](fine_tuning.md).
