"""The schedules of a tenant's quota: ours can always be explained, and wrong ones cannot."""

from __future__ import annotations

import pytest

from failstop.properties.linearizable import Begin, End, first_gap
from failstop.properties.references.quota import Look, QuotaReference, Start
from failstop.properties.scenarios import catalogue
from failstop.properties.scenarios.quota import DEEP, SCENARIOS
from failstop.properties.subject import NotOffered
from failstop.properties.subjects.quota import QuotaSubject
from failstop.properties.targets.veronica import VeronicaCore
from failstop.properties.tests.searching import by_name, caught, searched, without_its_lock
from failstop.runtime.cores import quota as core
from failstop.runtime.policies import quota
from failstop.runtime.policies.quota import QuotaManager, QuotaTicket

ALL = by_name(SCENARIOS + DEEP)


@pytest.mark.parametrize("name", ALL)
def test_every_schedule_of_our_quota_can_be_explained(name):
    """Searched to its end, with more than one schedule."""
    search = searched(ALL[name])
    assert search.violation is None
    assert search.finished
    assert search.schedules > 1


@pytest.mark.parametrize("name", ["last-run", "last-money"])
def test_it_can_be_interrupted_at_every_line(name):
    """Not only where it takes a lock, so that what it does without one is seen."""
    search = searched(ALL[name], (quota.__name__,))
    assert search.violation is None
    assert search.finished
    assert search.schedules > searched(ALL[name]).schedules


def test_the_scenarios_have_names_of_their_own():
    """Whoever asks for one by its name gets it."""
    assert all(catalogue.every()[name] is scenario for name, scenario in ALL.items())


def test_a_start_without_the_lock_is_found(monkeypatch):
    """Two runs see the last place before one of them takes it."""
    monkeypatch.setattr(QuotaManager, "__init__", without_its_lock(QuotaManager.__init__))
    assert "was told 'started'" in caught(ALL["last-run"], (quota.__name__,)).told


@pytest.mark.parametrize("name", ["last-run", "last-money", "no-bound-against-start"])
def test_a_start_that_looks_and_then_counts_is_found(monkeypatch, name):
    """Each of the two has the lock, but between them it is free."""

    def start(self, tenant, reserve=None):
        asked = core.NO_BOUND if reserve is None else reserve.nano
        with self._lock:
            state, verdict, held = core.start(self._rolled(tenant), self._limits, asked)
        if verdict != core.STARTED:
            raise quota.Denied("quota", "nothing is left")
        with self._lock:
            self._tenants[tenant] = state
        return QuotaTicket(self, tenant, state[0], state[2], held)

    monkeypatch.setattr(QuotaManager, "start", start)
    caught(ALL[name])


def test_a_run_settled_in_the_day_in_which_it_ends_is_found(monkeypatch):
    """Its cost and what it held belong to the day in which it started."""

    def settle(state, day, held, cost):
        hour, runs, last_day, spent, reserved = state
        return (hour, runs, last_day, spent + cost, reserved - held)

    monkeypatch.setattr(core, "settle", settle)
    caught(ALL["day-against-settle"])


def test_a_run_given_back_in_the_hour_in_which_it_ends_is_found(monkeypatch):
    """Its place was one of the hour that is over."""
    right = core.release
    monkeypatch.setattr(core, "release", lambda state, hour, day, held: right(state, state[0], day, held))
    caught(ALL["hour-against-give-back"])


def test_a_run_that_ends_twice_is_found(monkeypatch):
    """Settled and given back at once, it gives back what it did not hold."""

    def release(self, ticket):
        with self._lock:
            state = self._rolled(ticket.tenant)
            self._tenants[ticket.tenant] = core.release(state, ticket.hour, ticket.day, ticket.held_nano)
            return True

    monkeypatch.setattr(QuotaManager, "_release", release)
    caught(ALL["run-ended-twice"])


def test_a_target_of_ceilings_may_refuse_but_not_let_in():
    """Not exact, a refusal is always explained, and a run beyond the limit never."""
    reference = QuotaReference(1, None, 0, exact=False)
    refused = [Begin(0, Start("a")), End(0, "denied"), Begin(0, Start("b")), End(0, "started")]
    assert first_gap(reference, refused, 1) is None
    assert first_gap(QuotaReference(1, None, 0, exact=True), refused, 1).place == 1
    beyond = [*refused, Begin(0, Start("c")), End(0, "started")]
    assert first_gap(reference, beyond, 1).place == 5


def test_what_a_run_uses_is_seen():
    """An observer sees runs, spent and reserved, and nothing else explains."""
    reference = QuotaReference(1, 10, 0, exact=True)
    started = [Begin(0, Start("a", 6)), End(0, "started"), Begin(0, Look())]
    assert first_gap(reference, [*started, End(0, (1, 0, 6))], 1) is None
    assert first_gap(reference, [*started, End(0, (1, 0, 5))], 1) is not None


def test_a_target_without_a_quota_is_told():
    """It is not judged by what it does not offer."""
    with pytest.raises(NotOffered, match="quota"):
        QuotaSubject(max_runs=1).open(VeronicaCore())
