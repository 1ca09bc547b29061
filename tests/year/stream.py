"""A year of a service: traffic, reviewers, labels that come late and may be wrong, a drift, and a new network."""

import csv
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import httpx2 as httpx
import numpy as np
import pyarrow as pa

import venn_admit
import venn_admit_client
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.year.law import BEFORE, CLASS_NAMES, DIMENSION, DRIFTED, RENEWED, Points, Seeing, draw
from tests.year.parts import Parts
from venn_admit.store.database.engine import connect as view
from venn_admit.store.database.engine import create_engine
from venn_admit.store.work import recalibrations
from venn_admit_client import Classifier, Retries

NAME = "reviews"
TRAINED = 300
REVIEW = f"/classifiers/{NAME}/labels/review"
ALPHA = 0.1
OPERATOR, ON_PAGE = "operator", "carla"
REVIEWERS = ("anna", "ben")
# The share of points whose label is wrong at first, of those in the random sample, and of the admitted ones audited.
WRONG, SAMPLED, AUDITED = 0.02, 0.5, 0.2
AT_ONCE = 5
PATIENCE = Retries(total_seconds=240)
PAUSE_SECONDS = 0.2
ALARM, BEGUN, IN_USE, NEW_NETWORK = "alarm", "next chain begun", "next chain in use", "new network in use"
_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')
_HELD = re.compile(r"What is ([-\d]+)\?")


@dataclass(frozen=True, slots=True)
class Calendar:
    """What happens when, in days; a day is a round, and takes seconds.

    sample_days, review_days: the most days that a label takes, of the random sample and of a draw. noticed_days: after
    how many a wrong one is corrected. patience: days between an alarm and the next chain, by when all labels of what
    was admitted before are there. page_days: after how many days somebody reviews on the page again. beat_days: after
    how many beat alone brings the certificate up to date.
    """

    days: int
    drift: int
    renewal: int
    points: int
    held_out: int
    sample_days: int
    review_days: int
    noticed_days: int
    patience: int
    page_days: int
    beat_days: int


YEAR = Calendar(
    days=365,
    drift=200,
    renewal=300,
    points=80,
    held_out=1500,
    sample_days=6,
    review_days=4,
    noticed_days=10,
    patience=20,
    page_days=7,
    beat_days=30,
)
SHORT = Calendar(
    days=11,
    drift=2,
    renewal=9,
    points=500,
    held_out=1500,
    sample_days=1,
    review_days=1,
    noticed_days=3,
    patience=2,
    page_days=5,
    beat_days=4,
)


@dataclass(frozen=True, slots=True)
class Day:
    """How a day went.

    thresholds: of each class, None for never. shares: the true share right of what they admit. admitted: of the
    traffic, by the law. scored_admitted: of the points of the day. chain: the number of the chain in use. labels: those
    that count for it. certified: how many of its thresholds are, by class. alarms: classes of which too few are right.
    """

    day: int
    generation: int
    thresholds: tuple[float | None, ...]
    shares: tuple[float | None, ...]
    admitted: float
    scored_admitted: int
    chain: int
    labels: int
    certified: tuple[int, ...]
    alarms: tuple[str, ...]
    events: tuple[str, ...]


class Year:
    """The people and programs around a service, whose days are the same in every run of one seed."""

    def __init__(self, parts: Parts, keys: dict[str, str], calendar: Calendar, seed: int) -> None:
        self.days: list[Day] = []
        self._parts, self._calendar, self._seed = parts, calendar, seed
        self._connection = venn_admit_client.connect(parts.url, keys[OPERATOR], retries=PATIENCE)
        self._visitor = Visitor(parts.url, keys[ON_PAGE])
        self._engine = create_engine(parts.database_url)
        self._points: dict[str, tuple[int, int, int]] = {}  # id: true class, day, generation
        self._sample: dict[str, int] = {}  # id: the day on which its random label comes
        self._held: dict[str, tuple[str, int]] = {}  # id: reviewer, day
        self._corrections: dict[str, tuple[str | None, int]] = {}  # id: reviewer, day
        self._generation = 1
        self._alarmed: int | None = None
        self._waits_for_restart = False

    def close(self) -> None:
        self._connection.close()
        self._visitor.close()
        self._engine.dispose()

    def settle(self) -> None:
        """Bring the monitors of all generations up to date, of which beat sees to the earlier ones when it does."""
        with venn_admit.connect(self._parts.database_url) as connection:
            for generation in range(1, self._generation + 1):
                connection.classifier(f"{NAME}@{generation}").monitor()

    @property
    def _classifier(self) -> Classifier:
        return self._connection.classifier(NAME)

    def live(self, day: int, *, meanwhile: Callable[[], None] | None = None) -> Day:
        """Let a day pass; meanwhile: what happens while its points are being scored, in a thread of its own."""
        events: list[str] = []
        if day == self._calendar.renewal:
            self._renew(day)
            events.append(NEW_NETWORK)
        seeing = self.seeing(day)
        points = draw(self._seed, day, self._calendar.points)
        self._points |= {
            one: (label, day, self._generation) for one, label in zip(points.ids, points.labels.tolist(), strict=True)
        }
        with ThreadPoolExecutor(1) as pool:
            aside = None if meanwhile is None else pool.submit(meanwhile)
            admitted = self._score(points, seeing)
            if aside is not None:
                aside.result()
        sampled = [one for one in points.ids if _chance(one, "sampled") < SAMPLED]
        self._sample |= {one: day + _delay(one, self._calendar.sample_days) for one in sampled}
        self._review(day)
        self._label_sample(day)
        self._correct(day)
        events += self._operate(day)
        found = self._look(day, seeing, admitted, events)
        self.days.append(found)
        return found

    def seeing(self, day: int) -> Seeing:
        """What the network in use sees on a day."""
        if self._generation > 1:
            return RENEWED
        return BEFORE if day < self._calendar.drift else DRIFTED

    def _score(self, points: Points, seeing: Seeing) -> int:
        """Have points decided on by a worker, and some at once, which must come to the same; return the admitted."""
        vectors, logits = points.seen(seeing)
        extractor = f"v{self._generation}"
        scored = self._classifier.score(vectors=vectors, logits=logits, ids=points.ids, extractor=extractor)
        decided: list[int | None] = scored.column("decided_class").to_pylist()
        at_once = self._classifier.decide_many(
            vectors[:AT_ONCE], logits=logits[:AT_ONCE], ids=points.ids[:AT_ONCE], extractor=extractor
        )
        assert list(at_once.admitted) == decided[:AT_ONCE]
        return len(decided) - decided.count(None)

    def _given(self, one: str, day: int, reviewer: str | None) -> str:
        """The class that a person takes a point for on a day."""
        label = self._points[one][0]
        if _chance(one, "wrong") < WRONG and one not in self._corrections:
            self._corrections[one] = (reviewer, day + self._calendar.noticed_days)
        if one in self._corrections and day < self._corrections[one][1]:
            label = 1 - label
        return CLASS_NAMES[label]

    def _review(self, day: int) -> None:
        """Reviewers take all that waits: on the page they label it at once, over HTTP each point after some days."""
        audits = self._classifier.audits()
        waiting = audits.admitted_drawn - audits.admitted_reviewed + audits.rejected_drawn - audits.rejected_reviewed
        if day % self._calendar.page_days == 0 and waiting > len(self._held):
            self._visitor.review(waiting - len(self._held), lambda one: self._given(one, day, ON_PAGE))
            waiting = len(self._held)
        reviewers = [self._classifier.reviewer(name) for name in REVIEWERS]
        until = time.monotonic() + PATIENCE_SECONDS
        while len(self._held) < waiting:
            for reviewer in reviewers:
                own = sum(name == reviewer.name for name, _ in self._held.values())
                share = -(-(waiting - len(self._held)) // (2 if reviewer.name == REVIEWERS[0] else 1))
                for point in reviewer.claim(own + max(share, 1), lease=86_400).points:
                    self._held.setdefault(point.id, (reviewer.name, day + _delay(point.id, self._calendar.review_days)))
            assert time.monotonic() < until, (waiting, len(self._held), self._classifier.review_queue())
            if len(self._held) < waiting:
                time.sleep(PAUSE_SECONDS)  # the queue is filled once a second at most
        for reviewer in reviewers:
            due = [one for one, (name, when) in self._held.items() if name == reviewer.name and when <= day]
            if due:
                reviewer.label({one: self._given(one, day, reviewer.name) for one in sorted(due)})
            for one in due:
                del self._held[one]

    def _label_sample(self, day: int) -> None:
        due = sorted(one for one, when in self._sample.items() if when <= day)
        self._label({one: self._given(one, day, None) for one in due})
        for one in due:
            del self._sample[one]
            self._held.pop(one, None)  # nobody waits any more for the label of who claimed it

    def _correct(self, day: int) -> None:
        due = sorted(one for one, (_, when) in self._corrections.items() if when == day)
        for reviewer in sorted({name for one in due if (name := self._corrections[one][0]) is not None}):
            own = [one for one in due if self._corrections[one][0] == reviewer]
            for generation in sorted({self._points[one][2] for one in own}):
                of = {one: CLASS_NAMES[self._points[one][0]] for one in own if self._points[one][2] == generation}
                self._connection.classifier(self._address(generation)).reviewer(reviewer).label(of)
        self._label({one: CLASS_NAMES[self._points[one][0]] for one in due if self._corrections[one][0] is None})

    def _label(self, labels: dict[str, str]) -> None:
        for generation in sorted({self._points[one][2] for one in labels}):
            own = {one: label for one, label in labels.items() if self._points[one][2] == generation}
            self._connection.classifier(self._address(generation)).label(own)

    def _address(self, generation: int) -> str:
        return NAME if generation == self._generation else f"{NAME}@{generation}"

    def _operate(self, day: int) -> list[str]:
        """Look at the monitor, bring certificates up to date, and see to alarms."""
        events = []
        alarms = self._monitor()
        self._advance(day)
        if alarms and self._alarmed is None:
            self._alarmed = day
            events.append(ALARM)
        if self._alarmed is not None and day == self._alarmed + self._calendar.patience and self._generation == 1:
            self._classifier.calibrate(method="venn-abers", alpha=ALPHA, standing=True, score="network")
            self._waits_for_restart = True
            events.append(BEGUN)
        if self._waits_for_restart and self._chain()[0] == 2:
            self._waits_for_restart = False
            self._monitor(restart=True)
            self._advance(day)
            events.append(IN_USE)
        return events

    def _monitor(self, **how: Any) -> list[str]:
        """Update the monitor, which the operator does in Python, and return the classes whose promise is in alarm."""
        with venn_admit.connect(self._parts.database_url) as connection:
            connection.classifier(NAME).monitor(**how)
        return sorted(str(alarm.label) for alarm in self._classifier.alarms() if alarm.lamp == "promise")

    def _advance(self, day: int) -> None:
        if day % self._calendar.beat_days:
            self._classifier.recalibrate()
        else:
            wait_until(lambda: not self._requests(), "beat recalibrates")

    def _requests(self) -> int:
        with view(self._engine) as connection:
            return len(recalibrations.due(connection, quiet_seconds=0, wait_seconds=0))

    def _chain(self) -> tuple[int, int, tuple[int, ...], tuple[float | None, ...]]:
        policy = self._classifier.policy()
        standing = policy.to_dict()["standing"]
        thresholds = policy.thresholds or dict.fromkeys(CLASS_NAMES)
        return (
            standing["chain"],
            policy.to_dict()["points"],
            tuple(of["certified"] for of in standing["classes"]),
            tuple(thresholds[name] for name in CLASS_NAMES),
        )

    def _look(self, day: int, seeing: Seeing, admitted: int, events: list[str]) -> Day:
        chain, labels, certified, thresholds = self._chain()
        shares = tuple(None if least is None else seeing.share_right(least) for least in thresholds)
        parts = [0.0 if least is None else seeing.share_admitted(least) for least in thresholds]
        alarms = sorted(str(alarm.label) for alarm in self._classifier.alarms() if alarm.lamp == "promise")
        return Day(
            day=day,
            generation=self._generation,
            thresholds=thresholds,
            shares=shares,
            admitted=sum(parts) / len(parts),
            scored_admitted=admitted,
            chain=chain,
            labels=labels,
            certified=certified,
            alarms=tuple(alarms),
            events=tuple(events),
        )

    def _renew(self, day: int) -> None:
        """Fill a generation for the new network with what was labelled at random since the alarm, and switch to it."""
        since = self._calendar.drift if self._alarmed is None else self._alarmed
        self._connection.create_generation(NAME, dimension=DIMENSION, extractor="v2")
        second = self._connection.classifier(f"{NAME}@2")
        trained = draw(self._seed, -1, TRAINED)
        vectors, logits = trained.seen(RENEWED)
        second.ingest(
            vectors=vectors, logits=logits, labels=trained.labels, ids=trained.ids, split="train", extractor="v2"
        )
        for before in range(since, day):
            points = draw(self._seed, before, self._calendar.points)
            sampled = [
                row
                for row, one in enumerate(points.ids)
                if _chance(one, "sampled") < SAMPLED and one not in self._sample
            ]
            if sampled:
                kept = points.take(np.array(sampled))
                vectors, logits = kept.seen(RENEWED)
                rows = pa.table({"external_id": kept.ids, "vector": list(vectors), "logits": list(logits)})
                second.ingest(rows, split="held-out", extractor="v2")
        second.fit()
        second.calibrate(method="venn-abers", alpha=ALPHA, standing=True, score="network")
        self._connection.switch(f"{NAME}@2")
        self._generation = 2
        self._held.clear()  # what was held waits in the queue of the other generation


class Visitor:
    """Somebody who reviews on the page."""

    def __init__(self, url: str, key: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=PATIENCE_SECONDS)
        self._key = key

    def close(self) -> None:
        self._client.close()

    def review(self, count: int, label: Callable[[str], str]) -> None:
        """Label all the points that wait, `count` of them: the first by its button, the others in sheets."""
        self._client.post("/sign-in", data={"key": self._key, "next": "/"})
        found: list[str] = []

        def held() -> bool:
            found[:] = _HELD.findall(self._send(action="claim"))
            return bool(found)

        wait_until(held, "a point waits")
        number = str(CLASS_NAMES.index(label(found[0])))
        assert "You labelled" in self._send(external_id=found[0], label=number)
        left = count - 1

        def none_is_left() -> bool:
            nonlocal left
            rows = list(csv.DictReader(self._send(action="sheet").splitlines()))
            if rows:
                lines = [f"{row['external_id']},{label(row['external_id'])}" for row in rows]
                self._send(action="filled", sheet="\n".join(["external_id,label", *lines]) + "\n")
                left -= len(rows)
            return left == 0

        wait_until(lambda: left == 0 or none_is_left(), "all that waits is labelled")

    def _send(self, **fields: str) -> str:
        token = _TOKEN.search(self._client.get(REVIEW).text)
        assert token is not None, "nobody is signed in"
        answer = self._client.post(REVIEW, data={"form_token": token[1], **fields}, follow_redirects=True)
        assert answer.status_code == 200, answer.text
        return answer.text


def _chance(one: str, what: str) -> float:
    """A number in [0, 1) that a point has, whenever it is asked for."""
    return int.from_bytes(blake2b(f"{what} {one}".encode(), digest_size=6).digest()) / 2**48


def _delay(one: str, most: int) -> int:
    """The days after which a label comes, which do not depend on what is true."""
    return int((most + 1) * _chance(one, f"delay of {most}"))
