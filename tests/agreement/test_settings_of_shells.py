"""The shells take and refuse the same settings, and what they advise is to calibrate under the very same ones.

The page has no form for settings; it names the request.
"""

import inspect
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from decimal import Decimal
from functools import partial
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import venn_admit
import venn_admit_client as client
from tests.api.conftest import remote_client, serving
from tests.api.service import OWN, Service
from tests.cli.databases import copied
from tests.cli.program import Program
from tests.cli.samples import CLASS_COUNT, NAME, K
from venn_admit.advice import Step, Verb
from venn_admit.api.routes import calibrations
from venn_admit.cli.advice import command
from venn_admit.core.calibrators.arguments import ALL_DECLARED, arguments_for, documentation, listed
from venn_admit.core.calibrators.certification import ClassKind, DocumentTest
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import (
    RECORDS,
    CalibratorSettings,
    MethodSettings,
    ScoreKind,
    make_settings,
    make_venn_abers_settings,
)
from venn_admit.flows.calibration import calibrate
from venn_admit.http.advice import request_for
from venn_admit.interface.advice import call
from venn_admit.store.access.keys import Scope
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.web.steps import on_page

ADMIT = CalibratorSettings(
    Decimal("0.25"), 2.5, 17, (0, 2, 4), (Decimal("0.75"), Decimal("0.8125"), Decimal(1)), undivided=True
)
ABERS = replace(
    make_venn_abers_settings(CLASS_COUNT, K),
    alpha=ADMIT.alpha,
    q_bins=ADMIT.q_bins,
    thresholds=ADMIT.thresholds,
    score=ScoreKind.NETWORK,
)
CERTIFIED = replace(
    ABERS,
    thresholds=(1 - ABERS.alpha,) * CLASS_COUNT,
    certify=(ClassKind.TRUE,),
    confidence=Decimal("0.875"),
    test=DocumentTest.ASYMPTOTIC,
    family=True,
)
ON_AVERAGE = replace(ABERS, thresholds=CERTIFIED.thresholds, promise=AskedPromise.AVERAGE)
COSTLY = replace(
    CERTIFIED,
    loss=tuple(
        tuple(Decimal(0) if label == predicted else Decimal(label + 2) / 4 for predicted in range(CLASS_COUNT))
        for label in range(CLASS_COUNT)
    ),
)
STANDING = replace(
    CERTIFIED, certify=(ClassKind.PREDICTED,), test=DocumentTest.FINITE_SAMPLE, standing=True, family=False
)
DECLARED_SHARES = replace(
    CERTIFIED,
    certify=tuple(ClassKind),
    class_shares=(Decimal("0.5"), *[Decimal("0.25")] * (CLASS_COUNT - 1)),
    class_shares_within=Decimal("0.125"),
)
ESTIMATED_SHARES = replace(CERTIFIED, certify=(ClassKind.PREDICTED,), class_shares_estimated=True)
SETTINGS: tuple[MethodSettings, ...] = (
    ADMIT,
    replace(ADMIT, delta=inf, undivided=False),
    ABERS,
    replace(ABERS, score=None),
    CERTIFIED,
    ON_AVERAGE,
    COSTLY,
    STANDING,
    DECLARED_SHARES,
    ESTIMATED_SHARES,
    replace(make_venn_abers_settings(CLASS_COUNT, K, promise="strongest"), loss=COSTLY.loss),
    make_settings(CLASS_COUNT, K),
    make_venn_abers_settings(CLASS_COUNT, K),
    make_venn_abers_settings(CLASS_COUNT, K, promise="strongest"),
    make_venn_abers_settings(CLASS_COUNT, K, promise="strongest", confidence=Decimal("0.875")),
)

ZERO_ONE = [["0" if label == predicted else "1" for predicted in range(CLASS_COUNT)] for label in range(CLASS_COUNT)]
COSTS = [["0" if label == predicted else "2" for predicted in range(CLASS_COUNT)] for label in range(CLASS_COUNT)]
HALVES = ["0.5", *["0.25"] * (CLASS_COUNT - 1)]
"""Class shares, of three classes."""
PAPER = {"method": "venn-admit"}


class Taken(venn_admit.NotReadyError):
    """Settings were taken; nothing is computed."""


Ask = Callable[[Mapping[str, Any]], object]


class Shells:
    """Every shell on one database, with what each makes of the arguments of a calibration."""

    def __init__(self, program: Program, service: Service, connection: Any, remote: Any) -> None:
        self.program = program
        self.service = service
        self.classifier = connection.classifier(NAME)
        self.remote = remote.classifier(NAME)
        self.taken: list[MethodSettings] = []

    def note(self, _engine: Any, _classifier: Classifier, settings: MethodSettings, **_: Any) -> Any:
        """Stand for the flow, and note the settings."""
        self.taken.append(settings)
        raise Taken("nothing is computed")

    def settings(self, ask: Callable[[], object]) -> MethodSettings | None:
        """Return the settings that are asked for by what a shell is given; None if they are refused."""
        self.taken.clear()
        with suppress(venn_admit.InvalidInputError, Taken, client.InvalidInputError, client.NotReadyError):
            ask()
        return self.taken[0] if self.taken else None

    def command(self, words: str) -> MethodSettings | None:
        """What a command of the command line asks for."""

        def ask() -> None:
            done = self.program(*shlex.split(words)[1:])
            assert done.code in (2, 4), done

        return self.settings(ask)

    def request(self, body: str) -> MethodSettings | None:
        """What the body of a request asks for."""

        def ask() -> None:
            headers = {"Content-Type": "application/json"}
            answer = self.service.ask("POST", f"{OWN}/calibrations", key=Scope.ADMIN, content=body, headers=headers)
            assert answer.status_code in (409, 422), answer.text

        return self.settings(ask)

    def each(self, arguments: Mapping[str, Any]) -> dict[str, MethodSettings | None]:
        """What every shell makes of the same arguments, each written as its users write them."""
        words = ["venn-admit", "calibrate", NAME]
        for name, value in arguments.items():
            option, text = name.replace("_", "-"), listed(value) if isinstance(value, list) else str(value)
            if isinstance(value, bool):
                words.append(f"--{'' if value else 'no-'}{option}")
            else:
                words.append(f"--{option}={text}")
        body = {name: str(value) if value in (inf, -inf, nan) else value for name, value in arguments.items()}
        return {
            "command line": self.command(shlex.join(words)),
            "HTTP": self.request(json.dumps(body)),
            "Python": self.settings(lambda: self.classifier.calibrate(**arguments)),
            "client": self.settings(lambda: self.remote.calibrate(**arguments)),
        }


@pytest.fixture(scope="module")
def shells(calibrated: Program, server_url: str, session_folder: Path) -> Iterator[Shells]:
    with (
        copied(calibrated, server_url, session_folder / "shells") as program,
        serving(program) as service,
        remote_client(service) as remote,
        pytest.MonkeyPatch.context() as patch,
        venn_admit.connect(program.url, home=program.home) as connection,
    ):
        made = Shells(program, service, connection, remote)
        patch.setattr(calibrate, "calibrate", made.note)
        patch.setattr(calibrations, "calibrate", made.note)
        yield made


@pytest.mark.parametrize(
    "defaults",
    [
        (make_settings(CLASS_COUNT, K),),
        (make_venn_abers_settings(CLASS_COUNT, K), make_venn_abers_settings(CLASS_COUNT, K, certify=["predicted"])),
    ],
    ids=list(RECORDS),
)
def test_every_field_differs_from_its_defaults(defaults: tuple[MethodSettings, ...]) -> None:
    """So that one which is added, and forgotten by a shell, is missed below."""
    for one in fields(defaults[0]):
        values = [getattr(settings, one.name) for settings in SETTINGS if type(settings) is type(defaults[0])]
        assert set(values) - {getattr(default, one.name) for default in defaults}, one.name


@pytest.mark.parametrize("calibrate", [venn_admit.Classifier.calibrate, client.Classifier.calibrate])
def test_signatures_have_the_settings_that_are_declared_and_say_of_them_what_is(calibrate: Callable[..., Any]) -> None:
    """Options and requests are made from the declarations; these signatures are written for their readers."""
    assert inspect.signature(calibrate).parameters.keys() - {"self", "method", "dry_run"} == ALL_DECLARED.keys()
    said = " ".join(str(inspect.getdoc(calibrate)).split())
    assert [name for name in ALL_DECLARED if f"{name}: {documentation(name)}" not in said] == []


def test_numbers_of_any_type_are_the_same_setting(shells: Shells) -> None:
    """As JSON has it, 5.0 is a whole number; a number with a fraction is refused, and not cut off."""
    for whole in (5, 5.0, np.int64(5), np.float64(5)):
        arguments: dict[str, Any] = {**PAPER, "kappa": whole, "q_bins": [0, whole - 3]}
        for ask in (shells.classifier, shells.remote):
            taken = shells.settings(partial(ask.calibrate, **arguments))
            assert repr(taken) == repr(make_settings(CLASS_COUNT, K, kappa=5, q_bins=(0, 2)))
    refusals: tuple[dict[str, Any], ...] = ({**PAPER, "kappa": 5.5}, {**PAPER, "kappa": 5, "q_bins": [0, 2.5]})
    for refused in refusals:
        for ask in (shells.classifier, shells.remote):
            assert shells.settings(partial(ask.calibrate, **refused)) is None


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_what_is_advised_asks_for_the_same_settings(shells: Shells, settings: MethodSettings) -> None:
    step = Step(Verb.CALIBRATE, classifier=NAME, settings=settings, neighbour_count=K)
    assert shells.command(command(step)) == settings
    method, address, body = request_for(step).split(" ", 2)
    assert (method, address) == ("POST", f"{OWN}/calibrations")
    assert shells.request(body) == settings
    named = re.fullmatch(rf"a POST request to {OWN}/calibrations with (.*)", on_page(step))
    assert named is not None
    assert shells.request(json.dumps(members(named[1]))) == settings
    for classifier in (shells.classifier, shells.remote):
        assert shells.settings(lambda known=classifier: eval(call(step), {"classifier": known})) == settings  # type: ignore[misc]


def members(said: str) -> dict[str, Any]:
    """Read names and values with commas, or an `and`, between them."""
    found = {}
    while said:
        name, _, said = said.partition(" ")
        found[name], end = json.JSONDecoder().raw_decode(said)
        said = re.sub(r"^(, | and )", "", said[end:])
    return found


@pytest.mark.parametrize(
    "asked",
    [
        *(
            {**PAPER, "kappa": 5, "thresholds": [one] * CLASS_COUNT}
            for one in ("1", "1.0", "0.9", ".95", "9.5e-1", " 0.95 ")
        ),
        *(
            {**PAPER, "kappa": 5, "thresholds": [one] * CLASS_COUNT}
            for one in ("0.89", "1.01", "-1", "nan", "inf", "", "x")
        ),
        {**PAPER, "kappa": 5, "thresholds": ["0.95"] * (CLASS_COUNT - 1)},
        {**PAPER, "kappa": 5, "thresholds": [f"0.9{'0' * 18}1"] * CLASS_COUNT},
        {**PAPER, "kappa": 5, "thresholds": [f"0.9{'0' * 19}1"] * CLASS_COUNT},
        *({**PAPER, "kappa": 5, "alpha": one} for one in ("0.1", ".1", "1e-1", "0.10", " 0.1", "0." + "0" * 19 + "1")),
        *(
            {**PAPER, "kappa": 5, "alpha": one}
            for one in ("0", "1", "-0.1", "nan", "inf", "1e-21", "1e999999", "0,1", "")
        ),
        *({**PAPER, "kappa": 5, "delta": one} for one in (0.5, 2, inf, 0, -1.0, -inf, nan)),
        *({**PAPER, "kappa": one} for one in (1, 2**31 - 1, 0, -1, 2**31)),
        *(
            {**PAPER, "kappa": 5, "q_bins": one}
            for one in ([0], [0, K], [0, K + 1], [1, 2], [0, 2, 1], [0, 0], [-1, 0])
        ),
        *({"method": "venn-abers", "score": one} for one in ("auto", "network", "reliability", "best", "")),
        *({"method": "venn-abers", "certify": one} for one in (["true"], ["true", "predicted"], ["all"], [""])),
        {"method": "venn-abers", "certify": ["true"], "confidence": "0.99", "test": "asymptotic"},
        {"method": "venn-abers", "certify": ["true"], "confidence": "1"},
        {"method": "venn-abers", "certify": ["true"], "test": "exact"},
        {"method": "venn-abers", "certify": ["true"], "thresholds": ["0.95"] * CLASS_COUNT},
        *({"method": "venn-abers", "promise": one} for one in ("strongest", "pointwise", "average", "certified")),
        {"method": "venn-abers", "promise": "average", "certify": ["true"]},
        {},
        {"kappa": 5},
        {"method": "venn-abers", "promise": "strongest", "certify": ["true"]},
        {"method": "venn-abers", "promise": "average", "thresholds": ["0.95"] * CLASS_COUNT},
        *({"method": "venn-abers", **one} for one in ({"kappa": 5}, {"delta": 1.0}, {"confidence": "0.9"})),
        *({"method": "venn-admit", **one} for one in ({"score": "auto"}, {"certify": ["true"]}, {"confidence": "0.9"})),
        {"method": "softmax"},
        *(
            {"method": "venn-abers", **one, "loss": [*ZERO_ONE[:-1], last]}
            for one in ({}, {"certify": ["true"]}, {"promise": "average"}, {"promise": "pointwise"})
            for last in (["2.5", "1"] + ["0"] * (CLASS_COUNT - 2), ["1"] * (CLASS_COUNT - 1) + ["0"])
        ),
        *(
            {"loss": one}
            for one in (ZERO_ONE[:-1], [[*row, "1"] for row in ZERO_ONE], [["-1", *row[1:]] for row in ZERO_ONE])
        ),
        {"loss": [["nan", *row[1:]] for row in ZERO_ONE]},
        {"loss": [["0.01"] * CLASS_COUNT] * CLASS_COUNT},
        {"method": "venn-admit", "loss": ZERO_ONE},
        *({"standing": one} for one in (True, False)),
        {"standing": True, "certify": ["true"]},
        {"standing": True, "certify": ["predicted"], "test": "asymptotic"},
        {"standing": True, "promise": "average"},
        {"method": "venn-admit", "standing": True},
        *({"family": one} for one in (True, False)),
        *({"family": True, **one} for one in ({"standing": True}, {"promise": "average"}, {"method": "venn-admit"})),
        *(
            {"class_shares": one}
            for one in (HALVES, HALVES[1:], ["0", "1", *HALVES[2:]], [*HALVES[1:], "0.3"], ["x"] * CLASS_COUNT)
        ),
        *({"class_shares": HALVES, "class_shares_within": one} for one in ("0", "0.1", "0.25", "-0.1", "nan", "1")),
        {"class_shares_within": "0.1"},
        *({"class_shares_estimated": one} for one in (True, False)),
        *(
            {"class_shares_estimated": True, **one}
            for one in (
                {"class_shares": HALVES},
                {"class_shares_within": "0.1"},
                {"certify": ["true"]},
                {"promise": "average"},
                {"standing": True},
                {"certify": ["predicted"], "loss": COSTS},
                {"method": "venn-admit"},
            )
        ),
        *(
            {"class_shares": HALVES, **one}
            for one in (
                {"certify": ["true"]},
                {"certify": ["predicted", "true"]},
                {"certify": ["predicted", "group:region"]},
                {"promise": "strongest"},
                {"promise": "average"},
                {"standing": True},
                {"certify": ["predicted"], "loss": COSTS},
                {"method": "venn-admit"},
            )
        ),
        *({**PAPER, "kappa": 5, "undivided": one} for one in (True, False)),
        {"undivided": True},
    ],
    ids=str,
)
def test_all_take_and_refuse_the_same(shells: Shells, asked: dict[str, Any]) -> None:
    found = shells.each(asked)
    assert set(found.values()) == {found["Python"]}, found


def test_what_is_taken_is_what_was_asked_for(shells: Shells) -> None:
    """The same arguments make the settings that they are advised for."""
    for settings in SETTINGS:
        assert set(shells.each(arguments_for(settings, K) | stated(settings)).values()) == {settings}
    assert set(shells.each({**PAPER, "kappa": 5, "thresholds": ["0.8"] * CLASS_COUNT}).values()) == {None}


def stated(settings: MethodSettings) -> dict[str, Any]:
    """Decimals as texts, which all shells take."""
    given = arguments_for(settings, K)
    return {
        name: str(value) if isinstance(value, Decimal) else list(map(str, value))
        for name, value in given.items()
        if isinstance(value, Decimal) or name in ("thresholds", "class_shares")
    } | {name: [list(map(str, row)) for row in value] for name, value in given.items() if name == "loss"}
