"""CCA and C-CCA: canonical correlation analysis (Hotelling, 1936), and its cluster form (Rasiwasia et al., 2014).

Reference: Hotelling, Relations between two sets of variates, Biometrika 1936, https://doi.org/10.1093/biomet/28.3-4.321
Reference: Rasiwasia et al., Cluster canonical correlation analysis, AISTATS 2014, https://proceedings.mlr.press/v33/rasiwasia14.html
"""

from collections.abc import Sequence

from aadml.comparison.clips import Clips
from aadml.comparison.options import Ridge, Share, Width
from aadml.methods.correlation.algebra import canonical
from aadml.methods.correlation.covariances import Names, between_classes, covariances_of
from aadml.methods.correlation.projection import LinearMethod
from aadml.methods.method import Context, Method
from aadml.methods.training.settings import Training


class CorrelationMethod(LinearMethod):
    """Canonical correlation analysis of pairs, of clusters, or of both; see `cca` and `c_cca`."""

    def __init__(self, names: Names, *, dimension: int, ridge: float, weighted: bool, pair_weight: float = 1.0) -> None:
        super().__init__()
        self.names, self.dimension, self.ridge = names, dimension, ridge
        self.weighted, self.pair_weight = weighted, pair_weight

    def solve(self, parts: Sequence[Clips]) -> None:
        """Fit the projection to sets of clips, which are treated as one set."""
        covariances = covariances_of(parts, self.names, self.ridge)
        cross = covariances.cross
        if self.pair_weight < 1:
            clusters = between_classes(parts, self.names, covariances.means)
            cross = self.pair_weight * cross + (1 - self.pair_weight) * clusters
        solution = canonical(covariances.first, covariances.second, cross, self.dimension)
        self.store(self.names, covariances.means, solution, weighted=self.weighted)


def cca(
    context: Context,
    settings: Training,
    *,
    dimension: Width = 10,
    ridge: Ridge = 1e-4,
    weight_by_correlation: bool = False,
) -> Method:
    """Build canonical correlation analysis with a ridge (Hotelling, 1936).

    Args:
        context: dimensions of the two modalities.
        settings: not used, since the solution has a closed form.
        dimension: number of directions (10 was the best of 10 to 50 in the sweep of the AADML paper's group).
        ridge: constant added to the diagonals of both covariances.
        weight_by_correlation: whether to multiply every direction by its correlation, which improves cosine retrieval.

    Returns:
        A method whose embeddings are compared by cosine.

    Raises:
        InputError: the clips do not have exactly two modalities of vectors.
    """
    names = context.need_pair("cca")
    return CorrelationMethod(names, dimension=dimension, ridge=ridge, weighted=weight_by_correlation)


def c_cca(
    context: Context,
    settings: Training,
    *,
    dimension: Width = 10,
    ridge: Ridge = 1e-4,
    pair_weight: Share = 0.2,
    weight_by_correlation: bool = False,
) -> Method:
    """Build cluster CCA, which pairs a clip with all clips of its class in the other modality (Rasiwasia et al., 2014).

    The cross-covariance is beta S_pair + (1 - beta) S_cluster. With C classes, S_cluster has rank C - 1 at most, so C
    or more directions need some weight on the pairs. Covariances are unweighted, as in the code of the AADML paper's
    group; the original paper weights clips by the size of their class.

    Args:
        context: dimensions of the two modalities.
        settings: not used, since the solution has a closed form.
        dimension: number of directions (10: AADML paper's group).
        ridge: constant added to the diagonals of both covariances.
        pair_weight: beta, weight of the pairs (0.2: AADML paper's group).
        weight_by_correlation: whether to multiply every direction by its correlation.

    Raises:
        InputError: the clips do not have exactly two modalities of vectors, or some do not have exactly one class.
    """
    names = context.need_pair("c-cca")
    context.need_classes("c-cca")
    return CorrelationMethod(
        names, dimension=dimension, ridge=ridge, weighted=weight_by_correlation, pair_weight=pair_weight
    )
