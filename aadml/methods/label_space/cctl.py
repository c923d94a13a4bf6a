"""CCTL: complete cross-triplet loss in label space for audio-visual retrieval (Zeng et al., ISM 2022)."""

from aadml.methods.label_space_learner import NONE, LabelSpaceLearner, Section
from aadml.methods.learned import LearnedMethod
from aadml.methods.method import Context, Method
from aadml.methods.settings import Training


def cctl(
    context: Context,
    settings: Training,
    *,
    network: Section = NONE,
    label_loss: Section = "row-norm",
    readout: Section = "cosine",
    margin: float = 1.0,
    reduction: str = "mean-of-active",
    metric_weight: float = 1.0,
) -> Method:
    """Complete cross-triplets in label space: anchor, positive, negative each of either modality (Zeng et al., 2022).

    The loss is the label loss of every modality plus the triplet loss over all eight combinations of modalities, an
    item never its own positive. It is AADML without proxies. No code was released: network, label loss and weights are
    those of AADML, whose paper describes the method, and are configuration.

    Args:
        context: dimensions and classes.
        settings: the `training` section.
        network: see `label_space_network`.
        label_loss: a name of LABEL_LOSSES with `weight` and its options.
        readout: see READOUTS.
        margin: in squared distance (about 1: AADML paper's group; not published for this loss alone).
        reduction: of the triplets' costs, see `aadml.objective.reduce`.
        metric_weight: of the triplet loss beside the label loss.
    """
    loss = {"name": "triplet", "margin": margin, "reduction": reduction, "weight": metric_weight}
    sections = {
        "network": network,
        "label_loss": {"name": label_loss} if isinstance(label_loss, str) else label_loss,
        "loss": loss,
        "selection": {"name": "all"},
        "proxy": {"name": "identity"},
        "directions": ("both-both",),
        "readout": {"name": readout} if isinstance(readout, str) else readout,
    }
    return LearnedMethod(LabelSpaceLearner(context, sections), context, settings)
