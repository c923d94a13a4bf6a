# %% [markdown]
# # Your own feature files
#
# **Question:** somebody gave you a file of features and a split. Can you trust a score that is computed from it?
#
# The file holds 300 clips of 6 classes as arrays. Forty of its test clips are copies of training clips, as happens
# when one video is cut twice before the split is drawn.

# %%
import numpy as np

import aadml

numbers = np.random.default_rng(0)
labels = np.arange(300) % 6
content = 1.5 * numbers.normal(size=(6, 8))[labels] + 2 * numbers.normal(
    size=(300, 8)
)  # what both modalities show of a clip
audio = content @ numbers.normal(size=(8, 32)) + 4 * numbers.normal(size=(300, 32))
visual = content @ numbers.normal(size=(8, 64)) + 4 * numbers.normal(size=(300, 64))
split = np.array(["train"] * 180 + ["valid"] * 40 + ["test"] * 80)
audio[260:], visual[260:], labels[260:] = audio[:40], visual[:40], labels[:40]
np.savez("given.npz", audio=audio.astype("float32"), visual=visual.astype("float32"), label=labels, split=split)

# %% [markdown]
# ## Look before you train
#
# `aadml inspect given.npz` prints counts, ranges and warnings. In Python, they are attributes:

# %%
content = aadml.inspect("given.npz")
print(content.splits)
print(*content.warnings, sep="\n")

# %% [markdown]
# Forty test clips have the vectors of training clips. A model can memorize them, so the test score rewards memory.
#
# ## What duplicates are worth
#
# `convert` writes a feature file and can drop the copies from test. The same training is scored on both files:

# %%
aadml.convert("given.npz", "given.h5")
aadml.convert("given.npz", "clean.h5", drop_duplicates="test")
for name in ("given.h5", "clean.h5"):
    model = aadml.fit(name, config="recommended", epochs=40)
    scores = aadml.evaluate(model, data=name)
    print(f"{name}: {len(aadml.read(name).test)} test clips, MAP {scores.map:.3f}, chance {scores.chance:.3f}")

# %% [markdown]
# The duplicates raised MAP although nothing about the method changed. Compare each MAP with its own chance level, since
# the number of relevant clips differs: 0.285 above chance with the copies, 0.221 without. Report the score of the
# clean file, and say how many clips were dropped.
#
# ## One file for everything
#
# `clean.h5` now works with every command: `aadml train --data clean.h5`, `aadml compare --data clean.h5`, `aadml
# index clean.h5`. Checksums are verified when it is read. A damaged file is refused:

# %%
from pathlib import Path

content = bytearray(Path("clean.h5").read_bytes())
content[len(content) // 2] ^= 1  # one bit
Path("damaged.h5").write_bytes(content)
try:
    aadml.read("damaged.h5")
except aadml.DamagedFileError as error:
    print(error)

# %% [markdown]
# ## Next
#
# - Layouts that are read directly (VEGAS, AVE, your own names): [the guide](../guide.md#features).
# - The format, to write it from another program: [file formats](../files.md).
# - Is a difference between two methods more than luck? [Comparing fairly](comparing.md).
