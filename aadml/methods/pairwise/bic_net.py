"""BiC-Net on feature vectors: a local branch on tokens and a global branch (Han et al., ACM TOMM 2023).

Reference: Han et al., BiC-Net: learning efficient spatio-temporal relation for text-video retrieval, ACM TOMM 2023, https://doi.org/10.1145/3627103
"""

import math
from functools import partial
from typing import Annotated, Any

import torch
from annotated_types import Interval, MultipleOf
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.features import Modality
from aadml.comparison.options import Count, Dropout, Layers, Margin
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.methods.method import Context
from aadml.methods.networks import heads
from aadml.methods.pair_losses import triplet_objective
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Learner
from aadml.objective import Embedded

HEADS = 4
"""Number of attention heads of every transformer layer."""


class TokenTransformer(nn.Module):
    """A transformer over pieces of a vector, from (b, d) to (b, width).

    The vector is divided into pieces of equal length, and the last piece is padded with zeros. Each piece is a
    token. Transformer layers follow, and attention pools the tokens.

    Args:
        dimension: d.
        tokens: largest number of pieces. A piece has ceil(d / tokens) components, so that fewer pieces can suffice.
        width: width of tokens and output, a multiple of `HEADS`.
        depth: number of transformer layers.
        dropout: share of units dropped.
    """

    def __init__(self, dimension: int, *, tokens: int, width: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.piece = math.ceil(dimension / tokens)
        self.tokens = math.ceil(dimension / self.piece)
        self.token = nn.Sequential(nn.Linear(self.piece, width), nn.LayerNorm(width))
        self.position = nn.Parameter(0.02 * torch.randn(self.tokens, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, HEADS, 2 * width, dropout, "gelu", batch_first=True) for _ in range(depth)
        )
        self.attention = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))
        self.norm = nn.LayerNorm(width)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the pooled tokens (b, width) of vectors (b, d)."""
        filled = F.pad(vectors, (0, self.tokens * self.piece - vectors.shape[1]))
        tokens = self.token(filled.unflatten(1, (self.tokens, self.piece))) + self.position
        for layer in self.layers:
            tokens = layer(tokens)
        weights = self.attention(tokens).softmax(1)  # (b, tokens, 1)
        pooled: Tensor = self.norm((weights * tokens).sum(1))
        return pooled


@removing(attention_heads=HEADS, label_aware=False)
class BilateralLearner(Learner):
    """A global branch on vectors and a local branch on tokens, both trained to rank partners (Han et al., 2023).

        global g = norm(MLP(v));   local l = norm(attention pooling(transformer(tokens of v)))
        J = 1/2 R(g) + 1/2 R(l)
        R = sum over directions, clips i, other clips j of  max(0, margin - cos(x_i, y_i) + cos(x_i, y_j))
        embedding = [g / |g|, l / |l|]: the cosine of two embeddings is the mean of the cosines of g and of l

    v are feature vectors. x_i and y_i are the outputs of a branch (g or l) for clip i in the two modalities of a
    direction.

    BiC-Net encodes frames and their regions by transformers in space and time, and text by BERT. A single feature
    vector per clip has neither frames nor regions. The local branch therefore splits a vector into `tokens` pieces
    with learned positions, and the global branch is an MLP. All clips except the anchor's partner are negatives,
    even clips of the anchor's class. These negatives lower the scores of retrieval by class. When the validation
    score stops rising, the released code and the preset halve the learning rate. Sizes are choices of this toolkit.

    Args:
        context: dimensions and classes.
        dimension: size of the embedding; each branch computes half of it.
        tokens: largest number of pieces of a vector (8: pieces of 128 components for 1024-d visual features, of 16
            components for 128-d audio features).
        depth: number of transformer layers.
        hidden: hidden layers of the global branch.
        dropout: share of units dropped.
        margin: margin of the ranking loss, in cosine (0.2: released code).

    Raises:
        InputError: features are not vectors, or there is only one modality.
    """

    def __init__(
        self,
        context: Context,
        *,
        dimension: Annotated[int, Interval(ge=2 * HEADS, le=65_536), MultipleOf(2 * HEADS)] = 512,
        tokens: Count = 8,
        depth: Annotated[int, Interval(ge=0, le=64)] = 2,
        hidden: Layers = (1024,),
        dropout: Dropout = 0.1,
        margin: Annotated[Margin, Tuning(0.1, 0.2, 0.5)] = 0.2,
    ) -> None:
        super().__init__()
        width = dimension // 2
        global_heads = heads(context, "bic-net", (*hidden, width), activation="gelu", dropout=dropout)
        self.whole = nn.ModuleDict({m: nn.Sequential(head, nn.LayerNorm(width)) for m, head in global_heads.items()})
        transformer = partial(TokenTransformer, tokens=tokens, width=width, depth=depth, dropout=dropout)
        self.local = nn.ModuleDict({m: transformer(size) for m, size in context.dimensions.items()})
        self.objective = triplet_objective(
            context, width, score="cosine", margin=margin, reduction="sum", combine="sum"
        )

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Return the joined vectors (b, dimension) of features (b, d); each branch's part has unit length."""
        return torch.cat([F.normalize(branch[modality](features), dim=1) for branch in (self.whole, self.local)], 1)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        costs = {}
        for name, branch in (("global_loss", self.whole), ("local_loss", self.local)):
            vectors = {m: branch[m](values) for m, values in batch.features.items()}
            embedded = Embedded(vectors, batch.groups, batch.index, "id")
            costs[name] = self.objective(embedded, batch.generator)["loss"]
        return {"loss": 0.5 * costs["global_loss"] + 0.5 * costs["local_loss"]} | costs


bic_net = learned(BilateralLearner)
