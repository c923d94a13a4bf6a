# %% [markdown]
# # Your own videos
#
# **Question:** you have a folder of short videos. Given a sound, can a model find the pictures of clips with the same
# event?
#
# You need one folder per class. Here the rendered sample clips of aadml play that part: 100 videos of one second, ten
# events. They are moved into `my_videos/CLASS/`, as your own would lie.

# %%
import csv
import shutil
from pathlib import Path

import aadml

sample = aadml.sample_data("sample", clips=100, seconds=1)
with sample.open() as file:
    for row in csv.DictReader(file):
        folder = Path("my_videos", row["label"])
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(sample.parent / row["media"], folder)
print(*sorted(path.name for path in Path("my_videos").iterdir()), sep=", ")

# %% [markdown]
# ## From media to features
#
# A manifest lists the clips with their class and their split. Clips of the split train fit the
# model, valid clips select the epoch, and test clips are scored once at the end. The split is drawn class by class,
# with a seed.

# %%
manifest = aadml.manifest("my_videos", output="manifest.csv", split="random:0.6/0.2/0.2", seed=0, on_note=print)
aadml.extract(manifest, "clips.h5", workers=1)
splits = aadml.read("clips.h5")
print(splits)

# %% [markdown]
# `log-mel` (128 numbers of the sound) and `hog-color` (1,024 numbers of the picture) are the default encoders. They
# need no weights, and suit these simple clips. For real videos, name pretrained networks:
# `audio="hf:laion/clap-htsat-unfused"`, `visual="hf:facebook/dinov2-small"`.
#
# ## Train and score

# %%
model = aadml.fit("clips.h5", config="sample", loss="aa-triplet", epochs=20, runs="runs")
scores = aadml.evaluate(model, data="clips.h5")
print(scores)

# %% [markdown]
# Read the table from the middle. **Chance** is the MAP of a random order, 0.22: with two clips of each class in the
# gallery, it is far from zero. The interval shows how much MAP would move with other test clips. It is wide, since 20
# test clips are few. **recall@k** is the share of all relevant clips among the first k hits.
#
# ## Search
#
# An index holds the embeddings. A query is any file, here a sound from the test clips; only clips that were not
# trained on are searched.

# %%
aadml.index("clips.h5", "clips.index", model=model.folder, media=manifest)
query = splits.test.ids[0]
with aadml.Index("clips.index") as index:
    sound = next(Path("my_videos").rglob(f"{query}.mp4"))
    found = index.search(audio=sound, to="visual", k=5, where="split = 'test'")
print("query:", query)
for hit in found.hits:
    print(f"{hit.score:.2f}  {hit.item.label:15}{hit.id}")

# %% [markdown]
# ## Next
#
# - `aadml serve clips.index` opens the same search as a local page: [search](../search.md).
# - Is the score real? [Auditing a number](auditing.md).
# - Choose an encoder for your kind of clips: [encoders](../encoders.md).
# - Videos without classes: [pairs and few labels](few_labels.md).
