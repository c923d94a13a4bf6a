"""Write docs/fidelity.md: comparisons with released code, their errors, and intended differences.

Usage: python scripts/fidelity.py REFERENCES. REFERENCES contains the outputs of the released code for stored weights
and inputs (the folders audio_visual and audio_text). tests/fidelity compares, and this script writes the tables.
"""

import csv
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "fidelity"))

from certificates import CERTIFICATES, NOT_HELD, WITHOUT_EQUAL  # noqa: E402
from certificates.certificate import Certificate  # noqa: E402

from aadml.papers.fidelity import FIDELITY  # noqa: E402

PAGE = ROOT / "docs" / "fidelity.md"
MUTANTS = ROOT / "docs" / "lab" / "soak" / "training_mutations.csv"

TOP = """# Fidelity

Every method and loss, compared with its released code on the same weights and inputs. An error is the largest absolute
difference, divided by the largest absolute value of the source, in float64 unless a row says otherwise. Sources marked
* could not be run; their formulas were written out from the code. `python scripts/fidelity.py REFERENCES` writes this
page, and `tests/fidelity` checks every row against its limit.

"""

HEAD = ("method or loss", "source", "compared", "largest error", "limit", "deviations")

METHODS = """
## The methods of table 1

Parts that a row above certifies (`aadml/papers/fidelity.yaml`): against released code, or against a second
implementation ("second"). The last column counts wrong trainings that a test notices
(`scripts/soak/training_mutations.py`). {held} of {stored} trainings of released code are held step by step.

{methods}"""

BOTTOM = """
## What differs on purpose

Options named `fidelity` choose between `source`, the released code, and `repaired`, the default. The column "apart" is
the change of the loss or figure by the repair, on the numbers of the reference.

{repairs}
Decided without an option:

- **DAML** follows the paper. The public GeDML subtracts the margin, and takes the adversary's distance of features.
- **C-CCA** sums in float64 (the released code in float32) and accepts classes of unequal size, where that code fails.
- **DCCA** omits the released sum of all singular values. It takes roots entry by entry, and its gradient is not finite.
- **NT-Xent** masks the other captions of a clip unless `mask_same_id: false`; the released mask acts after the softmax
  and has no effect. The rows of `reproduce mei` and `reproduce 3cmlf` have it false.
- **HDML** has no batch normalization in the generator and before the last layer, and its means run over steps.

## Without released code

| method or loss | checked against |
| --- | --- |
| hard, semi-hard and batch-hard triplet | their definitions as loops (`tests/objective`, `tests/selections`) |
| SupCon over one pair a class | its definition; the AADML paper does not define it |
| DCIL | its definition as loops; the paper's sizes are those of images and sentences |
| 3CMLF | equations 2 and 3 (compared above), and the released NT-Xent of Mei et al.; no code is public |
| CCTL | its definition; known from the abstract and the AADML paper |
| EICS, TLCA, MSNSCA | known from the abstract; MSNSCA's sizes are of the same authors' SMSA-VA-CMR |
| VideoAdviser | an analogue on features (`video-adviser-lite`), known from the abstract |
| embedding expansion (`ee-`) | its definition; each item has one random partner of its class, no anchor is generated |
| AADML | no code is public: the configs `paper-*` are readings of its equations |

## References without an equal here

{absent}"""


def main() -> None:
    """Measure every certificate and write the page."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        raise SystemExit(__doc__)
    errors = [certificate.errors(Path(sys.argv[1])) for certificate in CERTIFICATES]
    rows = [_row(one, found) for one, found in zip(CERTIFICATES, errors, strict=True)]
    repairs = [
        (one.subject, name, f"{found[name]:.1g}")
        for one, found in zip(CERTIFICATES, errors, strict=True)
        for name in one.repairs
    ]
    trainings = {one.file for one in CERTIFICATES if one.folder == "training_references"}
    absent = [(name.rpartition("/")[2], why) for name, why in (WITHOUT_EQUAL | NOT_HELD).items()]
    page = (
        TOP
        + _table(HEAD, rows)
        + METHODS.format(
            methods=_table(("method", "row", *FIDELITY.parts, "mutations caught"), _methods()),
            held=len(trainings),
            stored=len(trainings) + len(NOT_HELD),
        )
        + BOTTOM.format(
            repairs=_table(("method or loss", "here", "apart"), repairs),
            absent=_table(("reference", "why"), absent),
        )
    )
    PAGE.write_text(page, encoding="utf-8")


def _row(certificate: Certificate, errors: Mapping[str, float]) -> tuple[str, ...]:
    largest = max(errors[name] for name in certificate.compared)
    return (
        certificate.subject,
        certificate.source + (" *" if certificate.by_hand else ""),
        ", ".join(certificate.compared),
        f"{largest:.0e}" if largest else "0",
        f"{certificate.tolerance:.0e}",
        certificate.deviations,
    )


def _methods() -> list[tuple[str, ...]]:
    with MUTANTS.open(encoding="utf-8", newline="") as file:
        mutants = list(csv.DictReader(file))
    states = {one.subject: "second" if one.by_hand else "released" for one in CERTIFICATES} | {None: "–"}
    return [
        (name, row.kind, *(states[row.held.get(part)] for part in FIDELITY.parts), _caught(mutants, name))
        for name, row in FIDELITY.methods.items()
    ]


def _caught(mutants: list[dict[str, str]], name: str) -> str:
    tried = [mutant["caught by"] for mutant in mutants if mutant["method"] == name]
    return f"{sum(map(bool, tried))} of {len(tried)}" if tried else "–"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
