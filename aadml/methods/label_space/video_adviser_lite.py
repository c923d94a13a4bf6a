"""VideoAdviser on features: a teacher of all modalities, distilled into one student per modality."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import torch
from annotated_types import Interval
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Dropout, Layers, Weight
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.methods.method import Context
from aadml.methods.networks import NETWORK, Network, label_space_encoders, layers
from aadml.methods.pair_losses import summed_label_loss
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Epoch, Learner, Player, Stage, Validation, in_two
from aadml.objective.composition import ROW_NORM, LabelLossSection

FIRST, SECOND = "teacher", "students"


def mean_squared_distance(vectors: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean over clips of |x_i - t_i|^2 for vectors x and targets t (b, C), without gradient to t."""
    distance: Tensor = (vectors - targets.detach()).square().sum(1).mean()
    return distance


@removing(inner_weight=1.0)
class AdvisedLearner(Learner):
    """Students of one modality each, distilled from a teacher of all modalities (VideoAdviser, Wang et al., 2023).

        stage 1, teacher:   CE(z, y) + mean |r_i - softmax(z_i)|^2
        stage 2, students:  label loss of f + advice_weight sum over modalities of mean |f_i - r_i|^2

    The teacher computes the class logits z and the regressed labels r. y are the classes of the clips. z and r are
    outputs of two linear layers on one MLP, which reads the joined features of all modalities. f are the outputs of
    the students.

    The method is an analogue, hence "lite". The teacher of VideoAdviser is the video model of CLIP with prompts,
    which cannot be rebuilt from one feature vector per clip. The order of the distillation is that of VideoAdviser:
    from the class logits to the regression of the teacher, and from this regression to the students. Sizes and
    weights are choices of this toolkit. The teacher reads all modalities of a clip, and is used only in training.
    At test, an item is embedded in label space by the student of its modality.

    Reference: Wang et al., VideoAdviser: video knowledge distillation for multimodal transfer learning, 2023, https://arxiv.org/abs/2309.15494

    Args:
        context: dimensions and classes.
        network: network of the students, see `NetworkOptions`.
        label_loss: label loss of the students: a name of LABEL_LOSSES, `weight` and options.
        hidden: hidden layers of the teacher.
        dropout: share of the teacher's hidden units dropped in training.
        teacher_share: share of the epochs that train the teacher.
        advice_weight: weight of the distillation into the students; 0 for students that do not depend on the
            teacher.

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """

    criterion = "score"
    takes_criterion = False  # the first stage trains the teacher, which is scored by accuracy

    def __init__(
        self,
        context: Context,
        *,
        network: Network = NETWORK,
        label_loss: LabelLossSection = ROW_NORM,
        hidden: Layers = (1024, 512),
        dropout: Dropout = 0.1,
        teacher_share: Annotated[float, Interval(ge=0, lt=1)] = 0.3,
        advice_weight: Annotated[Weight, Tuning(0.3, 1.0, 3.0)] = 1.0,
    ) -> None:
        super().__init__()
        classes = context.need_classes("video-adviser-lite")
        self.students = label_space_encoders(context, "video-adviser-lite", network)
        sizes = (sum(context.dimensions.values()), *hidden)
        self.teacher = nn.ModuleDict(
            {
                "trunk": layers(sizes, activation="relu", dropout=dropout),
                "logits": nn.Linear(sizes[-1], classes),
                "regression": nn.Linear(sizes[-1], classes),
            }
        )
        self.label_loss, self.share = summed_label_loss(label_loss), teacher_share
        self.advice_weight, self.names = advice_weight, context.modalities
        self._stage, self._taught = SECOND, True

    def players(self) -> Mapping[str, Player]:
        """Return the players "teacher" and "students"; the students are trained after the teacher."""
        return {
            "teacher": Player(list(self.teacher.parameters()), self._teacher_loss),
            "students": Player(list(self.students.parameters()), self._student_loss),
        }

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Return the stages "teacher" and "students", without a stage that has no epochs."""
        stages = in_two(epochs, self.share, (FIRST, SECOND), apart=True)
        self._taught = stages[0].name == FIRST
        return stages

    def warnings(self, valid: Validation) -> Iterable[str]:
        """Yield the warnings of every learner, and a warning about students that an untrained teacher advises."""
        yield from super().warnings(valid)
        if self.advice_weight and not self._taught:
            yield (
                "the teacher has no epochs, so the students learn from an untrained teacher; increase training.epochs "
                "or method.teacher_share, or set method.advice_weight to 0"
            )

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Store the stage, which determines the score of validation."""
        self._stage = epoch.stage

    def validate(self, valid: Validation) -> dict[str, float]:
        """Return the scores of the validation clips.

        In the stage "teacher", "score" is the accuracy of the teacher. In the stage "students", "score" is the mean
        MAP of the students.
        """
        scores = super().validate(valid)
        with torch.no_grad():
            clips = valid.clips
            parts = zip(*(self.in_batches(clips.vectors(m)) for m in self.names), strict=True)
            logits = torch.cat([self._advice(list(features))[0] for features in parts])
        accuracy = float((logits.argmax(1).cpu() == clips.labels.cpu()).float().mean())
        return {
            "score": accuracy if self._stage == FIRST else scores["map_mean"],
            "teacher_accuracy": accuracy,
        } | scores

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Return the label-space vectors (b, C) of features (b, d), computed by the student of the modality."""
        return self.students[modality](features)

    def _advice(self, features: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the teacher's class logits (b, C) and regressed labels (b, C).

        `features` contains the features (b, d) of each modality, in the order of `self.names`.
        """
        inner = self.teacher["trunk"](torch.cat(list(features), 1))
        return self.teacher["logits"](inner), self.teacher["regression"](inner)

    def _teacher_loss(self, batch: Batch) -> dict[str, Tensor]:
        logits, regressed = self._advice([batch.features[m] for m in self.names])
        label = F.cross_entropy(logits, batch.labels)
        inner = mean_squared_distance(regressed, logits.softmax(1))
        return {"loss": label + inner, "label_loss": label, "inner_loss": inner}

    def _student_loss(self, batch: Batch) -> dict[str, Tensor]:
        self.teacher.eval()  # the teacher is trained, so its outputs have no dropout
        with torch.no_grad():
            _, advice = self._advice([batch.features[m] for m in self.names])
        vectors = {m: self.embed(batch.features[m], m) for m in self.names}
        label = self.label_loss(vectors, batch.labels)
        advice_loss = torch.stack([mean_squared_distance(values, advice) for values in vectors.values()]).sum()
        return {"loss": label + self.advice_weight * advice_loss, "label_loss": label, "advice_loss": advice_loss}


video_adviser_lite = learned(AdvisedLearner)
