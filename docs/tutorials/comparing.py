# %% [markdown]
# # Comparing fairly
#
# **Question:** method B scores 0.02 more than method A. Is B better?
#
# Three things can cause such a difference between equally good methods: the seed, the choice of test clips, and the
# treatment of ties.

# %%
import numpy as np

import aadml

manifest = aadml.sample_data("clips", clips=200, seconds=1)
aadml.extract(manifest, "clips.h5", workers=1)

# %% [markdown]
# ## The seed

# %%
maps = {}
for loss in ("triplet", "aa-triplet"):
    maps[loss] = [
        aadml.evaluate(aadml.fit("clips.h5", config="sample", loss=loss, epochs=10, seed=seed), data="clips.h5").map
        for seed in range(5)
    ]
    print(f"{loss:11}", *(f"{score:.3f}" for score in maps[loss]), f"  mean {np.mean(maps[loss]):.3f}")
wins = sum(a > b for a in maps["triplet"] for b in maps["aa-triplet"])
print(f"triplet wins {wins} of 25 pairs of single seeds")

# %% [markdown]
# The plain triplet loss looks better. Yet whoever trains one seed of each finds the opposite in some of the 25 pairs.
#
# ## The test
#
# `compare` trains every row with the same seeds, data and schedule. It resamples seeds and test clips together, each
# clip as a query and as an item of the gallery, and corrects for the number of comparisons:

# %%
result = aadml.compare(
    data="clips.h5", methods=["cca", "recommended"], losses=["triplet"], config="sample", max_epochs=10, seeds=3,
    with_controls=False, workers=0, output="comparison", on_note=lambda note: None,
)  # fmt: skip
for table in result.tables:
    for row in table.rows:
        cells = dict(zip(table.columns, map(table.text, row)))
        kind, difference = table.columns[0], next(name for name in cells if name.startswith("difference"))
        print(f"{cells[kind]:12} MAP {cells['MAP mean']}  {difference}: {cells[difference] or 'itself'}")

# %% [markdown]
# The star marks a significant difference: `recommended` is better than CCA. The interval of the difference of 0.02
# between the triplet losses contains zero: three seeds and 50 test clips do not decide. Undecided is the honest
# answer for most differences of this size. More seeds narrow one part of the interval, and only more test clips
# narrow the other.
#
# ## Ties and chance
#
# A useless model gives every item the same score. Its ranking is then the order in the file. If that is sorted by
# class, as many files are, sorting alone makes a MAP:


# %%
def naive_map(scores, relevant):
    """Return MAP of the order in which numpy sorts equal scores."""
    order = np.argsort(-scores, axis=1, kind="stable")
    hits = np.take_along_axis(relevant, order, 1)
    precision = hits.cumsum(1) / np.arange(1, hits.shape[1] + 1)
    return ((precision * hits).sum(1) / hits.sum(1)).mean()


labels = np.repeat(np.arange(10), 20)
constant = np.zeros((200, 200))
shuffled = np.random.default_rng(0).permutation(200)
found = {
    "file sorted by class": naive_map(constant, labels[:, None] == labels),
    "same file, shuffled": naive_map(constant, labels[:, None] == labels[shuffled]),
}
same = np.ones((200, 4), dtype="float32")
scores = aadml.evaluate(embeddings=aadml.Clips.of([str(label) for label in labels], audio=same, visual=same))
found["aadml, any order"], found["chance"] = scores.map, scores.chance
for name, score in found.items():
    print(f"{score:.3f}  {name}")
print(f"tie rate {scores.directions[0].tie_rate:.0%}")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
bars = axes.barh(list(found), list(found.values()), color=["#c2503f", "#c2503f", "#2f7d5b", "#8a94a0"])
axes.bar_label(bars, fmt="%.3f", padding=3)
axes.set(xlabel="MAP of a model that knows nothing", xlim=(0, 0.25))
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("MAP-of-a-model-that-knows-nothing.svg", metadata={"Date": None})

# %% [markdown]
# aadml computes the expectation over all orders of equal scores. A model that knows nothing then scores chance, and
# every table shows the tie rate beside MAP. Chance itself depends on the data: with ten classes of equal size and a
# large gallery it is near 0.1, and with few clips it is higher.
#
# ## Next
#
# - Which loss or method to try first: [losses](../losses.md), and the config `recommended` in [the
#   guide](../guide.md#configs).
# - Tune every contender alike: `aadml compare --trials 20`.
# - A difference can also come from a leak: [auditing a number](auditing.md).
