"""The content of an exemplar as a digest: its label may change, but its vector, logits and document may not."""

from hashlib import blake2b

from venn_admit.service.core.types import Float32Array


def content_digest(vector: Float32Array | None, logits: Float32Array, document_id: str | None) -> bytes:
    """Return the BLAKE2b-128 digest (RFC 7693) of an exemplar's content.

    Args:
        vector: (D,) float32, r; None if the classifier has logits only.
        logits: (C,) float32, f.
        document_id: The document that the exemplar is part of, or None.

    Returns:
        16 bytes.
    """
    digest = blake2b(b"" if vector is None else vector.data, digest_size=16)
    digest.update(logits.data)
    if document_id is not None:
        digest.update(b"\x00" + document_id.encode())
    return digest.digest()
