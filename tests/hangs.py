"""Files that hang: pipes in their place, and a mount whose server never answers."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
MNT_DETACH = 2


@contextmanager
def pipes(*paths: Path) -> Iterator[None]:
    """Has pipes that nobody writes and nobody reads stand in place of files."""
    kept = [path.with_name(f"{path.name}.kept") for path in paths]
    for path, aside in zip(paths, kept):
        path.rename(aside)
        os.mkfifo(path)
    try:
        yield
    finally:
        for path, aside in zip(paths, kept):
            # Files of a run have gone with it.
            if aside.exists():
                aside.rename(path)


@contextmanager
def stalled(folder: Path) -> Iterator[None]:
    """Mounts a file system that never answers over a folder, like a network disk whose server is
    gone. A process that looks there hangs, and a caught signal does not free it."""
    server = os.open("/dev/fuse", os.O_RDWR)
    at, options = os.fsencode(folder), f"fd={server},rootmode=40000,user_id=0,group_id=0"
    try:
        if LIBC.mount(b"none", at, b"fuse", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "cannot mount a folder of /dev/fuse")
        try:
            yield
        finally:
            LIBC.umount2(at, MNT_DETACH)
    finally:
        # Callers that wait there are told that it has gone.
        os.close(server)
