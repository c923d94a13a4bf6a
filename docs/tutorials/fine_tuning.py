# %% [markdown]
# # Fine-tuning towers
#
# **Question:** is it worth training the encoders themselves, or only small heads on frozen features?
#
# A *tower* is a network that reads media. Frozen, its features are extracted once, and training takes seconds.
# Trained, it can learn what it lacks, at a price in time and in the danger of overfitting. This page takes the
# extreme case: towers that know nothing.
#
# ## Two tiny networks
#
# A real run names pretrained networks (`hf:laion/clap-htsat-unfused`, `hf:facebook/dinov2-small`). Here two small
# untrained ones of the same kind are written to disk, so that nothing is downloaded.

# %%
import torch
import transformers

import aadml

torch.manual_seed(0)
sizes = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "initializer_range": 0.15,
}
sound = transformers.ASTConfig(**sizes, patch_size=8, max_length=64, num_mel_bins=32)
transformers.ASTModel(sound).save_pretrained("sound")
transformers.ASTFeatureExtractor(num_mel_bins=32, max_length=64).save_pretrained("sound")
pictures = transformers.Dinov2Config(**sizes, image_size=32, patch_size=8)
transformers.Dinov2Model(pictures).save_pretrained("pictures")
crop = {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}
transformers.BitImageProcessorPil(**crop).save_pretrained("pictures")

manifest = aadml.sample_data("clips", clips=200, seconds=1)

# %% [markdown]
# ## Frozen, partly trained, trained
#
# The data are the manifest of media, not a feature file. `towers.train` names the modalities whose network is
# trained, and `towers.blocks` how many blocks from the end.

# %%
towers = {"towers.audio": "hf:sound", "towers.visual": "hf:pictures", "training.learning_rate": 1e-3}
ways = {
    "frozen": {"towers.train": []},
    "last block": {"towers.blocks": 1},
    "everything": {"towers.blocks": "all"},
}
models = {}
for name, settings in ways.items():
    models[name] = aadml.fit(manifest, config="sample", loss="triplet", epochs=25, settings=towers | settings)
    scores = aadml.evaluate(models[name], data=manifest)
    print(f"{name:11} test MAP {scores.map:.3f}, chance {scores.chance:.3f}")

# %% [markdown]
# Frozen untrained towers are random projections of the input, from which heads can still learn a little. Any
# training of the towers adds to that. More is not always better: 120 training clips are few for a whole network.
# Pretrained towers have more to lose: [a measurement](../lab/findings.md#pretrained-networks-trained-further). Rules
# of thumb:
#
# - Begin frozen: `aadml extract`, then train heads. It is the number to beat.
# - Then `towers.blocks=1` with a tenth to a hundredth of the learning rate.
# - On small data, low-rank adapters (`towers.lora_rank=8`) train less than one percent of the weights.
#
# ## The model contains its towers

# %%
models["everything"].save("my-model")
again = aadml.load("my-model")
clip = next((manifest.parent / "clips").glob("rain-*.mp4"))
print(tuple(again.embed(audio=clip).shape))

# %% [markdown]
# ## Next
#
# - All options, memory and speed: [encoders](../encoders.md#trained-further).
# - Compare frozen and trained over seeds before you believe a difference: [comparing fairly](comparing.md).
