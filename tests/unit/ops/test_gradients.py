"""Gradients, of one step and of many that share one source."""

from __future__ import annotations

import pytest
import torch
from problems import IMPLEMENTATIONS, make
from torch.utils.checkpoint import checkpoint

from nmtflex.ops.attend import Penalty, Source, attend, cpu, make_source, reference

BEAM = [0, 0, 0, 2, 2]  # sentence 1 has no hypothesis


@pytest.fixture(params=IMPLEMENTATIONS)
def chosen(request):
    return IMPLEMENTATIONS[request.param]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [None, BEAM], ids=["training", "beam"])
@pytest.mark.parametrize("additive", [True, False])
@pytest.mark.parametrize("damped", [True, False])
def test_gradcheck(chosen, rows, additive, damped):
    problem = make(
        lengths=(5, 3, 4), keys=4, values=3, rows=rows, additive=additive, damped=damped
    ).learning()

    def results(*learnt):
        attended = problem.with_learnt(*learnt).attend(chosen)
        return attended.context, attended.focus

    assert torch.autograd.gradcheck(results, problem.learnt())


@pytest.mark.parametrize("result", ["context", "focus", "log_sum"])
def test_gradient_of_one_result_alone(result):
    grads = []
    for implementation in (reference, cpu):
        problem = make(damped=True).learning()
        total = (getattr(problem.attend(implementation), result) ** 2).sum()
        grads.append(torch.autograd.grad(total, problem.learnt(), allow_unused=True))
    for part, other in zip(*grads, strict=True):
        part = torch.zeros_like(other) if part is None else part
        torch.testing.assert_close(other, part, rtol=1e-12, atol=1e-12)


def test_weights_have_no_gradient(chosen):
    assert not make().learning().attend(chosen).weights.requires_grad


def test_gradients_of_bfloat16_come_in_bfloat16():
    problem = make(dtype=torch.bfloat16).learning()
    problem.attend(cpu).context.sum().backward()
    assert {part.grad.dtype for part in problem.learnt()} == {torch.bfloat16}


def test_nothing_is_kept_without_gradients():
    problem = make().learning()
    with torch.no_grad():
        attended = problem.attend(cpu)
    assert attended.context.grad_fn is None


# What follows is about many steps. Each looks where the one before did and asks for what it found,
# as a decoder does, so that its gradient comes when those of all later steps are done.


def decode(problem, source, implementation, steps=4):
    query, focus, total = problem.query, problem.penalty.focus, 0.0
    for step in range(steps):
        penalty = Penalty(problem.penalty.gate, focus, 1.5)
        context, focus, *_ = implementation.attend(
            query, source, problem.rows, problem.v, problem.window, penalty
        )
        query = torch.tanh(query + context[:, : query.shape[1]])
        total = total + (context**2).sum() * (step + 1) + focus.sum()
    return total


def start(**options):
    problem = make(keys=6, values=8, **options).learning()
    return problem, [problem.keys, problem.values, problem.query, problem.v]


def plain(problem):
    return Source(problem.keys, problem.values, problem.lengths)


def gathered(problem):
    return cpu.make_source(problem.keys, problem.values, problem.lengths)


def expected(problem, wanted, times=1):
    grads = torch.autograd.grad(decode(problem, plain(problem), reference), wanted)
    return [times * grad for grad in grads]


def assert_close(got, wanted):
    for part, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(part, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("rows", [None, BEAM], ids=["training", "beam"])
@pytest.mark.parametrize("make_plain", [plain, gathered])
def test_many_steps(rows, make_plain):
    problem, wanted = start(rows=rows)
    total = decode(problem, make_plain(problem), cpu)
    assert_close(torch.autograd.grad(total, wanted), expected(problem, wanted))


def test_gradients_are_made_once(monkeypatch):
    problem, wanted = start()
    calls = []
    gradients = cpu.gradients

    def counted(notes, *memory):
        calls.append(len(notes))
        return gradients(notes, *memory)

    monkeypatch.setattr(cpu, "gradients", counted)
    monkeypatch.setattr(cpu, "LOOPS", cpu.LOOPS._replace(gradients=counted))
    torch.autograd.grad(decode(problem, gathered(problem), cpu), wanted)
    assert calls == [4]
    torch.autograd.grad(decode(problem, plain(problem), cpu), wanted)
    assert calls == [4, 1, 1, 1, 1]


def test_a_graph_used_twice_gives_the_same_twice():
    problem, wanted = start()
    total = decode(problem, gathered(problem), cpu)
    first = torch.autograd.grad(total, wanted, retain_graph=True)
    second = torch.autograd.grad(total, wanted, retain_graph=True)
    total.backward()
    for part, again, leaf in zip(first, second, wanted, strict=True):
        assert torch.equal(part, again)
        assert torch.equal(part, leaf.grad)


def test_gradients_of_other_things_leave_nothing_behind():
    problem, wanted = start()
    source = gathered(problem)
    total = decode(problem, source, cpu)
    torch.autograd.grad(total, [problem.query], retain_graph=True)
    torch.autograd.grad(total, [problem.v, problem.query], retain_graph=True)
    assert_close(torch.autograd.grad(total, wanted), expected(problem, wanted))


def test_a_failed_backward_pass_leaves_nothing_behind():
    problem, wanted = start()
    doomed = problem.keys * 1.0

    def fail(_):
        raise RuntimeError("stopped on purpose")

    handle = problem.query.register_hook(fail)
    source = cpu.make_source(doomed, problem.values, problem.lengths)
    total = decode(problem, source, cpu)
    with pytest.raises(RuntimeError, match="on purpose"):
        total.backward(retain_graph=True)
    handle.remove()
    assert_close(torch.autograd.grad(total, wanted), expected(problem, wanted))


def test_two_losses_of_one_source_one_after_the_other():
    problem, wanted = start()
    source = gathered(problem)
    losses = [decode(problem, source, cpu, steps) for steps in (4, 4)]
    for loss in losses:
        loss.backward(retain_graph=True)
    assert_close([leaf.grad for leaf in wanted], expected(problem, wanted, times=2))


def test_two_decoders_with_scores_of_their_own_read_one_source():
    problem, wanted = start()
    other = problem._replace(v=(problem.v.detach() + 1).requires_grad_())
    wanted = [*wanted, other.v]
    totals = []
    for source, implementation in ((gathered(problem), cpu), (plain(problem), reference)):
        total = decode(problem, source, implementation) + decode(other, source, implementation)
        dot = implementation.attend(problem.query, source, window=problem.window)
        totals.append(total + dot.context.sum())
    assert_close(*(torch.autograd.grad(total, wanted) for total in totals))


def test_a_source_read_by_other_operations_too():
    problem, wanted = start()
    totals = []
    for source, implementation in ((gathered(problem), cpu), (plain(problem), reference)):
        total = decode(problem, source, implementation)
        totals.append(total + (source.values**2).sum() + source.keys.sum())
    assert_close(*(torch.autograd.grad(total, wanted) for total in totals))


def test_two_sources_mixed():
    problem, wanted = start()
    first, second = gathered(problem), gathered(problem)
    mixed = Source(first.keys, second.values, problem.lengths)
    total = decode(problem, mixed, cpu)
    assert_close(torch.autograd.grad(total, wanted), expected(problem, wanted))


def test_keys_that_are_the_values():
    problem = make(keys=8, values=8, additive=False).learning()
    states = problem.keys
    totals = []
    for implementation in (cpu, reference):
        source = implementation.make_source(states, states, problem.lengths)
        attended = implementation.attend(problem.query, source, window=problem.window)
        totals.append((attended.context**2).sum())
    assert_close(*(torch.autograd.grad(total, [states]) for total in totals))


@pytest.mark.parametrize("fixed", ["keys", "values"])
def test_keys_or_values_without_gradient(fixed):
    problem, _ = start()
    problem = problem._replace(**{fixed: getattr(problem, fixed).detach()})
    wanted = [part for part in (problem.keys, problem.values) if part.requires_grad]
    for make_plain in (plain, gathered):
        total = decode(problem, make_plain(problem), cpu)
        assert_close(torch.autograd.grad(total, wanted), expected(problem, wanted))


def test_a_source_without_gradient():
    problem, _ = start()
    problem = problem._replace(keys=problem.keys.detach(), values=problem.values.detach())
    total = decode(problem, gathered(problem), cpu)
    assert_close(torch.autograd.grad(total, [problem.query]), expected(problem, [problem.query]))


@pytest.mark.parametrize("reentrant", [False, True])
def test_steps_computed_again_in_the_backward_pass(reentrant):
    problem, wanted = start()
    source = gathered(problem)

    def run(query):
        return decode(problem._replace(query=query), source, cpu)

    checkpoint(run, problem.query, use_reentrant=reentrant).backward()
    assert_close([leaf.grad for leaf in wanted], expected(problem, wanted))


def test_sentences_left_out_of_a_source():
    problem, wanted = start(rows=[0, 0, 1])
    keep = torch.tensor([2, 0])
    totals = []
    for source, implementation in ((gathered(problem), cpu), (plain(problem), reference)):
        fewer = Source(*(part[keep] for part in source))
        window = type(problem.window)(torch.zeros(3).long(), fewer.lengths[problem.rows])
        attended = implementation.attend(
            problem.query, fewer, problem.rows, problem.v, window, problem.penalty
        )
        totals.append((attended.context**2).sum())
    assert_close(*(torch.autograd.grad(total, wanted) for total in totals))


def test_the_gradient_of_a_source_itself_is_refused_rather_than_wrong():
    problem, _ = start()
    source = gathered(problem)
    total = decode(problem, source, cpu)
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(total, [source.keys])


def test_a_parameter_changed_between_the_passes_is_noticed():
    problem, _ = start()
    total = decode(problem, gathered(problem), cpu)
    with torch.no_grad():
        problem.v.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_through_the_public_functions():
    problem, wanted = start()
    source = make_source(problem.keys, problem.values, problem.lengths)
    attended = attend(problem.query, source, v=problem.v, penalty=problem.penalty)
    again = reference.attend(problem.query, plain(problem), v=problem.v, penalty=problem.penalty)
    assert_close(
        torch.autograd.grad(attended.context.sum(), wanted),
        torch.autograd.grad(again.context.sum(), wanted),
    )
