"""Many runs side by side: tables, charts, pages."""
