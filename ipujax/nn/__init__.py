"""Neural-network functions of popnn: each is one file, with its derivative."""

from ipujax.nn.ctc_beam_search import CTCPaths as CTCPaths
from ipujax.nn.ctc_beam_search import ctc_beam_search_decoder as ctc_beam_search_decoder
from ipujax.nn.ctc_beam_search import (
    ctc_beam_search_decoder_with_log_probs as ctc_beam_search_decoder_with_log_probs,
)
from ipujax.nn.ctc_loss import ctc_loss as ctc_loss
from ipujax.nn.ctc_loss import ctc_loss_with_log_probs as ctc_loss_with_log_probs
from ipujax.nn.gru import GRUWeights as GRUWeights
from ipujax.nn.gru import augru as augru
from ipujax.nn.gru import dynamic_gru as dynamic_gru
from ipujax.nn.gru import gru as gru
from ipujax.nn.lstm import LSTMState as LSTMState
from ipujax.nn.lstm import LSTMWeights as LSTMWeights
from ipujax.nn.lstm import lstm as lstm
