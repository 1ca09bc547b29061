"""What `calibrate` says of a calibration by Venn-Abers: its score, and what became of its certificate."""

from venn_admit.cli.output import output, print_result
from venn_admit.flows.calibration.calibrate import Calibrated
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.payloads.calibrated import calibrated_payload
from venn_admit.report.calibration.cells.certified import certificate_section
from venn_admit.report.calibration.wording import drawn_section


def print_cells(done: Calibrated, made: MadeByAbers, as_json: bool) -> None:
    """Print what Venn-Abers made."""
    choice, asked, certificate = made.choice, done.method_settings, made.certificate
    points = f"{done.mc_count:,} mc" + ("" if certificate is None else f", {done.vp_count:,} vp")
    lines = [
        f"Calibration {done.calibration_id} is current: method venn-abers, alpha {asked.alpha}, score {choice.kind}; "
        f"points: {points}; {done.changed.opened:,} rows written."
    ]
    if done.classifier.knn is None:
        lines.append("The classifier has logits only, so the score is the network's: there is no other.")
    if choice.network_share is not None and choice.reliability_share is not None:
        lines.append(
            f"Cross-fitted, the network's score admits {choice.network_share:.1%} of mc, the reliability score "
            f"{choice.reliability_share:.1%}."
        )
    print_result(
        as_json,
        calibrated_payload(done),
        *lines,
    )
    if certificate is not None and not as_json:
        output.print(drawn_section(certificate_section(certificate, done.classifier.class_names)))
