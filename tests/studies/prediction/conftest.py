import pytest

from itembank_studies.prediction.prepared import find_tasks, make_partition, prepare
from itembank_studies.prediction.study import make_pool
from tests.studies.prediction.simulated import make_responses, make_spec


@pytest.fixture(scope="session")
def prepared():
    responses, spec = make_responses(), make_spec()
    tasks = find_tasks(spec, responses)
    return prepare(spec, responses, tasks, make_partition(spec, responses, tasks, 0))


@pytest.fixture(scope="session")
def pool(prepared):
    return make_pool(prepared.known, prepared.task_order[:3], prepared.held_out.items)
