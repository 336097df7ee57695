"""Many runs: what to run (plan), where results are kept (store), what executes them (launchers), selection (select)."""
