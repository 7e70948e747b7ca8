"""nccl, carried by gloo: the process group that a CUDA build has, over the host's memory."""

from __future__ import annotations

import datetime
from typing import Any


def install() -> None:
    """torch.distributed.distributed_c10d is there; does nothing in a torch without it."""
    import torch.distributed as dist
    import torch.distributed.distributed_c10d as c10d
    from torch._C._distributed_c10d import ProcessGroupGloo

    from . import collectives

    class ProcessGroupNCCL(ProcessGroupGloo):
        """gloo, called nccl."""

        class Options:
            """The options that nccl knows; the time limit is the one that counts here."""

            def __init__(self, is_high_priority_stream: bool = False) -> None:
                self.is_high_priority_stream = is_high_priority_stream
                self._timeout: Any = None
                self.global_ranks_in_group: list[int] = []
                self.group_name = ""

        def __init__(self, store: Any, rank: int, size: int, options: Any) -> None:
            super().__init__(store, rank, size, timeout=options._timeout)

        def _set_sequence_number_for_group(self) -> None:
            pass

        def abort(self) -> None:
            pass

        def shutdown(self) -> None:
            pass

    names: Any = c10d
    logger: Any = dist.Logger
    names.ProcessGroupNCCL, names._NCCL_AVAILABLE = ProcessGroupNCCL, True
    names.default_pg_nccl_timeout = datetime.timedelta(minutes=10)  # as in torch/csrc/distributed/c10d
    # DistributedDataParallel's figures come from a timer of CUDA events, which a CPU build does not have.
    logger.set_runtime_stats_and_log = lambda self: None
    collectives.install_overrides()
