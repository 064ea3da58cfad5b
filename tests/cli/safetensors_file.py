"""Reads safetensors files by the format's published rules alone, and refuses what breaks any of them: 8 bytes with the
header's length, little-endian; the header, a JSON object in UTF-8 that begins with `{` and may end in spaces, without a key
twice; then the tensors' bytes, of which `data_offsets` tell. `__metadata__` holds texts only."""
import json
import math
import struct

BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32,
        "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64}
LONGEST_HEADER = 100_000_000


def require(condition, problem):
    if not condition:
        raise ValueError(problem)


def without_repetition(pairs):
    require(len({key for key, _ in pairs}) == len(pairs), "a key comes twice")
    return dict(pairs)


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def parse(content):
    """The tensors, as (dtype, shape, bytes) by name, and the metadata; ValueError of a file that breaks a rule."""
    require(len(content) >= 8, "there is no header")
    (length,) = struct.unpack("<Q", content[:8])
    require(length <= LONGEST_HEADER, "the header is too long")
    require(8 + length <= len(content), "the header is cut")
    require((8 + length) % 8 == 0, "the tensors are not aligned")
    text = content[8:8 + length].decode("utf-8")
    require(text.startswith("{") and text.rstrip(" ").endswith("}"), "the header is not an object and spaces")
    header = json.loads(text, object_pairs_hook=without_repetition)
    metadata = header.pop("__metadata__", {})
    require(isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values()),
            "the metadata are not texts")
    tensors = {}
    end = 0
    # The rules let the header have another order than the bytes; what is to be read by any reader has the same.
    for name, entry in header.items():
        require(isinstance(entry, dict) and set(entry) == {"dtype", "shape", "data_offsets"}, f"{name}: another entry")
        require(entry["dtype"] in BITS, f"{name}: an unknown dtype")
        require(isinstance(entry["shape"], list) and all(map(is_count, entry["shape"])), f"{name}: no shape")
        offsets = entry["data_offsets"]
        require(isinstance(offsets, list) and len(offsets) == 2 and all(map(is_count, offsets)), f"{name}: no offsets")
        require(offsets[0] == end, f"{name}: a hole, an overlap or another order before it")
        size = math.prod(entry["shape"]) * BITS[entry["dtype"]] // 8
        end = offsets[0] + size
        require(offsets[1] == end, f"{name}: its bytes are not those of its shape")
        tensors[name] = (entry["dtype"], tuple(entry["shape"]), content[8 + length + offsets[0]:8 + length + end])
    require(8 + length + end == len(content), "bytes of no tensor, or too few of them")
    return tensors, metadata
