from .results import Simulated as Simulated
from .specs import SimulationSpec as SimulationSpec
from .truth_files import load_truth as load_truth
