"""METHODS: everything that can be fitted and can embed, by name."""

from collections.abc import Callable

from aadml.methods.aadml import aadml
from aadml.methods.audio_text.negative_sampling import xie
from aadml.methods.audio_text.two_towers import audio_text, three_stages
from aadml.methods.correlation.c_cca import c_cca
from aadml.methods.correlation.cca import cca
from aadml.methods.correlation.dcca import c_dcca, dcca
from aadml.methods.correlation.kcca import kcca
from aadml.methods.correlation.tnn_c_cca import tnn_c_cca
from aadml.methods.correlation.vae_cca import vae_cca
from aadml.methods.label_space.cctl import cctl
from aadml.methods.label_space.dscmr import dscmr
from aadml.methods.method import Method
from aadml.methods.pairwise.clip import clip
from aadml.methods.pairwise.dcil import dcil
from aadml.methods.random_vectors import random_vectors

METHODS: dict[str, Callable[..., Method]] = {
    "aadml": aadml,
    "cca": cca,
    "kcca": kcca,
    "c-cca": c_cca,
    "dcca": dcca,
    "c-dcca": c_dcca,
    "tnn-c-cca": tnn_c_cca,
    "vae-cca": vae_cca,
    "dscmr": dscmr,
    "cctl": cctl,
    "clip": clip,
    "dcil": dcil,
    "random": random_vectors,
    "audio-text": audio_text,
    "3cmlf": three_stages,
    "xie": xie,
}
"""name -> `(context, settings, *, options) -> Method`. Keyword-only arguments named like a section of the config
receive that section; all others are options of the section `method`."""
