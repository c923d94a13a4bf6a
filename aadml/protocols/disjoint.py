"""Protocol for classes without training clips."""

from aadml.comparison.clips import Clips
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.protocol import Protocol, Subject


def unseen_classes(subject: Subject, split: str) -> Subject:
    """Check that no class of the scored split was in training, and return the subject unchanged.

    Training classes are the classes of the training clips. For a model that scores other data, the class names of the
    model are training classes too.

    Raises:
        InputError: a scored class was in training, or the classes are unknown.
    """
    seen, scored = _classes(subject.splits.train), _classes(subject.splits[split])
    if not scored:
        raise InputError(f"unseen-classes: the {split} split has no classes; pass labeled clips")
    if subject.retrain is None:
        if not subject.encoder.class_names:
            raise InputError(
                "unseen-classes: the model stores no class names, so its classes are unknown; choose another protocol"
            )
        seen += subject.encoder.class_names
    both = [name for name in scored if name in seen]
    if both:
        raise InputError(
            f"unseen-classes: the model was trained on the classes {', '.join(both[:5])} of the {split} split; "
            "train with --set unseen_classes=0.3 and score the test split, or pass clips of other classes"
        )
    return subject


def _classes(clips: Clips) -> tuple[str, ...]:
    return tuple(clips.class_names[label] for label in clips.labels.unique().tolist() if label != UNLABELLED)


UNSEEN_CLASSES = Protocol(before=unseen_classes)
"""The inductive protocol, restricted to models that were trained on no scored class."""
