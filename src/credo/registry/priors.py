"""The table of priors over weights."""

from credo.registry.table import Entry, Part, Table

PRIORS = Table("prior", (
    Part("normal", "credo.priors.normal:normal", "N(0, s²) on every weight and bias.", "Normal", "normal:1.0"),
    Part(
        "fan_in_normal", "credo.priors.fan_in:fan_in_normal", "N(0, s²/fan-in): outputs keep their size at any width.",
        "FanInNormal", "fan_in_normal:2,bias_scale=1",
    ),
    Part(
        "laplace", "credo.priors.laplace:laplace", "Heavier than normal: shrinks small weights more than large ones.",
        "LaplacePrior", "laplace:1.0",
    ),
    Part(
        "student_t", "credo.priors.student_t:student_t", "Heavy tails: some weights may be large.",
        "StudentTPrior", "student_t:3,1",
    ),
    Part(
        "scale_mixture", "credo.priors.scale_mixture:scale_mixture", "Many weights near zero, some free to be large.",
        "ScaleMixture", "scale_mixture:0.5,1.0,0.1",
    ),
    Part(
        "horseshoe", "credo.priors.horseshoe:horseshoe", "A scale for every weight: most are shrunk to zero.",
        "Horseshoe", "horseshoe:0.1",
    ),
    Part(
        "hierarchical", "credo.priors.hierarchical:hierarchical", "Normal, its scales learned group by group.",
        "Hierarchical", "hierarchical:inverse_gamma(2,1),layer",
    ),
    Part(
        "node_hierarchy", "credo.priors.node_hierarchy:node_hierarchy",
        "The conjugate prior of a shallow network: means and covariances are learned.",
        "NodeHierarchy", "node_hierarchy:hidden_scale=3",
    ),
    Part(
        "by_path", "credo.priors.by_path:by_path", "Another prior for each parameter whose path a glob matches.",
        "ByPath", "by_path:*/bias=normal(0.1),*=fan_in_normal(2)",
    ),
    Part(
        "centred_on", "credo.priors.centred_on:centred_on", "Normal around given weights; from Python alone.",
        "CentredOn", "",
    ),
    Part(
        "as_prior", "credo.priors.as_prior:as_prior", "A posterior as the next prior; from Python alone.",
        "AsPrior", "",
    ),
))  # fmt: skip

SCALES = Table("prior of a scale", (
    Entry("half_normal", "credo.priors.scales:half_normal", "|N(0, s²)|."),
    Entry("half_cauchy", "credo.priors.scales:half_cauchy", "|Cauchy(0, s)|."),
    Entry("inverse_gamma", "credo.priors.scales:inverse_gamma", "The inverse gamma, of the squared scale."),
    Entry("log_normal", "credo.priors.scales:log_normal", "The logarithm is normal."),
))  # fmt: skip
