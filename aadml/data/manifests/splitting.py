"""Division of a listing into train, valid and test: by its splits, or at random."""

from collections.abc import Sequence
from dataclasses import replace

from aadml.data.manifests.listing import ListedClip, Listing
from aadml.data.splitting.division import DEFAULT_RULE, connected, divide, shares_of
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import suggestion
from aadml.feature_extraction.manifest import SPLITS


def with_splits(listing: Listing, rule: str | None, by: str | None, seed: int) -> Listing:
    """Return the listing with a split for every clip.

    Args:
        listing: the clips.
        rule: "random:0.7/0.1/0.2"; None for the splits of the source, or DEFAULT_RULE if no clip has a split.
        by: a column; clips with equal nonempty cells are in the same split.
        seed: seed of a random split.

    Returns:
        The listing; after a random draw, with a note on the rule and on the resulting shares.

    Raises:
        InputError: an unknown rule, impossible shares, a missing column, a clip with an invalid or empty split, or
            clips in several splits despite equal cells of `by`.
    """
    kind, _, value = _rule_for(listing, rule).partition(":")
    if kind == "random":
        shares = shares_of(value)
        labels = [entry.labels for entry in listing.entries]
        splits = divide(labels, _groups(listing.entries, by), shares, seed)
        how = f"drawn at random (seed {seed}{f', no {by} is divided' if by else ''})"
        reached = _shares([splits.count(split) / len(splits) for split in SPLITS])
        how += f"; shares of {_shares(shares)} were wanted, and {reached} were reached"
    elif not rule:
        return _checked(listing, by)
    else:
        raise InputError(
            f"--split {rule} is not a division; write random:TRAIN/VALID/TEST, as in {DEFAULT_RULE}, or name a column "
            "of splits with --columns split=COLUMN"
        )
    entries = tuple(replace(entry, split=split) for entry, split in zip(listing.entries, splits, strict=True))
    return _checked(replace(listing, entries=entries, notes=(*listing.notes, f"the split is {how}")), by)


def draws(listing: Listing, rule: str | None) -> bool:
    """Return whether `with_splits` with this `rule` draws the splits of `listing` at random."""
    return _rule_for(listing, rule).startswith("random")


def _rule_for(listing: Listing, rule: str | None) -> str:
    divided = any(entry.split for entry in listing.entries)
    return rule or ("" if divided else DEFAULT_RULE)


def _column(entries: Sequence[ListedClip], name: str, option: str) -> list[str]:
    if name not in entries[0].columns:
        raise InputError(f"{option}{name}: there is no column '{name}'; {suggestion(name, entries[0].columns)}")
    return [entry.columns[name] for entry in entries]


def _groups(entries: Sequence[ListedClip], by: str | None) -> list[int]:
    """Return a group number per clip; clips of one recording, or with equal nonempty cells of `by`, form a group."""
    return connected([[entry.source for entry in entries], *([_column(entries, by, "--split-by ")] if by else [])])


def _checked(listing: Listing, by: str | None) -> Listing:
    """Return the listing, checked for a valid split of every clip and a single split of every group of `by`.

    Raises:
        InputError: a clip has an invalid split, or clips with equal cells of `by` are in several splits.
    """
    wrong = [entry for entry in listing.entries if entry.split not in SPLITS]
    if wrong:
        raise InputError(
            f"{len(wrong)} of {len(listing.entries)} clips have a split other than {', '.join(SPLITS)} (clip "
            f"'{wrong[0].id}' has '{wrong[0].split}'); correct the column, or draw the splits of all clips: --split "
            f"{DEFAULT_RULE}"
        )
    splits_of: dict[str, set[str]] = {}
    for entry, cell in zip(listing.entries, _column(listing.entries, by, "--split-by ") if by else (), strict=False):
        splits_of.setdefault(cell, set()).add(entry.split)
    torn = [cell for cell, splits in splits_of.items() if cell and len(splits) > 1]
    if torn:
        raise InputError(
            f"--split-by {by}: clips with the value '{torn[0]}' are in several splits; pass --split {DEFAULT_RULE}"
        )
    return listing


def _shares(shares: Sequence[float]) -> str:
    return "/".join(f"{share:.3g}" for share in shares)
