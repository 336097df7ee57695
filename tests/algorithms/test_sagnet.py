def test_boda_aligns_the_features_as_they_are(tiny, samples):
    """Only the classifier sees mixed styles: the alignment term is the same as boda's alone."""
    algorithm, alone, batch = tiny("boda+sagnet"), tiny("boda"), samples(0)
    z = algorithm.backbone(batch.x)
    found, expected = algorithm.losses(z, batch), alone.losses(z, batch)
    assert found["alignment"] == expected["alignment"] != 0
    assert found["cross_entropy"] != expected["cross_entropy"]
