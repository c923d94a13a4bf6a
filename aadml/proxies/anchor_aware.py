"""Anchor-Aware proxies (Zeng et al., ICMR 2024).

The proxy of a clip mixes the clip and its neighbors in the correlation graph, weighted by attention (Equations 5 to 7).
Losses compare proxies instead of, or in addition to, the embeddings. Proxies are for training: at test time an item is
embedded without a proxy. Only `from_bank`, which uses neither labels nor partners, computes proxies of new items.

Reference: Zeng et al., Anchor-aware deep metric learning for audio-visual retrieval, ICMR 2024, https://arxiv.org/abs/2404.13789
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Choice
from aadml.feature_extraction.ground.options import OptionValues, completed, removing
from aadml.proxies.attention import Attention, AttentionOptions
from aadml.proxies.contract import Encode, TrainingSet
from aadml.proxies.correlation import CorrelationGraph, GraphOptions
from aadml.proxies.graph import NeighborLists
from aadml.proxies.mixture import EVEN, MIXTURE, MixtureOptions, unused, uses_only_mixtures
from aadml.proxies.readings import READINGS, Keys
from aadml.proxies.unchanged import Unchanged

GRAPH, ATTENDING = GraphOptions(), AttentionOptions()
Vectors = Callable[[Modality, Tensor], Tensor]


@removing(
    symmetrize=False, shared_lists=False, shared=False, values="own", pairs="neighbors", scope="bank",
    similarity="cosine", width=None, attention_dropout=0.0, same_class=True, residual_weight=EVEN,
)  # fmt: skip
class AnchorAware(Unchanged):
    """Proxy that mixes a clip with its neighbors by attention.

        proxy_i = x_i + A(query_i, neighbors of i),   A = attention under a reading of Equation 7 (see READINGS)

    Call `refresh` before each epoch: the bank and the neighbor lists are not saved in the state. In readings R3 and R5,
    the proxy of an anchor without neighbors is the anchor itself. In R1 and R6, the anchor then attends only to itself.

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings; options that cross modalities need exactly two.
        graph: options of the neighbor lists, see `GraphOptions`.
        attending: options of the attention, see `AttentionOptions`.
        mixture: options of the mixture of a clip with its neighbors, see `MixtureOptions`.
        reading: a key of READINGS; R1 ignores the neighbors, and R5 mixes the batch.
        query: the anchor itself ("self"), or its "partner" in the other modality (Equation 7; training only).
        live: encode the neighbors again, with gradient, instead of reading them from the bank.

    Raises:
        InputError: an option that crosses modalities without exactly two modalities, or attention heads that do not
            divide d.
    """

    prefix = "aa-"

    def __init__(
        self,
        dimension: int,
        modalities: tuple[Modality, ...],
        *,
        graph: GraphOptions = GRAPH,
        attending: AttentionOptions = ATTENDING,
        mixture: MixtureOptions = MIXTURE,
        reading: Annotated[str, Choice(READINGS)] = "R6",
        query: Literal["self", "partner"] = "self",
        live: bool = False,
    ) -> None:
        super().__init__(dimension, modalities)
        if query == "partner" and len(self.modalities) != 2:
            raise InputError(
                f"proxy.query: 'partner' needs exactly two modalities, but the data have {len(self.modalities)}; "
                "choose 'self'"
            )
        self.reading, self.query, self.live = reading, query, live
        self._mixture, self.aa_on, self.aa_mix = mixture, mixture.aa_on, mixture.aa_mix
        self.graph = CorrelationGraph(self.modalities, graph)
        self.attentions = nn.ModuleDict({modality: Attention(dimension, attending) for modality in self.modalities})

    def refresh(self, train: TrainingSet) -> None:
        """Store the training embeddings and find all neighbors; see `CorrelationGraph.refresh`."""
        self.graph.refresh(train)

    def check_size(self, count: int, labels: Tensor | None) -> None:
        """Raise InputError if no training clip can have k neighbors, as in `CorrelationGraph.check_size`."""
        self.graph.check_size(count, labels)

    def remember(self, bank: Mapping[Modality, Tensor]) -> None:
        """Store the training embeddings (n, d) for `from_bank`, without finding neighbors."""
        self.graph.remember(bank)

    def forward(
        self, embeddings: Mapping[Modality, Tensor], index: Tensor, encode: Encode | None = None
    ) -> dict[Modality, Tensor]:
        """Compute the proxies of a batch; see `Proxy`.

        Raises:
            InputError: the partner as query in evaluation mode, no earlier call of `refresh`, or live neighbors without
                `encode`.
        """
        if self.query == "partner" and not self.training:
            raise InputError(
                "proxy.query: 'partner' is for training only, because in evaluation the partner would reveal the "
                "result; choose 'self'"
            )
        lists = self.graph.lists(index, embeddings)
        vectors = self._vectors(encode)
        proxies = {}
        for modality, anchors in embeddings.items():
            queries = embeddings[self.graph.other(modality)] if self.query == "partner" else anchors
            proxies[modality] = self._proxies(modality, anchors, queries, lists[modality], vectors)
        return proxies

    @torch.no_grad()
    def from_bank(self, vectors: Tensor, modality: Modality, *, k: int | None = None) -> Tensor:
        """Compute the proxies of new items from their nearest neighbors in the training bank, without labels.

        Args:
            vectors: (m, d) embeddings; the proxy of a row does not depend on other rows.
            modality: modality of the embeddings.
            k: number of neighbors; by default, the number in training.

        Returns:
            Proxies (m, d).

        Raises:
            InputError: no bank, the reading R5 (without proxies of single items), k below 1, vectors that are not
                finite, or vectors whose width differs from the width of the bank.
        """
        if self.reading == "R5":
            raise InputError(
                "proxy.reading: R5 mixes the items of a batch and has no proxy of a single item; use another reading"
            )
        lists = self.graph.nearest_in_bank(vectors, modality, k)
        return self._proxies(modality, vectors, vectors, lists, self._from_memory)

    def attended(self, attention: Attention, inputs: Keys) -> Tensor:
        """Compute the attention of a anchors over their neighbors, and return vectors (a, d).

        The attribute `reading` selects the reading of Equation 7.
        """
        return READINGS[self.reading](attention, inputs)

    def _proxies(
        self, modality: Modality, anchors: Tensor, queries: Tensor, lists: NeighborLists, vectors: Vectors
    ) -> Tensor:
        rows, mask = lists.index.clamp_min(0), lists.mask
        keys = vectors(modality, rows).to(anchors.dtype)
        attention = cast(Attention, self.attentions[modality])
        attended = self.attended(attention, Keys(anchors, queries[:, None], keys, mask))
        attended = self._mixture.joined(anchors, attended)
        if self.reading in ("R1", "R6"):
            return attended
        return torch.where(mask.any(1)[:, None], attended, anchors)

    def _vectors(self, encode: Encode | None) -> Vectors:
        """Return a function that returns vectors (b, k, d) for a modality and rows (b, k) of the training set.

        With `live`, the function encodes the rows again by `encode`. Otherwise, the function reads the rows from the
        bank.

        Raises:
            InputError: `live` is set, but `encode` is None.
        """
        if not self.live:
            return self._from_memory
        if encode is None:
            raise InputError("proxy.live: live neighbors need an encoder, but no encoder was passed; pass `encode`")

        def encoded(modality: Modality, rows: Tensor) -> Tensor:
            distinct, place = torch.unique(rows, return_inverse=True)
            return encode(modality, distinct)[place]

        return encoded

    def _from_memory(self, modality: Modality, rows: Tensor) -> Tensor:
        return self.graph.bank[modality][rows]


def reaches_no_encoder(options: OptionValues) -> bool:
    """Return whether every proxy is an affine map of one detached vector, without gradient to the encoders.

    Args:
        options: all options of the anchor-aware proxy.
    """
    fixed: bool = options.reading == "R3" and options.k == 1 and not options.live
    return fixed and uses_only_mixtures(options)


def degeneracy(options: OptionValues) -> str | None:
    """Return a warning about options that make the proxy degenerate, unused or dependent on the batch; None otherwise.

    Args:
        options: options of the anchor-aware proxy; missing options have their defaults.
    """
    chosen = completed(AnchorAware, options, "proxy")
    if sentence := unused(chosen):
        return sentence
    if chosen.reading == "R1":
        return "reading R1 makes attention an affine map of the anchor, so the neighbors and query have no effect"
    if chosen.reading == "R5":
        return "in reading R5, every clip attends to the whole batch, so proxies depend on the composition of the batch"
    if reaches_no_encoder(chosen):
        return "in reading R3 with one detached neighbor and no residual, the metric loss does not train the encoders"
    return None
