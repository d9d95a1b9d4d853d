"""Functions of popops, poplin and poprand as JAX functions: each is one file."""

from ipujax.ops.candidate_samplers import Candidates as Candidates
from ipujax.ops.candidate_samplers import (
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
)
from ipujax.ops.candidate_samplers import (
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
)
from ipujax.ops.candidate_samplers import (
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
)
from ipujax.ops.candidate_samplers import uniform_candidate_sampler as uniform_candidate_sampler
from ipujax.ops.embedding_lookup import embedding_lookup as embedding_lookup
from ipujax.ops.histogram import fixed_width_bins as fixed_width_bins
from ipujax.ops.histogram import histogram as histogram
from ipujax.ops.histogram import histogram_update as histogram_update
from ipujax.ops.normalise_image import normalise_image as normalise_image
from ipujax.ops.sampled_losses import nce_loss as nce_loss
from ipujax.ops.sampled_losses import sampled_softmax_loss as sampled_softmax_loss
