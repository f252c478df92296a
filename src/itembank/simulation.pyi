from .studies.simulation.simulation_results import Simulated as Simulated
from .studies.simulation.simulation_results import load_truth as load_truth
from .studies.simulation.simulation_specs import SimulationSpec as SimulationSpec
