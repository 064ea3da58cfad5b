"""Makes every_dtype.safetensors with the Python package (safetensors 0.8.0 and numpy made the one committed)."""

import pathlib

import numpy
from safetensors.numpy import save_file

folder = pathlib.Path(__file__).parent
save_file(
    {
        "net/conv/weight": numpy.arange(6, dtype=numpy.float32).reshape(2, 3) / 8 - 0.25,
        "net/conv/bias": numpy.array([1.5, -2.0], dtype=numpy.float32),
        "net/mean": numpy.array([0.1, 1e300, -0.0], dtype=numpy.float64),
        "step": numpy.array(-(2**62), dtype=numpy.int64),
        "labels": numpy.array([[-1], [2**31 - 1]], dtype=numpy.int32),
        "image": numpy.array([0, 7, 255], dtype=numpy.uint8),
        "empty": numpy.zeros((0, 4), dtype=numpy.float32),
        "naïve \"name\"\\": numpy.array([3.0], dtype=numpy.float32),
    },
    folder / "every_dtype.safetensors",
    metadata={"note": "made by the Python package\n"},
)
