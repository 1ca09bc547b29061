"""Which tool an address is of."""

import re

import httpx2 as httpx

from venn_admit.errors import InvalidInputError
from venn_admit.labelling.argilla import Argilla
from venn_admit.labelling.label_studio import LabelStudio
from venn_admit.labelling.tool import LabellingTool
from venn_admit.labelling.web import is_token

_PROJECT = re.compile(r"(?P<prefix>.*?)/projects/(?P<name>[1-9][0-9]{0,9})(/.*)?")
_DATASET = re.compile(r"(?P<prefix>.*?)/dataset/(?P<name>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})(/.*)?")
_EXPECTED = "https://host/projects/12 of Label Studio or https://host/dataset/ID of Argilla, as the browser shows it"


def tool_at(address: str, token: str) -> LabellingTool:
    """Return the project of Label Studio or the dataset of Argilla that a browser shows at an address.

    Raises:
        InvalidInputError: The address is of neither, or the token cannot be one.
    """
    try:
        url = httpx.URL(address)
        url.host.encode("idna")  # as a connection does
    except (httpx.InvalidURL, UnicodeError) as error:
        raise InvalidInputError(f"address: expected {_EXPECTED}; correct it") from error
    if url.userinfo:
        raise InvalidInputError("address: expected one without a user and a password; leave them out")
    token = token.strip()
    if not is_token(token):
        raise InvalidInputError("token: expected the text that the tool shows, got something else; copy it again")
    if url.scheme in {"http", "https"} and url.host:
        for pattern, kind in ((_PROJECT, LabelStudio), (_DATASET, Argilla)):
            found = pattern.fullmatch(url.path)
            if found is not None:
                base = f"{url.scheme}://{url.netloc.decode()}{found['prefix']}"
                return kind(base, found["name"], token)
    raise InvalidInputError(f"address: expected {_EXPECTED}, got {address!a}; correct it")
