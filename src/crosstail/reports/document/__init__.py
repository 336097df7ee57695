"""One model of a document, and four renderers: HTML, Markdown, LaTeX and the terminal."""
