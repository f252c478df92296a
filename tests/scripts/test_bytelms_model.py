"""The models of `bytelms` and their log-likelihoods; needs PyTorch (the extra `suite`)."""

import numpy as np
import pytest

from tests.scripts.bytelms import load

torch = pytest.importorskip("torch", reason="PyTorch is only needed to make the suite again (the extra `suite`)")

ITEMS = [
    ("copy ab>", ("ab\n", "ba\n", "abc\n")),
    ("6+3=", ("9\n", "8\n")),
    ("close ([ ", ("])\n", ")]\n", "]>\n", "]\n")),
]


@pytest.fixture(scope="module")
def module():
    torch.set_num_threads(1)
    return load("bytelms_model")


@pytest.fixture(scope="module")
def model(module):
    torch.manual_seed(4)
    return module.LanguageModel(32, 2)


def packed(module, size=2):
    return module.batches([one[0] for one in ITEMS], [one[1] for one in ITEMS], size=size, device="cpu")


def one_by_one(module, model, prompt, choice):
    """Log-likelihood of a choice: the whole text through the model, and nothing else."""
    codes = torch.tensor(module.encode("\n" + prompt + choice))[None]
    with torch.inference_mode():
        logits = model(codes[:, :-1]).double().log_softmax(-1)
    terms = logits[0, torch.arange(codes.shape[1] - 1), codes[0, 1:]]
    return float(terms[-len(choice) :].sum())


def test_choices_packed_together_are_worth_what_they_are_alone(module, model):
    found = module.choice_log_likelihoods(model, packed(module), 4)
    for row, (prompt, choices) in enumerate(ITEMS):
        for column in range(4):
            if column < len(choices):
                alone = one_by_one(module, model, prompt, choices[column])
                assert found[row, column] == pytest.approx(alone, abs=1e-4)
            else:
                assert np.isnan(found[row, column])


def test_a_model_that_knows_nothing_gives_every_byte_the_same_probability(module):
    model = module.LanguageModel(16, 1)
    torch.nn.init.zeros_(model.embedding.weight)
    found = module.choice_log_likelihoods(model, packed(module), 4)
    assert found[0, 0] == pytest.approx(-3 * np.log(96))
    assert found[1, 1] == pytest.approx(-2 * np.log(96))


def test_no_token_sees_what_follows(module, model):
    codes = torch.tensor(module.encode("\nreverse abcdef>fedcba\n"))[None]
    changed = codes.clone()
    changed[0, 12] = 50
    with torch.inference_mode():
        first, second = model(codes), model(changed)
    torch.testing.assert_close(first[:, :12], second[:, :12])
    assert not torch.allclose(first[:, 12], second[:, 12])


def test_parameters_are_counted(module, model):
    width, n_layers = 32, 2
    assert model.n_embedding == 96 * width
    assert model.n_parameters == 96 * width + 12 * width**2 * n_layers


def test_sampled_counts_follow_the_probability_of_the_answer(module):
    torch.manual_seed(1)
    model = module.LanguageModel(16, 1)
    items = module.batches(["a", "b"], [("c",), ("de",)], size=2, device="cpu")
    counts, totals = module.sampled_counts(model, items, 400_000, np.random.default_rng(0))
    probability = np.exp([one_by_one(module, model, "a", "c"), one_by_one(module, model, "b", "de")])
    np.testing.assert_allclose(np.exp(totals), probability, rtol=1e-4)
    spread = np.sqrt(400_000 * probability * (1 - probability))
    assert np.all(np.abs(counts - 400_000 * probability) < 5 * spread)


def test_sampling_token_by_token_agrees(module):
    """Draw whole answers without any short cut, and compare their share with the count."""
    torch.manual_seed(2)
    model = module.LanguageModel(16, 1)
    with torch.no_grad():
        model.embedding.weight.mul_(6.0)  # sharper than at the start of training
    n = 20_000
    codes = torch.tensor(module.encode("\nab"))[None]
    with torch.inference_mode():
        first = torch.multinomial(model(codes)[0, -1].softmax(-1), n, replacement=True)
        second_logits = model(torch.cat([codes.expand(96, -1), torch.arange(96)[:, None]], dim=1))[:, -1]
        second = torch.multinomial(second_logits.softmax(-1)[first], 1)[:, 0]
    pairs, counts = torch.unique(torch.stack([first, second], dim=1), dim=0, return_counts=True)
    commonest = int(counts.argmax())
    answer = "".join(module.VOCABULARY[code] for code in pairs[commonest].tolist())
    counted, _ = module.sampled_counts(
        model, module.batches(["ab"], [(answer,)], size=1, device="cpu"), n, np.random.default_rng(3)
    )
    share = int(counts[commonest]) / n
    assert counted[0] / n == pytest.approx(share, abs=5 * (2 * share * (1 - share) / n) ** 0.5)


def test_a_training_run_stops_at_its_checkpoints_and_gives_the_same_again(module, tmp_path):
    training = load("bytelms_training")
    size = module.Size("tiny", 16, 1, 0.02, 2, 80 * 2 * module.CONTEXT)
    tokens = module.encode("the cat sat on the mat\n" * 1000)
    validation = torch.from_numpy(tokens[: module.CONTEXT + 1])[None]
    evaluation = training.Evaluation(packed(module), packed(module), 4, validation)
    run = training.Run("cats", size, 3)
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        training.train(run, tokens, evaluation, folder=folder, device="cpu")
    files = [run.file(tmp_path / "first", share) for share in training.SHARES]
    losses = []
    for file in files:
        with np.load(file) as one, np.load(tmp_path / "second" / file.name) as other:
            np.testing.assert_array_equal(one["choices"], other["choices"])
            np.testing.assert_array_equal(one["counts"], other["counts"])
            losses.append(float(one["validation"]))
    assert losses[-1] < 0.5 * losses[0]
