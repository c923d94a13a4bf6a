"""Published weight files: addresses, checksums, licenses, and the folder that caches them.

Reference: Hershey et al., CNN architectures for large-scale audio classification, ICASSP 2017, https://doi.org/10.1109/ICASSP.2017.7952132
Reference: Szegedy et al., Rethinking the Inception architecture for computer vision, CVPR 2016, https://doi.org/10.1109/CVPR.2016.308
Reference: Abu-El-Haija et al., YouTube-8M: a large-scale video classification benchmark, 2016, https://arxiv.org/abs/1609.08675
Reference: Kong et al., PANNs: large-scale pretrained audio neural networks for audio pattern recognition, TASLP 2020, https://doi.org/10.1109/TASLP.2020.3030497
Reference: Mikolov et al., Distributed representations of words and phrases and their compositionality, NeurIPS 2013, https://arxiv.org/abs/1310.4546
"""

import json
import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from aadml.feature_extraction.ground.atomic import atomic_path, write_text
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ground.file_content import file_digest
from aadml.feature_extraction.ground.json_values import parse_object
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.weights.download import download

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WeightFile:
    """Published weight file.

    Attributes:
        file: file name in the cache.
        url: address of the file; if not `direct`, address of a page for a download by hand.
        purpose: network, publisher and format.
        license: license of the publication.
        citation: reference to the publication.
        md5: MD5; None if unpublished.
        sha256: SHA-256 or its first digits (PyTorch writes the first eight into file names); None if unpublished.
        direct: whether `url` is the address of the file itself.
    """

    file: str
    url: str
    purpose: str
    license: str
    citation: str
    md5: str | None = None
    sha256: str | None = None
    direct: bool = True

    @property
    def check(self) -> str:
        """Description of the published checksums that a download is checked against.

        The description also states if the address is not of a fixed revision. The SHA-256 of the first download, which
        later downloads must match, is not in the description.
        """
        kinds = ["the MD5 of the publisher"] if self.md5 else []
        if self.sha256:
            digits = len(self.sha256)
            kinds.append("the SHA-256" if digits == 64 else f"the first {digits} digits of the SHA-256")
        unpinned = ["the address is of the newest revision, not of a fixed one"] if "/resolve/main/" in self.url else []
        return "; ".join([" and ".join(kinds) or "no published checksum", *unpinned])


_VGGISH = "Hershey et al., CNN Architectures for Large-Scale Audio Classification, ICASSP 2017"
_INCEPTION = "Szegedy et al., Rethinking the Inception Architecture for Computer Vision, CVPR 2016"
_YOUTUBE8M = "Abu-El-Haija et al., YouTube-8M, arXiv:1609.08675, 2016"
_PANNS = "Kong et al., PANNs: Large-Scale Pretrained Audio Neural Networks, TASLP 2020"


def _timm(tag: str, origin: str) -> WeightFile:
    url = f"https://huggingface.co/timm/inception_v3.{tag}/resolve/main/model.safetensors"
    purpose = f"Inception-V3 of timm: {origin}"
    return WeightFile(f"inception_v3.{tag}.safetensors", url, purpose, "Apache-2.0", _INCEPTION)


def _panns(network: str, file: str, sha256: str | None = None) -> WeightFile:
    url = f"https://zenodo.org/records/3987831/files/{quote(file)}?download=1"
    return WeightFile(file, url, f"PANNs {network}, 32 kHz", "CC-BY-4.0", _PANNS, sha256=sha256)


# Sources of checksums: the VGGish authors' smoke test and ports (MD5), PyTorch's file names (SHA-256), Zenodo 3987831.
WEIGHTS: dict[str, WeightFile] = {
    "vggish": WeightFile(
        "vggish_model.ckpt", "https://storage.googleapis.com/audioset/vggish_model.ckpt",
        "VGGish, the TensorFlow checkpoint its authors released", "Apache-2.0", _VGGISH,
        md5="d1c7011e6366aa34176bb05c705e31a8",
    ),
    "vggish-pca": WeightFile(
        "vggish_pca_params.npz", "https://storage.googleapis.com/audioset/vggish_pca_params.npz",
        "VGGish, the PCA of AudioSet's released features", "Apache-2.0", _VGGISH,
        md5="c80cae691033abe7c7ecd11ea39fc834",
    ),
    "vggish-torch": WeightFile(
        "vggish-10086976.pth", "https://github.com/harritaylor/torchvggish/releases/download/v0.1/vggish-10086976.pth",
        "VGGish, the common PyTorch port of the same values", "Apache-2.0", _VGGISH, sha256="10086976",
    ),
    "inception-v3": WeightFile(
        "inception_v3_google-0cc3c7bd.pth", "https://download.pytorch.org/models/inception_v3_google-0cc3c7bd.pth",
        "Inception-V3 of torchvision, ImageNet", "BSD-3-Clause", _INCEPTION, sha256="0cc3c7bd",
    ),
    "inception-v3-tv": _timm("tv_in1k", "torchvision's"),
    "inception-v3-tf": _timm("tf_in1k", "TensorFlow's of 2016"),
    "inception-v3-tf-adv": _timm("tf_adv_in1k", "TensorFlow's, adversarially trained"),
    "inception-v3-gluon": _timm("gluon_in1k", "GluonCV's"),
    "inception-v3-2015": WeightFile(
        "pt_inception-2015-12-05-6726825d.pth",
        "https://github.com/mseitzer/pytorch-fid/releases/download/fid_weights/pt_inception-2015-12-05-6726825d.pth",
        "Inception-V3 of TensorFlow's graph of 2015-12-05, which YouTube-8M used", "Apache-2.0", _INCEPTION,
        sha256="6726825d",
    ),
    "youtube-8m-pca": WeightFile(
        "yt8m_pca.tgz", "https://data.yt8m.org/yt8m_pca.tgz",
        "YouTube-8M's PCA of Inception-V3 features, 2048 to 1024", "Apache-2.0", _YOUTUBE8M,
    ),
    "panns-cnn14": _panns(
        "Cnn14", "Cnn14_mAP=0.431.pth", "0dc499e40e9761ef5ea061ffc77697697f277f6a960894903df3ada000e34b31",
    ),
    "panns-cnn10": _panns("Cnn10", "Cnn10_mAP=0.380.pth"),
    "panns-resnet38": _panns("ResNet38", "ResNet38_mAP=0.434.pth"),
    "word2vec": WeightFile(
        "GoogleNews-vectors-negative300.bin", "https://code.google.com/archive/p/word2vec/",
        "Word2Vec, 3 million words, 300 dimensions", "Apache-2.0",
        "Mikolov et al., Distributed Representations of Words and Phrases, NeurIPS 2013", direct=False,
    ),
}  # fmt: skip


def weights_folder() -> Path:
    """Return the folder of weight files.

    The folder is `weights` in $AADML_CACHE if this variable is set. Otherwise the folder is `aadml/weights` in
    $XDG_CACHE_HOME, or in ~/.cache if $XDG_CACHE_HOME is not set.

    Raises:
        InputError: the home directory of the user is needed, but cannot be determined.
    """
    cache = os.environ.get("AADML_CACHE")
    try:
        if cache:
            return Path(cache).expanduser() / "weights"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "aadml" / "weights"
    except RuntimeError as error:
        raise InputError(
            f"cache: this user has no home directory ({error}); set AADML_CACHE to an absolute path"
        ) from error


def weights_path(name: str, folder: Path | None = None) -> Path:
    """Return the path of a verified published file in the cache. An absent file is downloaded or copied first.

    A file without a published checksum is trusted at first use, with a warning. Its SHA-256 is recorded in
    `checksums.json` of the cache and checked from then on, also before a later download is accepted.

    Args:
        name: a key of `WEIGHTS`.
        folder: folder with the file, which is copied to the cache; None to download the file from its address. If
            $AADML_MIRROR is set, the file is downloaded from the folder at that address instead.

    Raises:
        InputError: an unknown key, an absent file that cannot be obtained, or content that cannot be verified. For
            a file that cannot be obtained, the message contains file, address and folder.
    """
    entry = published(name)
    path = weights_folder() / entry.file
    if not path.is_file():
        if folder is None:
            _fetch(name, entry, path)
        else:
            _copy(entry, folder / entry.file, path)
    verify(name)
    return path


def _fetch(name: str, entry: WeightFile, path: Path) -> None:
    mirror = os.environ.get("AADML_MIRROR")
    url = f"{mirror.rstrip('/')}/{quote(entry.file)}" if mirror else entry.url
    try:
        if not entry.direct and not mirror:
            raise InputError(f"{url} is a page for downloads, not the address of the file; open the page in a browser")
        download(url, path, check=lambda part: _verify(entry, part))
    except InputError as error:
        raise type(error)(
            f"{name}: the file {entry.file} is not in {path.parent} and was not downloaded ({error}); "
            f"download the file from {url} and run `aadml weights get {name} --from FOLDER` with its folder"
        ) from error


def _copy(entry: WeightFile, source: Path, path: Path) -> None:
    if not source.is_file():
        raise InputError(f"{source} does not exist; download the file from {entry.url} into {source.parent}")
    with atomic_path(path) as temporary:
        shutil.copyfile(source, temporary)
        _verify(entry, temporary)


def published(name: str) -> WeightFile:
    """Return an entry of `WEIGHTS`.

    Raises:
        InputError: there is no such entry. The message contains the nearest name, if any.
    """
    return lookup(WEIGHTS, name, "published weight file")


def verify(name: str) -> str:
    """Check an existing file in the cache against its published checksum and the checksum recorded at first use.

    The first use records the SHA-256 in `checksums.json` if the cache can be written. A file without a published
    checksum is accepted at first use, with a warning.

    Args:
        name: a key of `WEIGHTS`.

    Returns:
        SHA-256 of the file.

    Raises:
        InputError: different content, an unknown key, or a damaged `checksums.json`.
    """
    entry = published(name)
    path = weights_folder() / entry.file
    records = recorded_checksums()
    checksum = file_digest(path)
    if records.get(entry.file) == checksum:
        return checksum
    _verify(entry, path)
    if not (entry.md5 or entry.sha256):
        _log.warning(
            "%s: no checksum is published, so the file is trusted at first use, and its SHA-256 is recorded (%s)",
            path,
            checksum,
        )
    records |= {entry.file: checksum}
    try:
        write_text(path.parent / "checksums.json", json.dumps(records, indent=1, sort_keys=True))
    except InputError as error:  # a cache for many users may be read-only
        _log.warning("%s: its checksum is not recorded (%s)", path, error)
    return checksum


def recognize(checksum: str, path: Path | None = None) -> str | None:
    """Return the key of `WEIGHTS` with the published or recorded checksum of a file; None if there is no such key.

    Args:
        checksum: SHA-256 of the file.
        path: path of the file, which may have any name. The file is read again for the MD5 that some publishers state.

    Raises:
        DamagedFileError: `checksums.json` of the cache is damaged.
    """
    recorded = {sha256: file for file, sha256 in recorded_checksums().items()}
    for name, entry in WEIGHTS.items():
        if recorded.get(checksum) == entry.file or (entry.sha256 and checksum.startswith(entry.sha256)):
            return name
    by_md5 = {entry.md5: name for name, entry in WEIGHTS.items() if entry.md5}
    return by_md5.get(file_digest(path, "md5")) if path and path.is_file() else None


def _verify(entry: WeightFile, path: Path) -> None:
    """Raise DamagedFileError if a file differs from the published content, or from the content of its first use."""
    place = weights_folder() / entry.file
    for kind, expected in (("md5", entry.md5), ("sha256", entry.sha256)):
        if expected and not (digest := file_digest(path, kind)).startswith(expected):
            raise DamagedFileError(
                f"{place}: its {kind} is {digest}, not the published {expected}; store an undamaged copy of the "
                "published file at this path"
            )
    recorded = recorded_checksums().get(entry.file)
    if recorded and (digest := file_digest(path)) != recorded:
        raise DamagedFileError(
            f"{place}: its SHA-256 is {digest[:16]}..., but was {recorded[:16]}... at first use; "
            "restore the earlier file, or accept the change by deleting the line of the file in "
            f"{place.with_name('checksums.json')}"
        )


def recorded_checksums() -> dict[str, str]:
    """Read the checksums of first use from `checksums.json` in the folder of weight files.

    Returns:
        SHA-256 of each file at its first use, by file name; {} if `checksums.json` is absent.

    Raises:
        DamagedFileError: `checksums.json` is not a JSON object.
    """
    place = weights_folder() / "checksums.json"
    try:
        content = parse_object(place.read_bytes(), place)
    except FileNotFoundError:
        return {}
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}, or delete the file, so that checksums are recorded again") from error
    return {str(file): str(value) for file, value in content.items()}
