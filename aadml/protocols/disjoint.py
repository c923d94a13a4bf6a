"""The protocol of classes never trained on."""

from aadml.comparison.clips import Clips
from aadml.feature_extraction.feature_file import UNLABELLED
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.protocol import Protocol, Subject


def unseen_classes(subject: Subject, split: str) -> Subject:
    """Return the subject as it is, once the model was trained on no class of the scored split.

    What a run was trained on, its own training clips say; of a model that scores later data, its class names do too.

    Raises:
        InputError: classes in common, or nobody knows the classes.
    """
    seen, scored = _with_clips(subject.splits.train), _with_clips(subject.splits[split])
    if not scored:
        raise InputError(f"unseen-classes: the {split} split has no classes")
    if subject.retrain is None:
        if not subject.encoder.class_names:
            raise InputError("unseen-classes: the model was trained without classes, so what it saw is not known")
        seen += subject.encoder.class_names
    both = [name for name in scored if name in seen]
    if both:
        raise InputError(
            f"unseen-classes: {', '.join(both[:5])} of the {split} split were trained on; train with unseen_classes=0.3"
        )
    return subject


def _with_clips(clips: Clips) -> tuple[str, ...]:
    """Name the classes that have clips."""
    return tuple(clips.class_names[label] for label in clips.labels.unique().tolist() if label != UNLABELLED)


UNSEEN_CLASSES = Protocol(before=unseen_classes)
"""As inductive, and no class that is scored was trained on."""
