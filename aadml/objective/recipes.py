"""RECIPES: config sections (loss, selection, directions) of published training objectives, by name.

The modules of the losses and selections contain the references of the papers.
"""

from dataclasses import dataclass, field

from aadml.feature_extraction.ground.json_values import JsonObject


@dataclass(frozen=True)
class Recipe:
    """Config sections of one named training objective; users may override options of the sections.

    Attributes:
        description: one line for users.
        loss: the `loss` section: name and options of the loss, and `reduction` and `combine` if the objective
            defines these options.
        selection: the `selection` section; None if the objective defines no selection.
        directions: the `directions` of the config; None if the objective defines no directions.
    """

    description: str
    loss: JsonObject
    selection: JsonObject | None = None
    directions: tuple[str, ...] | None = field(default=None)


TOGETHER = ("both-both",)
WHOLE = {"name": "all"}
COSINE_HINGE: JsonObject = {
    "name": "triplet",
    "score": "cosine",
    "margin": 0.2,
    "reduction": "per-anchor",
    "combine": "sum",
}

OF_CLASSES: dict[str, Recipe] = {
    name: Recipe(what, {"name": name, "reduction": "mean"}, WHOLE, TOGETHER)
    for name, what in (
        ("proxy-nca", "Softmax over one learned proxy per class (Movshovitz-Attias et al., ICCV 2017)."),
        ("proxy-anchor", "Learned class proxies, each compared with the whole batch (Kim et al., CVPR 2020)."),
        ("soft-triple", "Softmax over several learned centers per class (Qian et al., ICCV 2019)."),
        ("arcface", "Softmax over one learned proxy per class, with an angular margin (Deng et al., CVPR 2019)."),
    )
}

GENERATIVE = ("triplet", "contrastive", "n-pair")

RECIPES: dict[str, Recipe] = {
    "complete-triplet": Recipe(
        "Triplets with anchor, positive and negative of any modality (the AADML paper's Triplet†, CCTL).",
        {"name": "triplet"},
        WHOLE,
        TOGETHER,
    ),
    "hard-triplet": Recipe(
        "Triplet of a random positive and the hardest negative, per anchor (the AADML paper's Hard Triplet).",
        {"name": "triplet"},
        {"name": "hardest", "positive": "random"},
    ),
    "batch-hard-triplet": Recipe(
        "Triplet of the hardest positive and the hardest negative, per anchor (Hermans, Beyer and Leibe, 2017).",
        {"name": "triplet"},
        {"name": "batch-hard"},
    ),
    "semi-hard-triplet": Recipe(
        "A random positive and the nearest negative farther than it, per anchor (Schroff et al., FaceNet, CVPR 2015).",
        {"name": "triplet"},
        {"name": "semi-hard"},
    ),
    "triplet-sum": Recipe(
        "Cosine triplets over all negatives, margin 0.2, summed per anchor (Mei et al., audio-text retrieval, 2022).",
        COSINE_HINGE,
        WHOLE,
    ),
    "triplet-max": Recipe(
        "Cosine triplets with the hardest negative, margin 0.2 (VSE++, BMVC 2018; Mei et al., 2022).",
        COSINE_HINGE,
        {"name": "hardest", "score": "cosine", "positive": "all"},
    ),
    "n-pair": Recipe(
        "Cross-entropy of inner products over one pair per class (Sohn, NIPS 2016).",
        {"name": "n-pair", "reduction": "mean"},
        {"name": "one-pair-a-class"},
    ),
    "multi-n-pair": Recipe(
        "N-pair cross-entropy with equal targets on all positives of the whole batch.",
        {"name": "n-pair", "multi_positive": True, "reduction": "mean"},
        WHOLE,
    ),
    "angular": Recipe(
        "Upper bound on the angle at the negative in triplets (Wang et al., ICCV 2017).",
        {"name": "angular", "reduction": "mean"},
    ),
    "dsl": Recipe(
        "Dual softmax: scores weighted by each candidate's softmax over the anchors (Cheng et al., CAMoE, 2021).",
        {"name": "dsl", "reduction": "mean"},
    ),
    "triplet-weighted": Recipe(
        "Positive and hardest negative weighted by polynomials of cosines, summed (Mei et al., 2022, equation 6).",
        {"name": "triplet-weighted", "reduction": "per-anchor", "combine": "sum"},
    ),
    "multi-similarity": Recipe(
        "Pairs that are hard relative to an anchor's other pairs, softly weighted (Wang et al., CVPR 2019).",
        {"name": "multi-similarity", "reduction": "mean"},
        {"name": "multi-similarity"},
    ),
    "supcon": Recipe(
        "Supervised contrastive loss over both modalities as two views (Khosla et al., NeurIPS 2020).",
        {"name": "supcon", "reduction": "mean"},
        WHOLE,
        TOGETHER,
    ),
    "supcon-n-pair": Recipe(
        "Supervised contrastive loss over one pair per class (in the AADML paper's tables, which do not define it).",
        {"name": "supcon", "reduction": "mean"},
        {"name": "one-pair-a-class"},
    ),
    "cross-clr": Recipe(
        "Softmax of positives across modalities against negatives of both (CrossCLR, Zolfaghari et al., ICCV 2021).",
        {"name": "cross-clr", "reduction": "mean"},
        WHOLE,
        TOGETHER,
    ),
    **OF_CLASSES,
} | {
    f"{name}-{form}": Recipe(f"{what} ({source}) with the {form} loss.", {"name": loss, "form": form}, WHOLE)
    for name, loss, what, source, forms in (
        ("daml", "daml", "Adversarially generated negatives", "DAML, Duan et al., CVPR 2018", GENERATIVE),
        ("dsml", "daml", "The AADML paper's name for DAML", "Duan et al., CVPR 2018", GENERATIVE),
        (
            "hdml",
            "hdml",
            "Negatives whose hardness follows the progress of training",
            "HDML, Zheng et al., CVPR 2019",
            GENERATIVE[::2],
        ),
    )
    for form in forms
}
