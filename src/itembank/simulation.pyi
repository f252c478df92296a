from .studies.simulation.simulation_results import Simulated as Simulated
from .studies.simulation.simulation_specs import SimulationSpec as SimulationSpec
from .studies.simulation.truth_files import load_truth as load_truth
