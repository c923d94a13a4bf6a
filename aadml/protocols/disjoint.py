"""The protocol of classes never trained on."""

from aadml.protocols.protocol import Protocol, Subject
from feature_extraction.ground.errors import InputError


def unseen_classes(subject: Subject, split: str) -> Subject:
    """Return the subject as it is, once no class of the scored split has a training clip.

    Raises:
        InputError: classes in common.
    """
    train, scored = subject.splits.train, subject.splits[split]
    trained = {train.class_names[label] for label in train.labels.unique().tolist()}
    both = [
        name for name in (scored.class_names[label] for label in scored.labels.unique().tolist()) if name in trained
    ]
    if both:
        raise InputError(
            f"unseen-classes: {', '.join(both[:5])} of the {split} split were trained on; train with unseen_classes=0.3"
        )
    return subject


UNSEEN_CLASSES = Protocol(before=unseen_classes)
"""As inductive, and no class that is scored was trained on."""
