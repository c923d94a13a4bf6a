"""Proxy-NCA (Movshovitz-Attias et al., ICCV 2017), with the whole softmax of Proxy-NCA++ (Teh et al., ECCV 2020).

Reference: Movshovitz-Attias et al., No fuss distance metric learning using proxies, ICCV 2017, https://doi.org/10.1109/ICCV.2017.47
Reference: Teh et al., ProxyNCA++: revisiting and revitalizing proxy neighborhood component analysis, ECCV 2020, https://arxiv.org/abs/2004.01113
"""

from torch import nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Size, Temperature
from aadml.feature_extraction.ground.options import removing
from aadml.losses.kernels.class_proxies import cosines_to_proxies, cross_entropies, drawn_proxies
from aadml.losses.kernels.likelihood import inverse


@removing(length=0.01)
class ProxyNca(nn.Module):
    """Softmax loss of squared distances between an anchor and one learned proxy per class.

        total_i = -log( exp(-d_iy / T) / sum over classes c of exp(-d_ic / T) ),   d_ic = |x_i/|x_i| - p_c/|p_c||^2

    y is the class of anchor i. The proxies replace candidates and masks, and are shared by the comparisons of all
    directions. The paper of 2017 leaves class y out of the sum. With class y in the sum, as in Proxy-NCA++, the loss is
    minus the log of a probability and never below 0. The proxies are trained with the encoders.

    Args:
        dimension: width d of the vectors (set from the data, not by the user).
        classes: number C of classes (set from the data).
        temperature: T (1: Movshovitz-Attias et al.; Proxy-NCA++ has 1/9).

    Raises:
        InputError: the data have no classes.

    Example:
        >>> vectors = torch.cat([audio_head(audio_body(audio)), visual_head(visual_body(visual))])
        >>> comparison = Comparison.of_labels(vectors, vectors, labels.repeat(2), labels.repeat(2))
        >>> loss(comparison).total.mean().backward()
        >>> encoder_optimizer.step()
        >>> proxy_optimizer.step()
    """

    one_for_all_directions = True

    def __init__(self, *, dimension: Size, classes: Size, temperature: Temperature = 1.0) -> None:
        super().__init__()
        self.classes, self.temperature = classes, temperature
        self.proxies = drawn_proxies(classes, dimension, "proxy-nca")

    def forward(self, comparison: Comparison) -> Terms:
        """Compute the loss of the anchors.

        Args:
            comparison: a anchors, with `anchor_class`.

        Returns:
            One term per anchor.

        Raises:
            InputError: anchors without classes or without vectors of the proxies' width, a class without a proxy, or a
                temperature that is not above 0.
        """
        # a squared distance of unit vectors is 2 - 2 cosine, and the softmax ignores the constant
        scale = 2 * inverse(self.temperature)
        return Terms(cross_entropies(*cosines_to_proxies(comparison, self.proxies, self.classes, "proxy-nca", scale)))
