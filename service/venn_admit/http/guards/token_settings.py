"""Whether tokens of an issuer are accepted beside keys, which takes an optional part of the installation."""

from typing import TYPE_CHECKING

from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.http.guards.issuer import is_trustworthy
from venn_admit.runtime.settings import Settings

if TYPE_CHECKING:
    from venn_admit.http.guards.tokens import Tokens


def accepted_tokens(settings: Settings) -> "Tokens | None":
    """Return what verifies tokens as the settings say; None if keys alone are accepted.

    Raises:
        InvalidInputError: The settings are not complete, or anybody on the way could change what the issuer answers.
        NotReadyError: The optional part is not installed.
    """
    issuer, audience = settings.oidc_issuer, settings.oidc_audience
    if issuer is None:
        return None
    if not is_trustworthy(issuer):
        raise InvalidInputError(f"VENN_ADMIT_OIDC_ISSUER: expected https://host/path, got {issuer!a}; correct it")
    if audience is None:
        raise InvalidInputError(
            "VENN_ADMIT_OIDC_AUDIENCE: expected the audience that tokens must be for, as there is an issuer, got none; "
            "set it"
        )
    try:
        from venn_admit.http.guards.tokens import Tokens
    except ImportError as error:
        raise NotReadyError(
            "tokens of an issuer need PyJWT, which is not installed: pip install 'venn-admit[oidc]'"
        ) from error
    return Tokens(
        issuer, audience, scope_claim=settings.oidc_scope_claim, classifier_claim=settings.oidc_classifier_claim
    )
