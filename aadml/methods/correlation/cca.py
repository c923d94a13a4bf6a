"""CCA: canonical correlation analysis (Hotelling, 1936), the bar that every learned method has to clear."""

from collections.abc import Sequence
from functools import partial

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Ridge, Width
from aadml.methods.correlation.algebra import canonical
from aadml.methods.correlation.covariances import covariances_of
from aadml.methods.correlation.projection import LinearMethod, Projection, projection_of
from aadml.methods.method import Context, Method
from aadml.methods.training.settings import Training


def cca(
    context: Context,
    settings: Training,
    *,
    dimension: Width = 10,
    ridge: Ridge = 1e-4,
    weight_by_correlation: bool = False,
) -> Method:
    """Canonical correlation analysis with a ridge (Hotelling, 1936).

    Args:
        context: dimensions of the two modalities.
        settings: not used; the solution is closed.
        dimension: directions kept (10 was the best of 10 to 50 in the sweep of the AADML paper's group).
        ridge: added to the diagonals of both covariances.
        weight_by_correlation: multiply every direction by its correlation, which helps cosine retrieval.

    Returns:
        A method whose embeddings are compared by cosine.
    """
    names = context.need_pair("cca")
    return LinearMethod(partial(_fit, names, dimension, ridge, weight_by_correlation))


def _fit(
    names: tuple[Modality, Modality], dimension: int, ridge: float, weighted: bool, parts: Sequence[Clips]
) -> Projection:
    covariances = covariances_of(parts, names, ridge)
    solution = canonical(covariances.first, covariances.second, covariances.cross, dimension)
    return projection_of(names, covariances.means, solution, weighted=weighted)
