"""Where data come from: folder, manifest, arrays, Hugging Face."""
