"""How processes that serve others log: a JSON object a line, for this program and its libraries, without secrets."""

import logging
import os
from collections.abc import Sequence

import structlog
from structlog.typing import EventDict, Processor

from venn_admit.runtime.settings import secret_addresses
from venn_admit.secrets import mask


def log_as_json(loglevel: int = logging.INFO, **_: object) -> None:
    """Set up logging. Celery calls this with its options, which mean nothing here except the level."""
    shared: list[Processor] = [structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    rendered: list[Processor] = [
        structlog.processors.format_exc_info,
        _masking(secret_addresses(os.environ)),
        structlog.processors.JSONRenderer(),
    ]
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered]
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(loglevel)
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[*shared, *rendered],
        # Past the library's loggers, which take longer than all the rest of a line.
        wrapper_class=structlog.make_filtering_bound_logger(loglevel),
        logger_factory=structlog.WriteLoggerFactory(handler.stream),
        cache_logger_on_first_use=True,
    )


def _masking(addresses: Sequence[str]) -> Processor:
    """Mask the addresses of broker and database, which a library may log, for example in an exception."""

    def mask_secrets(_logger: object, _method: str, entry: EventDict) -> EventDict:
        return {key: mask(value, *addresses) if isinstance(value, str) else value for key, value in entry.items()}

    return mask_secrets
