"""The folder of this user where work that can be done again is kept: ``$ITEMBANK_CACHE``, or the system's."""

import contextlib
import os
from pathlib import Path

VARIABLE = "ITEMBANK_CACHE"
MOST_BYTES = 2 * 1024**3
"""Beyond this size the files that were written first give way."""


def user_cache_folder() -> Path:
    """Return where work is kept between runs; it need not exist."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    import platformdirs  # noqa: PLC0415 (only banks with a folder need it)

    return platformdirs.user_cache_path("itembank")


def drop_oldest() -> None:
    """Remove the files that were written first, beyond the size that may be kept."""
    files = []
    for path in user_cache_folder().rglob("*.safetensors"):
        with contextlib.suppress(OSError):  # another process may remove it first
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    total = 0
    for _, size, path in sorted(files, reverse=True):
        total += size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)
