"""The certified promise (docs/PROCEDURE.md, section 9): policies proposed on `mc`, tested on `vp`.

These arguments and attributes mean the same in all of its modules.

Args:
    admitted: (documents, h) int64, the admitted points of each document and class.
    attribute: The name of an attribute.
    attributes: Those of the points; a point without one that the policy needs is not admitted; None for none.
    by_softmax: The number of points (of the evidence or, if it is foretold, of the proposing points) that the
        network's softmax at 1 - alpha admits, which promises nothing.
    certificate: The certificate.
    documents: The number of documents of evidence that there will be.
    evidence: Labelled points, exchangeable with those to be decided on, on which neither the scores nor anything else
        before was fitted.
    excess: (documents, h) float64, as `document_excess` gives it.
    groups: The groups of the points by each attribute that is asked for.
    kind: A kind of classes that is asked for.
    kinds: The classes for which it shall hold, as in `make_certification`; the points have the groups of each
        attribute.
    level: In (0, 1), 1 - confidence, or the part of it that a test has.
    loss: As in `check_loss`; None for the 0/1 loss.
    losses: What errors cost.
    number: The number of the class.
    points: Labelled points.
    policy: The policy, of C classes.
    probability: In (0, 1).
    proposing: Labelled points that serve no other end here; the scores may have been fitted on them.
    ranges: What a point of each class can cost.
    rows: (n,) bool, or the places of the points.
    shown: What the evidence can show.
    test: How documents of several points are tested. `finite-sample` is valid at any number of documents; `asymptotic`
        has more power, and is valid for very many only. With a loss, points are tested so too, unless what they cost
        has one value for each class.
    trials: >= 0.
    uniform: In (0, 1], drawn independently of the documents.
"""
