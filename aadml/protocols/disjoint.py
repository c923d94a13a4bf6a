"""The protocol of classes never trained on."""

from aadml.protocols.protocol import Protocol, Subject
from feature_extraction.feature_file import UNLABELLED
from feature_extraction.ground.errors import InputError


def unseen_classes(subject: Subject, split: str) -> Subject:
    """Return the subject as it is, once no class of the scored split has a training clip.

    Raises:
        InputError: classes in common.
    """
    train, scored = subject.splits.train, subject.splits[split]
    of_train, of_scored = (
        [clips.class_names[label] for label in clips.labels.unique().tolist() if label != UNLABELLED]
        for clips in (train, scored)
    )
    both = [name for name in of_scored if name in of_train]
    if both:
        raise InputError(
            f"unseen-classes: {', '.join(both[:5])} of the {split} split were trained on; train with unseen_classes=0.3"
        )
    return subject


UNSEEN_CLASSES = Protocol(before=unseen_classes)
"""As inductive, and no class that is scored was trained on."""
