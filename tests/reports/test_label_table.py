from crosstail.reports.label_table import label_table


def test_labels_are_listed_domain_by_domain() -> None:
    table = label_table([[1, 2], [3, 4]], ["a", "b"], ["x", "y"])
    assert table.to_numpy().tolist() == [["a", "x", 1], ["a", "y", 2], ["b", "x", 3], ["b", "y", 4]]
