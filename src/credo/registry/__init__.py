"""One table for each kind of part: methods, likelihoods, priors, networks, metrics. Importing them imports no JAX."""

from credo.registry.likelihoods import LIKELIHOODS as LIKELIHOODS
from credo.registry.likelihoods import TASKS as TASKS
from credo.registry.likelihoods import LikelihoodRow as LikelihoodRow
from credo.registry.likelihoods import likelihoods_of as likelihoods_of
from credo.registry.methods import CLASSES as CLASSES
from credo.registry.methods import METHODS as METHODS
from credo.registry.methods import ROWS as ROWS
from credo.registry.methods import Row as Row
from credo.registry.methods import build_method as build_method
from credo.registry.methods import find as find
from credo.registry.methods import method_name as method_name
from credo.registry.metrics import METRICS as METRICS
from credo.registry.metrics import MetricRow as MetricRow
from credo.registry.networks import NETWORKS as NETWORKS
from credo.registry.networks import NetworkRow as NetworkRow
from credo.registry.priors import PRIORS as PRIORS
from credo.registry.priors import SCALES as SCALES
from credo.registry.table import Entry as Entry
from credo.registry.table import Part as Part
from credo.registry.table import Table as Table
from credo.registry.table import did_you_mean as did_you_mean
from credo.registry.table import lazy as lazy
from credo.registry.table import load as load
