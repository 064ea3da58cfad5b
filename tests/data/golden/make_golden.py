#!/usr/bin/env python3
"""Makes the golden files of this folder with Pillow, PyTorch and torchvision (9.4, 1.13, 0.14 made them).

NAME.jpg or NAME.png are images and NAME.rgb what Pillow makes of them: height and width as two 32-bit little-endian
numbers, then red, green and blue of each pixel. resample.json holds the pictures that PyTorch's interpolate
(bilinear, antialias) and torchvision's transforms make of `picture`.
"""
import json
import pathlib
import struct

import numpy
import torch
import torchvision.transforms as transforms
from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).parent


def picture(height, width, channels):
    """The picture that resample_test.cpp makes as well."""
    y, x, c = numpy.mgrid[0:height, 0:width, 0:channels]
    return ((y * y * 7 + x * x * 3 + x * y * 5 + c * 85) % 256).astype(numpy.uint8)


def smooth(height, width, channels):
    y, x, c = numpy.mgrid[0:height, 0:width, 0:channels]
    return (127.5 + 100 * numpy.sin(0.21 * x + c) * numpy.cos(0.17 * y - 0.5 * c)).astype(numpy.uint8)


def save(name, image, **options):
    image.save(HERE / name, **options)
    opened = Image.open(HERE / name)
    assert opened.mode == image.mode, (name, opened.mode)
    expected = numpy.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
    (HERE / name).with_suffix(".rgb").write_bytes(struct.pack("<II", *expected.shape[:2]) + expected.tobytes())


def decoding():
    rgb = Image.fromarray(smooth(19, 26, 3))
    grey = Image.fromarray(smooth(19, 26, 1)[:, :, 0])
    save("subsampled.jpg", rgb, quality=90)
    save("progressive.jpg", rgb, quality=90, progressive=True, subsampling=0)
    save("grey.jpg", grey, quality=90)
    save("cmyk.jpg", Image.fromarray(smooth(19, 26, 4), mode="CMYK"), quality=95)
    exif = Image.Exif()
    for orientation in range(1, 9):
        exif[0x0112] = orientation
        save(f"orientation_{orientation}.jpg", Image.fromarray(smooth(9, 13, 3)), quality=90, exif=exif)
    save("palette.png", rgb.quantize(16))
    save("bits_1.png", grey.convert("1"))
    save("grey_alpha.png", Image.merge("LA", (grey, grey.rotate(180))))
    save("rgba.png", Image.fromarray(smooth(19, 26, 4), mode="RGBA"))


def numbers(values):
    return [round(float(value), 4) for value in numpy.asarray(values).ravel()]


def interpolated():
    """The part [top, left, height, width] of a picture, resized to `size`, then cut to `window`."""
    cases = []
    for height, width, channels, part, size, window in [
            (23, 31, 3, (0, 0, 23, 31), (12, 16), (1, 3, 10, 10)),
            (9, 7, 3, (0, 0, 9, 7), (20, 16), (2, 0, 16, 16)),
            (64, 50, 1, (0, 0, 64, 50), (6, 5), (0, 0, 6, 5)),
            (30, 40, 3, (5, 11, 17, 13), (8, 8), (0, 0, 8, 8)),
            (30, 40, 3, (29, 0, 1, 40), (3, 7), (0, 0, 3, 7)),
            (11, 200, 3, (0, 0, 11, 200), (11, 4), (0, 0, 11, 4))]:
        top, left, rows, columns = part
        cut = picture(height, width, channels)[top:top + rows, left:left + columns]
        planes = torch.tensor(cut, dtype=torch.float64).permute(2, 0, 1)[None]
        resized = torch.nn.functional.interpolate(planes, size, mode="bilinear", antialias=True)[0]
        y, x, window_rows, window_columns = window
        cases.append({"image": [height, width, channels], "part": part, "size": size, "window": window,
                      "values": numbers(resized[:, y:y + window_rows, x:x + window_columns])})
    return cases


def transformed():
    """The shorter side to `resize`, then the central square of `crop`, in units of 0 to 1."""
    cases = []
    for height, width, channels, resize, crop in [
            (23, 31, 3, 12, 8), (31, 23, 3, 12, 9), (24, 24, 1, 13, 10), (10, 40, 3, 9, 9), (40, 17, 3, 10, 7),
            (12, 15, 3, 12, 11), (9, 10, 3, 6, 8)]:
        image = Image.fromarray(picture(height, width, channels).squeeze())
        transform = transforms.Compose(
            [transforms.Resize(resize), transforms.CenterCrop(crop), transforms.ToTensor()])
        cases.append({"image": [height, width, channels], "resize": resize, "crop": crop,
                      "values": numbers(transform(image))})
    return cases


if __name__ == "__main__":
    decoding()
    (HERE / "resample.json").write_text(
        json.dumps({"interpolated": interpolated(), "transformed": transformed()}) + "\n")
