#!/usr/bin/env python3
"""Makes base_operators.json and optimizers.json: what PyTorch computes for arithmetic, activations, reductions, losses
and shapes, and for some steps of its optimisers, in float64.

    python3 tests/ops/golden/make_base_operators.py        (made with PyTorch 1.13.0)

Inputs are not stored: element i of input k is `value(i, k)`, and so is the output's gradient, as input -1; the test
makes the same ones. A case has the operator's name and options, the inputs' shapes (for labels, the labels), the
output, and the gradient by each floating input of the sum of output times output gradient. With "positive", inputs are
0.5 + |value|. Optimisers: the weight after each step, with gradients value(i, step) and the learning rates given.
"""
import json
import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
FOLDER = pathlib.Path(__file__).parent


def value(index, stream):
    """Spread over [-1, 1); all values of an input of at most 1009 elements differ."""
    return ((index * 619 + (stream + 2) * 271) % 1009) / 1009 * 2 - 1


def tensor(shape, stream):
    count = int(torch.tensor(shape).prod())
    return torch.tensor([value(i, stream) for i in range(count)]).reshape(shape)


def numbers(result):
    return {"shape": list(result.shape), "values": [float(f"{v:.12g}") for v in result.flatten().tolist()]}


def case(name, operator, function, *shapes, positive=False, labels=None, scale=1, **options):
    inputs = [tensor(shape, k) * scale for k, shape in enumerate(shapes)]
    if positive:
        inputs = [x.abs() + 0.5 for x in inputs]
    for x in inputs:
        x.requires_grad_(True)
    arguments = inputs + ([torch.tensor(labels)] if labels is not None else [])
    output = function(*arguments)
    made = {"name": name, "operator": operator, "options": options, "inputs": [list(shape) for shape in shapes],
            "output": numbers(output.detach())}
    if output.requires_grad:
        (output * tensor(tuple(output.shape), -1)).sum().backward()
        made["gradients"] = [numbers(x.grad) for x in inputs]
    if labels is not None:
        made["labels"] = labels
    if positive:
        made["positive"] = True
    if scale != 1:
        made["scale"] = scale
    return made


def arithmetic():
    shapes = [("same", (3, 4), (3, 4)), ("row", (3, 4), (4,)), ("column", (3, 4), (3, 1)), ("scalar", (3, 4), ()),
              ("both", (3, 1, 4), (2, 1, 3, 1)), ("channels", (2, 3, 2, 2), (3, 1, 1))]
    cases = []
    for name, a, b in shapes:
        cases += [case(f"add_{name}", "add", torch.add, a, b), case(f"subtract_{name}", "subtract", torch.sub, a, b),
                  case(f"multiply_{name}", "multiply", torch.mul, a, b),
                  case(f"divide_{name}", "divide", torch.div, a, b, positive=True)]
    return cases


def functions():
    shape = (4, 9)
    return [
        case("square", "square", torch.square, shape),
        case("sqrt", "sqrt", torch.sqrt, shape, positive=True),
        case("exp", "exp", torch.exp, shape, scale=5),
        case("log", "log", torch.log, shape, positive=True),
        case("relu", "relu", F.relu, shape),
        case("leaky_relu", "leaky_relu", lambda x: F.leaky_relu(x, 0.2), shape, slope=0.2),
        case("sigmoid", "sigmoid", torch.sigmoid, shape, scale=8),
        case("tanh", "tanh", torch.tanh, shape, scale=4),
        case("gelu", "gelu", F.gelu, shape, scale=4, approximate=False),
        case("gelu_tanh", "gelu", lambda x: F.gelu(x, approximate="tanh"), shape, scale=4, approximate=True),
        case("clip", "clip", lambda x: torch.clamp(x, -0.4, 0.7), shape, low=-0.4, high=0.7),
        case("softmax_rows", "softmax", lambda x: F.softmax(x, 1), (3, 6), scale=6, axis=1),
        case("softmax_channels", "softmax", lambda x: F.softmax(x, 1), (2, 4, 2, 3), scale=3, axis=1),
        case("log_softmax_rows", "log_softmax", lambda x: F.log_softmax(x, 1), (3, 6), scale=6, axis=1),
        case("log_softmax_first", "log_softmax", lambda x: F.log_softmax(x, 0), (4, 3), scale=6, axis=0),
    ]


def reductions():
    def both(name, shape, axes, keep):
        return [case(f"sum_{name}", "sum", lambda x: torch.sum(x, axes, keep), shape, axes=axes, keep=keep),
                case(f"mean_{name}", "mean", lambda x: torch.mean(x, axes, keep), shape, axes=axes, keep=keep)]
    return (both("all", (3, 5), [0, 1], False) + both("rows", (3, 5), [0], True) + both("columns", (3, 5), [1], False) +
            both("channels", (2, 3, 2, 4), [0, 2, 3], False) + both("alternate", (2, 3, 2, 4), [1, 3], True))


def shapes():
    return [
        case("concat", "concat", lambda a, b: torch.cat([a, b], 1), (2, 3, 2), (2, 1, 2), axis=1),
        case("slice", "slice", lambda x: x[:, 1:3], (3, 4, 2), axis=1, begin=1, end=3),
        case("pad", "pad", lambda x: F.pad(x, (2, 1, 0, 3), value=0.5), (2, 3, 2), before=[0, 0, 2], after=[0, 3, 1],
             value=0.5),
        case("transpose", "transpose", lambda x: x.permute(2, 0, 1), (2, 3, 4), permutation=[2, 0, 1]),
        case("reshape", "reshape", lambda x: x.reshape(4, 6), (2, 3, 4), shape=[4, 6]),
        case("bias", "bias", lambda x, b: x + b.reshape(1, 3, 1, 1), (2, 3, 2, 2), (3,), axis=1),
        case("broadcast_to", "broadcast_to", lambda x: x.expand(2, 3, 4), (3, 1), shape=[2, 3, 4]),
    ]


def casts():
    kinds = {"f32": torch.float32, "f64": torch.float64, "i32": torch.int32, "i64": torch.int64}
    return [case(f"cast_{name}", "cast", lambda x, kind=kind: x.to(kind), (4, 9), scale=5, dtype=name)
            for name, kind in kinds.items()]


def sums():
    return [case(f"sum_of_{count}", "sum_n", lambda *x: sum(x[1:], x[0]), *[(2, 3, 4)] * count) for count in (1, 2, 5)]


def splits():
    sizes = [1, 3, 2]
    return ([case(f"split_{part}", "split", lambda x, part=part: x.split(sizes, 1)[part], (2, 6, 3), axis=1, sizes=sizes,
                  part=part) for part in range(3)] +
            [case("split_last_axis", "split", lambda x: x.split([2, 1], -1)[1], (2, 2, 3), axis=-1, sizes=[2, 1], part=1)])


def losses():
    labels = [2, 0, 4, 1, 1, 3]
    def top(k):
        return lambda x, y: (x.topk(k, 1).indices == y[:, None]).any(1).to(torch.float64).mean().detach()
    return [
        case("cross_entropy", "softmax_cross_entropy", F.cross_entropy, (6, 5), labels=labels, scale=4),
        case("cross_entropy_large", "softmax_cross_entropy", F.cross_entropy, (6, 5), labels=labels, scale=900),
        case("squared_error", "mean_squared_error", F.mse_loss, (4, 5), (4, 5)),
        case("accuracy_1", "accuracy", top(1), (6, 5), labels=labels, top=1),
        case("accuracy_3", "accuracy", top(3), (6, 5), labels=labels, top=3),
    ]


def optimizer(name, kind, make, steps=6, rates=(0.1, 0.1, 0.05, 0.05, 0.2, 0.01), **options):
    weight = torch.nn.Parameter(tensor((7,), 0))
    optimiser = make([weight])
    weights = []
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rates[step]
        weight.grad = tensor((7,), step + 1)
        optimiser.step()
        weights.append(numbers(weight.detach())["values"])
    return {"name": name, "operator": kind, "options": options, "rates": rates, "weights": weights}


def optimizers():
    sgd, adam, adamw = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
    return [
        optimizer("sgd", "sgd", lambda p: sgd(p, 0.1), weight_decay=0),
        optimizer("sgd_decay", "sgd", lambda p: sgd(p, 0.1, weight_decay=0.1), weight_decay=0.1),
        optimizer("momentum", "momentum", lambda p: sgd(p, 0.1, momentum=0.9), momentum=0.9, weight_decay=0,
                  nesterov=False),
        optimizer("momentum_decay", "momentum", lambda p: sgd(p, 0.1, momentum=0.5, weight_decay=0.05), momentum=0.5,
                  weight_decay=0.05, nesterov=False),
        optimizer("nesterov", "momentum", lambda p: sgd(p, 0.1, momentum=0.9, weight_decay=0.05, nesterov=True),
                  momentum=0.9, weight_decay=0.05, nesterov=True),
        optimizer("adam", "adam", lambda p: adam(p), beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0,
                  decoupled=False),
        optimizer("adam_decay", "adam", lambda p: adam(p, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1), beta1=0.8,
                  beta2=0.95, epsilon=1e-3, weight_decay=0.1, decoupled=False),
        optimizer("adamw", "adam", lambda p: adamw(p, weight_decay=0.1), beta1=0.9, beta2=0.999, epsilon=1e-8,
                  weight_decay=0.1, decoupled=True),
    ]


def write(name, cases):
    text = ",\n".join(json.dumps(made, separators=(",", ":")) for made in cases)
    (FOLDER / name).write_text(f"[\n{text}\n]\n")
    print(f"{name}: {len(cases)} cases, {len(text)} bytes")


write("base_operators.json", arithmetic() + functions() + reductions() + shapes() + casts() + sums() + splits() + losses())
write("optimizers.json", optimizers())
