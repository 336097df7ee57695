"""Images in files, decoded when they are indexed (see `ImageFiles`)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from crosstail.data.images.files import RESOLUTION, ImageFiles
from crosstail.data.inputs import images
from crosstail.data.inputs._files import examine_files


def _parts(x: ImageFiles) -> Iterator[Any]:
    yield x.checksum.encode()
    yield examine_files(x).hashes.data


KIND = replace(
    images.KIND,
    holds=lambda x: isinstance(x, ImageFiles),
    expects="",
    backbone="efficientnet_lite0",
    take=ImageFiles.take,
    names=ImageFiles.paths,
    root=lambda x: x.root if x.in_files else None,
    open=ImageFiles,
    parts=_parts,
    stored=lambda x: (len(x), RESOLUTION, RESOLUTION, 3),  # the files are the same at every resolution
    fingerprint=ImageFiles.fingerprint,
    examined=examine_files,
    pixels=ImageFiles.base,
    view=ImageFiles.view,
    content=ImageFiles.content,
    decodes=True,
    cached=ImageFiles.cached,
    resized=ImageFiles.at_resolution,
    augments=True,
)
