#!/usr/bin/env python3
"""A BERT sentence encoder's weights to an ONNX graph, with Python's standard library only.

    convert_model.py [--int8] DIRECTORY OUTPUT.onnx

In: a directory with `config.json` and `model.safetensors` of a plain BERT encoder (absolute
positions, exact GELU, 32-bit floats). Out: one ONNX file, operator set 17, standard operators:

    input_ids, attention_mask, token_type_ids : int64   [batch, seq]
    last_hidden_state                         : float32 [batch, seq, hidden]

With --int8 every weight matrix is stored as 8-bit integers with one scale per column, and the
other operand is quantised to 8 bits at run time (DynamicQuantizeLinear, MatMulInteger). That
scale is taken over the whole batch: run one text at a time, or its neighbours change its vector.

The same input gives the same bytes everywhere, whatever the Python version and packages. Prints nothing; exits 1 with a message when the input is not such a model.
"""

import array
import json
import math
import struct
import sys
from pathlib import Path

# ---------------------------------------------------------------- the ONNX file format
# A message is a run of fields; a field is its number and kind, then a varint, four bytes,
# or a length and that many bytes. Numbers below are those of ONNX's onnx.proto.

FLOAT, INT8, INT64 = 1, 3, 7  # TensorProto.DataType
ATTRIBUTE_FLOAT, ATTRIBUTE_INT, ATTRIBUTE_INTS = 1, 2, 7  # AttributeProto.AttributeType
IR_VERSION, OPERATOR_SET = 8, 17


def varint(value):
    value &= (1 << 64) - 1  # negative integers travel as 64-bit two's complement
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number, value):
    return varint(number << 3) + varint(value)


def block(number, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    if isinstance(value, float):
        return block(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + integer(20, ATTRIBUTE_FLOAT)
    if isinstance(value, int):
        return block(1, name) + integer(3, value) + integer(20, ATTRIBUTE_INT)
    return block(1, name) + b"".join(integer(8, v) for v in value) + integer(20, ATTRIBUTE_INTS)


def node(kind, name, inputs, outputs, attributes, domain=""):
    return b"".join(
        [block(1, i) for i in inputs]
        + [block(2, o) for o in outputs]
        + [block(3, name), block(4, kind)]
        + [block(5, attribute(k, v)) for k, v in sorted(attributes.items())]
        + [block(7, domain)]
    )


def tensor(name, kind, dims, data):
    return b"".join([integer(1, d) for d in dims] + [integer(2, kind), block(8, name), block(9, data)])


def described(name, kind, dims):
    shape = b"".join(block(1, block(2, d) if isinstance(d, str) else integer(1, d)) for d in dims)
    return block(1, name) + block(2, block(1, integer(1, kind) + block(2, shape)))


# ---------------------------------------------------------------- the weights


class Unsuitable(Exception):
    """The input is not a model that this script can convert."""


class Weights:
    """The tensors of a safetensors file: a length, a JSON table of offsets, then the data."""

    def __init__(self, path):
        content = memoryview(path.read_bytes())
        try:
            (length,) = struct.unpack_from("<Q", content)
            table = json.loads(bytes(content[8 : 8 + length]))
        except (struct.error, ValueError) as error:
            raise Unsuitable(f"{path}: not a safetensors file ({error}); fetch it again") from error
        table.pop("__metadata__", None)
        self.path, self.data = path, content[8 + length :]
        self.table = {name[5:] if name.startswith("bert.") else name: place for name, place in table.items()}

    def get(self, name):
        """Shape and little-endian 32-bit floats of one tensor."""
        try:
            place = self.table[name]
            begin, end = place["data_offsets"]
            shape, kind = place["shape"], place["dtype"]
        except (KeyError, ValueError) as error:
            raise Unsuitable(f"{self.path}: no tensor {name}; only plain BERT encoders can be converted") from error
        data = bytes(self.data[begin:end])
        if kind != "F32" or len(data) != 4 * math.prod(shape):
            raise Unsuitable(f"{self.path}: {name} is {kind} in {len(data)} bytes, not whole 32-bit floats")
        return shape, data

    def get_transposed(self, name):
        """The same for a matrix, transposed."""
        (rows, columns), data = self.get(name)
        values = array.array("f", data)
        turned = array.array("f")
        for column in range(columns):
            turned.extend(values[column::columns])
        return [columns, rows], turned.tobytes()

    def get_quantised(self, name):
        """The same as integers of -127 to 127, and the scale of each column."""
        (rows, columns), data = self.get(name)
        values = array.array("f", data)
        turned, scales = bytearray(rows * columns), array.array("f")
        for row in range(rows):
            part = values[row * columns : (row + 1) * columns]
            largest = max(map(abs, part)) or 1.0
            scales.append(largest / 127)
            # Round with the scale as it is stored (32 bits), not as it was computed.
            inverse = 1 / scales[row]
            turned[row::rows] = array.array("b", [max(-127, min(127, round(x * inverse))) for x in part]).tobytes()
        return ([columns, rows], bytes(turned)), ([rows], scales.tobytes())


# ---------------------------------------------------------------- the graph


class Graph:
    """Nodes and constants in the order of creation. A node without a name gets a number."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def apply(self, kind, inputs, name=None, output=None, **attributes):
        name = name or f"{kind}_{len(self.nodes) + 1}"
        output = output or f"{name}_out"
        self.nodes.append(node(kind, name, inputs, [output], attributes))
        return output

    def apply_many(self, kind, inputs, count):
        """A node with several outputs."""
        name = f"{kind}_{len(self.nodes) + 1}"
        outputs = [f"{name}_out{i}" for i in range(count)]
        self.nodes.append(node(kind, name, inputs, outputs, {}))
        return outputs

    def weight(self, name, shape_and_data, kind=FLOAT):
        shape, data = shape_and_data
        self.constants.append(tensor(name, kind, shape, data))
        return name

    def scalar(self, name, value):
        self.constants.append(tensor(name, FLOAT, [], struct.pack("<f", value)))
        return name

    def integers(self, name, *values):
        self.constants.append(tensor(name, INT64, [len(values)], struct.pack(f"<{len(values)}q", *values)))
        return name


class Encoder:
    """Builds the graph, with one method for each stage in the order of the data."""

    def __init__(self, weights, config, int8):
        self.weights, self.graph, self.int8 = weights, Graph(), int8
        self.hidden = config["hidden_size"]
        self.heads = config["num_attention_heads"]
        self.layers = config["num_hidden_layers"]
        self.epsilon = float(config["layer_norm_eps"])

    def normalise(self, x, gain, bias, name=None, output=None):
        return self.graph.apply(
            "LayerNormalization", [x, gain, bias], name, output, axis=-1, epsilon=self.epsilon
        )

    def embed(self):
        g, weights = self.graph, self.weights
        word, position, kind = (
            g.weight(name, weights.get(f"embeddings.{name}.weight"))
            for name in ("word_embeddings", "position_embeddings", "token_type_embeddings")
        )
        shape = g.apply("Shape", ["input_ids"])
        length = g.apply("Gather", [shape, g.integers("i1", 1)], axis=0)
        words = g.apply("Gather", [word, "input_ids"], "emb_word", axis=0)
        kinds = g.apply("Gather", [kind, "token_type_ids"], "emb_type", axis=0)
        zero = g.integers("zero", 0)
        positions = g.apply("Slice", [position, zero, length, zero], "emb_pos")
        x = g.apply("Add", [g.apply("Add", [words, kinds]), positions])
        gain = g.weight("eln_g", weights.get("embeddings.LayerNorm.weight"))
        bias = g.weight("eln_b", weights.get("embeddings.LayerNorm.bias"))
        return self.normalise(x, gain, bias, "emb_ln")

    def mask(self):
        """0 for a token and -10000 for padding, to be added to the attention scores."""
        g = self.graph
        m = g.apply("Unsqueeze", ["attention_mask", g.integers("ax1", 1)])
        m = g.apply("Unsqueeze", [m, g.integers("ax2", 2)])
        m = g.apply("Cast", [m], to=FLOAT)
        m = g.apply("Sub", [g.scalar("one_f", 1.0), m])
        return g.apply("Mul", [m, g.scalar("neg", -10000.0)])

    def shared_constants(self):
        g, size = self.graph, self.hidden // self.heads
        self.split_heads = g.integers("shape_heads", 0, 0, self.heads, size)
        self.merge_heads = g.integers("shape_merge", 0, 0, self.hidden)
        self.scale = g.scalar("scale", math.sqrt(size))
        self.sqrt2, self.one = g.scalar("sqrt2", math.sqrt(2)), g.scalar("gelu_one", 1.0)
        self.half = g.scalar("half", 0.5)

    def matrix(self, name, place):
        """The weights of a product, with their scale if they are integers."""
        if not self.int8:
            return [self.graph.weight(name, self.weights.get_transposed(place))]
        integers, scales = self.weights.get_quantised(place)
        return [self.graph.weight(name, integers, INT8), self.graph.weight(f"{name}_scale", scales)]

    def operand(self, x):
        """The operand of a product with weights: `x`, or its integers, their scale and their zero point."""
        return self.graph.apply_many("DynamicQuantizeLinear", [x], 3) if self.int8 else [x]

    def multiply(self, operand, matrix, name=None):
        g = self.graph
        if not self.int8:
            return g.apply("MatMul", [*operand, *matrix], name)
        (integers, scale, zero), (weights, weights_scale) = operand, matrix
        product = g.apply("Cast", [g.apply("MatMulInteger", [integers, weights, zero], name)], to=FLOAT)
        return g.apply("Mul", [product, g.apply("Mul", [scale, weights_scale])])

    def layer(self, i, x, mask, output):
        g, weights = self.graph, self.weights
        prefix = f"encoder.layer.{i}."

        def matrix(name, place):
            return self.matrix(f"l{i}_{name}", f"{prefix}{place}.weight")

        def vector(name, place):
            return g.weight(f"l{i}_{name}", weights.get(prefix + place))

        wo, bo = matrix("wo", "attention.output.dense"), vector("bo", "attention.output.dense.bias")
        g1 = vector("ln1g", "attention.output.LayerNorm.weight")
        b1 = vector("ln1b", "attention.output.LayerNorm.bias")
        w1, c1 = matrix("w1", "intermediate.dense"), vector("c1", "intermediate.dense.bias")
        w2, c2 = matrix("w2", "output.dense"), vector("c2", "output.dense.bias")
        g2, b2 = vector("ln2g", "output.LayerNorm.weight"), vector("ln2b", "output.LayerNorm.bias")

        projected, operand = [], self.operand(x)
        for place in ("query", "key", "value"):
            n = place[0]
            t = self.multiply(operand, matrix(f"w{n}", f"attention.self.{place}"), f"l{i}_{n}_mm")
            t = g.apply("Add", [t, vector(f"b{n}", f"attention.self.{place}.bias")])
            t = g.apply("Reshape", [t, self.split_heads])
            projected.append(g.apply("Transpose", [t], perm=[0, 2, 3, 1] if n == "k" else [0, 2, 1, 3]))
        query, key, value = projected
        scores = g.apply("Div", [g.apply("MatMul", [query, key]), self.scale])
        scores = g.apply("Softmax", [g.apply("Add", [scores, mask])], axis=-1)
        seen = g.apply("Transpose", [g.apply("MatMul", [scores, value])], perm=[0, 2, 1, 3])
        seen = g.apply("Reshape", [seen, self.merge_heads])
        seen = g.apply("Add", [self.multiply(self.operand(seen), wo), bo])
        x = self.normalise(g.apply("Add", [seen, x]), g1, b1)

        # GELU(f) = f (erf(f / sqrt 2) + 1) / 2
        f = g.apply("Add", [self.multiply(self.operand(x), w1), c1])
        e = g.apply("Add", [g.apply("Erf", [g.apply("Div", [f, self.sqrt2])]), self.one])
        f = g.apply("Mul", [g.apply("Mul", [f, e]), self.half])
        f = g.apply("Add", [self.multiply(self.operand(f), w2), c2])
        return self.normalise(g.apply("Add", [f, x]), g2, b2, output=output)

    def build(self):
        """The model, as the pieces of its file."""
        x, mask = self.embed(), self.mask()
        self.shared_constants()
        for i in range(self.layers):
            x = self.layer(i, x, mask, "last_hidden_state" if i == self.layers - 1 else None)
        batch = ["batch", "seq"]
        inputs = ("input_ids", "attention_mask", "token_type_ids")
        graph = b"".join(
            [block(1, n) for n in self.graph.nodes]
            + [block(2, "minilm")]
            + [block(5, c) for c in self.graph.constants]
            + [block(11, described(n, INT64, batch)) for n in inputs]
            + [block(12, described("last_hidden_state", FLOAT, [*batch, self.hidden]))]
        )
        operators = block(1, "") + integer(2, OPERATOR_SET)
        return [integer(1, IR_VERSION), block(2, "convert.py"), block(7, graph), block(8, operators)]


def convert(directory, output, int8):
    """Converts the model of `directory`; raises Unsuitable or OSError."""
    path = directory / "config.json"
    try:
        config = json.loads(path.read_text())
        plain = config["hidden_act"] == "gelu" and config.get("position_embedding_type", "absolute") == "absolute"
        if not plain:
            raise Unsuitable(f"{path}: only exact GELU and absolute positions can be converted")
        encoder = Encoder(Weights(directory / "model.safetensors"), config, int8)
    except (KeyError, ValueError) as error:
        raise Unsuitable(f"{path}: not a BERT encoder's configuration ({error!r})") from error
    with output.open("wb") as file:
        for piece in encoder.build():
            file.write(piece)


def main():
    arguments = sys.argv[1:]
    int8 = arguments[:1] == ["--int8"]
    if len(arguments) != 2 + int8:
        sys.exit("usage: convert_model.py [--int8] DIRECTORY OUTPUT.onnx")
    if sys.byteorder != "little":
        sys.exit("convert_model.py: needs a little-endian machine")
    try:
        convert(*map(Path, arguments[-2:]), int8)
    except (Unsuitable, OSError) as error:
        sys.exit(f"convert_model.py: {error}")


if __name__ == "__main__":
    main()
