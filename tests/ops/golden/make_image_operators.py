#!/usr/bin/env python3
"""Makes image_operators.json: what PyTorch computes for the operators of convolutional networks, in float64.

    python3 tests/ops/golden/make_image_operators.py        (made with PyTorch 1.13.1)

Inputs are not stored: element i of input k is `value(i, k)`, and so is the output's gradient, as input -1; the test
makes the same ones. A case has the operator's name and options, the inputs' shapes, the output, and the gradient by
each input of the sum of output times output gradient.
"""
import json
import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def value(index, stream):
    """Spread over [-1, 1); all values of an input of at most 1009 elements differ."""
    return ((index * 619 + (stream + 2) * 271) % 1009) / 1009 * 2 - 1


def tensor(shape, stream, levels=None):
    """With `levels`, the values are rounded to so many in a unit, so that some are equal."""
    count = int(torch.tensor(shape).prod())
    values = [value(i, stream) for i in range(count)]
    if levels:
        values = [round(v * levels) / levels for v in values]
    return torch.tensor(values).reshape(shape)


def numbers(result):
    return {"shape": list(result.shape), "values": [float(f"{v:.12g}") for v in result.flatten().tolist()]}


def case(name, operator, options, shapes, function, levels=None, constants=(), extra=None):
    inputs = [tensor(shape, k, levels) for k, shape in enumerate(shapes)]
    for k in constants:  # variances
        inputs[k] = inputs[k].abs() + 0.5
    for k, x in enumerate(inputs):
        x.requires_grad_(k not in constants)
    output = function(*inputs)
    gradient = tensor(tuple(output.shape), -1)
    (output * gradient).sum().backward()
    made = {"name": name, "operator": operator, "options": options, "inputs": [list(shape) for shape in shapes],
            "output": numbers(output.detach()),
            "gradients": [None if x.grad is None else numbers(x.grad) for x in inputs]}
    if levels:
        made["levels"] = levels
    if extra:
        made["extra"] = [numbers(result) for result in extra(*[x.detach() for x in inputs])]
    return made


def convolution(name, shapes, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1):
    top, left, bottom, right = padding

    def function(image, weight, bias=None):
        return F.conv2d(F.pad(image, (left, right, top, bottom)), weight, bias, stride, 0, dilation, groups)

    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return case(name, "conv2d", options, shapes, function)


def convolutions():
    return [
        convolution("same_extents", [(2, 3, 5, 4), (4, 3, 3, 3), (4,)], padding=(1, 1, 1, 1)),
        convolution("pointwise", [(2, 5, 3, 3), (4, 5, 1, 1)]),
        convolution("stride_with_a_rest", [(1, 2, 8, 7), (3, 2, 3, 2), (3,)], stride=(2, 3)),
        convolution("asymmetric_padding", [(2, 2, 5, 4), (3, 2, 3, 2), (3,)], stride=(2, 1), padding=(1, 0, 2, 1)),
        convolution("dilation", [(1, 2, 7, 8), (2, 2, 3, 2), (2,)], padding=(2, 1, 2, 1), dilation=(2, 3)),
        convolution("groups", [(2, 4, 4, 4), (6, 2, 3, 3), (6,)], padding=(1, 1, 1, 1), groups=2),
        convolution("depthwise", [(2, 3, 5, 5), (3, 1, 3, 3)], stride=(2, 2), padding=(1, 1, 1, 1), groups=3),
        convolution("stem", [(1, 3, 13, 13), (4, 3, 7, 7), (4,)], stride=(2, 2), padding=(3, 3, 3, 3)),
    ]


def products():
    def matmul(name, shapes, transpose_a=False, transpose_b=False, sum_batch=False):
        def function(a, b):
            a = a.transpose(-1, -2) if transpose_a else a
            b = b.transpose(-1, -2) if transpose_b else b
            result = a @ b
            return result.flatten(0, -3).sum(0) if sum_batch else result

        options = {"transpose_a": transpose_a, "transpose_b": transpose_b, "sum_batch": sum_batch}
        return case(name, "matmul", options, shapes, function)

    return [
        matmul("matrices", [(3, 4), (4, 5)]),
        matmul("transposed", [(4, 3), (5, 4)], transpose_a=True, transpose_b=True),
        matmul("batch", [(2, 3, 3, 4), (2, 3, 5, 4)], transpose_b=True),
        matmul("single_b", [(3, 2, 4), (4, 5)]),
        matmul("single_a", [(4, 3), (2, 4, 5)], transpose_a=True),
        matmul("sum_batch", [(3, 4, 2), (3, 4, 5)], transpose_a=True, sum_batch=True),
        case("matrix", "linear", {}, [(3, 4), (5, 4), (5,)], F.linear),
        case("leading_dimensions", "linear", {}, [(2, 3, 4), (5, 4)], F.linear),
    ]


def pools():
    made = []
    variants = [
        ("halves", (2, 2, 4, 6), (2, 2), (2, 2), (0, 0)),
        ("overlapping", (2, 2, 7, 6), (3, 3), (2, 2), (0, 0)),
        ("padded", (1, 2, 6, 5), (3, 3), (2, 2), (1, 1)),
        ("same_extents", (1, 2, 5, 4), (3, 3), (1, 1), (1, 1)),
        ("wide_stride", (1, 2, 8, 9), (2, 3), (3, 4), (1, 0)),
        ("small_image", (1, 2, 2, 3), (3, 3), (2, 2), (1, 1)),
    ]
    for name, shape, kernel, stride, padding in variants:
        for ceil_mode in (False, True):
            full = name + ("_ceil" if ceil_mode else "")
            options = {"kernel": kernel, "stride": stride, "padding": padding + padding, "ceil_mode": ceil_mode}
            made.append(case(full, "max_pool2d", options, [shape],
                             lambda x: F.max_pool2d(x, kernel, stride, padding, 1, ceil_mode)))
            made.append(case(full + "_ties", "max_pool2d", options, [shape],
                             lambda x: F.max_pool2d(x, kernel, stride, padding, 1, ceil_mode), levels=1))
            for count in (True, False):
                made.append(case(full + ("" if count else "_without_padding"), "average_pool2d",
                                 dict(options, count_include_pad=count), [shape],
                                 lambda x: F.avg_pool2d(x, kernel, stride, padding, ceil_mode, count)))
    made.append(case("asymmetric", "max_pool2d",
                     {"kernel": (3, 2), "stride": (2, 1), "padding": (2, 0, 1, 1), "ceil_mode": False}, [(1, 2, 5, 4)],
                     lambda x: F.max_pool2d(F.pad(x, (0, 1, 2, 1), value=-torch.inf), (3, 2), (2, 1))))
    made.append(case("asymmetric", "average_pool2d",
                     {"kernel": (3, 2), "stride": (2, 1), "padding": (2, 0, 1, 1), "ceil_mode": False,
                      "count_include_pad": True}, [(1, 2, 5, 4)],
                     lambda x: F.avg_pool2d(F.pad(x, (0, 1, 2, 1)), (3, 2), (2, 1))))
    made.append(case("image", "global_average_pool2d", {}, [(2, 3, 3, 5)], lambda x: F.adaptive_avg_pool2d(x, 1)))
    return made


def normalizations():
    made = []
    for name, shape, size, alpha, beta, k in [
        ("googlenet", (2, 9, 2, 3), 5, 1e-4, 0.75, 1.0),
        ("strong", (1, 7, 3, 2), 5, 2.0, 0.75, 2.0),
        ("even_size", (1, 6, 2, 2), 4, 0.5, 0.5, 1.0),
        ("other_power", (1, 5, 2, 2), 3, 1.5, 1.3, 0.5),
    ]:
        options = {"size": size, "alpha": alpha, "beta": beta, "k": k}
        made.append(case(name, "local_response_normalization", options, [shape],
                         lambda x: F.local_response_norm(x, size, alpha, beta, k)))
    for name, shape in [("image", (3, 2, 2, 3)), ("matrix", (6, 4))]:
        epsilon, momentum = 1e-3, 0.1
        channels = (shape[1],)

        def training(x, scale, shift):
            return F.batch_norm(x, None, None, scale, shift, True, momentum, epsilon)

        def statistics(x, scale, shift):
            running = [torch.full(channels, 0.25), torch.full(channels, 0.75)]
            F.batch_norm(x, *running, scale, shift, True, momentum, epsilon)
            others = [d for d in range(x.dim()) if d != 1]
            return [x.mean(others), x.var(others, unbiased=False)] + running

        made.append(case(name, "batch_normalization_training", {"epsilon": epsilon, "momentum": momentum},
                         [shape, channels, channels], training, extra=statistics))
        made.append(case(name, "batch_normalization_inference", {"epsilon": epsilon},
                         [shape, channels, channels, channels, channels],
                         lambda x, scale, shift, mean, variance: F.batch_norm(x, mean, variance, scale, shift, False,
                                                                              0, epsilon), constants=(3, 4)))
    return made


def main():
    cases = convolutions() + products() + pools() + normalizations()
    path = pathlib.Path(__file__).with_name("image_operators.json")
    lines = ",\n".join(json.dumps(made, separators=(",", ":")) for made in cases)
    path.write_text("[\n" + lines + "\n]\n")
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
