//! Which of ONNX's ops the rows of the op list are, that stand at present: what is not here is no row of it, or of a later one.

/// The rows from "creation" to "random, sampling" but the quantised one, with ONNX's names for what they hold.
pub const ROWS: &[(&str, &[&str])] = &[
    ("creation", &["Constant", "ConstantOfShape", "EyeLike", "Range", "Shape", "Size", "Identity"]),
    (
        "unary",
        &[
            "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Clip", "Cos", "Cosh",
            "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish",
            "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Sqrt",
            "Swish", "Tan", "Tanh",
        ],
    ),
    (
        "binary",
        &[
            "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
            "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "SwiGLU", "Xor",
        ],
    ),
    ("select, cast", &["Where", "Cast", "CastLike", "BitCast"]),
    (
        "shape",
        &[
            "Concat", "Expand", "Flatten", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
        ],
    ),
    (
        "indexing",
        &[
            "ArgMax", "ArgMin", "Gather", "GatherElements", "GatherND", "OneHot", "Scatter", "ScatterElements", "ScatterND",
            "TopK", "Trilu",
        ],
    ),
    (
        "reduce, scan",
        &[
            "CumProd", "CumSum", "Mean", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
            "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Sum",
        ],
    ),
    (
        "norms",
        &[
            "BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LogSoftmax",
            "RMSNormalization", "Softmax",
        ],
    ),
    ("matmul", &["Gemm", "MatMul", "MatMulInteger"]),
    (
        "convolution",
        &[
            "AveragePool", "Col2Im", "Conv", "ConvTranspose", "DepthToSpace", "GlobalAveragePool", "GlobalMaxPool",
            "GridSample", "MaxPool", "Resize", "SpaceToDepth",
        ],
    ),
    ("attention", &["Attention"]),
    ("positions", &["RotaryEmbedding"]),
    ("random, sampling", &["Bernoulli", "Dropout", "RandomUniformLike"]),
];

/// The row that an op is of.
pub fn row_of(op: &str) -> Option<&'static str> {
    ROWS.iter().find(|(_, ops)| ops.contains(&op)).map(|(row, _)| *row)
}
