"""The clock charges every second to one stage, and leaves no trace."""

import threading
import types

import pytest

from attnaudit.audit.stages import AROUND, BESIDE, ELSE, Hook, StageClock, loaded_modules, watching


class Hands:
    """A clock that goes on only when it is told to."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


@pytest.fixture
def hands():
    return Hands()


def module(name, **contents):
    made = types.ModuleType(name)
    vars(made).update(contents)
    return made


def house(**functions):
    """A package with two modules that have the same functions under names of their own."""
    first, second = module("house.first", **functions), module("house.second", **functions)
    return module("house", first=first, second=second)


def test_time_goes_to_the_innermost_stage(hands):
    clock = StageClock(hands)
    with clock.started():
        hands.time += 1
        with clock.stage("outer"):
            hands.time += 2
            with clock.stage("inner"):
                hands.time += 4
            hands.time += 8
    assert clock.seconds == {(AROUND, ELSE): 1, (AROUND, "outer"): 10, (AROUND, "inner"): 4}


def test_a_pass_has_stages_of_its_own(hands):
    clock = StageClock(hands)
    with clock.started(), clock.stage("evidence"), clock.stage(begins="twin"):
        hands.time += 1
        with clock.stage("solve"):
            hands.time += 2
    assert clock.seconds == {(AROUND, ELSE): 0, (AROUND, "evidence"): 0, ("twin", ELSE): 1, ("twin", "solve"): 2}


def test_stages_add_up_to_the_whole_whatever_fails(hands):
    def fail():
        hands.time += 1
        raise ArithmeticError

    package, clock = house(fail=fail), StageClock(hands)
    with watching(clock, [package], [Hook(fail, "solve")]), clock.started():
        with pytest.raises(ArithmeticError):
            package.first.fail()
        hands.time += 5
    assert clock.seconds == {(AROUND, ELSE): 5, (AROUND, "solve"): 1}


def test_functions_are_watched_under_every_name_and_put_back(hands):
    def solve():
        hands.time += 1

    package, clock = house(solve=solve), StageClock(hands)
    with watching(clock, [package], [Hook(solve, "solve")]), clock.started():
        package.first.solve()
        package.second.solve()
    assert clock.seconds[AROUND, "solve"] == 2
    assert package.first.solve is package.second.solve is solve


def test_a_generator_is_watched_only_while_it_goes_on(hands):
    def numbers():
        for number in range(3):
            hands.time += 1
            yield number

    package, clock = house(numbers=numbers), StageClock(hands)
    with watching(clock, [package], [Hook(numbers, "numbers")]), clock.started():
        for _ in package.first.numbers():
            hands.time += 10
    assert clock.seconds == {(AROUND, ELSE): 30, (AROUND, "numbers"): 3}


def test_a_function_that_nobody_has_is_an_error(hands):
    with (
        pytest.raises(LookupError, match="No module has"),
        watching(StageClock(hands), [house()], [Hook(len, "")]),
    ):
        pass


def in_another_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def read_for_two_ticks(clock, hands):
    with clock.stage("read"), clock.stage("imports"):
        hands.time += 2


def test_what_other_threads_do_belongs_to_the_stage_that_waits_for_it(hands):
    clock = StageClock(hands)
    with clock.started(), clock.stage("solve"):
        in_another_thread(lambda: read_for_two_ticks(clock, hands))
        hands.time += 3
    assert clock.seconds == {(AROUND, ELSE): 0, (AROUND, "solve"): 5}


def test_with_the_clock_of_one_thread_what_others_do_has_a_pass_of_its_own(hands):
    whole = Hands()
    clock = StageClock(lambda: hands.time if threading.get_ident() == main else other.time, whole=whole)
    main, other = threading.get_ident(), Hands()
    with clock.started(), clock.stage("solve"):
        in_another_thread(lambda: read_for_two_ticks(clock, other))
        hands.time += 3
        whole.time += 6  # one of them in a thread of which the clock knows nothing
    assert clock.seconds == {(AROUND, ELSE): 0, (AROUND, "solve"): 3, (BESIDE, "read"): 2, (BESIDE, ELSE): 1}


def test_modules_of_other_packages_are_left_alone():
    inner = module("house.rooms.kitchen")
    rooms = module("house.rooms", kitchen=inner, torch=module("torch"))
    package = module("house", rooms=rooms, kitchen=inner)
    assert [found.__name__ for found in loaded_modules(package)] == ["house", "house.rooms", "house.rooms.kitchen"]
