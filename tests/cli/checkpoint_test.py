"""Checkpoints as other programs read them: they are safetensors files."""
import importlib.util
import json
import struct
import unittest

import safetensors_file
from command import CommandTest, write_idx

NUMPY_NAMES = {"F32": "float32", "F64": "float64", "I64": "int64", "I32": "int32", "U8": "uint8", "BOOL": "bool"}


def read_with_package(path):
    """What the format's own Python package reads of a file, as safetensors_file.parse tells it; nothing where it is not
    installed."""
    if any(importlib.util.find_spec(name) is None for name in ("safetensors", "numpy")):
        return None
    from safetensors import safe_open  # pylint: disable=import-outside-toplevel
    dtypes = {name: dtype for dtype, name in NUMPY_NAMES.items()}
    with safe_open(path, "numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
        return ({name: (dtypes[str(array.dtype)], array.shape, array.tobytes()) for name, array in arrays.items()},
                file.metadata())


class CheckpointTest(CommandTest):
    def test_a_checkpoint_is_a_safetensors_file(self):
        write_idx(self.folder / "set")
        for name in ("momentum", "adamw"):
            self.write_job(optimizer={"name": name})
            self.purine("train", "job.toml", "--run-folder", name, "--stop-after", 3)
            (path,) = self.checkpoints(name)
            tensors, metadata = safetensors_file.parse(path.read_bytes())
            self.assertEqual(tensors["small_convnet/fc2/weight"][:2], ("F32", (4, 128)))
            self.assertEqual(tensors["small_convnet/block1/norm/running_variance"][:2], ("F32", (16,)))
            self.assertEqual({key: content for key, (_, _, content) in tensors.items()}, self.weights(name))
            self.assertEqual(json.loads(metadata["purine.manifest"])["iteration"], 3)
            with_package = read_with_package(path)
            self.assertIn(with_package, (None, (tensors, metadata)))

    def test_a_file_that_breaks_a_rule_is_seen(self):
        """The reader that the test above trusts."""
        def file(header, content=b"\0" * 12, more_spaces=0):
            text = header.encode("utf-8")
            text += b" " * (-len(text) % 8 + more_spaces)
            return struct.pack("<Q", len(text)) + text + content

        first = '"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
        second = '"b":{"dtype":"U8","shape":[2,2],"data_offsets":[8,12]}'
        whole = "{" + first + "," + second + "}"
        self.assertEqual(safetensors_file.parse(file(whole))[0]["b"], ("U8", (2, 2), b"\0" * 4))
        reversed_order = "{" + second.replace("[8,12]", "[0,4]") + "," + first + "}"
        broken = {
            "there is no header": b"\0" * 7,
            "the header is too long": struct.pack("<Q", 10 ** 9) + b"{}",
            "the header is cut": struct.pack("<Q", 64) + b"{}",
            "the tensors are not aligned": file(whole, more_spaces=1),
            "the header is not an object and spaces": file(" " + whole),
            "a key comes twice": file("{" + first + "," + first + "}"),
            "the metadata are not texts": file('{"__metadata__":{"n":1},' + first + "," + second + "}"),
            "a: another entry": file("{" + first.replace('"shape"', '"extent"') + "," + second + "}"),
            "a: an unknown dtype": file(whole.replace("F32", "F31")),
            "a: no shape": file(whole.replace("[2]", "[-2]")),
            "a: no offsets": file(whole.replace("[0,8]", "[0]")),
            "a: its bytes are not those of its shape": file(whole.replace("[2]", "[3]")),
            "b: a hole, an overlap or another order before it": file(whole.replace("[8,12]", "[9,13]")),
            "a: a hole, an overlap or another order before it": file(reversed_order),
            "bytes of no tensor, or too few of them": file(whole, b"\0" * 13),
        }
        for problem, content in broken.items():
            with self.assertRaisesRegex(ValueError, problem):
                safetensors_file.parse(content)


if __name__ == "__main__":
    unittest.main()
