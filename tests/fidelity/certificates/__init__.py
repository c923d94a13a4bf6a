"""CERTIFICATES: every method, loss, network and front end that is held against released code."""

from certificates.audio_text import AUDIO_TEXT_CERTIFICATES
from certificates.certificate import Certificate
from certificates.class_proxies import CLASS_PROXY_CERTIFICATES
from certificates.correlation import CORRELATION_CERTIFICATES
from certificates.extraction import EXTRACTION_CERTIFICATES
from certificates.frame_training import FRAME_TRAINING_CERTIFICATES
from certificates.front_ends import FRONT_END_CERTIFICATES
from certificates.generated import GENERATED_CERTIFICATES
from certificates.hashing import HASHING_CERTIFICATES
from certificates.losses import LOSS_CERTIFICATES
from certificates.memories import MEMORY_CERTIFICATES
from certificates.networks import NETWORK_CERTIFICATES
from certificates.pair_training import PAIR_TRAINING_CERTIFICATES
from certificates.training import TRAINING_CERTIFICATES
from certificates.two_implementations import TWO_CERTIFICATES

WITHOUT_EQUAL = {
    "audio_visual/hdml_gedml": "another algorithm: a constant distance, and no embedding layer after the generator",
    "audio_visual/cca_zoo_rcca": "another ridge: (1 - c) S + c I there, S + ridge I here",
    "audio_visual/pml_contrastive": "distances unsquared, means of positives and negatives added",
}
"""References that nothing here is held against, and why."""

NOT_HELD = {
    "audio_visual/hdml_triplet_training": "batch normalization in the generator, and means over blocks of 64 steps",
    "audio_text/train_mei_whole_nt_xent": "the heads are held; the networks below them are not trained from a recipe",
    "audio_text/train_pml_contrastive": "distances unsquared, means of positives and negatives added",
}
"""Trainings of released code that no training here is held against, and why."""

CERTIFICATES: tuple[Certificate, ...] = (
    *NETWORK_CERTIFICATES,
    *HASHING_CERTIFICATES,
    *CORRELATION_CERTIFICATES,
    *LOSS_CERTIFICATES,
    *CLASS_PROXY_CERTIFICATES,
    *MEMORY_CERTIFICATES,
    *GENERATED_CERTIFICATES,
    *AUDIO_TEXT_CERTIFICATES,
    *FRONT_END_CERTIFICATES,
    *EXTRACTION_CERTIFICATES,
    *TRAINING_CERTIFICATES,
    *PAIR_TRAINING_CERTIFICATES,
    *FRAME_TRAINING_CERTIFICATES,
    *TWO_CERTIFICATES,
)
