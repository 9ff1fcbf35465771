"""The contracts of the pure functions: CrossHair finds what is wrong, and finds nothing in what runs."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

import pytest

from failstop.models.crosshair_run import (
    CONFIRMED,
    COUNTEREXAMPLE,
    INCONCLUSIVE,
    Judgement,
    all_contracts,
    judge,
    judge_all,
    lines,
    main,
    name_of,
)

pytestmark = pytest.mark.once

CONTRACTS = {name_of(contract): contract for contract in all_contracts()}

UNFINISHED = {
    "fingerprints.a_number_is_read_back",
    "money.no_decimal_is_charged_below_its_value",
    "money.no_float_is_charged_below_its_value",
    "money.text_is_an_amount_or_refused",
}
"""What CrossHair only searches: floats, decimals, text and numbers end in C code or have no end of paths."""

LEDGER = "cores.ledger"
BUDGET = "cores.budget"
QUOTA = "cores.quota"
STEPS = "cores.steps"
RETRY = "cores.retry"
BREAKER = "cores.breaker"
MONEY = "money"
CANONICAL = "audit.canonical"

# The contract that must break, the module of the runtime, a piece of its source, and what stands there instead.
BUGS = [
    (
        "admission.an_admission_keeps_the_cost_ceiling",
        LEDGER,
        "elif committed + reserved + asked > max_cost:",
        "elif committed + asked > max_cost:",
    ),
    ("admission.an_admission_keeps_every_count", LEDGER, "0 <= max_steps <= steps", "0 <= max_steps < steps"),
    ("admission.an_admission_is_counted", LEDGER, "        tool_calls = tool_calls + 1\n", ""),
    (
        "admission.a_halted_chain_admits_nothing",
        LEDGER,
        "    if halt != ADMITTED:\n        return state, halt\n",
        "",
    ),
    (
        "admission.nothing_is_admitted_from_the_deadline_on",
        LEDGER,
        "    if 0 <= deadline <= now:",
        "    if 0 <= deadline < now:",
    ),
    (
        "admission.a_refusal_halts_and_contention_changes_nothing",
        LEDGER,
        "return stop(state, RETRIES), RETRIES",
        "return state, RETRIES",
    ),
    (
        "admission.what_fits_is_admitted",
        LEDGER,
        "elif committed + reserved + asked > max_cost:",
        "elif committed + reserved + asked >= max_cost:",
    ),
    (
        "admission.only_what_can_never_fit_is_refused_for_good",
        LEDGER,
        "        if committed + asked > max_cost:",
        "        if committed + reserved + asked > max_cost:",
    ),
    (
        "admission.an_unknown_price_runs_alone",
        LEDGER,
        "        if reserved > 0:\n            return state, CONTENDED\n",
        "",
    ),
    (
        "admission.a_cost_is_charged_in_full",
        LEDGER,
        "return (committed + cost, reserved - held",
        "return (committed + min(cost, held), reserved - held",
    ),
    (
        "admission.a_cost_within_its_hold_stops_nothing",
        LEDGER,
        "if cost > held and bounds",
        "if cost >= held and bounds",
    ),
    (
        "admission.a_charge_above_the_ceiling_stops_the_chain",
        LEDGER,
        "if 0 <= bounds[0] < committed + reserved and",
        "if 0 <= bounds[0] < committed and",
    ),
    ("admission.the_first_reason_stays", LEDGER, "    if halt != ADMITTED:\n        return state\n", ""),
    ("admission.a_release_undoes_an_admission", LEDGER, "retries = retries - 1", "pass"),
    (
        "admission.what_is_left_is_what_fits",
        LEDGER,
        "rest = bounds[0] - state[0] - state[1]",
        "rest = bounds[0] - state[0]",
    ),
    (
        "admission.the_narrowest_ceiling_of_a_path_counts",
        LEDGER,
        "if above < 0 or 0 <= rest < above:",
        "if rest < above:",
    ),
    (
        "admission.one_refusal_of_a_path_is_a_refusal",
        LEDGER,
        "    if above == ADMITTED or above == CONTENDED:\n        return verdict\n",
        "    if above == ADMITTED:\n        return verdict\n",
    ),
    ("admission.a_budget_keeps_its_limit", BUDGET, "limit < spent + reserved + amount", "limit < spent + amount"),
    ("admission.a_shut_budget_admits_nothing", BUDGET, "if shut or 0 <= limit", "if 0 <= limit"),
    (
        "admission.a_refused_budget_is_shut",
        BUDGET,
        "return (spent, reserved, calls, True), REFUSED, 0\n        return state, CONTENDED",
        "return state, REFUSED, 0\n        return state, CONTENDED",
    ),
    ("admission.a_started_run_fits_its_quota", QUOTA, "0 <= max_runs <= runs", "0 <= max_runs < runs"),
    ("admission.windows_only_move_forward", QUOTA, "if hour > last_hour:", "if hour != last_hour:"),
    ("admission.a_day_that_is_over_is_closed", QUOTA, "    if day != last_day:\n        return state\n", ""),
    ("admission.steps_are_admitted_up_to_exactly_their_limit", STEPS, "0 <= limit <= taken", "0 <= limit < taken"),
    (
        "admission.a_closed_context_admits_nothing",
        LEDGER,
        "if closed and (verdict == ADMITTED or verdict == CONTENDED):",
        "if closed and verdict == ADMITTED:",
    ),
    (
        "admission.a_budget_spends_what_fits",
        BUDGET,
        "return (spent + amount, reserved, calls + 1",
        "return (spent, reserved, calls + 1",
    ),
    (
        "admission.a_budget_holds_what_fits",
        BUDGET,
        "        if spent + asked > limit:",
        "        if spent + asked >= limit:",
    ),
    (
        "admission.an_unknown_price_takes_what_is_left_of_a_budget",
        BUDGET,
        "        if reserved > 0:\n            return state, CONTENDED, 0\n",
        "",
    ),
    (
        "admission.a_hold_becomes_what_the_call_cost",
        BUDGET,
        "return (spent + cost, reserved - held, calls + 1",
        "return (spent + cost, reserved - cost, calls + 1",
    ),
    (
        "admission.a_run_that_fits_is_started",
        QUOTA,
        "if spent + least > max_spend:",
        "if spent + reserved + least > max_spend:",
    ),
    (
        "admission.a_start_after_which_nothing_ran_is_undone",
        QUOTA,
        "    if hour == last_hour:",
        "    if hour >= last_hour:",
    ),
    (
        "admission.a_run_is_charged_in_full_to_its_day",
        QUOTA,
        "spent + cost, reserved - held",
        "spent + held, reserved - held",
    ),
    ("admission.a_step_is_given_back_once", STEPS, "    if taken > 0:", "    if taken >= 0:"),
    (
        "backoff.a_backoff_is_never_above_its_maximum",
        RETRY,
        "    if doubled > max_backoff:\n        doubled = max_backoff\n",
        "",
    ),
    ("backoff.a_backoff_never_shrinks", RETRY, "doubled = backoff + backoff", "doubled = backoff"),
    ("backoff.retries_never_pass_their_maximum", RETRY, "0 <= max_retries <= retries", "0 <= max_retries < retries"),
    ("backoff.what_is_not_wanted_is_not_repeated", RETRY, "if not wanted or 0 <= max", "if 0 <= max"),
    ("backoff.without_jitter_the_wait_is_the_backoff", RETRY, "return low + (high - low)", "return (high - low)"),
    (
        "backoff.a_jittered_wait_stays_within_its_jitter",
        RETRY,
        "    if high > max_backoff:\n        high = max_backoff\n",
        "",
    ),
    ("backoff.jitter_reaches_both_ends", RETRY, "low = backoff - backoff * jitter // UNIT", "low = backoff"),
    (
        "breaker.an_open_breaker_denies_until_it_has_cooled_down",
        BREAKER,
        "    if now < until:",
        "    if now < until and mode != OPEN:",
    ),
    (
        "breaker.a_cooled_breaker_lets_one_probe_through",
        BREAKER,
        "(PROBING, generation + 1, failures, now + lease)",
        "(PROBING, generation + 1, failures, now)",
    ),
    (
        "breaker.a_closed_breaker_admits_everyone",
        BREAKER,
        "return state, ADMITTED, generation\n",
        "return state, ADMITTED, NO_PERMIT\n",
    ),
    ("breaker.a_stale_report_changes_nothing", BREAKER, "if permit != generation or mode", "if mode"),
    (
        "breaker.an_open_breaker_believes_no_report",
        BREAKER,
        "permit != generation or mode == OPEN",
        "permit != generation",
    ),
    (
        "breaker.only_the_probes_success_closes",
        BREAKER,
        "return (OPEN, generation + 1, 0, now)\n",
        "return (CLOSED, generation + 1, 0, now)\n",
    ),
    (
        "breaker.a_failed_probe_opens_for_the_whole_recovery",
        BREAKER,
        "        if outcome == FAILURE:\n            return (OPEN, generation + 1, 0, now + recovery)\n",
        "",
    ),
    ("breaker.the_threshold_opens", BREAKER, "failures + 1 >= threshold", "failures >= threshold"),
    (
        "breaker.a_change_of_mode_begins_a_generation",
        BREAKER,
        "(PROBING, generation + 1, failures, now + lease), PROBE, generation + 1",
        "(PROBING, generation, failures, now + lease), PROBE, generation",
    ),
    (
        "breaker.a_reset_makes_every_permit_stale",
        BREAKER,
        "_, generation, _, _ = state\n    return (CLOSED, generation + 1, 0, 0)",
        "_, generation, _, _ = state\n    return (CLOSED, generation, 0, 0)",
    ),
    (
        "money.a_cost_rounds_up_by_less_than_a_nano_dollar",
        MONEY,
        "-(-numerator * NANO_PER_USD // denominator)",
        "numerator * NANO_PER_USD // denominator",
    ),
    (
        "money.a_ceiling_rounds_down_by_less_than_a_nano_dollar",
        MONEY,
        "nano = numerator * NANO_PER_USD // denominator",
        "nano = -(-numerator * NANO_PER_USD // denominator)",
    ),
    ("money.a_ceiling_is_never_above_the_largest", MONEY, "if nano > MAX_CEILING:", "if nano > MAX_CEILING + 1:"),
    ("money.whole_dollars_are_exact", MONEY, "is int and 0 <= value < _MAX_USD", "is int and value < _MAX_USD"),
    ("money.money_is_taken_as_it_is", MONEY, "    if nano < 0:", "    if nano < -1:"),
    ("money.money_adds_and_subtracts_exactly", MONEY, "Money(self.nano - other.nano)", "Money(other.nano - self.nano)"),
    ("money.money_is_ordered_as_its_nano_dollars", MONEY, "frozen=True, slots=True, order=True", "frozen=True"),
    (
        "money.no_float_is_charged_below_its_value",
        MONEY,
        "_countable(-(-numerator * NANO_PER_USD // denominator), value, field)",
        "_countable(round(value * NANO_PER_USD), value, field)",
    ),
    (
        "money.no_decimal_is_charged_below_its_value",
        MONEY,
        "-(-numerator * NANO_PER_USD // denominator)",
        "numerator * NANO_PER_USD // denominator",
    ),
    ("money.text_is_an_amount_or_refused", MONEY, "    except InvalidOperation:", "    except KeyError:"),
    (
        "fingerprints.key_order_does_not_matter",
        CANONICAL,
        "return _fingerprint(tool, canonical(arguments(args)))",
        "return _fingerprint(tool, json.dumps(arguments(args)))",
    ),
    (
        "fingerprints.key_order_does_not_matter_for_odd_keys",
        CANONICAL,
        "order = sorted(range(len(names)), key=names.__getitem__)",
        "order = range(len(names))",
    ),
    (
        "fingerprints.another_argument_is_another_fingerprint",
        CANONICAL,
        "return _fingerprint(tool, canonical(arguments(args)))",
        "return _fingerprint(tool, json.dumps(arguments(args), sort_keys=True, default=str))",
    ),
    ("fingerprints.another_tool_is_another_fingerprint", CANONICAL, ',"tool":{canonical(tool)}', ""),
    (
        "fingerprints.another_name_is_another_text",
        CANONICAL,
        "return spell_plain(value) or _Walk().run(value)",
        'return (spell_plain(value) or _Walk().run(value)).replace(" ", "")',
    ),
    (
        "fingerprints.another_flag_is_another_fingerprint",
        CANONICAL,
        "return _fingerprint(tool, canonical(arguments(args)))",
        "return _fingerprint(tool, canonical(sorted(arguments(args))))",
    ),
    (
        "fingerprints.a_number_is_read_back",
        CANONICAL,
        "return spell_plain(value) or _Walk().run(value)",
        'return (spell_plain(value) or _Walk().run(value)).replace("-", "")',
    ),
    (
        "fingerprints.arguments_as_json_text_are_the_arguments",
        CANONICAL,
        "return read if isinstance(read, dict) else given",
        "return given",
    ),
]


@pytest.fixture(scope="module")
def judgements() -> dict[str, Judgement]:
    """Judge what runs; a contract that is confirmed ends long before its time, the searches take all of theirs."""
    finished = [contract for name, contract in CONTRACTS.items() if name not in UNFINISHED]
    judged = [*judge_all(finished, 30), *judge_all([CONTRACTS[name] for name in sorted(UNFINISHED)], 2)]
    return {judgement.contract: judgement for judgement in judged}


class TestWhatRuns:
    """The runtime's own functions."""

    @pytest.mark.parametrize("name", CONTRACTS)
    def test_no_contract_has_a_counterexample(self, judgements: dict[str, Judgement], name: str) -> None:
        """Confirmed on every path, but for those of which we say that they are only searched."""
        judgement = judgements[name]
        assert judgement.status == (INCONCLUSIVE if name in UNFINISHED else CONFIRMED), judgement.told

    def test_a_search_is_never_passed_off_as_more(self, judgements: dict[str, Judgement]) -> None:
        """It ended because its time was up, and says so."""
        assert {judgements[name].told for name in UNFINISHED} == {"no counterexample, but not every path was finished"}


class TestPlantedBugs:
    """Every contract can fail."""

    @pytest.mark.parametrize(("name", "module", "old", "new"), BUGS, ids=[bug[0] for bug in BUGS])
    def test_a_bug_in_the_real_code_is_found(
        self, monkeypatch: pytest.MonkeyPatch, name: str, module: str, old: str, new: str
    ) -> None:
        """The counterexample is a call of the contract that plain Python sees fail as well."""
        subject, _, contract = name.partition(".")
        core = module.rpartition(".")[2]
        monkeypatch.setattr(f"failstop.models.contracts.{subject}.{core}", planted(module, old, new))
        judgement = judge(CONTRACTS[name], seconds=20)
        assert judgement.status == COUNTEREXAMPLE, judgement.told
        assert judgement.told.startswith(f"{contract}(")

    def test_every_contract_has_one(self) -> None:
        """A contract of which nobody knows that it can fail says nothing."""
        assert {bug[0] for bug in BUGS} == set(CONTRACTS)


def planted(module: str, old: str, new: str) -> ModuleType:
    """Give a copy of a module of the runtime with a bug in it; the real one stays as it is."""
    real = importlib.import_module(f"failstop.runtime.{module}")
    source = inspect.getsource(real)
    assert source.count(old) == 1
    copy = ModuleType(real.__name__)
    exec(compile(source.replace(old, new), f"<{module} with a bug>", "exec"), copy.__dict__)  # noqa: S102 - our own code
    return copy


def nobody_meets_this(number: int) -> bool:
    """Ask for the impossible.

    pre: number < 0 < number
    post: _
    """
    return number > 0


def python_holds_what_crosshair_refutes(number: int) -> bool:
    """Hand a symbolic number to a method that wants a real one.

    post: _
    """
    return int.__index__(number) == number


def a_square_is_positive(number: int) -> bool:
    """Forget zero.

    post: _
    """
    return number * number > 0


class TestTheJudge:
    """Three answers, and doubt is the second."""

    def test_a_precondition_that_nothing_meets_is_inconclusive(self) -> None:
        """An empty claim is no confirmed one."""
        judgement = judge(nobody_meets_this, seconds=5)
        assert (judgement.status, "precondition" in judgement.told) == (INCONCLUSIVE, True)

    def test_a_counterexample_that_holds_in_plain_python_is_inconclusive(self) -> None:
        """It is a gap in CrossHair's models of Python."""
        judgement = judge(python_holds_what_crosshair_refutes, seconds=5)
        assert (judgement.status, "holds in plain Python" in judgement.told) == (INCONCLUSIVE, True)

    def test_a_function_without_a_contract_is_inconclusive(self) -> None:
        """Nothing was asked, so nothing was confirmed."""
        assert judge(planted, seconds=5).status == INCONCLUSIVE

    def test_a_counterexample_is_a_call_to_paste(self) -> None:
        """Its text is the call, with nothing around it."""
        judgement = judge(a_square_is_positive, seconds=5)
        assert (judgement.status, judgement.told) == (COUNTEREXAMPLE, "a_square_is_positive(0)")
        assert not eval(judgement.told)  # noqa: S307 - the point of it

    @pytest.mark.parametrize(("status", "code"), [(CONFIRMED, 0), (INCONCLUSIVE, 0), (COUNTEREXAMPLE, 1)])
    def test_the_command_fails_on_a_counterexample_only(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: str, code: int
    ) -> None:
        """And says of each contract what came of it."""
        judged = [Judgement("admission.first", CONFIRMED, "", 0.1), Judgement("money.second", status, "told", 0.25)]
        monkeypatch.setattr("failstop.models.crosshair_run.judge_all", lambda *_: judged)
        assert main(["5"]) == code
        printed = capsys.readouterr().out
        assert [line in printed for line in lines(judged)] == [True] * 4
        assert f"{status:14}    0.2 s  money.second" in printed
