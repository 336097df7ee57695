"""SagNet: its cost, and BoDA's term on top; test_parity.py has its update rule."""


def test_the_backbone_runs_twice(tiny, samples, train):
    algorithm, calls = tiny("sagnet"), []
    algorithm.backbone.register_forward_hook(lambda *args: calls.append(1))
    train(algorithm, [samples(0)])
    assert len(calls) == 2 == algorithm.passes


def test_boda_aligns_the_features_as_they_are(tiny, samples):
    """Only the classifier sees mixed styles: the alignment term is that of boda alone."""
    algorithm, alone, batch = tiny("boda+sagnet"), tiny("boda"), samples(0)
    z = algorithm.backbone(batch.x)
    found, expected = algorithm.losses(z, batch), alone.losses(z, batch)
    assert found["alignment"] == expected["alignment"] != 0
    assert found["cross_entropy"] != expected["cross_entropy"]
