"""The classifiers of the built-in data set: families x hyperparameters x training shares.

Some have training data that are disturbed, mislabelled or short of features.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler, StandardScaler
from sklearn.random_projection import GaussianRandomProjection
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

ALL = (1.0, 0.3, 0.1, 0.03)
MOST = (1.0, 0.3, 0.1)
ENDS = (1.0, 0.1)
FULL = (1.0,)


@dataclass(frozen=True)
class Training:
    """What a classifier is told before it is built."""

    n_examples: int
    is_image: bool
    seed: int


@dataclass(frozen=True)
class Classifier:
    """One model: how to build it, and what is changed in its training data."""

    family: str
    settings: dict[str, Any]
    share: float
    build: Callable[["Training"], Any]  # to an unfitted estimator
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def hyperparameters(self) -> str:
        """Settings and changes as text."""
        return ", ".join(f"{key}={value}" for key, value in {**self.settings, **self.changes}.items())

    @property
    def model_id(self) -> str:
        """Family, settings, changes and training share."""
        parts = [self.family, *(f"{key}={value}" for key, value in {**self.settings, **self.changes}.items())]
        return "/".join([*parts, f"share={self.share:g}"])


def scaled(training: Training) -> tuple[Any, ...]:
    """Standardise features, but only centre pixels: the rim's are nearly constant."""
    return (StandardScaler(with_std=not training.is_image),)


def positive(_training: Training) -> tuple[Any, ...]:
    return (MinMaxScaler(clip=True),)


def principal(training: Training) -> tuple[Any, ...]:
    return *scaled(training), PCA(0.6, svd_solver="full")


def projected(training: Training) -> tuple[Any, ...]:
    return *scaled(training), GaussianRandomProjection(3, random_state=training.seed)


def binary(training: Training) -> tuple[Any, ...]:
    return *scaled(training), Binarizer(threshold=0.0)


def landmarks(training: Training) -> tuple[Any, ...]:
    n = min(60, training.n_examples)
    return *scaled(training), Nystroem(gamma=0.02, n_components=n, random_state=training.seed)


def grid(
    family: str,
    kind: Callable[..., Any],
    settings: list[dict[str, Any]],
    shares: tuple[float, ...],
    *,
    before: Callable[[Training], tuple[Any, ...]] = scaled,
    changes: dict[str, Any] | None = None,
    **fixed: Any,
) -> Iterator[Classifier]:
    """Yield one classifier for each of the settings and training shares."""
    for chosen in settings:

        def build(training: Training, chosen: dict[str, Any] = chosen) -> Any:
            options = {**fixed, **chosen}
            if "n_neighbors" in options:
                options["n_neighbors"] = min(options["n_neighbors"], training.n_examples)
            if "random_state" in options:
                options["random_state"] = training.seed
            return make_pipeline(*before(training), kind(**options))

        for share in shares:
            yield Classifier(family, chosen, share, build, changes or {})


def values(name: str, *several: Any) -> list[dict[str, Any]]:
    return [{name: value} for value in several]


def linear_families() -> Iterator[Classifier]:
    yield from grid("logistic", LogisticRegression, values("C", 0.001, 0.03, 1.0, 30.0), ALL, max_iter=300)
    yield from grid("logistic-pca", LogisticRegression, [{}], MOST, before=principal, max_iter=300)
    yield from grid("logistic-projected", LogisticRegression, [{}], ENDS, before=projected, max_iter=300)
    yield from grid("logistic-nystroem", LogisticRegression, [{}], ENDS, before=landmarks, max_iter=300)
    yield from grid("lda", LinearDiscriminantAnalysis, values("shrinkage", 0.01, 0.5, 0.95), MOST, solver="lsqr")
    yield from grid("qda", QuadraticDiscriminantAnalysis, values("shrinkage", 0.1, 0.5, 0.9), MOST, solver="eigen")
    yield from grid("ridge", RidgeClassifier, values("alpha", 1.0, 300.0), MOST)
    yield from grid("sgd", SGDClassifier, values("loss", "hinge", "log_loss", "perceptron"), MOST, random_state=0)
    yield from grid(
        "sgd-brief", SGDClassifier, values("max_iter", 1, 3), ENDS, loss="log_loss", tol=None, random_state=0
    )


def bayes_and_distance_families() -> Iterator[Classifier]:
    yield from grid("gaussian-nb", GaussianNB, values("var_smoothing", 1e-9, 0.03, 1.0), MOST)
    yield from grid("bernoulli-nb", BernoulliNB, values("alpha", 1.0), ALL)
    yield from grid("multinomial-nb", MultinomialNB, [{}], ENDS, before=positive)
    yield from grid("complement-nb", ComplementNB, [{}], ENDS, before=positive)
    yield from grid("knn", KNeighborsClassifier, values("n_neighbors", 1, 5, 25), ALL)
    yield from grid("knn-manhattan", KNeighborsClassifier, values("n_neighbors", 3), MOST, metric="manhattan")
    yield from grid("knn-cosine", KNeighborsClassifier, values("n_neighbors", 7), ENDS, metric="cosine")
    yield from grid("knn-projected", KNeighborsClassifier, values("n_neighbors", 5), ENDS, before=projected)
    yield from grid("knn-binary", KNeighborsClassifier, values("n_neighbors", 5), MOST, before=binary)
    yield from grid("centroid", NearestCentroid, values("shrink_threshold", None, 1.0), MOST)
    yield from grid("gaussian-process", GaussianProcessClassifier, [{}], (0.1, 0.03), optimizer=None)


def tree_families() -> Iterator[Classifier]:
    yield from grid("tree", DecisionTreeClassifier, values("max_depth", 2, 4, 7, None), ALL, random_state=0)
    yield from grid("random-tree", ExtraTreeClassifier, [{}], MOST, random_state=0)
    forest = values("n_estimators", 5, 25, 100)
    yield from grid("random-forest", RandomForestClassifier, forest, ALL, random_state=0)
    yield from grid("extra-trees", ExtraTreesClassifier, forest[::2], MOST, random_state=0)
    yield from grid(
        "boosted-trees",
        HistGradientBoostingClassifier,
        values("max_iter", 5, 30),
        MOST,
        max_leaf_nodes=8,
        min_samples_leaf=5,
        early_stopping=False,
        random_state=0,
    )
    yield from grid("adaboost-stumps", AdaBoostClassifier, values("n_estimators", 10, 60), MOST, random_state=0)
    yield from grid(
        "adaboost-trees",
        lambda **options: AdaBoostClassifier(DecisionTreeClassifier(max_depth=4, random_state=0), **options),
        values("n_estimators", 30),
        MOST,
        random_state=0,
    )


def kernel_and_network_families() -> Iterator[Classifier]:
    yield from grid("svm-linear", SVC, values("C", 0.01, 1.0), MOST, kernel="linear")
    yield from grid("svm-rbf", SVC, values("C", 0.3, 5.0), ALL)
    yield from grid("svm-narrow", SVC, values("gamma", 0.1, 0.5), MOST)
    yield from grid("svm-poly", SVC, values("degree", 2, 4), MOST, kernel="poly", coef0=1.0)
    yield from grid("svm-sigmoid", SVC, values("coef0", 0.0, 1.0), ENDS, kernel="sigmoid")
    layers = values("hidden_layer_sizes", (4,), (32,), (64, 32))
    yield from grid("mlp", MLPClassifier, layers, ALL, max_iter=120, random_state=0)
    yield from grid(
        "mlp-brief", MLPClassifier, values("max_iter", 5, 15), ENDS, hidden_layer_sizes=(32,), random_state=0
    )


def changed_training() -> Iterator[Classifier]:
    """Yield classifiers whose training data are disturbed, mislabelled or short of features."""
    some: list[tuple[str, Callable[..., Any], dict[str, Any], dict[str, Any]]] = [
        ("logistic", LogisticRegression, {"C": 0.03}, {"max_iter": 300}),
        ("knn", KNeighborsClassifier, {"n_neighbors": 3}, {}),
        ("random-forest", RandomForestClassifier, {"n_estimators": 50}, {"random_state": 0}),
        ("svm-rbf", SVC, {"C": 5.0}, {}),
        ("mlp", MLPClassifier, {"hidden_layer_sizes": (32,)}, {"max_iter": 120, "random_state": 0}),
    ]
    for name, kind, chosen, fixed in some:
        for augment in ("noise", "rotation", "occlusion"):
            yield from grid(name, kind, [chosen], FULL, changes={"augment": augment}, **fixed)
        for features in (0.5, 0.2):
            yield from grid(name, kind, [chosen], FULL, changes={"features": features}, **fixed)
        for mislabelled in (0.2, 0.5):
            yield from grid(name, kind, [chosen], FULL, changes={"mislabelled": mislabelled}, **fixed)


def classifiers() -> list[Classifier]:
    everything = [
        *linear_families(),
        *bayes_and_distance_families(),
        *tree_families(),
        *kernel_and_network_families(),
        *changed_training(),
        *grid("dummy", DummyClassifier, values("strategy", "prior", "stratified"), FULL, random_state=0),
    ]
    ids = [classifier.model_id for classifier in everything]
    if len(set(ids)) < len(ids):
        raise SystemExit("model ids must be unique")
    return everything
