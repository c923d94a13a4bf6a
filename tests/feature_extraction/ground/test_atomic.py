import os
import re
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from aadml.feature_extraction.ground.atomic import (
    atomic_path,
    refuse_links,
    refuse_other_kind,
    remove_leftovers,
    separate_hard_links,
    write_bytes,
    write_text,
)
from aadml.feature_extraction.ground.errors import InputError


def test_removes_what_a_kill_left_of_this_file_and_of_no_other(tmp_path):
    for name in [".f.ab_d1234.partial.h5", ".f.0.ab_d1234.partial.h5", ".g.ab_d1234.partial.h5", "f.h5", ".f.h5"]:
        (tmp_path / name).write_text("")
    remove_leftovers(tmp_path / "f.h5")
    kept = [".f.0.ab_d1234.partial.h5", ".f.h5", ".g.ab_d1234.partial.h5", "f.h5"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    remove_leftovers(tmp_path / "nowhere" / "f.h5")


def test_an_interruption_while_the_temporary_file_is_created_leaves_nothing(tmp_path, monkeypatch):
    opened = os.open

    def interrupted(path, flags, *mode, **options):
        handle = opened(path, flags, *mode, **options)
        if flags & os.O_CREAT:
            os.close(handle)
            raise KeyboardInterrupt
        return handle

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "file.txt", "text")
    assert not [*tmp_path.iterdir()]


def test_an_address_is_not_written_into_a_local_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for address in ("s3://bucket/x.h5", "https://me:SECRET@host/x.h5", "hf:name", "hf:owner/name"):
        for output in (address, Path(address)):
            with pytest.raises(
                InputError, match=r"^the output begins with \w+: like an address, .*; pass a local path$"
            ):
                write_text(output, "")
            with pytest.raises(InputError, match="like an address"):
                refuse_other_kind(output, "a feature file", lambda _: True)
    assert list(tmp_path.iterdir()) == []
    for name in ("a:", "a:b/c", "legacy:bank.json", "2026-11-30T01:02:03/x", "hfile", f"{tmp_path}/s3:/bucket/x.h5"):
        write_text(name, "")


def test_a_device_is_not_replaced_by_a_file(tmp_path):
    place = tmp_path / "pipe"
    os.mkfifo(place)
    with pytest.raises(InputError, match="pipe is a device, a pipe or a socket"):
        write_text(place, "text")
    assert place.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_file_that_stands_for_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/a/b\.txt cannot be written, because .*file is not a folder"):
        write_text(tmp_path / "file" / "a" / "b.txt", "text")


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_stays_and_its_file_is_written(tmp_path, there):
    (tmp_path / "store").mkdir()
    file, link = tmp_path / "store" / "file.txt", tmp_path / "link.txt"
    link.symlink_to("store/file.txt")
    if there:
        file.write_text("old")
    write_text(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file.txt", "link.txt", "store"]


def test_what_a_kill_left_beside_the_file_of_a_link_is_removed(tmp_path):
    (tmp_path / "store").mkdir()
    left, link = tmp_path / "store" / ".file.ab_d1234.partial.txt", tmp_path / "link.txt"
    link.symlink_to("store/file.txt")
    left.write_text("")
    remove_leftovers(link)
    assert not left.exists()


def test_a_link_to_itself_is_refused(tmp_path):
    link = tmp_path / "link.txt"
    link.symlink_to("link.txt")
    with pytest.raises(InputError, match=r"link\.txt is in a loop of symbolic links; pass"):
        write_text(link, "text")
    assert link.is_symlink()


def test_a_link_to_a_folder_is_refused_as_the_folder(tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to("folder")
    with pytest.raises(InputError, match="is a folder"):
        write_text(link, "text")
    assert link.is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o777])
def test_what_is_replaced_hands_on_its_permissions(tmp_path, mode):
    file = tmp_path / "file.txt"
    file.write_text("old")
    file.chmod(mode)
    write_text(file, "new")
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert file.read_text() == "new"


def test_what_is_replaced_hands_on_its_owner_and_its_group_as_far_as_permitted(tmp_path, monkeypatch):
    file, calls = tmp_path / "file.txt", []

    def fchown(handle, *owner):
        calls.append(owner)
        assert stat.S_IMODE(os.fstat(handle).st_mode) == 0o600
        raise PermissionError

    monkeypatch.setattr(os, "fchown", fchown)
    write_text(file, "old")
    assert not calls
    write_text(file, "new")
    assert calls == [(-1, file.stat().st_gid), (file.stat().st_uid, -1)]
    assert file.read_text() == "new"


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_a_group_that_cannot_be_kept_has_the_permissions_of_others(tmp_path, monkeypatch):
    file = tmp_path / "file.txt"
    file.write_text("old")
    os.chown(file, -1, 4242)
    file.chmod(0o664)
    monkeypatch.setattr(os, "fchown", lambda *_: (_ for _ in ()).throw(PermissionError))
    write_text(file, "new")
    assert (file.stat().st_gid, stat.S_IMODE(file.stat().st_mode)) == (os.getgid(), 0o644)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("swap", ["symlink_to", "hardlink_to"])
def test_a_file_that_another_user_puts_in_place_of_the_temporary_file_is_not_given_away(tmp_path, swap):
    file, victim = tmp_path / "file.txt", tmp_path / "victim.txt"
    file.write_text("old")
    os.chown(file, 4242, 4242)
    victim.write_text("secret")
    victim.chmod(0o600)
    with suppress(InputError), atomic_path(file) as temporary:
        temporary.unlink()
        getattr(temporary, swap)(victim)
    assert (victim.stat().st_uid, victim.stat().st_gid) == (0, 0)
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600


def test_the_temporary_file_is_private_and_on_the_disk_before_it_replaces_the_file(tmp_path, monkeypatch):
    flushed, before = [], os.umask(0o027)
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(Path(f"/proc/self/fd/{handle}").resolve()))
    final = tmp_path / "deep" / "new" / f"{'a' * 240}.txt"
    try:
        with atomic_path(final) as temporary:
            assert temporary.parent == final.parent
            assert re.fullmatch(r"\.a{80}\.[0-9a-f]{8}\.partial\.txt", temporary.name)
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
            assert not flushed
        assert flushed == [temporary]
        assert stat.S_IMODE(final.stat().st_mode) == 0o640
        with atomic_path(final, durable=False) as hasty:
            pass
        write_bytes(final, b"x", durable=False)
        assert flushed == [temporary]
        opened = sorted(Path("/proc/self/fd").iterdir())
        write_text(final, "x")
        assert sorted(Path("/proc/self/fd").iterdir()) == opened
        assert len(flushed) == 2
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    for left in (hasty, temporary):
        left.touch()
    remove_leftovers(final)
    assert [*final.parent.iterdir()] == [final]


@pytest.mark.parametrize("raised", [OSError("no space"), KeyboardInterrupt()])
def test_a_failed_write_keeps_the_old_file(tmp_path, raised):
    (tmp_path / "file.txt").write_text("old")
    message = r"file\.txt cannot be written \(no space\); choose another path, or free some space$"
    expected = pytest.raises(InputError, match=message) if isinstance(raised, OSError) else pytest.raises(type(raised))
    with expected, atomic_path(tmp_path / "file.txt") as temporary:
        temporary.write_text("new")
        raise raised
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file.txt", "old")]


def test_only_a_file_of_the_same_kind_or_an_empty_file_is_replaced(tmp_path):
    def refuse(name):
        refuse_other_kind(tmp_path / name, "a list", lambda path: path.read_text() == "[]")

    for name, text in (("list", "[]"), ("empty", ""), ("other", "x")):
        (tmp_path / name).write_text(text)
    (tmp_path / "link").symlink_to("other")
    for name in ("list", "empty", "absent"):
        refuse(name)
    for name in ("other", "link"):
        with pytest.raises(
            InputError, match="other exists and is not a list, so the file is not overwritten; choose another"
        ):
            refuse(name)
    with pytest.raises(InputError, match="is a folder; pass the path of a file"):
        refuse(".")
    with pytest.raises(InputError, match=r" cannot be written \(File name too long\); choose another path$"):
        refuse("a" * 300)


def test_links_are_refused_at_a_path_and_below_it(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    refuse_links(tmp_path, tmp_path / "a" / "b" / "file", tmp_path / "absent")
    for link, target in (("a/b/to_folder", tmp_path), ("a/b/to_file", "file"), ("dangling", "none"), ("loop", "loop")):
        place = tmp_path / link
        place.symlink_to(target)
        for checked in (tmp_path, place):
            with pytest.raises(InputError, match=f"{link} is a symbolic link, and is not written; replace it by a"):
                refuse_links(checked)
        place.unlink()


def test_a_file_with_other_hard_links_becomes_a_file_of_its_own(tmp_path):
    file, other, link = (tmp_path / name for name in ("file", "other", "link"))
    file.write_text("text")
    before = file.stat().st_ino
    separate_hard_links(file, tmp_path / "absent", tmp_path)
    assert file.stat().st_ino == before
    other.hardlink_to(file)
    link.symlink_to(tmp_path / "absent")
    separate_hard_links(file, link)
    assert (file.read_text(), file.stat().st_nlink, other.stat().st_ino) == ("text", 1, before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "other"]
