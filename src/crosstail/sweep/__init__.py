"""Many runs: what to run (plan), where it is kept (store), who runs it (launchers), what is chosen (select)."""
