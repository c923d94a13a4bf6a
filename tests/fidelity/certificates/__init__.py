"""CERTIFICATES: every method, loss, network and front end that is held against released code."""

from certificates.certificate import Certificate
from certificates.generated import GENERATED_CERTIFICATES
from certificates.losses import LOSS_CERTIFICATES
from certificates.networks import NETWORK_CERTIFICATES

CERTIFICATES: tuple[Certificate, ...] = (*NETWORK_CERTIFICATES, *LOSS_CERTIFICATES, *GENERATED_CERTIFICATES)
