"""What every method chooses from and gives back: the items of one scenario, as positions."""

from dataclasses import dataclass

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ScenarioPool:
    """The items of one scenario.

    Attributes
    ----------
    items : (n_pool,)
        Position of each item in the bank, in the order of their ids; of equally good items the first is taken.
    weights : (n_pool,)
        Target weight of each item within the scenario, summing to one.
    is_candidate : (n_pool,)
        Items that may be chosen; the weight of the others still has to be represented.
    """

    items: IntArray
    weights: FloatArray
    is_candidate: BoolArray


@dataclass(frozen=True, slots=True)
class Choice:
    """Chosen items of one scenario.

    Attributes
    ----------
    chosen : (n_chosen,)
        Positions within the pool, each once.
    weights : (n_chosen,)
        Summing to one.
    inclusion_probabilities : (n_chosen,) or None
        Probability with which each item came into the sample, among the candidates; None where it is not known.
    """

    chosen: IntArray
    weights: FloatArray
    inclusion_probabilities: FloatArray | None = None
