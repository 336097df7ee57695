import numpy as np

from crosstail.metrics import Answers


def answered(predicted, log_p, y, domain, num_domains, **more):
    """Answers with these predicted classes (N,) and log probabilities (N, C); domains and classes have numbers."""
    log_p, y = np.asarray(log_p, float), np.asarray(y, np.int64)
    classes = log_p.shape[1]
    names = {"domains": [str(d) for d in range(num_domains)], "classes": [str(c) for c in range(classes)]}
    counts, true = np.ones((num_domains, classes), np.int64), log_p[np.arange(len(y)), y]
    given = {"predicted": np.asarray(predicted, np.int64), "y": y, "domain": np.asarray(domain, np.int64)}
    return Answers(**names, counts=counts, **given, log_p=log_p, true=true, **more)
