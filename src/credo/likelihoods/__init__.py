"""Likelihoods: what the targets are, given the network's outputs."""

from credo.likelihoods.bernoulli import Bernoulli as Bernoulli
from credo.likelihoods.bernoulli import bernoulli as bernoulli
from credo.likelihoods.calibrated import Overdispersed as Overdispersed
from credo.likelihoods.calibrated import Stretched as Stretched
from credo.likelihoods.calibrated import Tempered as Tempered
from credo.likelihoods.categorical import Categorical as Categorical
from credo.likelihoods.categorical import categorical as categorical
from credo.likelihoods.defaults import default_likelihood as default_likelihood
from credo.likelihoods.from_log_prob import ClassesFromLogProb as ClassesFromLogProb
from credo.likelihoods.from_log_prob import FromLogProb as FromLogProb
from credo.likelihoods.from_log_prob import from_log_prob as from_log_prob
from credo.likelihoods.gamma import Gamma as Gamma
from credo.likelihoods.gamma import gamma as gamma
from credo.likelihoods.gaussian import Gaussian as Gaussian
from credo.likelihoods.gaussian import gaussian as gaussian
from credo.likelihoods.heteroscedastic import Heteroscedastic as Heteroscedastic
from credo.likelihoods.heteroscedastic import heteroscedastic as heteroscedastic
from credo.likelihoods.heteroscedastic_t import HeteroscedasticT as HeteroscedasticT
from credo.likelihoods.heteroscedastic_t import heteroscedastic_t as heteroscedastic_t
from credo.likelihoods.log_normal import LogNormalNoise as LogNormalNoise
from credo.likelihoods.log_normal import log_normal as log_normal
from credo.likelihoods.mislabelled import Mislabelled as Mislabelled
from credo.likelihoods.mislabelled import mislabelled as mislabelled
from credo.likelihoods.mixed import Mixed as Mixed
from credo.likelihoods.negative_binomial import NegativeBinomial as NegativeBinomial
from credo.likelihoods.negative_binomial import negative_binomial as negative_binomial
from credo.likelihoods.ordinal import Ordinal as Ordinal
from credo.likelihoods.ordinal import ordinal as ordinal
from credo.likelihoods.poisson import Poisson as Poisson
from credo.likelihoods.poisson import poisson as poisson
from credo.likelihoods.student_t import StudentT as StudentT
from credo.likelihoods.student_t import student_t as student_t
from credo.likelihoods.zero_inflated_negative_binomial import (
    ZeroInflatedNegativeBinomial as ZeroInflatedNegativeBinomial,
)
from credo.likelihoods.zero_inflated_negative_binomial import (
    zero_inflated_negative_binomial as zero_inflated_negative_binomial,
)
from credo.likelihoods.zero_inflated_poisson import ZeroInflatedPoisson as ZeroInflatedPoisson
from credo.likelihoods.zero_inflated_poisson import zero_inflated_poisson as zero_inflated_poisson
