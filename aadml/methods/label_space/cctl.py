"""CCTL: complete cross-triplet loss in label space for audio-visual retrieval (Zeng et al., ISM 2022)."""

from typing import Annotated

from aadml.comparison.options import Margin, Weight
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.methods.label_space.learner import LabelSpaceLearner
from aadml.methods.method import Context, Method
from aadml.methods.networks import NETWORK, Network
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.settings import Training
from aadml.objective.objective import Reduction
from aadml.objective.sections import Section


def cctl(
    context: Context,
    settings: Training,
    *,
    network: Network = NETWORK,
    label_loss: Section = "row-norm",
    readout: Section = "cosine",
    margin: Annotated[Margin, Tuning(0.5, 1.0, 1.5)] = 1.0,
    reduction: Reduction = "mean-of-active",
    metric_weight: Weight = 1.0,
) -> Method:
    """Build CCTL: triplets in label space whose three items are each of any modality (Zeng et al., 2022).

    The loss is the label loss of every modality plus the triplet loss over all eight combinations of modalities. An
    item is never its own positive. The method is AADML without proxies. No code was released: network, label loss and
    weights are those of AADML, whose paper describes the method, and are configuration.

    Args:
        context: dimensions and classes.
        settings: the `training` section.
        network: see `NetworkOptions`.
        label_loss: a name of LABEL_LOSSES with `weight` and its options.
        readout: see READOUTS.
        margin: in squared distance (about 1: AADML paper's group; not published for this loss alone).
        reduction: of the triplet losses, see `aadml.objective.reduce`.
        metric_weight: of the triplet loss beside the label loss.
    """
    learner = LabelSpaceLearner(
        context,
        network=network,
        label_loss=label_loss,
        loss={"name": "triplet", "margin": margin, "reduction": reduction, "weight": metric_weight},
        selection="all",
        proxy="identity",
        directions=("both-both",),
        readout=readout,
    )
    return LearnedMethod(learner, context, settings)
