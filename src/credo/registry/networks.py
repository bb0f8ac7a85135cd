"""The table of built-in networks."""

from dataclasses import dataclass

from credo.registry.table import Part, Table


@dataclass(frozen=True)
class NetworkRow(Part):
    """One network.

    Attributes:
        inputs: what it takes: "rows" [n, features] as a table has, "images" [n, height, width, channels],
            "sequences" [n, time, features] or "codes", rows of which some features are codes of categories.
        prior: its prior in tables where nobody says otherwise, in words; "": `fan_in_normal` at the method's scale.
    """

    inputs: str = "rows"
    prior: str = ""


NETWORKS = Table("network", (
    NetworkRow(
        "mlp", "credo.networks.mlp:mlp", "A multilayer perceptron: widths of its layers, activation, dropout.",
        "MLP", "mlp:50,50:tanh",
    ),
    NetworkRow(
        "shallow", "credo.networks.shallow:shallow", "One layer of nodes, with a linear part beside it.",
        "Shallow", "shallow:8", prior="node_hierarchy",
    ),
    NetworkRow(
        "residual_mlp", "credo.networks.residual_mlp:residual_mlp", "A perceptron with shortcuts: width and depth.",
        "ResidualMLP", "residual_mlp:50:2",
    ),
    NetworkRow(
        "piecewise_mlp", "credo.networks.piecewise:piecewise_mlp",
        "A perceptron on numbers and their places between quantiles: widths, activation, parts of a column.",
        "Piecewise", "piecewise_mlp:50:relu:8",
    ),
    NetworkRow(
        "embedded", "credo.networks.embedded:embedded", "Another network, with a learned vector for every category.",
        "Embedded", "", "codes",
    ),
    NetworkRow("lenet", "credo.networks.convnet:lenet", "The convolutional network LeNet-5.", "LeNet", "", "images"),
    NetworkRow("vgg", "credo.networks.convnet:vgg", "Convolutions of 3 × 3 in stages.", "VGG", "", "images"),
    NetworkRow(
        "resnet20", "credo.networks.resnet:resnet20", "A residual network for small images.", "ResNet", "", "images"
    ),
    NetworkRow("lstm", "credo.networks.recurrent:lstm", "A long short-term memory.", "Recurrent", "", "sequences"),
    NetworkRow("gru", "credo.networks.recurrent:gru", "A gated recurrent unit.", "Recurrent", "", "sequences"),
))  # fmt: skip
