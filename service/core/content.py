"""The content of an exemplar as a digest: a label can change, its vector, logits and document cannot."""

from hashlib import blake2b

from service.core.types import Float32Array


def content_digest(vector: Float32Array, logits: Float32Array, document_id: str | None) -> bytes:
    """BLAKE2b-128 (RFC 7693) of an exemplar's vector (D,), logits (C,) and document; 16 bytes."""
    digest = blake2b(vector.data, digest_size=16)
    digest.update(logits.data)
    if document_id is not None:
        digest.update(b"\x00" + document_id.encode())
    return digest.digest()
