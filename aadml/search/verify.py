"""Verification of runs, models, feature files, embeddings, indexes and ledgers by their checksums."""

import errno
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import h5py

from aadml.feature_extraction.feature_file.reading import is_feature_file, open_features
from aadml.feature_extraction.foreign.hdf5 import open_hdf5
from aadml.feature_extraction.ground.block_checksums import CheckedReader, has_checksums
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ledger.integrity import damages_of_ledger
from aadml.feature_extraction.ledger.ledger import RECORDS
from aadml.runs.verify import verify_folder
from aadml.search import checksums
from aadml.search.store import SQLITE, connect, reading


def verify(path: str | Path, *, on_unverified: Callable[[str], None] = lambda reason: None) -> list[str]:
    """Check a run, a model, a feature file, a file of embeddings, an index or a ledger against its checksums.

    Args:
        path: the folder or the file; a ledger is the folder `<output>.work`.
        on_unverified: called with a sentence if the file is readable but has no checksums. Such files are written by
            other programs and earlier versions of aadml.

    Returns:
        Sentences on damaged, missing or changed files or parts; empty if all parts are intact. Of a model, an index or
        an HDF5 file, only the first damaged part is reported.

    Raises:
        InputError: the file does not exist, cannot be read, or is of another kind.

    Example:
        >>> folder = aadml.fit("synthetic:ave", method="cca").save("my model")
        >>> aadml.verify(folder)
        []
    """
    place = Path(path)
    try:
        if not place.exists():
            raise InputError(f"{place} does not exist; pass a run, a model, a file of aadml or a ledger")
        if not place.is_file():
            return damages_of_ledger(place) if (place / RECORDS).is_file() else verify_folder(place)
        with place.open("rb") as file:
            head = file.read(len(SQLITE))
        if not head:
            return [f"{place} is empty; restore the file from a copy, or create it again"]
        verified = _verify_index(place) if head == SQLITE else _verify_blocks(place)
    except DamagedFileError as error:
        return [str(error)]
    except OSError as error:
        message = f"{place} cannot be read ({error.strerror or error})"
        if error.errno == errno.EIO:
            return [f"{message}; restore the file from a copy"]
        raise InputError(f"{message}; check the path and its permissions") from error
    if not verified:
        on_unverified(f"{place} is readable, but has no checksums (another program or an earlier version wrote it)")
    return []


def _verify_index(path: Path) -> bool:
    with closing(connect(path)) as database, reading(database, path):
        checksums.check_all(database)
        return checksums.has_checksums(database)


def _verify_blocks(path: Path) -> bool:
    """Verify a file with checksums, or read a feature file without checksums.

    Returns:
        Whether the file has checksums.
    """
    is_sealed = has_checksums(path)
    if not is_sealed and not h5py.is_hdf5(path):
        raise InputError(f"{path} is a file of another kind; pass a run, a model, a file of aadml or a ledger")
    if is_sealed:
        with CheckedReader(path) as reader:
            reader.verify()
    with open_hdf5(path):
        pass
    if not is_sealed and is_feature_file(path):
        with open_features(path) as (_, rows):
            for modality in rows.values():
                for values in (modality.pooled, modality.sequence, modality.times):
                    for _ in values.blocks() if values is not None else ():
                        pass
    return is_sealed
