"""METHODS: everything that can be fitted and can embed, by name."""

from collections.abc import Callable

from aadml.methods.aadml import aadml
from aadml.methods.adversarial.acmr import acmr
from aadml.methods.adversarial.agah import agah
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
from aadml.methods.label_space.eics import eics
from aadml.methods.label_space.msnsca import msnsca
from aadml.methods.label_space.tlca import tlca
from aadml.methods.label_space.video_adviser_lite import video_adviser_lite
from aadml.methods.method import Method
from aadml.methods.pairwise.bic_net import bic_net
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
    "agah": agah,
    "acmr": acmr,
    "dscmr": dscmr,
    "cctl": cctl,
    "video-adviser-lite": video_adviser_lite,
    "eics": eics,
    "tlca": tlca,
    "msnsca": msnsca,
    "clip": clip,
    "bic-net": bic_net,
    "dcil": dcil,
    "random": random_vectors,
    "audio-text": audio_text,
    "3cmlf": three_stages,
    "xie": xie,
}
"""name -> `(context, settings, *, options) -> Method`. Keyword-only arguments named like a section of the config
receive that section; all others are options of the section `method`."""
