"""AADML: anchor-aware deep metric learning for audio-visual retrieval (Zeng et al., ICMR 2024).

Each modality has its own encoder into label space. A label loss moves every vector towards its one-hot label, and a
metric loss compares the modalities, where anchor-aware proxies replace the anchors in training. The sum of both losses
is minimized (equation 10). At test, an item passes through its encoder alone.
"""

from aadml.methods.label_space.learner import LabelSpaceLearner
from aadml.methods.method import Context, Method
from aadml.methods.networks import NETWORK, Network
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.settings import Training
from aadml.objective.objective import Directions
from aadml.objective.sections import Section


def aadml(
    context: Context,
    settings: Training,
    *,
    network: Network = NETWORK,
    label_loss: Section = "row-norm",
    loss: Section = "triplet",
    selection: Section = "all",
    proxy: Section = "identity",
    directions: Directions = ("all",),
    readout: Section = "cosine",
) -> Method:
    """Build AADML, or any of its relatives; each argument is a section of the config.

    Args:
        context: dimensions, classes, seed, device.
        settings: the `training` section.
        network: see `NetworkOptions`.
        label_loss: `name` (a key of LABEL_LOSSES), `weight`, its options.
        loss: `name` (a key of LOSSES), `weight` (0 for no metric loss), `reduction`, `combine`, its options.
        selection: `name` (a key of SELECTIONS), its options.
        proxy: `name` (a key of PROXIES), its options.
        directions: (anchors, candidates), such as ["audio-visual", "visual-audio"]; "all" ordered pairs by default.
        readout: `name` ("cosine", "posterior" or "auto"), `temperature`.
    """
    learner = LabelSpaceLearner(
        context,
        network=network,
        label_loss=label_loss,
        loss=loss,
        selection=selection,
        proxy=proxy,
        directions=directions,
        readout=readout,
    )
    return LearnedMethod(learner, context, settings)
