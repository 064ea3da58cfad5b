"""Runs the command, and makes the small data sets and images that its tests work on."""
import array
import contextlib
import fcntl
import gzip
import json
import os
import pathlib
import pty
import random
import signal
import struct
import subprocess
import tempfile
import termios
import unittest
import zlib

COMMAND = os.environ["PURINE_COMMAND"]
SIDE = 20  # of the images, in pixels
CLASSES = ["left", "right", "above", "below"]


def picture(label, noise):
    """A grey image of which one half is bright, and noise on it: the bytes of its rows."""
    rows = []
    for y in range(SIDE):
        for x in range(SIDE):
            bright = [x < SIDE // 2, x >= SIDE // 2, y < SIDE // 2, y >= SIDE // 2][label]
            rows.append(min(255, (150 if bright else 20) + noise.randrange(100)))
    return bytes(rows)


def write_idx(folder, training=60, test=20):
    """A data set of MNIST's format, its training images compressed; some of the labels are wrong, so that the loss
    does not vanish."""
    noise = random.Random(7)
    folder.mkdir(parents=True)
    for prefix, count in (("train", training), ("t10k", test)):
        labels = [i % len(CLASSES) for i in range(count)]
        images = b"".join(picture(label, noise) for label in labels)
        if prefix == "train":
            labels = [noise.randrange(len(CLASSES)) if noise.random() < 0.1 else label for label in labels]
        with gzip.open(folder / f"{prefix}-images-idx3-ubyte.gz", "wb", compresslevel=1) as file:
            file.write(struct.pack(">4B3I", 0, 0, 8, 3, count, SIDE, SIDE) + images)
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, count) + bytes(labels))
    (folder / "classes.txt").write_text("\n".join(CLASSES) + "\n", encoding="utf-8")


def png(width, height, rows, channels=1):
    """The bytes of a PNG file."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    stride = width * channels
    lines = b"".join(b"\0" + rows[y * stride:(y + 1) * stride] for y in range(height))
    header = struct.pack(">2I5B", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def write_folder(folder, count=6):
    """A folder of images for each class, below `train` and `val`."""
    noise = random.Random(8)
    for part in ("train", "val"):
        for label, name in enumerate(CLASSES):
            (folder / part / name).mkdir(parents=True)
            for i in range(count):
                (folder / part / name / f"{i}.png").write_bytes(png(SIDE, SIDE, picture(label, noise)))


class Result:
    def __init__(self, process):
        self.status = process.returncode
        self.output = process.stdout
        self.error = process.stderr

    def json(self):
        return json.loads(self.output)

    def json_lines(self):
        return [json.loads(line) for line in self.output.splitlines()]


class CommandTest(unittest.TestCase):
    """A test with an empty working folder."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="purine-test-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def purine(self, *arguments, status=0, **options):
        """Runs the command in the working folder; another exit status than this one fails the test."""
        options.setdefault("timeout", 100)
        process = subprocess.run([COMMAND, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options)
        self.assertEqual(process.returncode, status, process.stdout + process.stderr)
        return Result(process)

    def start(self, *arguments):
        """Starts the command in the working folder; it is killed at the end if it still runs then."""
        process = subprocess.Popen([COMMAND, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def on_terminal(self, stream, *arguments):
        """Runs the command with `stdout` or `stderr` a terminal of 130 columns; what that showed, and what the other one had."""
        here, there = pty.openpty()
        fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("4H", 24, 130, 0, 0))
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: there}
        process = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, **streams)
        os.close(there)
        shown = b""
        with contextlib.suppress(OSError):  # which is how a terminal ends
            while content := os.read(here, 4096):
                shown += content
        os.close(here)
        output, error = process.communicate()
        self.assertEqual(process.returncode, 0)
        return shown.decode().replace("\r\n", "\n"), (output if stream == "stderr" else error).decode()

    def error_of(self, *arguments, status):
        """The one line on standard error of a command that fails with this status and prints nothing else."""
        result = self.purine(*arguments, status=status)
        self.assertEqual(result.error.count("\n"), 1, result.error)
        return result.error.rstrip("\n")

    def write_job(self, name="job.toml", **sections):
        """A job file; keyword arguments are sections, dictionaries of keys."""
        job = {
            "model": {"name": "small_convnet"},
            "data": {"format": "idx", "folder": "set", "batch": 8, "mean": [0.4], "deviation": [0.3]},
            "optimizer": {"name": "momentum", "learning_rate": 0.02, "schedule": "cosine", "warmup_epochs": 0.5},
            "train": {"epochs": 2, "report_every": 4},
        }
        for section, keys in sections.items():
            job.setdefault(section, {}).update(keys)
        text = "".join(f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
                       for section, keys in job.items())
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def checkpoints(self, run):
        return sorted((self.folder / run / "checkpoints").glob("*.safetensors"))

    def tensors(self, path):
        """The tensors of a safetensors file, as bytes by name, and its metadata."""
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + length])
        metadata = header.pop("__metadata__", {})
        begin = 8 + length
        return {name: content[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
                for name, entry in header.items()}, metadata

    def weights(self, run):
        return self.tensors(self.checkpoints(run)[-1])[0]

    def difference(self, run, other):
        """The largest of any element of the last checkpoints of two runs, which hold the same tensors."""
        left, right = self.weights(run), self.weights(other)
        self.assertEqual({name: len(content) for name, content in left.items()},
                         {name: len(content) for name, content in right.items()})
        return max(abs(a - b) for name in left for a, b in zip(array.array("f", left[name]), array.array("f", right[name])))
