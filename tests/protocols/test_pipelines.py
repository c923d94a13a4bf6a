"""Pipelines of users' commands are audited; a command that fails gives one sentence."""

import sys

import pytest

from aadml.data import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.audit import audit
from aadml.protocols.audit_checks import CHECKS
from aadml.protocols.pipelines import CommandPipeline


@pytest.mark.slow
def test_a_users_command_is_audited(subject, tmp_path):
    script = tmp_path / "embed.py"
    script.write_text(
        "import sys, h5py\n"
        "with h5py.File(sys.argv[1]) as given, h5py.File(sys.argv[2], 'w') as made:\n"
        "    for modality in ('audio', 'visual'):\n"
        "        if modality in given:\n"
        "            made[modality] = given[modality][:, :3]\n"
    )
    small = to_splits(synthetic(classes=2, train=8, valid=4, test=8, dimensions=(4, 5)))
    found = audit(CommandPipeline(f"{sys.executable} {script} {{input}} {{output}}"), small, CHECKS)
    assert not [f for f in found if f.failed]


HARMFUL = (
    "{{python}} -c \"import sys, h5py; m = h5py.File(sys.argv[2], 'w'); m['visual'] = [[1.0]]; {}; m.close()\""
    " {{input}} {{output}}"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("{python} -c 'raise SystemExit(3)' {input} {output}", "ended with exit status 3"),
        ("/no/such/program {input} {output}", "cannot be started"),
        ("{python} -c pass {input} {output}", "did not write the file {output}"),
        ("{python} 'open quote {input} {output}", "cannot be parsed"),
        ("{python} -c pass {foo}", "lacks {input} or {output}"),
        ("", "lacks {input} or {output}"),
        ('{python} -c \'import sys; open(sys.argv[2], "w").write("x")\' {input} {output}', "cannot be read as HDF5"),
        ("{python} -c 'import sys, h5py; h5py.File(sys.argv[2], \"w\")' {input} {output}", "has no audio"),
        ("{python} -c 'import time; time.sleep(60)' {input} {output}", "longer than"),
        (HARMFUL.format("m['audio'] = h5py.ExternalLink(sys.argv[1], 'visual')"), "is a link to another file"),
        (HARMFUL.format("m.create_dataset('audio', (10**12, 4))"), "declares 16,000,000,000,000 bytes"),
        (HARMFUL.format("m.create_group('audio')"), "audio is not a dataset"),
    ],
)
def test_a_command_that_goes_wrong_is_one_sentence(command, says, subject):
    pipeline = CommandPipeline(command.replace("{python}", sys.executable), seconds=8.0)
    with pytest.raises(InputError) as caught:
        audit(pipeline, subject.splits, CHECKS, seconds=30.0)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
