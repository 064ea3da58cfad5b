"""The project's files, as the tests of its structure see them."""
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PURINE_BUILD", ROOT / "build" / "release"))
CXX = os.environ.get("PURINE_CXX", "c++")

# The folders of purine/, each of which uses only itself and those before it.
LAYERS = ["core", "graph", "ops", "gradient", "nn", "models", "optim", "parallel", "program", "runtime", "backend", "net",
          "data", "io", "trace", "sim", "session", "train", "cli"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def files(folder, *suffixes):
    """The files below a folder with one of the suffixes, sorted."""
    return sorted(path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in suffixes)


def text(path):
    return path.read_text(encoding="utf-8")


def name(path):
    """The path from the root, as messages say it."""
    return path.relative_to(ROOT).as_posix()


def includes(path):
    """(is it in angle brackets, included file) of every #include."""
    return [(bracket == "<", target) for bracket, target in INCLUDE.findall(text(path))]


def tracked_files():
    """Every file under version control; where there is none (an unpacked archive), all but what is built."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, stdout=subprocess.PIPE, text=True).stdout
        paths = [ROOT / line for line in listed.split("\0") if line]
        return [path for path in paths if path.is_file()]
    return [path for path in sorted(ROOT.rglob("*"))
            if path.is_file() and path.relative_to(ROOT).parts[0] not in ("build", "runs")]


def compiled_sources():
    """The source files that the build compiles, alone or through a file that unites several."""
    sources = set()
    for command in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(command["file"]).resolve()
        united = path.parent == BUILD / "united"
        sources |= {(ROOT / target).resolve() for _, target in includes(path)} if united else {path}
    return sources


def test_names():
    """The tests that CTest knows."""
    shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], check=True, stdout=subprocess.PIPE,
                           text=True).stdout
    return {test["name"] for test in json.loads(shown)["tests"]}
