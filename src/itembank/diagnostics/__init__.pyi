from .dimensionality_results import Dimensionality as Dimensionality
from .dimensions import dimensionality as dimensionality
from .homogeneity_results import Homogeneity as Homogeneity
from .scenario_homogeneity import homogeneity as homogeneity
