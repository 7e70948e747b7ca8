"""`from apex import amp`."""

from ._frontend import initialize, load_state_dict, scale_loss, state_dict
from ._state import disable_casts, master_params

__all__ = ["disable_casts", "initialize", "load_state_dict", "master_params", "scale_loss", "state_dict"]
