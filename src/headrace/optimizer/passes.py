"""All logical passes, in order.

What is decided about a query before SQL is written is decided by one of these; `optimizer` runs them. To add one: write
its function, put it here with its claim, and say in `pass_words` what it changed. Tests switch each off in turn.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.pruned_columns import prune
from headrace.optimizer.auxiliary_views.bounded_groups import bound
from headrace.optimizer.auxiliary_views.eager_aggregation import aggregate_before_join
from headrace.optimizer.auxiliary_views.inner_aggregates import keep_aggregates
from headrace.optimizer.auxiliary_views.inner_recursion import keep_recursion
from headrace.optimizer.auxiliary_views.top_groups import keep_groups
from headrace.optimizer.auxiliary_views.top_k_buffer import keep_buffer
from headrace.optimizer.common_subexpressions.across_programs import share_reads
from headrace.optimizer.common_subexpressions.read_once import read_once
from headrace.optimizer.common_subexpressions.shared_steps import drop_unread, share
from headrace.optimizer.empty_relations import drop_empty
from headrace.optimizer.filter_pushdown import push_filters
from headrace.optimizer.integer_keys import mark_integer_keys
from headrace.optimizer.join_order import order_joins
from headrace.optimizer.known_keys import use_keys
from headrace.optimizer.merge_projections import merge
from headrace.optimizer.moving_filters import push_moving_filters
from headrace.optimizer.optimizer_pass import Pass, Phase, Subject
from headrace.optimizer.semijoin_pushdown import push_semi_joins
from headrace.optimizer.semijoin_reduction import restrict_groups
from headrace.optimizer.sideways.existence_partners import look_for_partners

_LOWERED = "SQL is not written of empty relations: nothing says of which types their columns are"

_EMPTY = Pass(
    "empty_relations",
    Phase.LOGICAL,
    Subject.QUERY,
    claim="∅ is neutral in ⊎, and absorbing in π, σ, ⋈ and γ with keys",
    apply=lambda tree, _: drop_empty(tree),
    required=_LOWERED,
)
_MERGE = Pass(
    "merge_projections",
    Phase.LOGICAL,
    Subject.QUERY,
    claim="π_f(π_g(R)) = π_{f∘g}(R); σ_p(σ_q(R)) = σ_{q∧p}(R)",
    apply=lambda tree, _: merge(tree),
)
_FILTERS = Pass(
    "filter_pushdown",
    Phase.LOGICAL,
    Subject.QUERY,
    claim="σ_p(L ⋈ R) = σ_p(L) ⋈ R for p over L; likewise below π, ⊎, and γ and ω for p over their keys",
    apply=lambda tree, _: push_filters(tree),
)
_PRUNE = Pass(
    "column_pruning",
    Phase.LOGICAL,
    Subject.QUERY,
    claim="π_A(R) depends on no column outside A and those that its operators read",
    apply=lambda tree, _: prune(tree),
)


def _step(of: Pass) -> Pass:
    """Return a pass over queries as one over the steps of programs."""
    return replace(of, phase=Phase.CHANGE, subject=Subject.STEP)


_NORMAL = (
    _EMPTY,
    _MERGE,
    _FILTERS,  # before deltas are taken, so that they start from equi-joins and filtered inputs
    _MERGE,  # pushing leaves filters beside filters
    _PRUNE,
    _MERGE,  # pruning leaves projections that change nothing
)

PASSES: tuple[Pass, ...] = (
    # the query's tree
    *_NORMAL,
    Pass(
        "moving_filters",
        Phase.LOGICAL,
        Subject.QUERY,
        claim="σ_c(T)(L ⋈ R) = σ_c(T)(L) ⋈ R for c over L and time T; likewise below π, ⊎, and γ and ω by their keys",
        apply=lambda tree, _: push_moving_filters(tree),
    ),
    Pass(
        "known_keys",
        Phase.LOGICAL,
        Subject.QUERY,
        claim="where no two rows of R agree in k ⊆ A: δ_A(R) = π_A(R), γ_A(R) = π(R), and L ⋉_k R = π(L ⋈_k R)",
        apply=lambda tree, facts: use_keys(tree, facts.keys, facts.types(tree)) if facts.keys else tree,
        assumes="keys that the sources enforce or the user declared",
        then=_NORMAL,
    ),
    Pass(
        "eager_aggregation",
        Phase.LOGICAL,
        Subject.QUERY,
        claim="γ_k(L ⟕_{a=f} R) is a function of γ_k(L; n) ⟕_{a=f} γ_f(R) for k ⊇ a",
        apply=lambda tree, facts: aggregate_before_join(tree, facts.types(tree)),
        assumes="the right side's groups can be kept",
    ),
    Pass(
        "magic_sets",
        Phase.LOGICAL,
        Subject.QUERY,
        claim="L ⋈_{a=k} γ_k(R) = L ⋈_{a=k} γ_k(R ⋉ σ(P)) where σ(P) has all values of a in L",
        apply=lambda tree, facts: bound(tree, facts.types(tree)),
        assumes="a filtered source has few of the values that groups are asked for by",
    ),
    # what the companion keeps
    Pass(
        "top_k_over_groups",
        Phase.LOGICAL,
        Subject.COMPANION,
        claim="τ(γ(R′)) is a function of the groups as they were and Δγ(R)",
        apply=lambda views, given: keep_groups(views, given[0]),
        required="groups with sums of floats below ORDER BY … LIMIT could not be followed, and would be recomputed",
    ),
    Pass(
        "top_k_buffer",
        Phase.LOGICAL,
        Subject.COMPANION,
        claim="the first |C′| rows of R′ are among C ⊎ ΔR, where C is the first rows of R",
        apply=lambda views, given: keep_buffer(views, given[0]),
    ),
    Pass(
        "inner_recursion",
        Phase.LOGICAL,
        Subject.COMPANION,
        claim="ρ is the companion C as it was, and C ⊎ Δρ as it is",
        apply=lambda views, given: keep_recursion(views, given[0]),
    ),
    Pass(
        "inner_aggregates",
        Phase.LOGICAL,
        Subject.COMPANION,
        claim="γ(R) is shown(C) as it was, and shown(C ⊎ ΔC) as it is, for accumulators C",
        apply=lambda views, given: keep_aggregates(views, given[0], given[1].types(given[0])),
    ),
    # what the delta rules ask for
    Pass(
        "semijoin_reduction",
        Phase.CHANGE,
        Subject.RULES,
        claim="L ⋈_{a=k} Δγ_k(R) = L ⋈_{a=k} (Δγ_k(R) ⋉ π_a(L))",
        apply=lambda change, tree: restrict_groups(change, tree),
        cost_based=True,
        assumes="sizes of sources",
    ),
    # the program that the rules give
    Pass(
        "common_subexpressions",
        Phase.CHANGE,
        Subject.PROGRAM,
        claim="equal relations over the same versions have equal rows",
        apply=lambda program, facts: share(program, facts.repeated),
    ),
    Pass(
        "unread_steps",
        Phase.CHANGE,
        Subject.PROGRAM,
        claim="a step that nothing reads changes no result",
        apply=lambda program, _: drop_unread(program),
    ),
    # each of its steps
    _step(_EMPTY),  # first: an empty term must not be worked on
    _step(_MERGE),
    Pass(
        "join_order",  # before semi-joins come between joins
        Phase.CHANGE,
        Subject.STEP,
        claim="⋈ is associative and commutative",
        apply=lambda tree, _: order_joins(tree),
    ),
    Pass(
        "semijoin_pushdown",  # after merging, which takes renamings out of the way
        Phase.CHANGE,
        Subject.STEP,
        claim="(L ⋈ R) ⋉ K = ((L ⋉ K) ⋈ (R ⋉ K)) ⋉ K; likewise below π, σ, ⊎, and γ and ω by their keys",
        apply=push_semi_joins,
    ),
    _step(_FILTERS),  # conditions that came to stand above joins when a join was split into terms
    _step(_MERGE),
    _step(_PRUNE),
    _step(_MERGE),
    Pass(
        "existence_partners",  # once `read_once` has put a step in the place of a source
        Phase.CHANGE,
        Subject.STEP,
        claim="L ⋉_p (R × n) = L ⋉_p σ_{n>0}(R); L ⋉_p (R ⋉ π_k(L)) = L ⋉_p R where p compares k",
        apply=lambda tree, _: look_for_partners(tree),
    ),
    Pass(
        "integer_keys",  # last: others make semi-joins
        Phase.CHANGE,
        Subject.STEP,
        claim="a <=> b = (coalesce(a, 0) = coalesce(b, 0)) ∧ (a IS NULL = b IS NULL) for whole numbers",
        apply=mark_integer_keys,
    ),
    # what it reads of sources; steps that these add or change go through the passes over steps again
    Pass(
        "shared_semijoins",
        Phase.SESSION,
        Subject.READS,
        claim="S ⋉ K ⊆ S ⋉ (K ∪ K′), and S ⋉ K = (S′ ⋉ K) − (ΔS ⋉ K)",
        apply=share_reads,
        cost_based=True,
        assumes="sizes of sources, and what other stream tables at the same versions need",
    ),
    Pass(
        "read_once",
        Phase.CHANGE,
        Subject.READS,
        claim="S ⋉ K_i ⊆ S ⋉ ⋃K_i, and S ⋉ K = (S′ ⋉ K) − (ΔS ⋉ K)",
        apply=lambda program, facts: read_once(program, facts.changed, facts.sizes, facts.types, facts.barred),
        cost_based=True,
        assumes="sizes of sources, and which semi-joins with a change were too large before",
    ),
)
