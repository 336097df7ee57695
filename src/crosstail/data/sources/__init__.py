"""Where data come from: a folder, a manifest, arrays, Hugging Face or a benchmark, each to a DomainDataset."""
