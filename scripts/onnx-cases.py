"""Writes ONNX's own node tests in a form that is read without protobuf: FOLDER/cases.json and FOLDER/data.bin.

usage: onnx-cases.py FOLDER

cases.json: the package's version and a list of cases. A case has a name, tolerances, inputs and outputs (tensors: name, element type, shape, and where
their bytes lie in data.bin), and nodes (op, domain, names of inputs and outputs, attributes). What is no tensor (sequences, optionals, strings) has
the element type "other" and no bytes; subgraphs are attributes of the kind "graph".
"""

import json
import os
import sys
import warnings

import numpy
import onnx
from onnx import AttributeProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

warnings.filterwarnings("ignore")


class Data:
    """The bytes of all tensors, one after the other."""

    def __init__(self, file):
        self.file, self.length = file, 0

    def tensor(self, name, value):
        if isinstance(value, onnx.TensorProto):
            element = onnx.TensorProto.DataType.Name(value.data_type).lower()
            value = numpy_helper.to_array(value)
        elif isinstance(value, (numpy.ndarray, numpy.generic)):
            value = numpy.asarray(value)
            element = str(value.dtype)
        else:
            return {"name": name, "element": "other", "shape": [], "at": 0, "bytes": 0}
        element = {"float": "float32", "double": "float64", "bool_": "bool"}.get(element, element)
        if value.dtype.kind in "OUS":
            return {"name": name, "element": "other", "shape": [], "at": 0, "bytes": 0}
        content = numpy.ascontiguousarray(value).tobytes()
        # Aligned for whoever reads words.
        padding = -self.length % 8
        self.file.write(b"\0" * padding + content)
        at = self.length + padding
        self.length = at + len(content)
        return {"name": name, "element": element, "shape": list(value.shape), "at": at, "bytes": len(content)}


def attribute(data, found):
    kinds = AttributeProto
    if found.type == kinds.FLOAT:
        return {"kind": "float", "value": found.f}
    if found.type == kinds.INT:
        return {"kind": "int", "value": found.i}
    if found.type == kinds.STRING:
        return {"kind": "string", "value": found.s.decode("utf-8", "replace")}
    if found.type == kinds.FLOATS:
        return {"kind": "floats", "value": list(found.floats)}
    if found.type == kinds.INTS:
        return {"kind": "ints", "value": list(found.ints)}
    if found.type == kinds.TENSOR:
        return {"kind": "tensor", "value": data.tensor(found.name, found.t)}
    if found.type in (kinds.GRAPH, kinds.GRAPHS):
        return {"kind": "graph", "value": None}
    return {"kind": "other", "value": None}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    cases = []
    with open(os.path.join(folder, "data.bin"), "wb") as file:
        data = Data(file)
        for case in sorted(collect_testcases(None), key=lambda case: case.name):
            graph = case.model.graph
            given, expected = case.data_sets[0]
            names = [value.name for value in graph.input]
            initial = [data.tensor(value.name, value) for value in graph.initializer]
            nodes = [
                {
                    "op": node.op_type,
                    "domain": node.domain,
                    "inputs": list(node.input),
                    "outputs": list(node.output),
                    "attributes": {found.name: attribute(data, found) for found in node.attribute},
                }
                for node in graph.node
            ]
            opsets = {opset.domain: opset.version for opset in case.model.opset_import}
            cases.append(
                {
                    "name": case.name,
                    "opset": opsets.get("", 0),
                    "relative": case.rtol,
                    "absolute": case.atol,
                    "inputs": [data.tensor(name, value) for name, value in zip(names, given)] + initial,
                    "outputs": [data.tensor(value.name, wanted) for value, wanted in zip(graph.output, expected)],
                    "nodes": nodes,
                }
            )
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as file:
        json.dump({"version": onnx.__version__, "cases": cases}, file)
    print(f"onnx-cases: {len(cases)} cases of onnx {onnx.__version__} in {folder}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
