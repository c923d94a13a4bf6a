"""Kill `aadml index` repeatedly during builds and updates, and check the index.

Usage: scripts/soak/index_kills.py [--media] [KILLS [CLIPS]]. With --media the source is a folder of videos, so that
    most
kills happen during extraction; otherwise a feature file. The source alternates between two states: clips are new,
changed or removed. After a kill, the index must contain one of the two states completely. Concurrent searches must
return one of them. The next call must reach the intended state, without missing or repeated items.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from aadml.data.sample_clips import sample_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.search import Index
from aadml.search.build_index import build

TIMEOUT = 120.0


def states(folder, clips):
    """Write two states of a source; return the content of each."""
    whole = synthetic(classes=4, train=clips, valid=0, test=40, dimensions=(32, 32), difficulty=0.5)
    whole = replace(whole, splits=("test",) * len(whole.ids))
    count, found = len(whole.ids), []
    for name, rows in (("a", np.arange(count - 40)), ("b", np.arange(40, count))):
        content = whole.select(rows)
        if name == "b":
            audio = content.features["audio"].copy()
            audio[::3] += 1
            content = replace(content, features={**content.features, "audio": audio})
        write_features(folder / f"{name}.h5", content)
        found.append(content)
    return found


def feature_source(folder, clips):
    """Return the path of a source of features, a function that sets its state, and its number of clips."""
    contents = states(folder, clips)
    return folder / "source.h5", lambda state: write_features(folder / "source.h5", contents[state]), clips


def media_source(folder, clips):
    """Return the same for a folder of videos; in the second state a third is absent, a third changed, a third new."""
    sample_data(folder / "rendered", clips=2 * clips, seconds=0.5)
    rendered = sorted((folder / "rendered").rglob("*.mp4"))
    place, third = folder / "media", clips // 3
    before = {f"{n}.mp4": rendered[n] for n in range(clips)}
    after = {f"{n}.mp4": rendered[n if n < 2 * third else n + clips // 2] for n in range(third, clips + third)}

    def put(state):
        place.mkdir(exist_ok=True)
        wanted = (before, after)[state]
        for path in place.iterdir():
            if path.name not in wanted:
                path.unlink()
        for name, video in wanted.items():
            shutil.copyfile(video, place / name)

    return place, put, clips


def in_child(work):
    """Start `work` in a separate process; return the process id."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def ended(child):
    """Wait for a process, with a time limit."""
    until = time.monotonic() + TIMEOUT
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    raise SystemExit("an update did not end")


def seen(index):
    """Return the results of an open index: the ids of all clips, and their scores for one query."""
    found = index.nearest({"audio": index._state.galleries["audio"][1].vectors[:1] * 0 + 1}, "audio", k=10**6)
    return frozenset((hit.id, round(hit.score, 5)) for hit in found.hits), len(found.hits)


def main(kills, clips, made):
    """Kill `kills` times, print the counts, and exit with 1 if any check failed."""
    generator, counts, wrong = np.random.default_rng(0), Counter(), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, put, clips = made(folder, clips)
        place = folder / "clips.index"
        wanted = []
        for state in (0, 1):  # each state is first reached without a kill
            put(state)
            build(source, folder / "whole.index", workers=1)
            with Index(folder / "whole.index") as index:
                wanted.append(seen(index))
        put(0)
        begin = time.monotonic()
        ended(in_child(lambda: build(source, folder / "whole.index", workers=1)))  # all modules are imported by now
        kept = {path.name for path in folder.iterdir()} | {place.name, f"{place.name}.work"}
        seconds = 1.2 * (time.monotonic() - begin)
        for number in range(kills):
            if number % 10 == 0 and place.exists():
                place.unlink()  # a first build is killed too
                shutil.rmtree(f"{place}.work", ignore_errors=True)
                put(0)
            child = in_child(lambda: build(source, place, workers=1))
            until, reader = time.monotonic() + float(generator.uniform(0, seconds)), None
            while time.monotonic() < until:
                if place.exists() and reader is None:
                    reader = Index(place)
                if reader is not None:
                    counts["searches meanwhile"] += 1
                    if seen(reader) not in wanted:
                        wrong.append(f"kill {number}: a search meanwhile saw neither state")
                time.sleep(0.001)
            if reader is not None:
                reader.close()
            os.kill(child, signal.SIGKILL)
            ended(child)
            if place.exists():
                with Index(place) as index:
                    state = seen(index)
                counts["after the kill: old" if state != wanted[number % 2] else "after the kill: new"] += 1
                if state not in wanted:
                    wrong.append(f"kill {number}: the index holds neither state")
            else:
                counts["after the kill: none yet"] += 1
            build(source, place, workers=1)
            with Index(place) as index:
                if seen(index) != wanted[number % 2]:
                    wrong.append(f"kill {number}: the next call did not reach the wanted state")
            left = {path.name for path in folder.iterdir()} - kept
            if left:
                wrong.append(f"kill {number}: left behind: {', '.join(sorted(left))}")
            put((number + 1) % 2)
    print(f"{kills} kills of `aadml index` ({clips} clips of {source.name}): {len(wrong)} wrong; {dict(counts)}")
    print("\n".join(wrong))
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:] if one != "--media"]
    media = "--media" in sys.argv
    main(*numbers, *(100, 12 if media else 300)[len(numbers) :], media_source if media else feature_source)
