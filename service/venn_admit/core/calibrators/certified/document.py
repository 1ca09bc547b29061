"""Certificates as documents: their form for storage and export."""

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from venn_admit.core.calibrators.certification import (
    ClassKind,
    DocumentTest,
    class_document,
    class_from_document,
    parse_kind,
)
from venn_admit.core.calibrators.certified.certificate import (
    Advance,
    Certificate,
    Chain,
    ClassResult,
    NextChain,
    Refutation,
    SetAside,
    Standing,
    TriedPolicy,
)
from venn_admit.core.calibrators.certified.policies import Bounded, GroupThresholds, Policy
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.errors import InvalidInputError


def to_document(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as values that JSON can hold; a threshold of null is never."""
    policy = certificate.policy
    return {
        "alpha": str(certificate.alpha),
        "confidence": str(certificate.confidence),
        "kinds": [str(kind) for kind in certificate.kinds],
        "test": str(certificate.test),
        # Absent without a loss, as in certificates made before there were any.
        **({} if certificate.loss is None else {"loss": [list(map(str, row)) for row in certificate.loss]}),
        # Absent unless shares were declared or estimated, as in certificates made before any could be.
        **({} if certificate.class_shares is None else {"class_shares": _shares_document(certificate.class_shares)}),
        "single_points": certificate.single_points,
        "documents": certificate.documents,
        "points": certificate.points,
        "proposing": certificate.proposing,
        "capped": certificate.capped,
        **_policy_document(policy),
        "admitted": certificate.admitted,
        "share": certificate.share,
        "documents_needed": certificate.documents_needed,
        "labels_needed": certificate.labels_needed,
        "promised": [_result_document(result) for result in certificate.classes],
        "lacking": [_result_document(result) for result in certificate.lacking],
        # Absent unless there is one, as in certificates made before any was.
        **({} if certificate.set_aside is None else {"set_aside": _aside_document(certificate.set_aside)}),
        # Absent unless it stands, as in certificates made before any did.
        **({} if certificate.standing is None else {"standing": asdict(certificate.standing)}),
        "chains": [
            {
                "name": chain.name,
                "predicted": list(chain.predicted),
                "level": chain.level,
                "steps": [
                    {
                        "shares": list(step.shares),
                        "thresholds": list(step.thresholds),
                        "admitted": step.admitted,
                        "passed": step.passed,
                        "classes": [_result_document(result) for result in step.classes],
                    }
                    for step in chain.steps
                ],
            }
            for chain in certificate.chains
        ],
    }


def _policy_document(policy: Policy | None) -> dict[str, Any]:
    return {
        "thresholds": None if policy is None else list(policy.thresholds),
        "bounded": None if policy is None else str(policy.bounded),
        # Absent unless groups were asked for, as in certificates made before there were any.
        **({"groups": groups_document(policy)} if policy is not None and policy.groups else {}),
        # Absent unless there are any, as in certificates whose decisions say that a threshold was not reached.
        **({"withdrawn": list(policy.withdrawn)} if policy is not None and policy.withdrawn else {}),
        **({"uncertified": list(policy.uncertified)} if policy is not None and policy.uncertified else {}),
    }


def _aside_document(aside: SetAside) -> dict[str, Any]:
    return {
        **_policy_document(aside.policy),
        "admitted": aside.admitted,
        "by_softmax": aside.by_softmax,
        "promised": [_result_document(result) for result in aside.classes],
    }


def groups_document(policy: Policy) -> list[dict[str, Any]]:
    """Return the thresholds of groups as values that JSON can hold."""
    return [{"attribute": of.attribute, "least": list(map(dict, of.least))} for of in policy.groups]


def policy_from_document(document: Mapping[str, Any]) -> Policy | None:
    """Return the certified policy of a certificate that `to_document` made a document of; None if there is none.

    Args:
        document: Its fields `thresholds`, `bounded` and, if there are any, `groups`, `withdrawn` and `uncertified`.
    """
    if document["thresholds"] is None:
        return None
    groups = tuple(GroupThresholds(of["attribute"], tuple(of["least"])) for of in document.get("groups") or ())
    never = (tuple(document.get(name) or ()) for name in ("withdrawn", "uncertified"))
    return Policy(tuple(document["thresholds"]), Bounded(document["bounded"]), groups, *never)


def _result_document(result: ClassResult) -> dict[str, Any]:
    return {
        **class_document(result),
        "admitted": result.admitted,
        "right": result.right,
        **({} if result.mean_loss is None else {"mean_loss": result.mean_loss}),
        "p_value": result.p_value,
        "documents_needed": result.documents_needed,
    }


def from_document(document: Mapping[str, Any]) -> Certificate:
    """Return the certificate that `to_document` made a document of, or the program before there were chains.

    Raises:
        InvalidInputError: A field is absent or has a value that no certificate has.
    """
    try:
        if "proposals" in document:
            return _of_proposals(document)
        return Certificate(
            **_asked(document),
            documents=document["documents"],
            points=document["points"],
            proposing=document["proposing"],
            capped=document["capped"],
            policy=policy_from_document(document),
            admitted=document["admitted"],
            classes=tuple(map(_result, document["promised"])),
            lacking=tuple(map(_result, document["lacking"])),
            set_aside=_aside(document["set_aside"]) if "set_aside" in document else None,
            standing=_standing(document["standing"]) if "standing" in document else None,
            chains=tuple(
                Chain(
                    name=chain["name"],
                    predicted=tuple(chain["predicted"]),
                    level=chain["level"],
                    steps=tuple(
                        TriedPolicy(
                            shares=tuple(step["shares"]),
                            thresholds=tuple(step["thresholds"]),
                            admitted=step["admitted"],
                            classes=tuple(map(_result, step["classes"])),
                            passed=step["passed"],
                        )
                        for step in chain["steps"]
                    ),
                )
                for chain in document["chains"]
            ),
        )
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"expected the document of a certificate, got one that fails at {error!r}; recalibrate to write it again"
        ) from error


def _asked(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "alpha": Decimal(document["alpha"]),
        "confidence": Decimal(document["confidence"]),
        "kinds": tuple(map(parse_kind, document["kinds"])),
        "test": DocumentTest(document["test"]),
        "loss": tuple(tuple(map(Decimal, row)) for row in document["loss"]) if "loss" in document else None,
        "class_shares": _shares(document["class_shares"]) if "class_shares" in document else None,
    }


def _shares_document(declared: ClassShares | EstimatedShares) -> dict[str, Any]:
    if isinstance(declared, EstimatedShares):
        return asdict(declared)
    return {"shares": list(map(str, declared.shares)), "within": str(declared.within)}


def _shares(document: Mapping[str, Any]) -> ClassShares | EstimatedShares:
    if "level" in document:
        shares, least, most = (tuple(document[name]) for name in ("shares", "least", "most"))
        return EstimatedShares(shares, least, most, tuple(document["traffic"]), document["level"])
    return ClassShares(tuple(map(Decimal, document["shares"])), Decimal(document["within"]))


def _aside(document: Mapping[str, Any]) -> SetAside:
    policy = policy_from_document(document)
    if policy is None:
        raise ValueError("a policy that is set aside has thresholds")
    classes = tuple(map(_result, document["promised"]))
    return SetAside(policy, document["admitted"], document["by_softmax"], classes)


def _standing(document: Mapping[str, Any]) -> Standing:
    # Absent in certificates from before a next chain was foretold.
    following = document.get("following")
    return Standing(
        document["chain"],
        document["level"],
        tuple(map(_advance, document["classes"])),
        None if following is None else NextChain(**following),
    )


def _advance(document: Mapping[str, Any]) -> Advance:
    # Absent in certificates from before labels could refute what is certified, and before true classes could stand.
    refuted, kind = document.get("refuted"), ClassKind(document.get("kind", ClassKind.PREDICTED))
    return Advance(**{**document, "refuted": None if refuted is None else Refutation(**refuted), "kind": kind})


def _result(document: Mapping[str, Any]) -> ClassResult:
    of = class_from_document(document)
    return ClassResult(
        kind=of.kind,
        number=of.number,
        value=of.value,
        admitted=document["admitted"],
        right=document["right"],
        p_value=document["p_value"],
        documents_needed=document["documents_needed"],
        mean_loss=document.get("mean_loss"),
    )


def _of_proposals(document: Mapping[str, Any]) -> Certificate:
    """A certificate made before there were chains: thresholds on p0, proposed on `mc` and tested on `vp`."""
    confidence, points = Decimal(document["confidence"]), document["vp_points"]
    steps = tuple(
        TriedPolicy(
            shares=(),
            thresholds=tuple(proposal["thresholds"]),
            admitted=round(proposal["vp_share"] * points),
            classes=tuple(
                _result({**result, "admitted": result["vp_admitted"], "right": result["vp_right"]})
                for result in proposal["classes"]
            ),
            passed=proposal["passed"],
        )
        for proposal in document["proposals"]
    )
    level, chosen = float(1 - confidence), document["chosen"]
    chains = (Chain("proposals", tuple(range(len(steps[0].thresholds))), level, steps),) if steps else ()
    return Certificate(
        **_asked(document),
        documents=document["vp_documents"],
        points=points,
        proposing=0,
        capped=0,
        policy=None if chosen is None else Policy(steps[chosen].thresholds, Bounded.LOWER),
        admitted=0 if chosen is None else steps[chosen].admitted,
        classes=() if chosen is None else steps[chosen].classes,
        lacking=chains[0].closest.classes if chains and chosen is None else (),
        chains=chains,
    )
