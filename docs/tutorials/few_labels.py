# %% [markdown]
# # Pairs and few labels
#
# **Question:** your clips have no class labels, or only a handful have. How much does each label buy?
#
# Sound and picture of one clip belong together. This alone is a training signal: the partner is the positive, and
# other clips are negatives. The data here are drawn (`synthetic:pairs`), so that every step takes seconds.

# %%
import aadml

splits = aadml.read("synthetic:pairs:shared=0.25")
print(splits)

# %% [markdown]
# ## No labels at all

# %%
model = aadml.fit("synthetic:pairs:shared=0.25", config="pairs", settings={"relevance": "own"}, epochs=20)
print(aadml.evaluate(model, data="synthetic:pairs:shared=0.25", relevance="own"))

# %% [markdown]
# Each query has one relevant item, its partner. **recall@10** is the share of queries whose partner is among the
# first ten hits; its chance level is ten divided by the size of the gallery, here 0.025, and the model reaches eight
# times that. MAP is then the mean of 1/rank.
#
# ## From 2 to 20 labels a class
#
# `synthetic:ave` has 15 classes. `train_per_class` keeps the labels of n clips a class, and `unlabelled="keep"` lets
# the other clips train as pairs. The control `loss.weight=0` learns from the labels alone.

# %%
rows = {}
for labels in (2, 5, 20):
    few = {"train_per_class": labels, "unlabelled": "keep"}
    both = aadml.fit("synthetic:ave", config="few_labels", settings=few, epochs=20)
    alone = aadml.fit("synthetic:ave", config="few_labels", settings=few | {"loss.weight": 0}, epochs=20)
    rows[labels] = [aadml.evaluate(fitted, data="synthetic:ave").map for fitted in (both, alone)]
    print(f"{labels:3} labels a class: labels and pairs {rows[labels][0]:.3f}, labels alone {rows[labels][1]:.3f}")

# %% [markdown]
# The gap between the columns is the value of pairs without labels: 0.044 with two labels a class, and half of that
# with more. It is one seed on drawn data: on yours, run it with several seeds before you decide, for example by
# `aadml ablate --config few_labels --over loss.weight=0,1 --seeds 5`.

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
for position, name in enumerate(("labels and pairs", "labels alone")):
    axes.plot(list(rows), [row[position] for row in rows.values()], marker="o", label=name)
axes.set(xlabel="labels per class", ylabel="test MAP", xscale="log", ylim=(0, None))
axes.set_xticks(list(rows), [str(labels) for labels in rows])
axes.legend(frameon=False)
figure.savefig("MAP-by-the-number-of-labels-per-class.svg", metadata={"Date": None})

# %% [markdown]
# ## Next
#
# - Further positives without labels (`neighbors`), hubs, several texts per clip: [pairs](../pairs.md).
# - Captions are pairs too: [sound and captions](captions.md).
