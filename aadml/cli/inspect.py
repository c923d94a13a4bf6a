"""`aadml inspect`: say what is in a feature file of any layout."""

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from aadml.data.inspection.inspection import Examination

_SHOWN = 20


@click.command(name="inspect")
@click.argument("path", metavar="FILE", type=click.Path())
@click.option("--layout", help="Layout of FILE; detected by default.")
@click.option("--audio", help="The view to use as audio, if the layout does not say.")
@click.option("--visual", help="The view to use as visual, if the layout does not say.")
@click.option("--text", help="The view to use as text, if the layout does not say.")
@click.option(
    "--view",
    "views",
    multiple=True,
    metavar="NAME=VIEW",
    help="The view to use as another modality, flow=raft. Repeatable.",
)
@click.option(
    "--near-duplicates",
    is_flag=True,
    help="Look for all near-duplicates across splits, not for a sample, however long it takes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(path: str, as_json: bool, **options: Any) -> None:
    """Describe FILE, a feature file in any layout: counts, ranges, duplicates, origin, warnings.

    Near-duplicates are clips of one split that stand in another up to noise and encoding, by their features and by
    the fingerprints that `aadml extract` takes; beside each is its distance, as a share of the usual one between
    nearest neighbors. The first 20 are listed, with --json all.
    """
    from dataclasses import asdict

    from aadml.data.inspection import inspection

    found = inspection.inspect(path, **options)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2, ensure_ascii=False))
        return
    for line in _lines(path, found):
        click.echo(line)
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)


def _lines(path: str, found: "Examination") -> list[str]:
    splits = ", ".join(f"{count} {split}" for split, count in found.splits.items())
    lines = [f"{path}: {found.clips} clips, {len(found.classes)} classes ({splits})"]
    for name, figures in found.modalities.items():
        lines.append(
            f"{name}: {figures['dimensions']}-d, {figures['minimum']:.4g} to {figures['maximum']:.4g}, "
            f"mean {figures['mean']:.4g}, standard deviation {figures['standard_deviation']:.4g}, "
            f"{figures['zeros']:.1%} zeros"
        )
        origin = found.provenance.get(name, {})
        lines.append(f"  from {json.dumps(origin, ensure_ascii=False, sort_keys=True)}")
    for name, counts in found.present.items():
        there = ", ".join(f"{count} of {found.splits[split]} {split}" for split, count in counts.items())
        lines.append(f"{name} is there for {there} clips; the others are masked")
    for kind, duplicates in found.duplicates.items():
        within = ", ".join(f"{count} in {split}" for split, count in duplicates.within.items())
        across = ", ".join(f"{count} in {pair}" for pair, count in duplicates.across.items())
        lines.append(f"duplicates of {kind}: {within}; shared: {across}")
    lines += _duplicate_lines(found)
    lines += _sequence_lines(found)
    if found.columns:
        lines.append(f"columns: {', '.join(found.columns)}")
    if not found.classes:
        return lines
    width = max(map(len, found.classes))
    lines.append(f"{'class':<{width}}  " + "  ".join(f"{split:>6}" for split in found.splits))
    for name, counts in found.classes.items():
        lines.append(f"{name:<{width}}  " + "  ".join(f"{count:>6}" for count in counts.values()))
    return lines


def _duplicate_lines(found: "Examination") -> list[str]:
    pairs = found.near_duplicates
    lines = [
        f"near-duplicate: {pair.split} {pair.id} is {pair.other_split} {pair.other} "
        f"({', '.join(f'{kind} {distance:.2f}' for kind, distance in pair.distances.items())})"
        for pair in pairs[:_SHOWN]
    ]
    return lines + (
        [f"and {len(pairs) - _SHOWN} more near-duplicates (--json lists all)"] if len(pairs) > _SHOWN else []
    )


def _sequence_lines(found: "Examination") -> list[str]:
    """Say which rows there are over time, and how those of two modalities are joined."""
    lines = []
    for name, rows in found.sequences.items():
        line = f"{name} sequence: {rows['rows']} rows, {rows['fewest']} to {rows['most']} a clip"
        if rows.get("step") is not None:
            line += f", one every {rows['step']:.4g} s"
        if rows.get("earliest") is not None:
            line += f", the first at {rows['earliest']:.4g} to {rows['latest']:.4g} s"
        lines.append(line if "step" in rows else f"{line}; without times (version 1): extract again to join by time")
    if any("step" in rows for rows in found.sequences.values()):
        lines.append(
            "join by time: of clip i, the row of a modality M that stands at second t is M_offsets[i] + "
            "searchsorted(M_times[M_offsets[i]:M_offsets[i + 1]], t, side='right') - 1, in Python "
            "sequences[M].rows_at(i, [t]); take one t for both modalities, and s + 0.5 for segment s of AVE's labels"
        )
    return lines
