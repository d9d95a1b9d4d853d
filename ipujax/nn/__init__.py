"""Neural-network functions of popnn, each in one file with its derivative."""

from ipujax.host.module_help import with_names as _with_names
from ipujax.nn.activations import elu as elu
from ipujax.nn.activations import gelu as gelu
from ipujax.nn.activations import hard_sigmoid as hard_sigmoid
from ipujax.nn.activations import leaky_relu as leaky_relu
from ipujax.nn.activations import relu as relu
from ipujax.nn.activations import swish as swish
from ipujax.nn.batch_norm import BatchNormState as BatchNormState
from ipujax.nn.batch_norm import batch_norm as batch_norm
from ipujax.nn.batch_norm import batch_norm_init as batch_norm_init
from ipujax.nn.cross_entropy import MASKED_LABEL as MASKED_LABEL
from ipujax.nn.cross_entropy import cross_entropy as cross_entropy
from ipujax.nn.ctc_beam_search import CTCPaths as CTCPaths
from ipujax.nn.ctc_beam_search import ctc_beam_search_decoder as ctc_beam_search_decoder
from ipujax.nn.ctc_beam_search import (
    ctc_beam_search_decoder_with_log_probs as ctc_beam_search_decoder_with_log_probs,
)
from ipujax.nn.ctc_loss import ctc_loss as ctc_loss
from ipujax.nn.ctc_loss import ctc_loss_with_log_probs as ctc_loss_with_log_probs
from ipujax.nn.dropout import dropout as dropout
from ipujax.nn.group_norm import group_norm as group_norm
from ipujax.nn.group_norm import instance_norm as instance_norm
from ipujax.nn.group_norm import layer_norm as layer_norm
from ipujax.nn.gru import GRUWeights as GRUWeights
from ipujax.nn.gru import augru as augru
from ipujax.nn.gru import dynamic_gru as dynamic_gru
from ipujax.nn.gru import gru as gru
from ipujax.nn.lstm import LSTMState as LSTMState
from ipujax.nn.lstm import LSTMWeights as LSTMWeights
from ipujax.nn.lstm import lstm as lstm
from ipujax.nn.softmax import log_softmax as log_softmax
from ipujax.nn.softmax import softmax as softmax

__doc__ = _with_names(globals())
