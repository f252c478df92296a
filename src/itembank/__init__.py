"""Calibrated item banks for evaluating language models.

Names load on first use, so that ``import itembank`` stays light.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from itembank.adaptive.answer_table import session_responses as session_responses
    from itembank.adaptive.journal_sessions import open_session as open_session
    from itembank.adaptive.journal_sessions import read_session as read_session
    from itembank.adaptive.journal_sessions import start_session as start_session
    from itembank.adaptive.limits import Budget as Budget
    from itembank.adaptive.limits import Decision as Decision
    from itembank.adaptive.limits import Stopping as Stopping
    from itembank.adaptive.pool import SessionPool as SessionPool
    from itembank.adaptive.preparation import prepare as prepare
    from itembank.adaptive.preparation import prepare_sessions as prepare_sessions
    from itembank.adaptive.prior_specs import GroupPrior as GroupPrior
    from itembank.adaptive.prior_specs import RegressionPrior as RegressionPrior
    from itembank.adaptive.replay import replay as replay
    from itembank.adaptive.replay_results import ReplayResult as ReplayResult
    from itembank.adaptive.session import AdaptiveSession as AdaptiveSession
    from itembank.adaptive.session_spec import SessionSpec as SessionSpec
    from itembank.calibration.build import build_bank as build_bank
    from itembank.calibration.calibrate import calibrate as calibrate
    from itembank.calibration.dimensions import choose_n_dims as choose_n_dims
    from itembank.calibration.dimensions import parallel_analysis as parallel_analysis
    from itembank.calibration.specs import JointMAP as JointMAP
    from itembank.calibration.specs import MarginalML as MarginalML
    from itembank.calibration.specs import Variational as Variational
    from itembank.comparison.compare import compare as compare
    from itembank.comparison.comparison_spec import ComparisonSpec as ComparisonSpec
    from itembank.comparison.comparisons import Comparison as Comparison
    from itembank.data.bank_files import load_bank as load_bank
    from itembank.data.bank_files import save_bank as save_bank
    from itembank.data.banks import Bank as Bank
    from itembank.data.builtin import load_builtin as load_builtin
    from itembank.data.calibrations import Calibration as Calibration
    from itembank.data.compute import TrainingCompute as TrainingCompute
    from itembank.data.compute import read_model_table as read_model_table
    from itembank.data.compute import training_compute as training_compute
    from itembank.data.costs import CostUnit as CostUnit
    from itembank.data.language_models import ChoiceLogLikelihoods as ChoiceLogLikelihoods
    from itembank.data.language_models import builtin_bits_per_byte as builtin_bits_per_byte
    from itembank.data.language_models import builtin_choices as builtin_choices
    from itembank.data.language_models import builtin_sample_probabilities as builtin_sample_probabilities
    from itembank.data.losses import read_losses as read_losses
    from itembank.data.readers.choice_table import read_choice_scores as read_choice_scores
    from itembank.data.readers.frames import responses_from_frame as responses_from_frame
    from itembank.data.readers.read import read_responses as read_responses
    from itembank.data.readers.specs import ReadingSpec as ReadingSpec
    from itembank.data.response_files import write_responses as write_responses
    from itembank.data.responses import ResponseMatrix as ResponseMatrix
    from itembank.data.selections import Selection as Selection
    from itembank.data.targets import ScoreTarget as ScoreTarget
    from itembank.data.targets import ScoreTargets as ScoreTargets
    from itembank.data.targets import mean_win_rate as mean_win_rate
    from itembank.diagnostics.dimensionalities import Dimensionality as Dimensionality
    from itembank.diagnostics.dimensionality import dimensionality as dimensionality
    from itembank.diagnostics.homogeneities import Homogeneity as Homogeneity
    from itembank.diagnostics.homogeneity import homogeneity as homogeneity
    from itembank.estimation.design_based import design_based_estimates as design_based_estimates
    from itembank.estimation.estimate import estimate as estimate
    from itembank.estimation.estimates import ScoreEstimates as ScoreEstimates
    from itembank.estimation.specs import GPIRT as GPIRT
    from itembank.estimation.specs import PIRT as PIRT
    from itembank.estimation.specs import Auto as Auto
    from itembank.estimation.specs import Factor as Factor
    from itembank.estimation.specs import KNearest as KNearest
    from itembank.estimation.specs import Metabench as Metabench
    from itembank.estimation.specs import RandomForest as RandomForest
    from itembank.estimation.specs import Ridge as Ridge
    from itembank.estimation.specs import SampleMean as SampleMean
    from itembank.estimation.specs import Stacked as Stacked
    from itembank.estimation.specs import TaskMean as TaskMean
    from itembank.estimation.specs import TaskMeanEB as TaskMeanEB
    from itembank.estimation.specs import Weighted as Weighted
    from itembank.irt.parameters import AbilityPrior as AbilityPrior
    from itembank.irt.parameters import ItemParameters as ItemParameters
    from itembank.planning.plan import plan as plan
    from itembank.planning.plan_spec import PlanSpec as PlanSpec
    from itembank.planning.plans import Plan as Plan
    from itembank.planning.select import select as select
    from itembank.scaling.pretraining.ability_law import AbilityLaws as AbilityLaws
    from itembank.scaling.pretraining.decision_study import DecisionMethod as DecisionMethod
    from itembank.scaling.pretraining.decision_study import decision_curves as decision_curves
    from itembank.scaling.pretraining.decisions import decision_accuracy as decision_accuracy
    from itembank.scaling.pretraining.held_out import held_out_coverage as held_out_coverage
    from itembank.scaling.pretraining.held_out_results import HeldOutForecasts as HeldOutForecasts
    from itembank.scaling.pretraining.pretraining_law import pretraining_law as pretraining_law
    from itembank.scaling.pretraining.pretraining_results import PretrainingLaw as PretrainingLaw
    from itembank.scaling.pretraining.pretraining_specs import ItemResponseLaw as ItemResponseLaw
    from itembank.scaling.pretraining.pretraining_specs import PretrainingSettings as PretrainingSettings
    from itembank.scaling.pretraining.sigmoid_law import SigmoidLaw as SigmoidLaw
    from itembank.scaling.pretraining.two_step import TwoStep as TwoStep
    from itembank.scaling.sampling.pass_at_k import unbiased_pass_at_k as unbiased_pass_at_k
    from itembank.scaling.sampling.pass_at_k_law import pass_at_k_law as pass_at_k_law
    from itembank.scaling.sampling.pass_at_k_results import PassAtKLaw as PassAtKLaw
    from itembank.scaling.sampling.pass_at_k_specs import PassAtKSpec as PassAtKSpec
    from itembank.scaling.sampling.sampling_plan import SamplingPlanSpec as SamplingPlanSpec
    from itembank.scaling.sampling.sampling_plan import sampling_plan as sampling_plan
    from itembank.scaling.sampling.sampling_plan_results import SamplingPlan as SamplingPlan
    from itembank.scaling.transfer.convergent import CorrelationInterval as CorrelationInterval
    from itembank.scaling.transfer.convergent import convergent_validity as convergent_validity
    from itembank.scaling.transfer.convergent_results import ConvergentValidity as ConvergentValidity
    from itembank.scaling.transfer.transfer_results import Transfer as Transfer
    from itembank.scaling.transfer.transfer_specs import TransferSpec as TransferSpec
    from itembank.scaling.transfer.transfers import transfer as transfer
    from itembank.scoring.score import score as score
    from itembank.scoring.specs import ExpectedAPosteriori as ExpectedAPosteriori
    from itembank.scoring.specs import MaximumAPosteriori as MaximumAPosteriori
    from itembank.scoring.specs import MaximumLikelihood as MaximumLikelihood
    from itembank.scoring.specs import WeightedLikelihood as WeightedLikelihood
    from itembank.selection.constraints import Constraints as Constraints
    from itembank.selection.criteria import AOptimality as AOptimality
    from itembank.selection.criteria import DOptimality as DOptimality
    from itembank.selection.criteria import Fisher as Fisher
    from itembank.selection.criteria import KullbackLeibler as KullbackLeibler
    from itembank.selection.criteria import MinimumCost as MinimumCost
    from itembank.selection.criteria import RandomItem as RandomItem
    from itembank.selection.criteria import Trace as Trace
    from itembank.selection.criteria import UniformOverScenarios as UniformOverScenarios
    from itembank.selection.criteria import VOptimality as VOptimality
    from itembank.selection.specs import AnchorCorrectness as AnchorCorrectness
    from itembank.selection.specs import AnchorIRT as AnchorIRT
    from itembank.selection.specs import AnchorLatent as AnchorLatent
    from itembank.selection.specs import Disagreement as Disagreement
    from itembank.selection.specs import Information as Information
    from itembank.selection.specs import OptimalDesign as OptimalDesign
    from itembank.selection.specs import Random as Random
    from itembank.selection.specs import Stratified as Stratified
    from itembank.selection.specs import Uncertainty as Uncertainty
    from itembank.selection.specs import VOptimal as VOptimal
    from itembank.simulation.results import Simulated as Simulated
    from itembank.simulation.simulate import simulate as simulate
    from itembank.simulation.specs import SimulationSpec as SimulationSpec
    from itembank.simulation.truth_files import load_truth as load_truth
    from itembank.studies.prediction.assessors import Assessor as Assessor
    from itembank.studies.prediction.study_spec import PredictionSpec as PredictionSpec
    from itembank.studies.results import PredictionResult as PredictionResult
    from itembank.studies.results import StudyResult as StudyResult
    from itembank.studies.run import run_prediction as run_prediction
    from itembank.studies.run import run_study as run_study
    from itembank.studies.specs import StudySpec as StudySpec
    from itembank.studies.study_files import load_prediction as load_prediction
    from itembank.studies.study_files import load_study as load_study

_HOME = {
    "AOptimality": "itembank.selection.criteria",
    "AbilityLaws": "itembank.scaling.pretraining.ability_law",
    "AbilityPrior": "itembank.irt.parameters",
    "AdaptiveSession": "itembank.adaptive.session",
    "AnchorCorrectness": "itembank.selection.specs",
    "AnchorIRT": "itembank.selection.specs",
    "AnchorLatent": "itembank.selection.specs",
    "Assessor": "itembank.studies.prediction.assessors",
    "Auto": "itembank.estimation.specs",
    "Bank": "itembank.data.banks",
    "Budget": "itembank.adaptive.limits",
    "Calibration": "itembank.data.calibrations",
    "ChoiceLogLikelihoods": "itembank.data.language_models",
    "Comparison": "itembank.comparison.comparisons",
    "ComparisonSpec": "itembank.comparison.comparison_spec",
    "Constraints": "itembank.selection.constraints",
    "ConvergentValidity": "itembank.scaling.transfer.convergent_results",
    "CorrelationInterval": "itembank.scaling.transfer.convergent",
    "CostUnit": "itembank.data.costs",
    "DOptimality": "itembank.selection.criteria",
    "Decision": "itembank.adaptive.limits",
    "DecisionMethod": "itembank.scaling.pretraining.decision_study",
    "Dimensionality": "itembank.diagnostics.dimensionalities",
    "Disagreement": "itembank.selection.specs",
    "ExpectedAPosteriori": "itembank.scoring.specs",
    "Factor": "itembank.estimation.specs",
    "Fisher": "itembank.selection.criteria",
    "GPIRT": "itembank.estimation.specs",
    "GroupPrior": "itembank.adaptive.prior_specs",
    "HeldOutForecasts": "itembank.scaling.pretraining.held_out_results",
    "Homogeneity": "itembank.diagnostics.homogeneities",
    "Information": "itembank.selection.specs",
    "ItemParameters": "itembank.irt.parameters",
    "ItemResponseLaw": "itembank.scaling.pretraining.pretraining_specs",
    "JointMAP": "itembank.calibration.specs",
    "KNearest": "itembank.estimation.specs",
    "KullbackLeibler": "itembank.selection.criteria",
    "MarginalML": "itembank.calibration.specs",
    "MaximumAPosteriori": "itembank.scoring.specs",
    "MaximumLikelihood": "itembank.scoring.specs",
    "Metabench": "itembank.estimation.specs",
    "MinimumCost": "itembank.selection.criteria",
    "OptimalDesign": "itembank.selection.specs",
    "PIRT": "itembank.estimation.specs",
    "PassAtKLaw": "itembank.scaling.sampling.pass_at_k_results",
    "PassAtKSpec": "itembank.scaling.sampling.pass_at_k_specs",
    "Plan": "itembank.planning.plans",
    "PlanSpec": "itembank.planning.plan_spec",
    "PredictionResult": "itembank.studies.results",
    "PredictionSpec": "itembank.studies.prediction.study_spec",
    "PretrainingLaw": "itembank.scaling.pretraining.pretraining_results",
    "PretrainingSettings": "itembank.scaling.pretraining.pretraining_specs",
    "Random": "itembank.selection.specs",
    "RandomForest": "itembank.estimation.specs",
    "RandomItem": "itembank.selection.criteria",
    "ReadingSpec": "itembank.data.readers.specs",
    "RegressionPrior": "itembank.adaptive.prior_specs",
    "ReplayResult": "itembank.adaptive.replay_results",
    "ResponseMatrix": "itembank.data.responses",
    "Ridge": "itembank.estimation.specs",
    "SampleMean": "itembank.estimation.specs",
    "SamplingPlan": "itembank.scaling.sampling.sampling_plan_results",
    "SamplingPlanSpec": "itembank.scaling.sampling.sampling_plan",
    "ScoreEstimates": "itembank.estimation.estimates",
    "ScoreTarget": "itembank.data.targets",
    "ScoreTargets": "itembank.data.targets",
    "Selection": "itembank.data.selections",
    "SessionPool": "itembank.adaptive.pool",
    "SessionSpec": "itembank.adaptive.session_spec",
    "SigmoidLaw": "itembank.scaling.pretraining.sigmoid_law",
    "Simulated": "itembank.simulation.results",
    "SimulationSpec": "itembank.simulation.specs",
    "Stacked": "itembank.estimation.specs",
    "Stopping": "itembank.adaptive.limits",
    "Stratified": "itembank.selection.specs",
    "StudyResult": "itembank.studies.results",
    "StudySpec": "itembank.studies.specs",
    "TaskMean": "itembank.estimation.specs",
    "TaskMeanEB": "itembank.estimation.specs",
    "Trace": "itembank.selection.criteria",
    "TrainingCompute": "itembank.data.compute",
    "Transfer": "itembank.scaling.transfer.transfer_results",
    "TransferSpec": "itembank.scaling.transfer.transfer_specs",
    "TwoStep": "itembank.scaling.pretraining.two_step",
    "Uncertainty": "itembank.selection.specs",
    "UniformOverScenarios": "itembank.selection.criteria",
    "VOptimal": "itembank.selection.specs",
    "VOptimality": "itembank.selection.criteria",
    "Variational": "itembank.calibration.specs",
    "Weighted": "itembank.estimation.specs",
    "WeightedLikelihood": "itembank.scoring.specs",
    "build_bank": "itembank.calibration.build",
    "builtin_bits_per_byte": "itembank.data.language_models",
    "builtin_choices": "itembank.data.language_models",
    "builtin_sample_probabilities": "itembank.data.language_models",
    "calibrate": "itembank.calibration.calibrate",
    "choose_n_dims": "itembank.calibration.dimensions",
    "compare": "itembank.comparison.compare",
    "convergent_validity": "itembank.scaling.transfer.convergent",
    "decision_accuracy": "itembank.scaling.pretraining.decisions",
    "decision_curves": "itembank.scaling.pretraining.decision_study",
    "design_based_estimates": "itembank.estimation.design_based",
    "dimensionality": "itembank.diagnostics.dimensionality",
    "estimate": "itembank.estimation.estimate",
    "held_out_coverage": "itembank.scaling.pretraining.held_out",
    "homogeneity": "itembank.diagnostics.homogeneity",
    "load_bank": "itembank.data.bank_files",
    "load_builtin": "itembank.data.builtin",
    "load_prediction": "itembank.studies.study_files",
    "load_study": "itembank.studies.study_files",
    "load_truth": "itembank.simulation.truth_files",
    "mean_win_rate": "itembank.data.targets",
    "open_session": "itembank.adaptive.journal_sessions",
    "parallel_analysis": "itembank.calibration.dimensions",
    "pass_at_k_law": "itembank.scaling.sampling.pass_at_k_law",
    "plan": "itembank.planning.plan",
    "pretraining_law": "itembank.scaling.pretraining.pretraining_law",
    "prepare": "itembank.adaptive.preparation",
    "prepare_sessions": "itembank.adaptive.preparation",
    "read_choice_scores": "itembank.data.readers.choice_table",
    "read_losses": "itembank.data.losses",
    "read_model_table": "itembank.data.compute",
    "read_responses": "itembank.data.readers.read",
    "read_session": "itembank.adaptive.journal_sessions",
    "replay": "itembank.adaptive.replay",
    "responses_from_frame": "itembank.data.readers.frames",
    "run_prediction": "itembank.studies.run",
    "run_study": "itembank.studies.run",
    "sampling_plan": "itembank.scaling.sampling.sampling_plan",
    "save_bank": "itembank.data.bank_files",
    "score": "itembank.scoring.score",
    "select": "itembank.planning.select",
    "session_responses": "itembank.adaptive.answer_table",
    "simulate": "itembank.simulation.simulate",
    "start_session": "itembank.adaptive.journal_sessions",
    "training_compute": "itembank.data.compute",
    "transfer": "itembank.scaling.transfer.transfers",
    "unbiased_pass_at_k": "itembank.scaling.sampling.pass_at_k",
    "write_responses": "itembank.data.response_files",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """Import the module that holds a public name."""
    if name not in _HOME:
        raise AttributeError(f"module 'itembank' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Public names."""
    return sorted(_HOME)
