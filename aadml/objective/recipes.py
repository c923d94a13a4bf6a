"""RECIPES: named losses of papers that combine a loss with options, a selection and directions."""

from dataclasses import dataclass, field

from aadml.feature_extraction.ground.json_values import JsonObject


@dataclass(frozen=True)
class Recipe:
    """What a name stands for, as the sections of a config; all of it can be set otherwise.

    Attributes:
        description: one line, for people.
        loss: the `loss` section: name, options, and reduction and combine where the name implies them.
        selection: the `selection` section, or None where the name implies none.
        directions: the `directions`, or None where the name implies none.
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
        ("proxy-nca", "A softmax over learned proxies of classes (Movshovitz-Attias et al., ICCV 2017)."),
        ("proxy-anchor", "Learned proxies of classes against the whole batch (Kim et al., CVPR 2020)."),
        ("soft-triple", "A softmax over several learned centers a class (Qian et al., ICCV 2019)."),
        ("arcface", "A softmax over learned directions of classes, with an angular margin (Deng et al., CVPR 2019)."),
    )
}

GENERATIVE = ("triplet", "contrastive", "n-pair")

RECIPES: dict[str, Recipe] = {
    "complete-triplet": Recipe(
        "Triplets whose anchor, positive and negative are each of either modality (the AADML paper's Triplet†, CCTL).",
        {"name": "triplet"},
        WHOLE,
        TOGETHER,
    ),
    "hard-triplet": Recipe(
        "Per anchor the triplet of a random positive and the hardest negative (the AADML paper's Hard Triplet).",
        {"name": "triplet"},
        {"name": "hardest", "positive": "random"},
    ),
    "batch-hard-triplet": Recipe(
        "Per anchor the triplet of the hardest positive and the hardest negative (Hermans, Beyer and Leibe, 2017).",
        {"name": "triplet"},
        {"name": "batch-hard"},
    ),
    "semi-hard-triplet": Recipe(
        "Per anchor a random positive and the nearest negative farther than it (Schroff et al., FaceNet, CVPR 2015).",
        {"name": "triplet"},
        {"name": "semi-hard", "positive": "random"},
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
        "Cross-entropy of inner products over one pair a class (Sohn, NIPS 2016).",
        {"name": "n-pair", "reduction": "mean"},
        {"name": "one-pair-a-class"},
    ),
    "multi-n-pair": Recipe(
        "N-pair's cross-entropy with equal targets on all positives of the whole batch.",
        {"name": "n-pair", "multi_positive": True, "reduction": "mean"},
        WHOLE,
    ),
    "angular": Recipe(
        "The angle under which a negative sees its pair is bounded (Wang et al., ICCV 2017).",
        {"name": "angular", "reduction": "mean"},
    ),
    "dsl": Recipe(
        "Dual softmax: scores weighed by whom the candidate prefers (Cheng et al., CAMoE, 2021).",
        {"name": "dsl", "reduction": "mean"},
    ),
    "triplet-weighted": Recipe(
        "Positive and hardest negative weighed by polynomials of cosines, summed (Mei et al., 2022, equation 6).",
        {"name": "triplet-weighted", "reduction": "per-anchor", "combine": "sum"},
    ),
    "multi-similarity": Recipe(
        "Pairs that are hard beside an anchor's others, softly weighted (Wang et al., CVPR 2019).",
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
        "Supervised contrastive loss over one pair a class (in the AADML paper's tables, which do not define it).",
        {"name": "supcon", "reduction": "mean"},
        {"name": "one-pair-a-class"},
    ),
    "cross-clr": Recipe(
        "Matching across modalities among negatives of both (CrossCLR, Zolfaghari et al., ICCV 2021).",
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
        ("hdml", "hdml", "Negatives made as hard as training bears", "HDML, Zheng et al., CVPR 2019", GENERATIVE[::2]),
    )
    for form in forms
}
