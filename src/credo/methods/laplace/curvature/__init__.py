"""Curvature of the log posterior at a mode: the generalised Gauss-Newton matrix in several structures."""

from credo.methods.laplace.curvature.columns import output_columns as output_columns
from credo.methods.laplace.curvature.columns import square_root as square_root
from credo.methods.laplace.curvature.dense_block import DenseBlock as DenseBlock
from credo.methods.laplace.curvature.dense_block import DenseBlockSums as DenseBlockSums
from credo.methods.laplace.curvature.diagonal import Diagonal as Diagonal
from credo.methods.laplace.curvature.diagonal import DiagonalSums as DiagonalSums
from credo.methods.laplace.curvature.evidence import best_on_grid as best_on_grid
from credo.methods.laplace.curvature.evidence import best_scale as best_scale
from credo.methods.laplace.curvature.evidence import log_evidence as log_evidence
from credo.methods.laplace.curvature.evidence import scales_of as scales_of
from credo.methods.laplace.curvature.full import Full as Full
from credo.methods.laplace.curvature.full import FullSums as FullSums
from credo.methods.laplace.curvature.ggn import ggn_product as ggn_product
from credo.methods.laplace.curvature.ggn import hessian_product as hessian_product
from credo.methods.laplace.curvature.kronecker import Kronecker as Kronecker
from credo.methods.laplace.curvature.kronecker import KroneckerSums as KroneckerSums
from credo.methods.laplace.curvature.low_rank import LowRankSpread as LowRank  # noqa: F401 - the name that files have
from credo.methods.laplace.curvature.low_rank import LowRankSums as LowRankSums
from credo.methods.laplace.curvature.output import output_curvature as output_curvature
from credo.methods.laplace.curvature.prior import LocalPrior as LocalPrior
from credo.methods.laplace.curvature.prior import check_prior as check_prior
from credo.methods.laplace.curvature.prior import is_gaussian as is_gaussian
from credo.methods.laplace.curvature.prior import local_prior as local_prior
from credo.methods.laplace.curvature.prior import one_scale as one_scale
from credo.methods.laplace.curvature.spectrum import Spectrum as Spectrum
from credo.methods.laplace.curvature.structures import STRUCTURES as STRUCTURES
from credo.methods.laplace.curvature.structures import first_sums as first_sums
from credo.methods.laplace.curvature.structures import layer_groups as layer_groups
from credo.methods.laplace.curvature.structures import spread_paths as spread_paths
from credo.methods.laplace.curvature.taps import Layer as Layer
from credo.methods.laplace.curvature.taps import Taps as Taps
from credo.methods.laplace.curvature.taps import find_taps as find_taps
from credo.methods.laplace.curvature.taps import output_layer as output_layer
from credo.methods.laplace.curvature.taps import require_all as require_all
from credo.methods.laplace.curvature.taps import tapped as tapped
