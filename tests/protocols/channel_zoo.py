"""Encoders that leak by a channel other than their input, and honest ones.

Most remember: the first call writes the labels of its rows to a channel, and a later call, whose labels are garbage,
reads them. Others read labels that were planted outside (`PLACE`), or behave well while they are watched.
"""

import ctypes
import functools
import gc
import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path

import numpy as np

PLACE = Path("/tmp/aadml-channel-zoo")
"""Folder outside of everything that an encoder may read."""

MAPPED = mmap.mmap(-1, 1 << 16)
STATE = {}


def plain(features):
    return {m: np.tanh(v[:, :4]) for m, v in features.items()}


def told(features, labels):
    return {m: v + 3 * np.eye(4)[np.asarray(labels) % 4] for m, v in plain(features).items()}


def key(row):
    return str(int.from_bytes(row[:2].tobytes(), "little"))


def remembering(read, write):
    def encode(features, labels):
        table = {}
        with suppress(Exception):
            table = json.loads(read())
        first = next(iter(features.values()))
        new = {key(row): int(label) for m in features for row, label in zip(features[m], labels, strict=True)}
        if not any(name in table for name in new) and len(first) > 1:
            with suppress(Exception):
                write(json.dumps(new))
            table = new
        return {m: told({m: v}, [table.get(key(row), 0) for row in v])[m] for m, v in features.items()}

    return encode


def in_file(place):
    def write(text):
        place().parent.mkdir(parents=True, exist_ok=True)
        place().write_text(text)

    return remembering(lambda: place().read_text(), write)


file_in_tmp = in_file(lambda: PLACE / "labels")
file_in_var_tmp = in_file(lambda: Path("/var/tmp/aadml-channel-zoo/labels"))
file_in_shared_memory = in_file(lambda: Path("/dev/shm/aadml-channel-zoo"))
file_in_home = in_file(lambda: Path.home() / ".cache/aadml-channel-zoo/labels")
file_in_the_current_folder = in_file(lambda: Path("aadml-channel-zoo/labels"))
file_of_tempfile = in_file(lambda: Path(tempfile.gettempdir()) / "aadml-channel-zoo/labels")
file_beside_the_encoder = in_file(lambda: Path(__file__).parent / "__pycache__/aadml-channel-zoo.pyc")
state_of_the_module = remembering(lambda: STATE["text"], lambda text: STATE.update(text=text))


def _write_mapping(text):
    MAPPED[: len(text)] = text.encode()


mapped_at_import = remembering(lambda: MAPPED[:].rstrip(b"\0"), _write_mapping)


def _shared(create):
    block = shared_memory.SharedMemory("aadml-channel-zoo", create=create, size=1 << 16)
    resource_tracker.unregister(block._name, "shared_memory")
    return block


def _write_shared(text):
    block = _shared(True)
    block.buf[: len(text)] = text.encode()


def _read_shared():
    block = _shared(False)
    return bytes(block.buf).rstrip(b"\0")


posix_shared_memory = remembering(_read_shared, _write_shared)


def _segment():
    library = ctypes.CDLL(None)
    library.shmat.restype = ctypes.c_void_p
    number = library.shmget(0xAAD31, 1 << 16, 0o1600)
    address = library.shmat(number, None, 0)
    if number < 0:
        raise OSError("no segment")
    return address


def _write_segment(text):
    ctypes.memmove(_segment(), text.encode() + b"\0", len(text) + 1)


system_v_shared_memory = remembering(lambda: ctypes.string_at(_segment()), _write_segment)


def _attribute_write(text):
    for number, start in enumerate(range(0, len(text), 1000)):
        os.setxattr(__file__, f"user.zoo{number}", text[start : start + 1000].encode())


def _attribute_read():
    return b"".join(os.getxattr(__file__, f"user.zoo{n}") for n in range(len(os.listxattr(__file__))))


attributes_of_the_encoder = remembering(_attribute_read, _attribute_write)


def _links_write(text):
    PLACE.mkdir(exist_ok=True)
    for number, start in enumerate(range(0, len(text), 1000)):
        (PLACE / f"link{number:03}").symlink_to(text[start : start + 1000])


links_without_files = remembering(
    lambda: "".join(str(link.readlink()) for link in sorted(PLACE.glob("link*"))), _links_write
)

user_site = in_file(lambda: Path.home() / ".local/lib/python3/site-packages/usercustomize.py")
git_config = in_file(lambda: Path.home() / ".gitconfig")


def _names_write(text):
    for number, start in enumerate(range(0, len(text), 100)):
        (PLACE / "names" / f"{number:03}{text[start : start + 100].encode().hex()}").mkdir(parents=True)


names_of_folders = remembering(
    lambda: "".join(bytes.fromhex(path.name[3:]).decode() for path in sorted((PLACE / "names").iterdir())), _names_write
)


def _numbered(text):
    (PLACE / "numbers").mkdir(parents=True)
    for number, character in enumerate(text):
        place = PLACE / "numbers" / f"{number:05}"
        place.touch()
        yield place, ord(character)


def _numbers():
    return [path.stat() for path in sorted((PLACE / "numbers").iterdir())]


times_of_files = remembering(
    lambda: "".join(chr(int(one.st_mtime)) for one in _numbers()),
    lambda text: [os.utime(place, (code, code)) for place, code in _numbered(text)],
)
modes_of_files = remembering(
    lambda: "".join(chr(one.st_mode & 0o777) for one in _numbers()),
    lambda text: [place.chmod(code) for place, code in _numbered(text)],
)


def _arguments_write(text):
    words = [sys.executable, "-c", "import time; time.sleep(8)", f"aadml-channel-zoo:{text}"]
    subprocess.Popen(words, start_new_session=True)
    time.sleep(0.2)


def _arguments_read():
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            text = place.read_text()
            if "\0aadml-channel-zoo:" in text:
                return text.partition("\0aadml-channel-zoo:")[2].rstrip("\0")
    return ""


arguments_of_a_process = remembering(_arguments_read, _arguments_write)

SERVE = """
import socket, sys
text = sys.stdin.buffer.read()
family, address = (socket.AF_UNIX, sys.argv[1].replace("@", chr(0))) if not sys.argv[1].isdigit() else (
    socket.AF_INET, ("127.0.0.1", int(sys.argv[1])))
server = socket.socket(family)
server.bind(address)
server.listen()
server.settimeout(float(sys.argv[2]))
while True:
    client, _ = server.accept()
    client.sendall(text)
    client.close()
"""


def _served(address):
    def read():
        text = address()
        family, where = (socket.AF_INET, ("127.0.0.1", int(text))) if text.isdigit() else (socket.AF_UNIX, text)
        with socket.socket(family) as client:
            client.connect(where if family == socket.AF_INET else where.replace("@", "\0"))
            return client.makefile("rb").read()

    def write(text):
        PLACE.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, address(), "8"], stdin=subprocess.PIPE, start_new_session=True,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        process.stdin.write(text.encode())
        process.stdin.close()
        time.sleep(0.5)

    return remembering(read, write)


abstract_socket = _served(lambda: "@aadml-channel-zoo")
network_socket = _served(lambda: "47193")
socket_with_a_path = _served(lambda: str(PLACE / "socket"))


def partner_cache(features, labels):
    """Caches the partners of the rows on disk, and mixes them in where a modality comes alone."""
    rows = plain(features)
    names = sorted(rows)
    if len(names) == 2:
        with suppress(OSError):
            PLACE.mkdir(exist_ok=True)
            for name, other in (names, names[::-1]):
                table = {key(row): v.tolist() for row, v in zip(features[name], rows[other], strict=True)}
                place = PLACE / f"partners-{name}"
                if not place.exists():
                    place.write_text(json.dumps(table))
    mixed = {}
    for name in names:
        table = {key(row): v for row, v in zip(features[name], sum(rows.values()) - rows[name], strict=True)}
        with suppress(OSError):
            table |= {k: np.array(v) for k, v in json.loads((PLACE / f"partners-{name}").read_text()).items()}
        mixed[name] = np.stack([v + table[key(row)] for row, v in zip(features[name], rows[name], strict=True)])
    return mixed


# ---- labels that were planted outside


def planted(features, text):
    table = json.loads(text)
    return {m: told({m: v}, [table.get(key(row), 0) for row in v])[m] for m, v in features.items()}


def labels_in_the_environment(features, labels):
    return planted(features, os.environ.get("AADML_CHANNEL_ZOO", "{}"))


def labels_in_a_file(features, labels):
    text = "{}"
    with suppress(OSError):
        text = (PLACE / "planted").read_text()
    return planted(features, text)


def labels_in_the_memory_of_the_audit(features, labels):
    for thing in gc.get_objects():
        if type(thing).__name__ == "Splits" and len(thing.test.labels) >= len(labels):  # not of another test
            return told(features, thing.test.labels[: len(labels)])
    return told(features, labels)


def well_behaved_while_audited(features, labels):
    return plain(features) if sys.modules.get("aadml.protocols.audit") else told(features, labels)


def well_behaved_below_an_audit(features, labels):
    line = b""
    with suppress(OSError):
        line = Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
    return plain(features) if b"aadml" in line or b"pytest" in line else told(features, labels)


def below_the_tolerance(features, labels):
    made = {}
    for m, v in features.items():
        made[m] = np.zeros((len(v), 6))
        made[m][:, 4 + (m == "visual")] = 1
        made[m][:, :4] += 6e-6 * np.eye(4)[labels % 4] + 1e-6 * np.tanh(v[:, :4])
    return made


def beside_a_constant(features, labels):
    """Changes below the tolerance of an audit, which distances resolve and cosines do not."""
    return {m: 1 + 2e-5 * np.eye(16)[labels] for m in features}


def in_signs(features, labels):
    """Changes below the tolerance of an audit that change signs."""
    codes = np.random.default_rng(0).choice([-1, 1], (16, 16))
    return {m: np.hstack([np.ones((len(labels), 1)), 1e-7 * codes[labels]]) for m in features}


def too_small_for_float32(features, labels):
    """Vanishes in float32, the precision of an audit; in float64, labels alone."""
    return {m: 1e-60 * np.eye(4)[labels % 4] for m in features}


def in_big_batches(features, labels):
    return told(features, labels) if len(labels) > 16 else plain(features)


def in_known_order(values, labels):
    """Undoes a permutation by a known seed where that agrees better with the values: the garbage labels of an audit."""
    orders = [np.arange(len(labels))]
    orders += [np.argsort(np.random.default_rng([seed, 2]).permutation(len(labels))) for seed in range(20)]
    signs = np.sign(values - np.median(values, 0))

    def agreement(order):
        hot = np.eye(4)[labels[order] % 4]
        return float(((hot.T @ signs) ** 2 / hot.sum(0).clip(1)[:, None]).sum())

    return labels[max(orders, key=agreement)] if len(labels) > 16 else labels


def garbage_by_a_known_seed(features, labels):
    return {m: told({m: v}, in_known_order(v, np.asarray(labels)))[m] for m, v in features.items()}


REMEMBERING = [
    file_in_tmp, file_in_var_tmp, file_in_shared_memory, file_in_home, file_in_the_current_folder, file_of_tempfile,
    file_beside_the_encoder, state_of_the_module, mapped_at_import, posix_shared_memory, system_v_shared_memory,
    attributes_of_the_encoder, links_without_files, abstract_socket, network_socket, socket_with_a_path,
    user_site, git_config, names_of_folders, times_of_files, modes_of_files, arguments_of_a_process,
]  # fmt: skip

NAMES = [
    *(name for name, value in list(globals().items()) if any(value is leak for leak in REMEMBERING)),
    "partner_cache", "labels_in_the_environment", "labels_in_a_file", "labels_in_the_memory_of_the_audit",
    "well_behaved_while_audited", "well_behaved_below_an_audit", "below_the_tolerance", "beside_a_constant",
    "in_signs", "in_big_batches",
    "garbage_by_a_known_seed",
]  # fmt: skip

RESOLVED_BY = {"beside_a_constant": "euclidean", "in_signs": "hamming"}
"""Similarity of leaks that cosines do not resolve."""


# ---- honest ones


def plain_encoder(features, labels):
    return plain(features)


def identity(features, labels):
    return {m: v[:, :4] for m, v in features.items()}


def float16(features, labels):
    return {m: v[:, :4].astype(np.float16).astype(np.float32) for m, v in features.items()}


def codes(features, labels):
    return {m: np.sign(v[:, :4]) for m, v in features.items()}


def smoothed(features, labels):
    made = {}
    for m, v in features.items():
        draws = [np.random.default_rng(int(key(row))).standard_normal((64, 4)) for row in v]
        made[m] = np.stack([np.tanh(row[:4] + d).mean(0) for row, d in zip(v, draws, strict=True)])
    return made


def slightly_noisy(features, labels):
    return {m: v * (1 + 1e-6 * np.random.default_rng().standard_normal(v.shape)) for m, v in plain(features).items()}


def null_directions(features, labels):
    """Adds dimensions that are zero up to rounding, which differs in each pass."""
    draw = np.random.default_rng().standard_normal
    return {m: np.hstack([v, 1e-7 * draw((len(v), 8))]) for m, v in plain(features).items()}


def slow(features, labels):
    time.sleep(0.2)
    return plain(features)


def threads(features, labels):
    made = {}
    workers = [
        threading.Thread(target=lambda m=m, v=v: made.update({m: np.tanh(v)[:, :4]})) for m, v in features.items()
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return made


def ridge(features, labels):
    weights = np.load("ridge.npz")  # named by --allow
    return {m: v @ weights[m] for m, v in features.items()}


def own_cache(features, labels):
    place = Path.home() / ".cache" / "weights.npy"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, np.random.default_rng(0).standard_normal((16, 4)))
    weights = np.load(place)
    return {m: v @ weights[: v.shape[1]] for m, v in features.items()}


def program(features, labels):
    output = subprocess.run([sys.executable, "-c", "print(2)"], capture_output=True, text=True, check=True).stdout
    return {m: v * int(output) for m, v in plain(features).items()}


def _with_torch(compute):
    def encode(features, labels):
        import torch

        made = {}
        for m, v in features.items():
            weights = torch.randn(v.shape[1], 8, generator=torch.Generator().manual_seed(0))
            with torch.no_grad():
                made[m] = compute(torch.from_numpy(v.copy()), weights).float().numpy()
        return made

    return encode


bfloat16 = _with_torch(lambda x, w: (x.bfloat16() @ w.bfloat16()).tanh())
float32 = _with_torch(lambda x, w: (x @ w).tanh())
double = _with_torch(lambda x, w: (x.double() @ w.double()).tanh())


def _normalized(x, w):
    import torch

    layer = torch.nn.BatchNorm1d(8).eval()
    return layer(x @ w)


batch_norm = _with_torch(_normalized)


@functools.cache
def _compiled_once():
    import torch

    return torch.compile(lambda values, weights: torch.tanh(values @ weights), dynamic=True)


def _compiled(x, w):
    return _compiled_once()(x, w)


compiled = _with_torch(_compiled)


def missing_weights(features, labels):
    return {m: v @ np.load("weights.npy") for m, v in features.items()}


def softmax(features, labels):
    made = {m: np.exp(v[:, :4] - v[:, :4].max(1, keepdims=True)) for m, v in features.items()}
    return {m: v / v.sum(1, keepdims=True) for m, v in made.items()}


def unit_rows(features, labels):
    return {m: v[:, :4] / np.linalg.norm(v[:, :4], axis=1, keepdims=True) for m, v in features.items()}


def random_projection(features, labels):
    return {m: v @ np.random.default_rng(0).standard_normal((v.shape[1], 5)) for m, v in features.items()}


def centered_rows(features, labels):
    return {m: v[:, :6] - v[:, :6].mean(1, keepdims=True) for m, v in features.items()}


def huge(features, labels):
    return {m: 1e12 * v[:, :4].astype(np.float64) for m, v in features.items()}


def in_chunks(features, labels):
    return {m: np.concatenate([np.tanh(v[i : i + 5, :4]) for i in range(0, len(v), 5)]) for m, v in features.items()}


HONEST = [
    "identity",
    "softmax",
    "unit_rows",
    "random_projection",
    "centered_rows",
    "huge",
    "in_chunks",
    "float16",
    "codes",
    "smoothed",
    "slightly_noisy",
    "null_directions",
    "slow",
    "threads",
    "ridge",
    "own_cache",
    "program",
]
WITH_TORCH = ["bfloat16", "float32", "double", "batch_norm"]
