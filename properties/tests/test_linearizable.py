"""The checker of histories: known ones, good and bad, and every order of the operations beside it on random ones."""

import itertools
from collections import Counter
from random import Random

import pytest

from failstop.properties.linearizable import Begin, End, Explanations, Gap, Withdraw, first_gap

OK = "ok"


class Register:
    """read; write, value; cas, old, new."""

    initial = 0

    def outcomes(self, state, action):
        match action:
            case ("read",):
                yield state, state
            case ("write", value):
                yield value, OK
            case ("cas", old, new):
                yield (new, True) if state == old else (state, False)


class Queue:
    """put, value; take, which waits while there is nothing."""

    initial = ()

    def outcomes(self, state, action):
        match action:
            case ("put", value):
                yield (*state, value), OK
            case ("take",) if state:
                yield state[1:], state[0]


class Limited:
    """add, which is refused at two; the answer is whether it was admitted."""

    initial = 0

    def outcomes(self, state, action):
        yield (state + 1, True) if state < 2 else (state, False)


class Lock:
    """take, which waits while another has it; give, by its owner."""

    initial = None

    def outcomes(self, state, action):
        match action:
            case ("take", who) if state is None:
                yield who, OK
            case ("give", who) if state == who:
                yield None, OK


class Coin:
    """flip, whose answer nobody knows before; see, which shows what lies up."""

    initial = "heads"

    def outcomes(self, state, action):
        if action == "see":
            yield state, state
        else:
            yield from ((side, side) for side in ("heads", "tails"))


def history(text):
    """One event a word: 1+read, 1+write:3 begins, 1=3 ends, 1- withdraws; lanes count from one."""
    return [_event(word) for word in text.split()]


def _event(word):
    lane, kind, rest = int(word[0]) - 1, word[1], word[2:]
    if kind == "+":
        name, *values = rest.split(":")
        return Begin(lane, (name, *(_value(each) for each in values)))
    return End(lane, _value(rest)) if kind == "=" else Withdraw(lane)


def _value(text):
    return {"True": True, "False": False}.get(text, int(text) if text.isdigit() else text)


def gap_of(reference, text):
    gap = first_gap(reference, history(text), 3)
    return None if gap is None else gap.place


GOOD = {
    "one after another": (Register, "1+write:3 1=ok 2+read 2=3"),
    "a read during a write may see the old value": (Register, "1+write:3 2+read 2=0 1=ok"),
    "a read during a write may see the new value": (Register, "1+write:3 2+read 2=3 1=ok"),
    "an old value before a new one, both during the write": (Register, "1+write:3 2+read 2=0 3+read 3=3 1=ok"),
    "two writes at once, the second last": (Register, "1+write:1 2+write:2 1=ok 2=ok 3+read 3=2"),
    "two writes at once, the first last": (Register, "1+write:1 2+write:2 1=ok 2=ok 3+read 3=1"),
    "one of two swaps wins": (Register, "1+cas:0:1 2+cas:0:2 1=False 2=True 3+read 3=2"),
    "a write that was never answered took effect": (Register, "1+write:3 2+read 2=3"),
    "a write that was never answered took no effect": (Register, "1+write:3 2+read 2=0 2+read 2=0"),
    "a write took effect long after it was asked": (Register, "1+write:3 2+read 2=0 2+read 2=0 2+read 2=3"),
    "Herlihy and Wing, figure 1 a": (Queue, "1+put:1 2+put:2 1=ok 2=ok 2+take 2=1 1+put:3 3+take 3=2 1=ok"),
    "Herlihy and Wing, figure 1 c": (Queue, "1+put:1 2+take 2=1 1=ok"),
    "a taker waits for a value": (Queue, "1+take 2+put:1 2=ok 1=1"),
    "puts at once are taken in any order": (Queue, "1+put:1 2+put:2 1=ok 2=ok 3+take 3=2 3+take 3=1"),
    "the third of three at once is refused": (Limited, "1+add 2+add 3+add 1=True 2=False 3=True"),
    "a refusal counts nothing": (Limited, "1+add 1=True 1+add 1=True 1+add 1=False 1+add 1=False"),
    "a lock passed on": (Lock, "1+take:1 1=ok 2+take:2 1+give:1 2=ok 1=ok"),
    "a lock that is never given back": (Lock, "1+take:1 1=ok 2+take:2 3+take:3"),
    "two of one lane, answered in their order": (Register, "1+write:1 1+read 2+read 2=1 1=ok 1=1"),
    "the second of one lane took effect too": (Register, "1+write:1 1+write:2 2+read 2=2 1=ok 1=ok"),
    "the second of one lane did not take effect yet": (Register, "1+write:1 1+write:2 2+read 2=1 1=ok 2+read 2=2 1=ok"),
    "withdrawn, as if never asked": (Register, "1+write:1 1- 2+read 2=0"),
    "withdrawn behind one that is answered": (Register, "1+write:1 1+write:2 1- 1=ok 2+read 2=1"),
    "withdrawn after others were answered meanwhile": (Register, "1+write:1 2+read 2=0 1- 1+read 1=0"),
    "nothing at all": (Register, ""),
}

BAD = {
    "a stale read": (Register, "1+write:3 1=ok 2+read 2=0", 3),
    "a value from nowhere": (Register, "1+write:3 2+read 2=4", 2),
    "new, then old: the write was over for one reader and not for the next": (
        Register,
        "1+write:3 2+read 2=3 3+read 3=0 1=ok",
        4,
    ),
    "an update is lost": (Register, "1+cas:0:1 2+cas:0:2 1=True 2=True", 3),
    "an update is lost, and shows only when it is read": (
        Register,
        "1+read 2+read 1=0 2=0 1+write:1 1=ok 2+write:2 2=ok 3+read 3=1",
        9,
    ),
    "a swap fails without a reason": (Register, "1+cas:0:1 1=False", 1),
    "a value comes back that was overwritten": (Register, "1+write:1 1=ok 1+write:2 1=ok 2+read 2=1", 5),
    "two readers see two writes in different orders": (
        Register,
        "1+write:1 2+write:2 3+read 3=1 3+read 3=2 1=ok 2=ok 1+read 1=1",
        9,
    ),
    "Herlihy and Wing, figure 1 b": (Queue, "1+put:1 1=ok 2+put:2 2=ok 1+take 1=2", 5),
    "Herlihy and Wing, figure 1 d": (Queue, "1+put:1 2+put:2 1=ok 2=ok 1+take 3+take 1=2 3=2", 7),
    "taken before it was put": (Queue, "1+take 1=1 2+put:1 2=ok", 1),
    "nothing to take, and yet answered": (Queue, "1+put:1 1=ok 1+take 1=1 2+take 2=1", 5),
    "one more than the limit": (Limited, "1+add 2+add 3+add 1=True 2=True 3=True", 5),
    "one less than the limit": (Limited, "1+add 1=True 2+add 2=False", 3),
    "a lock held twice": (Lock, "1+take:1 1=ok 2+take:2 2=ok", 3),
    "the second of one lane before its first": (Register, "1+write:1 1+write:2 2+read 2=2 2+read 2=1", 5),
    "the first answer is the second's": (Register, "1+read 1+cas:0:1 1=True", 2),
    "withdrawn, though somebody saw it": (Register, "1+write:1 2+read 2=1 1-", 3),
    "the last of a lane is withdrawn, though it was seen": (Register, "1+write:1 1+write:2 2+read 2=2 1-", 4),
    "the gap is the first of two": (Register, "1+read 1=5 1+read 1=6", 1),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_an_order_explains_is_linearizable(name):
    """Some order of the steps, between their beginnings and their ends, gives these answers."""
    reference, text = GOOD[name]
    assert gap_of(reference(), text) is None


@pytest.mark.parametrize("name", BAD)
def test_what_no_order_explains_is_told_at_its_first_event(name):
    """The gap is the first event after which nothing explains the history, and everything before it is explained."""
    reference, text, place = BAD[name]
    assert gap_of(reference(), text) == place
    assert first_gap(reference(), history(text)[:place], 3) is None


def test_a_gap_says_which_states_were_possible():
    """Those before the event, and the event itself."""
    gap = first_gap(Register(), history("1+write:3 1=ok 2+read 2=0"), 2)
    assert gap == Gap(3, End(1, 0), frozenset({3}))


def test_any_of_several_outcomes_is_followed():
    """A coin that was flipped shows what it was told to show, and keeps to it."""
    events = [Begin(0, "flip"), Begin(1, "see"), End(1, "tails"), End(0, "tails"), Begin(1, "see"), End(1, "tails")]
    assert first_gap(Coin(), events, 2) is None
    unlike = [*events[:-1], End(1, "heads")]
    assert first_gap(Coin(), unlike, 2).place == len(unlike) - 1
    # It may have been flipped after it was seen, but not to the other side of what the flip said.
    assert first_gap(Coin(), [*events[:2], End(1, "heads"), End(0, "tails")], 2) is None
    assert first_gap(Coin(), [*events[:3], End(0, "heads")], 2).place == 3


def test_an_action_that_looks_like_its_answer_is_not_taken_for_it():
    """What waits to take effect was not answered, whatever it is called."""

    class Never:
        initial = 0

        def outcomes(self, state, action):
            return ()

    assert first_gap(Never(), [Begin(0, "x"), End(0, "x")], 1).place == 1


def test_equal_keys_have_equal_futures():
    """Two histories of one key are told apart by no event; those that something tells apart have other keys."""
    explanations = {text: Explanations(Register(), 2) for text in ("1+write:1 1=ok", "2+write:1 2=ok", "1+write:1")}
    for text, each in explanations.items():
        for event in history(text):
            each.see(event)
    first, second, third = explanations.values()
    assert first.key == second.key
    assert first.key != third.key


def by_all_orders(reference, events):
    """Try every order of all operations, in which those that were not answered may be left out: slow, and plain."""
    operations = _operations(events)
    if operations is None:
        return False
    answered = [each for each in operations if each[3] is not None]
    open_ones = [each for each in operations if each[3] is None]
    for count in range(len(open_ones) + 1):
        for some in itertools.combinations(open_ones, count):
            for order in itertools.permutations([*answered, *some]):
                if _in_time(order, open_ones) and _answers(reference, reference.initial, order):
                    return True
    return False


def _operations(events):
    """Give (lane, begun at, action, ended at, answer) of all that were not withdrawn."""
    found, lanes = [], {}
    for place, event in enumerate(events):
        mine = lanes.setdefault(event.lane, [])
        if isinstance(event, Begin):
            operation = [event.lane, place, event.action, None, None]
            mine.append(operation)
            found.append(operation)
        elif isinstance(event, End):
            mine.pop(0)[3:] = [place, event.answer]
        else:
            found.remove(mine.pop())
    return found


def _in_time(order, open_ones):
    for before, after in itertools.combinations(order, 2):
        if after[3] is not None and after[3] < before[1]:
            return False
        if after[0] == before[0] and after[1] < before[1]:
            return False
    # Those of one lane take effect in their order, so none may have been left out before one that did.
    left_out = [each for each in open_ones if not any(each is other for other in order)]
    return not any(each[0] == other[0] and each[1] < other[1] for each in left_out for other in order)


def _answers(reference, state, order):
    if not order:
        return True
    first, *rest = order
    return any(
        (first[3] is None or answer == first[4]) and _answers(reference, after, rest)
        for after, answer in reference.outcomes(state, first[2])
    )


ACTIONS = {
    Register: [("read",), ("write", 1), ("write", 2), ("cas", 0, 1), ("cas", 1, 2)],
    Queue: [("put", 1), ("put", 2), ("take",)],
    Limited: [("add",)],
    Lock: [("take", 1), ("give", 1), ("take", 2), ("give", 2)],
    Coin: ["flip", "see"],
}
ANSWERS = {
    Register: [0, 1, 2, OK, True, False],
    Queue: [1, 2, OK],
    Limited: [True, False],
    Lock: [OK],
    Coin: ["heads", "tails"],
}


def random_history(reference, random):
    """Run operations at random moments between their beginnings and ends; most of the time, falsify some answers."""
    kind, state, events = type(reference), reference.initial, []
    falsify = random.random() < 0.7
    lanes = [[] for _ in range(3)]
    for _ in range(random.randint(6, 24)):
        lane = random.randrange(3)
        mine = lanes[lane]
        ready = mine and mine[0][1] is not None
        choice = random.random()
        begun = sum(isinstance(event, Begin) for event in events)
        if choice < 0.4 and len(mine) < 2 and begun < 6:
            action = random.choice(ACTIONS[kind])
            events.append(Begin(lane, action))
            mine.append([action, None])
        elif choice < 0.7:
            state = _took_effect(reference, state, mine, random)
        elif mine and choice < 0.97 and falsify and random.random() < 0.3:
            events.append(End(lane, random.choice(ANSWERS[kind])))
            mine.pop(0)
        elif ready and choice < 0.97:
            events.append(End(lane, mine.pop(0)[1][0]))
        elif mine and mine[-1][1] is None:
            events.append(Withdraw(lane))
            mine.pop()
    return events


def _took_effect(reference, state, mine, random):
    for operation in mine:
        if operation[1] is None:
            outcomes = list(reference.outcomes(state, operation[0]))
            if outcomes:
                state, answer = random.choice(outcomes)
                operation[1] = (answer,)
            break
    return state


@pytest.mark.parametrize("kind", ACTIONS)
def test_every_order_of_the_operations_says_the_same(kind):
    """On random histories the checker agrees with a search of all orders, where it holds and where it does not."""
    random = Random(7)
    reference, said = kind(), Counter()
    for _ in range(1200):
        events = random_history(reference, random)
        gap = first_gap(reference, events, 3)
        assert (gap is None) == by_all_orders(reference, events), events
        said[gap is None] += 1
        if gap is not None:
            # The place is right: so far explained, and no longer with the event.
            assert by_all_orders(reference, events[: gap.place])
            assert not by_all_orders(reference, events[: gap.place + 1])
    assert min(said[True], said[False]) > 50, said


def test_an_answer_that_nobody_asked_for_is_unexplained():
    """So is one more answer than there were questions, as of a stub that runs again after it was left."""
    assert first_gap(Register(), [End(0, "anything")], 1) == Gap(0, End(0, "anything"), frozenset({Register().initial}))
