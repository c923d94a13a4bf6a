# %% [markdown]
# # Auditing a number
#
# **Question:** a paper, a colleague or your own script reports a MAP of 0.8. Is it real?
#
# A score is real if each item was embedded alone: without its label, its partner or other test items. One honest
# model is trained first, and then scored under rules that break this.

# %%
import aadml

manifest = aadml.sample_data("clips", clips=200, seconds=1)
aadml.extract(manifest, "clips.h5", workers=1)
model = aadml.fit("clips.h5", config="sample", loss="aa-triplet", epochs=20, runs="runs")
honest = aadml.evaluate(model, data="clips.h5")
print(f"MAP {honest.map:.3f}, chance {honest.chance:.3f}, protocol {honest.protocol}")

# %% [markdown]
# ## What a leak is worth
#
# The protocols named `legacy:` score the same weights as released code has done. Nothing is trained again:

# %%
leaks = {
    "inductive": "each item alone",
    "legacy:running-map": "AP averaged over all cutoffs",
    "legacy:batch-attention": "attention over class-sorted test batches",
    "legacy:label-graph": "neighbors chosen by test labels",
    "legacy:partner": "each item mixed with its partner",
    "legacy:partner+legacy:label-graph": "both",
}
scores = {name: aadml.evaluate(model, data="clips.h5", protocol=name).map for name in leaks}
for name, score in scores.items():
    print(f"{score:.3f}  {name:35}{leaks[name]}")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
bars = axes.barh(list(leaks.values()), list(scores.values()), color=["#2f7d5b"] + ["#c2503f"] * 5)
axes.bar_label(bars, fmt="%.2f", padding=3)
axes.axvline(honest.chance, color="#8a94a0", linestyle=":")
axes.text(honest.chance, -0.55, "chance", color="#56646f", ha="center")
axes.set(xlim=(0, 1.08), xlabel="test MAP of one model, same weights")
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("one-model-under-six-protocols.svg", metadata={"Date": None})

# %% [markdown]
# The model did not change, only the rule. A protocol is that rule: which information an embedding may use, and how
# its ranking is scored. Two numbers under different protocols cannot be compared, however alike their tables look.
#
# ## Audit your run

# %%
report = aadml.audit(model.folder)
print(str(report).splitlines()[-1])

# %% [markdown]
# An audit embeds the clips again and again, changes what must not matter (labels, partners, order, batch), and
# compares. *Training unknown* is not an accusation: `aadml audit RUN --retrain` trains three more
# times, with unchanged and with changed test clips, and compares the weights.
#
# ## Audit the code of others
#
# Any function that turns features into embeddings can be audited, here one with a mistake that is easy to make: it
# centers each batch by its own mean, and adds a tenth of the partner.

# %%
from pathlib import Path

Path("suspect.py").write_text("""
import numpy as np

def embed(features, labels):
    audio, visual = (features[name] - features[name].mean(0) for name in ("audio", "visual"))
    audio, visual = audio[:, :100], visual[:, :100]
    return {"audio": audio + 0.1 * visual, "visual": visual + 0.1 * audio}
""")
report = aadml.audit(data="clips.h5", encoder="suspect:embed")
for finding in report:
    if finding.failed:
        print(f"{finding.check}: {finding.evidence.partition(';')[0]}")
print(str(report).splitlines()[-1])

# %% [markdown]
# Each failed check names its change; the full evidence states the effect too. `aadml audit --data clips.h5 --encoder
# suspect:embed` does the same in a shell, and exits with status 1. On Linux the encoder runs isolated from the network
# and from other files.
#
# ## Next
#
# - What an audit can and cannot see: [audits](../audit.md).
# - All protocols: [the guide](../guide.md#protocols-and-leaks).
# - A real number can still be luck: [comparing fairly](comparing.md).
