"""METHODS: registry of methods; READOUTS: registry of maps from label-space vectors to embeddings."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.registry import Registry

if TYPE_CHECKING:
    from aadml.methods.label_space.readouts import ReadoutFactory
    from aadml.methods.method import MethodFactory

METHODS: Registry["MethodFactory"] = Registry(
    "method",
    {
        "aadml": "aadml.methods.label_space.aadml:aadml",
        "cca": "aadml.methods.correlation.cca:cca",
        "kcca": "aadml.methods.correlation.kcca:kcca",
        "c-cca": "aadml.methods.correlation.cca:c_cca",
        "dcca": "aadml.methods.correlation.dcca:dcca",
        "c-dcca": "aadml.methods.correlation.dcca:c_dcca",
        "tnn-c-cca": "aadml.methods.correlation.tnn_c_cca:tnn_c_cca",
        "vae-cca": "aadml.methods.correlation.vae_cca:vae_cca",
        "agah": "aadml.methods.adversarial.agah:agah",
        "acmr": "aadml.methods.adversarial.acmr:acmr",
        "dscmr": "aadml.methods.label_space.dscmr:dscmr",
        "cctl": "aadml.methods.label_space.aadml:cctl",
        "video-adviser-lite": "aadml.methods.label_space.video_adviser_lite:video_adviser_lite",
        "eics": "aadml.methods.label_space.eics:eics",
        "tlca": "aadml.methods.label_space.tlca:tlca",
        "msnsca": "aadml.methods.label_space.msnsca:msnsca",
        "clip": "aadml.methods.pairwise.clip:clip",
        "bic-net": "aadml.methods.pairwise.bic_net:bic_net",
        "dcil": "aadml.methods.pairwise.dcil:dcil",
        "pairs": "aadml.methods.pairwise.pairs:pairs",
        "few-labels": "aadml.methods.pairwise.few_labels:few_labels",
        "random": "aadml.methods.untrained.random_vectors:random_vectors",
        "zero-shot": "aadml.methods.untrained.zero_shot:zero_shot",
        "audio-text": "aadml.methods.audio_text.two_towers:audio_text",
        "3cmlf": "aadml.methods.audio_text.two_towers:three_stages",
        "xie": "aadml.methods.audio_text.negative_sampling:xie",
    },
    group="aadml.methods",
    of="aadml.methods.method:MethodFactory",
)
"""Functions by name, called as `(context, settings, *, options) -> Method`. A keyword-only argument with the name of a
config section receives that section. All other arguments are options of the section `method`."""

READOUTS: Registry["ReadoutFactory"] = Registry(
    "readout",
    {
        "cosine": "aadml.methods.label_space.readouts:cosine",
        "posterior": "aadml.methods.label_space.readouts:posterior",
        "auto": "aadml.methods.label_space.readouts:auto",
    },
    group="aadml.readouts",
    of="aadml.methods.label_space.readouts:ReadoutFactory",
)
"""Functions by name, called as `(*, options) -> read-outs`; the validation clips decide among the read-outs."""
