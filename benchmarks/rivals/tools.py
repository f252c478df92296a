"""The tools that are compared, and what they cannot do. Loads nothing of any of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, or one method of it.

    Attributes
    ----------
    name : str
        As tables show it.
    module : str
        What is imported before the clock starts; whether it is found says whether the tool is installed.
    distribution : str
        The package whose version is shown.
    adapter : str
        Name of the function in `benchmarks.rivals.adapters`.
    most_dims : int or None
        Dimensions of ability that it can fit; None where there is no limit.
    is_ours : bool
        Whether it runs in the environment of this process rather than in that of the rivals.
    """

    name: str
    module: str
    distribution: str
    adapter: str
    most_dims: int | None = 1
    is_ours: bool = False

    def fits(self, n_dims: int) -> bool:
        """Tell whether it has so many dimensions."""
        return self.most_dims is None or n_dims <= self.most_dims


TOOLS = (
    Tool("itembank", "itembank.calibration.fit_item_model", "itembank", "fit_itembank", None, is_ours=True),
    Tool("itembank mml", "itembank.calibration.fit_item_model", "itembank", "fit_itembank_mml", 1, is_ours=True),
    Tool("PyPI mirt", "mirt", "mirt", "fit_pypi_mirt", None),
    Tool("theta-irt", "theta", "theta-irt", "fit_theta_irt"),
    Tool("torch_measure jml", "torch_measure.models", "torch-measure", "fit_torch_measure_jml", None),
    Tool("torch_measure mle", "torch_measure.models", "torch-measure", "fit_torch_measure_mle"),
    Tool("py-irt", "py_irt", "py-irt", "fit_py_irt"),
    Tool("R mirt", "subprocess", "", "fit_r_mirt", None),
)


def tool_named(name: str) -> Tool:
    """Return the tool of this name."""
    return next(tool for tool in TOOLS if tool.name == name)
